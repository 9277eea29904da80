# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Every role has the same files, its argument spec says what its defaults do, and it uses no variable that is neither.

Roles are found where they are: one that is added is checked without a word here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import (
    GENERIC_PREFIXES,
    SHARED_PREFIXES,
    RoleSpecs,
    parse_specs,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import NAMES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import MIN_FREE_VARIABLE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller_files import DIRECTORIES, SCRIPT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

ROLES = Path(__file__).parents[3] / "roles"
FOUND = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
ROOMS = (
    "meta/main.yml",
    "meta/argument_specs.yml",
    "meta/constraints.yml",
    "tasks/main.yml",
    "tasks/verify.yml",
    "README.md",
)
OF_A_HOST = ("gpu_slots",)
"""Optional variables of single hosts: no default could be right for all."""

OF_THE_COLLECTION = "swarmspeed_"
"""Prefix of what roles hand on to one another, such as what is known of the whole cluster; users set none of it."""

OF_A_BUNDLE = (
    "training_image_source",
    "training_image_name",
    "training_image_archive",
    "workspace_python_wheelhouse",
    "assets_cache",
)
"""What preflight sets where an offline bundle has the answer, so that no other role has to know of bundles."""

EXPRESSIONS = ("when", "that", "failed_when", "changed_when", "until", "break_when")
"""Task keys whose text is a Jinja expression without braces."""

JINJA = jinja2.Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], autoescape=False)

every_role = pytest.mark.parametrize("role", FOUND)


@functools.cache
def load(path: Path) -> Any:
    """Return a YAML file as Ansible reads it (vault, unsafe and duplicate keys included), None where it is missing."""
    return DataLoader().load_from_file(str(path)) if path.exists() else None


def options(role: str) -> dict[str, Any]:
    found = load(ROLES / role / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options") or {}
    assert isinstance(found, dict)
    return found


@functools.cache
def all_specs() -> RoleSpecs:
    documents = {role: load(ROLES / role / "meta" / "argument_specs.yml") for role in FOUND}
    return parse_specs({role: document for role, document in documents.items() if document is not None})


def templated(value: Any) -> bool:
    return "{{" in str(value) or "{%" in str(value)


def shared(name: str) -> bool:
    return name.startswith(tuple(f"{prefix}_" for prefix in SHARED_PREFIXES))


def test_the_roles_are_those_that_a_run_knows() -> None:
    assert set(FOUND) == set(NAMES)


def own_defaults(role: str) -> dict[str, Any]:
    """Return the defaults of a role, which for preflight lie beside those of the others."""
    found = load(ROLES / role / "defaults" / ("main/preflight.yml" if role == "preflight" else "main.yml"))
    assert isinstance(found, dict)
    return found


@every_role
def test_every_role_has_the_same_rooms(role: str) -> None:
    assert [room for room in ROOMS if not (ROLES / role / room).is_file()] == []


@every_role
def test_specs_and_defaults_name_the_same_variables(role: str) -> None:
    defaults, specs = own_defaults(role), options(role)
    assert sorted(set(defaults) - set(specs)) == [], "have a default and are not in the argument spec"
    without = {name for name, option in specs.items() if option.get("required") or name in OF_A_HOST or shared(name)}
    assert sorted(set(specs) - set(defaults) - without) == [], (
        "are in the argument spec, not required, and have no default"
    )


@every_role
def test_specs_and_defaults_give_the_same_values(role: str) -> None:
    defaults, specs = own_defaults(role), options(role)
    reported = {name: specs[name].get("default") for name in defaults if name in specs}
    assert reported == {name: value for name, value in defaults.items() if name in specs}
    assert [name for name, option in specs.items() if "default" in option and option.get("required")] == []


@every_role
def test_defaults_are_of_the_type_that_the_spec_says(role: str) -> None:
    defaults, specs = own_defaults(role), options(role)
    for name, value in defaults.items():
        if value is None or templated(value):
            continue
        spec = {key: part for key, part in specs[name].items() if key not in ("default", "required")}
        result = ArgumentSpecValidator({name: spec}).validate({name: value})
        assert result.error_messages == [], name
        # Not merely convertible: an int written as text would pass validation and still compare as text in a template.
        if spec.get("type") not in ("dict", "list", "path", "raw"):
            assert (result.validated_parameters[name], type(result.validated_parameters[name])) == (value, type(value))


@every_role
def test_specs_are_documented(role: str) -> None:
    entry = load(ROLES / role / "meta" / "argument_specs.yml")["argument_specs"]["main"]
    assert entry.get("short_description")
    assert [name for name, option in options(role).items() if not option.get("description")] == []
    assert [name for name, option in options(role).items() if not option.get("type")] == []


@every_role
def test_variables_bear_the_roles_name(role: str) -> None:
    names = [*(own_defaults(role)), *options(role)]
    assert [name for name in names if name != role and not name.startswith(f"{role}_") and not shared(name)] == []
    private = load(ROLES / role / "vars" / "main.yml") or {}
    assert [name for name in private if not name.startswith((f"_{role}_", OF_THE_COLLECTION))] == []
    registered = [name for path in tasks(role) for name in registers(load(path))]
    ours = OF_A_BUNDLE if role == "preflight" else ()
    assert [name for name in registered if not name.startswith((f"_{role}_", OF_THE_COLLECTION, *ours))] == []


def test_roles_that_share_a_variable_agree_on_it() -> None:
    seen: dict[str, dict[str, Any]] = {}
    for role in FOUND:
        for name, option in options(role).items():
            facts = {key: option.get(key) for key in ("type", "elements", "choices", "default", "options")}
            assert seen.setdefault(name, facts) == facts, f"{role}: {name}"


def test_what_preflight_says_fits_the_specs() -> None:
    specs = all_specs()
    named = [
        *DIRECTORIES,
        SCRIPT,
        MIN_FREE_VARIABLE,
        "overlay_network_subnet",
        "swarm_allow_leave_foreign",
        "swarm_allow_adopt",
    ]
    assert [name for name in named if name not in specs.options] == []
    assert set(GENERIC_PREFIXES) <= {*FOUND, *SHARED_PREFIXES}
    choices = specs.options["preflight_skip"].get("choices")
    assert choices is None or list(choices) == [*INVENTORY_CHECKS, *FACT_CHECKS]


@every_role
def test_every_variable_that_a_role_uses_is_in_a_spec(role: str) -> None:
    specs = all_specs()
    unknown = {
        f"{path.relative_to(ROLES)}: {name}"
        for path, name in used(role)
        if name not in specs.options and not name.startswith("_") and owner(specs, name)
    }
    assert sorted(unknown) == []


def test_a_variable_is_found_wherever_jinja_reads_it() -> None:
    task = {
        "name": "Say {{ swarm_a }}",
        "when": ["swarm_b is defined", "not swarm_c | bool"],
        "ansible.builtin.assert": {"that": "swarm_d == 'swarm_text'"},
        "loop": "{{ swarm_e | map(attribute='swarm_attribute') }}",
        "swarm_key": "swarm_plain",
        "block": [{"until": "swarm_f.rc == 0", "vars": {"_x": "{{ [swarm_g] }}{% if swarm_h %}{% endif %}"}}],
    }
    assert set(expressions(task)) == {f"swarm_{letter}" for letter in "abcdefgh"}


def owner(specs: RoleSpecs, name: str) -> str | None:
    """Return whose a variable is by its name, also for a role that has no argument spec yet."""
    return specs.prefix(name) or next((role for role in FOUND if name.startswith(f"{role}_")), None)


def tasks(role: str) -> Iterator[Path]:
    for folder in ("tasks", "handlers"):
        yield from sorted((ROLES / role / folder).rglob("*.yml"))


def used(role: str) -> Iterator[tuple[Path, str]]:
    """Yield every name that a role's files read, each with its file."""
    for path in sorted((ROLES / role).rglob("*.yml")):
        for name in expressions(load(path)) if path.parent.name != "meta" else ():
            yield path, name
    for path in sorted((ROLES / role).rglob("*.j2")):
        for name in read_names(path.read_text(encoding="utf-8")):
            yield path, name


def expressions(node: Any, key: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for inner, value in node.items():
            yield from expressions(value, str(inner))
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value, key)
    elif isinstance(node, str) and templated(node):
        yield from read_names(node)
    elif isinstance(node, str) and key in EXPRESSIONS:
        yield from read_names("{{ " + node + " }}")


def read_names(template: str) -> Iterator[str]:
    for node in JINJA.parse(template).find_all(jinja2.nodes.Name):
        if node.ctx == "load":
            yield node.name


def registers(node: Any) -> Iterator[str]:
    """Yield the names under which a role's tasks keep results and facts."""
    if isinstance(node, list):
        for value in node:
            yield from registers(value)
    elif isinstance(node, dict):
        if isinstance(node.get("register"), str):
            yield node["register"]
        for module in ("ansible.builtin.set_fact", "set_fact"):
            yield from (name for name in node.get(module, {}) if name != "cacheable")
        for section in ("block", "rescue", "always"):
            yield from registers(node.get(section, []))
