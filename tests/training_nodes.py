# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented nodes with their training containers, and the plan for them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.planner import (
    TrainingContainerPlanner,
)

from tests.role_values import defaults

ROLE = "training_container"
HOSTS = ("gpu1", "gpu2", "gpu3")
HOST, NAME = "gpu2", "lab-gpu2"
ROOT = "/srv/lab"
FOLDERS = {ROOT: "0700", f"{ROOT}/jobs": "0700", f"{ROOT}/workspace": "0755"}
IMAGE, ID, OTHER = "train:1", f"sha256:{'ab' * 32}", f"sha256:{'cd' * 32}"
KEY = "key"
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
)


def cluster(**changed: Any) -> dict[str, Any]:
    """What cluster_facts says of the cluster, with the name of its image."""
    return {
        "hosts": list(HOSTS),
        "underlay": {"subnet": "10.1.0.0/24"},
        "overlay": {"subnet": "10.64.0.0/24", "mtu": 1500, "addresses": {}},
        "accelerator": "cpu",
        "image": IMAGE,
        **changed,
    }


def facts(container: Mapping[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """A host with the image, and a container of gpu2's name if one is given."""
    docker = {
        "version": "26.1.3",
        "running": True,
        "containers": {NAME: dict(container)} if container is not None else {},
        "images": {IMAGE: ID},
    }
    files = {path: {**ABSENT, "exists": True, "mode": mode, "owner": 0, "group": 0} for path, mode in FOLDERS.items()}
    found = {
        "system": {"memory_bytes": 64 << 30},
        "fabric": {"infiniband": []},
        "jobs": {},
        "files": files,
        "docker": docker,
    }
    return {**found, **changed, "docker": {**docker, **changed.get("docker", {})}}


def plan(
    found: Mapping[str, Any],
    of_cluster: Mapping[str, Any] | None = None,
    key: str = KEY,
    files: Mapping[str, str] | None = None,
    **desired: Any,
) -> Plan:
    """The plan for gpu2 alone, of whose cluster nothing else is known. ``files`` are those of the controller."""
    inputs = Inputs(cluster() if of_cluster is None else of_cluster, files or {}, key)
    return fold([TrainingContainerPlanner()], {HOST: found}, {HOST: {**ROLE_VARS, **desired}}, inputs)


def task_input(made: Plan) -> dict[str, Any]:
    return dict(made.task_inputs[HOST][ROLE])


def shown(made: Plan) -> list[tuple[str, str, Any, Any]]:
    return [(change.action, change.what, change.before, change.after) for change in made.changes]


def running(
    of_cluster: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None, **desired: Any
) -> dict[str, Any]:
    """A container that was made with these settings and runs."""
    after = plan(facts(), of_cluster, files=files, **desired).facts[HOST]
    return copy.deepcopy(dict(after["docker"]["containers"][NAME]))
