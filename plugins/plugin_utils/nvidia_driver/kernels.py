# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which drivers build on a kernel, and whether the kernel that boots next has the driver's module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.driver.packages import SIGNED_MODULES
from ...module_utils.driver.preview import numeric

_PLAIN = re.compile(r"[0-9A-Za-z.+~_-]{1,200}")
"""What a host calls a kernel stands in commands that somebody pastes."""


@dataclass(frozen=True)
class Build:
    """The oldest driver of a branch that builds on a release of Linux and later ones, empty where none does."""

    linux: str
    branch: int
    driver: str


def parse_builds(given: Any) -> tuple[Build, ...]:
    """Read the rows of the table of versions; what is not of their form is left out, and then nothing is refused."""
    rows = [row for row in given or () if isinstance(row, Mapping) and isinstance(row.get("branch"), int)]
    return tuple(Build(str(row.get("linux")), row["branch"], str(row.get("driver") or "")) for row in rows)


def oldest_that_builds(builds: Iterable[Build], kernel: str, branch: int) -> str | None:
    """Return the oldest driver of a branch that builds on a kernel, empty where none does, None where any may."""
    rows = [row for row in builds if row.branch == branch and numeric(row.linux) <= numeric(kernel)[:2]]
    return max(rows, key=lambda row: numeric(row.linux)).driver if rows else None


def that_build(builds: Iterable[Build], kernel: str) -> list[str]:
    """Return the branches of which a driver builds on a kernel, each with the oldest one."""
    known = list(builds)
    branches = sorted({row.branch for row in known})
    found = {branch: oldest_that_builds(known, kernel, branch) for branch in branches}
    return [f"{branch} from {driver} on" for branch, driver in found.items() if driver]


def without_module(found: Any, version: str, package: str) -> tuple[str, str] | None:
    """Return why the kernel that boots next would leave the host without this driver, and the remedy; None: it has it.

    ``found`` is what ``node_facts`` reports as ``next_boot``; ``package`` brings that kernel's signed module where the
    running one has such a module, else it is empty.
    """
    if not isinstance(found, Mapping) or not found.get("kernel") or not version:
        return None
    kernel, module = str(found["kernel"]), found.get("module")
    has = str(module.get("version")) if isinstance(module, Mapping) else ""
    if has == version:
        return None
    if not all(_PLAIN.fullmatch(word) for word in (kernel, version, has or "none", package or "none")):
        return "the kernel that boots next, or its nvidia module, has an unexpected name", "check /boot on this host"
    there = f"has the nvidia module of driver {has}, not of {version}" if has else "has no nvidia module"
    way = (
        f"apt-get install {package}; if apt says that it needs another version of the driver, run with "
        "nvidia_driver_hold: false and upgrade the driver"
        if package
        else f"apt-get install linux-headers-{kernel}, then dkms autoinstall -k {kernel}"
    )
    return (
        f"kernel {kernel}, which boots next, {there}, so after a reboot no program could use the GPUs",
        f"{way}; or remove that kernel (apt-get purge linux-image-{kernel})",
    )


def signed_package(packages: Iterable[str], running: str, other: str) -> str:
    """Return the package that brings another kernel's signed module, empty where the running kernel has no such one."""
    own = [name for name in packages if name.startswith(SIGNED_MODULES) and name.endswith(f"-{running}")]
    return min(own).removesuffix(running) + other if own and running else ""
