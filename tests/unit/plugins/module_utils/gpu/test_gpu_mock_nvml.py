# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``gpu_info`` finds on six kinds of host, from the answers of the real nvidia-smi over a mock NVML.

No GPU: the library stands in for the driver's, and PCI devices, kernel module and processes are written here. The
fixtures' README says how the answers were made.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu

from tests.gpu_hosts import OPEN, QUERY, FakeGpuIO

ARCHIVE = Path(__file__).parents[1] / "fixtures/gpu/mock_nvml_550.tar.xz"
GIB = 1 << 30
NUMBERS = {"b200": "0x2901", "gb200": "0x2941"}
"""PCI numbers of Blackwell (pci.ids): the mock's profiles have those of Hopper."""


@cache
def answers(kind: str) -> dict[str, str]:
    names = {QUERY: "query.csv", "-q": "q.xml", "-L": "list.txt", "topo": "topo.txt"}
    with tarfile.open(ARCHIVE, "r:xz") as tar:
        read = {key: tar.extractfile(f"./{kind}/{name}") for key, name in names.items()}
        return {key: file.read().decode() for key, file in read.items() if file}


def gathered(kind: str, **host: Any) -> dict[str, Any]:
    """Gather over PCI devices as the report names them."""
    texts = answers(kind)
    devices = []
    for gpu in ElementTree.fromstring(texts["-q"]).iter("gpu"):
        address = str(gpu.findtext("pci/pci_bus_id")).lower()
        number = NUMBERS.get(kind, f"0x{str(gpu.findtext('pci/pci_device_id'))[:4].lower()}")
        named = {"address": address[4:], "class": "0x030200", "device": number, "driver": "nvidia"}
        devices.append({**named, "numa_node": "-1", "cpus": ""})
    return gather_gpu(FakeGpuIO(devices, OPEN.format("550.163.01"), "libnvidia-ml.so.550.163.01", dict(texts), **host))


@dataclass(frozen=True)
class Kind:
    name: str
    gibibytes: int
    capability: str
    generation: str
    link: str
    fabric: str | None = None
    count: int = 8


KINDS = {
    "a100": Kind("NVIDIA A100-SXM4-40GB", 40, "8.0", "Ampere", "NV12"),
    "h100": Kind("NVIDIA H100 80GB HBM3", 80, "9.0", "Hopper", "NV18", "Completed"),
    "b200": Kind("NVIDIA B200", 192, "10.0", "Blackwell", "PIX"),
    "gb200": Kind("NVIDIA GB200", 192, "10.0", "Blackwell", "NV18", "Completed"),
    "l40s": Kind("NVIDIA L40S", 48, "8.9", "Ada", "PIX"),
    "t4": Kind("NVIDIA T4", 16, "7.5", "Turing", "PIX", count=4),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_read_whole(kind: str) -> None:
    expected, found = KINDS[kind], gathered(kind, processes=frozenset({"systemd", "nv-fabricmanage"}))
    assert found["slots"] == len(found["gpus"]) == expected.count
    for number, gpu in enumerate(found["gpus"]):
        assert (gpu["index"], gpu["name"]) == (number, expected.name)
        assert gpu["memory_bytes"] == expected.gibibytes * GIB
        assert (gpu["compute_capability"], gpu["generation"]) == (expected.capability, expected.generation)
        assert (gpu["persistence"], gpu["mig"]["instances"], gpu["fabric_state"]) == (True, [], expected.fabric)
    assert set(found["topology"]["gpus"]["0"].values()) == {expected.link}
    assert len({gpu["uuid"] for gpu in found["gpus"]}) == len({gpu["address"] for gpu in found["gpus"]})
    assert found["problems"] == []


def test_without_the_fabrics_manager_gpus_that_have_joined_are_no_problem_yet() -> None:
    found = gathered("h100")
    assert found["fabric"]["manager_running"] is False
    assert [gpu["fabric_state"] for gpu in found["gpus"]] == ["Completed"] * 8
