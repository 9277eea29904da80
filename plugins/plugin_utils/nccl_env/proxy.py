# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The proxy of jobs, as variables of every rank's environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.values import mapping, texts
from ..plan.container import container_name

LOOPBACK = ("localhost", "127.0.0.0/8", "127.0.0.1", "::1")
"""Python's urllib compares texts: for it a subnet alone would not do."""


def proxy_environment(role_vars: Mapping[str, Any], cluster: Mapping[str, Any], subnet: str) -> dict[str, str]:
    """Return the variables; none without a proxy. Ranks reach each other, by whatever name, without it.

    In capitals only: programs that know both spellings prefer small letters, so that a user's own count. What the
    container's environment has is left out, as these would replace it.
    """
    proxy = str(role_vars["nccl_env_proxy"] or "")
    if not proxy:
        return {}
    hosts, underlay = texts(cluster.get("hosts")), mapping(cluster.get("underlay"))
    addresses = [str(address) for address in mapping(underlay.get("addresses")).values()]
    names = [name for host in hosts for name in (host, container_name(str(role_vars["cluster_name"]), host))]
    networks = [subnet, str(underlay.get("subnet") or "")]
    direct = [*LOOPBACK, *names, *addresses, *networks, *map(str, role_vars["cluster_no_proxy"])]
    found = {
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": ",".join(dict.fromkeys(part for part in direct if part)),
    }
    container = (
        {} if role_vars["deepspeed_launch_runtime"] == "host" else mapping(role_vars["training_container_environment"])
    )
    given = {str(name).upper() for name in container}
    return {name: value for name, value in found.items() if name not in given}
