# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Roles' own expressions as Ansible evaluates them, with the collection's filters, but without a search for plugins."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.swarmspeed.cluster.plugins.filter import cluster, network, operators, own_image, visible
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs

ROLES = Path(__file__).parents[1] / "roles"
NODES = ("gpu1", "gpu2", "gpu3")


@functools.cache
def load(path: str) -> Any:
    """Return a role's file with its templates as Ansible would evaluate them. It is read once: leave it as it is."""
    return DataLoader().load_from_file(str(ROLES / path), trusted_as_template=True)


@functools.cache
def _of_all_roles() -> dict[str, Any]:
    """Return the defaults of all roles, as preflight has them, and its variables."""
    found: dict[str, Any] = {}
    for path in sorted((ROLES / "preflight/defaults/main").iterdir()):
        found.update(load(str(path)))
    return {**found, **load("preflight/vars/main.yml")}


def defaults(**changed: Any) -> dict[str, Any]:
    """Return the variables of all roles as a host has them that sets only these."""
    given = {**_of_all_roles(), **changed}
    return {**{name: value(name, given) for name in role_specs().options if name in given}, **changed}


def variables(*roles: str, **changed: Any) -> dict[str, Any]:
    """Return defaults and variables of these roles and those they read, with what is known of three invented nodes."""
    found = dict(_of_all_roles())
    for role in ("deepspeed_launch", "training_image", *roles):
        found.update(load(f"{role}/vars/main.yml") or {})
    cluster = {
        "accelerator": "cpu",
        "first": "gpu1",
        "hosts": list(NODES),
        "slots": dict.fromkeys(NODES, 1),
        "underlay": {
            "subnet": "10.1.0.0/24",
            "mtu": 9000,
            "speed_mbps": 100000,
            "reason": "the only subnet that all hosts share",
            "interfaces": dict.fromkeys(NODES, "bond0"),
            "addresses": {name: f"10.1.0.1{number}" for number, name in enumerate(NODES, 1)},
        },
        "versions": {
            "torch": "torch==2.13.0",
            "torch_index": "https://download.pytorch.org/whl/cpu",
            "compiler": [],
            "capabilities": [],
            "build_base": "",
            "notes": [],
            "problems": [],
        },
        "rdma": {"link_layer": None, "reason": "no node has an active RDMA port"},
    }
    facts: dict[str, Any] = {"files": {}, "packages": {}, "jobs": {}, "trees": {}}
    return {
        **found,
        "inventory_hostname": "gpu2",
        "swarmspeed_cluster": cluster,
        "ansible_facts": {"swarmspeed": facts},
        "role_path": str(ROLES / (roles[0] if roles else "preflight")),
        **changed,
    }


@functools.cache
def _templar() -> Any:
    """Return what evaluates templates; one for all, as asking Ansible for its filters takes long."""
    found: Any = Templar(loader=DataLoader())
    filters = found.environment.filters
    for module in (cluster, network, operators, own_image, visible):
        for name, function in module.FilterModule().filters().items():
            filters[f"swarmspeed.cluster.{name}"] = function
    return found


def templar(given: dict[str, Any]) -> Any:
    found = _templar()
    found.available_variables = given
    return found


def value(name: str, given: dict[str, Any]) -> Any:
    return templar(given).template(given[name])


def task_inputs(task: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether a task's own conditions let it run."""
    conditions = task.get("when", True)
    each = conditions if isinstance(conditions, list) else [conditions]
    return all(condition is True or templar(given).evaluate_conditional(condition) for condition in each)
