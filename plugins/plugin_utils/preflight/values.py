# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The value of each variable by itself, before any connection: its type, and its constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..core.constraints import Place, check_relations
from ..core.problems import Problem, listing
from ..core.values import mapping
from .inventory import Inventory

PROXY = "cluster_proxy"
"""Its value is that of others, too, which are not reported beside it."""
REMEDY = "correct it in the inventory or in the variables file that sets it"


@dataclass
class Given:
    """A value of a variable, and where it stands: one for all hosts that have the same."""

    name: str
    value: Any
    hosts: list[str] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    """The same value as other files have it, of which Ansible may know another place."""

    def where(self, inventory: Inventory, place: Place = ()) -> str:
        """Return `` (FILE:LINE)`` where Ansible knows it, else the hosts unless all have the value."""
        found = [inventory.origin(value, place) for value in (self.value, *self.others)]
        return f" ({listing(dict.fromkeys(found))})" if all(found) else inventory.where(self.hosts)


def given_values(inventory: Inventory) -> list[Given]:
    """Return the variables of this collection that are set to something, each value of each once."""
    options = inventory.specs.options if inventory.specs else {}
    found: dict[tuple[str, type, str], Given] = {}
    for host, variables in inventory.hosts.items():
        for name, value in variables.items():
            if name in options and value is not None:
                given = found.setdefault((name, type(value), repr(value)), Given(name, value))
                if given.hosts and given.value is not value:
                    given.others.append(value)
                given.hosts.append(host)
    return list(found.values())


def check_variable_values(inventory: Inventory) -> Iterator[Problem]:
    """Each variable that the user set has the type and choices of its argument spec."""
    wrong: dict[tuple[str, str], list[str]] = {}
    for host, failures in inventory.broken.items():
        for name, why in failures.items():
            wrong.setdefault((name, f"its template cannot be evaluated: {why}"), []).append(host)
    found = [(name, text, inventory.where(hosts)) for (name, text), hosts in wrong.items()]
    for given in given_values(inventory):
        complaint = inventory.invalid(given.name, given.value)
        if complaint:
            found.append((given.name, complaint.rstrip(". "), given.where(inventory)))
    for name, text, where in sorted(found):
        yield Problem(name, text + where, REMEDY)


def check_values(inventory: Inventory) -> Iterator[Problem]:
    """Each variable is what its constraint allows, and fits the others of its host. Types are another check's."""
    found = given_values(inventory)
    wrong = [one.value for one in found if one.name == PROXY and inventory.judge(PROXY, one.value)]
    for given in found:
        fault = inventory.judge(given.name, given.value)
        follows = given.name != PROXY and any(one in wrong for one in (given.value, *mapping(given.value).values()))
        if fault and not follows:
            text = fault.text + given.where(inventory, fault.place)
            yield Problem(given.name + fault.suffix, text, fault.remedy)
    hosts: dict[Problem, list[str]] = {}
    related = {name: rule for name, rule in inventory.rules.items() if rule.differs_from}
    read = {name: inventory.values(name) for rule in related.values() for name in rule.differs_from}
    read |= {name: inventory.values(name) for name in related}
    for host in inventory.members("cluster") if related else ():
        for name, fault in check_relations(related, {name: of_hosts.get(host) for name, of_hosts in read.items()}):
            hosts.setdefault(Problem(name, fault.text, fault.remedy), []).append(host)
    for problem, concerned in hosts.items():
        yield Problem(problem.subject, problem.text + inventory.where(concerned), problem.remedy)
