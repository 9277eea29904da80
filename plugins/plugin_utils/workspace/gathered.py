# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role workspace needs gathered: every worker that gathers reads this."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.common.validation import check_type_list

from ...module_utils.job.code_places import CODE
from ..cluster.trees import code_digest, tree_manifest
from ..plan.controller import source_of
from ..plan.gathered import Gathered
from ..plan.owned import requested_folders
from ..plan.variables import VariableError

ROLE = "workspace"
RECORD = ".swarmspeed"
"""Lies in the environment and says what it was made from. Also how this role knows that the folder is its own."""


def record_path(environment: str) -> str:
    return f"{environment}/{RECORD}"


def apt_packages(python: str, further: list[str]) -> list[str]:
    """Return the Debian packages of an environment.

    DeepSpeed is published as source only, and its operators are compiled for the processor they are to run on.
    """
    return list(dict.fromkeys([python, f"{python}-venv", f"{python}-dev", "g++", "make", "numactl", *further]))


def ours(role_vars: Mapping[str, Any]) -> list[str]:
    """Return the folders of which it is recorded whether they are ours."""
    return [str(role_vars["cluster_root"]), str(role_vars["workspace_path"])]


def by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is gathered for a host's own variables. What is of another type is reported where it is planned."""
    source, environment = source_of(role_vars)[0], str(role_vars["workspace_python_environment"] or "")
    # Also without a source: containers can write there, and so no link below it is followed for any role's files.
    path = str(role_vars["workspace_path"])
    found: dict[str, Any] = {"trees": {path: {}}, "folders": requested_folders(role_vars, ours(role_vars))}
    if source:
        if not Path(source).is_dir():
            raise VariableError(f"workspace_source: {source} is not a directory on the controller")
        exclude = role_vars["workspace_exclude"]
        with contextlib.suppress(TypeError):
            exclude = [str(name) for name in check_type_list(exclude)]
        manifest = tree_manifest(source, exclude)
        tree = f"{CODE}/{code_digest(manifest, source)}"
        # Twice: in the workspace, for people, and where runs start from, which no later source changes.
        wanted = {**manifest, **{f"{tree}/{name}": digest for name, digest in manifest.items()}}
        found["trees"] = {path: wanted}
        found["code"] = path
        found["jobs"] = f"{role_vars['cluster_root']}/jobs"
        sizes = {name: Path(source, name).stat().st_size for name in manifest}
        found["tree_sizes"] = {path: {**sizes, **{f"{tree}/{name}": size for name, size in sizes.items()}}}
    if environment:
        found["files"] = [{"path": environment}, {"path": record_path(environment), "content": True}]
        found["jobs"] = f"{role_vars['cluster_root']}/jobs"
        with contextlib.suppress(TypeError):
            further = [str(name) for name in check_type_list(role_vars["workspace_apt_packages"])]
            found["packages"] = apt_packages(str(role_vars["workspace_python"]), further)
    return found


GATHERED = Gathered(by_role_vars=by_role_vars)
