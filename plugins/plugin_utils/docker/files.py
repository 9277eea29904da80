# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files that a host's Docker engine needs beside daemon.json: Docker's repository, and proxies for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.apt.pins import source_text
from .gathered import CA_PATH, DROPIN_FOLDER, DROPIN_PATH, PROXY_PATH, SOURCES_PATH, STALE_SOURCES
from .host import DOCKER, PROXY_NAMES, Host, Request


def managed_files(requested: Request, host: Host, exact: bool) -> list[dict[str, Any]]:
    """Return what ``managed_files`` keeps. The folder of drop-ins is named only where something goes into it."""
    proxy = proxy_environment(requested.proxy)
    sources = _sources(requested, host) if sources_wanted(requested, host, exact) else ""
    folder = {"path": DROPIN_FOLDER, "content": None, "mode": "0755"}
    # The unit's properties can be read by everybody, the file with the values by root alone.
    dropin = f"# Kept by swarmspeed.cluster (docker_proxy)\n[Service]\nEnvironmentFile={PROXY_PATH}\n"
    # The engine reads the host's authorities once, when it starts: another one is another unit.
    unit = f"# Kept by swarmspeed.cluster (host_ca_certificate)\n[Service]\nEnvironment=SWARMSPEED_CA={requested.ca}\n"
    return [
        *([folder] if proxy or requested.ca else []),
        _file(DROPIN_PATH, dropin, proxy),
        {**_file(PROXY_PATH, proxy, proxy), "mode": "0600", "secret": True},
        _file(CA_PATH, unit, requested.ca),
        _file(SOURCES_PATH, sources, sources),
        *(_file(path, "", "") for path in (STALE_SOURCES if sources else ())),
    ]


def _file(path: str, content: str, wanted: str) -> dict[str, Any]:
    return {"path": path, "content": content, "state": "present" if wanted else "absent"}


def proxy_environment(proxy: Mapping[str, Any]) -> str:
    """Return the lines of an EnvironmentFile: systemd.exec(5)."""
    lines = []
    for name, variable in PROXY_NAMES.items():
        value = str(proxy.get(name) or "")
        if value:
            for mark in '\\"$`':
                value = value.replace(mark, "\\" + mark)
            lines.append(f'{variable}="{value}"\n')
    return "".join(lines)


def sources_wanted(requested: Request, host: Host, exact: bool) -> bool:
    """Return whether Docker's repository is this role's: where it installs from there, and where it did before."""
    if requested.source != DOCKER or host.family in ("docker.io", "other"):
        return False
    there = host.part("files").get(SOURCES_PATH)
    ours = isinstance(there, Mapping) and there.get("exists") is True
    return ours or exact or host.family is None


def _sources(requested: Request, host: Host) -> str:
    distribution = str(host.part("system").get("distribution") or "")
    uri = f"{requested.repository_url.rstrip('/')}/{distribution}"
    return source_text("docker", uri, host.codename, ("stable",), requested.repository_key)
