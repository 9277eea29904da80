# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role docker needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.validation import check_type_list

from ..plan.gathered import Gathered

ROLE = "docker"
_LONGEST = 255
"""Characters of an account's name: useradd of Debian takes 32, a directory service more."""

_PACKAGES = (
    "docker.io",
    "docker-cli",
    "docker-buildx",
    "docker-ce",
    "docker-ce-cli",
    "containerd.io",
    "docker-buildx-plugin",
    "iptables",
    "python3-docker",
    "python3-requests",
)
_UNIT = "/etc/systemd/system/docker.service.d"
_FILES: tuple[dict[str, Any], ...] = (
    # Without content: these hold passwords, or nothing that a plan needs.
    {"path": _UNIT},
    {"path": f"{_UNIT}/swarmspeed-proxy.conf"},
    {"path": f"{_UNIT}/swarmspeed-proxy.env", "secret": True},
    {"path": f"{_UNIT}/swarmspeed-ca.conf"},
    {"path": "/etc/apt/sources.list.d/swarmspeed-docker.sources"},
    {"path": "/etc/apt/sources.list.d/docker.list"},
    {"path": "/etc/apt/sources.list.d/docker.sources"},
    {"path": "/etc/apt/apt.conf.d/52swarmspeed-docker", "content": True},
)


def _accounts(wishes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Ask which of the users there are. What no account can be called is not asked, and so does not exist."""
    try:
        users = [str(user) for user in check_type_list(wishes["docker_users"])]
    except TypeError:  # refused as such: the plan converts each variable to its type
        users = []
    return {"accounts": [user for user in users if user.isprintable() and len(user) <= _LONGEST]}


GATHERED = Gathered(_PACKAGES, _FILES, groups=("docker",), by_wishes=_accounts)
