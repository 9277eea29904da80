# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nvidia_container_toolkit: facts and wishes in, changes and refusals out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.apt.pins import recorded
from ..core.problems import Problem
from ..docker.host import Host
from ..nvidia_driver.planner import applies
from ..plan.changes import Change, Inputs, RolePlan
from ..plan.files import differs
from ..plan.fold import Facts, Wishes
from .access import KEEP, RUNTIME
from .changes import owned, record, tests, toolkit_changes
from .gathered import PREFIX, RECORD_PATH, ROLE, SOURCES_PATH, UNIT_PATH
from .smoke import NOT_THERE, PROGRAM, UVM
from .toolkit import toolkit_plan

KEY_FILE = f"role:{ROLE}/files/nvidia-container-toolkit.asc"
"""The public key of NVIDIA's repository, which comes with the role."""
STAND_IN = "swarmspeed/gpu-smoke:host"
"""The image of the smoke test where there is no other: nvidia-smi of the host, and its own C library."""
NOTHING: dict[str, Any] = {
    "device_requests": [],
    "run_arguments": [],
    "preview": {},
    "files": [],
    "config": {},
    "restart": "if_idle",
    "swarm": False,
    "hook": False,
    "unit": False,
    "reload_units": False,
    "smoke": {},
    "hold": [],
    "record": "",
    "release": [],
    "recorded": [],
    "before": {},
    "image": "",
    "missing": [],
}
"""What the role's tasks read of a host on which there is nothing to do, and the containers of one without GPUs."""


class NvidiaContainerToolkitPlanner:
    """Plans each host for itself, with driver and engine as the roles before it leave them."""

    role = ROLE

    def files(self, wishes: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        yield KEY_FILE

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        acts: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            without_docker = wishes[host]["deepspeed_launch_runtime"] == "host"
            if without_docker or not applies(found, wishes[host], inputs):
                acts[host] = {**NOTHING, "recorded": recorded(Host(found).part("files"), RECORD_PATH)}
                continue
            requested = request(wishes[host], inputs)
            planned = toolkit_plan(found, requested)
            made, then = toolkit_changes(host, found, requested, planned, inputs.digest_key)
            changes += made
            refusals += [Problem(host, text, remedy) for text, remedy in planned["problems"]]
            acts[host] = act(Host(found), requested, planned, str(inputs.cluster.get("image") or ""), inputs.digest_key)
            if made:
                after[host] = then
        return RolePlan(changes, refusals, acts, after)


def request(wishes: Mapping[str, Any], inputs: Inputs) -> dict[str, Any]:
    """Return what is configured for a host's toolkit, in the form that ``toolkit_plan`` reads, and how it is tested."""
    own = {name.removeprefix(PREFIX): value for name, value in wishes.items() if name.startswith(PREFIX)}
    return {
        **own,
        "repository_key": own["repository_key"] or inputs.files.get(KEY_FILE, "").rstrip(),
        "engine_source": wishes["docker_source"],
        "engine_config": wishes["docker_daemon_config"],
        "restart": bool(wishes["docker_allow_restart"]),
        "swarm": wishes["cluster_network_mode"] == "overlay",
    }


def act(host: Host, requested: Mapping[str, Any], planned: Mapping[str, Any], image: str, key: str) -> dict[str, Any]:
    """Return what the role's tasks read. ``image`` is the training image's name."""
    known = host.part("files")
    different = [item.path for item in owned(planned) if differs(item, known, key)]
    images = host.part("docker").get("images")
    there = image if isinstance(images, Mapping) and image in images else ""
    done = {
        **NOTHING,
        "device_requests": planned["device_requests"],
        "run_arguments": planned["run_arguments"],
        "recorded": planned["recorded"],
        "image": there,
        "missing": planned["missing"],
    }
    if planned["problems"]:
        return done
    wanted = record(planned)
    installs = bool(planned["packages"])
    return {
        **done,
        "preview": _preview(requested, planned) if installs else {},
        "files": [entry for entry in planned["files"] if entry["path"] in different],
        "config": planned["config"] if planned["differing_keys"] else {},
        "restart": "always" if requested["restart"] else "if_idle",
        "swarm": requested["swarm"],
        # The engine looks for NVIDIA's hook only when it starts.
        "hook": planned["fresh"] and planned["mode"] == RUNTIME and requested["source"] != KEEP,
        "unit": requested["source"] != KEEP,
        "reload_units": UNIT_PATH in different,
        "smoke": _smoke(requested, planned, there) if tests(requested) else {},
        "hold": planned["unheld"],
        "record": planned["record"] if wanted and wanted.wanted and differs(wanted, known, key) else "",
        "release": planned["release"],
        "before": _before(requested, planned, installs),
    }


def _preview(requested: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of package_preview."""
    return {
        "packages": planned["packages"],
        "locked": planned["packages"],
        "version": planned["version"],
        "prefix": ROLE,
        "sources": planned["sources"],
        "address": requested["repository_url"],
        "without": [*planned["stale_sources"], SOURCES_PATH],
        "holds": planned["recorded"],
    }


def _smoke(requested: Mapping[str, Any], planned: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return the image in which the GPUs must be seen, whether it is made for that, and what is then recorded."""
    chosen = requested["smoke_image"] or image or STAND_IN
    return {
        "image": chosen,
        "makes_image": chosen == STAND_IN,
        "program": PROGRAM,
        "node": UVM,
        "not_there": list(NOT_THERE),
        "stamp": planned["stamp"],
    }


def _before(requested: Mapping[str, Any], planned: Mapping[str, Any], installs: bool) -> dict[str, Any]:
    """Return what the way back from a toolkit that does not work needs."""
    versions = planned["before"]
    return {
        "installs": installs,
        "names": planned["packages"],
        "packages": [f"{name}={version}" for name, version in versions.items()],
        "version": next(iter(versions.values()), ""),
        "held": planned["recorded"],
        "requested": requested["version"] or "it",
    }
