# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of gpu_info, over invented hosts, and that it returns what it documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import gpu_info

FIXTURES = Path(__file__).parents[1] / "module_utils/fixtures/gpu"
UUID = "GPU-48aeb943-9458-4282-da24-e5f49e0db44b"


class OneGpu:
    """An A100 in MIG mode beside an NVSwitch, so that every list has a member."""

    def __init__(self, sysfs_root: str = "/sys", proc_root: str = "/proc") -> None:
        self.roots = (sysfs_root, proc_root)

    def pci_devices(self) -> list[dict[str, str]]:
        gpu = {"address": "0000:01:00.0", "class": "0x030200", "device": "0x20f1", "driver": "nvidia"}
        switch = {"address": "0000:05:00.0", "class": "0x068000", "device": "0x1af1", "driver": "nvidia-nvswitch"}
        return [{**device, "numa_node": "0", "cpus": "0-31"} for device in (gpu, switch)]

    def driver_text(self) -> str:
        return "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"

    def module_loaded(self, name: str) -> bool:
        return False

    def library_name(self) -> str | None:
        return "libnvidia-ml.so.535.54.03"

    def secure_boot_variable(self) -> bytes | None:
        return b"\x06\0\0\0\0"

    def has_rdma(self) -> bool:
        return True

    def process_names(self) -> frozenset[str] | None:
        return frozenset({"nv-fabricmanage"})

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        row = f"0, {UUID}, 40960, 8.0, NVIDIA A100 40GB PCIe"
        name = {"-q": "q_a100_mig_535.xml", "-L": "list_a100_mig.txt", "topo": "topo_one_gpu_one_nic.txt"}
        found = name.get(arguments[0])
        return CommandResult(0, (FIXTURES / found).read_text(encoding="utf-8") if found else row)

    def fabric_manager(self) -> CommandResult | None:
        return CommandResult(0, "Fabric Manager version is : 535.54.03\n")


class NoGpu(OneGpu):
    def pci_devices(self) -> list[dict[str, str]]:
        return []

    def driver_text(self) -> str:
        return ""

    def library_name(self) -> str | None:
        return None

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        raise AssertionError("no command may run on a host without a GPU")

    def fabric_manager(self) -> CommandResult | None:
        raise AssertionError("no command may run on a host without a GPU")


def ended(capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit) as end:
        gpu_info.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (end.value.code == 0) is not result.get("failed", False)
    return result


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], io: type, **args: Any) -> dict[str, Any]:
    monkeypatch.setattr(gpu_info, "SystemGpuIO", io)
    return ended(capsys, **args)


def assert_documented(documented: dict[str, Any], found: dict[str, Any]) -> None:
    """Hold names and kinds of every value, at any depth, against RETURN; null is allowed anywhere."""
    kinds = {"bool": bool, "int": int, "str": str, "float": float, "list": list, "dict": dict}
    assert set(documented) == set(found)
    for name, value in found.items():
        entry = documented[name]
        # by name: a boolean is an int for isinstance
        assert value is None or type(value).__name__ == kinds[entry["type"]].__name__, name
        if "contains" in entry and value is not None:
            members: Any = value if isinstance(value, list) else [value]
            for member in members:
                assert_documented(entry["contains"], member)


@pytest.mark.parametrize("check", [False, True])
def test_one_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: bool) -> None:
    result = run(monkeypatch, capsys, OneGpu, _ansible_check_mode=check)
    assert (result["changed"], result["slots"], result["cuda_version"]) == (False, 1, "12.2")
    assert (result["problems"], len(result["notes"])) == ([], 1)
    assert len(result["gpus"][0]["mig"]["instances"]) == 7
    assert len(result["nvswitches"]) == 1
    del result["changed"]
    result.pop("invocation", None)  # of ansible-core before 2.21
    assert_documented(from_yaml(gpu_info.RETURN), result)


def test_no_gpu_is_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(monkeypatch, capsys, NoGpu)
    assert (result["changed"], result["present"], result["slots"], result["problems"]) == (False, False, 0, [])


def test_the_roots_are_this_hosts_own_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    roots: list[tuple[str, str]] = []

    class Listening(NoGpu):
        def __init__(self, sysfs_root: str = "", proc_root: str = "") -> None:
            super().__init__(sysfs_root, proc_root)
            roots.append(self.roots)

    run(monkeypatch, capsys, Listening)
    run(monkeypatch, capsys, Listening, sysfs_root="/srv/tree/sys", proc_root="/srv/tree/proc")
    assert roots == [("/sys", "/proc"), ("/srv/tree/sys", "/srv/tree/proc")]


def test_a_recorded_tree_is_read_through_the_real_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x2330"), ("numa_node", "-1")):
        (device / name).write_text(f"{text}\n", encoding="utf-8")
    (device / "driver").symlink_to("../../../../bus/pci/drivers/vfio-pci")
    result = ended(capsys, sysfs_root=str(tmp_path / "sys"), proc_root=str(tmp_path / "proc"))
    assert [found["driver"] for found in result["pci_devices"]] == ["vfio-pci"]
    assert (result["present"], result["slots"], result["problems"]) == (True, 0, [])
    assert result["driver"]["loaded"] is False


def test_an_option_it_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(monkeypatch, capsys, NoGpu, slots=3)
    assert result["failed"] is True
    assert "Unsupported parameters" in result["msg"]
