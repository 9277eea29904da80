# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads a node. Nothing here writes; one ``dpkg-query`` is the only command besides those of the gpu and fabric parts."""

from __future__ import annotations

import grp
import json
import os
import platform
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._engine_io import Engine, EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._node import (
    container_facts,
    image_facts,
    managed_block,
    network_facts,
    parse_dpkg,
    parse_meminfo,
    parse_os_release,
    parse_sockets,
    sha256,
    swarm_facts,
)

COMMAND_TIMEOUT = 20
"""Seconds."""


def read_text(path: str) -> str:
    """Return a file's text, empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def system_facts() -> dict[str, Any]:
    """Return distribution, kernel, memory, processors and the clock."""
    return {
        **parse_os_release(read_text("/etc/os-release")),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "cpus": os.cpu_count() or 1,
        "memory_bytes": parse_meminfo(read_text("/proc/meminfo")),
        "hostname": socket.gethostname(),
        "systemd": Path("/run/systemd/system").is_dir(),
        "time": time.time(),
    }


def disk_facts(paths: list[str]) -> dict[str, dict[str, int]]:
    """Return free and total bytes where each path is, or will be: of its nearest existing parent."""
    found: dict[str, dict[str, int]] = {}
    for path in paths:
        place = Path(path)
        while not place.exists() and place != place.parent:
            place = place.parent
        usage = shutil.disk_usage(place)
        found[path] = {"free_bytes": usage.free, "total_bytes": usage.total}
    return found


def package_facts(names: list[str]) -> dict[str, str | None]:
    """Return the installed version of each package, or None."""
    if not names or not shutil.which("dpkg-query"):
        return dict.fromkeys(names)
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${db:Status-Abbrev}\t${Version}\n", *names],
        capture_output=True,
        text=True,
        check=False,  # it exits 1 when one of the names is not known, and still lists the others
        timeout=COMMAND_TIMEOUT,
    )
    return parse_dpkg(answer.stdout, names)


def file_facts(path: str, *, content: bool, block: str | None) -> dict[str, Any]:
    """Return existence, SHA-256, mode and owner of a file, a directory, or the managed block inside a file."""
    absent = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
    try:
        status = os.stat(path)
    except OSError:
        return absent
    facts = {
        "exists": True,
        "sha256": None,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "owner": status.st_uid,
        "group": status.st_gid,
    }
    if not stat.S_ISREG(status.st_mode):
        return facts
    data = Path(path).read_bytes()
    if block is not None:
        inside = managed_block(data.decode("utf-8", "replace"), block)
        if inside is None:
            return absent
        data = inside.encode()
    facts["sha256"] = sha256(data)
    if content:
        facts["content"] = data.decode("utf-8", "replace")
    return facts


def tree_digests(root: str, relative_paths: list[str]) -> dict[str, str | None]:
    """Return the SHA-256 of each of these files below root, None where it is missing."""
    digests: dict[str, str | None] = {}
    for relative in relative_paths:
        try:
            digests[relative] = sha256(Path(root, relative).read_bytes())
        except OSError:
            digests[relative] = None
    return digests


def group_facts(names: list[str]) -> dict[str, list[str] | None]:
    """Return the members of each Unix group, None where it does not exist."""
    members: dict[str, list[str] | None] = {}
    for name in names:
        try:
            members[name] = sorted(grp.getgrnam(name).gr_mem)
        except KeyError:
            members[name] = None
    return members


def sysctl_facts(names: list[str]) -> dict[str, str | None]:
    """Return kernel parameters as text, None where the kernel has none of that name."""
    found: dict[str, str | None] = {}
    for name in names:
        text = " ".join(read_text("/proc/sys/" + name.replace(".", "/")).split())
        found[name] = text or None
    return found


def job_facts(folder: str | None) -> dict[str, str]:
    """Return the last written state of each job below a folder, by name."""
    if not folder or not Path(folder).is_dir():
        return {}
    states: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*/state.json")):
        try:
            states[path.parent.name] = str(json.loads(path.read_text(encoding="utf-8")).get("state"))
        except (OSError, ValueError, AttributeError):
            states[path.parent.name] = "unreadable"
    return states


def listening_facts() -> dict[str, list[int]]:
    """Return the ports on which something listens."""
    return {
        protocol: sorted(
            parse_sockets(read_text(f"/proc/net/{protocol}"), protocol)
            | parse_sockets(read_text(f"/proc/net/{protocol}6"), protocol)
        )
        for protocol in ("tcp", "udp")
    }


def docker_facts(engine: Engine) -> dict[str, Any]:
    """Return the engine's state; an engine that is absent or stopped is a fact, not an error."""
    facts: dict[str, Any] = {
        "installed": shutil.which("dockerd") is not None,
        "running": False,
        "version": None,
        "root": "/var/lib/docker",
        "error": None,
        "runtimes": [],
        "swarm": swarm_facts({}, None, None),
        "networks": {},
        "containers": {},
        "images": {},
    }
    try:
        info = engine.call("GET", "/info")
        manager = bool((info.get("Swarm") or {}).get("ControlAvailable"))
        facts.update(
            running=True,
            version=info.get("ServerVersion"),
            root=info.get("DockerRootDir"),
            runtimes=sorted(info.get("Runtimes") or {}),
            networks=network_facts(engine.call("GET", "/networks")),
            containers=container_facts(engine.call("GET", "/containers/json?all=1")),
            images=image_facts(engine.call("GET", "/images/json")),
            swarm=swarm_facts(
                info,
                engine.call("GET", "/swarm") if manager else None,
                engine.call("GET", "/nodes") if manager else None,
            ),
        )
    except EngineError as error:
        # A manager without quorum answers /info but not /nodes: what was read so far stays.
        facts["error"] = str(error)
    return facts
