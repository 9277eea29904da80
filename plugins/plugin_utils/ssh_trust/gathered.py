# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role ssh_trust needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import Gathered

ROLE = "ssh_trust"
_VARIABLES = ("ssh_trust_port", "ssh_trust_port_forwarding")
_OPTIONAL = ("cluster_name", "cluster_root", "cluster_network_mode", "deepspeed_launch_runtime")


def _files(wishes: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    root = str(wishes["cluster_root"])
    ssh = f"{root}/etc/ssh"
    public = ("id_ed25519.pub", "ssh_host_ed25519_key.pub", "authorized_keys", "known_hosts")
    return {
        "files": [
            {"path": root},
            {"path": f"{root}/etc"},
            {"path": ssh},
            # Content only of what is public.
            {"path": f"{ssh}/id_ed25519", "secret": True},
            {"path": f"{ssh}/ssh_host_ed25519_key", "secret": True},
            *({"path": f"{ssh}/{name}", "content": True} for name in (*public, "ssh_config", "sshd_config")),
        ]
    }


GATHERED = Gathered(_VARIABLES, _OPTIONAL, by_wishes=_files)
