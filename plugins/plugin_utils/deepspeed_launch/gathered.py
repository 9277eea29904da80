# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role deepspeed_launch needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered

ROLE = "deepspeed_launch"
# Not all that the role declares: what a job gets may name what is only known later, such as swarmspeed_cluster.
_VARIABLES = tuple(
    f"{ROLE}_{name}"
    for name in (
        "script",
        "integration",
        "config_argument",
        "launcher",
        "runtime",
        "include",
        "exclude",
        "ds_config_preset",
        "ds_config",
        "ds_config_precision",
        "ds_config_integration",
        "ds_config_model",
        "ds_config_script_keys",
        "vscode",
        "vscode_extensions",
    )
)
OF_THE_COMMAND = tuple(f"{ROLE}_{name}" for name in ("name", "args", "launcher_args", "environment"))
"""What VS Code's configuration is made of."""
OF_ASSETS = ("assets_sources", "assets_path", "assets_cache", "assets_huggingface_endpoint")
"""Where extensions of VS Code come from."""
_OPTIONAL = (
    *OF_THE_COMMAND,
    "cluster_name",
    "cluster_root",
    "cluster_network_mode",
    "workspace_path",
    # Where the script is on the controller.
    "workspace_source",
    "workspace_source_ref",
    "swarmspeed_source",
    "workspace_python_deepspeed_version",
    "training_image_source",
    "training_image_dockerfile",
    "training_image_deepspeed_version",
    "training_container_ulimits",
    *OF_ASSETS,
)
"""Of other roles: names and places, which DeepSpeed reads the configuration, how much memory it may lock, and files."""
LAUNCH_JSON = ".vscode/launch.json"


def workspace_of(wishes: Mapping[str, Any]) -> str:
    return str(wishes.get("workspace_path") or f"{wishes['cluster_root']}/workspace")


def on_hosts(wishes: Mapping[str, Any]) -> bool:
    """Whether ranks are processes of the hosts themselves."""
    return wishes.get("deepspeed_launch_runtime") == "host"


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
GATHERED = Gathered(_VARIABLES, _OPTIONAL, by_wishes=_by_wishes)
