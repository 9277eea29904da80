# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of a host decides on the versions of the training image.

The answer is the same before a driver is installed and after: capabilities come from PCI numbers and only where those
are not known from nvidia-smi, and the driver is the one that this role's plan ends with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...module_utils.driver.packages import AUTO_SOURCE
from ..versions.drivers import offers
from ..versions.hosts import Host, capabilities
from ..versions.table import Table
from .auto_source import recommendation
from .driver import INSTALL, LOAD, make_plan
from .request import RECOMMENDED_BRANCH, Node, Request, parse_request


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
