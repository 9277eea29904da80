# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files that a host's Docker engine needs beside daemon.json: Docker's repository, and proxies for the engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ...module_utils.apt.pins import source_text
from ...module_utils.common.digests import keyed_digest
from .host import (
    CA_PATH,
    DOCKER,
    DROPIN_FOLDER,
    DROPIN_PATH,
    PROXY_NAMES,
    PROXY_PATH,
    SOURCES_PATH,
    STALE_SOURCES,
    Host,
    Request,
)


def managed_files(requested: Request, host: Host, exact: bool) -> list[dict[str, Any]]:
    """Return what ``managed_files`` keeps. The folder of drop-ins is named only where something goes into it."""
    proxy = proxy_environment(requested.proxy)
    wanted = sources_wanted(requested, host, exact)
    sources = _sources(requested, host) if wanted else ""
    files: list[dict[str, Any]] = [{"path": DROPIN_FOLDER, "mode": "0755"}] if proxy or requested.ca else []
    files += [
        {
            # The unit's properties can be read by everybody, the file with the values by root alone.
            "path": DROPIN_PATH,
            "content": f"# Kept by swarmspeed.cluster (docker_proxy)\n[Service]\nEnvironmentFile={PROXY_PATH}\n",
            "state": "present" if proxy else "absent",
        },
        {
            "path": PROXY_PATH,
            "content": proxy,
            "mode": "0600",
            "secret": True,
            "state": "present" if proxy else "absent",
        },
        {
            # The engine reads the host's authorities once, when it starts: another one is another unit.
            "path": CA_PATH,
            "content": "# Kept by swarmspeed.cluster (host_ca_certificate)\n"
            f"[Service]\nEnvironment=SWARMSPEED_CA={requested.ca}\n",
            "state": "present" if requested.ca else "absent",
        },
        {"path": SOURCES_PATH, "content": sources, "state": "present" if wanted else "absent"},
    ]
    return files + [{"path": path, "content": "", "state": "absent"} for path in (STALE_SOURCES if wanted else ())]


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


def differs(entry: Mapping[str, Any], host: Host, key: str = "") -> bool:
    """Whether a file is another than the one that is kept; ``key`` is the one by which secret files were digested."""
    found = host.part("files").get(entry["path"])
    there = found if isinstance(found, Mapping) else {}
    if entry["state"] == "absent":
        return there.get("exists") is True
    content = entry["content"].encode()
    digest = keyed_digest(content, key) if there.get("keyed") else hashlib.sha256(content).hexdigest()
    return there.get("sha256") != digest
