# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the controller and the folder must be before any server is contacted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.problems import Problem
from ..preflight.controller import Controller, check_ansible_version

COLLECTION = "swarmspeed.cluster"
MARK = f"Written by {COLLECTION}.init"
"""What the first line of an inventory begins with that init has written; its release follows."""


def controller_problems(system: str, versions: Controller, installed: Sequence[str]) -> Iterator[Problem]:
    """Yield why this controller cannot be used. ``installed`` are the places of this collection, the used one first."""
    if system != "Linux":
        name = {"Darwin": "macOS"}.get(system, system)
        yield Problem(
            "the controller",
            f"runs {name}, on which this collection is untested",
            "run it on Linux: on one of the servers, in a virtual machine, or in WSL",
        )
    yield from (problem for problem in check_ansible_version(versions) if problem.fatal)
    if len(installed) > 1:
        used, *others = installed
        yield Problem(
            COLLECTION,
            f"is installed twice: {used} is used, and {', '.join(others)} would be in another folder",
            "remove one of them",
        )


def folder_problems(folder: str, inventory: str | None, others: Sequence[str]) -> Iterator[Problem]:
    """Yield why init cannot use a folder. ``inventory`` is its hosts.yml, ``others`` the other inventories in it."""
    if re.search(r"""[\s%"'`$\\{}#]""", folder):
        yield Problem(
            "init_folder",
            f"is {folder}, which contains a blank or another character that ssh does not accept in a path",
            "choose a folder whose path has only letters, digits and the characters . _ - /",
        )
    foreign = [] if inventory is None or release_of(inventory) else ["hosts.yml"]
    if foreign or (inventory is None and others):
        yield Problem(
            f"{folder}/{[*foreign, *others][0]}",
            "is an inventory that init did not write, of an older release or by hand",
            "keep using it as it is (docs/upgrades.md), or give another init_folder and copy over what you need",
        )


def release_of(inventory: str) -> str:
    """Return the release whose init wrote an inventory; empty where none did."""
    found = re.match(rf"# {re.escape(MARK)} ([0-9][0-9A-Za-z.+-]*)", inventory)
    return found[1].rstrip(".") if found else ""
