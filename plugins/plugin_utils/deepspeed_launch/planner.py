# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role deepspeed_launch: the files of a job on every node.

Whether a job is started is decided by ``training_job`` on its first node, and is not a change of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ansible.module_utils.common.parameters import remove_values

from ...module_utils.common.secret_names import mask_arguments
from ...module_utils.ds_config.text import secrets, secrets_in_text
from ...module_utils.hostfile.filters import Plan as Launched
from ...module_utils.hostfile.filters import plan as launch_of
from ...module_utils.hostfile.text import HostsError
from ..core.problems import Problem
from ..core.values import mapping
from ..launch.command import LaunchError
from ..launch.integration import ARGUMENT_VARIABLE as ARGUMENT
from ..launch.integration import Integration, conflict
from ..plan.changes import Change, Changes, Inputs, RolePlan, Sealed, Unknown, sealed
from ..plan.files import add_file, differs, fact_after, found_file
from ..plan.fold import Facts, RoleVars
from ..plan.managed_file import ManagedFile
from ..workspace.running import runs_apart, tolerated
from . import extensions
from .files import (
    FileLeftError,
    Wanted,
    configuration,
    configured,
    launch_json,
    request,
    wanted_ds_config,
    wanted_hostfile,
)
from .gathered import LAUNCH_JSON, OF_THE_COMMAND, ROLE, on_hosts, workspace_of
from .settled import integration, read_by_plan, settled

NOTHING: dict[str, Any] = {
    "etc": "",
    "slots": {},
    "writes": [],
    "request": {},
    "configured": False,
    "config_argument": "",
    "by_environment": False,
    "integration": "",
    "arguments": [],
    "ds_config": {},
    "launch_json": "",
    "share_key": False,
    "extensions": {},
}
"""What the role's tasks read of a host of which nothing is known.

``writes`` names those of hostfile and ds_config.json that differ. ``request`` is what the module ``ds_config`` is asked
for, empty where the job gets no configuration; preflight checks the same. ``configured``: the script gets
ds_config.json, by ``config_argument`` or, with ``by_environment``, in the environment; ``integration`` says so;
``arguments`` are those of the script, with secrets masked.
``ds_config`` is the configuration as it would be, its secrets masked. ``launch_json`` is the text of VS Code's file
where it is to be written, ``extensions`` what the module ``vscode_extensions`` is given where those differ.
"""
_ONE_CONFIGURATION = "write it into deepspeed_launch_ds_config instead, or set deepspeed_launch_integration: none"
_GPUS = "the slots and GPUs that the hosts have"


@dataclass(frozen=True)
class Node:
    """A host, what is configured for it, and what the cluster says."""

    host: str
    role_vars: Mapping[str, Any]
    files: Mapping[str, Any]
    cluster: Mapping[str, Any]
    launched: Launched

    @property
    def etc(self) -> str:
        return f"{self.role_vars['cluster_root']}/etc"

    @property
    def first(self) -> bool:
        return self.host == self.launched.first_host

    def text_of(self, path: str) -> str | None:
        """Return the text of a file where it was gathered; None where there is none."""
        found = found_file(self.files, path)
        return str(found["content"]) if found.get("exists") is True and found.get("content") is not None else None


class DeepspeedLaunchPlanner:
    """Plans all hosts together: which take part, and with how many ranks, is the same for all of them."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        return [*extensions.manifests(role_vars), *read_by_plan(role_vars)]

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        task_inputs: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            slots = inputs.cluster.get("slots")
            decided = integration(role_vars[host], inputs.files)
            desired = settled(role_vars[host], decided)
            task_inputs[host] = {**NOTHING, "etc": f"{desired['cluster_root']}/etc", "slots": slots or {}}
            if not slots:  # what concerns all hosts is not known; preflight says why
                continue
            task_inputs[host] = {**task_inputs[host], **_passed(desired, decided)}
            if configured(desired):
                task_inputs[host] = {**task_inputs[host], "request": request(desired, inputs.cluster)}
            try:
                launched = launch_of(slots, desired["deepspeed_launch_include"], desired["deepspeed_launch_exclude"])
            except HostsError as error:
                refusals.append(Problem(host, " ".join(str(error).split()), "correct the variables of the job"))
                continue
            node = Node(host, desired, mapping(found.get("files")), inputs.cluster, launched)
            collected, left = Changes(ROLE, host), dict(node.files)
            problem = _refused(node, inputs)
            if problem:
                refusals.append(problem)
                continue
            for item in _wanted(node):
                owned = ManagedFile(item.path, item.text)
                if differs(owned, node.files, inputs.digest_key):
                    _add(collected, node, item, inputs.digest_key)
                    left[item.path] = {**fact_after(owned, inputs.digest_key), "content": item.text}
                    if item.path.endswith(LAUNCH_JSON):
                        task_inputs[host] = {**task_inputs[host], "launch_json": item.text}
                    else:
                        task_inputs[host] = {
                            **task_inputs[host],
                            "writes": [*task_inputs[host]["writes"], PurePosixPath(item.path).name],
                        }
            key = _key(node, facts)
            if key:
                collected.add(*key)
                left[key[0]] = _key_after(node, facts, key[0])
                task_inputs[host] = {**task_inputs[host], "share_key": True}
            task_input, unpacked = extensions.plan(collected, desired, found, inputs.files)
            task_inputs[host] = {**task_inputs[host], "ds_config": _masked(node), "extensions": task_input}
            # A job that runs has copies of these two.
            own = (f"{node.etc}/hostfile", f"{node.etc}/ds_config.json") if runs_apart(facts.values(), desired) else ()
            collected.found[:] = tolerated(collected.found, own)
            changes += collected.found
            if collected.found:
                after[host] = {**found, "files": left, "vscode": unpacked}
        if any(
            task_input["share_key"] for task_input in task_inputs.values()
        ):  # the first node reads it for the others
            task_inputs = {host: {**task_input, "share_key": True} for host, task_input in task_inputs.items()}
        return RolePlan(changes, refusals, task_inputs, after)


def _passed(role_vars: Mapping[str, Any], decided: Integration) -> dict[str, Any]:
    """Return what the role's tasks read of how the script gets its configuration."""
    return {
        "configured": configured(role_vars),
        "config_argument": decided.argument,
        "by_environment": decided.environment,
        "integration": decided.sentence if role_vars["deepspeed_launch_script"] else "",
        "arguments": mask_arguments(role_vars.get("deepspeed_launch_args") or []),
    }


def _refused(node: Node, inputs: Inputs) -> Problem | None:
    """Return why nothing is written on a host: what is there is somebody else's, or cannot be had."""
    role_vars = node.role_vars
    both = conflict(
        role_vars[ARGUMENT], configured(role_vars), [str(word) for word in role_vars.get("deepspeed_launch_args") or []]
    )
    if both:
        return Problem(node.host, both, _ONE_CONFIGURATION)
    try:
        for dummy in _wanted(node):
            pass
        extensions.digests(role_vars, inputs.files)
    except extensions.ExtensionError as error:
        return Problem(node.host, *error.args)
    except FileLeftError as error:
        return Problem(node.host, f"{error}. It was left as it is", "correct or remove it")
    except LaunchError as error:
        return Problem(node.host, str(error).rstrip("."), "correct it, or set deepspeed_launch_vscode: false")
    if _edited(node) and (role_vars["deepspeed_launch_launcher"] != "deepspeed" or on_hosts(role_vars)):
        text = (
            "deepspeed_launch_vscode is for deepspeed_launch_launcher: deepspeed in containers, not for "
            f"{role_vars['deepspeed_launch_launcher']} with deepspeed_launch_runtime: "
            f"{role_vars['deepspeed_launch_runtime']}"
        )
        return Problem(node.host, text, "set deepspeed_launch_vscode: false")
    return None


def _edited(node: Node) -> bool:
    """Whether a configuration for VS Code is kept here, and all that it is made of can be said."""
    role_vars = node.role_vars
    requested = role_vars["deepspeed_launch_vscode"] and role_vars["deepspeed_launch_script"] and node.first
    return bool(requested) and all(name in role_vars for name in OF_THE_COMMAND)


def _known(node: Node, path: str) -> bool:
    """Whether a file can be compared: without a driver that works, neither slots nor GPUs of the hosts are known.

    One that is there is then left to the plan that is made once they are.
    """
    return node.cluster.get("gpus_known") is not False or found_file(node.files, path).get("exists") is not True


def _wanted(node: Node) -> Iterator[Wanted]:
    """Yield the files as configured, as far as that is known."""
    hostfile, ds_config = f"{node.etc}/hostfile", f"{node.etc}/ds_config.json"
    if _known(node, hostfile):
        yield wanted_hostfile(hostfile, node.launched, node.text_of(hostfile))
    if configured(node.role_vars) and _known(node, ds_config):
        # What is wrong with it preflight says, before anything is changed.
        if not configuration(node.role_vars, node.cluster, node.launched).errors:
            yield wanted_ds_config(ds_config, node.role_vars, node.cluster, node.launched, node.text_of(ds_config))
        elif node.cluster.get("gpus_known") is False:
            yield Wanted(ds_config, "")
    if _edited(node) and not on_hosts(node.role_vars):
        path = f"{workspace_of(node.role_vars)}/{LAUNCH_JSON}"
        yield launch_json(path, node.role_vars, node.cluster, node.launched, node.text_of(path))


def _add(changes: Changes, node: Node, item: Wanted, key: str) -> None:
    found = node.text_of(item.path)
    if node.cluster.get("gpus_known") is False and not item.path.endswith(LAUNCH_JSON):
        changes.add(item.path, None, Unknown(_GPUS))
    elif item.secret and found != item.text:
        changes.add(item.path, None if found is None else sealed(found, key), sealed(item.text, key))
    else:
        add_file(changes, ManagedFile(item.path, item.text), node.files, key)


def _key(node: Node, facts: Facts) -> tuple[str, Any, Any, str] | None:
    """Return the change of the key by which the parts of a job know one another where no key of ssh is shared."""
    if not (node.role_vars["deepspeed_launch_script"] and on_hosts(node.role_vars)):
        return None
    path, first = f"{node.etc}/job_key", mapping(facts.get(node.launched.first_host))
    here, there = found_file(node.files, path), found_file(mapping(first.get("files")), path)
    before = Sealed(str(here.get("sha256"))) if here.get("exists") is True else None
    if there.get("exists") is not True:
        return path, before, Unknown(f"a key that {node.launched.first_host} generates"), "no key is shared yet"
    if before is None or here.get("sha256") != there.get("sha256"):
        return path, before, Sealed(str(there.get("sha256"))), f"the key of {node.launched.first_host}"
    return (path, f"mode {here.get('mode')}", "mode 0600", "") if here.get("mode") != "0600" else None


def _key_after(node: Node, facts: Facts, path: str) -> dict[str, Any]:
    there = found_file(mapping(mapping(facts.get(node.launched.first_host)).get("files")), path)
    digest = there.get("sha256") if there.get("exists") is True else "(known after apply)"
    return {"exists": True, "sha256": digest, "mode": "0600", "owner": 0, "group": 0}


def _masked(node: Node) -> dict[str, Any]:
    """Return the configuration as the module ``ds_config`` returns it; empty where there is none."""
    if not configured(node.role_vars):
        return {}
    wanted = configuration(node.role_vars, node.cluster, node.launched).config
    there = node.text_of(f"{node.etc}/ds_config.json") or ""
    hidden = {*secrets(node.role_vars["deepspeed_launch_ds_config"]), *secrets_in_text(there)}
    masked: dict[str, Any] = remove_values(wanted, hidden)
    return masked
