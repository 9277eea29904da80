# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Options of the container that most clusters leave alone: seccomp, PID mode, ports, devices and groups. Pure.

What is not set is not a setting: a container that was made before an option existed stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.common.text.formatters import human_to_bytes

from ...module_utils.owned.system_folders import is_below
from ..core.values import mapping
from ..nccl_env.ranges import as_text
from ..plan.controller import TEXT
from ..plan.owned import is_absent
from .gathered import DEVICE, DEVICES, folders_of, volume_sources
from .values import GROUPS, PORTS, SECURITY_OPTS, SYSCTLS, VOLUMES, Wrong, entries, wrong_values

SHM_SIZE = "training_container_shm_size"
_MADE_BY_ROLES = ("/dev", "/run", "/var/run", "/var/lib/docker", "/etc/ssl/certs")
"""What is below these may come with the driver, the engine, or a certificate that role host installs."""
SECCOMP, PID_MODE = "training_container_seccomp_profile", "training_container_pid_mode"
PREFIX = "seccomp="


def profile_name(role_vars: Mapping[str, Any]) -> str:
    """Return the profile as the plan reads it from the controller; empty where there is none."""
    path = str(role_vars[SECCOMP] or "")
    return TEXT + path if path else ""


def seccomp_profile(role_vars: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return the profile in one line, as the engine takes it; empty where there is none. Raises ``ValueError``."""
    name = profile_name(role_vars)
    if not name:
        return ""
    try:
        found = json.loads(files.get(name, ""))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("defaultAction"), str):
        raise ValueError('it has no "defaultAction", so it is not a seccomp profile')
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def devices(role_vars: Mapping[str, Any]) -> list[str]:
    """Return them as the engine's API takes them: on the host, in the container, and what is allowed there."""
    made = []
    for requested in role_vars[DEVICES] or []:
        device = DEVICE.fullmatch(str(requested))
        if device:
            host, inside, allowed = device.groups()
            made.append(f"{host}:{inside or host}:{allowed or 'rwm'}")
    return made


def options(role_vars: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """Return the settings that are set; of the profile its digest, as labels list the settings."""
    found = {
        "pid_mode": str(role_vars[PID_MODE] or ""),
        "published_ports": [str(port) for port in role_vars[PORTS] or []],
        "groups": [str(group) for group in role_vars[GROUPS] or []],
        "sysctls": {str(name): as_text(value) for name, value in mapping(role_vars[SYSCTLS]).items()},
        "seccomp": hashlib.sha256(profile.encode()).hexdigest() if profile else "",
    }
    return {name: value for name, value in found.items() if value}


def problems(
    role_vars: Mapping[str, Any], facts: Mapping[str, Any], files: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, each with its remedy."""
    for wrong in (*profile_problems(role_vars, files), *wrong_values(role_vars)):
        yield f"{wrong.variable}: {wrong.text}", wrong.remedy
    known = mapping(facts.get("files"))
    for device in entries(role_vars, DEVICES):
        parts = DEVICE.fullmatch(device)
        if parts and mapping(known.get(parts.group(1))).get("exists") is False:
            yield (
                f"{DEVICES}: there is no {parts.group(1)} on this host",
                "load the kernel module that makes it, or name other devices for this host",
            )
    yield from _missing_sources(role_vars, facts)
    memory, requested = mapping(facts.get("system")).get("memory_bytes"), str(role_vars[SHM_SIZE])
    if isinstance(memory, int) and requested != "auto" and human_to_bytes(requested) > memory:
        yield (
            f"{SHM_SIZE}: {requested} is more than the memory of this host ({memory / 1024**3:.1f} GiB)",
            f"set it to auto, which is half of the memory, or to at most {memory // 1024**3}g",
        )


def _missing_sources(role_vars: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is mounted and does not exist: the engine would make an empty folder, and the job find no data."""
    made = [*_MADE_BY_ROLES, str(role_vars["cluster_root"]), *folders_of(role_vars)]
    for source in volume_sources(role_vars):
        if is_absent(facts, source) and not any(is_below(source, path) for path in made):
            yield (
                f"{VOLUMES}: {source} does not exist on this host",
                "correct the path, mount the file system, or create the folder",
            )


def profile_problems(role_vars: Mapping[str, Any], files: Mapping[str, str]) -> Iterator[Wrong]:
    """Yield what is wrong with the profile of seccomp. ``files`` are texts by the name that a plan reads them by."""
    try:
        profile = seccomp_profile(role_vars, files)
    except ValueError as error:
        remedy = "name a profile such as moby's profiles/seccomp/default.json"
        yield Wrong(SECCOMP, f"{role_vars[SECCOMP]}: {error}", remedy)
        return
    if profile and any(option.startswith(PREFIX) for option in entries(role_vars, SECURITY_OPTS)):
        yield Wrong(SECCOMP, f"it is set, and {PREFIX}… is also in {SECURITY_OPTS}", "leave one of them out")
