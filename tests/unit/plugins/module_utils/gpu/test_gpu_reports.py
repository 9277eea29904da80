# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hosts from public reports: which GPUs count, and what is reported. Their outputs are COMPOSED after the threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu

from tests.gpu_hosts import H100, OPEN, PROPRIETARY, QUERY, FakeGpuIO, report


@dataclass(frozen=True)
class Reported:
    """A host of ``count`` alike GPUs: ``memory`` and ``capability`` as the query has them, ``first`` of the first."""

    device: str
    name: str
    memory: str
    capability: str
    inside: str = ""
    first: str = ""
    count: int = 1
    driver: str = PROPRIETARY
    suffix: str = ""
    rc: int = 0

    def host(self) -> FakeGpuIO:
        addresses = [f"0000:{0x10 + index:02x}:00.0" for index in range(self.count)]
        rows = "\n".join(
            f"{index}, GPU-{index}, {self.memory}, {self.capability}, {self.name}" for index in range(self.count)
        )
        gpus = [
            f"<gpu id='0000{address}'><uuid>GPU-{index}</uuid><pci><pci_bus_id>0000{address}</pci_bus_id></pci>"
            f"<persistence_mode>Enabled</persistence_mode>{self.inside}{'' if index else self.first}</gpu>"
            for index, address in enumerate(addresses)
        ]
        return FakeGpuIO(
            devices=[{**H100, "device": self.device, "address": address} for address in addresses],
            driver=self.driver.format("570.148.08"),
            library="libnvidia-ml.so.570.148.08",
            smi={QUERY: CommandResult(self.rc, f"{rows}\n{self.suffix}"), "-q": report(*gpus), "topo": ""},
        )


def vgpu(licence: str) -> str:
    return (
        "<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode></gpu_virtualization_mode>"
        f"<vgpu_software_licensed_product><license_status>{licence}</license_status></vgpu_software_licensed_product>"
    )


NO_SENSORS = (
    "<temperature><gpu_temp>N/A</gpu_temp></temperature><utilization><gpu_util>N/A</gpu_util></utilization>"
    "<gpu_power_readings><power_draw>N/A</power_draw></gpu_power_readings>"
)
UNKNOWN = (
    "<product_brand>Unknown Error</product_brand><temperature><gpu_temp>Unknown Error</gpu_temp></temperature>"
    "<gpu_power_readings><power_draw>Unknown Error</power_draw></gpu_power_readings>"
)
NO_MANAGER = "<fabric><state>In Progress</state><status>N/A</status></fabric>"
HOSTS = {
    "pytorch#87464: a corrupted infoROM": Reported(
        "0x1db5", "Tesla V100-SXM2-32GB", "32768", "7.0", count=2,
        suffix="WARNING: infoROM is corrupted at gpu 0000:11:00.0\n", rc=14,
    ),
    "dcgm-exporter#319: an A10G that answers Unknown Error": Reported(
        "0x2237", "NVIDIA A10G", "23028", "8.6", first=UNKNOWN, count=8
    ),
    "AKS#4869: an A10-24Q without a licence": Reported(
        "0x2236", "NVIDIA A10-24Q", "24512", "8.6", vgpu("Unlicensed (Unrestricted)")
    ),
    "unsloth#10703: a GB10 that shares the host's memory": Reported(
        "0x2e12", "NVIDIA GB10", "[N/A]", "12.1", "<fabric><state>N/A</state><status>N/A</status></fabric>", driver=OPEN
    ),
    "extensions#717: HGX B200 without a fabric manager": Reported(
        "0x2901", "NVIDIA B200", "183359", "10.0", NO_MANAGER, count=8, driver=OPEN
    ),
    "nvidia_gpu_exporter#384: a healthy L40-16Q": Reported(
        "0x26b5", "NVIDIA L40-16Q", "16384", "8.9", NO_SENSORS + vgpu("Licensed (Expiry: 2027-1-1 0:0:0 GMT)")
    ),
}  # fmt: skip
EXPECTED_OF: dict[str, tuple[list[str], list[str]]] = {
    "pytorch#87464": ([], ["GPU 1: nvidia-smi says 'WARNING: infoROM is corrupted at gpu 0000:11:00.0'."]),
    "dcgm-exporter#319": (["GPU 0 gives ERR! instead of gpu_temp, power_draw: it or its driver has failed."], []),
    "AKS#4869": (["GPU 0 is a vGPU without a valid licence (nvidia-smi says 'Unlicensed (Unrestricted)')"], []),
    "unsloth#10703": ([], []),
    "extensions#717": ([f"GPU {', '.join(f'{index} ({chr(39)}In Progress{chr(39)})' for index in range(8))}: not"], []),
    "nvidia_gpu_exporter#384": ([], []),
}


@pytest.mark.parametrize("name", HOSTS)
def test_what_is_reported_of_it(name: str) -> None:
    found: dict[str, Any] = gather_gpu(HOSTS[name].host())
    assert found["slots"] == HOSTS[name].count
    for reported, expected in zip((found["problems"], found["notes"]), EXPECTED_OF[name.partition(":")[0]]):
        assert len(reported) == len(expected), reported
        assert all(one.startswith(start) for one, start in zip(reported, expected)), reported
