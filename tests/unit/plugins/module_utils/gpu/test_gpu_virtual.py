# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""vGPUs: recognised by their PCI capability without a driver, and their licence with one.

The configuration spaces are after those in the tests of NVIDIA/k8s-device-plugin (internal/vgpu), of a Quadro that is
passed through and of a T4 that is a vGPU; what nvidia-smi says is composed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.host_io import SystemGpuIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import is_vgpu
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.gpu_hosts import one

VF_RECORDS = bytes.fromhex("1b564600163436302e3136000000007234363 05f3030".replace(" ", ""))
SPECIFIC = 0x09


def config(*capabilities: tuple[int, int, int, bytes], first: int = 0x40, status: int = 0x10, size: int = 256) -> bytes:
    """A configuration space: each capability is its place, its number, the next one's place, and its content."""
    space = bytearray(size)
    space[0x06], space[0x34] = status, first
    for place, number, following, content in capabilities:
        space[place : place + 2 + len(content)] = bytes((number, following)) + content
    return bytes(space)


VGPU = config((0x40, 0x05, 0xD0, b""), (0xD0, SPECIFIC, 0, VF_RECORDS))
WHOLE = config((0x40, 0x01, 0x50, b""), (0x50, SPECIFIC, 0, b"\x14\x01\0\0"))


@pytest.mark.parametrize(
    ("space", "virtual"),
    [
        (VGPU, True),
        (WHOLE, False),
        (VGPU[:64], False),  # all that an account other than root may read
        (b"", False),
        (config((0x40, SPECIFIC, 0, VF_RECORDS), status=0), False),  # without a list of capabilities
        (config((0x40, SPECIFIC, 0, b"\x04VF")), False),  # too short for the letters
        (config((0x40, 0x05, 0x50, b""), (0x50, 0x05, 0x40, b"")), False),  # in a circle
        (config((0xFE, SPECIFIC, 0, b""), first=0xFE), False),  # beyond the end
    ],
)
def test_a_vgpu_is_recognised_by_its_vendor_specific_capability(space: bytes, *, virtual: bool) -> None:
    assert is_vgpu(space) is virtual


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(st.binary(max_size=300))
def test_any_configuration_space_is_read(space: bytes) -> None:
    assert is_vgpu(space) in (True, False)


@pytest.mark.parametrize(("space", "virtual"), [(VGPU + bytes(3840), True), (WHOLE, False), (None, False)])
def test_a_guest_is_recognised_without_a_driver(tmp_path: Path, space: bytes | None, *, virtual: bool) -> None:
    device = tmp_path / "bus/pci/devices/0000:02:01.0"
    device.mkdir(parents=True)
    for name, text in {"vendor": "0x10de", "class": "0x030000", "device": "0x26b5"}.items():
        (device / name).write_text(f"{text}\n", encoding="ascii")
    if space is not None:
        (device / "config").write_bytes(space)
    found = gather_gpu(SystemGpuIO(str(tmp_path), str(tmp_path / "proc"), str(tmp_path)))
    assert [entry["vgpu"] for entry in found["pci_devices"]] == [virtual]


def licensed(status: str, mode: str = "VGPU") -> list[str]:
    found = gather_gpu(
        one(
            f"<gpu_virtualization_mode><virtualization_mode>{mode}</virtualization_mode></gpu_virtualization_mode>"
            f"<vgpu_software_licensed_product><license_status>{status}</license_status></vgpu_software_licensed_product>"
        )
    )
    assert found["gpus"][0]["license"] == (status if mode == "VGPU" and status != "N/A" else None)
    problems: list[str] = found["problems"]
    return problems


@pytest.mark.parametrize("status", ["Unlicensed (Unrestricted)", "Unlicensed (Restricted)", "Unlicensed"])
def test_a_vgpu_without_a_licence_is_a_problem(status: str) -> None:
    assert licensed(status) == [
        f"GPU 0 is a vGPU without a valid licence (nvidia-smi says '{status}'), so it is slowed down after a while, "
        "and CUDA may call it busy or unavailable. Put the licence server's token into /etc/nvidia/ClientConfigToken "
        "(in a cloud, install the provider's own guest driver, which brings the licence), `systemctl restart "
        "nvidia-gridd`, and check `nvidia-smi -q | grep -A 2 Licensed`."
    ]


@pytest.mark.parametrize(
    ("status", "mode"),
    [
        ("Licensed (Expiry: 2026-12-24 10:17:12 GMT)", "VGPU"),
        ("N/A", "VGPU"),
        ("Unlicensed", "Pass-Through"),
        ("Unlicensed", "None"),
    ],
)
def test_a_licence_that_is_there_or_is_not_needed_is_none(status: str, mode: str) -> None:
    assert licensed(status, mode) == []


@pytest.mark.parametrize(
    ("action", "remedy"),
    [
        ("System Reboot", "Reboot this host."),
        ("Bus Reset", "Stop what runs on it and reboot this host, which resets the bus."),
        (
            "Recover IMEX Domain",
            "Stop what uses the IMEX domain, restart nvidia-imex on all of its nodes (`systemctl restart nvidia-imex`) "
            "and check `nvidia-imex-ctl -N`.",
        ),
    ],
)
def test_what_driver_615_recommends_is_known(action: str, remedy: str) -> None:
    (problem,) = gather_gpu(one(f"<gpu_recovery_action>{action}</gpu_recovery_action>"))["problems"]
    assert problem == f"GPU 0 wants to be recovered (nvidia-smi says '{action}'). {remedy}"


def test_memory_banks_that_wait_for_a_reset_are_known() -> None:
    pending = "<remapped_banks><bank_remapper_pending>Yes</bank_remapper_pending></remapped_banks>"
    (problem,) = gather_gpu(one(pending))["problems"]
    assert problem.startswith("GPU 0 has failing memory that goes out of use at its next reset.")
