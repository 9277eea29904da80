# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How long GPUs get to join an NVLink fabric, and what is said of those that do not: hosts from composed texts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import READY_SECONDS, gather_gpu
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.host_io import SystemGpuIO

from tests.gpu_hosts import H100, NVSWITCH, OPEN, UUID_0, FakeGpuIO, fabric, gpu_xml, report

MANAGER = frozenset({"nv-fabricmanage"})
B200 = {**H100, "device": "0x2901"}


class Joining(FakeGpuIO):
    """A host whose GPU reads one state of the fabric after the other."""

    def __init__(self, states: list[str], **changes: Any) -> None:
        host = fabric("Completed", **changes)
        super().__init__(host._devices, host._driver, host._library, host._smi, processes=host._processes)
        self._states = states

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        if arguments[0] != "-q":
            return super().nvidia_smi(*arguments)
        self.calls.append(arguments)
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        inside = f"<fabric><state>{state}</state><status>Success</status></fabric>"
        return CommandResult(0, report(gpu_xml(UUID_0, "0000:3b:00.0", inside)))


def waited(io: FakeGpuIO) -> list[str]:
    return [call[0] for call in io.calls if call[0].startswith("pause") or call[0] in ("held open", "let go")]


def test_a_gpu_that_joins_the_fabric_meanwhile_is_no_fault() -> None:
    io = Joining(["Not Started", "In Progress", "Completed"])
    found = gather_gpu(io)
    assert (found["fabric"]["state"], found["problems"]) == ("Completed", [])
    # The devices stay open in between: else each reading would have the GPU ask for its place again.
    assert waited(io) == ["held open", "pause 5", "pause 5", "let go"]


@pytest.mark.parametrize(("seconds", "readings"), [(0, 0), (READY_SECONDS, 3), (120, 24)])
def test_a_gpu_that_never_joins_it_is_waited_for_so_long_and_no_longer(seconds: int, readings: int) -> None:
    io = Joining(["In Progress"])
    (problem,) = gather_gpu(io, seconds)["problems"]
    assert waited(io).count("pause 5") == readings
    assert problem == (
        "GPU 0 ('In Progress'): not yet part of the NVLink fabric although the fabric manager runs, so CUDA fails with "
        "error 802 (system not yet initialized). Check `journalctl -u nvidia-fabricmanager` and `dmesg | grep -e Xid "
        "-e SXid`, then `systemctl restart nvidia-fabricmanager`; if that does not help, reboot this host."
    )


@pytest.mark.parametrize("processes", [frozenset({"systemd"}), None])
def test_without_a_fabric_manager_nothing_is_waited_for(processes: frozenset[str] | None) -> None:
    io = Joining(["In Progress"], processes=processes)
    (problem,) = gather_gpu(io, 120)["problems"]
    assert waited(io) == [] and "start it (`systemctl enable --now nvidia-fabricmanager`)" in problem


def test_a_gpu_that_has_joined_it_costs_no_second_reading() -> None:
    io = Joining(["Completed"])
    gather_gpu(io, 120)
    assert waited(io) == [] and [call[0] for call in io.calls].count("-q") == 1


def test_from_b200_on_the_remedy_names_what_the_fabric_manager_needs() -> None:
    needs = (
        "; on HGX B200 and later it starts only with NVIDIA's packages nvlsm and infiniband-diags (`apt-get install "
        "nvlsm infiniband-diags`) and the kernel module ib_umad (`modprobe ib_umad`, and `echo ib_umad "
        ">/etc/modules-load.d/ib_umad.conf` for the next boot); in GB200 and GB300 racks"
    )
    runs = " On HGX B200 and later nvlsm must run beside it: `pgrep -a nvlsm`, `lsmod | grep ib_umad`."
    for devices, named in (([B200], True), ([NVSWITCH, H100], False)):
        io = fabric("In Progress", devices=devices, processes=frozenset(), driver=OPEN.format("550.163.01"))
        (problem,) = gather_gpu(io)["problems"]
        assert (needs in problem) is named, devices
        io = fabric("In Progress", devices=devices, driver=OPEN.format("550.163.01"))
        (problem,) = gather_gpu(io, 0)["problems"]
        assert problem.endswith(runs) is named, devices


def test_the_devices_of_gpus_are_kept_open_and_closed_again(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    (tmp_path / "dev/nvidia1").unlink()
    (tmp_path / "dev/nvidia1").symlink_to("gone")  # one that cannot be opened is no reason to stop

    def opened() -> list[str]:
        paths = [os.path.realpath(number) for number in Path("/proc/self/fd").iterdir()]
        return [path for path in paths if path.startswith(f"{tmp_path}/dev")]

    with SystemGpuIO(root=str(tmp_path)).held_open():
        assert opened() == [f"{tmp_path}/dev/nvidia0"]
    assert opened() == []
