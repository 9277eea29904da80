# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files of a job, as configured: hostfile, ds_config.json, and the configuration for VS Code. Pure.

What is compared is what the modules ``hostfile`` and ``ds_config`` compare, which write the first two.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.ds_config.build import Plan as Configuration
from ...module_utils.ds_config.build import Request, build
from ...module_utils.ds_config.facts import KNOWN_VERSIONS, NEWEST
from ...module_utils.ds_config.text import UnreadableError, parse, render, same, secrets, secrets_in_text
from ...module_utils.hostfile import text as hostfile
from ...module_utils.hostfile.filters import Plan as Launched
from ..core.values import mapping
from ..launch.command import Launch, command
from ..launch.vscode import vscode_launch
from ..plan.container import container_name
from ..plan.variables import changed
from .gathered import on_hosts
from .settled import BY_ENVIRONMENT

_MEMLOCK = re.compile("memlock:(-?[0-9]+)")
LOGIN = "/root/.ssh/environment"
"""Where the container's entry point writes what a login gets."""


class FileLeftError(Exception):
    """A file that the role did not write is in the place of the role's; the text says which, why, and what to do."""


@dataclass(frozen=True)
class Wanted:
    """A text file as configured; ``secret``: its text must not be shown."""

    path: str
    text: str
    secret: bool = False


def configured(role_vars: Mapping[str, Any]) -> bool:
    """Whether the script gets ds_config.json: who does not use DeepSpeed need not give it a batch size."""
    given = role_vars["deepspeed_launch_config_argument"] or role_vars.get(BY_ENVIRONMENT)
    return bool(role_vars["deepspeed_launch_script"] and given)


def wanted_hostfile(path: str, launched: Launched, found: str | None) -> Wanted:
    """Return the hostfile. One that DeepSpeed could not read is left alone."""
    if found and found.strip():
        try:
            hostfile.parse(found)
        except hostfile.HostfileError as error:
            raise FileLeftError(_left(path, "DeepSpeed hostfile", str(error))) from error
    return Wanted(path, hostfile.render(launched.hosts))


def request(role_vars: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the module ``ds_config`` is asked for, but for the world size and the user's own configuration.

    That one may hold secrets, and what this returns is printed with the plan.
    """
    release = "workspace_python_deepspeed_version" if on_hosts(role_vars) else "training_image_deepspeed_version"
    return {
        "preset": role_vars["deepspeed_launch_ds_config_preset"] or None,
        "precision": role_vars["deepspeed_launch_ds_config_precision"],
        "integration": role_vars["deepspeed_launch_ds_config_integration"],
        "deepspeed_version": str(role_vars[release] or NEWEST),
        "script_keys": role_vars["deepspeed_launch_ds_config_script_keys"],
        "model": role_vars["deepspeed_launch_ds_config_model"] or None,
        "gpus": cluster.get("gpus") or None,
        "host_memory": cluster.get("host_memory") or None,
        "memlock": _memlock(role_vars),
    }


def configuration(role_vars: Mapping[str, Any], cluster: Mapping[str, Any], launched: Launched) -> Configuration:
    """Return the wanted configuration of DeepSpeed, with what is wrong with it. It is left as it is."""
    given = {"config": role_vars["deepspeed_launch_ds_config"], "world_size": launched.world_size}
    return _built(json.dumps({**request(role_vars, cluster), **given}, default=str))


@functools.lru_cache(maxsize=64)
def _built(given: str) -> Configuration:
    """All hosts ask for the same, and a preset that is chosen by memory plans takes a while."""
    return build(Request(**json.loads(given)))


def wanted_ds_config(
    path: str, role_vars: Mapping[str, Any], cluster: Mapping[str, Any], launched: Launched, found: str | None
) -> Wanted:
    """Return ds_config.json. What means the same stays as it is written; what is not a configuration is left alone."""
    wanted = configuration(role_vars, cluster, launched).config
    secret = bool([*secrets(wanted), *secrets_in_text(found or "")])
    if found is not None:
        try:
            there = parse(found)
        except UnreadableError as error:
            raise FileLeftError(_left(path, "DeepSpeed configuration", str(error))) from error
        if same(there, wanted) or any(same(there, one) for one in _of_other_releases(role_vars, cluster, launched)):
            return Wanted(path, found, secret)
    return Wanted(path, render(wanted), secret)


def launch_json(
    path: str, role_vars: Mapping[str, Any], cluster: Mapping[str, Any], launched: Launched, found: str | None
) -> Wanted:
    """Return VS Code's launch.json with the job in it. Raises ``LaunchError`` where it can have none.

    By DeepSpeed's own launcher over ssh, whatever starts the job: one process to start, which starts all the others.
    """
    environment = role_vars["deepspeed_launch_environment"]
    started = command(
        Launch(
            launcher="deepspeed",
            transport="pdsh",
            script=role_vars["deepspeed_launch_script"],
            master=master(role_vars, cluster, launched),
            nodes=len(launched.chosen),
            etc="/etc/swarmspeed",
            args=[str(word) for word in role_vars["deepspeed_launch_args"]],
            launcher_args=[str(word) for word in role_vars["deepspeed_launch_launcher_args"]],
            include=launched.include,
            config_argument=role_vars["deepspeed_launch_config_argument"],
        )
    )
    name = f"swarmspeed: {role_vars['deepspeed_launch_name']}"
    return Wanted(path, vscode_launch(found, started, name, environment=environment, env_file=LOGIN))


def master(role_vars: Mapping[str, Any], cluster: Mapping[str, Any], launched: Launched) -> str:
    """Return by which name, or address, the node of rank 0 is reached."""
    if on_hosts(role_vars) or role_vars["cluster_network_mode"] == "host":
        return str(mapping(mapping(cluster.get("underlay")).get("addresses")).get(launched.first_host) or "")
    return container_name(str(role_vars["cluster_name"]), launched.first_host)


def _of_other_releases(
    role_vars: Mapping[str, Any], cluster: Mapping[str, Any], launched: Launched
) -> Sequence[dict[str, Any]]:
    """Return what other releases of DeepSpeed would be given, for an image whose release only its container knows."""
    ours = role_vars["training_image_source"] == "build" and not role_vars["training_image_dockerfile"]
    if ours or on_hosts(role_vars):
        return ()
    name = "training_image_deepspeed_version"
    plans = [configuration(changed(role_vars, {name: str(known)}), cluster, launched) for known in KNOWN_VERSIONS]
    return [one.config for one in plans if not one.errors]


def _memlock(role_vars: Mapping[str, Any]) -> int | None:
    """Return the limit of containers: without them the job's processes have what the host gives."""
    limits = [] if on_hosts(role_vars) else [str(limit) for limit in role_vars["training_container_ulimits"] or []]
    found = next((match[1] for limit in limits if (match := _MEMLOCK.match(limit))), None)
    return int(found) if found else None


def _left(path: str, kind: str, reason: str) -> str:
    return f"{path} is not a {kind}: {reason.rstrip('.')}"
