# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role deepspeed_launch: the files of a job on every node.

Whether a job is started is decided by ``training_job`` on its first node, and is no change of the cluster.
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
from ..plan.fold import Facts, Wishes
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
    wishes: Mapping[str, Any]
    files: Mapping[str, Any]
    cluster: Mapping[str, Any]
    launched: Launched

    @property
    def etc(self) -> str:
        return f"{self.wishes['cluster_root']}/etc"

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

    def files(self, wishes: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        return [*extensions.manifests(wishes), *read_by_plan(wishes)]

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        acts: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            slots = inputs.cluster.get("slots")
            decided = integration(wishes[host], inputs.files)
            wished = settled(wishes[host], decided)
            acts[host] = {**NOTHING, "etc": f"{wished['cluster_root']}/etc", "slots": slots or {}}
            if not slots:  # what concerns all hosts is not known; preflight says why
                continue
            acts[host] = {**acts[host], **_passed(wished, decided)}
            if configured(wished):
                acts[host] = {**acts[host], "request": request(wished, inputs.cluster)}
            try:
                launched = launch_of(slots, wished["deepspeed_launch_include"], wished["deepspeed_launch_exclude"])
            except HostsError as error:
                refusals.append(Problem(host, " ".join(str(error).split()), "correct the variables of the job"))
                continue
            node = Node(host, wished, mapping(found.get("files")), inputs.cluster, launched)
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
                        acts[host] = {**acts[host], "launch_json": item.text}
                    else:
                        acts[host] = {**acts[host], "writes": [*acts[host]["writes"], PurePosixPath(item.path).name]}
            key = _key(node, facts)
            if key:
                collected.add(*key)
                left[key[0]] = _key_after(node, facts, key[0])
                acts[host] = {**acts[host], "share_key": True}
            act, unpacked = extensions.plan(collected, wished, found, inputs.files)
            acts[host] = {**acts[host], "ds_config": _masked(node), "extensions": act}
            # A job that runs has copies of these two.
            own = (f"{node.etc}/hostfile", f"{node.etc}/ds_config.json") if runs_apart(facts.values(), wished) else ()
            collected.found[:] = tolerated(collected.found, own)
            changes += collected.found
            if collected.found:
                after[host] = {**found, "files": left, "vscode": unpacked}
        if any(act["share_key"] for act in acts.values()):  # the first node reads it for the others
            acts = {host: {**act, "share_key": True} for host, act in acts.items()}
        return RolePlan(changes, refusals, acts, after)


def _passed(wishes: Mapping[str, Any], decided: Integration) -> dict[str, Any]:
    """Return what the role's tasks read of how the script gets its configuration."""
    return {
        "configured": configured(wishes),
        "config_argument": decided.argument,
        "by_environment": decided.environment,
        "integration": decided.sentence if wishes["deepspeed_launch_script"] else "",
        "arguments": mask_arguments(wishes.get("deepspeed_launch_args") or []),
    }


def _refused(node: Node, inputs: Inputs) -> Problem | None:
    """Return why nothing is written on a host: what is there is somebody else's, or cannot be had."""
    wishes = node.wishes
    both = conflict(
        wishes[ARGUMENT], configured(wishes), [str(word) for word in wishes.get("deepspeed_launch_args") or []]
    )
    if both:
        return Problem(node.host, both, _ONE_CONFIGURATION)
    try:
        for dummy in _wanted(node):
            pass
        extensions.digests(wishes, inputs.files)
    except extensions.ExtensionError as error:
        return Problem(node.host, *error.args)
    except FileLeftError as error:
        return Problem(node.host, f"{error}. It was left as it is", "correct or remove it")
    except LaunchError as error:
        return Problem(node.host, str(error).rstrip("."), "correct it, or set deepspeed_launch_vscode: false")
    if _edited(node) and (wishes["deepspeed_launch_launcher"] != "deepspeed" or on_hosts(wishes)):
        text = (
            "deepspeed_launch_vscode is for deepspeed_launch_launcher: deepspeed in containers, not for "
            f"{wishes['deepspeed_launch_launcher']} with deepspeed_launch_runtime: {wishes['deepspeed_launch_runtime']}"
        )
        return Problem(node.host, text, "set deepspeed_launch_vscode: false")
    return None


def _edited(node: Node) -> bool:
    """Whether a configuration for VS Code is kept here, and all that it is made of can be said."""
    wishes = node.wishes
    requested = wishes["deepspeed_launch_vscode"] and wishes["deepspeed_launch_script"] and node.first
    return bool(requested) and all(name in wishes for name in OF_THE_COMMAND)


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
    if configured(node.wishes) and _known(node, ds_config):
        # What is wrong with it preflight says, before anything is changed.
        if not configuration(node.wishes, node.cluster, node.launched).errors:
            yield wanted_ds_config(ds_config, node.wishes, node.cluster, node.launched, node.text_of(ds_config))
        elif node.cluster.get("gpus_known") is False:
            yield Wanted(ds_config, "")
    if _edited(node) and not on_hosts(node.wishes):
        path = f"{workspace_of(node.wishes)}/{LAUNCH_JSON}"
        yield launch_json(path, node.wishes, node.cluster, node.launched, node.text_of(path))


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
    if not (node.wishes["deepspeed_launch_script"] and on_hosts(node.wishes)):
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
    if not configured(node.wishes):
        return {}
    wanted = configuration(node.wishes, node.cluster, node.launched).config
    there = node.text_of(f"{node.etc}/ds_config.json") or ""
    hidden = {*secrets(node.wishes["deepspeed_launch_ds_config"]), *secrets_in_text(there)}
    masked: dict[str, Any] = remove_values(wanted, hidden)
    return masked
