# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The plan for NVIDIA's container toolkit on a host with GPUs: what differs, what it costs, what forbids it.

Pure: facts and what is requested go in. A smoke test is due where toolkit, driver, engine or access to the GPUs differ
than in the last one that passed, which a file on the host records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.apt.pins import exclusion, names, recorded, satisfies, source_problems, source_text
from ...module_utils.engine.daemon_config import changed_keys, merge
from ...module_utils.engine.daemon_config_keys import needs_restart, parse_version
from ...module_utils.engine.daemon_config_unit import conflicts
from ...module_utils.engine.state import CONFIG_PATH, as_config, sealed, unit_from_facts
from ..docker.host import SHIPPED, Host
from ..plan.files import differs
from ..plan.jobs import active_jobs
from ..plan.managed_file import ManagedFile
from .access import CDI, KEEP, RUNTIME, Access, access, device_requests, run_arguments
from .description import faults
from .gathered import PACKAGES, RECORD_PATH, ROLE, SOURCES_PATH, SPEC_PATH, STALE_SOURCES, UNIT_PATH

REPOSITORY = "repository"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_NODES = "/usr/bin/nvidia-ctk system create-device-nodes --control-devices"
_TEST = "CUDA on all GPUs"
"""What the smoke test shows: one that was recorded before it did so is repeated."""


@dataclass(frozen=True)
class Request:
    """What is requested, by the variables of the role without its prefix, and of the role docker what matters here."""

    source: str = REPOSITORY
    version: str = ""
    hold: bool = True
    repository_url: str = ""
    repository_key: str = ""
    mode: str = "auto"
    runtime: str = "nvidia"
    default_runtime: bool = False
    cgroups: str = "auto"
    smoke_test: bool = True
    engine_source: str = "distribution"
    engine_config: Mapping[str, Any] = field(default_factory=dict)


def toolkit_plan(facts: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan, in the form that the role reads."""
    values = {name: request[name] for name in Request.__dataclass_fields__ if name in request}
    requested, host = Request(**{**values, "version": str(values.get("version") or "")}), Host(facts)
    found = as_config(host.part("engine").get("config"))
    way = _access(requested, host, found)
    keys = {} if requested.source == KEEP else dict(way.config)
    merged = merge(found, as_config(sealed(keys)))
    changed = changed_keys(found, merged)
    packages = _packages(requested, host)
    held, unheld, released = _holds(requested, host)
    restarts = _restart_reasons(host, way, found, merged, packages)
    sources = _sources(requested, host, bool(packages))
    # With another release of this collection, the unit may be all that differs.
    reloads = bool(packages or changed) or _unit_differs(requested, host, way.mode)
    return {
        "mode": way.mode,
        "device_requests": device_requests(way.mode),
        "run_arguments": run_arguments(way.mode),
        "packages": packages,
        "before": {name: version for name in PACKAGES if (version := host.version_of(name))},
        "version": requested.version,
        "fresh": host.version_of(PACKAGES[0]) is None,
        "sources": sources,
        "stale_sources": list(STALE_SOURCES) if sources else [],
        "files": _files(requested, sources, way.mode),
        "config": keys,
        "differing_keys": changed,
        "hold": held,
        "unheld": unheld,
        "recorded": recorded(host.part("files"), RECORD_PATH),
        "release": released,
        "record": exclusion(ROLE, held) if held else "",
        "stamp": stamp_text(requested, host, way),
        "restart_reasons": restarts,
        "in_the_way": _in_the_way(host, restarts, reloads),
        "problems": [*_problems(requested, host, way, packages), *(_clashes(host, merged) if changed else [])],
        "missing": _missing(requested, host, way),
    }


def _access(requested: Request, host: Host, found: Mapping[str, Any]) -> Access:
    engine = host.engine_version
    if parse_version(engine) is None and requested.engine_source == "distribution" and host.codename in SHIPPED:
        engine = ".".join(map(str, SHIPPED[host.codename]))  # what the role docker is going to install
    settings = host.part("docker").get("settings")
    return access(
        requested.mode,
        engine,
        settings if isinstance(settings, Mapping) and host.running else {},
        found,
        requested.engine_config,
        runtime=requested.runtime,
        default_runtime=requested.default_runtime,
        cgroups=requested.cgroups,
    )


def _packages(requested: Request, host: Host) -> list[str]:
    """Return the packages that apt is to install: all of one version, so all where one is not as requested."""
    if requested.source == KEEP:
        return []
    versions = [host.version_of(name) for name in PACKAGES]
    right = all(satisfies(version, requested.version) if requested.version else version for version in versions)
    return [] if right else list(PACKAGES)


def _sources(requested: Request, host: Host, installing: bool) -> str:
    """Return the text of our source file: where this role installs from it, and where it did before."""
    if requested.source == KEEP or not (installing or _exists(host, SOURCES_PATH)):
        return ""
    machine = str(host.part("system").get("architecture") or "")
    uri = f"{requested.repository_url.rstrip('/')}/{_ARCHITECTURES.get(machine, machine)}"
    return source_text("nvidia_container_toolkit", uri, "/", (), requested.repository_key)


def _files(requested: Request, sources: str, mode: str) -> list[dict[str, Any]]:
    """Return what ``managed_files`` keeps before anything is installed."""
    if requested.source == KEEP:
        return []
    files = [
        {"path": UNIT_PATH, "content": unit_text(mode), "state": "present"},
        {"path": SOURCES_PATH, "content": sources, "state": "present" if sources else "absent"},
    ]
    return files + [{"path": path, "content": "", "state": "absent"} for path in (STALE_SOURCES if sources else ())]


def unit_text(mode: str) -> str:
    """Return the unit that, before the engine starts, makes what containers need to be given GPUs.

    The control nodes come first, since what is not there is not described. NVIDIA's own unit does the same after 1.20.0
    (deployments/systemd/nvidia-cdi-refresh.service, commit 8269969f), and the command is in 1.18.2. It fails at the
    first module that cannot be loaded, such as nvidia-modeset on a headless host, so it runs once more without loading.
    systemd keeps a device in a container's cgroup by its number only where /dev/char has a link for it. MIG instances
    are made by NVIDIA's MIG manager at boot: what is described before is stale. Their device files appear when NVML is
    used first, so nvidia-smi runs before (mig-parted#82). Where a GPU makes it hang, the engine starts without.
    """
    generate = f"ExecStart=/usr/bin/nvidia-ctk cdi generate --output={SPEC_PATH}\n" if mode == CDI else ""
    return (
        "# Kept by swarmspeed.cluster (nvidia_container_toolkit)\n"
        "[Unit]\nDescription=Links and descriptions of NVIDIA devices for containers\n"
        "After=nvidia-persistenced.service nvidia-mig-manager.service systemd-modules-load.service\n"
        "Before=docker.service\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=240\n"
        "ExecStartPre=-/sbin/modprobe nvidia-uvm\n"
        "ExecStartPre=-/usr/bin/nvidia-smi -L\n"
        f"ExecStartPre=-/bin/sh -c '{_NODES} --load-kernel-modules || {_NODES}'\n"
        "ExecStart=/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all\n"
        f"{generate}\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _unit_differs(requested: Request, host: Host, mode: str) -> bool:
    return requested.source != KEEP and differs(ManagedFile(UNIT_PATH, unit_text(mode)), host.part("files"), "")


def misdescribed(host: Host) -> list[str]:
    """Return what of the CDI description is not as the GPUs of the host are."""
    return faults(host.facts.get("cdi"), host.part("gpu"))


def stamp_text(requested: Request, host: Host, way: Access) -> str:
    """Return what a smoke test that passed stands for."""
    driver = host.part("gpu").get("driver")
    reported = {
        "toolkit": host.version_of(PACKAGES[0]),
        "driver": driver.get("version") if isinstance(driver, Mapping) else None,
        "engine": host.engine_version,
        "mode": way.mode,
        "default_runtime": requested.default_runtime,
        "test": _TEST,
    }
    return json.dumps(reported, sort_keys=True) + "\n"


def _entry(host: Host, path: str) -> Mapping[str, Any]:
    entry = host.part("files").get(path)
    return entry if isinstance(entry, Mapping) else {}


def _exists(host: Host, path: str) -> bool:
    return _entry(host, path).get("exists") is True


def _holds(requested: Request, host: Host) -> tuple[list[str], list[str], list[str]]:
    ours = recorded(host.part("files"), RECORD_PATH)
    if requested.source == KEEP:
        return [], [], []
    if not requested.hold:
        return [], [], ours
    already = names(host.facts.get("held"))
    return list(PACKAGES), [name for name in PACKAGES if name not in already], []


def _restart_reasons(
    host: Host, way: Access, found: Mapping[str, Any], merged: Mapping[str, Any], packages: list[str]
) -> list[str]:
    """Why a running engine would have to be restarted: it looks for the hook only when it starts."""
    if not host.running:
        return []
    keys = needs_restart(dict(found), dict(merged))
    reasons = [f"{', '.join(keys)} in {CONFIG_PATH}"] if keys else []
    if way.mode == RUNTIME and packages and host.version_of(PACKAGES[0]) is None:
        reasons.append("NVIDIA's runtime hook, which it looks for when it starts")
    return reasons


def _in_the_way(host: Host, restarts: list[str], changes: bool) -> list[str]:
    """Return the containers that a restart stops; and, where anything changes, those in which a job runs."""
    if restarts:
        return host.running_containers
    return host.running_containers if changes and active_jobs(host.facts) else []


def _problems(requested: Request, host: Host, way: Access, packages: list[str]) -> list[tuple[str, str]]:
    if requested.source == KEEP:
        return []
    problems = [way.problem] if way.problem else []
    if packages:
        problems += [
            (problem, "correct it")
            for problem in source_problems(
                "nvidia_container_toolkit", requested.repository_url, requested.repository_key
            )
        ]
        machine = str(host.part("system").get("architecture") or "")
        if machine and machine not in _ARCHITECTURES:
            problems.append((f"NVIDIA has no container toolkit for {machine}", "set cluster_accelerator: cpu"))
    ours = recorded(host.part("files"), RECORD_PATH)
    foreign = [name for name in names(host.facts.get("held")) if name in packages and name not in ours]
    if foreign:
        problems.append(
            (
                f"{', '.join(foreign)} is on hold in version {host.version_of(foreign[0])}, but version "
                f"{requested.version} is requested",
                f"apt-mark unhold {' '.join(foreign)} if it may change, or set nvidia_container_toolkit_source: keep",
            )
        )
    return problems


def _clashes(host: Host, merged: Mapping[str, Any]) -> list[tuple[str, str]]:
    unit = unit_from_facts(host.part("engine").get("unit"))
    return [(f"{CONFIG_PATH}: {problem}", "see the unit of the engine") for problem in conflicts(unit, dict(merged))]


def _missing(requested: Request, host: Host, way: Access) -> list[str]:
    """Return what keeps containers from the GPUs, as verify reports it."""
    missing = []
    docker = host.part("docker")
    settings = docker.get("settings")
    if way.mode == RUNTIME and requested.runtime not in names(docker.get("runtimes")):
        missing.append(f"the Docker engine has no runtime {requested.runtime}")
    if way.mode == CDI:
        if not (isinstance(settings, Mapping) and settings.get("cdi_directories")):
            missing.append("the Docker engine does not support CDI devices")
        if not _exists(host, SPEC_PATH):
            missing.append(f"{SPEC_PATH}, which describes the GPUs to it, is missing")
        missing += misdescribed(host)
    if (
        requested.default_runtime
        and isinstance(settings, Mapping)
        and settings.get("default_runtime") != requested.runtime
    ):
        missing.append(f"the engine's default runtime is {settings.get('default_runtime')}, not {requested.runtime}")
    return missing
