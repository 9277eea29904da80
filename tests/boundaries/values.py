# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The boundary values: those that follow from a constraint, those of the sets, and those by kind. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import (
    Rule,
    read_constraints,
    read_yaml,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import parse_specs

from tests.role_values import templar

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SETS = {name: ROOT / "molecule/boundaries/vars" / f"{name}.yml" for name in ("lowest", "highest")}
NODES = ("lab1", "lab2", "lab3")


def _of_roles(name: str) -> dict[str, Any]:
    return {path.parents[1].name: read_yaml(path) for path in sorted(ROOT.glob(f"roles/*/meta/{name}.yml"))}


OPTIONS = parse_specs(_of_roles("argument_specs")).options
CONSTRAINTS: dict[str, Any] = {
    name: part for document in _of_roles("constraints").values() for name, part in document.items()
}
RULES = read_constraints(_of_roles("constraints"))
KINDS: dict[str, list[Any]] = read_yaml(HERE / "kinds.yml")
DAEMON: dict[str, list[Any]] = read_yaml(HERE / "daemon.yml")
ELSEWHERE: dict[str, str] = {
    str(item): str(row["why"]) for row in read_yaml(HERE / "elsewhere.yml") for item in row["variables"]
}
"""Why a variable, or one value of it (``NAME=VALUE``), is not tried here."""


@functools.cache
def given(name: str) -> tuple[dict[str, Any], ...]:
    """Return the variables of a set as each node has them, templates evaluated."""
    document = DataLoader().load_from_file(str(SETS[name]), trusted_as_template=True)

    def of(node: str, number: int) -> dict[str, Any]:
        known = {"inventory_hostname": node, "ansible_host": f"10.231.0.1{number}", "inventory_dir": str(ROOT / "a/b")}
        return {key: templar(known).template(value) for key, value in document.items()}

    return tuple(of(node, number) for number, node in enumerate(NODES, 1))


def values_of(variable: str) -> list[Any]:
    """Return what the sets give a variable, for a list also each item."""
    found: list[Any] = []
    for values in (of_node for name in SETS for of_node in given(name) if variable in of_node):
        value = values[variable]
        found += [value, *value] if isinstance(value, list) else [value]
    return found


def kinds_of(part: Any) -> set[str]:
    """Return the kinds that a constraint names, also those of keys and values."""
    if isinstance(part, str):
        return {part}
    if isinstance(part, list):
        return set(part)
    return set().union(*_below(part)) if isinstance(part, Mapping) else set()


def _below(part: Mapping[str, Any]) -> Iterator[set[str]]:
    if "kind" in part:
        yield kinds_of(part["kind"])
    for key in ("names", "values"):
        if key in part:
            yield kinds_of(part[key])
    for key, inner in (part.get("keys") or {}).items():
        yield kinds_of(inner) if key else set()


def derived(variable: str) -> list[Any]:
    """Return the ends that a constraint or an argument spec itself names: of a range, choices, words beside a kind."""
    rule, option = RULES[variable], OPTIONS[variable]
    if option.get("type") == "bool":
        return [False, True]
    return [*(option.get("choices") or ()), *_ends(rule)]


def _ends(rule: Rule) -> list[Any]:
    ends = [end for end in (rule.least, rule.most) if end is not None]
    return [*ends, *rule.words, *([""] if rule.empty else [])]
