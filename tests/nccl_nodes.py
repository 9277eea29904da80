# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented nodes whose settings of NCCL are planned, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.files import ENTRY_POINT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NcclEnvPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold

from tests.role_values import ROLES, defaults

HOST = "gpu-2"
CONTAINER = f"lab-{HOST}"
ROOT = "/srv/swarmspeed/lab"
ETC = f"{ROOT}/etc"
RECORD = f"{ETC}/nccl.release"
IMAGE, ID, OTHER = "train:1", "sha256:1", "sha256:2"
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
)
ON_THE_HOST: dict[str, Any] = {"deepspeed_launch_runtime": "host", "cluster_network_mode": "host"}
TEXT = (ROLES / ENTRY_POINT.removeprefix("role:")).read_text(encoding="utf-8")
KEY = "k" * 40


def cluster(**changed: Any) -> dict[str, Any]:
    return {
        "accelerator": "cuda",
        "underlay": {"subnet": "10.1.0.0/24", "interfaces": {HOST: "bond0"}},
        "overlay": {"subnet": "10.20.0.0/24"},
        "rdma": {"link_layer": None, "reason": "no node has an active RDMA port"},
        "image": IMAGE,
        **changed,
    }


def host(record: str | None = None, *, image: str | None = ID, state: str = "", **container: Any) -> dict[str, Any]:
    """The facts of a host with this record of a release, this image, and a container where it has a state."""
    there = {
        "state": state,
        "labels": {"swarmspeed.cluster": "lab", "swarmspeed.spec": "0123"},
        "addresses": {"lab": "10.20.0.3"},
        **container,
    }
    return {
        "files": {} if record is None else {RECORD: written(record)},
        "fabric": {"infiniband": []},
        "docker": {"images": {IMAGE: image} if image else {}, "containers": {CONTAINER: there} if state else {}},
    }


def written(text: str) -> dict[str, Any]:
    return {"exists": True, "content": text, "sha256": "x", "mode": "0644", "owner": 0, "group": 0}


def plan(facts: Mapping[str, Any], of_cluster: Mapping[str, Any] | None = None, **desired: Any) -> Plan:
    inputs = Inputs(cluster() if of_cluster is None else of_cluster, {ENTRY_POINT: TEXT}, KEY)
    return fold([NcclEnvPlanner()], {HOST: facts}, {HOST: {**ROLE_VARS, **desired}}, inputs)


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(change.action, change.what.removeprefix(ETC)) for change in made.changes]


def task_input(made: Plan) -> Mapping[str, Any]:
    return made.task_inputs[HOST]["nccl_env"]


def files(made: Plan) -> dict[str, Mapping[str, Any]]:
    return {entry["path"]: entry for entry in task_input(made)["files"]}


def done(facts: Mapping[str, Any], **desired: Any) -> dict[str, Any]:
    """The facts of the host once all was done that is planned."""
    return dict(plan(facts, **desired).facts[HOST])
