# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The changes of a host's engine that follow from ``docker_plan``, and the facts that the host has afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.apt.pins import names, satisfies
from ...module_utils.engine.daemon_config import same
from ...module_utils.engine.state import CONFIG_PATH, as_config
from ..plan.changes import Change, Changes, Consent, Unknown
from ..plan.files import add_file, differs, fact_after
from ..plan.managed_file import ManagedFile
from .engine import shown_pair
from .gathered import CA_PATH, DROPIN_FOLDER, DROPIN_PATH, PROXY_PATH, PYTHON_PACKAGES, RECORD_PATH, ROLE
from .host import Host, Request
from .unseen import WHY, is_stopped

_LATER = "(known after apply)"
SERVICE = "service docker.service"
_WHY_FILE = {
    DROPIN_FOLDER: "docker_proxy or host_ca_certificate",
    DROPIN_PATH: "docker_proxy",
    PROXY_PATH: "docker_proxy",
    CA_PATH: "host_ca_certificate",
}


def owned(planned: Mapping[str, Any]) -> list[ManagedFile]:
    """Return the files that the role keeps by ``managed_files``."""
    return [ManagedFile(**entry) for entry in planned["files"]]


def record(planned: Mapping[str, Any]) -> ManagedFile | None:
    """Return the record of holds as it should be, None where there is nothing to say of it."""
    if planned["record"]:
        return ManagedFile(RECORD_PATH, planned["record"])
    return ManagedFile(RECORD_PATH, "", state="absent") if planned["release"] else None


def docker_changes(host: str, facts: Mapping[str, Any], requested: Request, planned: Mapping[str, Any]) -> list[Change]:
    """Return what the role would change, in the order in which it does."""
    changes, here = Changes(ROLE, host), Host(facts)
    known, key = here.part("files"), requested.digest_key
    for item in owned(planned):
        if differs(item, known, key):
            add_file(changes, item, known, key, _WHY_FILE.get(item.path, "docker_source"))
    _add_keys(changes, here, requested, planned)
    _add_packages(changes, here, requested, planned)
    _add_service(changes, here, requested, planned)
    for user in planned["users"]:
        changes.add(f"user {user} in group docker", None, True, "docker_users")
    why = "docker_version" if requested.version else "docker_hold"
    for package in unheld(here, planned):
        changes.add(f"hold on {package}", None, True, why)
    for package in dict.fromkeys(name for name in planned["release"] if name in names(facts.get("held"))):
        changes.add(f"hold on {package}", True, None, "docker_hold, which is no longer set")
    holds = record(planned)
    if holds and differs(holds, known, key):
        add_file(changes, holds, known, key, why if holds.wanted else "docker_hold")
    return changes.found


def unheld(here: Host, planned: Mapping[str, Any]) -> list[str]:
    """Return the packages that apt must hold."""
    already = names(here.facts.get("held"))
    return [package for package in planned["hold"] if package not in already]


def to_install(here: Host, planned: Mapping[str, Any]) -> dict[str, str]:
    """Return the packages that are missing or of another version, each with the one that apt is asked for."""
    pins = {package: planned["version"] if package in planned["locked"] else "" for package in planned["packages"]}
    return {package: pin for package, pin in pins.items() if not satisfies(here.version_of(package), pin)}


def _add_keys(changes: Changes, here: Host, requested: Request, planned: Mapping[str, Any]) -> None:
    found = as_config(here.part("engine").get("config"))
    for key in planned["differing_keys"]:
        before, after = shown_pair(found, planned["merged"], key)
        if same(before, after):  # null, or a value that looks like the other
            before, after = ("null", None) if after is None else (before, f"{after} (another value)")
        fresh = "a new engine" if not here.installed and key.partition(".")[0] not in requested.config else ""
        changes.add(f"{CONFIG_PATH} {key}", before, after, fresh or "docker_daemon_config")


def _add_packages(changes: Changes, here: Host, requested: Request, planned: Mapping[str, Any]) -> None:
    for package, pin in to_install(here, planned).items():
        version = f"version {pin}, as apt has it" if pin else "the version that apt chooses"
        why = f"docker_version: {pin}" if pin else f"docker_source: {requested.source}"
        if package in PYTHON_PACKAGES:
            why = "community.docker"
        changes.add(f"package {package}", here.version_of(package), Unknown(version), why)


def _add_service(changes: Changes, here: Host, requested: Request, planned: Mapping[str, Any]) -> None:
    if not here.running:
        changes.add(SERVICE, "stopped" if here.installed else None, "running", WHY if here.installed else "")
        return
    if not planned["restart_reasons"]:
        return
    reasons = " and ".join(planned["restart_reasons"])
    stopped = here.running_containers
    stops = f"which stops these running containers: {', '.join(stopped)}"
    consent = Consent(
        variable="docker_allow_restart",
        effect=f"the engine must be restarted for {reasons}, {stops}",
        given=bool(requested.restart),
        otherwise="stop the containers first",
    )
    changes.add(SERVICE, "running", "restarted", reasons, consent if stopped else None)


def facts_after(facts: Mapping[str, Any], requested: Request, planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host's facts once the role has done what is planned, as far as they can be known."""
    here, key = Host(facts), requested.digest_key
    docker = {**here.part("docker"), "installed": True, "running": True, "stale_swarm_ports": []}
    if is_stopped(here.part("docker")):
        docker["unseen"] = True
    engine = here.part("engine")
    config = planned["merged"]
    files = {**here.part("files"), **{item.path: fact_after(item, key) for item in owned(planned)}}
    holds = record(planned)
    if holds:
        files[RECORD_PATH] = {**fact_after(holds, key), "content": planned["record"]}
    held = [package for package in names(facts.get("held")) if package not in planned["release"]]
    groups = here.part("groups")
    installed = {package: pin or _LATER for package, pin in to_install(here, planned).items()}
    return {
        **facts,
        "packages": {**here.part("packages"), **installed},
        "docker": {**docker, "version": docker.get("version") or _LATER},
        "engine": {**engine, "config": config, "config_exists": bool(engine.get("config_exists") or config)},
        "files": files,
        "held": [*held, *unheld(here, planned)],
        "groups": {**groups, "docker": [*names(groups.get("docker")), *planned["users"]]},
    }
