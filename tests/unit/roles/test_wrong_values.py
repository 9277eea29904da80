# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Values that were written from the consumers' own rules, before the constraints were read: each is refused.

All are judged as preflight does before it connects to any host, on two invented hosts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action.preflight import image_problems, invalid
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import judge, read_yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import parse_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

from tests.documents import ROOT
from tests.unit.roles.test_constraints import OPTIONS, RULES, SPECS

FILES = sorted((ROOT / "tests/wrong_values").glob("*.yml"))
WRONG = [(path.stem, *row) for path in FILES for row in read_yaml(path)]
DEFAULTS = {option: entry.get("default") for option, entry in OPTIONS.items()}
SPECS_OF_ROLES = parse_specs(SPECS)
CHECKS = (
    *("variable_values", "launch_values", "nccl_env", "container_environment", "container_options", "image_settings"),
    *("swarm_values", "overlay_values", "cluster_address", "gpu_slots", "system_folders", "files", "overlaps"),
)


def lines(name: str, value: Any) -> list[str]:
    """Return what is reported of a variable that both hosts have with this value."""
    fault = judge(name, RULES[name], OPTIONS[name], value)
    if fault:
        assert fault.text and fault.remedy and not fault.text.endswith("."), fault
        return [f"{name}{fault.suffix}: {fault.text}"]
    hosts = {host: {name: value} for host in ("gpu1", "gpu2")}
    inventory = Inventory(
        groups={"cluster": list(hosts), "managers": ["gpu1"], "workers": ["gpu2"]},
        hosts=hosts,
        names={host: list(values) for host, values in hosts.items()},
        # what is not used is nowhere in the way
        defaults={**DEFAULTS, "assets_sources": [{"name": "a", "huggingface": {"repository": "b/c"}}]},
        specs=SPECS_OF_ROLES,
        invalid=lambda option, given: invalid(option, OPTIONS[option], given),
        rules=RULES,
        image=image_problems,
    )
    problems = (problem for check in CHECKS for problem in INVENTORY_CHECKS[check](inventory))
    return [problem.line() for problem in problems if problem.subject.startswith(name)]


def test_there_are_as_many_as_asked_for() -> None:
    assert len(WRONG) >= 150
    assert len({name for _role, name, _value, _why in WRONG}) >= 90
    assert {path.stem for path in FILES} == {
        path.parents[1].name for path in Path(ROOT).glob("roles/*/meta/constraints.yml")
    }


@pytest.mark.parametrize(
    ("name", "value"), [row[1:3] for row in WRONG], ids=[f"{row[1]}-{number}" for number, row in enumerate(WRONG)]
)
def test_a_wrong_value_is_refused_before_any_connection(name: str, value: Any) -> None:
    assert lines(name, value), value


def test_a_quote_that_is_not_closed_is_one_error() -> None:
    name = "deepspeed_launch_args"
    (line,) = lines(name, '--lr 1 --name "my run')
    assert line.startswith(f"{name}: has a quote that is not closed. Remedy: ")
