# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is to be done about a host's NVIDIA driver, with what, and why it must not be begun.

Pure: what is requested and the facts go in. ``node_facts`` reads the facts, ``driver_preview`` asks apt, the role acts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils.driver.packages import (
    DKMS,
    KEEP,
    SIGNED,
    Choice,
    auto_flavour,
    choices,
    fabric_packages,
    possible_flavours,
    recommended_branch,
    with_rivals,
)
from ...module_utils.driver.preview import numeric
from .auto_source import resolve
from .gpu_refusals import guest_refusal, licence_refusal, rack_refusal, switch_refusals
from .kernels import oldest_that_builds, that_build
from .refusals import repository, secure_boot_refusal, state_refusals
from .request import AUTO, Node, Refusal, Request, manager_shortcoming, misfit, shortcoming
from .request_problems import branch_refusals, flavour_refusals, request_refusals, use_refusals

WORKS, LOAD, INSTALL, FABRIC = "works", "load", "install", "fabric"

_PERSISTENCED_ALONE = re.compile(r"(nvidia-persiste\w*|nv-fabricmanage\w*) \(\d+\)$")
"""What runs beside the driver and is stopped with it; the kernel keeps fifteen characters of a name."""


@dataclass(frozen=True)
class Plan:
    """``state``: ``works``, ``load`` (installed, not running), ``fabric`` (its manager alone) or ``install``.

    ``how`` says how the installed driver comes to run: ``load``, ``reload`` or ``reboot``. ``version`` is of a driver
    that works, which a fabric manager beside it must have too. ``source`` is never ``auto``.
    """

    state: str
    why: str = ""
    branch: int | None = None
    flavour: str | None = None
    version: str | None = None
    choices: tuple[Choice, ...] = ()
    fabric: tuple[str, ...] = ()
    sources: str = ""
    address: str = ""
    stale_sources: tuple[str, ...] = ()
    how: str = "reboot"
    reasons: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    source: str = ""


def make_plan(facts: Mapping[str, Any], request: Request) -> Plan:
    """Return the plan. Everything that forbids it is collected, not the first alone."""
    resolved = resolve(request, Node(facts))
    return replace(_plan(facts, resolved), source=resolved.source)


def _plan(facts: Mapping[str, Any], request: Request) -> Plan:
    node = Node(facts)
    if not node.devices:
        refusal = Refusal(
            "this cluster computes on GPUs, but this host has no NVIDIA GPU, or has assigned all of them to virtual "
            "machines",
            "take it out of the cluster, or set cluster_accelerator: cpu for all",
        )
        return Plan(WORKS, refusals=(refusal,))
    requested = tuple(request_refusals(request, node))
    why = shortcoming(request, node)
    how, reasons = how_to_load(request, node)
    if why is None:
        return _beside_a_working_driver(request, node, requested)
    guest = guest_refusal(node)
    requested += (guest,) if guest else ()
    if requested:
        return Plan(INSTALL, why, refusals=requested, how=how, reasons=reasons)
    if request.source == KEEP:
        refusal = Refusal(
            f"{why}, but nvidia_driver_source is keep",
            "fix the driver yourself, or have one installed (nvidia_driver_source: auto)",
        )
        return Plan(INSTALL, why, refusals=(refusal,), how=how, reasons=reasons)
    if _is_installed(request, node):
        blocked = secure_boot_refusal(node) if how != "reboot" and not node.module.get("signer") else None
        return Plan(LOAD, why, how=how, reasons=reasons, refusals=(blocked,) if blocked else ())
    return _installation(request, node, why, how, reasons)


def _installation(request: Request, node: Node, why: str, how: str, reasons: tuple[str, ...]) -> Plan:
    place = node.place(request)
    branch = request.number or recommended_branch(place, node.generations)
    rack = rack_refusal(node)
    refusals = [*([rack] if rack else []), *switch_refusals(request, node), *branch_refusals(request, node, branch)]
    if branch is None or refusals:
        refusals += state_refusals(node, builds=False)
        return Plan(INSTALL, why, branch, refusals=tuple(refusals), how=how, reasons=reasons)
    possible = possible_flavours(node.generations)
    flavour = auto_flavour(place, branch, possible) if request.flavour == AUTO else request.flavour
    refusals += flavour_refusals(request, node, branch, flavour)
    sets = [with_rivals(choice, node.packages) for choice in choices(place, branch, flavour, node.kernel)]
    for forbidden in (secure_boot_refusal(node), _unbuilt(request, node, branch)):
        if forbidden:
            sets = [choice for choice in sets if choice.kind == SIGNED]
            refusals += [] if sets else [forbidden]
    fabric = fabric_packages(place, branch) if node.switches else ()
    if node.switches and not fabric:
        refusals.append(
            Refusal(
                "this host has NVSwitches, but Debian has no fabric manager, and without one CUDA fails with error 802",
                "set nvidia_driver_source: cuda_repository",
            )
        )
    found = repository(request, node, fabric=bool(fabric))
    refusals += [*found.refusals, *state_refusals(node, builds=[choice.kind for choice in sets] == [DKMS])]
    refusals += use_refusals(request, node, how, reasons)
    return Plan(
        INSTALL,
        why,
        branch,
        flavour,
        choices=tuple(sets),
        fabric=fabric,
        sources=found.text,
        address=found.address,
        stale_sources=found.stale,
        how=how,
        reasons=reasons,
        refusals=tuple(refusals),
    )


def _unbuilt(request: Request, node: Node, branch: int) -> Refusal | None:
    """Return why DKMS must not be begun on this kernel, or None. Which version a branch has, only apt knows."""
    kernel = node.kernel.release
    if oldest_that_builds(request.builds, kernel, branch) != "":
        return None
    others = "; ".join(that_build(request.builds, kernel))
    return Refusal(
        f"no driver of branch {branch} builds on kernel {kernel}",
        f"set nvidia_driver_branch to one that does ({others}), or boot an older kernel",
    )


def _beside_a_working_driver(request: Request, node: Node, requested: tuple[Refusal, ...]) -> Plan:
    """A driver that works is left alone; only a fabric manager that it needs is added."""
    version = str(node.loaded.get("version"))
    unlicensed = licence_refusal(node)
    lacking = (*switch_refusals(request, node), *([unlicensed] if unlicensed else []))
    if lacking:
        return Plan(WORKS, version=version, refusals=(*requested, *lacking))
    why = manager_shortcoming(node)
    if why is None:
        # What is requested must make sense all the same: a misspelt branch does not become right by a driver that runs.
        return Plan(WORKS, version=version, refusals=requested)
    branch = int(numeric(version)[0])
    if request.source == KEEP:
        refusal = Refusal(
            f"{why}, so CUDA fails with error 802, but nvidia_driver_source is keep",
            f"install nvidia-fabricmanager in version {version}, or have it installed (nvidia_driver_source: auto)",
        )
        return Plan(FABRIC, why, branch, version=version, refusals=(*requested, refusal))
    names = (f"nvidia-fabricmanager-{branch}", "nvidia-fabricmanager")
    found = repository(request, node, fabric=True)
    refusals = (*requested, *found.refusals, *state_refusals(node, builds=False))
    return Plan(
        FABRIC,
        why,
        branch,
        version=version,
        choices=(Choice(FABRIC, (), ()),),
        fabric=names,
        sources=found.text,
        address=found.address,
        stale_sources=found.stale,
        refusals=refusals,
    )


def _is_installed(request: Request, node: Node) -> bool:
    """Return whether module and libraries on disk agree, fit the request, and only do not run yet."""
    module = node.module
    if misfit(module.get("version"), module.get("flavour"), request, node) is not None:
        return False
    finished = all(package.get("finished") for package in node.packages.values())
    return finished and module.get("version") == node.loaded.get("library_version")


def how_to_load(request: Request, node: Node) -> tuple[str, tuple[str, ...]]:
    """Return how the driver on disk comes to run, and for a reboot why nothing less will do."""
    reasons = []
    running = str(node.system.get("kernel") or "")
    if request.kernel and request.kernel != running:
        reasons.append(f"the module is for kernel {request.kernel}, and {running} runs")
    if node.loaded.get("nouveau_loaded"):
        reasons.append("nouveau is loaded, and cannot be unloaded safely while a console uses it")
    if node.loaded.get("loaded"):
        users = node.host.get("users")
        if users is None:
            reasons.append("the processes that use the loaded module are unknown")
        else:
            reasons += [f"{user} uses it" for user in users if not _PERSISTENCED_ALONE.match(user)]
    if reasons:
        return "reboot", tuple(reasons)
    return ("reload" if node.loaded.get("loaded") else "load"), ()
