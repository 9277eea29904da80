# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Options of the container that Docker would refuse beside one another, or beside our own mounts. Pure.

What each may be by itself is its constraint's; what depends on a host (a device, a limit of its kernel) is seen there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ansible.module_utils.common.validation import check_type_list

from ..core.kinds import KINDS
from ..core.values import mapping
from .mounts import wrong_volumes

SECURITY_OPTS = "training_container_security_opts"
PORTS, GROUPS = "training_container_published_ports", "training_container_groups"
VOLUMES, SYSCTLS = "training_container_volumes", "training_container_sysctls"
NETWORK_MODE, IPC_MODE = "cluster_network_mode", "training_container_ipc_mode"
READ = (
    *(SECURITY_OPTS, PORTS, VOLUMES, SYSCTLS, NETWORK_MODE, IPC_MODE),
    *("cluster_root", "assets_sources", "assets_path", "deepspeed_launch_vscode_extensions"),
)
"""The variables that are read here."""

_SHARED = {NETWORK_MODE: ("net.",), IPC_MODE: ("kernel.", "fs.mqueue.")}
"""Which kernel parameters a container shares with the host, by the variable that says so."""
_PORT = re.compile(r"(?:(\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.]+\]):)?(\d{1,5}):(\d{1,5})(?:/(tcp|udp|sctp))?", re.ASCII)


class Wrong(NamedTuple):
    """What is wrong with a variable's value, and what to do."""

    variable: str
    text: str
    remedy: str


def entries(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a list as the argument spec converts it; nothing of what is none, which is refused as such."""
    value = values.get(name)
    try:
        return [str(item) for item in check_type_list(value)] if value else []
    except TypeError:
        return []


def wrong_values(values: Mapping[str, Any]) -> Iterator[Wrong]:
    """Yield what cannot work on any host, from a host's variables; one that is not known is not judged."""
    yield from _ports(values)
    for variable, beginnings in _SHARED.items():
        names = [str(name) for name in mapping(values.get(SYSCTLS)) if str(name).startswith(beginnings)]
        if names and values.get(variable) == "host":
            text = f"with {variable}: host {', '.join(names)} would be the host's own, which Docker refuses"
            yield Wrong(SYSCTLS, text, "set it in host_sysctls")
    for volume in wrong_volumes(entries(values, VOLUMES), values):
        yield Wrong(VOLUMES, *volume)


def _ports(values: Mapping[str, Any]) -> Iterator[Wrong]:
    published: list[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address | None, int, str]] = []
    ports = entries(values, PORTS)
    for port in ports:
        found = _PORT.fullmatch(port)
        if found and KINDS["published_port"].accepts(port):
            address = ipaddress.ip_address(found.group(1).strip("[]")) if found.group(1) else None
            published.append((port, address, int(found.group(2)), found.group(4) or "tcp"))
    for (one, first, *rest), (other, second, *others) in combinations(published, 2):
        if rest == others and _meet(first, second):
            text = f"{one!r} and {other!r} use the same port of the host"
            yield Wrong(PORTS, text, "publish one of them at another port")
    if ports and values.get(NETWORK_MODE) == "host":
        text = "with cluster_network_mode: host there is nothing to publish, as each port is the host's own"
        yield Wrong(PORTS, text, f"leave {PORTS} out")


def _meet(one: Any, other: Any) -> bool:
    """Whether who listens at one of these addresses keeps the other from doing so; None is every address."""
    if one is None or other is None or one == other:
        return True
    return bool(one.version == other.version and (one.is_unspecified or other.is_unspecified))
