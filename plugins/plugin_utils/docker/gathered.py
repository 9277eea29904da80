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

PYTHON_PACKAGES = ("python3-docker", "python3-requests")
"""What community.docker needs on a node."""
OF_DOCKER = ("docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin")
BUILDX = "docker-buildx"
"""The client's BuildKit, which builds the training image. 20.10 has it built in, and Debian 12 has no such package."""
PACKAGES = (*PYTHON_PACKAGES, *OF_DOCKER, "docker.io", "docker-cli", BUILDX, "iptables")
RECORD_PATH = "/etc/apt/apt.conf.d/52swarmspeed-docker"
SOURCES_PATH = "/etc/apt/sources.list.d/swarmspeed-docker.sources"
DROPIN_FOLDER = "/etc/systemd/system/docker.service.d"
DROPIN_PATH = f"{DROPIN_FOLDER}/swarmspeed-proxy.conf"
PROXY_PATH = f"{DROPIN_FOLDER}/swarmspeed-proxy.env"
CA_PATH = f"{DROPIN_FOLDER}/swarmspeed-ca.conf"
STALE_SOURCES = ("/etc/apt/sources.list.d/docker.list", "/etc/apt/sources.list.d/docker.sources")
"""Where Docker's own instructions put it; two sources with different keys for one address make every apt-get fail."""
_FILES: tuple[dict[str, Any], ...] = (
    # Without content: these hold passwords, or nothing that a plan needs.
    *({"path": path} for path in (DROPIN_FOLDER, DROPIN_PATH, CA_PATH, SOURCES_PATH, *STALE_SOURCES)),
    {"path": PROXY_PATH, "secret": True},
    {"path": RECORD_PATH, "content": True},
)


def _accounts(role_vars: Mapping[str, Any]) -> dict[str, list[str]]:
    """Ask which of the users there are. What no account can be called is not asked, and so does not exist."""
    try:
        users = [str(user) for user in check_type_list(role_vars["docker_users"])]
    except TypeError:  # refused as such: the plan converts each variable to its type
        users = []
    return {"accounts": [user for user in users if user.isprintable() and len(user) <= _LONGEST]}


GATHERED = Gathered(PACKAGES, _FILES, groups=("docker",), by_role_vars=_accounts)
