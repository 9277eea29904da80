# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How Ansible reaches the hosts: no two are one machine, and no variable of a connection is misspelt."""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
from collections.abc import Iterator
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping
from .inventory import Inventory

_HOST = ("ansible_host", "ansible_ssh_host")
_PORT = ("ansible_port", "ansible_ssh_port")
_WAY = ("ansible_ssh_common_args", "ansible_ssh_args")
"""Options of ssh, such as a jump host: the same address behind another one is another machine."""
OF_CONNECTIONS = (*_HOST, *_PORT, *_WAY, "ansible_connection", "ansible_become_method")
"""The variables that these checks read."""
SSH = ("", "ssh", "smart", "paramiko", "paramiko_ssh")
CLOSE = 0.75
"""``difflib`` ratio from which a name after ``ansible_`` is a misspelling: one letter of four. ``user_id``, a fact, is
less like ``user``."""
_PREFIX = "ansible_"


def check_connections(inventory: Inventory) -> Iterator[Problem]:
    """Each host of the cluster is a machine of its own, and Ansible knows the variables that say how it is reached."""
    places: dict[tuple[str, ...], list[str]] = {}
    for host in inventory.members("cluster"):
        place = _place(host, mapping(inventory.hosts.get(host)))
        if place:
            places.setdefault(place, []).append(host)
    for (address, port, *_way), hosts in places.items():
        if len(hosts) > 1:
            yield Problem(
                ", ".join(hosts),
                f"are one machine: each has the address {address}, port {port}",
                "give each its own ansible_host, or keep one of them; if something else tells them apart, add "
                "connections to preflight_skip",
            )
    yield from _misspelt(inventory)


def _place(host: str, variables: Any) -> tuple[str, ...]:
    """Return what distinguishes a machine that is reached by ssh; nothing for another connection."""
    if str(variables.get("ansible_connection") or "").removeprefix("ansible.builtin.") not in SSH:
        return ()
    address = str(next((variables[name] for name in _HOST if variables.get(name)), host)).strip().lower()
    with contextlib.suppress(ValueError):  # of a name
        address = str(ipaddress.ip_address(address))
    port = str(next((variables[name] for name in _PORT if variables.get(name)), 22)).strip()
    return (address, port, *(str(variables.get(name) or "") for name in _WAY))


def _misspelt(inventory: Inventory) -> Iterator[Problem]:
    known = sorted(name.removeprefix(_PREFIX) for name in inventory.connections)
    users: dict[str, list[str]] = {}
    for host in inventory.members("cluster"):
        own = set(inventory.from_ansible.get(host, ()))
        for name in inventory.names.get(host, ()):
            if str(name).startswith(_PREFIX) and name not in inventory.connections and name not in own:
                users.setdefault(str(name), []).append(host)
    for name, hosts in users.items():
        near = difflib.get_close_matches(name.removeprefix(_PREFIX), known, n=1, cutoff=CLOSE)
        if near:
            yield Problem(
                name,
                f"is not a variable of Ansible, but looks like one{inventory.where(hosts)}",
                f"did you mean {_PREFIX}{near[0]}? Rename it; if it is another role's, add connections to "
                "preflight_skip",
            )
