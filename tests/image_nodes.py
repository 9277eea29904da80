# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Three invented nodes that are to have the same image, the plan for them, and what an image is built of."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import read, split_kind
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.making import OF_A_ROLE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image import recipe as recipes
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.planner import TrainingImagePlanner

from tests.role_values import NODES, ROLES, defaults

ROOT = "/srv/swarmspeed/lab"
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
    swarmspeed_image="",
)
VERSIONS = {
    "torch": "torch==2.13.0",
    "torch_index": "https://download.pytorch.org/whl/cpu",
    "compiler": [],
    "capabilities": [],
    "build_base": "",
}
CLUSTER: dict[str, Any] = {
    "hosts": list(NODES),
    "accelerator": "cpu",
    "versions": VERSIONS,
    "underlay": {"addresses": {name: f"10.1.0.1{number}" for number, name in enumerate(NODES, 1)}},
}


def text(name: str) -> str:
    """Return what the action plan reads of the controller."""
    kind, path = split_kind(name)
    if kind:
        return read(kind, path)
    place = ROLES / path.removeprefix(OF_A_ROLE) if path.startswith(OF_A_ROLE) else Path(path)
    return place.read_bytes().decode("utf-8")


def recipe(cluster: Mapping[str, Any] | None = None, **desired: Any) -> recipes.Recipe:
    """Return what an image is built of, with files that are really there."""
    role_vars = {**ROLE_VARS, **desired}
    found = recipes.recipe(
        role_vars, Inputs({**CLUSTER, **(cluster or {})}, {name: text(name) for name in recipes.files(role_vars)})
    )
    assert isinstance(found, recipes.Recipe), str(found)
    return found


@functools.cache
def reference() -> str:
    """The image of the defaults."""
    return recipe().reference


def host(content: str = "", image: str = "", others: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return the facts of a host; ``others`` are images, by name, with the cluster in their label."""
    name, images, contents = image or reference(), dict.fromkeys(others or {}, "sha256:old"), {}
    if content:
        images[name], contents[name] = "sha256:1", f"sha256:{content}"
    docker = {
        "running": True,
        "images": images,
        "image_contents": contents,
        "image_clusters": {key: label for key, label in (others or {}).items() if label},
        "containers": {},
        **more,
    }
    return {"docker": docker}


def plan(*hosts: Mapping[str, Any], cluster: Mapping[str, Any] | None = None, **desired: Any) -> Plan:
    facts = dict(zip(NODES, hosts or (host(),) * len(NODES)))
    role_vars = {name: {**ROLE_VARS, **desired} for name in facts}
    planner = TrainingImagePlanner()
    files = {name: text(name) for name in planner.files({**ROLE_VARS, **desired})}
    return fold([planner], facts, role_vars, Inputs(CLUSTER if cluster is None else cluster, files))


def task_input(made: Plan, name: str) -> Mapping[str, Any]:
    return made.task_inputs[name]["training_image"]
