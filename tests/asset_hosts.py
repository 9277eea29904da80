# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Three invented nodes that are to have models and data sets, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.gathered import (
    cache_of,
    manifest_path,
    sources_of,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest, to_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.planner import AssetsPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold

from tests.role_values import NODES, defaults

ROOT = "/srv/swarmspeed/lab/assets"
ROLE_VARS = defaults(
    assets_sources=[{"name": "net", "huggingface": {"repository": "team/net"}}],
    assets_cache="/cache",
    assets_huggingface_endpoint="https://hub.example",
    cluster_root="/srv/swarmspeed/lab",
)
CLUSTER: dict[str, Any] = {
    "hosts": list(NODES),
    "underlay": {"addresses": {name: f"10.0.0.{number}" for number, name in enumerate(NODES)}},
}
A, B, C = ("a" * 64, "b" * 64, "c" * 64)
NET = Manifest("hub.example/team/net", "0123456789abcdef", (("config.json", 10, A), ("weights/1.bin", 1 << 30, B)))
LACKING: dict[str, Any] = {"recorded": False, "there": False, "digest": "", "changed": [], "missing": [], "files": {}}
WHOLE: dict[str, Any] = {
    "recorded": True,
    "there": True,
    "digest": NET.digest,
    "changed": [],
    "missing": [],
    "files": {},
}


def host(
    found: Mapping[str, Any] | None = None, free: int = 1 << 40, kind: str = "ext4", came: int = 0
) -> dict[str, Any]:
    """Return the facts of a host; ``found`` is what it has of the model."""
    part = {"root": ROOT, "free_bytes": free, "filesystem": kind, "incoming_bytes": came, "recorded": []}
    return {"assets": {**part, "found": {"net": dict(LACKING if found is None else found)}}}


def plan(*hosts: Mapping[str, Any], manifest: Manifest = NET, **desired: Any) -> Plan:
    """Return the plan of these hosts; of those that are not given, all is as wanted."""
    facts = {name: hosts[number] if number < len(hosts) else host(WHOLE) for number, name in enumerate(NODES)}
    role_vars = {**ROLE_VARS, **desired}
    files = {
        f"text:{manifest_path(cache_of(role_vars), source)}": to_text(manifest) for source in sources_of(role_vars)
    }
    return fold([AssetsPlanner()], facts, dict.fromkeys(NODES, role_vars), Inputs(CLUSTER, files))


def task_input(made: Plan, name: str) -> Mapping[str, Any]:
    return made.task_inputs[name]["assets"]
