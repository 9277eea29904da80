# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that looks for NVIDIA devices, over trees on disk and a stand-in for nvidia-smi, named so.

The stand-in prints the fixtures and writes down how often it was called; no GPU and no driver is behind it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu import host_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.host_io import SystemGpuIO

FIXTURES = Path(__file__).parents[1] / "fixtures/gpu"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {0}  Release Build  (b@h)\n"
BUSES = ("53", "64", "75", "86", "97", "a8", "b9", "ca")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Tree:
    """A recorded tree: what sysfs, procfs and the libraries' folder hold of a host."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def device(
        self, address: str, device: str = "0x2330", kind: str = "0x030200", driver: str | None = "nvidia", node: int = 0
    ) -> None:
        folder = self.root / "sys/bus/pci/devices" / address
        vendor = "0x8086" if driver == "i915" else "0x10de"
        texts = {"vendor": vendor, "class": kind, "device": device, "numa_node": str(node), "local_cpulist": "0-55"}
        for name, text in texts.items():
            write(folder / name, f"{text}\n")
        if driver:
            (folder / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")

    def driver(self, version: str) -> None:
        write(self.root / "proc/driver/nvidia/version", OPEN.format(version))
        libraries = self.root / f"usr/lib/{platform.machine()}-linux-gnu"
        write(libraries / f"libnvidia-ml.so.{version}", "")
        (libraries / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")

    def processes(self, names: Sequence[str]) -> None:
        for number, name in enumerate(names, 1):
            write(self.root / f"proc/{number}/comm", f"{name}\n")
        write(self.root / "proc/uptime", "1 1\n")

    def secure_boot(self, on: bool) -> None:
        variable = self.root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        variable.parent.mkdir(parents=True)
        variable.write_bytes(b"\x06\0\0\0" + (b"\x01" if on else b"\0"))

    def io(self) -> SystemGpuIO:
        return SystemGpuIO(str(self.root / "sys"), str(self.root / "proc"), str(self.root))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "host")


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], name: str = "nvidia-smi") -> Path:
    """Put a stand-in for a program first on the PATH. Returns the file in which it counts its calls."""
    calls = folder / f"{name}.calls"
    cases = "\n".join(f"  '{argument}') cat '{answer}';;" for argument, answer in answers.items())
    write(folder / name, f'#!/bin/sh\necho "$*" >>\'{calls}\'\ncase "$*" in\n{cases}\n  *) exit 2;;\nesac\n')
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return calls


def test_a_tree_is_read(tree: Tree) -> None:
    tree.device("0000:86:00.0", driver=None, node=1)
    tree.device("0000:3b:00.0")
    tree.device("0000:00:02.0", driver="i915")
    tree.driver("550.163.01")
    write(tree.root / "sys/module/nouveau/refcnt", "0\n")
    io = tree.io()
    common = {"class": "0x030200", "device": "0x2330", "cpus": "0-55", "vgpu": ""}
    assert io.pci_devices() == [
        {"address": "0000:3b:00.0", "driver": "nvidia", "numa_node": "0", **common},
        {"address": "0000:86:00.0", "driver": "", "numa_node": "1", **common},
    ]
    assert io.driver_text() == OPEN.format("550.163.01").strip()
    assert io.library_name() == "libnvidia-ml.so.550.163.01"
    assert (io.module_loaded("nouveau"), io.module_loaded("nvidia")) == (True, False)


def test_a_host_without_anything(tree: Tree) -> None:
    io = tree.io()
    assert (io.pci_devices(), io.driver_text(), io.library_name()) == ([], "", None)
    assert (io.secure_boot_variable(), io.process_names(), io.has_rdma()) == (None, None, False)


@pytest.mark.parametrize("on", [True, False])
def test_secure_boot_is_found_without_a_driver(tree: Tree, on: bool) -> None:
    tree.device("0000:3b:00.0", driver="vfio-pci")
    tree.secure_boot(on)
    found = gather_gpu(tree.io())
    assert (found["present"], found["secure_boot"], found["problems"]) == (True, on, [])


def test_processes_and_rdma_devices(tree: Tree) -> None:
    tree.processes(["systemd", "nv-fabricmanage"])
    write(tree.root / "sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
    io = tree.io()
    assert io.process_names() == frozenset({"systemd", "nv-fabricmanage"})
    assert io.has_rdma() is True


def test_processes_of_others_that_are_hidden_make_the_answer_unknown(tree: Tree) -> None:
    tree.processes(["systemd", "sh"])
    (tree.root / "proc/1/comm").unlink()
    assert tree.io().process_names() is None


def test_nvidia_smi_is_found_in_the_path_and_run_in_the_c_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "nvidia-smi", '#!/bin/sh\necho "$LC_ALL $*"\nexit 9\n')
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert SystemGpuIO().nvidia_smi("-L") == CommandResult(9, "C -L\n", "")


def test_nvidia_smi_is_found_where_no_path_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "nvidia-smi", "#!/bin/sh\necho here\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setattr(host_io, "find_program", lambda name: None)
    monkeypatch.setattr(host_io, "SMI_PLACES", (str(tmp_path / "missing"), str(tmp_path / "nvidia-smi")))
    assert SystemGpuIO().nvidia_smi("-L") == CommandResult(0, "here\n", "")


def test_programs_that_are_missing_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_io, "find_program", lambda name: None)
    monkeypatch.setattr(host_io, "SMI_PLACES", ())
    assert SystemGpuIO().nvidia_smi("-L") is None
    assert SystemGpuIO().fabric_manager() is None


QUERY = "--query-gpu=index,uuid,memory.total,compute_cap,name --format=csv,noheader,nounits"


def rows(tree: Tree, count: int, row: str) -> str:
    """The answer to the query that goes with the uuids of the fixtures."""
    path = tree.root / "rows.csv"
    uuids = [f"GPU-{number:08d}-0000-0000-0000-{number:012d}" for number in range(count)]
    write(path, "".join(f"{number}, {uuid}, {row}\n" for number, uuid in enumerate(uuids)))
    return str(path)


def test_eight_h100_with_nvswitches(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, bus in enumerate(BUSES):
        tree.device(f"0000:{bus}:00.0", node=number // 4)
    for bus in ("05", "06", "07", "08"):
        tree.device(f"0000:{bus}:00.0", "0x22a3", "0x068000", "nvidia-nvswitch")
    tree.driver("580.105.08")
    tree.processes(["systemd", "nv-fabricmanage"])
    tree.secure_boot(False)
    answers = {
        QUERY: rows(tree, 8, "81559, 9.0, NVIDIA H100 80GB HBM3"),
        "-q -x": str(FIXTURES / "q_h100_x8_580.xml"),
        "topo -m": str(FIXTURES / "topo_h100_x8.txt"),
    }
    calls = stand_in(tmp_path / "stand-in", monkeypatch, answers)
    write(tree.root / "version.txt", "Fabric Manager version is : 580.105.08\n")
    stand_in(tmp_path / "stand-in", monkeypatch, {"--version": str(tree.root / "version.txt")}, name="nv-fabricmanager")

    found = gather_gpu(tree.io())
    assert (found["slots"], found["cuda_version"], found["problems"], found["notes"]) == (8, "13.0", [], [])
    assert found["driver"]["flavour"] == "open"
    assert found["secure_boot"] is False
    assert len(found["nvswitches"]) == 4
    assert found["fabric"] == {"state": "Completed", "manager_running": True, "manager_version": "580.105.08"}
    assert [gpu["address"] for gpu in found["gpus"]] == [f"0000:{bus}:00.0" for bus in BUSES]
    assert [gpu["numa_node"] for gpu in found["gpus"]] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {(gpu["generation"], gpu["power_limit_watts"], gpu["nvlink"]) for gpu in found["gpus"]} == {
        ("Hopper", 700.0, True)
    }
    assert found["topology"]["gpus"]["3"]["7"] == "NV18"
    assert found["topology"]["nics"]["mlx5_5"]["5"] == "PIX"
    assert calls.read_text(encoding="utf-8").splitlines() == [QUERY, "-q -x", "topo -m"]


@pytest.mark.parametrize(
    "case",
    [
        ("0x1eb8", "15360, 7.5, Tesla T4", "q_t4_595.xml", "Turing", "13.2"),
        ("0x2204", "24576, 8.6, NVIDIA GeForce RTX 3090", "q_rtx3090_525.xml", "Ampere", "12.0"),
        ("0x1db1", "16160, 7.0, Tesla V100-SXM2-16GB", "q_v100_470.xml", "Volta", "11.4"),
    ],
)
def test_one_gpu_of_several_generations(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str, str, str]
) -> None:
    device, row, report, generation, cuda = case
    tree.device("0000:3b:00.0", device)
    tree.driver("550.163.01")
    answers = {QUERY: rows(tree, 1, row), "-q -x": str(FIXTURES / report)}
    calls = stand_in(tree.root / "stand-in", monkeypatch, answers)
    found = gather_gpu(tree.io())
    assert (found["slots"], found["cuda_version"]) == (1, cuda)
    assert found["gpus"][0]["generation"] == generation
    assert found["fabric"] == {"state": None, "manager_running": None, "manager_version": None}
    # The driver of the tree is the open one, which does not know Volta.
    wrong = ["The open kernel module is loaded, which cannot drive the GPUs at 0000:3b:00.0"]
    assert [problem.split(" (")[0] for problem in found["problems"]] == (wrong if generation == "Volta" else [])
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 2


def test_mig_instances_get_their_names(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.device("0000:01:00.0", "0x20f1")
    tree.driver("535.54.03")
    write(tree.root / "rows.csv", "0, GPU-48aeb943-9458-4282-da24-e5f49e0db44b, 40960, 8.0, NVIDIA A100 40GB PCIe\n")
    answers = {
        QUERY: str(tree.root / "rows.csv"),
        "-q -x": str(FIXTURES / "q_a100_mig_535.xml"),
        "-L": str(FIXTURES / "list_a100_mig.txt"),
    }
    calls = stand_in(tmp_path / "stand-in", monkeypatch, answers)
    found = gather_gpu(tree.io())
    assert (found["slots"], found["problems"], len(found["notes"])) == (1, [], 1)
    instances = found["gpus"][0]["mig"]["instances"]
    assert [instance["profile"] for instance in instances] == ["1g.5gb"] * 7
    assert instances[3]["uuid"] == "MIG-50ab4b32-92db-5567-bf6d-fac646fe29f2"
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 3


def test_a_host_without_gpu_starts_no_program(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.device("0000:00:02.0", driver="i915")
    calls = stand_in(tmp_path / "stand-in", monkeypatch, {})
    assert gather_gpu(tree.io())["present"] is False
    assert not calls.exists()
