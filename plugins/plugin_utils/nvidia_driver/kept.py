# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is kept beside a driver that works: holds and their record, services, persistence mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.driver.packages import SIGNED_MODULES, following_module
from ...module_utils.driver.preview import upstream
from ..plan.changes import Changes
from ..plan.files import add_file, differs, fact_after
from ..plan.managed_file import ManagedFile
from .gathered import EXCLUSION_FILE, PERSISTENCE_FILE
from .request import FABRIC_MANAGER, PERSISTENCED, Node, Request, exclusion

HOLD = "nvidia_driver_hold"
PERSISTENCE = "nvidia_driver_persistence"
KERNEL_IMAGE = "linux-image-"

NO_RECORD = ManagedFile(EXCLUSION_FILE, "", state="absent")
PERSISTENCE_ON = ManagedFile(
    PERSISTENCE_FILE,
    "# Kept by swarmspeed.cluster (nvidia_driver): Ubuntu's unit starts the daemon with persistence mode off.\n"
    "[Unit]\nStopWhenUnneeded=false\n"
    "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --verbose\n",
)
"""The command is that of the unit in nvidia-compute-utils-580-server 580.178.04, without --no-persistence-mode."""
NO_PERSISTENCE_FILE = ManagedFile(PERSISTENCE_FILE, "", state="absent")
PERSISTENCE_FOLDER = ManagedFile(PERSISTENCE_FILE.rpartition("/")[0], None, mode="0755")


def files_of(node: Node) -> Mapping[str, Any]:
    found = node.facts.get("files")
    return found if isinstance(found, Mapping) else {}


def to_hold(version: str | None, request: Request, node: Node) -> list[str]:
    """Return what is to be on hold beside a driver that works, empty where this role holds nothing.

    That is what this role put on hold, or where holding was off till now, what has the driver's version; and a kernel
    image that would come without the driver's module.
    """
    drivers = [name for name in node.held_by_us if not name.startswith(KERNEL_IMAGE)]
    if not drivers and node.is_ours and request.hold:
        drivers = [
            name
            for name, package in node.packages.items()
            if package.get("version") and upstream(str(package["version"])) == version
        ]
    return sorted({*drivers, *(alone(node) if request.hold and (drivers or node.is_ours) else ())})


def alone(node: Node) -> list[str]:
    """Return the packages that follow new kernels while none follows with Ubuntu's signed module for them.

    The role leaves that one out where it would bring another kernel at once (``Choice.optional``).
    """
    release = node.kernel.release
    own = [name for name in node.packages if name.startswith(SIGNED_MODULES) and name.endswith(f"-{release}")]
    if not (own and release):
        return []
    prefix = min(own).removesuffix(f"-{release}")
    flavours = [flavour for flavour in node.kernel.image_flavours if KERNEL_IMAGE + flavour in node.kernel_packages]
    return [f"{KERNEL_IMAGE}{name}" for name in flavours if following_module(prefix, name) not in node.packages]


def _states(node: Node) -> dict[str, Mapping[str, Any]]:
    return {**node.packages, **node.kernel_packages}


def unheld(node: Node, held: list[str]) -> list[str]:
    """Return the packages that apt must hold."""
    states = _states(node)
    return [name for name in held if name in states and not states[name].get("held")]


def to_release(node: Node, request: Request, held: list[str]) -> list[str]:
    """Return the packages that this role has put on hold, that still are, and that need not be any more."""
    needed, states = held if request.hold else [], _states(node)
    return [name for name in node.held_by_us if name not in needed and (states.get(name) or {}).get("held")]


def record(held: list[str]) -> ManagedFile:
    return ManagedFile(EXCLUSION_FILE, exclusion(sorted(held)))


def recorded(node: Node, request: Request, held: list[str]) -> ManagedFile | None:
    """Return the record as it is to be, None where this role keeps none."""
    if not request.hold:
        return NO_RECORD
    return record(held) if held or node.file(EXCLUSION_FILE) else None


def services(node: Node, request: Request) -> dict[str, str]:
    """Return the services that are to run beside the driver, each with the reason."""
    found: dict[str, str] = {}
    if keeps_persistence(node, request):
        found[PERSISTENCED] = PERSISTENCE
    if node.gpu.get("nvswitches") or node.switch_management:
        found[FABRIC_MANAGER] = "this host has NVSwitches"
    return found


def keeps_persistence(node: Node, request: Request) -> bool:
    # What this role did not install is its owner's in this too.
    return node.is_ours and request.persistence and PERSISTENCED in node.services


def persistence_file(node: Node, request: Request) -> ManagedFile:
    """Return the drop-in of the daemon's unit: there where the unit needs it."""
    wanted = keeps_persistence(node, request) and node.host.get("persistence_off") is True
    return PERSISTENCE_ON if wanted else NO_PERSISTENCE_FILE


def other_persistence_file(node: Node, request: Request, key: str) -> ManagedFile | None:
    """Return the drop-in where it differs. Not under a job, whose GPUs a reload of systemd can take away."""
    wanted = persistence_file(node, request)
    return wanted if differs(wanted, files_of(node), key) and not node.active_jobs else None


def without_persistence(node: Node, request: Request) -> list[int]:
    """Return the GPUs that say themselves that persistence mode is off, where this role is to keep it on."""
    gpus = node.gpu.get("gpus") if keeps_persistence(node, request) and not node.active_jobs else None
    return [int(gpu["index"]) for gpu in gpus or [] if gpu.get("persistence") is False]


def runs(node: Node, name: str) -> bool:
    return (node.services.get(name) or {}).get("active") is True


def add_kept(changes: Changes, node: Node, request: Request, version: str | None, key: str) -> None:
    """Add what differs beside a driver that works."""
    files, held = files_of(node), to_hold(version, request, node)
    lonely = alone(node)
    for name in unheld(node, held) if request.hold else []:
        changes.add(f"hold on {name}", None, True, "no package brings its module" if name in lonely else HOLD)
    for name in to_release(node, request, held):
        why = "its module follows" if request.hold else f"{HOLD}, which is no longer set"
        changes.add(f"hold on {name}", True, None, why)
    wanted = recorded(node, request, held)
    if wanted is not None and differs(wanted, files, key):
        add_file(changes, wanted, files, key, HOLD)
    dropin = other_persistence_file(node, request, key)
    if dropin is not None:
        add_file(changes, dropin, files, key, PERSISTENCE)
    for name, why in services(node, request).items():
        if not runs(node, name):
            there = (node.services.get(name) or {}).get("active") is not None
            changes.add(f"service {name}", "stopped" if there else None, "running", why)
    for index in without_persistence(node, request):
        changes.add(f"persistence mode of GPU {index}", "off", "on", PERSISTENCE)


def kept(facts: Mapping[str, Any], request: Request, version: str | None, key: str) -> Mapping[str, Any]:
    """Return the facts once holds, services and persistence mode are as wanted, too."""
    node = Node(facts)
    held, files, driver = to_hold(version, request, node), dict(files_of(node)), dict(node.host)
    states = dict.fromkeys(node.held_by_us, False) | (dict.fromkeys(held, True) if request.hold else {})
    for part in ("packages", "kernel_packages"):
        found = node.host.get(part)
        driver[part] = {
            name: {**package, "held": states.get(name, package.get("held"))} for name, package in (found or {}).items()
        }
    wanted = recorded(node, request, held)
    if wanted is not None:
        files[EXCLUSION_FILE] = text_after(wanted, key) if request.hold else fact_after(wanted, key)
    dropin = other_persistence_file(node, request, key)
    if dropin is not None:
        files[PERSISTENCE_FILE] = text_after(dropin, key)
    running = {name: {**(node.services.get(name) or {}), "active": True} for name in services(node, request)}
    driver["services"] = {**node.services, **running}
    off = without_persistence(node, request)
    gpus = [{**gpu, "persistence": True} if gpu["index"] in off else gpu for gpu in node.gpu.get("gpus") or []]
    gpu = {**node.gpu, "gpus": gpus} if off else node.gpu
    return {**facts, "driver": driver, "files": files, "gpu": gpu}


def text_after(item: ManagedFile, key: str) -> dict[str, Any]:
    return {**fact_after(item, key), "content": item.text} if item.wanted else fact_after(item, key)
