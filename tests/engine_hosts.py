# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts with and without a Docker engine, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import (
    PACKAGES,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import (
    KEY_FILE,
    DockerPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold

from tests.role_values import defaults

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
INPUTS = Inputs(files={KEY_FILE: KEY, "/ca.pem": "-----BEGIN CERTIFICATE-----\n"}, digest_key="k" * 40)
ROLE_VARS = defaults(
    docker_repository_url="https://mirror.example.com/linux",
)
PYTHON = {"python3-docker": "5.0", "python3-requests": "2.28"}
DEBIAN = {**PYTHON, "docker.io": "20.10.24+dfsg1-1+deb12u1"}
CE = {
    **PYTHON,
    "docker-ce": "5:27.5.1-1~debian.12~bookworm",
    "docker-ce-cli": "5:27.5.1-1~debian.12~bookworm",
    "containerd.io": "1.7.25-1",
    "docker-buildx-plugin": "0.20.0-1",
}
ENGINE = ["docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin"]


def host(packages: Mapping[str, str] | None = None, *running: str, **changed: Any) -> dict[str, Any]:
    """The facts of a host with these packages, on which these containers run; ``changed`` replaces sections."""
    there = {**dict.fromkeys(PACKAGES), **(packages or {})}
    installed = bool(there["docker.io"] or there["docker-ce"])
    return {
        "system": {"distribution": "debian", "codename": "bookworm"},
        "packages": there,
        "held": [],
        "files": {},
        "groups": {"docker": []},
        "accounts": {"ada": True, "bob": True},
        "engine": {"config_exists": False, "config": {}, "problem": None, "unit": None},
        "docker": {
            "installed": installed,
            "running": installed,
            "version": "20.10.24" if installed else None,
            "containers": {name: {"state": "running"} for name in running},
        },
        **changed,
    }


def plan(facts: Mapping[str, Any], inputs: Inputs = INPUTS, **desired: Any) -> Plan:
    return fold([DockerPlanner()], {"gpu1": facts}, {"gpu1": {**ROLE_VARS, **desired}}, inputs)


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(change.action, change.what) for change in made.changes]


def task_input(made: Plan) -> Mapping[str, Any]:
    return made.task_inputs["gpu1"]["docker"]
