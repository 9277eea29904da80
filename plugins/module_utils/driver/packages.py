# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which packages make a driver for computing, without a display: by distribution, source, branch and flavour.

Read in November 2026 from the indices of Debian 12 and 13 and of Ubuntu 22.04 and 24.04, and from NVIDIA's driver
installation guide (releases 590 to 620) for its own repository, whose indices were not at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..gpu.pci import GENERATIONS, OPEN, PROPRIETARY

AUTO_SOURCE, DISTRIBUTION, CUDA_REPOSITORY, KEEP = "auto", "distribution", "cuda_repository", "keep"
SOURCES = (AUTO_SOURCE, DISTRIBUTION, CUDA_REPOSITORY, KEEP)

OPEN_BY_DEFAULT = 560
"""The first branch for which NVIDIA recommends the open kernel module wherever it works."""

OPEN_FROM = 525
"""The first branch whose open kernel module drives GPUs of data centres and is packaged beside the other."""

OPEN_ONLY = 620
"""The first branch without a proprietary kernel module (guide for 620, "Proprietary Kernel Modules Removed")."""

FIRST_BRANCH = {"Ampere": 450, "Ada": 525, "Hopper": 525, "Grace Hopper": 535, "Blackwell": 570}
"""The first branch that drives a generation, where a branch that is still available does not."""

_DEBIAN_LEGACY = {"12": (470,), "13": (535,)}
"""Older branches in Debian, packaged beside the current one as ``nvidia-tesla-<branch>-…``, proprietary only."""

_CUDA_UNNUMBERED = 590
"""From this branch on the packages for Ubuntu in NVIDIA's repository have no branch in their names."""

DKMS, SIGNED = "dkms", "signed"

SIGNED_MODULES = "linux-modules-nvidia-"
"""How Ubuntu's packages with modules that it built and signed begin; each is for one kernel."""

_MODULE_PACKAGE = re.compile(r"nvidia-(tesla-\d+-)?(open-)?kernel-(open-)?dkms$|nvidia-dkms(-\d+)?(-server)?(-open)?$")
"""Packages whose module DKMS builds. apt lets two of them stand beside one another where they do not conflict."""

PINNED = (
    "nvidia-* libnvidia-* libcuda1 libcudadebugger1 libnvcuvid1 libnvoptix1 libxnvctrl* firmware-nvidia-* "
    "cuda-drivers* libegl-nvidia* libgl1-nvidia* libgles-nvidia* libglx-nvidia* xserver-xorg-video-nvidia*"
)
"""Packages whose version is the driver's. Others that these patterns meet have other versions, and are not touched."""


@dataclass(frozen=True)
class Choice:
    """One set of packages. ``locked`` must be of one version; ``optional`` are taken where they bring no new kernel.

    ``kind`` is ``dkms`` (the module is built here) or ``signed`` (the distribution built it and signed it). ``rivals``
    are packages with another module, which have to go first.
    """

    kind: str
    packages: tuple[str, ...]
    locked: tuple[str, ...]
    optional: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Offer:
    """The branch that a source has for a release of a distribution: a row of the table of versions.

    ``ended`` is the month of its end of life where that is past. ``key`` is the file beside the packages with the key
    that signs them, of this ``fingerprint``; Debian and Ubuntu need none.
    """

    source: str
    branch: int
    ended: str = ""
    key: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Place:
    """Where packages come from: ``source`` is ``distribution`` or ``cuda_repository``; a release such as ``24.04``.

    ``offers`` are those of every source for this release.
    """

    source: str
    distribution: str
    release: str
    offers: tuple[Offer, ...] = ()

    @property
    def offer(self) -> Offer | None:
        """Return what this source has, None where it has nothing for this release."""
        return next((offer for offer in self.offers if offer.source == self.source), None)

    @property
    def legacy(self) -> tuple[int, ...]:
        """Return the branches that are packaged as old ones."""
        return _DEBIAN_LEGACY.get(self.release, ()) if self.packaged_by_debian else ()

    @property
    def packaged_by_debian(self) -> bool:
        """Return whether Debian itself packages the driver."""
        return (self.source, self.distribution) == (DISTRIBUTION, "debian")

    @property
    def usual_branch(self) -> int | None:
        """Return the branch to take for GPUs that every branch drives, None where nothing is packaged."""
        return self.offer.branch if self.offer else None


@dataclass(frozen=True)
class Kernel:
    """What the module is for. ``image_flavours`` are of the packages that follow new kernels, such as ``amd64``."""

    release: str
    image_flavours: tuple[str, ...] = ()
    headers_there: bool = False

    @property
    def headers(self) -> tuple[str, ...]:
        """Return the headers to install."""
        return () if self.headers_there else (f"linux-headers-{self.release}",)

    @property
    def following_headers(self) -> tuple[str, ...]:
        """Return the packages with which the next kernel comes with its headers too."""
        return tuple(f"linux-headers-{name}" for name in self.image_flavours)

    def following_modules(self, prefix: str) -> tuple[str, ...]:
        """Return Ubuntu's packages with which the next kernel comes with its signed module too."""
        return tuple(dict.fromkeys(following_module(prefix, name) for name in self.image_flavours))


def following_module(prefix: str, image_flavour: str) -> str:
    """Return Ubuntu's package that follows ``linux-image-<image_flavour>``.

    ``linux-image-virtual`` brings the generic kernel without its extra modules, and there is no module of that name.
    """
    return f"{prefix}-{re.sub(r'^virtual', 'generic', image_flavour)}"


def known_branches(place: Place) -> tuple[int, ...] | None:
    """Return the available branches, or None where only apt can say."""
    if not place.packaged_by_debian or place.usual_branch is None:
        return None
    return tuple(sorted({place.usual_branch, *place.legacy}))


def possible_flavours(generations: Iterable[str]) -> tuple[str, ...]:
    """Return the flavours that drive all of these generations; a name that is not known bars none."""
    flavours = [OPEN, PROPRIETARY]
    for name in generations:
        if name in GENERATIONS:
            flavours = [flavour for flavour in flavours if flavour in GENERATIONS[name].flavours]
    return tuple(flavours)


def last_branch(generations: Iterable[str]) -> int | None:
    """Return the last branch that drives all of these generations, None where none has been dropped."""
    lasts = [GENERATIONS[name].last_branch for name in generations if name in GENERATIONS]
    return min((last for last in lasts if last is not None), default=None)


def first_branch(generations: Iterable[str]) -> int:
    """Return the first branch that drives all of these generations, 0 where any does."""
    return max((FIRST_BRANCH.get(name, 0) for name in generations), default=0)


def recommended_branch(place: Place, generations: Iterable[str]) -> int | None:
    """Return the branch to take unasked: the source's own, or the last that still drives an old GPU."""
    usual, last = place.usual_branch, last_branch(generations)
    return min(usual, last) if usual is not None and last is not None else usual


def auto_flavour(place: Place, branch: int, possible: tuple[str, ...]) -> str:
    """Return the flavour to take unasked, of those that drive the GPUs (one at least)."""
    if len(possible) == 1:
        return possible[0]
    return OPEN if branch >= OPEN_BY_DEFAULT and branch not in place.legacy else PROPRIETARY


def has_flavour(place: Place, branch: int, flavour: str) -> bool:
    """Return whether this branch is packaged with this flavour, as far as that is known without asking apt."""
    if flavour == OPEN:
        return branch >= OPEN_FROM and branch not in place.legacy
    return branch < OPEN_ONLY


def choices(place: Place, branch: int, flavour: str, kernel: Kernel) -> list[Choice]:
    """Return the sets to try, the best first."""
    if place.source == DISTRIBUTION and place.distribution == "ubuntu":
        return _ubuntu(branch, flavour, kernel)
    if place.packaged_by_debian:
        packages = _debian(place, branch, flavour)
    else:
        packages = _cuda_debian(flavour) if place.distribution == "debian" else _cuda_ubuntu(branch, flavour)
    # It has versions of its own, and works with any driver.
    locked = tuple(name for name in packages if name != "nvidia-persistenced")
    return [Choice(DKMS, (*packages, "dkms", *kernel.headers), locked, kernel.following_headers)]


def _debian(place: Place, branch: int, flavour: str) -> tuple[str, ...]:
    if branch in place.legacy:
        old = f"nvidia-tesla-{branch}"
        libraries = (f"lib{old}-cuda1", f"lib{old}-ml1", f"lib{old}-cfg1")
        return (f"{old}-kernel-dkms", *libraries, f"{old}-smi", "nvidia-persistenced")
    module = "nvidia-open-kernel-dkms" if flavour == OPEN else "nvidia-kernel-dkms"
    return (module, "libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "nvidia-smi", "nvidia-persistenced")


def _ubuntu(branch: int, flavour: str, kernel: Kernel) -> list[Choice]:
    suffix = f"{branch}-server{'-open' if flavour == OPEN else ''}"
    # nvidia-compute-utils, which it brings, holds nvidia-persistenced.
    packages = (f"nvidia-headless-no-dkms-{suffix}", f"nvidia-utils-{branch}-server")
    modules, built_here = f"linux-modules-nvidia-{suffix}", f"nvidia-dkms-{suffix}"
    following = kernel.following_modules(modules)
    return [
        Choice(SIGNED, (*packages, f"{modules}-{kernel.release}"), packages, following),
        Choice(DKMS, (*packages, built_here, *kernel.headers), (*packages, built_here), kernel.following_headers),
    ]


def _cuda_debian(flavour: str) -> tuple[str, ...]:
    module = "nvidia-kernel-open-dkms" if flavour == OPEN else "nvidia-kernel-dkms"
    return (module, "nvidia-driver-cuda", "nvidia-persistenced")


def _cuda_ubuntu(branch: int, flavour: str) -> tuple[str, ...]:
    number = "" if branch >= _CUDA_UNNUMBERED else f"-{branch}"
    module = f"nvidia-dkms{number}{'-open' if flavour == OPEN else ''}"
    return (module, f"libnvidia-compute{number}", f"nvidia-utils{number}", f"nvidia-compute-utils{number}")


def with_rivals(choice: Choice, installed: Iterable[str]) -> Choice:
    """Return the choice with those installed packages that bring another module than it does."""
    others = sorted(name for name in installed if _MODULE_PACKAGE.match(name) and name not in choice.packages)
    return replace(choice, rivals=tuple(others))


def fabric_packages(place: Place, branch: int) -> tuple[str, ...]:
    """Return the names under which the fabric manager may be packaged, none where it is not."""
    if place.source == DISTRIBUTION:
        return () if place.packaged_by_debian else (f"nvidia-fabricmanager-{branch}",)
    return ("nvidia-fabricmanager", f"nvidia-fabricmanager-{branch}")


def components(distribution: str, *, fabric: bool) -> tuple[str, ...]:
    """Return the components of the distribution that hold its driver; Ubuntu's fabric manager is in multiverse."""
    if distribution == "debian":
        return ("contrib", "non-free", "non-free-firmware")
    return ("restricted", "multiverse") if fabric else ("restricted",)
