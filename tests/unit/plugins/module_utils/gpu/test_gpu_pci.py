# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What PCI numbers tell of an NVIDIA device."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu import pci
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import (
    capability_of,
    display_devices,
    generation_of,
    nvswitches,
    parse_secure_boot,
    sysfs_address,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

PRODUCTS = {
    "0x102d": "Kepler",  # Tesla K80
    "0x118f": "Kepler",  # Tesla K10
    "0x1287": "Kepler",  # GeForce GT 730
    "0x1380": "Maxwell",  # GeForce GTX 750 Ti
    "0x13f2": "Maxwell",  # Tesla M60
    "0x17fd": "Maxwell",  # Tesla M40
    "0x15f8": "Pascal",  # Tesla P100 PCIe 16GB
    "0x1b06": "Pascal",  # GeForce GTX 1080 Ti
    "0x1b38": "Pascal",  # Tesla P40
    "0x1d01": "Pascal",  # GeForce GT 1030
    "0x1db1": "Volta",  # Tesla V100 SXM2 16GB
    "0x1df6": "Volta",  # Tesla V100S
    "0x1e04": "Turing",  # GeForce RTX 2080 Ti
    "0x1eb8": "Turing",  # Tesla T4
    "0x1f82": "Turing",  # GeForce GTX 1650
    "0x2184": "Turing",  # GeForce GTX 1660
    "0x20b0": "Ampere",  # A100 SXM4 40GB
    "0x20b7": "Ampere",  # A30
    "0x2204": "Ampere",  # GeForce RTX 3090
    "0x2235": "Ampere",  # A40
    "0x2484": "Ampere",  # GeForce RTX 3070
    "0x25b6": "Ampere",  # A2
    "0x2684": "Ada",  # GeForce RTX 4090
    "0x26b5": "Ada",  # L40
    "0x27b8": "Ada",  # L4
    "0x2882": "Ada",  # GeForce RTX 4060
    "0x2330": "Hopper",  # H100 SXM5
    "0x2335": "Hopper",  # H200 SXM
    "0x233b": "Hopper",  # H200 NVL
    "0x2342": "Grace Hopper",  # GH200
    "0x2901": "Blackwell",  # B200
    "0x2941": "Blackwell",  # GB200
    "0x2b85": "Blackwell",  # GeForce RTX 5090
    "0x2bb1": "Blackwell",  # RTX PRO 6000
    "0x2e12": "Blackwell",  # GB10
    "0x2f04": "Blackwell",  # GeForce RTX 5070
    "0x3182": "Blackwell",  # B300
    "0x31c2": "Blackwell",  # GB300
    "0x3000": "Rubin",
    # both ends of a block
    "0x1d80": "Volta",
    "0x1dff": "Volta",
}


@pytest.mark.parametrize(("device_id", "name"), PRODUCTS.items())
def test_generation_of_well_known_products(device_id: str, name: str) -> None:
    generation = generation_of(device_id)
    assert generation is not None
    assert generation.name == name


@pytest.mark.parametrize(
    "device_id",
    ["0x0040", "0x06c0", "0x10de", "0x1af1", "0x22a3", "0x2f95", "0x3400", "0xffff", "", "junk", "-1", "0x2"],
)
def test_what_the_table_does_not_know_is_null(device_id: str) -> None:
    assert generation_of(device_id) is None
    assert capability_of(device_id) is None


@pytest.mark.parametrize(
    ("device_id", "flavours", "last_branch"),
    [
        ("0x102d", ("proprietary",), 470),
        ("0x13f2", ("proprietary",), 580),
        ("0x15f8", ("proprietary",), 580),
        ("0x1db1", ("proprietary",), 580),
        ("0x1eb8", ("open", "proprietary"), None),
        ("0x2330", ("open", "proprietary"), None),
        ("0x2342", ("open",), None),
        ("0x2901", ("open",), None),
    ],
)
def test_which_driver_a_generation_needs(device_id: str, flavours: tuple[str, ...], last_branch: int | None) -> None:
    generation = generation_of(device_id)
    assert generation is not None
    assert (generation.flavours, generation.last_branch) == (flavours, last_branch)


CAPABILITIES = {
    "0x118f": "3.0",  # Tesla K10
    "0x1023": "3.5",  # Tesla K40m
    "0x102d": "3.7",  # Tesla K80
    "0x1287": "3.5",  # GeForce GT 730
    "0x1380": "5.0",  # GeForce GTX 750 Ti
    "0x13bd": "5.0",  # Tesla M10
    "0x179c": "5.0",  # GeForce 940MX
    "0x13f2": "5.2",  # Tesla M60
    "0x1430": "5.2",  # Quadro M2000
    "0x17fd": "5.2",  # Tesla M40
    "0x15f8": "6.0",  # Tesla P100
    "0x1b38": "6.1",  # Tesla P40
    "0x1db1": "7.0",  # Tesla V100
    "0x1eb8": "7.5",  # Tesla T4
    "0x2184": "7.5",  # GeForce GTX 1660
    "0x20b0": "8.0",  # A100
    "0x20b7": "8.0",  # A30
    "0x2204": "8.6",  # GeForce RTX 3090
    "0x2236": "8.6",  # A10
    "0x25b6": "8.6",  # A2
    "0x2684": "8.9",  # GeForce RTX 4090
    "0x26b9": "8.9",  # L40S
    "0x27b8": "8.9",  # L4
    "0x2330": "9.0",  # H100 SXM5
    "0x2342": "9.0",  # GH200
    "0x2901": "10.0",  # B200
    "0x2941": "10.0",  # GB200
    "0x3182": "10.3",  # B300
    "0x31c2": "10.3",  # GB300
    "0x2b85": "12.0",  # GeForce RTX 5090
    "0x2bb5": "12.0",  # RTX PRO 6000 server edition
    "0x2d04": "12.0",  # GeForce RTX 5060 Ti
    "0x2f04": "12.0",  # GeForce RTX 5070
    "0x2e12": "12.1",  # GB10
}


@pytest.mark.parametrize(("device_id", "capability"), CAPABILITIES.items())
def test_capability_of_well_known_products(device_id: str, capability: str) -> None:
    assert capability_of(device_id) == capability


@pytest.mark.parametrize("device_id", ["0x29bc", "0x2b00", "0x3000", "0x3200", "0x3340"])
def test_a_capability_that_no_list_of_nvidia_has_is_not_guessed(device_id: str) -> None:
    assert generation_of(device_id) is not None
    assert capability_of(device_id) is None


def test_the_table_is_in_order_and_nothing_overlaps() -> None:
    ranges = pci._RANGES
    assert all(first <= last for first, last, dummy, dummy2 in ranges)
    assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:], strict=False))
    assert {name for dummy, dummy2, name, dummy3 in ranges} == set(pci.GENERATIONS)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(st.text(max_size=20))
def test_junk_never_raises(text: str) -> None:
    device = {"address": text, "class": text, "device": text, "driver": text, "numa_node": text, "cpus": text}
    generation_of(text)
    capability_of(text)
    sysfs_address(text)
    display_devices([device, {**device, "class": "0x030200"}])
    nvswitches([{**device, "class": "0x068000"}])


def test_bridges_are_nvswitches_and_no_gpus() -> None:
    switch = {
        "address": "0000:05:00.0",
        "class": "0x068000",
        "device": "0x22a3",
        "driver": "nvidia-nvswitch",
        "numa_node": "0",
    }
    assert display_devices([switch]) == []
    assert nvswitches([switch, {**switch, "class": "0x030200"}]) == [
        {"address": "0000:05:00.0", "device_id": "0x22a3", "driver": "nvidia-nvswitch"}
    ]


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("00000009:06:00.0", "0009:06:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
        ("3B:00", "003b:00"),
        ("", None),
        ("N/A", None),
        (":00.0", None),
    ],
)
def test_sysfs_address(bus_id: str, address: str | None) -> None:
    assert sysfs_address(bus_id) == address


@pytest.mark.parametrize(
    ("variable", "on"),
    [(b"\x06\0\0\0\x01", True), (b"\x16\0\0\0\0", False), (b"\x06\0\0\0", None), (b"", None), (None, None)],
)
def test_secure_boot(variable: bytes | None, on: bool | None) -> None:
    assert parse_secure_boot(variable) is on
