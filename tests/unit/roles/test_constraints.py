# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The constraint of every variable: there is one, and it accepts what the repository itself sets and shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import (
    judge,
    read_constraints,
    read_yaml,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import RENAMED, parse_specs

from tests.documents import ROOT, blocks

ROLES = ROOT / "roles"
SPECS = {path.parents[1].name: read_yaml(path) for path in sorted(ROLES.glob("*/meta/argument_specs.yml"))}
CONSTRAINTS = {path.parents[1].name: read_yaml(path) for path in sorted(ROLES.glob("*/meta/constraints.yml"))}
OPTIONS = parse_specs(SPECS).options
RULES = read_constraints(CONSTRAINTS)
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/*/README.md"))
)
FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("inventories", "examples", "molecule")
    for path in (ROOT / folder).rglob("*.yml")
)


class _Any(yaml.SafeLoader):
    """Reads what carries a tag of Ansible's (``!vault``) as text."""


_Any.add_multi_constructor("!", lambda loader, _suffix, node: str(node.value))


def variables(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield variables of this collection wherever they stand, but for values that are templates."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in OPTIONS and "{{" not in str(value):
                yield key, value
            else:
                yield from variables(value)
    elif isinstance(document, list):
        for part in document:
            yield from variables(part)


def refused(text: str) -> list[str]:
    try:
        documents = list(yaml.load_all(text, Loader=_Any))
    except yaml.YAMLError:
        return []  # a part of a file, with "…" for the rest
    found = [(name, value, judge(name, RULES[name], OPTIONS[name], value)) for name, value in variables(documents)]
    return [f"{name}{fault.suffix} = {value!r}: {fault.text}" for name, value, fault in found if fault]


@pytest.mark.parametrize("role", SPECS)
def test_every_variable_has_one_constraint(role: str) -> None:
    """Those that several roles list (``cluster_name``) have it with the role that owns them."""
    own = {name for entry in SPECS[role]["argument_specs"].values() for name in entry.get("options") or {}}
    elsewhere = {name for other, names in CONSTRAINTS.items() if other != role for name in names}
    assert set(CONSTRAINTS.get(role, {})) == own - (elsewhere - set(CONSTRAINTS.get(role, {})))
    assert not set(CONSTRAINTS.get(role, {})) & elsewhere


def test_choices_and_booleans_are_those_of_the_specs() -> None:
    for name, rule in RULES.items():
        whats = {kind.what for kind in rule.kinds}
        assert ("one of the choices" in whats) is bool(OPTIONS[name].get("choices")), name
        assert ("true or false" in whats) is (OPTIONS[name].get("type") == "bool"), name


def test_what_a_variable_must_differ_from_is_one() -> None:
    assert {other for rule in RULES.values() for other in rule.differs_from} <= set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_default_is_allowed(name: str) -> None:
    default = OPTIONS[name].get("default")
    if "{{" not in str(default):
        fault = judge(name, RULES[name], OPTIONS[name], default)
        assert fault is None, fault


@pytest.mark.parametrize("path", FILES)
def test_values_of_inventories_examples_and_scenarios_are_allowed(path: str) -> None:
    assert refused(Path(ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_values_of_pages_are_allowed(page: str) -> None:
    assert [wrong for block in (*blocks(page, "yaml"), *blocks(page, "yml")) for wrong in refused(block)] == []


def test_the_walk_finds_values() -> None:
    texts = [Path(ROOT / path).read_text(encoding="utf-8") for path in FILES]
    names = {name for text in texts for name, _value in variables(list(yaml.load_all(text, Loader=_Any)))}
    assert len(names) > 60
    assert refused("- hosts: all\n  vars: {swarm_data_path_port: 80}\n") == [
        "swarm_data_path_port = 80: 80 is not a port from 1024 to 49151 other than 7946"
    ]


@pytest.mark.parametrize(("former", "today"), RENAMED.items())
def test_a_former_name_leads_to_a_variable_of_today(former: str, today: str) -> None:
    assert today in OPTIONS
    assert former not in OPTIONS
