# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The changes of a host's driver that follow from ``make_plan``, and the facts that the host has afterwards.

Which version a source has, only apt knows, which is queried when the role begins: until then it is the branch that is
planned, and "(known after apply)" what depends on the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.driver.packages import DISTRIBUTION, DKMS, SIGNED
from ...module_utils.driver.preview import in_branch, preferences
from ..plan.changes import Change, Changes, Consent, Unknown
from ..plan.files import add_file, differs, fact_after, found_file
from ..plan.managed_file import ManagedFile
from .driver import FABRIC, INSTALL, LOAD, WORKS, Plan, make_plan
from .gathered import EXCLUSION_FILE, NOUVEAU_FILE, PREFERENCES_FILE, ROLE, SOURCES_FILE
from .kept import HOLD, add_kept, files_of, kept, record, text_after
from .request import PERSISTENCED, Node, Request

NOUVEAU = (
    "# Kept by swarmspeed.cluster (nvidia_driver): nouveau would take the GPUs first.\n"
    "blacklist nouveau\n"
    "options nouveau modeset=0\n"
)


def driver_changes(
    host: str, facts: Mapping[str, Any], request: Request, plan: Plan, key: str
) -> tuple[list[Change], Mapping[str, Any]]:
    """Return what the role would change, in the order in which it does, and the facts afterwards.

    Where something is refused nothing is begun, so nothing is listed.
    """
    if plan.refusals:
        return [], facts
    changes = Changes(ROLE, host)
    if plan.state != WORKS:
        _add_installation(changes, Node(facts), request, plan, key)
        facts = _installed(facts, request, plan, key)
        plan = make_plan(facts, request)
    version = plan.version if plan.state == WORKS else None
    add_kept(changes, Node(facts), request, version, key)
    return changes.found, kept(facts, request, version, key)


def sources(plan: Plan) -> ManagedFile:
    """Return our source file: an installation for which the host's own sources are enough does without."""
    return ManagedFile(SOURCES_FILE, plan.sources, state="present" if plan.sources else "absent")


def _add_installation(changes: Changes, node: Node, request: Request, plan: Plan, key: str) -> None:
    files = files_of(node)
    if plan.state in (INSTALL, FABRIC):
        if differs(sources(plan), files, key):
            add_file(changes, sources(plan), files, key, f"nvidia_driver_source: {plan.source}")
        for path in plan.stale_sources:
            changes.add(f"source file {path}", True, None, "nvidia_driver_allow_purge_conflicting")
    if plan.state == FABRIC:
        changes.add("fabric manager", _manager(node), plan.version, plan.why)
    else:
        changes.add("driver", _driver_now(node), _driver_then(node, plan), plan.why)
    if plan.state == INSTALL:
        if plan.fabric:
            changes.add("fabric manager", _manager(node), Unknown("the version of the driver"), "NVSwitches")
        _add_text(changes, node, PREFERENCES_FILE, "the version of the driver that apt has")
        nouveau = ManagedFile(NOUVEAU_FILE, NOUVEAU)
        if differs(nouveau, files, key):
            add_file(changes, nouveau, files, key)
    if request.hold and not set(_locked(plan)) <= set(node.held_by_us):
        _add_text(changes, node, EXCLUSION_FILE, "the packages that apt chooses", HOLD)
    if plan.state != FABRIC and plan.how == "reboot":
        _add_reboot(changes, node, request, plan)


def _add_text(changes: Changes, node: Node, path: str, unknown: str, why: str = "") -> None:
    """Add a file whose text follows from what apt chooses."""
    found = found_file(files_of(node), path)
    before = str(found.get("content") or "(an empty file)") if found.get("exists") else None
    changes.add(path, before, Unknown(unknown), why)


def _add_reboot(changes: Changes, node: Node, request: Request, plan: Plan) -> None:
    """Add the reboot. Without consent an installation is made all the same, and the host's owner reboots it."""
    allowed = request.reboot != "never"
    consent = Consent(
        variable="nvidia_driver_reboot",
        value="if_needed",
        effect=why_reboot(plan),
        given=allowed,
        otherwise="reboot it and run again",
    )
    needed = allowed or plan.state == LOAD
    changes.add(
        "reboot", None, "by this role" if needed else "by you", "; ".join(plan.reasons), consent if needed else None
    )


def why_reboot(plan: Plan) -> str:
    """Return why the driver that is installed does not run, and what it takes."""
    reasons = f" ({'; '.join(plan.reasons)})" if plan.reasons else ""
    return f"{plan.why}. It runs after a reboot of this host{reasons}"


def _manager(node: Node) -> str | None:
    fabric = node.gpu.get("fabric")
    found = fabric.get("manager_version") if isinstance(fabric, Mapping) else None
    return str(found) if found else None


def _driver_now(node: Node) -> str | None:
    version = node.loaded.get("version")
    if version:
        return f"{version} ({node.loaded.get('flavour') or 'flavour unknown'}), loaded"
    return "none loaded" if node.module.get("version") else None


_MODULE = {
    (SIGNED,): ", the module built by Ubuntu",
    (DKMS,): ", the module built on this host by DKMS",
    (SIGNED, DKMS): ", the module built by Ubuntu, or on this host by DKMS where Ubuntu has none for this kernel",
}
"""Where the module comes from, by the sets that apt is to try."""


def _driver_then(node: Node, plan: Plan) -> str:
    if plan.state == INSTALL:
        module = _MODULE.get(tuple(choice.kind for choice in plan.choices), "")
        return f"branch {plan.branch} ({plan.flavour}), from {plan.source}{module}"
    then = f"{node.module.get('version')} ({node.module.get('flavour')}), loaded"
    # Of two builds of one version the kernel may have the former one loaded.
    return f"{then} again" if then == _driver_now(node) else then


def _locked(plan: Plan) -> list[str]:
    """Return the packages of the first choice that are of the driver's version, as far as that is known."""
    locked = list(plan.choices[0].locked) if plan.choices else []
    return [*locked, *plan.fabric[:1]]


def _installed(facts: Mapping[str, Any], request: Request, plan: Plan, key: str) -> dict[str, Any]:
    """Return the facts once a driver, or its fabric manager, is installed and runs."""
    node = Node(facts)
    version, flavour = str(plan.version), node.loaded.get("flavour")
    if plan.state == INSTALL:
        least = request.min_version if in_branch(request.min_version, plan.branch or 0) else plan.branch
        version, flavour = f"{least}.(known after apply)", plan.flavour
    elif plan.state == LOAD:
        version, flavour = str(node.module.get("version")), node.module.get("flavour")
    loaded = {"loaded": True, "version": version, "flavour": flavour, "library_version": version, "matches": True}
    fabric = node.gpu.get("fabric")
    gpu = {**node.gpu, "driver": {**node.loaded, **loaded, "nouveau_loaded": False}, "problems": []}
    driver, files = dict(node.host), dict(files_of(node))
    if plan.fabric:
        gpu["fabric"] = {**(fabric if isinstance(fabric, Mapping) else {}), "manager_version": version}
    if plan.state in (INSTALL, FABRIC):
        package = {"version": version, "held": request.hold, "finished": True}
        driver["packages"] = {**node.packages, **{name: dict(package) for name in _locked(plan)}}
        files[SOURCES_FILE] = fact_after(sources(plan), key)
        if request.hold:
            held = record([*node.held_by_us, *(name for name in _locked(plan) if name not in node.held_by_us)])
            files[EXCLUSION_FILE] = text_after(held, key)
            # Those of before are held again, too.
            driver["packages"].update(
                {name: {**node.packages[name], "held": True} for name in node.held_by_us if name in node.packages}
            )
    if plan.state == INSTALL:
        driver["module"] = {**node.module, "version": version, "flavour": flavour}
        # These come with the packages.
        driver["persistence_off"] = plan.source == DISTRIBUTION and node.system.get("distribution") == "ubuntu"
        driver["services"] = {PERSISTENCED: {"active": None, "state": None}, **node.services}
        files[PREFERENCES_FILE] = text_after(ManagedFile(PREFERENCES_FILE, preferences(version)), key)
        files[NOUVEAU_FILE] = text_after(ManagedFile(NOUVEAU_FILE, NOUVEAU), key)
    return {**facts, "gpu": gpu, "driver": driver, "files": files}
