# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)


"""What the role host needs gathered, and the paths of its files."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.common.validation import check_type_dict, check_type_list

from ..plan.gathered import Gathered
from .firewall_rules import SCRIPT_PATH, UNIT_PATH, policy_path

ROLE = "host"

APT_PROXY = "/etc/apt/apt.conf.d/80swarmspeed-proxy"
EXCLUSIONS = "/etc/apt/apt.conf.d/52swarmspeed"
MIRROR = "/etc/apt/sources.list.d/swarmspeed-mirror.sources"
PIP_FOLDER = "/etc/xdg/pip"
PIP = f"{PIP_FOLDER}/pip.conf"
PIP_MARK = "Kept by swarmspeed.cluster"
"""In the first line of pip's file, as its path is not ours alone."""
GIT_PROXY = "/etc/swarmspeed-git-proxy.conf"
GIT, GIT_OF_ROOT = "/etc/gitconfig", "/root/.gitconfig"
CA_FOLDER = "/usr/local/share/ca-certificates"
CA = f"{CA_FOLDER}/swarmspeed.crt"
CA_LINK = "/etc/ssl/certs/swarmspeed.pem"
"""Where update-ca-certificates puts it."""
HOSTS = "/etc/hosts"
LIMITS = "/etc/security/limits.d/80-swarmspeed.conf"
SYSCTLS = "/etc/sysctl.d/80-swarmspeed.conf"

_FILES: tuple[dict[str, Any], ...] = (
    # A proxy's address often holds a password.
    {"path": APT_PROXY, "secret": True},
    {"path": EXCLUSIONS, "content": True},
    {"path": MIRROR, "content": True},
    {"path": PIP_FOLDER},
    {"path": PIP, "mark": PIP_MARK, "secret": True},
    {"path": GIT_PROXY, "secret": True},
    {"path": CA_FOLDER},
    {"path": CA},
    {"path": CA_LINK},
    {"path": LIMITS, "content": True},
    {"path": SYSCTLS, "content": True},
    {"path": SCRIPT_PATH, "content": True},
    {"path": UNIT_PATH, "content": True},
)


def cluster_name(role_vars: Mapping[str, Any]) -> str:
    return str(role_vars["cluster_name"] or "swarmspeed")


def block_name(role_vars: Mapping[str, Any]) -> str:
    """Return the name of our blocks in files that are somebody else's."""
    return f"swarmspeed {cluster_name(role_vars)}"


def by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return what is gathered for a host's own variables. What is of another type is reported where it is planned."""
    found: dict[str, Sequence[Any]] = {
        "files": [
            *({"path": path, "block": block_name(role_vars), "content": True} for path in (GIT, GIT_OF_ROOT, HOSTS)),
            {"path": policy_path(cluster_name(role_vars)), "content": True},
        ]
    }
    with contextlib.suppress(TypeError):
        found["packages"] = [str(name) for name in check_type_list(role_vars["host_packages"])]
    with contextlib.suppress(TypeError):
        found["sysctls"] = [str(name) for name in check_type_dict(role_vars["host_sysctls"])]
    return found


GATHERED = Gathered(files=_FILES, by_role_vars=by_role_vars)
