# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role training_container needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..deepspeed_launch.gathered import vscode_of
from ..plan.gathered import Gathered
from ..plan.owned import requested_folders
from ..plan.places import paths

ROLE = "training_container"
DEVICES = "training_container_devices"
DEVICE = re.compile(r"(/[^:\x00-\x20\x7f]+)(?::(/[^:\x00-\x20\x7f]+))?(?::(r?w?m?))?")
"""A device: on the host, in the container, and what is allowed there."""


def workspace_of(wishes: Mapping[str, Any]) -> str:
    return str(wishes["workspace_path"])


def assets_of(wishes: Mapping[str, Any]) -> str:
    """Return the folder of models and data sets; empty where there are none."""
    return str(wishes["assets_path"] or f"{wishes['cluster_root']}/assets") if wishes["assets_sources"] else ""


def extensions_of(wishes: Mapping[str, Any]) -> str:
    """Return the folder of VS Code's extensions; empty where there are none."""
    return f"{vscode_of(wishes)}/extensions" if wishes["deepspeed_launch_vscode_extensions"] else ""


def folders_of(wishes: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders that must be there before a container mounts them, with their modes."""
    root = str(wishes["cluster_root"])
    assets = {assets_of(wishes): "0755"} if assets_of(wishes) else {}
    extensions = {vscode_of(wishes): "0700", extensions_of(wishes): "0755"} if extensions_of(wishes) else {}
    return {root: "0700", f"{root}/jobs": "0700", workspace_of(wishes): "0755", **assets, **extensions}


def device_paths(wishes: Mapping[str, Any]) -> list[str]:
    """Return the hosts' devices that are configured: facts say whether they are there."""
    found = (DEVICE.fullmatch(str(device)) for device in wishes[DEVICES] or [])
    return [device.group(1) for device in found if device]


def ours(wishes: Mapping[str, Any]) -> list[str]:
    """Return the folders of which it is recorded whether they are ours."""
    return [str(wishes["cluster_root"]), f"{wishes['cluster_root']}/jobs", workspace_of(wishes)]


def _by_wishes(wishes: Mapping[str, Any]) -> dict[str, Any]:
    files = [{"path": path} for path in (*folders_of(wishes), *device_paths(wishes))]
    return {"files": files, "folders": requested_folders(wishes, dict.fromkeys([*ours(wishes), *paths(wishes)]))}


# Containers, images and jobs are part of the facts anyway.
GATHERED = Gathered(by_wishes=_by_wishes)
