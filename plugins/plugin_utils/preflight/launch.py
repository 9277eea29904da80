# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight can say of the job: that its hostfile and ds_config.json can be written, before anything is changed.

The modules of those names judge it again when they write; here a mistake is reported before an image is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ...module_utils.ds_config.build import Request, build
from ...module_utils.ds_config.facts import AUTO
from ...module_utils.hostfile import filters as hostfile_filters
from ...module_utils.hostfile.text import HostsError
from ...module_utils.job.shrink import refusal
from ..core.problems import Problem
from ..core.values import mapping

_PREFIX = "deepspeed_launch_ds_config"
_VARIABLES = {
    "preset": f"{_PREFIX}_preset",
    "precision": f"{_PREFIX}_precision",
    "integration": f"{_PREFIX}_integration",
    "model": f"{_PREFIX}_model",
    "script_keys": f"{_PREFIX}_script_keys",
    # found on the hosts: where they are missing, another preset is the remedy
    "gpus": f"{_PREFIX}_preset",
    "host_memory": f"{_PREFIX}_preset",
    "deepspeed_version": "training_image_deepspeed_version",
    "include": "deepspeed_launch_include",
    "exclude": "deepspeed_launch_exclude",
    "hosts": "gpu_slots",
}
"""Where the user wrote what a problem's path begins with; the keys of the configuration itself are in _PREFIX."""
_REQUEST = tuple(field.name for field in fields(Request))


def check_hostfile(launch: Mapping[str, Any]) -> Iterator[Problem]:
    """The hosts of the job and the filter over them make a hostfile and a launch."""
    if not launch:
        return
    try:
        hostfile_filters.plan(launch.get("hosts"), launch.get("include"), launch.get("exclude"))
    except HostsError as error:
        for problem in error.problems:
            variable = _variable(problem.path, "gpu_slots")
            yield Problem(variable, _words(problem.path, problem.message, variable), f"correct {variable}")


def check_ds_config(launch: Mapping[str, Any]) -> Iterator[Problem]:
    """DeepSpeed would take the configuration of the job."""
    request = mapping(launch.get("ds_config"))
    if not request:
        return
    given = {name: request[name] for name in _REQUEST if name in request}
    if given.get("preset") == AUTO and launch.get("gpus_known") is False:
        given["preset"] = "zero3"  # what the GPUs have is not known before their driver works: the rest is judged
    try:
        plan = hostfile_filters.plan(launch.get("hosts"), launch.get("include"), launch.get("exclude"))
        given["world_size"] = plan.world_size
    except HostsError:
        pass  # reported by check_hostfile
    for problem in build(Request(**given)).errors:
        variable = _variable(problem.path, _PREFIX)
        yield Problem(variable, _words(problem.path, problem.message, variable), f"correct {variable}")


def check_job_files(hosts: Mapping[str, Mapping[str, Any]], launch: Mapping[str, Any]) -> Iterator[Problem]:
    """What an earlier run of the job has left can be read on every host."""
    name = launch.get("name")
    for host, facts in hosts.items():
        if name and mapping(facts.get("jobs")).get(name) == "unreadable":
            yield Problem(
                host,
                f"the files of job {name} are damaged, so its outcome is unknown",
                f"ansible-playbook stop.yml -e deepspeed_launch_name={name}, which ends any process of it that still "
                "runs and puts its files aside",
            )


def check_shrink(launch: Mapping[str, Any]) -> Iterator[Problem]:
    """A job that may go on with fewer nodes is resumed, and its configuration allows it."""
    requested, name = mapping(launch.get("shrink")), "deepspeed_launch_shrink"
    if requested.get("wanted") is not True:
        return
    if requested.get("resume") != "auto":
        text = "is true, but a job is restarted only with deepspeed_launch_resume: auto"
        yield Problem(name, text, f"set deepspeed_launch_resume: auto, or {name}: false")
    if requested.get("by_environment") is True:
        text = "is true, but a script of Accelerate reads the cluster's ds_config.json, not the one for fewer nodes"
        remedy = f"name the script's argument for it in deepspeed_launch_config_argument, or set {name}: false"
        yield Problem(name, text, remedy)
    request = mapping(launch.get("ds_config"))
    given = {key: request[key] for key in _REQUEST if key in request}
    try:
        plan = hostfile_filters.plan(launch.get("hosts"), launch.get("include"), launch.get("exclude"))
    except HostsError:
        return  # reported by check_hostfile
    made = build(Request(**{**given, "world_size": plan.world_size})) if request else None
    if made is not None and made.errors:
        return  # reported by check_ds_config
    slots = [len(host.slots) for host in plan.chosen]
    text = refusal(made.config if made else None, slots, str(given.get("deepspeed_version") or ""))
    if text:
        words = f"is true, but the job could not continue with fewer nodes: {text.rstrip('.')}"
        yield Problem(name, words, f"correct {_PREFIX}, or set {name}: false")


def _variable(path: str, otherwise: str) -> str:
    return _VARIABLES.get(re.split(r"[.\[]", path, maxsplit=1)[0], otherwise)


def _words(path: str, message: str, variable: str) -> str:
    """The problem in a sentence of preflight's, without full stop; a path that says no more is left out."""
    # the options of the module are variables of the role here
    text = message.rstrip(".").replace("into script_keys", f"into {_VARIABLES['script_keys']}")
    text = text.replace("set integration", f"set {_VARIABLES['integration']}")
    return text if not path or _VARIABLES.get(path) == variable else f"{path}: {text}"
