# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role training_container needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from ..deepspeed_launch.gathered import vscode_of
from ..plan.gathered import Gathered
from ..plan.owned import requested_folders
from ..plan.places import paths
from ..plan.volumes import volume_parts

ROLE = "training_container"
DEVICES = "training_container_devices"
DEVICE = re.compile(r"(/[^:\x00-\x20\x7f]+)(?::(/[^:\x00-\x20\x7f]+))?(?::([rwm]{1,3}))?")
"""A device: on the host, in the container, and what is allowed there."""


def workspace_of(role_vars: Mapping[str, Any]) -> str:
    return str(role_vars["workspace_path"])


def assets_of(role_vars: Mapping[str, Any]) -> str:
    """Return the folder of models and data sets; empty where there are none."""
    return str(role_vars["assets_path"] or f"{role_vars['cluster_root']}/assets") if role_vars["assets_sources"] else ""


def extensions_of(role_vars: Mapping[str, Any]) -> str:
    """Return the folder of VS Code's extensions; empty where there are none."""
    return f"{vscode_of(role_vars)}/extensions" if role_vars["deepspeed_launch_vscode_extensions"] else ""


def folders_of(role_vars: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders that must be there before a container mounts them, with their modes."""
    root = str(role_vars["cluster_root"])
    assets = {assets_of(role_vars): "0755"} if assets_of(role_vars) else {}
    extensions = {vscode_of(role_vars): "0700", extensions_of(role_vars): "0755"} if extensions_of(role_vars) else {}
    return {root: "0700", f"{root}/jobs": "0700", workspace_of(role_vars): "0755", **assets, **extensions}


def device_paths(role_vars: Mapping[str, Any]) -> list[str]:
    """Return the hosts' devices that are configured: facts say whether they are there."""
    found = (DEVICE.fullmatch(str(device)) for device in role_vars[DEVICES] or [])
    return [device.group(1) for device in found if device]


def volume_sources(role_vars: Mapping[str, Any]) -> list[str]:
    """Return the hosts' paths that are mounted, in normal form: facts say whether they are there."""
    sources = (volume_parts(str(volume))[0] for volume in role_vars["training_container_volumes"] or [])
    return list(dict.fromkeys(posixpath.normpath(source) for source in sources if source.startswith("/")))


def ours(role_vars: Mapping[str, Any]) -> list[str]:
    """Return the folders of which it is recorded whether they are ours."""
    return [str(role_vars["cluster_root"]), f"{role_vars['cluster_root']}/jobs", workspace_of(role_vars)]


def _by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    files = [{"path": path} for path in (*folders_of(role_vars), *device_paths(role_vars))]
    return {
        "files": files,
        "folders": requested_folders(
            role_vars, dict.fromkeys([*ours(role_vars), *paths(role_vars), *volume_sources(role_vars)])
        ),
    }


# Containers, images and jobs are part of the facts anyway.
GATHERED = Gathered(by_role_vars=_by_role_vars)
