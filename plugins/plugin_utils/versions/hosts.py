# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of a host decides on versions: its GPUs' compute capabilities, and the driver that will run there.

The answer is the same before a driver is installed and after: capabilities come from PCI numbers and only where those
are not known from nvidia-smi, and the driver is the one that the plan of the role nvidia_driver ends with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils.driver.packages import AUTO_SOURCE
from ...module_utils.gpu.pci import NOT_FOR_US, capability_of
from ..nvidia_driver.auto_source import recommendation
from ..nvidia_driver.driver import INSTALL, LOAD, make_plan
from ..nvidia_driver.request import RECOMMENDED_BRANCH, Node, Request, parse_request
from .drivers import offers
from .numbers import in_order, is_capability
from .table import Table


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


def host_of(name: str, facts: Mapping[str, Any], requested: Mapping[str, Any], table: Table) -> Host:
    """Return what decides of a host. ``requested`` are its variables of the driver, without ``nvidia_driver_``."""
    request = parse_request({**requested, "offers": offers(table)})
    node = Node(facts)
    known, unknown = capabilities(node.gpu)
    source, branch = recommendation(request, node)
    dummy, usual = recommendation(replace(request, source=AUTO_SOURCE, branch=RECOMMENDED_BRANCH, min_version=""), node)
    driver = _driver(node, request, facts)
    architecture = str(node.system.get("architecture") or "")
    return Host(name, known, unknown, driver, branch, source, usual, _ended(node, driver, table), architecture)


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


def _driver(node: Node, request: Request, facts: Mapping[str, Any]) -> str:
    plan = make_plan(facts, request)
    if plan.state == INSTALL:
        return str(plan.branch or "")
    if plan.state == LOAD:
        return str(node.module.get("version") or "")
    return str(plan.version or "")


def _ended(node: Node, driver: str, table: Table) -> str:
    """Return the month since which the branch that will run has had no updates, as far as the table knows."""
    branch = driver.split(".", maxsplit=1)[0]
    rows = table.drivers_of(str(node.system.get("distribution")), str(node.system.get("release")))
    return next((row.end for row in rows if str(row.branch) == branch and table.has_ended(row)), "")
