# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What surrounds the servers: the proxy of their environment or the controller's, network file systems. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..core.kinds import KINDS

ENVIRONMENT = "/etc/environment"
MOUNTS = "/proc/mounts"
MACHINE_ID = "/etc/machine-id"
READ = (ENVIRONMENT, MOUNTS, MACHINE_ID)
"""Files of a server whose text init reads."""

_PROXIES = ("https_proxy", "http_proxy")
_EXCEPTION = re.compile(r"[A-Za-z0-9*_.:-]+(?:/[0-9]+)?")
"""What ``cluster_no_proxy`` takes (roles/preflight/meta/constraints.yml)."""
_OWN = frozenset({"localhost", "127.0.0.1", "127.0.0.0/8", "::1"})
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "lustre", "ceph", "gpfs", "beegfs", "glusterfs", "cifs"})


@dataclass(frozen=True)
class Proxy:
    """``url`` may hold a password; ``source`` says where it was found, ``note`` what was left out."""

    url: str = ""
    exceptions: tuple[str, ...] = ()
    source: str = ""
    note: str = ""

    @property
    def secret(self) -> bool:
        return bool(self.url) and urlsplit(self.url).password is not None


def parse_environment(text: str) -> dict[str, str]:
    """Return the variables in /etc/environment, as pam_env(8) reads it."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*?)\s*", line)
        if match:
            found[match[1]] = re.sub(r"""^(["'])(.*)\1$""", r"\2", match[2])
    return found


def choose_proxy(environments: Mapping[str, Mapping[str, str]]) -> Proxy:
    """Return the proxy of the first environment that has one: those of the servers, then the controller's."""
    found: dict[str, Proxy] = {}
    left_out = []
    for source, variables in environments.items():
        url, exceptions = _named(variables, _PROXIES), _exceptions(_named(variables, ("no_proxy",)))
        if not url:
            continue
        url = url if "://" in url else f"http://{url}"
        # Ansible would take braces as a template: a server must not have the controller run anything.
        if not KINDS["proxy_url"].accepts(url) or _is_local(url) or re.search("[{}]", url):
            left_out.append(f"The proxy in the environment of {source} is not one that the servers can use.")
        else:
            found[source] = Proxy(url.rstrip("/"), exceptions, source)
    if not found:
        return Proxy(note=" ".join(left_out))
    source, proxy = next(iter(found.items()))
    others = [name for name, other in found.items() if other.url != proxy.url]
    differ = [f"{', '.join(others)}: another proxy than on {source}, whose proxy is used."] if others else []
    return Proxy(proxy.url, proxy.exceptions, source, " ".join([*left_out, *differ]))


def _named(variables: Mapping[str, str], names: Sequence[str]) -> str:
    return next((variables[key] for name in names for key in (name, name.upper()) if variables.get(key)), "")


def _exceptions(text: str) -> tuple[str, ...]:
    entries = dict.fromkeys(re.split(r"[,\s]+", text.strip()))
    return tuple(entry for entry in entries if _EXCEPTION.fullmatch(entry) and entry not in _OWN)


def _is_local(url: str) -> bool:
    return (urlsplit(url).hostname or "") in _OWN


def shared_mounts(tables: Sequence[str]) -> list[str]:
    """Return where all servers mount the same network file system; ``tables`` are their /proc/mounts."""
    mounted = []
    for table in tables:
        rows = [line.split() for line in table.splitlines()]
        mounted.append({(row[0], row[1]): None for row in rows if len(row) > 2 and row[2] in _NETWORK_FILE_SYSTEMS})
    common = [row for row in (mounted[0] if mounted else ()) if all(row in others for others in mounted)]
    return [path for dummy, path in common if re.fullmatch(r"/[\w./+@-]*", path)]
