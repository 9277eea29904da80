# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role workspace: the code, and on servers without Docker the Python that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.common.untrusted_text import on_one_line
from ...module_utils.hostfile.text import HostsError
from ...module_utils.job.code_places import CODE
from ..core.problems import Problem
from ..core.values import mapping, texts
from ..plan.changes import Change, Changes, Inputs, RolePlan, Unknown
from ..plan.controller import NAMES, source_of
from ..plan.files import found_file
from ..plan.fold import Facts, RoleVars
from ..plan.managed_file import ManagedFile
from ..plan.owned import add_records, entries, ours_to_change, recorded, unrecorded
from ..plan.text import KNOWN_AFTER
from .environment import CUDA_SCRIPT, INCOMPLETE, Environment, environment, nodes
from .gathered import ROLE, apt_packages, ours, record_path
from .running import runs_apart, tolerated

NOTHING: dict[str, Any] = {
    "owned": [],
    "code": {},
    "packages": [],
    "environment": {},
    "nodes": [],
    "interpreter": "",
    "wanted": "",
    "made": False,
}
"""What the role's tasks read of a host on which there is nothing to do.

``owned`` are folders to record before anything is put into them.
``nodes`` are those that have an environment, ``interpreter`` is the Python of this one's, ``wanted`` the hash of what
goes in. ``made``: there is an environment, and it is this role's.
"""
LISTED = 20
"""Files that are listed by name, of those that are missing and of those that differ."""
_OTHER, _HALF = "made from other requirements", "half made"


@dataclass
class _Host:
    """What is found out about one host."""

    name: str
    facts: Mapping[str, Any]
    role_vars: Mapping[str, Any]
    changes: Changes
    refusals: list[Problem] = field(default_factory=list)
    task_input: dict[str, Any] = field(default_factory=lambda: dict(NOTHING))
    after: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> Mapping[str, Any]:
        return mapping(self.facts.get(name))

    def refuse(self, text: str, remedy: str) -> None:
        self.refusals.append(Problem(self.name, text, remedy))


class WorkspacePlanner:
    """Plans each host for itself; which of them need an environment follows from the cluster."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        if role_vars["workspace_python_environment"] and role_vars["workspace_python_wheelhouse"]:
            yield f"{NAMES}{role_vars['workspace_python_wheelhouse']}"
        if role_vars["workspace_python_environment"] and role_vars["workspace_python_compiler"]:
            yield CUDA_SCRIPT

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        hosts = [_Host(name, found, role_vars[name], Changes(ROLE, name)) for name, found in facts.items()]
        for host in hosts:
            _plan_records(host)
            others = len(host.changes.found)
            _plan_code(host)
            if runs_apart(facts.values(), host.role_vars):
                host.changes.found[others:] = tolerated(host.changes.found[others:])
            _plan_environment(host, inputs)
        changes: list[Change] = [change for host in hosts for change in host.changes.found]
        return RolePlan(
            changes,
            [refusal for host in hosts for refusal in host.refusals],
            task_inputs={host.name: host.task_input for host in hosts},
            facts={host.name: {**host.facts, **host.after} for host in hosts if host.changes.found},
        )


def _plan_records(host: _Host) -> None:
    """Record folders before code is put into them, and a workspace that is there, as a container mounts it."""
    sends = any(_differing(host))
    records = unrecorded(host.facts, ours(host.role_vars), there=not sends)
    add_records(host.changes, host.facts, records)
    host.task_input["owned"] = entries(records)
    if records:
        host.after["folders"] = recorded(host.facts, records)


def _differing(host: _Host) -> tuple[list[str], list[str]]:
    """Return the files of the source that are missing, and those that differ; none without a source."""
    path = str(host.role_vars["workspace_path"])
    if not source_of(host.role_vars)[0]:
        return [], []
    missing = texts(host.part("trees_missing").get(path))
    return missing, [name for name in texts(host.part("trees").get(path)) if name not in set(missing)]


def _plan_code(host: _Host) -> None:
    (source, name), path = source_of(host.role_vars), str(host.role_vars["workspace_path"])
    wrong, code = texts(host.part("trees").get(path)), host.part("code")
    trees = {name.split("/")[2] for name in wrong if name.startswith(f"{CODE}/") and name.count("/") > 2}
    readers, left = texts(code.get("readers")), texts(code.get("left"))
    # A job of an earlier release reads the workspace itself: until it has ended, no file changes there.
    copies = [] if readers else [name for name in wrong if not name.startswith(f"{CODE}/")]
    lost = [] if readers else left
    record = bool(copies or lost or code.get("recorded") is False) and not readers
    if not source or not (copies or lost or trees or record):
        return
    missing = set(texts(host.part("trees_missing").get(path)))
    _add_code(host, name, path, trees, missing)
    listed: set[str] = set()
    new = (
        ([one for one in copies if one in missing], None),
        ([one for one in copies if one not in missing], "different"),
    )
    for names, before in new:
        for file in names[:LISTED]:
            what = f"{path}/{on_one_line(file)}"
            if what not in listed:  # without what a terminal would obey, two names can look alike
                host.changes.add(what, before, f"as in {name}")
            listed.add(what)
        more = len(names) - len(names[:LISTED])
        if more:
            what = "different files" if before else "files"
            host.changes.add(f"{more} more {what} below {path}", before, f"as in {name}")
    for file in lost[:LISTED]:
        host.changes.add(f"{path}/{on_one_line(file)}", "copied from an earlier source", None, f"not in {name}")
    if lost[LISTED:]:
        more = len(lost) - LISTED
        host.changes.add(f"{more} further files below {path}", "copied from an earlier source", None, f"not in {name}")
    unneeded = texts(code.get("unneeded")) if trees or copies else []
    for digest in unneeded:
        host.changes.add(f"{path}/{CODE}/{digest}", "code of an earlier source", None, "no job was started from it")
    copied = mapping(code.get("copied"))
    host.task_input["code"] = {
        "folders": [
            {"path": item.path, "mode": item.mode}
            for item in ours_to_change(
                host.facts,
                [ManagedFile(str(host.role_vars["cluster_root"]), None, "0700"), ManagedFile(path, None, "0755")],
            )
        ],
        "source": source,
        "path": path,
        "archive": f"{host.role_vars['cluster_root']}/workspace.tar.gz",
        "trees": [f"{CODE}/{digest}" for digest in sorted(trees)],
        "copies": bool(copies),
        "record": record,
        # Names that runs do not see in the workspace: before it is changed, and afterwards.
        "kept": dict(mapping(code.get("kept"))),
        "copied": dict(copied),
        "absent": [
            *({"path": file, "sha256": str(copied.get(file) or "")} for file in lost),
            *({"path": f"{CODE}/{digest}"} for digest in unneeded),
        ],
    }
    # What a job of an earlier release reads stays as it is.
    stays = [name for name in wrong if readers and not name.startswith(f"{CODE}/")]
    host.after["trees"] = {**host.part("trees"), path: stays}
    host.after["trees_missing"] = {**host.part("trees_missing"), path: [one for one in stays if one in missing]}
    if code:
        unread = {} if readers else {"left": [], "copied": {}, "recorded": True}
        host.after["code"] = {**code, **unread, "unneeded": [] if trees or copies else texts(code.get("unneeded"))}


def _add_code(host: _Host, name: str, path: str, trees: set[str], missing: set[str]) -> None:
    for digest in sorted(trees):
        lies = [one for one in missing if one.startswith(f"{CODE}/{digest}/")]
        host.changes.add(
            f"{path}/{CODE}/{digest}", None if lies else "different", f"as in {name}", "for runs to start from"
        )


def _plan_environment(host: _Host, inputs: Inputs) -> None:
    path = str(host.role_vars["workspace_python_environment"] or "")
    if not path:
        return
    folder, record = (found_file(host.part("files"), name) for name in (path, record_path(path)))
    host.task_input["made"] = record.get("exists") is True
    if "accelerator" not in inputs.cluster:
        return  # what concerns all hosts is not known; preflight says why
    try:
        host.task_input["nodes"] = nodes(host.role_vars, inputs.cluster)
    except HostsError as error:
        remedy = "correct deepspeed_launch_include and deepspeed_launch_exclude"
        host.refuse(" ".join(str(error).split()).rstrip("."), remedy)
        return
    wanted = environment(host.role_vars, inputs)
    host.task_input["wanted"] = wanted.fingerprint
    if host.name not in host.task_input["nodes"]:
        return
    host.task_input["interpreter"] = wanted.interpreter
    _plan_packages(host, wanted)
    found = str(record.get("content") or "").strip()
    if found == wanted.fingerprint:
        return
    before: str | None = _HALF if found == INCOMPLETE else _OTHER
    if not host.task_input["made"]:
        before = None
        if folder.get("exists") is True:
            host.refuse(
                f"{path} already exists and was not created by this role; it would be emptied",
                "choose another workspace_python_environment, or leave it empty and name the existing environment in "
                "deepspeed_launch_path",
            )
    running = [job for job, state in host.part("jobs").items() if state in ("starting", "running")]
    if running:
        host.refuse(f"{path} must be re-created, but job {', '.join(running)} runs", "wait for the job or stop it")
    host.changes.add(f"Python environment {path}", before, wanted.content)
    host.task_input["environment"] = wanted.task_input(mapping(host.facts.get("system")).get("cpus") or 1)
    host.after["files"] = {
        **host.part("files"),
        path: {**folder, "exists": True},
        record_path(path): {**record, "exists": True, "content": f"{wanted.fingerprint}\n"},
    }


def _plan_packages(host: _Host, wanted: Environment) -> None:
    installed = host.part("packages")
    requested = apt_packages(wanted.python, texts(host.role_vars["workspace_apt_packages"]))
    for name in requested:
        # training_image_apt_packages, of which it has its default, goes to apt-get in a build, which takes a release.
        if "/" in name:
            text = f"workspace_apt_packages: {name} has a release, which dpkg does not know of an installed package"
            host.refuse(text, "write the name alone, or name=version")
    host.task_input["packages"] = [name for name in requested if not installed.get(name)]
    for name in host.task_input["packages"]:
        host.changes.add(f"package {name}", None, Unknown("the version that apt chooses"), "for a Python environment")
    if host.task_input["packages"]:
        host.after["packages"] = {**installed, **dict.fromkeys(host.task_input["packages"], KNOWN_AFTER)}
