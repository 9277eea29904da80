# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The state of a node: pure parsers that turn raw system text and engine answers into the facts of the roles."""

from __future__ import annotations

import fnmatch
import hashlib
import io
from typing import Any

BLOCK_BEGIN = "# BEGIN {0}"
BLOCK_END = "# END {0}"
"""The marks that ansible.builtin.blockinfile puts around a managed block, for ``marker: "# {mark} <name>"``."""

_TCP_LISTEN = "0A"
_UDP_BOUND = "07"


def parse_os_release(text: str) -> dict[str, str]:
    """Return ``distribution``, ``release`` and ``codename`` of an os-release file (format: os-release(5))."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith("#"):
            values[key] = value.strip().strip("\"'")
    return {
        "distribution": values.get("ID", "unknown").lower(),
        "release": values.get("VERSION_ID", ""),
        "codename": values.get("VERSION_CODENAME", ""),
    }


def parse_meminfo(text: str) -> int:
    """Return the total memory in bytes of /proc/meminfo (which counts in KiB), 0 when it does not say."""
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            parts = line.split()
            if len(parts) >= 2 and parts[1].isdigit():
                return int(parts[1]) * 1024
    return 0


def package_name(wanted: str) -> str:
    """Return what dpkg calls a package that apt-get(8) knows as ``name[:architecture][=version]``."""
    return wanted.partition("=")[0]


def parse_dpkg(text: str, wanted: list[str]) -> dict[str, str | None]:
    """Return the installed version of each wanted package, or None where it is not the one that is wanted.

    Lines are ``name<TAB>status<TAB>version<TAB>architecture``.
    """
    versions: dict[str, str | None] = dict.fromkeys(wanted)
    for line in text.splitlines():
        name, status, version, architecture = [field.strip() for field in [*line.split("\t"), "", "", ""][:4]]
        if status[1:2] == "i" and version:
            versions.update(dict.fromkeys((one for one in wanted if _is_it(one, name, architecture, version)), version))
    return versions


def _is_it(wanted: str, name: str, architecture: str, version: str) -> bool:
    requested, dummy, version_requested = wanted.partition("=")
    requested_name, dummy, requested_architecture = requested.partition(":")
    return (
        name == requested_name
        and (requested_architecture in ("", architecture) or architecture == "all")
        and fnmatch.fnmatchcase(version, version_requested or "*")
    )


def parse_sockets(text: str, protocol: str) -> dict[str, int]:
    """Return the local port of each listening (TCP) or bound (UDP) socket in a /proc/net/{tcp,udp}[6] table, by inode.

    Format: proc(5).
    """
    wanted = _TCP_LISTEN if protocol == "tcp" else _UDP_BOUND
    ports: dict[str, int] = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == wanted:
            try:
                ports[fields[9]] = int(fields[1].rpartition(":")[2], 16)
            except ValueError:
                continue
    return ports


def managed_block(text: str, name: str) -> str | None:
    """Return what stands between blockinfile's two marks of this name, without the marks, or None.

    Lines are what blockinfile takes for lines: they end with LF, CR or both. A mark ends with LF, and of
    several the last counts.
    """
    lines = list(io.StringIO(text, newline=""))
    places = [
        max((number for number, line in enumerate(lines) if line == mark.format(name) + "\n"), default=None)
        for mark in (BLOCK_BEGIN, BLOCK_END)
    ]
    begin, end = places
    if begin is None or end is None or end < begin:
        return None
    return "".join(lines[begin + 1 : end])


def sha256(data: bytes) -> str:
    """Return the SHA-256 of data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def swarm_facts(
    info: dict[str, Any],
    swarm: dict[str, Any] | None,
    nodes: list[dict[str, Any]] | None,
    attachments: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Shape GET /info, /swarm, /nodes and /tasks (of containers attached to networks). Join tokens are left behind."""
    raw = info.get("Swarm") or {}
    spec = (swarm or {}).get("Spec") or {}
    return {
        "state": raw.get("LocalNodeState") or "inactive",
        "error": raw.get("Error") or None,
        "node_id": raw.get("NodeID") or None,
        "node_addr": raw.get("NodeAddr") or None,
        "manager": bool(raw.get("ControlAvailable")),
        "cluster_id": (swarm or {}).get("ID"),
        "labels": spec.get("Labels") or {},
        "data_path_port": (swarm or {}).get("DataPathPort") or None,
        "default_addr_pool": (swarm or {}).get("DefaultAddrPool") or [],
        "nodes": [_swarm_node(node) for node in nodes or []],
        "attached": [_attached(task) for task in attachments or [] if _is_running(task)],
    }


def _is_running(task: dict[str, Any]) -> bool:
    return task.get("DesiredState") == "running" and (task.get("Status") or {}).get("State") == "running"


def _attached(task: dict[str, Any]) -> dict[str, Any]:
    attachment = (task.get("Spec") or {}).get("NetworkAttachmentSpec") or {}
    networks = ((entry.get("Network") or {}).get("Spec") or {} for entry in task.get("NetworksAttachments") or [])
    return {
        "container": attachment.get("ContainerID"),
        "node": task.get("NodeID"),
        "networks": [network["Name"] for network in networks if network.get("Name")],
    }


def _swarm_node(node: dict[str, Any]) -> dict[str, Any]:
    spec, status, manager = node.get("Spec") or {}, node.get("Status") or {}, node.get("ManagerStatus") or {}
    return {
        "id": node.get("ID"),
        "hostname": (node.get("Description") or {}).get("Hostname"),
        "role": spec.get("Role"),
        "availability": spec.get("Availability"),
        "state": status.get("State"),
        "addr": status.get("Addr"),
        "leader": bool(manager.get("Leader")),
        "reachability": manager.get("Reachability"),
    }


def network_facts(networks: list[dict[str, Any]]) -> dict[str, Any]:
    """Shape GET /networks by name."""
    return {
        network["Name"]: {
            "id": network.get("Id"),
            "driver": network.get("Driver"),
            "scope": network.get("Scope"),
            "attachable": bool(network.get("Attachable")),
            "subnets": [
                entry["Subnet"] for entry in (network.get("IPAM") or {}).get("Config") or [] if entry.get("Subnet")
            ],
            "options": network.get("Options") or {},
            "labels": network.get("Labels") or {},
        }
        for network in networks
    }


def container_facts(containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Shape GET /containers/json by name."""
    shaped: dict[str, Any] = {}
    for container in containers:
        networks = (container.get("NetworkSettings") or {}).get("Networks") or {}
        names = [name.lstrip("/") for name in container.get("Names") or [container.get("Id", "?")]]
        # "web/db" is not a name of its own but what the container web calls this one (a legacy link).
        shaped[next((name for name in names if "/" not in name), names[0])] = {
            "id": container.get("Id"),
            "state": container.get("State"),
            "image": container.get("Image"),
            "image_id": container.get("ImageID"),
            "labels": container.get("Labels") or {},
            "addresses": {name: (entry or {}).get("IPAddress") or None for name, entry in networks.items()},
        }
    return shaped


def image_facts(images: list[dict[str, Any]]) -> dict[str, str]:
    """Shape GET /images/json: every tag with the id it names."""
    return {tag: image["Id"] for image in images for tag in image.get("RepoTags") or [] if image.get("Id")}


def image_clusters(images: list[dict[str, Any]]) -> dict[str, str]:
    """Return the cluster that an image was built for, by each of its tags, where it has that label."""
    labelled = [(image, (image.get("Labels") or {}).get("swarmspeed.cluster")) for image in images]
    return {tag: str(cluster) for image, cluster in labelled if cluster for tag in image.get("RepoTags") or []}


def changed_files(wanted: dict[str, str], found: dict[str, str | None]) -> list[str]:
    """Return the relative paths whose SHA-256 is not the wanted one, sorted. Files beyond the wanted do not count."""
    return sorted(path for path, digest in wanted.items() if found.get(path) != digest)


def missing_files(found: dict[str, str | None]) -> list[str]:
    """Return the relative paths at which there is no file, sorted."""
    return sorted(path for path, digest in found.items() if digest is None)
