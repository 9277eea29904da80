# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The changes that follow from ``toolkit_plan``, and the facts that the host has afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.apt.pins import names
from ...module_utils.engine.daemon_config import merge, same
from ...module_utils.engine.state import CONFIG_PATH, as_config, sealed
from ..docker.engine import shown_pair
from ..docker.host import Host
from ..plan.changes import Change, Changes, Consent, Unknown
from ..plan.files import add_file, differs, fact_after, found_file
from ..plan.managed_file import ManagedFile
from .access import CDI, KEEP
from .description import fitting
from .gathered import RECORD_PATH, ROLE, SPEC_PATH, STAMP_PATH, UNIT, UNIT_PATH
from .toolkit import misdescribed, toolkit_plan

ENGINE = "service docker.service"
_SOURCE, _HOLD = "nvidia_container_toolkit_source", "nvidia_container_toolkit_hold"
_LATER = "(known after apply)"
NO_RECORD = ManagedFile(RECORD_PATH, "", state="absent")


def toolkit_changes(
    host: str, facts: Mapping[str, Any], requested: Mapping[str, Any], planned: Mapping[str, Any], key: str
) -> tuple[list[Change], Mapping[str, Any]]:
    """Return what the role would change, in the order in which it does, and the facts afterwards.

    Where something is refused nothing is begun, so nothing is listed.
    """
    if planned["problems"]:
        return [], facts
    changes, here, then = Changes(ROLE, host), Host(facts), facts_after(facts, requested, planned, key)
    known = here.part("files")
    for item in owned(planned):
        if differs(item, known, key):
            add_file(changes, item, known, key, "" if item.path == UNIT_PATH else _SOURCE)
    _add_packages(changes, here, planned)
    _add_keys(changes, here, planned)
    if requested["source"] != KEEP and planned["mode"] == CDI:
        _add_description(changes, here)
    _add_restart(changes, requested, planned)
    for package in planned["unheld"]:
        changes.add(f"hold on {package}", None, True, _HOLD)
    for package in still_held(here, planned):
        changes.add(f"hold on {package}", True, None, f"{_HOLD}, which is no longer set")
    wanted = record(planned)
    if wanted and differs(wanted, known, key):
        add_file(changes, wanted, known, key, _HOLD)
    if tests(requested):
        _add_test(changes, known, then)
    return changes.found, then if changes.found else facts


def owned(planned: Mapping[str, Any]) -> list[ManagedFile]:
    """Return the files that the role keeps before anything is installed."""
    return [ManagedFile(**entry) for entry in planned["files"]]


def record(planned: Mapping[str, Any]) -> ManagedFile | None:
    """Return the record of holds as it should be, None where there is nothing to say of it."""
    if planned["record"]:
        return ManagedFile(RECORD_PATH, planned["record"])
    return NO_RECORD if planned["release"] else None


def still_held(here: Host, planned: Mapping[str, Any]) -> list[str]:
    """Return the packages that need not be held any more and still are."""
    already = names(here.facts.get("held"))
    return [package for package in planned["release"] if package in already]


def tests(requested: Mapping[str, Any]) -> bool:
    """Whether the GPUs must be seen in a container after a change."""
    return requested["source"] != KEEP and bool(requested["smoke_test"])


def _exists(known: Mapping[str, Any], path: str) -> bool:
    return found_file(known, path).get("exists") is True


def _add_description(changes: Changes, here: Host) -> None:
    wrong = misdescribed(here)
    if not _exists(here.part("files"), SPEC_PATH):
        changes.add(SPEC_PATH, None, f"written by {UNIT}", "how the engine hands out GPUs")
    elif wrong:
        before = "; ".join(fault.removeprefix(f"{SPEC_PATH} ") for fault in wrong)
        changes.add(SPEC_PATH, before, f"written again by {UNIT}", "the GPUs of the host")


def _add_packages(changes: Changes, here: Host, planned: Mapping[str, Any]) -> None:
    pin = planned["version"]
    version = f"version {pin}, as apt has it" if pin else "the version that apt chooses"
    for package in planned["packages"]:
        why = f"nvidia_container_toolkit_version: {pin}" if pin else _SOURCE
        changes.add(f"package {package}", here.version_of(package), Unknown(version), why)


def _add_keys(changes: Changes, here: Host, planned: Mapping[str, Any]) -> None:
    found = as_config(here.part("engine").get("config"))
    merged = merge(dict(found), as_config(sealed(planned["config"])))
    for key in planned["differing_keys"]:
        before, after = shown_pair(found, merged, key)
        if same(before, after):  # null, or a value that looks like the other
            before, after = ("null", None) if after is None else (before, f"{after} (another value)")
        changes.add(f"{CONFIG_PATH} {key}", before, after, f"mode {planned['mode']}")


def _add_restart(changes: Changes, requested: Mapping[str, Any], planned: Mapping[str, Any]) -> None:
    """Add what running containers notice: a restart of the engine, or a reload of systemd under a job."""
    reasons, stopped = " and ".join(planned["restart_reasons"]), planned["in_the_way"]
    does = (
        f"the engine must be restarted for {reasons}"
        if reasons
        else "which reloads systemd, and that can take GPUs from a job that runs"
    )
    joined = f"the container toolkit changes, {'and ' if reasons else ''}{does}. In the way: {', '.join(stopped)}"
    consent = Consent("docker_allow_restart", joined, bool(requested["restart"]), "stop the containers first")
    if reasons:
        changes.add(ENGINE, "running", "restarted", reasons, consent if stopped else None)
    elif stopped:
        changes.add("systemd", "running", "reloaded", "packages and units", consent)


def _add_test(changes: Changes, known: Mapping[str, Any], then: Mapping[str, Any]) -> None:
    """Add the smoke test, which is due where toolkit, driver, engine or mode are others than in the last one."""
    before = str(found_file(known, STAMP_PATH).get("content") or "").strip() or None
    after = str(then["files"][STAMP_PATH]["content"]).strip()
    if before == after:
        return
    unknown = _LATER in after or any(change.what.startswith("package ") for change in changes.found)
    changes.add("test in a container", before, Unknown("of what is then installed") if unknown else after)


def facts_after(
    facts: Mapping[str, Any], requested: Mapping[str, Any], planned: Mapping[str, Any], key: str
) -> dict[str, Any]:
    """Return the host's facts once the role has done what is planned, as far as they can be known."""
    here = Host(facts)
    version = planned["version"] or _LATER
    engine = here.part("engine")
    config = merge(dict(as_config(engine.get("config"))), as_config(sealed(planned["config"])))
    files = dict(here.part("files"))
    for item in owned(planned):
        files[item.path] = fact_after(item, key)
    wanted = record(planned)
    if wanted:
        files[RECORD_PATH] = {**fact_after(wanted, key), "content": wanted.text if wanted.wanted else None}
    described: dict[str, Any] = {}
    if requested["source"] != KEEP and planned["mode"] == CDI:
        files[SPEC_PATH] = {**found_file(files, SPEC_PATH), "exists": True}
        described = {"cdi": fitting(here.part("gpu"))}
    held = [package for package in names(facts.get("held")) if package not in planned["release"]]
    then = {
        **facts,
        "packages": {**here.part("packages"), **dict.fromkeys(planned["packages"], version)},
        "engine": {**engine, "config": config, "config_exists": bool(engine.get("config_exists") or config)},
        "files": files,
        "held": [*held, *planned["unheld"]],
        **described,
    }
    if tests(requested):
        tested = ManagedFile(STAMP_PATH, toolkit_plan(then, requested)["stamp"])
        files[STAMP_PATH] = {**fact_after(tested, key), "content": tested.text}
    return then
