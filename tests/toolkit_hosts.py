# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts with GPUs and an engine, with and without the container toolkit, and the plan for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import engine_settings
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    PACKAGES,
    RECORD_PATH,
    SPEC_PATH,
    STAMP_PATH,
    UNIT_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.planner import (
    KEY_FILE,
    NvidiaContainerToolkitPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.toolkit import (
    toolkit_plan,
    unit_text,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import fact_after
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile

from tests.role_values import defaults

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n"
REQUEST = {"version": "1.18.2", "repository_url": "https://m.example.com/deb", "repository_key": KEY}
INSTALLED = dict.fromkeys(PACKAGES, "1.18.2-1")
CDI_INFO = {"CDISpecDirs": ["/etc/cdi"], "CgroupDriver": "systemd"}
CUDA = Inputs({"accelerator": "cuda", "image": "train:1"}, {KEY_FILE: KEY}, "k" * 40)
ROLE_VARS = defaults(
    nvidia_container_toolkit_repository_url="https://m.example.com/deb",
)


def node(version: str = "26.1.5+dfsg1-9", packages: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A host with this engine and nothing of the toolkit."""
    docker = {
        "installed": True,
        "running": True,
        "version": version,
        "runtimes": ["runc"],
        "containers": {},
        "images": {},
        "settings": engine_settings({"CgroupDriver": "systemd"}),
    }
    return {
        "system": {"distribution": "debian", "codename": "trixie", "architecture": "x86_64"},
        "packages": {**dict.fromkeys(PACKAGES), "docker.io": version, **(packages or {})},
        "held": [],
        "files": {},
        "jobs": {},
        "gpu": {
            "present": True,
            "pci_devices": [{"address": "0000:3b:00.0", "driver": "nvidia", "generation": "Hopper"}],
            "driver": {"version": "580.95"},
        },
        "engine": {"config": more.pop("config", {}), "unit": None, "problem": None},
        "docker": {**docker, **more.pop("docker", {})},
        **more,
    }


def kept(path: str, text: str) -> dict[str, Any]:
    """What is gathered of a file of the role that is as it was written."""
    return {**fact_after(ManagedFile(path, text), ""), "content": text}


def done(**more: Any) -> dict[str, Any]:
    """A host on which nothing is left to do, by CDI."""
    first = plan(node(packages=INSTALLED))
    files = {
        SPEC_PATH: fact_after(ManagedFile(SPEC_PATH, "devices\n"), ""),
        UNIT_PATH: kept(UNIT_PATH, unit_text("cdi")),
        RECORD_PATH: kept(RECORD_PATH, first["record"]),
        STAMP_PATH: kept(STAMP_PATH, first["stamp"]),
    }
    settings_ = engine_settings(CDI_INFO)
    return node(
        packages=more.pop("packages", INSTALLED),
        held=more.pop("held", list(PACKAGES)),
        files={**files, **more.pop("files", {})},
        config=more.pop("config", {"features": {"cdi": True}}),
        docker={"settings": settings_, **more.pop("docker", {})},
        **more,
    )


def plan(facts: dict[str, Any], **request: Any) -> dict[str, Any]:
    found = toolkit_plan(facts, {**REQUEST, **request})
    return {**found, "problems": [f"{text}. Remedy: {remedy}" for text, remedy in found["problems"]]}


def planned(facts: Mapping[str, Any], inputs: Inputs = CUDA, **requested: Any) -> Plan:
    """Return the plan of the role; ``requested`` are its variables without its prefix, and others with theirs."""
    prefix = "nvidia_container_toolkit_"
    named = {prefix + name if prefix + name in ROLE_VARS else name: value for name, value in requested.items()}
    return fold([NvidiaContainerToolkitPlanner()], {"gpu1": facts}, {"gpu1": {**ROLE_VARS, **named}}, inputs)


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(change.action, change.what) for change in made.changes]


def task_input(made: Plan) -> Mapping[str, Any]:
    return made.task_inputs["gpu1"]["nvidia_container_toolkit"]
