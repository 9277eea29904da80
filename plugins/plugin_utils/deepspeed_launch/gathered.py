# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role deepspeed_launch needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered

ROLE = "deepspeed_launch"
OF_THE_COMMAND = tuple(f"{ROLE}_{name}" for name in ("name", "args", "launcher_args", "environment"))
"""What VS Code's configuration is made of."""
OF_ASSETS = ("assets_sources", "assets_path", "assets_cache", "assets_huggingface_endpoint")
"""Where extensions of VS Code come from."""
LAUNCH_JSON = ".vscode/launch.json"


def workspace_of(wishes: Mapping[str, Any]) -> str:
    return str(wishes["workspace_path"])


def on_hosts(wishes: Mapping[str, Any]) -> bool:
    """Whether ranks are processes of the hosts themselves."""
    return str(wishes["deepspeed_launch_runtime"]) == "host"


def vscode_of(wishes: Mapping[str, Any]) -> str:
    """Return where extensions of VS Code and the record of them are."""
    return f"{wishes['cluster_root']}/vscode"


def _by_wishes(wishes: Mapping[str, Any]) -> dict[str, Any]:
    etc, workspace = f"{wishes['cluster_root']}/etc", workspace_of(wishes)
    found: list[dict[str, Any]] = [
        {"path": f"{etc}/hostfile", "content": True},
        {"path": f"{etc}/ds_config.json", "content": True},
    ]
    if wishes["deepspeed_launch_vscode"]:
        found += [{"path": f"{workspace}/.vscode"}, {"path": f"{workspace}/{LAUNCH_JSON}", "content": True}]
    if wishes["deepspeed_launch_script"] and on_hosts(wishes):
        found.append({"path": f"{etc}/job_key"})
    return {"files": found, "vscode": vscode_of(wishes)}


# Containers are part of the facts anyway.
GATHERED = Gathered(by_wishes=_by_wishes)
