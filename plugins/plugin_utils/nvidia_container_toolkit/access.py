# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How containers of a host get its GPUs: by CDI or by NVIDIA's runtime hook, and what of daemon.json either needs.

The engine takes CDI devices from 25.0 on, where features.cdi is on, and by default from 28.2 on (moby#45192).
Devices that come by CDI are part of a container's own description, so systemd keeps them when it reloads. Those that
the hook adds later are not: a ``systemctl daemon-reload`` takes them from running containers ("Failed to initialize
NVML: Unknown Error", nvidia-container-toolkit#48), unless the engine itself writes the cgroups (cgroupfs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.engine.daemon_config_keys import parse_version

AUTO, RUNTIME, CDI, KEEP = "auto", "runtime", "cdi", "keep"
CDI_SINCE = (25, 0)
CDI_DEFAULT_SINCE = (28, 2)
CDI_DEVICE = "nvidia.com/gpu=all"
HOOK = "nvidia-container-runtime"
CGROUP_OPTION = "native.cgroupdriver"


@dataclass(frozen=True)
class Access:
    """``mode`` is ``cdi`` or ``runtime``; ``config`` are keys for daemon.json; ``problem`` says why it cannot
    be, and what to do."""

    mode: str
    config: Mapping[str, Any]
    problem: tuple[str, str] | None = None


def access(
    requested: str,
    engine: str | None,
    settings: Mapping[str, Any],
    found: Mapping[str, Any],
    users: Mapping[str, Any],
    *,
    runtime: str = "nvidia",
    default_runtime: bool = False,
    cgroups: str = AUTO,
) -> Access:
    """Return how containers get the GPUs.

    ``engine`` is its version, ``settings`` what it says of itself, ``found`` its daemon.json, and ``users`` the keys of
    docker_daemon_config, which are never set otherwise than they say.
    """
    version = parse_version(engine)
    features = {**_mapping(found.get("features")), **_mapping(users.get("features"))}
    off = features.get("cdi") is False
    mode = requested
    if requested == AUTO:
        mode = CDI if version is not None and version >= CDI_SINCE and not off else RUNTIME
    if mode == CDI:
        problem = None
        if version is not None and version < CDI_SINCE:
            problem = (
                f"nvidia_container_toolkit_mode is cdi, but the engine is {engine}, and CDI needs 25.0 or later",
                "set nvidia_container_toolkit_mode: auto, or install a newer engine",
            )
        elif off:
            problem = (
                "nvidia_container_toolkit_mode is cdi, but features.cdi is false in the engine's configuration",
                "remove that key, or set nvidia_container_toolkit_mode: auto",
            )
        config = _cdi_config(version, settings, features)
    else:
        config, problem = _runtime_config(found, runtime), None
        config.update(_cgroup_config(cgroups, settings, found, users))
    if default_runtime:
        config.update(_runtime_config(found, runtime))
        config.update({} if found.get("default-runtime") == runtime else {"default-runtime": runtime})
    # Mappings are merged by both roles; for anything else docker_daemon_config has the last word.
    theirs = [key for key, value in config.items() if key in users and not isinstance(value, Mapping)]
    return Access(mode, {key: value for key, value in config.items() if key not in theirs}, problem)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _cdi_config(
    version: tuple[int, int] | None, settings: Mapping[str, Any], features: Mapping[str, Any]
) -> dict[str, Any]:
    if features.get("cdi") is True or settings.get("cdi_directories"):
        return {}
    return {} if version is None or version >= CDI_DEFAULT_SINCE else {"features": {"cdi": True}}


def _runtime_config(found: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """A runtime of that name that is there already is left as it is, whoever registered it."""
    there = _mapping(_mapping(found.get("runtimes")).get(runtime))
    return {} if there.get("path") else {"runtimes": {runtime: {"path": HOOK}}}


def _cgroup_config(
    cgroups: str, settings: Mapping[str, Any], found: Mapping[str, Any], users: Mapping[str, Any]
) -> dict[str, Any]:
    if cgroups == KEEP or "exec-opts" in users or settings.get("cgroup_driver") == "cgroupfs":
        return {}
    options = found.get("exec-opts")
    others = [option for option in options if isinstance(option, str)] if isinstance(options, list) else []
    if f"{CGROUP_OPTION}=cgroupfs" in others:
        return {}
    kept = [option for option in others if not option.startswith(f"{CGROUP_OPTION}=")]
    return {"exec-opts": [*kept, f"{CGROUP_OPTION}=cgroupfs"]}


def device_requests(mode: str) -> list[dict[str, Any]]:
    """Return the option ``device_requests`` of community.docker's modules that gives a container all GPUs."""
    if mode == CDI:
        return [{"driver": "cdi", "device_ids": [CDI_DEVICE]}]
    return [{"driver": "nvidia", "count": -1, "capabilities": [["gpu"]]}]


def run_arguments(mode: str) -> list[str]:
    """Return the same for the docker command."""
    return ["--device", CDI_DEVICE] if mode == CDI else ["--gpus", "all"]
