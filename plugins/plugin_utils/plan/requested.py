# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the variables ask of the cluster as a whole, for the checks on what was found on its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.values import mapping
from .container import container_name

DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
SSH_PORT = 2222
MAX_CLOCK_OFFSET = 30.0
"""Seconds."""
MIN_FREE_VARIABLE = "preflight_min_free_gib"


@dataclass(frozen=True)
class Need:
    """Free space wanted at a path; ``variable`` sets it, empty where none does.

    A host that has the image ``unless_image`` or the file ``unless_file`` needs none.
    """

    size: int
    variable: str = MIN_FREE_VARIABLE
    unless_image: str | None = None
    unless_file: str | None = None


@dataclass(frozen=True)
class Requested:
    """What the variables ask of the cluster.

    ``managers`` are in inventory order; ``containers`` names the training container of each host. ``refused`` (by role
    and host) and ``consents`` (by variable and host) are what the plan stops at.
    """

    cluster_name: str
    network_mode: str = "overlay"
    runtime: str = "container"
    managers: tuple[str, ...] = ()
    overlay_subnet: str | None = None
    overlay_network: str = ""
    swarm_allow_leave_foreign: bool = False
    swarm_allow_adopt: bool = False
    min_free: Mapping[str, Need] = field(default_factory=dict)
    image_present: str | None = None
    ssh_port: int = SSH_PORT
    max_clock_offset: float = MAX_CLOCK_OFFSET
    containers: Mapping[str, str] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)
    overlay: Mapping[str, Any] = field(default_factory=dict)
    underlay: Mapping[str, Any] = field(default_factory=dict)
    swarm: Mapping[str, Any] = field(default_factory=dict)
    socket_interfaces: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    consents: Mapping[str, Any] = field(default_factory=dict)
    bundle: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)


def requested_by(  # noqa: PLR0917 - what a run knows, each of another type
    variables: Mapping[str, Any],
    each: Mapping[str, Mapping[str, Any]],
    managers: Sequence[str],
    cluster: Mapping[str, Any],
    image: str,
    builds_image: bool,
) -> Requested:
    """Return what the variables ask of the cluster. ``variables`` are those of one host, typed; ``each``: of every
    host that was reached; ``cluster``: what cluster_facts found, empty where it could not."""
    underlay, name = mapping(cluster.get("underlay")), str(variables["cluster_name"])
    own = {host: given.get("swarm_advertise_address") for host, given in each.items()}
    addresses = {**mapping(underlay.get("addresses")), **{host: address for host, address in own.items() if address}}
    host_network = variables["cluster_network_mode"] == "host"
    return Requested(
        cluster_name=name,
        network_mode=str(variables["cluster_network_mode"]),
        runtime=str(variables["deepspeed_launch_runtime"]),
        managers=tuple(managers),
        overlay_subnet=variables["overlay_network_subnet"] or None,
        overlay_network=str(variables["overlay_network_name"]),
        swarm_allow_leave_foreign=variables["swarm_allow_leave_foreign"],
        swarm_allow_adopt=variables["swarm_allow_adopt"],
        image_present=(image or None) if variables["training_image_source"] == "present" else None,
        ssh_port=variables["ssh_trust_port"],
        max_clock_offset=variables["preflight_max_clock_offset"],
        containers={host: container_name(name, host) for host in each},
        overlay={
            "mtu": variables["overlay_network_mtu"],
            "encrypted": variables["overlay_network_encrypted"],
            "recreate": variables["overlay_network_allow_recreate"],
            "planned": mapping(cluster.get("overlay")),
        },
        underlay=underlay,
        swarm={
            "data_path_port": variables["swarm_data_path_port"],
            "default_address_pool": variables["swarm_default_address_pool"],
            "removed_nodes": variables["swarm_removed_nodes"],
            "addresses": addresses if cluster else {},
        },
        socket_interfaces=_socket_interfaces(each) if host_network else {},
        versions=mapping(cluster.get("versions")) if builds_image else {},
    )


def _socket_interfaces(each: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by setting and host the interfaces that the user names; the environment itself may hold tokens."""
    return {
        setting: {host: mapping(given.get(variable)).get(setting) or "" for host, given in each.items()}
        for variable, setting in (
            ("nccl_env_settings", "NCCL_SOCKET_IFNAME"),
            ("nccl_env_environment", "GLOO_SOCKET_IFNAME"),
        )
    }


def needs(space: Mapping[str, Any]) -> dict[str, Need]:
    """Read the free space needed by path: mappings of the fields of ``Need``, with ``bytes`` for its size."""
    return {
        path: Need(
            int(entry["bytes"]),
            str(entry.get("variable", MIN_FREE_VARIABLE)),
            entry.get("unless_image") or None,
            entry.get("unless_file") or None,
        )
        for path, entry in space.items()
    }
