# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Entries of a hostfile from inventory hosts: the name that each is written with, and how many slots it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...module_utils.common.problems import Problem, shown
from ...module_utils.hostfile.text import HostsError, meant, name_fault, names_shown, slots_fault, whole_slots

DEFAULT_SOURCE = "gpu_info"
"""The host variable that a task with ``register: gpu_info`` makes of what the module gpu_info returns."""

_OR_SLOTS = (
    "or give its slots, as slots={'HOST': 8} or as the host variable gpu_slots (1 to train on its CPUs, 0 to leave it"
    " out)"
)


class _Faults:
    """Problems; hosts with the same one share a line, as they are often all hosts."""

    def __init__(self) -> None:
        self._general: list[Problem] = []
        self._hosts: dict[str, list[str]] = {}

    def add(self, where: str, message: str) -> None:
        self._general.append(Problem(where, message))

    def of(self, host: str, message: str) -> None:
        self._hosts.setdefault(message, []).append(host)

    def raise_all(self) -> None:
        problems = self._general + [Problem(names_shown(hosts), message) for message, hosts in self._hosts.items()]
        if problems:
            raise HostsError(problems)


def entries(
    hosts: object,
    hostvars: object,
    *,
    slots: object = None,
    names: object = None,
    source: object = DEFAULT_SOURCE,
) -> list[dict[str, Any]]:
    """Return ``[{name: …, slots: …}]`` in the order of ``hosts``, for ``hostfile.text.check``.

    Slots are the first of these that is set: ``slots`` (a number for all hosts, or a mapping of host to number), the
    host variable ``gpu_slots``, and what gpu_info found (in the variable ``source``; dots lead into mappings).
    ``names`` maps hosts to the names to write, or is a prefix for all; a host that it does not name keeps its own.
    Raises ``HostsError`` with all problems, among them a host on which no usable GPU was found.
    """
    faults = _Faults()
    listed = _listed(hosts, faults)
    if not isinstance(hostvars, Mapping):
        faults.add("hostvars", "must be given, as in groups['cluster'] | swarmspeed.cluster.to_hostfile(hostvars)")
    if not isinstance(source, str) or not source:
        faults.add("gpu_info", f"must name a variable, such as {DEFAULT_SOURCE}, not {shown(source)}")
    if names is not None and not isinstance(names, (str, Mapping)):
        faults.add("names", f"must be a mapping of host to name, or a prefix for all, not {shown(names)}")
    faults.raise_all()
    if not isinstance(hostvars, Mapping) or not isinstance(source, str):
        raise AssertionError("raised above")  # for the type checker, which does not know that raise_all() raises
    for where, given in (("slots", slots), ("names", names)):
        _strangers(where, given, listed, hostvars, faults)
    found = [
        {"name": _name(host, names, faults), "slots": _slots(host, hostvars, slots, source, faults)} for host in listed
    ]
    _twice(listed, found, faults)
    faults.raise_all()
    return found


def _listed(hosts: object, faults: _Faults) -> list[str]:
    """The input as a list, also where a filter such as ``select`` made something that can be read only once."""
    if isinstance(hosts, Iterable) and not isinstance(hosts, (str, Mapping)):
        listed = list(hosts)
        if not listed:
            faults.add("", "there is no host in the input; is the group empty, or its name another one?")
        if all(isinstance(host, str) for host in listed):
            return listed
    faults.add("", f"the input must be a list of inventory hosts, such as groups['cluster'], not {shown(hosts)}")
    return []


def _strangers(where: str, given: object, hosts: Sequence[str], hostvars: Mapping[str, Any], faults: _Faults) -> None:
    """A key that is not a host of the inventory is a mistake; one that is only not requested does no harm."""
    requested = set(hosts)
    for name in given if isinstance(given, Mapping) else ():
        if name not in requested and name not in hostvars:
            faults.add(where, f"{shown(name)} is not a host of the inventory{meant(name, hosts)}")


def _name(host: str, names: object, faults: _Faults) -> object:
    name = names.get(host, host) if isinstance(names, Mapping) else f"{names or ''}{host}"
    fault = name_fault(name)
    if fault:
        remedy = f"Remedy: give another one, as names={{{shown(host)}: 'NAME'}}"
        faults.of(host, f"its name in the hostfile: {fault}. {remedy}")
    return name


def _slots(host: str, hostvars: Mapping[str, Any], given: object, source: str, faults: _Faults) -> int:
    """Slots of one host; 0 after a fault, which then is all that counts."""
    if host not in hostvars:
        faults.of(host, "is not a host of the inventory")
        return 0
    variables = hostvars[host]
    if not isinstance(variables, Mapping):
        faults.of(host, "hostvars holds no variables of it; pass Ansible's hostvars as it is")
        return 0
    override = given.get(host) if isinstance(given, Mapping) else given
    for where, value in (("slots", override), ("gpu_slots", variables.get("gpu_slots"))):
        # An unset variable often arrives as empty text.
        if value is not None and value != "":
            slots = whole_slots(value)
            if slots is None:
                faults.of(host, f"{where} {slots_fault(value)}")
            return slots or 0
    gpus: object = variables
    for key in source.split("."):
        gpus = gpus.get(key) if isinstance(gpus, Mapping) else None
    slots = whole_slots(gpus.get("slots")) if isinstance(gpus, Mapping) else None
    if not slots:
        faults.of(host, _no_gpus(gpus, slots, source))
    return slots or 0


def _no_gpus(gpus: object, slots: int | None, source: str) -> str:
    run = f"Remedy: run swarmspeed.cluster.gpu_info there before, with register: {DEFAULT_SOURCE}"
    if not isinstance(gpus, Mapping):
        return (
            f"GPUs not known, as there is no variable {source}. {run}, or name the variable that holds its result, as"
            f" gpu_info='NAME', {_OR_SLOTS}."
        )
    if slots is None:
        return f"GPUs not known, as {source} holds no number of slots{_why(gpus)}. {run}, not in a loop, {_OR_SLOTS}."
    problems = gpus.get("problems")
    if isinstance(problems, Sequence) and problems:
        text = str(problems[0])
        return f"no GPU can be used. {text if len(text) <= 400 else text[:397] + '...'} Remedy: fix that, {_OR_SLOTS}."
    return f"no NVIDIA GPU was found. Remedy: take it out of the list, {_OR_SLOTS}."


def _why(registered: Mapping[str, Any]) -> str:
    """Why a registered result is none of gpu_info."""
    if registered.get("unreachable"):
        return ", the host having been unreachable"
    if registered.get("skipped"):
        return ", the task having been skipped"
    if registered.get("failed"):
        return f", the task having failed: {shown(registered.get('msg'))}"
    return ""


def _twice(hosts: Sequence[str], found: Sequence[Mapping[str, Any]], faults: _Faults) -> None:
    first: dict[str, int] = {}
    for index, entry in enumerate(found):
        before = first.setdefault(str(entry["name"]).lower(), index)
        if before != index and hosts[before] == hosts[index]:
            faults.of(hosts[index], "is in the list twice")
        elif before != index:
            taken = f"{shown(entry['name'])}, which is that of {hosts[before]} (letter case does not count)"
            faults.of(hosts[index], f"its name in the hostfile would be {taken}")
