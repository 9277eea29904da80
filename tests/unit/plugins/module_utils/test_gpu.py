# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""gpu_info's logic and its one place of input.

Every output of nvidia-smi and of the driver in this file is INVENTED after NVIDIA's documentation and public reports:
none was recorded, as no GPU was at hand. Versions and devices in them are examples.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils import _gpu_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils._command_io import TIMED_OUT, CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils._gpu import (
    Gpu,
    explain,
    gather_gpu,
    parse_cuda,
    parse_driver,
    parse_gpus,
    parse_library,
)
from hypothesis import given, settings
from hypothesis import strategies as st

MIB = 1024 * 1024
H100 = {"address": "0000:3b:00.0", "class": "0x030200", "device": "0x2330", "driver": "nvidia", "numa_node": "0"}
SECOND = {**H100, "address": "0000:86:00.0", "numa_node": "-1"}
NVSWITCH = {**H100, "address": "0000:05:00.0", "class": "0x068000", "device": "0x22a3"}
AUDIO = {**H100, "address": "0000:3b:00.1", "class": "0x040300", "driver": "snd_hda_intel"}

PROPRIETARY = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)"""
OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (b@h)  Wed Feb 26 01:58:59 UTC 2025
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2)"""

ROW_0 = "0, GPU-11111111-2222-3333-4444-555555555555, 81559, 9.0, NVIDIA H100 80GB HBM3"
ROW_1 = "1, GPU-66666666-7777-8888-9999-aaaaaaaaaaaa, 81559, 9.0, NVIDIA H100 80GB HBM3"
QUERY = "--query-gpu=index,uuid,memory.total,compute_cap,name"
OLD_QUERY = "--query-gpu=index,uuid,memory.total,name"
VERSION_550 = """\
NVIDIA-SMI version  : 550.163.01
NVML version        : 550.163
DRIVER version      : 550.163.01
CUDA Version        : 12.4
"""
HEAD_470 = "| NVIDIA-SMI 470.256.02   Driver Version: 470.256.02   CUDA Version: 11.4     |"
HEAD_610 = "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |"


class FakeGpuIO:
    """A host from texts. ``smi`` maps the first argument to an answer, None is a host without nvidia-smi."""

    def __init__(
        self,
        devices: Sequence[dict[str, str]] = (),
        driver: str = "",
        library: str | None = None,
        smi: dict[str, CommandResult | str] | None = None,
    ) -> None:
        self._devices, self._driver, self._library, self._smi = list(devices), driver, library, smi
        self.calls: list[tuple[str, ...]] = []

    def pci_devices(self) -> list[dict[str, str]]:
        return self._devices

    def driver_text(self) -> str:
        return self._driver

    def library_name(self) -> str | None:
        return self._library

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        self.calls.append(arguments)
        if self._smi is None:
            return None
        answer = self._smi.get(arguments[0] if arguments else "", CommandResult(2, "", "unexpected call"))
        return answer if isinstance(answer, CommandResult) else CommandResult(0, answer)


def healthy(**changes: Any) -> FakeGpuIO:
    """A host with two working GPUs, some of it changed."""
    host: dict[str, Any] = {
        "devices": [NVSWITCH, H100, AUDIO, SECOND],
        "driver": PROPRIETARY,
        "library": "libnvidia-ml.so.550.163.01",
        "smi": {QUERY: f"{ROW_0}\n{ROW_1}\n", "--version": VERSION_550},
    }
    return FakeGpuIO(**{**host, **changes})


def broken(text: str, rc: int = 9, **changes: Any) -> FakeGpuIO:
    """A host whose nvidia-smi fails with a text."""
    return healthy(smi={QUERY: CommandResult(rc, text)}, **changes)


def test_two_working_gpus() -> None:
    io = healthy()
    assert gather_gpu(io) == {
        "present": True,
        "pci_devices": [
            {"address": "0000:3b:00.0", "class": "0x030200", "device_id": "0x2330", "driver": "nvidia", "numa_node": 0},
            {
                "address": "0000:86:00.0",
                "class": "0x030200",
                "device_id": "0x2330",
                "driver": "nvidia",
                "numa_node": None,
            },
        ],
        "driver": {
            "loaded": True,
            "version": "550.163.01",
            "flavour": "proprietary",
            "library_version": "550.163.01",
            "matches": True,
        },
        "cuda_version": "12.4",
        "gpus": [
            {
                "index": index,
                "name": "NVIDIA H100 80GB HBM3",
                "uuid": uuid,
                "memory_bytes": 81559 * MIB,
                "compute_capability": "9.0",
            }
            for index, uuid in enumerate(
                ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa")
            )
        ],
        "slots": 2,
        "problems": [],
    }
    assert io.calls == [(QUERY, "--format=csv,noheader,nounits"), ("--version",)]


@pytest.mark.parametrize(
    "devices", [[], [AUDIO, NVSWITCH], [{**H100, "class": "0x0c0330"}]], ids=["nothing", "audio-and-switch", "usb"]
)
def test_no_gpu_runs_no_command_and_is_no_problem(devices: list[dict[str, str]]) -> None:
    io = healthy(devices=devices, driver="", library=None)
    found = gather_gpu(io)
    assert io.calls == []
    assert (found["present"], found["slots"], found["gpus"], found["problems"]) == (False, 0, [], [])
    assert found["driver"] == {
        "loaded": False,
        "version": None,
        "flavour": None,
        "library_version": None,
        "matches": None,
    }


def test_a_gpu_given_to_a_virtual_machine_is_present_but_no_slot_and_no_problem() -> None:
    io = healthy(devices=[{**H100, "driver": "vfio-pci"}], driver="")
    found = gather_gpu(io)
    assert (found["present"], found["slots"], found["problems"], io.calls) == (True, 0, [], [])


def test_gpu_without_driver_or_tools() -> None:
    found = gather_gpu(healthy(devices=[{**H100, "driver": ""}], driver="", library=None, smi=None))
    assert found["pci_devices"][0]["driver"] is None
    assert found["slots"] == 0
    assert found["problems"] == [
        "NVIDIA's kernel module is not loaded, but this host has NVIDIA GPUs at 0000:3b:00.0. "
        "Install the driver (role nvidia_driver); where it is installed, look at `dkms status` and reboot."
    ]


def test_nouveau_is_named_with_the_way_out() -> None:
    found = gather_gpu(healthy(devices=[{**H100, "driver": "nouveau"}], driver="", library=None, smi=None))
    assert found["problems"][0] == (
        "The nouveau driver holds 0000:3b:00.0, so NVIDIA's driver cannot. "
        "Blacklist nouveau, rebuild the initramfs and reboot."
    )


def test_driver_without_nvidia_smi() -> None:
    found = gather_gpu(healthy(smi=None))
    assert (found["slots"], found["driver"]["loaded"], found["cuda_version"]) == (0, True, None)
    assert found["problems"] == [
        "The driver is loaded but nvidia-smi is not installed, so no GPU can be counted. Install it in the "
        "driver's version (Debian: nvidia-smi, Ubuntu: nvidia-utils-<branch>-server)."
    ]


@pytest.mark.parametrize(
    ("text", "rc", "starts", "remedy"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.",
            9,
            "nvidia-smi says 'NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "Look at `dkms status`, then `modprobe nvidia`; after an installation, reboot.",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144",
            18,
            "nvidia-smi says 'Failed to initialize NVML: Driver/library version mismatch': the loaded kernel module",
            "Reboot this host.",
        ),
        (
            "No devices were found",
            6,
            "nvidia-smi says 'No devices were found': the driver is loaded",
            "dmesg | grep NVRM",
        ),
        (
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
            15,
            "nvidia-smi says 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error': a GPU",
            "power the host off and on.",
        ),
        ("Failed to initialize NVML: Insufficient Permissions", 4, "nvidia-smi says 'Failed", "become: true"),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            12,
            "nvidia-smi says 'NVIDIA-SMI couldn't find libnvidia-ml.so",
            "Debian: libnvidia-ml1",
        ),
        (
            "Something\nnew",
            255,
            "nvidia-smi ended with status 255 and said: Something new.",
            "Run nvidia-smi on this host",
        ),
        ("", 3, "nvidia-smi ended with status 3 and said: nothing.", "Xid"),
    ],
)
def test_a_failing_nvidia_smi_gives_one_problem_with_cause_and_remedy(
    text: str, rc: int, starts: str, remedy: str
) -> None:
    io = broken(text, rc, library=None)
    found = gather_gpu(io)
    assert (found["present"], found["slots"], found["gpus"], found["cuda_version"]) == (True, 0, [], None)
    assert len(found["problems"]) == 1
    assert found["problems"][0].startswith(starts)
    assert remedy in found["problems"][0]
    assert len(io.calls) == 1


def test_a_hanging_driver_is_told_from_a_failing_one() -> None:
    said = explain(CommandResult(TIMED_OUT, stderr="no answer within 60 seconds"))
    assert said is not None
    assert said.startswith("nvidia-smi gave no answer within 60 seconds: the driver hangs")


def test_mismatch_takes_the_library_version_from_the_message_where_no_file_tells_it() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144"
    driver = gather_gpu(broken(text, 18, library=None))["driver"]
    assert (driver["version"], driver["library_version"], driver["matches"]) == ("550.163.01", "550.144", False)


def test_versions_that_differ_are_a_problem_even_while_nvidia_smi_still_works() -> None:
    found = gather_gpu(healthy(library="libnvidia-ml.so.550.144.03"))
    assert found["slots"] == 2
    assert found["driver"]["matches"] is False
    assert found["problems"] == [
        "The loaded kernel module is 550.163.01 but the libraries are 550.144.03: "
        "programs started from now on fail. Reboot this host."
    ]


@pytest.mark.parametrize("changes", [{"library": None}, {"driver": ""}], ids=["no-library", "no-module"])
def test_matches_is_unknown_where_one_side_is(changes: dict[str, Any]) -> None:
    assert gather_gpu(healthy(**changes))["driver"]["matches"] is None


def test_a_gpu_that_is_lost_is_no_slot() -> None:
    lost = "1, GPU-66666666-7777-8888-9999-aaaaaaaaaaaa, [GPU is lost], [GPU is lost], [GPU is lost]"
    found = gather_gpu(healthy(smi={QUERY: f"{ROW_0}\n{lost}", "--version": VERSION_550}))
    assert found["slots"] == 1
    assert found["problems"] == [
        f"A GPU is listed but broken: {lost}. Look at `dmesg | grep Xid`, then reboot this host."
    ]


def test_a_gpu_that_does_not_answer_is_named() -> None:
    found = gather_gpu(healthy(smi={QUERY: ROW_0, "--version": VERSION_550}))
    assert found["slots"] == 1
    assert found["problems"] == [
        "Only 1 of 2 NVIDIA GPUs (0000:3b:00.0, 0000:86:00.0) answer. "
        "Look at `dmesg | grep -e Xid -e NVRM`; one that has fallen off the bus comes back with a power cycle."
    ]


def test_a_warning_beside_good_rows_keeps_the_gpus_and_is_reported() -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"
    answer = CommandResult(14, f"{ROW_0}\n{ROW_1}\n{warning}")
    found = gather_gpu(healthy(smi={QUERY: answer, "--version": VERSION_550}))
    assert found["slots"] == 2
    assert len(found["problems"]) == 1
    assert warning in found["problems"][0]


def test_an_old_driver_is_asked_again_without_what_it_does_not_know() -> None:
    refusal = CommandResult(2, 'Field "compute_cap" is not a valid field to query.\n')
    row = "0, GPU-11111111-2222-3333-4444-555555555555, 16160, Tesla V100-SXM2-16GB"
    io = healthy(
        devices=[H100],
        driver="NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024",
        library="libnvidia-ml.so.470.256.02",
        smi={
            QUERY: refusal,
            OLD_QUERY: row,
            "--version": CommandResult(2, "Invalid combination of input arguments."),
            "": HEAD_470,
        },
    )
    found = gather_gpu(io)
    assert found["gpus"] == [
        {
            "index": 0,
            "name": "Tesla V100-SXM2-16GB",
            "uuid": "GPU-11111111-2222-3333-4444-555555555555",
            "memory_bytes": 16160 * MIB,
            "compute_capability": None,
        }
    ]
    assert (found["cuda_version"], found["problems"], len(io.calls)) == ("11.4", [], 4)


def test_a_missing_cuda_library_is_named() -> None:
    found = gather_gpu(healthy(smi={QUERY: f"{ROW_0}\n{ROW_1}", "--version": "CUDA Version        : N/A"}))
    assert (found["slots"], found["cuda_version"]) == (2, None)
    assert found["problems"] == [
        "nvidia-smi names no CUDA version: the driver's CUDA library is missing. Install it in the driver's "
        "version (Debian: libcuda1, Ubuntu: libnvidia-compute-<branch>-server)."
    ]


@pytest.mark.parametrize(
    ("text", "version"),
    [(VERSION_550, "12.4"), (HEAD_470, "11.4"), (HEAD_610, "13.3"), ("CUDA Version: N/A", None), ("", None)],
)
def test_parse_cuda(text: str, version: str | None) -> None:
    assert parse_cuda(text) == version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROPRIETARY, {"loaded": True, "version": "550.163.01", "flavour": "proprietary"}),
        (OPEN, {"loaded": True, "version": "570.124.06", "flavour": "open"}),
        ("", {"loaded": False, "version": None, "flavour": None}),
        ("something else", {"loaded": True, "version": None, "flavour": None}),
    ],
)
def test_parse_driver(text: str, expected: dict[str, Any]) -> None:
    assert parse_driver(text) == expected


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("libnvidia-ml.so.550.163.01", "550.163.01"),
        ("libnvidia-ml.so.1", None),
        ("libnvidia-ml.so", None),
        (None, None),
    ],
)
def test_parse_library(name: str | None, version: str | None) -> None:
    assert parse_library(name) == version


def test_gpu_that_shares_the_hosts_memory_has_none_of_its_own() -> None:
    gpus, failed = parse_gpus("0, GPU-1, [N/A], 12.1, NVIDIA GB10")
    assert gpus == [Gpu(0, "NVIDIA GB10", "GPU-1", None, "12.1")]
    assert failed == []


NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12).map("NVIDIA, {}".format)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300_000), NAMES), max_size=8), st.randoms(use_true_random=False))
def test_parse_gpus_gives_back_what_was_written_in_any_order(found: list[tuple[int, str]], random: Random) -> None:
    written = [Gpu(i, name, f"GPU-{i}", mib * MIB, "9.0") for i, (mib, name) in enumerate(found)]
    lines = [f"{gpu.index}, {gpu.uuid}, {(gpu.memory_bytes or 0) // MIB}, 9.0, {gpu.name}" for gpu in written]
    random.shuffle(lines)
    assert parse_gpus("\n".join(["a warning", *lines])) == (written, [])


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.integers(0, 255))
def test_no_output_whatever_makes_it_crash(text: str, rc: int) -> None:
    found = gather_gpu(healthy(smi={QUERY: CommandResult(rc, text), "--version": text, "": text}, driver=text))
    assert found["slots"] == len(found["gpus"])
    assert rc == 0 or found["problems"]


def write_device(root: Path, address: str, vendor: str, driver: str | None) -> None:
    device = root / "sys/bus/pci/devices" / address
    device.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("class", "0x030200"), ("device", "0x2330"), ("numa_node", "1")):
        (device / name).write_text(f"{text}\n", encoding="utf-8")
    if driver:
        (device / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")


def test_system_io_reads_a_tree(tmp_path: Path) -> None:
    write_device(tmp_path, "0000:86:00.0", "0x10de", None)
    write_device(tmp_path, "0000:3b:00.0", "0x10de", "nvidia")
    write_device(tmp_path, "0000:00:02.0", "0x8086", "i915")
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(PROPRIETARY + "\n", encoding="utf-8")
    libraries = tmp_path / f"usr/lib/{platform.machine()}-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libnvidia-ml.so.550.163.01").touch()
    (libraries / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.550.163.01")

    io = _gpu_io.SystemGpuIO(str(tmp_path))
    assert io.pci_devices() == [
        {"address": "0000:3b:00.0", "class": "0x030200", "device": "0x2330", "driver": "nvidia", "numa_node": "1"},
        {"address": "0000:86:00.0", "class": "0x030200", "device": "0x2330", "driver": "", "numa_node": "1"},
    ]
    assert io.driver_text() == PROPRIETARY
    assert io.library_name() == "libnvidia-ml.so.550.163.01"


def test_system_io_on_a_host_without_anything(tmp_path: Path) -> None:
    io = _gpu_io.SystemGpuIO(str(tmp_path))
    assert (io.pci_devices(), io.driver_text(), io.library_name()) == ([], "", None)


def test_nvidia_smi_is_found_in_the_path_and_run_in_the_c_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "$LC_ALL $*"\nexit 9\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert _gpu_io.SystemGpuIO().nvidia_smi("-L") == CommandResult(9, "C -L\n", "")


def test_nvidia_smi_that_is_missing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_io, "find_program", lambda name: None)
    assert _gpu_io.SystemGpuIO().nvidia_smi("-L") is None
