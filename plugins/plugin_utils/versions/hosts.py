# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of a host decides on versions: its GPUs' compute capabilities, and the driver that will run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.gpu.pci import NOT_FOR_US, capability_of
from .numbers import in_order, is_capability


@dataclass(frozen=True)
class Host:
    """``driver`` is the version or branch that will run, empty where that is not known; ``unknown`` names GPUs.

    ``branch`` and ``source`` are what the role would install on request; ``usual`` is the branch that it would
    take unasked.
    """

    name: str
    capabilities: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    driver: str = ""
    branch: int | None = None
    source: str = ""
    usual: int | None = None
    ended: str = ""
    architecture: str = ""

    @property
    def is_arm(self) -> bool:
        return self.architecture == "aarch64"


def capabilities(gpu: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the compute capabilities of a host's GPUs, and those GPUs of which none is known.

    A GPU that is divided by MIG has that of the whole. One that a virtual machine holds does not count.
    """
    devices = [device for device in gpu.get("pci_devices") or [] if device.get("driver") not in NOT_FOR_US]
    answers = {str(entry.get("address")): entry.get("compute_capability") for entry in gpu.get("gpus") or []}
    known, unknown = [], []
    for device in devices:
        address, number = str(device.get("address")), str(device.get("device_id"))
        found = capability_of(number) or answers.get(address)
        if found and is_capability(str(found)):
            known.append(str(found))
        else:
            unknown.append(f"{number} at {address}")
    return in_order(known), tuple(unknown)
