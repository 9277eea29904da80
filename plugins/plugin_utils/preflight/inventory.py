# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is known before any host is contacted: groups, names, variables, and files on the controller. Pure.

Nothing here, nor in the checks that read it, raises on odd input: whatever an inventory can hold either passes or
becomes a problem in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.constraints import Fault, Rule
from ..core.problems import Problem, listing
from ..core.role_specs import RoleSpecs
from ..core.values import mapping, texts
from ..plan.play_hosts import PlayHosts
from .controller import Controller


@dataclass(frozen=True)
class Inventory:
    """What the checks of the first stage read.

    By host, ``hosts`` holds the variables that the user set and whose values are known by now, ``names`` the names of
    all that the user set, also where a template cannot be evaluated yet, and ``broken`` why a template fails.
    ``defaults`` are values that hold where a host has none. ``invalid`` says what is wrong with the type of a
    variable's value, or None; ``judge`` what its constraint says, and ``rules`` are those. ``origin`` is where a part
    of a value was written, empty where that is not known. ``files`` are paths by variable name; ``kind`` is ``file``,
    ``directory`` or None (missing), and ``text``
    returns what is in one; ``writable`` is whether a folder is there, or could be made, to be written to. ``found``
    are problems with files that an earlier task found. ``bundle`` works out what forbids the offline bundle, which
    takes a while where it is large, and ``image`` what is wrong with the settings of the training image.
    ``controller`` is what all this runs on, and ``play`` says which hosts take part.

    ``connections`` are the variables of connections that Ansible knows, and ``from_ansible`` by host those that it sets
    itself. ``folders`` may have group_vars and host_vars; ``listed`` returns the names in a folder.
    """

    groups: Mapping[str, Any]
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, Iterable[str]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    specs: RoleSpecs | None = None
    invalid: Callable[[str, Any], str | None] = lambda _name, _value: None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    judge: Callable[[str, Any], Fault | None] = lambda _name, _value: None
    origin: Callable[[Any, tuple[Any, ...]], str] = lambda _value, _place: ""
    broken: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    found: Sequence[Mapping[str, Any]] = ()
    kind: Callable[[str], str | None] = lambda _path: None
    text: Callable[[str], str] = lambda _path: ""
    writable: Callable[[str], bool] = lambda _path: True
    bundle: Callable[[], Iterable[Problem]] = tuple
    image: Callable[[Inventory], Iterable[Problem]] = lambda _inventory: ()
    controller: Controller | None = None
    play: PlayHosts | None = None
    connections: frozenset[str] = frozenset()
    from_ansible: Mapping[str, Iterable[str]] = field(default_factory=dict)
    folders: Sequence[str] = ()
    listed: Callable[[str], list[str]] = lambda _path: []

    def members(self, group: str) -> list[str]:
        """Return the hosts of a group in inventory order, an empty list where there is no such group."""
        return texts(self.groups.get(group))

    def values(self, name: str) -> dict[str, Any]:
        """Return a variable's value by host of the cluster; hosts for which it is not known are left out."""
        found: dict[str, Any] = {}
        for host in self.members("cluster"):
            variables = mapping(self.hosts.get(host))
            # Set, but with a template that cannot be evaluated yet: the default would be a guess.
            pending = name not in variables and name in self.names.get(host, ())
            value = None if pending else variables.get(name, self.defaults.get(name))
            if value is not None:
                found[host] = value
        return found

    def where(self, hosts: Sequence[str]) -> str:
        """Return `` (set for …)``, or nothing where all hosts agree: then the variable's name is enough to find it."""
        everywhere = set(self.members("cluster")) <= set(hosts)
        return "" if everywhere or not hosts else f" (set for {listing(hosts)})"


def by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    for host, text in values.items():
        hosts.setdefault(text, []).append(host)
    return hosts


def shown(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def one_for_all(inventory: Inventory, name: str, values: Mapping[str, Any]) -> Iterator[Problem]:
    different = by_value({host: shown(value) for host, value in values.items()})
    if len(different) > 1:
        parts = "; ".join(f"{text} for {listing(hosts)}" for text, hosts in different.items())
        yield Problem(
            name, f"differs between hosts of one cluster: {parts}", "set it once, for the whole group cluster"
        )
