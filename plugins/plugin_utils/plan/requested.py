# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the playbook is going to ask of the hosts, as preflight has to know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..core.problems import PreflightError
from ..core.values import mapping, texts, whole

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
    """What the playbook is going to ask of the hosts.

    ``managers`` are in inventory order; ``containers`` names the training container of each host. ``refused`` (by role
    and host) and ``consents`` (by variable and host) are what the plan stops at, as sentences.
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
    overlay: Mapping[str, Any] = field(default_factory=dict)
    underlay: Mapping[str, Any] = field(default_factory=dict)
    swarm: Mapping[str, Any] = field(default_factory=dict)
    socket_interfaces: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    consents: Mapping[str, Any] = field(default_factory=dict)
    bundle: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)


_MAPPINGS = (
    *("containers", "launch", "overlay", "underlay", "swarm", "socket_interfaces"),
    *("refused", "consents", "bundle", "versions", "min_free_bytes", "distributions"),
)
SPEC: dict[str, dict[str, Any]] = {
    "cluster_name": {"type": "str", "required": True},
    "network_mode": {"type": "str"},
    "runtime": {"type": "str", "choices": ["container", "host"]},
    "managers": {"type": "list", "elements": "str"},
    "overlay_network": {"type": "str"},
    "overlay_subnet": {"type": "str"},
    "swarm_leave_foreign": {"type": "bool"},
    "swarm_adopt": {"type": "bool"},
    "image_present": {"type": "str"},
    "ssh_port": {"type": "int"},
    "max_clock_offset": {"type": "float"},
    **{name: {"type": "dict"} for name in _MAPPINGS},
}
"""The argument ``wanted``, as Ansible validates it."""


def parse_requested(given: Mapping[str, Any]) -> Requested:
    """Read the argument ``wanted``; what is left out, null or empty has its default. Raises ``PreflightError``."""
    kept = {name: value for name, value in given.items() if value is not None and value != ""}
    checked = ArgumentSpecValidator(SPEC).validate(kept)
    if checked.error_messages:
        wrong = "; ".join(text.rstrip(".") for text in checked.error_messages)
        raise PreflightError(f"wanted: {wrong}. Remedy: see the documentation of preflight.")
    values = {name: checked.validated_parameters[name] for name in kept}
    if values.get("max_clock_offset", MAX_CLOCK_OFFSET) <= 0:
        raise PreflightError("wanted.max_clock_offset is not above 0. Remedy: give a number of seconds.")
    for name, read in _READERS.items():
        if name in values:
            values[name] = read(values[name])
    return Requested(min_free=values.pop("min_free_bytes", {}), **values)


def _distributions(value: Mapping[Any, Any]) -> dict[str, tuple[str, ...]]:
    return {str(name): tuple(texts(releases)) for name, releases in value.items()}


def _needs(value: Mapping[Any, Any]) -> dict[str, Need]:
    needs: dict[str, Need] = {}
    for path, entry in value.items():
        more = mapping(entry)
        size = whole(more.get("bytes") if more else entry)
        if size is None:
            raise PreflightError(
                f"wanted.min_free_bytes: {entry!r} of {path} is no number of bytes. Remedy: correct the task."
            )
        needs[str(path)] = Need(
            size,
            str(more.get("variable", MIN_FREE_VARIABLE)),
            more.get("unless_image") or None,
            more.get("unless_file") or None,
        )
    return needs


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "managers": tuple,
    "min_free_bytes": _needs,
    "distributions": _distributions,
}
