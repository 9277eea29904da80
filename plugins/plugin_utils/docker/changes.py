# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The changes of a host's engine that follow from ``docker_plan``, and the facts that the host has afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.apt.pins import names, satisfies
from ...module_utils.engine.daemon_config import merge, same
from ...module_utils.engine.state import CONFIG_PATH, as_config, sealed
from ..plan.changes import Change, Changes, Consent, Unknown
from ..plan.files import add_file, differs, fact_after
from ..plan.managed_file import ManagedFile
from .engine import shown_pair
from .gathered import ROLE
from .host import CA_PATH, DROPIN_FOLDER, DROPIN_PATH, PROXY_PATH, PYTHON_PACKAGES, RECORD_PATH, Host, Request
from .unseen import WHY, is_stopped

SERVICE = "service docker.service"
_WHY_FILE = {
    DROPIN_FOLDER: "docker_proxy or host_ca_certificate",
    DROPIN_PATH: "docker_proxy",
    PROXY_PATH: "docker_proxy",
    CA_PATH: "host_ca_certificate",
}


def owned(planned: Mapping[str, Any]) -> list[ManagedFile]:
    """Return the files that the role keeps by ``managed_files``, and its record of holds where there are any."""
    files = [ManagedFile(**{**entry, "content": entry.get("content")}) for entry in planned["files"]]
    return [*files, *([record(planned["record"])] if planned["record"] else [])]


def record(text: str) -> ManagedFile:
    return ManagedFile(RECORD_PATH, text)


def docker_changes(host: str, facts: Mapping[str, Any], requested: Request, planned: Mapping[str, Any]) -> list[Change]:
    """Return what the role would change, in the order in which it does."""
    changes, here = Changes(ROLE, host), Host(facts)
    known = here.part("files")
    for item in owned(planned):
        if item.path != RECORD_PATH and differs(item, known, requested.digest_key):
            add_file(changes, item, known, requested.digest_key, _WHY_FILE.get(item.path, "docker_source"))
    _add_keys(changes, here, requested, planned)
    _add_packages(changes, here, requested, planned)
    _add_service(changes, here, requested, planned)
    for user in planned["found"]["users_missing"]:
        if f"user {user} in group docker" not in [change.what for change in changes.found]:
            changes.add(f"user {user} in group docker", None, True, "docker_users")
    why = "docker_version" if requested.version else "docker_hold"
    for package in unheld(here, planned):
        changes.add(f"hold on {package}", None, True, why)
    if planned["record"] and differs(record(planned["record"]), known, requested.digest_key):
        add_file(changes, record(planned["record"]), known, requested.digest_key, why)
    if planned["release"]:
        for package in dict.fromkeys(name for name in planned["release"] if name in names(facts.get("held"))):
            changes.add(f"hold on {package}", True, None, "docker_hold, which is no longer set")
        add_file(changes, ManagedFile(RECORD_PATH, "", state="absent"), known, requested.digest_key, "docker_hold")
    return changes.found


def unheld(here: Host, planned: Mapping[str, Any]) -> list[str]:
    """Return the packages that apt must hold."""
    already = names(here.facts.get("held"))
    return [package for package in dict.fromkeys(planned["hold"]) if package not in already]


def _add_keys(changes: Changes, here: Host, requested: Request, planned: Mapping[str, Any]) -> None:
    found = as_config(here.part("engine").get("config"))
    merged = merged_config(found, requested, planned)
    for key in dict.fromkeys(planned["differing_keys"]):
        before, after = shown_pair(found, merged, key)
        if same(before, after):  # null, or a value that looks like the other
            before, after = ("null", None) if after is None else (before, f"{after} (another value)")
        fresh = "a new engine" if not here.installed and key.partition(".")[0] not in requested.config else ""
        changes.add(f"{CONFIG_PATH} {key}", before, after, fresh or "docker_daemon_config")


def merged_config(found: Mapping[str, Any], requested: Request, planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine's configuration as it would be, secrets sealed."""
    return merge(dict(found), as_config(sealed(planned["config"], requested.digest_key)))


def _add_packages(changes: Changes, here: Host, requested: Request, planned: Mapping[str, Any]) -> None:
    pin = str(planned["version"])
    for package in dict.fromkeys(planned["packages"]):
        there = here.version_of(package)
        pinned = pin and package in planned["locked"]
        if there and not (pinned and not satisfies(there, pin)):
            continue
        version = f"version {pin}, as apt has it" if pinned else "the version that apt chooses"
        why = f"docker_source: {requested.source}"
        if package in PYTHON_PACKAGES:
            why = "community.docker"
        elif pinned:
            why = f"docker_version: {pin}"
        changes.add(f"package {package}", there, Unknown(version), why)


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
        variable="docker_restart",
        effect=f"the engine must be restarted for {reasons}, {stops}",
        given=bool(requested.restart),
        otherwise="stop the containers first",
    )
    changes.add(SERVICE, "running", "restarted", reasons, consent if stopped else None)


def facts_after(facts: Mapping[str, Any], requested: Request, planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host's facts once the role has done what is planned, as far as they can be known."""
    here, pin = Host(facts), str(planned["version"])
    packages = dict(here.part("packages"))
    for package in planned["packages"]:
        pinned = pin and package in planned["locked"]
        if not packages.get(package) or (pinned and not satisfies(str(packages[package]), pin)):
            packages[package] = pin if pinned else "(known after apply)"
    docker = {**here.part("docker"), "installed": True, "running": True, "stale_swarm_ports": []}
    if is_stopped(here.part("docker")):
        docker["unseen"] = True
    if not docker.get("version"):
        docker["version"] = "(known after apply)"
    engine = here.part("engine")
    config = merged_config(as_config(engine.get("config")), requested, planned)
    files = {**here.part("files")}
    for item in owned(planned):
        files[item.path] = fact_after(item, requested.digest_key)
    if planned["record"]:
        files[RECORD_PATH] = {**files[RECORD_PATH], "content": planned["record"]}
    if planned["release"]:
        files[RECORD_PATH] = fact_after(ManagedFile(RECORD_PATH, "", state="absent"), requested.digest_key)
    held = [package for package in names(facts.get("held")) if package not in planned["release"]]
    members = names(here.part("groups").get("docker"))
    return {
        **facts,
        "packages": packages,
        "docker": docker,
        "engine": {**engine, "config": config, "config_exists": bool(engine.get("config_exists") or config)},
        "files": files,
        "held": [*held, *unheld(here, planned)],
        "groups": {
            **here.part("groups"),
            "docker": [*members, *(user for user in requested.users if user not in members)],
        },
    }
