# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the playbook is going to ask of the hosts, as preflight has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import (
    PreflightError,
    mapping,
    number,
    texts,
    whole,
)

DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
SSH_PORT = 2222
MAX_CLOCK_OFFSET = 30.0
"""Seconds."""
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
MIN_FREE_VARIABLE = "preflight_min_free_gib"


@dataclass(frozen=True)
class Need:
    """Free space wanted at a path; ``variable`` sets it.

    A host that has the image ``unless_image`` or the file ``unless_file`` needs none.
    """

    size: int
    variable: str = MIN_FREE_VARIABLE
    unless_image: str | None = None
    unless_file: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What the playbook is going to ask of the hosts.

    ``managers`` are in inventory order; ``containers`` names the training container of each host.
    """

    cluster_name: str
    network_mode: str = "overlay"
    runtime: str = "container"
    managers: tuple[str, ...] = ()
    overlay_subnet: str | None = None
    overlay_network: str = ""
    swarm_leave_foreign: bool = False
    swarm_adopt: bool = False
    min_free: Mapping[str, Need] = field(default_factory=dict)
    image_present: str | None = None
    ssh_port: int = SSH_PORT
    max_clock_offset: float = MAX_CLOCK_OFFSET
    containers: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DISTRIBUTIONS)
    launch: Mapping[str, Any] = field(default_factory=dict)
    driver: Mapping[str, Any] = field(default_factory=dict)
    overlay: Mapping[str, Any] = field(default_factory=dict)
    underlay: Mapping[str, Any] = field(default_factory=dict)
    swarm: Mapping[str, Any] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    docker: Mapping[str, Any] = field(default_factory=dict)
    nccl_env: Mapping[str, Any] = field(default_factory=dict)
    socket_interfaces: Mapping[str, Any] = field(default_factory=dict)
    toolkit: Mapping[str, Any] = field(default_factory=dict)
    bundle: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)


def parse_wanted(given: Mapping[str, Any]) -> Wanted:
    """Read the argument ``wanted``; what is left out, null or empty has its default. Raises ``PreflightError``."""
    unknown = sorted(str(name) for name in given if name not in _READERS)
    if unknown:
        raise PreflightError(f"wanted: {', '.join(unknown)} is not known. Remedy: see the documentation of preflight.")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == "":
            continue
        key, kind, read = _READERS[name]
        result = read(value)
        if result is None:
            raise PreflightError(f"wanted.{name}: {value!r} is not {kind}. Remedy: correct the task's argument.")
        values[key] = result
    if "cluster_name" not in values:
        raise PreflightError("wanted.cluster_name is missing. Remedy: give the cluster's name.")
    return Wanted(**values)


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) and str(value) else None


def _hosts(value: Any) -> tuple[str, ...] | None:
    return tuple(texts(value)) if isinstance(value, (list, tuple)) else None


def _flag(value: Any) -> bool | None:
    # The command line (-e swarm_adopt=true) and INI inventories give text.
    return _WORDS.get(str(value).strip().lower()) if isinstance(value, (bool, str)) else None


def _seconds(value: Any) -> float | None:
    try:
        found = number(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None
    return found if found is not None and found > 0 else None


def _containers(value: Any) -> dict[str, str] | None:
    return {str(host): str(name) for host, name in value.items()} if isinstance(value, Mapping) else None


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def _distributions(value: Any) -> dict[str, tuple[str, ...]] | None:
    return (
        {str(name): tuple(texts(releases)) for name, releases in value.items()} if isinstance(value, Mapping) else None
    )


def _needs(value: Any) -> dict[str, Need] | None:
    if not isinstance(value, Mapping):
        return None
    needs: dict[str, Need] = {}
    for path, entry in value.items():
        more = mapping(entry)
        size = whole(more.get("bytes") if more else entry)
        if size is None:
            return None
        needs[str(path)] = Need(
            size,
            str(more.get("variable") or MIN_FREE_VARIABLE),
            _text(more.get("unless_image")),
            _text(more.get("unless_file")),
        )
    return needs


_READERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "cluster_name": ("cluster_name", "a name", _text),
    "network_mode": ("network_mode", "a network mode", _text),
    "runtime": ("runtime", "container or host", lambda value: value if value in ("container", "host") else None),
    "managers": ("managers", "a list of hosts", _hosts),
    "overlay_network": ("overlay_network", "the name of a network", _text),
    "overlay_subnet": ("overlay_subnet", "a subnet", lambda value: value if isinstance(value, str) else None),
    "swarm_leave_foreign": ("swarm_leave_foreign", "true or false", _flag),
    "swarm_adopt": ("swarm_adopt", "true or false", _flag),
    "min_free_bytes": (
        "min_free",
        "a mapping of path to bytes (or to bytes, variable, unless_image and unless_file)",
        _needs,
    ),
    "image_present": ("image_present", "the name of an image", _text),
    "ssh_port": ("ssh_port", "a port number", whole),
    "max_clock_offset": ("max_clock_offset", "a number of seconds above 0", _seconds),
    "containers": ("containers", "a mapping of host to container name", _containers),
    "launch": ("launch", "a mapping of hosts, include, exclude, ds_config and shrink", _mapping),
    "socket_interfaces": ("socket_interfaces", "a mapping of setting to a mapping of host to interfaces", _mapping),
    "host": ("host", "a mapping of host to what the plan refuses of it", _mapping),
    "docker": ("docker", "a mapping of host to what the plan refuses of its engine", _mapping),
    "nccl_env": ("nccl_env", "a mapping of host to what the plan refuses of NCCL's settings", _mapping),
    "toolkit": ("toolkit", "a mapping of host to what the plan refuses of its container toolkit", _mapping),
    "driver": ("driver", "a mapping of host to what the plan refuses of its driver", _mapping),
    "overlay": ("overlay", "a mapping of mtu, encrypted, recreate and planned", _mapping),
    "underlay": ("underlay", "a mapping of mtu and interfaces", _mapping),
    "swarm": ("swarm", "a mapping of data_path_port, default_address_pool, addresses and removed_nodes", _mapping),
    "bundle": ("bundle", "a mapping of systems, accelerator and accelerator_made_for", _mapping),
    "versions": ("versions", "a mapping of problems and more, as cluster_facts returns it", _mapping),
    "distributions": ("distributions", "a mapping of distribution to releases", _distributions),
}
