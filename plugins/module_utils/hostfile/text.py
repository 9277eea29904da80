# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A DeepSpeed hostfile: read as DeepSpeed reads it, written as every launcher reads it alike.

The grammar read is that of ``deepspeed.launcher.runner._parse_hostfile`` (DeepSpeed 0.19.8). What is written is
narrower: ``ds_ssh`` takes the first word of every line, comments included, for a host; ``@``, ``:`` and ``,`` in a name
break ``--include`` and pdsh.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..common.problems import Problem, shown, summary

MAX_SLOTS = 1024
"""Slots of one host. No host has more accelerators: a greater number is a typing error."""
MAX_NAME = 253
"""Length of a host name (RFC 1035: 255 bytes on the wire)."""
MAX_SHOWN = 20
"""Problems, or names, that one message spells out. A wrong template makes the same mistake on thousands of hosts."""

_LINE = re.compile(r"^(\S+)\s+slots=(\d+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WHOLE = re.compile(r"[0-9]{1,9}")
_FORMS = "a list of {name, slots} or a mapping of name to slots, with at least one host"


@dataclass(frozen=True)
class Host:
    """One line of a hostfile: ``slots`` processes are started on ``name``."""

    name: str
    slots: int


class HostfileError(Exception):
    """A hostfile that DeepSpeed would refuse."""


class Checked(NamedTuple):
    """Hosts that may be written, and the names of those that were given without a slot."""

    hosts: list[Host]
    left_out: list[str]


class HostsError(Exception):
    """Hosts that must not be written, with every problem found. Its text is short however many there are."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(refusal("Hosts that cannot be used", problems))
        self.problems = list(problems)


def refusal(subject: str, problems: Sequence[Problem]) -> str:
    """One message with the first ``MAX_SHOWN`` problems and the number of the others."""
    more = len(problems) - MAX_SHOWN
    if more <= 0:
        return summary(subject, problems)
    lines = map(str, problems[:MAX_SHOWN])
    return "\n- ".join([f"{subject}: {len(problems)} problems", *lines, f"and {more} more"])


def names_shown(names: Sequence[str]) -> str:
    """Names for a message: the first ``MAX_SHOWN`` and the number of the others."""
    more = len(names) - MAX_SHOWN
    return ", ".join(names[:MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")


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
            raise HostfileError(f"line {number} has an invalid number of slots") from error
    if not hosts:
        raise HostfileError("it names no host")
    return [Host(name, slots) for name, slots in hosts.items()]


def check(entries: object) -> Checked:
    """Turn ``[{name: …, slots: …}, …]`` or ``{name: slots, …}`` into hosts in that order, which is the order of ranks.

    A host with 0 slots is left out. Raises ``HostsError`` with all problems: another type, no host with a slot, a name
    or number of slots that cannot be written, a host twice (names are compared without letter case, as DNS does).
    """
    if not isinstance(entries, (list, dict)):
        raise HostsError([Problem("hosts", f"must be {_FORMS}, not {shown(entries)}")])
    if not entries:
        raise HostsError([Problem("hosts", f"must be {_FORMS}; it is empty")])
    problems: list[Problem] = []
    found = Checked([], [])
    first: dict[str, str] = {}
    for where, entry in _entries(entries):
        host = _host(where, entry, isinstance(entries, list), first, problems)
        if host and host.slots:
            found.hosts.append(host)
        elif host:
            found.left_out.append(host.name)
    if not problems and not found.hosts:
        problems = [Problem("hosts", "every host has 0 slots, so no process would run; give at least one host a slot")]
    if problems:
        raise HostsError(problems)
    return found


def render(hosts: Iterable[Host]) -> str:
    """The hostfile's text: one ``name slots=N`` a line and nothing else."""
    return "".join(f"{host.name} slots={host.slots}\n" for host in hosts)


def name_fault(name: object) -> str:
    """What is wrong with a host's name, for a message; empty where it can be written."""
    if isinstance(name, str) and len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return ""
    if name is None or name == "":
        return "is missing; give the host's name"
    text = shown(name)
    if not isinstance(name, str):
        number = isinstance(name, (int, float)) and not isinstance(name, bool)
        return f"must be a name, not {text}" + ("; put it into quotes if it is one" if number else "")
    reason = "is not a host name: letters, digits, '.', '-' and '_', beginning with a letter or digit"
    if len(name) > MAX_NAME:
        reason = f"has {len(name)} characters; a host name has at most {MAX_NAME}"
    elif name.count(":") > 1:
        reason = "looks like an IPv6 address, which DeepSpeed cannot read; give a name that resolves to it"
    elif "@" in name:
        reason = "holds a user; put the user into the ssh configuration and give the host's name alone"
    return f"{text} {reason}"


def whole_slots(value: object) -> int | None:
    """Slots from 0 to ``MAX_SLOTS``, also as text or as ``4.0`` (a division in a template gives that); no booleans."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_SLOTS else None


def slots_fault(value: object) -> str:
    """What is wrong with slots that ``whole_slots`` does not take, for a message."""
    return (
        f"must be a whole number from 1 to {MAX_SLOTS}, the processes on that host, one a GPU, or 0 to leave the host"
        f" out, not {shown(value)}"
    )


def meant(name: object, names: Collection[str]) -> str:
    """``, perhaps 'x' is meant`` with the nearest of the names, or nothing where none is near."""
    if not isinstance(name, str) or len(name) > MAX_NAME:
        return ""
    same = (known for known in names if known.lower() == name.strip().lower())
    near = next(same, None) or next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.75)), None)
    return f", perhaps {near!r} is meant" if near else ""


def _entries(entries: list[object] | dict[object, object]) -> Iterator[tuple[str, object]]:
    """Where each entry stands, and the entry as ``{name, slots}`` whatever the form."""
    if isinstance(entries, dict):
        for name, slots in entries.items():
            yield f"hosts[{shown(name)}]", {"name": name, "slots": slots}
    else:
        for index, entry in enumerate(entries):
            yield f"hosts[{index}]", entry


def _host(where: str, entry: object, listed: bool, first: dict[str, str], problems: list[Problem]) -> Host | None:
    """One entry as a host, or its problems added to the others. ``first`` says where each name was seen first."""
    if not isinstance(entry, dict):
        problems.append(Problem(where, f"must be a mapping with name and slots, not {shown(entry)}"))
        return None
    unknown = [key for key in entry if key not in ("name", "slots")]
    if unknown:
        problems.append(Problem(where, f"unknown key {shown(unknown[0])}; only name and slots are written"))
    name, slots = entry.get("name"), whole_slots(entry.get("slots"))
    fault = name_fault(name)
    if not fault:
        before = first.setdefault(str(name).lower(), where)
        if before != where:
            fault = f"{name!r} is already {before} (letter case does not count); name each host once"
    if fault:
        problems.append(Problem(f"{where}.name" if listed else where, fault))
    if slots is None:
        problems.append(Problem(f"{where}.slots" if listed else where, slots_fault(entry.get("slots"))))
    return None if fault or slots is None else Host(str(name), slots)
