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


def workspace_of(role_vars: Mapping[str, Any]) -> str:
    return str(role_vars["workspace_path"])


def on_hosts(role_vars: Mapping[str, Any]) -> bool:
    """Whether ranks are processes of the hosts themselves."""
    return str(role_vars["deepspeed_launch_runtime"]) == "host"


def vscode_of(role_vars: Mapping[str, Any]) -> str:
    """Return where extensions of VS Code and the record of them are."""
    return f"{role_vars['cluster_root']}/vscode"


def _by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    etc, workspace = f"{role_vars['cluster_root']}/etc", workspace_of(role_vars)
    found: list[dict[str, Any]] = [
        {"path": f"{etc}/hostfile", "content": True},
        {"path": f"{etc}/ds_config.json", "content": True},
    ]
    if role_vars["deepspeed_launch_vscode"]:
        found += [{"path": f"{workspace}/.vscode"}, {"path": f"{workspace}/{LAUNCH_JSON}", "content": True}]
    if role_vars["deepspeed_launch_script"] and on_hosts(role_vars):
        found.append({"path": f"{etc}/job_key"})
    return {"files": found, "vscode": vscode_of(role_vars)}


# Containers are part of the facts anyway.
GATHERED = Gathered(by_role_vars=_by_role_vars)
