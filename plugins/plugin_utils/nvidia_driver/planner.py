# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nvidia_driver: facts and wishes in, changes and refusals out, by way of ``make_plan``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.problems import Problem
from ..plan.changes import Change, Inputs, RolePlan
from ..plan.files import differs, entry_of
from ..plan.fold import Facts, Wishes
from ..plan.managed_file import ManagedFile
from ..versions.drivers import builds, offers
from .changes import NOUVEAU, driver_changes, sources, why_reboot
from .driver import FABRIC, INSTALL, LOAD, WORKS, Plan, make_plan
from .gathered import EXCLUSION_FILE, FILES, PERSISTENCE_FILE, PREFERENCES_FILE, PREFIX, ROLE, SOURCES_FILE
from .kept import (
    PERSISTENCE_FOLDER,
    files_of,
    other_persistence_file,
    recorded,
    runs,
    services,
    to_hold,
    to_release,
    unheld,
    without_persistence,
)
from .kernels import oldest_that_builds, signed_package, without_module
from .request import FABRIC_MANAGER, PERSISTENCED, Node, Request, parse_request

MODULES = ("nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
"""In the order in which one lets go of the other."""
FABRIC_WAIT = 120
"""Seconds that GPUs get to join an NVLink fabric whose manager runs."""
NOTHING: dict[str, Any] = {
    "preview": {},
    "install": {},
    "load": {},
    "reboot": {},
    "hold": [],
    "release": [],
    "record": [],
    "services": [],
    "units": [],
    "restart": [],
    "fabric": {},
    "why": "",
    "faults": [],
    "next_boot": "",
    "undo": {"release": [], "files": []},
}
"""What the role's tasks read of a host on which there is nothing to do, and nothing to undo."""


class NvidiaDriverPlanner:
    """Plans each host for itself: no driver depends on another."""

    role = ROLE

    def files(self, wishes: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads: none, as the key is a variable."""
        return ()

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        acts: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            undo = {"undo": _undo(Node(found))}
            if not applies(found, wishes[host], inputs):
                acts[host] = {**NOTHING, **undo}
                continue
            request = parse_request(requested(wishes[host]))
            planned = make_plan(found, request)
            made, then = driver_changes(host, found, request, planned, inputs.digest_key)
            changes += made
            refusals += [Problem(host, one.text, one.remedy) for one in planned.refusals]
            sysfs = str(wishes[host]["preflight_sysfs_root"] or "/sys")
            acts[host] = {**act(Node(found), request, planned, sysfs, inputs.digest_key), **undo}
            if made:
                after[host] = then
        return RolePlan(changes, refusals, acts, after)


def applies(facts: Mapping[str, Any], wishes: Mapping[str, Any], inputs: Inputs) -> bool:
    """Whether the host is to compute on GPUs. Where the role is applied alone, ``auto`` is what this host has."""
    accelerator = inputs.cluster.get("accelerator") or wishes["cluster_accelerator"] or "auto"
    return bool(Node(facts).devices) if accelerator == "auto" else accelerator == "cuda"


def requested(wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is configured for a host's driver, and which drivers there are, in the form of ``parse_request``."""
    own = {name.removeprefix(PREFIX): value for name, value in wishes.items() if name.startswith(PREFIX)}
    return {**own, "offers": offers(), "builds": builds()}


def act(node: Node, request: Request, plan: Plan, sysfs: str, key: str) -> dict[str, Any]:
    """Return what the role's tasks read. Where something is refused that is only what the host reports of itself."""
    done = {**NOTHING, "why": plan.why, "faults": [str(fault) for fault in node.gpu.get("problems") or []]}
    done["next_boot"] = _next_boot(node, plan)
    if plan.refusals:
        return done
    if plan.state in (INSTALL, FABRIC):
        done.update(preview=_preview(node, request, plan), install=_install(node, request, plan))
    if plan.state == LOAD:
        done["load"] = _load(node, plan, sysfs)
    if plan.state != WORKS:
        done["reboot"] = {
            "allowed": request.reboot != "never",
            "why": why_reboot(plan),
            "jobs": node.active_jobs,
        }
        return done
    held, files = to_hold(plan.version, request, node), files_of(node)
    wanted = recorded(node, request, held)
    done["hold"] = unheld(node, held) if request.hold else []
    done["release"] = to_release(node, request, held)
    if wanted is not None and differs(wanted, files, key):
        done["record"] = [entry_of(wanted)]
    dropin = other_persistence_file(node, request, key)
    if dropin is not None:
        done["units"] = [entry_of(PERSISTENCE_FOLDER), entry_of(dropin)]
    if PERSISTENCED in node.services and (done["units"] or without_persistence(node, request)):
        done["restart"] = [PERSISTENCED]
    if node.joins_fabric:
        done["fabric"] = {"wait": FABRIC_WAIT}
    # All of them: one that runs may not start with the host yet.
    done["services"] = [
        # One that udev starts cannot be enabled.
        {"name": name, "enable": node.services[name].get("state") != "static"}
        for name in services(node, request)
        if name in node.services
    ]
    return done


def _preview(node: Node, request: Request, plan: Plan) -> dict[str, Any]:
    """Return the arguments of driver_preview."""
    choices = [{name: _plain(part) for name, part in vars(choice).items()} for choice in plan.choices]
    return {
        "choices": choices,
        "branch": plan.branch,
        "fabric": list(plan.fabric),
        "exact": plan.version or "",
        "minimum": request.min_version,
        "sources": plan.sources,
        "address": plan.address,
        "without": [*plan.stale_sources, SOURCES_FILE],
        "holds": node.held_by_us,
        "purge_conflicting": request.allow_purge_conflicting,
        "kernel": node.kernel.release,
        "builds_from": oldest_that_builds(request.builds, node.kernel.release, plan.branch or 0) or "",
    }


def _install(node: Node, request: Request, plan: Plan) -> dict[str, Any]:
    """Return what an installation needs beside what apt says, and what was there before, for the way back."""
    return {
        "driver": plan.state == INSTALL,
        "sources": entry_of(sources(plan)),
        "preferences": PREFERENCES_FILE,
        "stale_sources": list(plan.stale_sources),
        "nouveau": NOUVEAU if plan.state == INSTALL else "",
        "hold": request.hold,
        "held": node.held_by_us,
        "packages": [f"{name}={package.get('version')}" for name, package in node.packages.items()],
        "files": list(FILES),
        "running": [name for name in (PERSISTENCED, FABRIC_MANAGER) if runs(node, name)],
    }


def _load(node: Node, plan: Plan, sysfs: str) -> dict[str, Any]:
    """Return how the module on disk comes to run."""
    reload = plan.how == "reload"
    there = [name for name in (FABRIC_MANAGER, PERSISTENCED) if reload and name in node.services]
    return {
        "stop": there,
        "unload": [{"name": name, "path": f"{sysfs}/module/{name}"} for name in MODULES if reload],
        "modprobe": plan.how != "reboot",
        "start": [name for name in reversed(there) if runs(node, name)],
    }


def _next_boot(node: Node, plan: Plan) -> str:
    """Return the sentence for a kernel that boots next without the driver that works, or that was just installed."""
    version = {WORKS: plan.version, LOAD: node.module.get("version")}.get(plan.state)
    boots = node.host.get("next_boot")
    other = str(boots.get("kernel")) if isinstance(boots, Mapping) else ""
    signed = signed_package(node.packages, str(node.system.get("kernel") or ""), other)
    found = without_module(boots, str(version or ""), signed)
    return "{}. Remedy: {}.".format(*found) if found else ""


def _undo(node: Node) -> dict[str, Any]:
    """Return what teardown reads. The driver stays, and with it what keeps nouveau away: others may compute with it."""
    ours = (EXCLUSION_FILE, PREFERENCES_FILE, SOURCES_FILE, PERSISTENCE_FILE)
    files = [ManagedFile(path, "", state="absent") for path in ours]
    return {"release": node.held_by_us, "files": [entry_of(item) for item in files]}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
