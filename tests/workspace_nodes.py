# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Three invented nodes that are to have code and a Python environment, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.gathered import apt_packages
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.planner import WorkspacePlanner

from tests.role_values import NODES, defaults

HERE = NODES[1]
ROOT, SOURCE = "/srv/swarmspeed/lab", "/home/me/src"
PATH = f"{ROOT}/workspace"
PYTHON = "/opt/train"
RECORD = f"{PYTHON}/.swarmspeed"
ROLE_VARS = defaults(
    workspace_source=SOURCE,
    workspace_exclude=[".git"],
    cluster_name="lab",
    cluster_root=ROOT,
    swarmspeed_source=None,
)
CLUSTER: dict[str, Any] = {
    "hosts": list(NODES),
    "accelerator": "cpu",
    "slots": dict.fromkeys(NODES, 1),
    "versions": {"torch": "torch==2.13.0", "torch_index": "https://download.pytorch.org/whl/cpu"},
}


def host(
    differing: list[str] | None = None,
    missing: list[str] | None = None,
    record: str | None = None,
    folder: bool | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the facts of a host; ``record`` says what its environment was made from."""
    there = {"exists": True, "content": record} if record is not None else {"exists": False}
    exists = record is not None if folder is None else folder
    return {
        "system": {"cpus": 8},
        "trees": {PATH: sorted([*(differing or []), *(missing or [])])},
        "code": {"left": [], "copied": {}, "kept": {}, "recorded": True, "unneeded": [], "readers": [], "running": {}},
        "trees_missing": {PATH: list(missing or [])},
        "files": {PYTHON: {"exists": exists}, RECORD: there},
        "packages": dict.fromkeys(apt_packages("python3", []), "1"),
        "jobs": {"b": "failed"},
        **more,
    }


def plan(
    *hosts: Mapping[str, Any],
    cluster: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    **desired: Any,
) -> Plan:
    """Return the plan of these hosts, the first being the second node."""
    names = (HERE, *(name for name in NODES if name != HERE))
    facts = dict(zip(names, hosts or (host(),)))
    role_vars = {name: {**ROLE_VARS, **desired} for name in facts}
    inputs = Inputs(CLUSTER if cluster is None else cluster, files or {})
    return fold([WorkspacePlanner()], facts, role_vars, inputs)


def task_input(made: Plan, name: str = HERE) -> Mapping[str, Any]:
    return made.task_inputs[name]["workspace"]
