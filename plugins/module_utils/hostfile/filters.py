# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which hosts and slots of a hostfile one launch uses: DeepSpeed's ``--include`` and ``--exclude``, made explicit.

The grammar is that of ``deepspeed.launcher.runner`` (DeepSpeed 0.19.8): ``NAME[:SLOT[,SLOT…]][@…]``. Releases 0.15.2 to
0.19.6 resolve a bare name in ``--include`` to no slots at all, and take slots that a host does not have. So the choice
is resolved here, and handed on as text that names every slot, which all releases read alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..common.problems import Problem, shown
from .text import Checked, Host, HostsError, check, meant

_SLOT = re.compile(r"[0-9]{1,9}")
_RANGE = re.compile(r"[0-9]+-[0-9]+")
_HINTS = 3
"""Unknown names for which the nearest is searched, which takes a tenth of a second among 10,000."""


@dataclass(frozen=True)
class Chosen:
    """A host that takes part in a launch, with the numbers of its slots in order."""

    name: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The hosts of the hostfile, those left out of it for want of slots, and what one launch uses, rank 0 first.

    ``include`` is the text for ``deepspeed --include``; empty where the launch uses everything and needs none.
    """

    hosts: list[Host]
    left_out: list[str]
    chosen: list[Chosen]
    include: str

    @property
    def world_size(self) -> int:
        """Number of ranks of the launch."""
        return sum(len(host.slots) for host in self.chosen)

    @property
    def first_host(self) -> str:
        """Name of the host of rank 0."""
        return self.chosen[0].name


def plan(entries: object, include: object = None, exclude: object = None, first_host: object = None) -> Plan:
    """Check hosts (see ``check``), choose among them, and see that rank 0 is where it must be.

    ``None`` and empty text mean: no filter, no choice of rank 0. Raises ``HostsError`` with all problems of all four.
    What a filter or ``first_host`` says about hosts is checked only where the hosts themselves are in order.
    """
    problems: list[Problem] = []
    checked = None
    try:
        checked = check(entries)
    except HostsError as error:
        problems += error.problems
    given = [(key, value) for key, value in (("include", include), ("exclude", exclude)) if value not in (None, "")]
    if len(given) > 1:
        problems.append(Problem("exclude", "cannot be combined with include, as in DeepSpeed; give one of the two"))
    sound = True
    chosen = _whole(checked.hosts) if checked else []
    for key, value in given:
        requested, faults = parse_filter(key, value)
        if checked:
            faults += _strangers(key, requested, checked)
        if checked and not faults:
            chosen = _choose(key, requested, checked.hosts)
            if not chosen:
                faults = [Problem(key, "leaves no slot on any host, so no process would run; leave some in")]
        problems += faults
        sound = sound and not faults
    if checked and first_host not in (None, ""):
        problems += _rank0_problems(first_host, checked, chosen if sound and len(given) < 2 else None)
    if problems or not checked:
        raise HostsError(problems)
    everything = [len(host.slots) for host in chosen] == [host.slots for host in checked.hosts]
    return Plan(checked.hosts, checked.left_out, chosen, "" if everything else include_text(chosen))


def parse_filter(key: str, value: object) -> tuple[dict[str, set[int]], list[Problem]]:
    """Read a filter: the slots that it names of each host, none for the whole host, and what is wrong with it."""
    if not isinstance(value, str):
        text = f"must be text such as gpu1:0,1@gpu2, put into quotes, not {shown(value)}"
        return {}, [Problem(key, text)]
    requested: dict[str, set[int]] = {}
    whole: set[str] = set()
    # A mapping, because the same mistake many times over is one problem.
    faults: dict[str, None] = {}
    for spec in value.split("@"):
        name, colon, slots = spec.partition(":")
        if not spec:
            faults["names no host at one place; '@' stands only between hosts, as in gpu1:0,1@gpu2"] = None
        elif not name:
            faults[f"names no host before ':' in {shown(spec)}; write it as in gpu1:0,1@gpu2"] = None
        elif ":" in slots:
            faults[
                f"{shown(spec)} has more than one ':'; it stands only before slots, '@' stands between hosts, as in"
                " gpu1:0,1@gpu2, and an IPv6 address cannot be named"
            ] = None
        elif not colon:
            whole.add(name)
            requested.setdefault(name, set())
        else:
            for slot in slots.split(","):
                if _SLOT.fullmatch(slot):
                    requested.setdefault(name, set()).add(int(slot))
                else:
                    faults[_slot_fault(spec, slot)] = None
    # DeepSpeed would take the slots alone: with --exclude, host and all, the opposite of what stands there.
    for name in sorted(whole):
        if requested[name]:
            faults[f"names {shown(name)} once as a whole and once by slots; keep the one that is meant"] = None
    return requested, [Problem(key, fault) for fault in faults]


def include_text(chosen: Sequence[Chosen]) -> str:
    """The text for ``deepspeed --include`` that every release resolves to just these slots."""
    return "@".join(f"{host.name}:{','.join(map(str, host.slots))}" for host in chosen)


def _slot_fault(spec: str, slot: str) -> str:
    where = f"in {shown(spec)}"
    if not slot:
        return f"a slot number is missing {where}; write slots as in gpu1:0,1, or the name alone for the whole host"
    if _RANGE.fullmatch(slot):
        return (
            f"{shown(slot)} {where} is a range, which DeepSpeed does not support; name every slot, as in gpu1:0,1,2,3"
        )
    return f"{shown(slot)} {where} is not a slot number; slots are counted from 0, with ',' between, as in gpu1:0,1"


def _strangers(key: str, requested: dict[str, set[int]], checked: Checked) -> list[Problem]:
    """Hosts that are not there, and slots that a host does not have."""
    slots = {host.name: host.slots for host in checked.hosts}
    left_out = set(checked.left_out)
    problems: list[Problem] = []
    unknown = 0
    for name, numbers in requested.items():
        if name in left_out:
            problems.append(Problem(key, f"{shown(name)} has 0 slots, so it takes no part; do not name it here"))
        elif name not in slots:
            unknown += 1
            hint = meant(name, slots) if unknown <= _HINTS else ""
            if not hint and re.search(r"[,;\s]", name):
                hint = "; '@' stands between hosts, as in gpu1:0,1@gpu2, without spaces"
            problems.append(Problem(key, f"{shown(name)} is not one of the hosts{hint}"))
        else:
            absent = sorted(number for number in numbers if number >= slots[name])
            if absent:
                has = "slot 0 alone" if slots[name] == 1 else f"slots 0 to {slots[name] - 1}"
                problems.append(Problem(key, f"{name!r} has no slot {', '.join(map(str, absent[:10]))}: it has {has}"))
    return problems


def _whole(hosts: Sequence[Host]) -> list[Chosen]:
    return [Chosen(host.name, tuple(range(host.slots))) for host in hosts]


def _choose(key: str, requested: dict[str, set[int]], hosts: Sequence[Host]) -> list[Chosen]:
    """What is left, in the hostfile's order, without hosts of which nothing is left."""
    chosen: list[Chosen] = []
    for host in hosts:
        every = range(host.slots)
        named = requested.get(host.name)
        if named is None:
            slots = () if key == "include" else tuple(every)
        elif key == "include":
            slots = tuple(sorted(named or every))
        else:
            slots = tuple(number for number in every if number not in (named or every))
        if slots:
            chosen.append(Chosen(host.name, slots))
    return chosen


def _rank0_problems(wanted: object, checked: Checked, chosen: Sequence[Chosen] | None) -> list[Problem]:
    """Why ``wanted`` would not hold rank 0; without ``chosen``, as a filter is at fault, only if it is not there."""
    if not isinstance(wanted, str):
        return [Problem("first_host", f"must be the name of a host, put into quotes, not {shown(wanted)}")]
    name = shown(wanted)
    if wanted in checked.left_out:
        fault, way_out = "has 0 slots", f"give {name} a slot"
    elif all(host.name != wanted for host in checked.hosts):
        fault = f"is not one of the hosts{meant(wanted, [host.name for host in checked.hosts])}"
        way_out = f"put {name} first in hosts"
    elif not chosen or chosen[0].name == wanted:
        return []
    elif all(host.name != wanted for host in chosen):
        fault, way_out = "is filtered out", f"leave a slot of {name} in"
    else:
        fault, way_out = "does not come first among the hosts that take part", f"put {name} first in hosts"
    if chosen:
        rank0 = repr(chosen[0].name)
        fault += f"; rank 0 would be on {rank0}: name {rank0}, whose address is then the --master_addr, or {way_out}"
    return [Problem("first_host", f"{name} {fault}")]
