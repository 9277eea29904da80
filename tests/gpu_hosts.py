# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts with GPUs, as ``gather_gpu`` finds them: what nvidia-smi prints there is COMPOSED."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult

FIXTURES = Path(__file__).parent / "unit/plugins/module_utils/fixtures/gpu"
MIB = 1024 * 1024
H100 = {
    "address": "0000:3b:00.0",
    "class": "0x030200",
    "device": "0x2330",
    "driver": "nvidia",
    "numa_node": "0",
    "cpus": "0-55",
}
SECOND = {**H100, "address": "0000:86:00.0", "numa_node": "-1", "cpus": ""}
NVSWITCH = {**H100, "address": "0000:05:00.0", "class": "0x068000", "device": "0x22a3", "driver": "nvidia-nvswitch"}
AUDIO = {**H100, "address": "0000:3b:00.1", "class": "0x040300", "driver": "snd_hda_intel"}

PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {0}  Tue Apr  8 12:41:17 UTC 2025"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {0}  Release Build  (b@h)  Wed Feb 26 01:58:59 2025"

UUID_0, UUID_1 = "GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
ROW_0 = f"0, {UUID_0}, 81559, 9.0, NVIDIA H100 80GB HBM3"
ROW_1 = f"1, {UUID_1}, 81559, 9.0, NVIDIA H100 80GB HBM3"
QUERY = "--query-gpu=index,uuid,memory.total,compute_cap,name"
OLD_QUERY = "--query-gpu=index,uuid,memory.total,name"
MATRIX = "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tNV18\tPIX\t0-55\nGPU1\tNV18\t X \tSYS\t56-111\n"
MATRIX += "mlx5_0\tPIX\tSYS\t X \n"


def gpu_xml(uuid: str, address: str, inside: str = "", mig: str = "Disabled") -> str:
    return (
        f"<gpu id='0000{address}'><uuid>{uuid}</uuid><pci><pci_bus_id>0000{address.upper()}</pci_bus_id></pci>"
        "<persistence_mode>Enabled</persistence_mode>"
        f"<mig_mode><current_mig>{mig}</current_mig><pending_mig>{mig}</pending_mig></mig_mode>{inside}</gpu>"
    )


def report(*gpus: str, cuda: str = "12.4") -> str:
    return f"<nvidia_smi_log><cuda_version>{cuda}</cuda_version>{''.join(gpus)}</nvidia_smi_log>"


GPU_0, GPU_1 = gpu_xml(UUID_0, "0000:3b:00.0"), gpu_xml(UUID_1, "0000:86:00.0")
REPORT = report(GPU_0, GPU_1)
INSTANCE = (
    "<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id><fb_memory_usage><total>40448 MiB</total></fb_memory_usage>"
    "</mig_device></mig_devices>"
)


class FakeGpuIO:
    """A host from texts. ``smi`` maps the first argument to an answer, None is a host without nvidia-smi."""

    def __init__(
        self,
        devices: Sequence[dict[str, str]] = (),
        driver: str = "",
        library: str | None = None,
        smi: dict[str, CommandResult | str] | None = None,
        *,
        modules: Sequence[str] = (),
        secure_boot: bytes | None = None,
        rdma: bool = False,
        processes: frozenset[str] | None = frozenset({"systemd"}),
        fabric_manager: str | None = None,
    ) -> None:
        self._devices, self._driver, self._library, self._smi = list(devices), driver, library, smi
        self._modules, self._secure_boot, self._rdma = modules, secure_boot, rdma
        self._processes, self._fabric_manager = processes, fabric_manager
        self.calls: list[tuple[str, ...]] = []

    def pci_devices(self) -> list[dict[str, str]]:
        return self._devices

    def driver_text(self) -> str:
        return self._driver

    def module_loaded(self, name: str) -> bool:
        return name in self._modules

    def library_name(self) -> str | None:
        return self._library

    def secure_boot_variable(self) -> bytes | None:
        return self._secure_boot

    def has_rdma(self) -> bool:
        return self._rdma

    def process_names(self) -> frozenset[str] | None:
        return self._processes

    @contextmanager
    def held_open(self) -> Iterator[None]:
        self.calls.append(("held open",))
        yield
        self.calls.append(("let go",))

    def pause(self, seconds: float) -> None:
        self.calls.append((f"pause {seconds}",))

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        self.calls.append(arguments)
        if self._smi is None:
            return None
        answer = self._smi.get(arguments[0], CommandResult(2, "", "unexpected call"))
        return answer if isinstance(answer, CommandResult) else CommandResult(0, answer)

    def fabric_manager(self) -> CommandResult | None:
        self.calls.append(("nv-fabricmanager",))
        return None if self._fabric_manager is None else CommandResult(0, self._fabric_manager)


def healthy(**changes: Any) -> FakeGpuIO:
    """A host with two working GPUs, some of it changed."""
    smi = {QUERY: f"{ROW_0}\n{ROW_1}\n", "-q": REPORT, "topo": MATRIX}
    host: dict[str, Any] = {
        "devices": [H100, AUDIO, SECOND],
        "driver": PROPRIETARY.format("550.163.01"),
        "library": "libnvidia-ml.so.550.163.01",
        "smi": smi,
    }
    if isinstance(changes.get("smi"), dict):
        changes["smi"] = {**smi, **changes["smi"]}
    return FakeGpuIO(**{**host, **changes})


def one(inside: str = "", mig: str = "Disabled", **changes: Any) -> FakeGpuIO:
    """A host with one GPU of which the report says something more."""
    smi = {QUERY: ROW_0, "-q": report(gpu_xml(UUID_0, "0000:3b:00.0", inside, mig)), **changes.pop("smi", {})}
    return healthy(devices=changes.pop("devices", [H100]), smi=smi, **changes)


def broken(text: str, rc: int = 9, **changes: Any) -> FakeGpuIO:
    """A host whose nvidia-smi fails with a text."""
    return healthy(smi={QUERY: CommandResult(rc, text)}, **changes)


def fabric(state: str, status: str = "Success", **changes: Any) -> FakeGpuIO:
    """A host with one GPU and an NVSwitch."""
    inside = f"<fabric><state>{state}</state><status>{status}</status></fabric>"
    return one(inside, **{"devices": [NVSWITCH, H100], "processes": frozenset({"nv-fabricmanage"}), **changes})
