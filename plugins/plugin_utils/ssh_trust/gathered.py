# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role ssh_trust needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered
from ..plan.owned import requested_folders

ROLE = "ssh_trust"
HOME = "/root/.ssh"
AUTHORIZED = f"{HOME}/authorized_keys"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub"
CONFIGURATIONS = "/etc/ssh/ssh_config.d"
"""Of the hosts' own ssh, where ``ssh_trust_hosts`` concerns it."""


def block_name(cluster: str) -> str:
    """Return the name of our block in root's ``authorized_keys``."""
    return f"swarmspeed {cluster}"


def configuration_path(cluster: str) -> str:
    return f"{CONFIGURATIONS}/swarmspeed-{cluster}.conf"


def _of_servers(role_vars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is gathered of servers without Docker; also what a run before has left there."""
    if role_vars["deepspeed_launch_runtime"] != "host":
        return []
    cluster = str(role_vars["cluster_name"])
    return [
        {"path": HOME},
        {"path": CONFIGURATIONS},
        {"path": AUTHORIZED, "block": block_name(cluster), "content": True},
        {"path": HOST_KEY, "content": True},
        {"path": configuration_path(cluster), "content": True},
    ]


def _by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    root = str(role_vars["cluster_root"])
    ssh = f"{root}/etc/ssh"
    public = ("id_ed25519.pub", "ssh_host_ed25519_key.pub", "authorized_keys", "known_hosts")
    return {
        "folders": requested_folders(role_vars, [root, f"{root}/etc"]),
        "files": [
            {"path": root},
            {"path": f"{root}/etc"},
            {"path": ssh},
            # Content only of what is public.
            {"path": f"{ssh}/id_ed25519", "secret": True},
            {"path": f"{ssh}/ssh_host_ed25519_key", "secret": True},
            *({"path": f"{ssh}/{name}", "content": True} for name in (*public, "ssh_config", "sshd_config")),
            *_of_servers(role_vars),
        ],
    }


GATHERED = Gathered(by_role_vars=_by_role_vars)
