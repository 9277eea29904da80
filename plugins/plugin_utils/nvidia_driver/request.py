# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is requested of a host's NVIDIA driver, what it has, and why the two differ. Shared by planner and preflight."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...module_utils.driver.packages import AUTO_SOURCE, Kernel, Offer, Place, possible_flavours
from ...module_utils.driver.preview import in_branch, numeric
from ...module_utils.gpu.pci import NOT_FOR_US
from ...module_utils.gpu.problems import WAITING
from ..plan.jobs import active_jobs
from .gathered import EXCLUSION_FILE, PREFERENCES_FILE
from .kernels import Build, parse_builds

RECOMMENDED_BRANCH, AUTO = "recommended", "auto"
PERSISTENCED, FABRIC_MANAGER = "nvidia-persistenced.service", "nvidia-fabricmanager.service"

_HELD = re.compile(r"^// Held: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Refusal:
    """Why nothing is begun. Both are sentences without their full stop."""

    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text}. Remedy: {self.remedy}."


@dataclass(frozen=True)
class Request:
    """The role's variables, by their names without ``nvidia_driver_``. ``kernel`` empty means the running one.

    ``offers`` is what the table of versions has, by distribution and release (``debian 12``), and ``builds`` which
    drivers it says build on which kernel. ``reason`` says why ``auto`` became NVIDIA's repository, and ``instead`` what
    else could be done.
    """

    branch: str = RECOMMENDED_BRANCH
    flavour: str = AUTO
    source: str = AUTO_SOURCE
    min_version: str = ""
    kernel: str = ""
    reboot: str = "never"
    allow_purge_conflicting: bool = False
    hold: bool = True
    persistence: bool = True
    repository_url: str = ""
    repository_key: str = ""
    offers: Mapping[str, tuple[Offer, ...]] = field(default_factory=dict)
    builds: tuple[Build, ...] = ()
    reason: str = ""
    instead: str = ""

    @property
    def number(self) -> int | None:
        """Return the branch as a number, None for the recommended one."""
        return int(self.branch) if re.fullmatch(r"[0-9]{3,4}", self.branch, re.ASCII) else None


def parse_request(given: Mapping[str, Any]) -> Request:
    """Read the variables; those that are missing have the role's defaults. A branch may be a number or text."""
    values: dict[str, Any] = {"offers": _offers(given.get("offers")), "builds": parse_builds(given.get("builds"))}
    for variable in fields(Request):
        value = given.get(variable.name)
        if value is None or variable.name in ("offers", "builds", "reason", "instead"):
            continue
        if isinstance(variable.default, bool):
            values[variable.name] = (
                value if isinstance(value, bool) else str(value).strip().lower() in ("true", "yes", "1", "on")
            )
        else:
            values[variable.name] = str(value).strip()
    return Request(**values)


def _offers(given: Any) -> dict[str, tuple[Offer, ...]]:
    """Read the table's rows; what is not of their form is left out, and then no branch is recommended."""
    found = {}
    for place, rows in _mapping(given).items():
        known = [row for row in rows if isinstance(row, Mapping) and isinstance(row.get("branch"), int)]
        texts = ("source", "ended", "key", "fingerprint")
        found[str(place)] = tuple(
            Offer(branch=row["branch"], **{name: str(row.get(name) or "") for name in texts}) for row in known
        )
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class Node:
    """The facts of one host. A fact that is missing reads as nothing there."""

    facts: Mapping[str, Any]

    @property
    def gpu(self) -> Mapping[str, Any]:
        """Return what ``gpu_info`` found."""
        return _mapping(self.facts.get("gpu"))

    @property
    def host(self) -> Mapping[str, Any]:
        """Return what ``node_facts`` found of the driver's packages and modules."""
        return _mapping(self.facts.get("driver"))

    @property
    def system(self) -> Mapping[str, Any]:
        """Return distribution, release, kernel and architecture."""
        return _mapping(self.facts.get("system"))

    @property
    def loaded(self) -> Mapping[str, Any]:
        """Return the driver that is loaded."""
        return _mapping(self.gpu.get("driver"))

    @property
    def devices(self) -> list[Mapping[str, Any]]:
        """Return the GPUs that are this host's own, and not a virtual machine's."""
        found = self.gpu.get("pci_devices")
        return [device for device in found or [] if device.get("driver") not in NOT_FOR_US]

    @property
    def generations(self) -> list[str]:
        """Return the generations of the GPUs that are known."""
        return sorted({str(device["generation"]) for device in self.devices if device.get("generation")})

    @property
    def switches(self) -> int:
        """Return how many NVSwitches there are, or 1 where only the GPUs report that there is a fabric."""
        count = len(self.gpu.get("nvswitches") or []) or len(self.switch_management)
        return count or int(bool(_mapping(self.gpu.get("fabric")).get("state")))

    @property
    def switch_management(self) -> list[str]:
        """Return the InfiniBand devices by which NVSwitches are managed: from B200 on they are no PCI devices."""
        found = _mapping(self.facts.get("fabric")).get("infiniband")
        return [str(device.get("name")) for device in found or [] if device.get("switch_management") is True]

    @property
    def joins_fabric(self) -> bool:
        """Return whether GPUs have not joined an NVLink fabric although its manager runs."""
        fabric = _mapping(self.gpu.get("fabric"))
        return fabric.get("state") in WAITING and fabric.get("manager_running") is True

    @property
    def packages(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the driver's packages that are installed."""
        return _mapping(self.host.get("packages"))

    @property
    def kernel_packages(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the packages that follow new kernels, such as ``linux-image-generic``."""
        return _mapping(self.host.get("kernel_packages"))

    @property
    def module(self) -> Mapping[str, Any]:
        """Return the kernel module on disk."""
        return _mapping(self.host.get("module"))

    @property
    def services(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the driver's services that are installed."""
        return _mapping(self.host.get("services"))

    @property
    def kernel(self) -> Kernel:
        """Return the kernel that the module is for."""
        headers = _mapping(self.host.get("headers"))
        flavours = tuple(str(name) for name in self.host.get("image_flavours") or [])
        return Kernel(str(self.host.get("kernel") or ""), flavours, headers.get("installed") is True)

    def place(self, request: Request) -> Place:
        """Return where the packages that are requested come from on this host."""
        distribution, release = str(self.system.get("distribution")), str(self.system.get("release"))
        return Place(request.source, distribution, release, request.offers.get(f"{distribution} {release}", ()))

    def file(self, path: str) -> str:
        """Return the text of a file of the role, empty where it is not there."""
        return str(_mapping(_mapping(self.facts.get("files")).get(path)).get("content") or "")

    @property
    def held_by_us(self) -> list[str]:
        """Return the packages that this role put on hold; it keeps record of them in a file of its own."""
        found = _HELD.search(self.file(EXCLUSION_FILE))
        return found[1].split() if found else []

    @property
    def is_ours(self) -> bool:
        """Return whether this role installed the driver: then it keeps its version."""
        return bool(self.file(PREFERENCES_FILE))

    @property
    def active_jobs(self) -> list[str]:
        """Return the training jobs that run by their last written state."""
        return sorted(active_jobs(self.facts))


def exclusion(held: list[str]) -> str:
    """Return apt's configuration that keeps unattended-upgrades from the driver, with the record of what is held.

    The names are regular expressions that must match from a package's first letter. Ubuntu's linux-modules-nvidia-* are
    not among them: unattended-upgrades would install the next kernel without its module.
    """
    names = ("nvidia-(?!container)", "libnvidia-(?!container)", "libcuda1$", "firmware-nvidia-")
    lines = "".join(f'  "{name}";\n' for name in (*names, "cuda-drivers", "xserver-xorg-video-nvidia"))
    return (
        "// Kept by swarmspeed.cluster (nvidia_driver): a driver that changes under running programs breaks them.\n"
        f"// Held: {' '.join(held)}\n"
        f"Unattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"
    )


def misfit(version: str | None, flavour: str | None, request: Request, node: Node) -> str | None:
    """Return why a driver of this version and flavour is not what is requested, or None. Unknown flavours pass."""
    if not version:
        return "no driver is there"
    number = request.number
    if number is not None and not in_branch(version, number):
        return f"driver {version} is not of branch {number}"
    if request.min_version and numeric(version) < numeric(request.min_version):
        return f"driver {version} is older than nvidia_driver_min_version ({request.min_version})"
    return _wrong_flavour(version, flavour, request, node) if flavour else None


def _wrong_flavour(version: str, flavour: str, request: Request, node: Node) -> str | None:
    if request.flavour not in {AUTO, flavour}:
        return f"driver {version} has the {flavour} kernel module, not the {request.flavour} one"
    if flavour not in possible_flavours(node.generations):
        names = ", ".join(node.generations)
        return f"the {flavour} kernel module of driver {version} cannot drive these GPUs ({names})"
    return None


def shortcoming(request: Request, node: Node) -> str | None:
    """Return why the driver that runs does not satisfy the request, or None where it does, whatever installed it."""
    loaded = node.loaded
    if not loaded.get("loaded"):
        there = node.module.get("version")
        return f"driver {there} is installed and not loaded" if there else "no driver is loaded"
    reason = misfit(loaded.get("version"), loaded.get("flavour"), request, node)
    if reason:
        return reason
    if loaded.get("matches") is False:
        return f"the loaded module is {loaded.get('version')} but the libraries are {loaded.get('library_version')}"
    if not loaded.get("library_version") and not node.gpu.get("gpus"):
        return f"driver {loaded.get('version')} is loaded but its libraries are missing"
    return None


def manager_shortcoming(node: Node) -> str | None:
    """Return what is wrong with the fabric manager beside a driver that works, or None."""
    if not (node.gpu.get("nvswitches") or node.switch_management):
        return None
    fabric = _mapping(node.gpu.get("fabric"))
    driver, manager = node.loaded.get("version"), fabric.get("manager_version")
    if not manager:
        return "the fabric manager is missing"
    if driver and manager != driver:
        return f"the fabric manager is {manager}, the driver {driver}"
    return None
