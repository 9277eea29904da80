# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Options of the container that most clusters leave alone: seccomp, PID mode, ports, devices and groups. Pure.

What is not set is no setting: a container that was made before an option existed stays as it is.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import TEXT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import mapping
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.gathered import DEVICE, DEVICES

SECCOMP, SECURITY_OPTS = "training_container_seccomp_profile", "training_container_security_opts"
PORTS = "training_container_published_ports"
GROUPS, PID_MODE = "training_container_groups", "training_container_pid_mode"
PREFIX = "seccomp="

_PORT = re.compile(r"(?:(\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.]+\]):)?(\d{1,5}):(\d{1,5})(?:/(?:tcp|udp|sctp))?", re.ASCII)
_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")


def profile_name(wishes: Mapping[str, Any]) -> str:
    """Return the profile as the plan reads it from the controller; empty where there is none."""
    path = str(wishes.get(SECCOMP) or "")
    return TEXT + path if path else ""


def seccomp_profile(wishes: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return the profile in one line, as the engine takes it; empty where there is none. Raises ``ValueError``."""
    name = profile_name(wishes)
    if not name:
        return ""
    try:
        found = json.loads(files.get(name, ""))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("defaultAction"), str):
        raise ValueError('it has no "defaultAction", and so is no profile of seccomp')
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def devices(wishes: Mapping[str, Any]) -> list[str]:
    """Return them as the engine's API takes them: on the host, in the container, and what is allowed there."""
    made = []
    for requested in wishes.get(DEVICES) or []:
        device = DEVICE.fullmatch(str(requested))
        if device:
            host, inside, allowed = device.groups()
            made.append(f"{host}:{inside or host}:{allowed or 'rwm'}")
    return made


def options(wishes: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """Return the settings that are set; of the profile its digest, as labels list the settings."""
    found = {
        "pid_mode": str(wishes.get(PID_MODE) or ""),
        "published_ports": [str(port) for port in wishes.get(PORTS) or []],
        "groups": [str(group) for group in wishes.get(GROUPS) or []],
        "seccomp": hashlib.sha256(profile.encode()).hexdigest() if profile else "",
    }
    return {name: value for name, value in found.items() if value}


def problems(
    wishes: Mapping[str, Any], facts: Mapping[str, Any], files: Mapping[str, str], network: str
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, each with its remedy. ``network``: the engine's name of the container's network."""
    try:
        profile = seccomp_profile(wishes, files)
    except ValueError as error:
        yield (
            f"{SECCOMP}: {wishes.get(SECCOMP)}: {error}",
            "name a profile such as moby's profiles/seccomp/default.json",
        )
    else:
        if profile and any(str(option).startswith(PREFIX) for option in wishes.get(SECURITY_OPTS) or []):
            yield f"{SECCOMP} and a {PREFIX}… in {SECURITY_OPTS} are both set", "leave one of them out"
    for port in wishes.get(PORTS) or []:
        if not _is_port(str(port)):
            yield (
                f"{PORTS}: {str(port)!r} is not [ADDRESS:]PORT:PORT[/PROTOCOL]",
                'write it in quotes, such as "127.0.0.1:8888:8888"',
            )
    if wishes.get(PORTS) and network == "host":
        yield (
            f"{PORTS}: with cluster_network_mode: host there is nothing to publish, as each port is the host's own",
            f"leave {PORTS} out",
        )
    known = mapping(facts.get("files"))
    for device in wishes.get(DEVICES) or []:
        parts = DEVICE.fullmatch(str(device))
        if not parts or ".." in str(device).split("/"):
            yield f"{DEVICES}: {str(device)!r} is not HOST[:CONTAINER[:rwm]]", "name it by its path, such as /dev/fuse"
        elif mapping(known.get(parts.group(1))).get("exists") is False:
            yield (
                f"{DEVICES}: there is no {parts.group(1)} on this host",
                "load the kernel module that makes it, or name other devices for this host",
            )
    for group in wishes.get(GROUPS) or []:
        if not _GROUP.fullmatch(str(group)):
            yield f"{GROUPS}: {str(group)!r} is neither the name nor the number of a group", "correct it"


def _is_port(port: str) -> bool:
    found = _PORT.fullmatch(port)
    if not found or not all(0 < int(number) < 65536 for number in found.groups()[1:]):
        return False
    try:
        ipaddress.ip_address((found.group(1) or "0.0.0.0").strip("[]"))
    except ValueError:
        return False
    return True
