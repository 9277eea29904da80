# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A DeepSpeed hostfile: read as DeepSpeed reads it, written as every launcher reads it alike.

The grammar read is that of ``deepspeed.launcher.runner._parse_hostfile`` (DeepSpeed 0.19.8). What is written is
narrower: ``ds_ssh`` takes the first word of every line, comments included, for a host; ``@``, ``:`` and ``,`` in a name
break ``--include`` and pdsh.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import Problem, shown

MAX_SLOTS = 1024
"""Slots of one host. No host has more accelerators: a greater number is a slip of the finger."""
MAX_NAME = 253
"""Length of a host name (RFC 1035: 255 bytes on the wire)."""

_LINE = re.compile(r"^(\S+)\s+slots=(\d+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WHOLE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Host:
    """One line of a hostfile: ``slots`` processes are started on ``name``."""

    name: str
    slots: int


class HostfileError(Exception):
    """A hostfile that DeepSpeed would refuse."""


class HostsError(Exception):
    """Hosts that must not be written, with every problem found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def parse(text: str) -> list[Host]:
    """Read a hostfile as DeepSpeed does; raise ``HostfileError`` where DeepSpeed raises ``ValueError``.

    Lenient where DeepSpeed is: words after the slots are ignored, ``slots=4abc`` is 4, ``slots=0`` is kept, a name may
    hold anything but white space.
    """
    hosts: dict[str, int] = {}
    # DeepSpeed reads in text mode, where these three end a line; str.splitlines() knows further ones
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.search(line)
        if match is None:
            raise HostfileError(f"line {number} is not 'name slots=N': {line[:100]!r}")
        name = match.group(1)
        if name in hosts:
            raise HostfileError(f"line {number} names the host {name[:100]!r} a second time")
        try:
            hosts[name] = int(match.group(2))
        except ValueError as error:  # Python refuses to convert thousands of digits
            raise HostfileError(f"line {number} has a number of slots that cannot be read") from error
    if not hosts:
        raise HostfileError("it names no host")
    return [Host(name, slots) for name, slots in hosts.items()]


def check(entries: object) -> list[Host]:
    """Turn ``[{name: …, slots: …}, …]`` into hosts in the same order, which is the order of ranks.

    Raises ``HostsError`` with all problems: no host, a name or number of slots that cannot be written, a host twice
    (names are compared without letter case, as DNS does).
    """
    if not isinstance(entries, list) or not entries:
        raise HostsError([Problem("hosts", "must be a list of at least one {name, slots}")])
    problems: list[Problem] = []
    hosts: list[Host] = []
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        where = f"hosts[{index}]"
        if not isinstance(entry, dict):
            problems.append(Problem(where, "must be a mapping with name and slots"))
            continue
        unknown = sorted(str(key) for key in set(entry) - {"name", "slots"})
        if unknown:
            problems.append(Problem(where, f"unknown key {shown(unknown[0])}; only name and slots are written"))
        name, slots = entry.get("name"), _slots(entry.get("slots"))
        fault = _name_fault(name)
        if not fault:
            before = first.setdefault(str(name).lower(), index)
            if before != index:
                fault = f"{name!r} is already hosts[{before}] (letter case does not count); name each host once"
        if fault:
            problems.append(Problem(f"{where}.name", fault))
        if slots is None:
            text = f"must be a whole number from 1 to {MAX_SLOTS}, the processes on that host, one a GPU"
            given = shown(entry.get("slots"))
            problems.append(Problem(f"{where}.slots", f"{text}, not {given}; leave out a host that takes no part"))
        elif not fault:
            hosts.append(Host(str(name), slots))
    if problems:
        raise HostsError(problems)
    return hosts


def render(hosts: Iterable[Host]) -> str:
    """The hostfile's text: one ``name slots=N`` a line and nothing else."""
    return "".join(f"{host.name} slots={host.slots}\n" for host in hosts)


def world_size(hosts: Iterable[Host]) -> int:
    """Number of ranks a job over all slots has."""
    return sum(host.slots for host in hosts)


def _name_fault(name: object) -> str:
    if isinstance(name, str) and len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return ""
    if name is None or name == "":
        return "is missing; give the host's name"
    text = shown(name)
    if not isinstance(name, str):
        return f"must be a name, not {text}"
    reason = "is not a host name: letters, digits, '.', '-' and '_', beginning with a letter or digit"
    if len(name) > MAX_NAME:
        reason = f"has {len(name)} characters; a host name has at most {MAX_NAME}"
    elif name.count(":") > 1:
        reason = "looks like an IPv6 address, which DeepSpeed cannot read; give a name that resolves to it"
    elif "@" in name:
        reason = "holds a user; put the user into the ssh configuration and give the host's name alone"
    return f"{text} {reason}"


def _slots(value: object) -> int | None:
    """Slots, also as text or as ``4.0`` (a division in a template gives that); no booleans."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 1 <= value <= MAX_SLOTS else None
