# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of gpu_info, over invented hosts, and that it returns what it documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils._command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import gpu_info

ROW = "0, GPU-11111111-2222-3333-4444-555555555555, 81559, 9.0, NVIDIA H100 80GB HBM3"


class OneGpu:
    def pci_devices(self) -> list[dict[str, str]]:
        device = {"class": "0x030200", "device": "0x2330", "driver": "nvidia", "numa_node": "0"}
        return [{"address": "0000:3b:00.0", **device}]

    def driver_text(self) -> str:
        return "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025"

    def library_name(self) -> str | None:
        return "libnvidia-ml.so.550.163.01"

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        return CommandResult(0, "CUDA Version : 12.4" if arguments == ("--version",) else ROW)


class NoGpu(OneGpu):
    def pci_devices(self) -> list[dict[str, str]]:
        return []

    def driver_text(self) -> str:
        return ""

    def library_name(self) -> str | None:
        return None

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        raise AssertionError("no command may run on a host without a GPU")


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], io: type, **args: Any) -> dict[str, Any]:
    monkeypatch.setattr(gpu_info, "SystemGpuIO", io)
    with patch_module_args(args), pytest.raises(SystemExit) as ended:
        gpu_info.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


@pytest.mark.parametrize("check", [False, True])
def test_one_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: bool) -> None:
    result = run(monkeypatch, capsys, OneGpu, _ansible_check_mode=check)
    assert (result["changed"], result["slots"], result["cuda_version"]) == (False, 1, "12.4")
    documented = from_yaml(gpu_info.RETURN)
    assert set(documented) == set(result) - {"changed", "invocation"}
    assert set(documented["driver"]["contains"]) == set(result["driver"])
    assert set(documented["gpus"]["contains"]) == set(result["gpus"][0])
    assert set(documented["pci_devices"]["contains"]) == set(result["pci_devices"][0])


def test_no_gpu_is_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(monkeypatch, capsys, NoGpu)
    assert (result["changed"], result["present"], result["slots"], result["problems"]) == (False, False, 0, [])


def test_an_option_it_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(monkeypatch, capsys, NoGpu, slots=3)
    assert result["failed"] is True
    assert "Unsupported parameters" in result["msg"]
