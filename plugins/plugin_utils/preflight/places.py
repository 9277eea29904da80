# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the folders that variables name can be used, before any connection. The plan resolves links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core.kinds import KINDS
from ..core.problems import Problem
from ..plan.places import NAMED, READ, Trouble, overlaps, wrong_places
from .inventory import Inventory


def check_system_folders(inventory: Inventory) -> Iterator[Problem]:
    """No folder is the operating system's, which would be filled, given another mode, and emptied."""
    yield from _of_hosts(inventory, wrong_places)


def check_overlaps(inventory: Inventory) -> Iterator[Problem]:
    """Containers can write nothing that root on the hosts reads or writes."""
    yield from _of_hosts(inventory, overlaps)


def _of_hosts(inventory: Inventory, judge: Callable[[Mapping[str, Any]], Iterator[Trouble]]) -> Iterator[Problem]:
    by_name = {name: inventory.values(name) for name in READ}
    for name in NAMED:  # what is not a folder at all is reported by the check of values
        folders = by_name[name].items()
        by_name[name] = {host: path for host, path in folders if KINDS["absolute_folder"].accepts(path)}
    hosts: dict[Trouble, list[str]] = {}
    for host in inventory.members("cluster"):
        for trouble in judge({name: values[host] for name, values in by_name.items() if host in values}):
            hosts.setdefault(trouble, []).append(host)
    for trouble, concerned in hosts.items():
        yield Problem(trouble.subject, trouble.text + inventory.where(concerned), trouble.remedy)
