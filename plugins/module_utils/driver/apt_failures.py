# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why apt cannot install a driver, each with its remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..common.command_io import TIMED_OUT, CommandResult
from .packages import SIGNED_MODULES, Choice

_KEY = re.compile(r"NO_PUBKEY|EXPKEYSIG|REVKEYSIG|BADSIG|signatures? (couldn't|could not|were invalid)|OpenPGP")
_UNSIGNED = re.compile(r"is not signed")
"""Said of an address that cannot be read, too."""
_NETWORK = re.compile(
    r"Could not (resolve|connect|handshake)|Connection|Temporary failure|timed out|Unable to connect|\b[45]0[0-9]  "
    r"|does not have a Release file|certificate"
)
UNREACHABLE, KEY, MISSING, CONFLICT = "unreachable", "key", "missing", "conflict"


_SIGNED_FIT = "Ubuntu keeps its signed modules only for its newest kernels, in the newest version of the driver"
_NEWEST_KERNEL = "install the newest kernel of the distribution, reboot into it, and run again"


@dataclass(frozen=True)
class Trouble:
    """``kind`` is ``unreachable``, ``key``, ``missing`` or ``conflict``; the text is a sentence with its remedy."""

    kind: str
    text: str


@dataclass(frozen=True)
class Goal:
    """What is to be installed.

    ``exact`` is the version of a driver that is there, to which ``fabric`` is added; ``minimum`` is the oldest version
    that will do, empty for any; ``builds_from`` is the oldest that DKMS can build on ``kernel``, empty for any.
    """

    choices: Sequence[Choice]
    branch: int
    fabric: Sequence[str] = ()
    exact: str | None = None
    minimum: str = ""
    kernel: str = ""
    builds_from: str = ""


def explain_update(answer: CommandResult, ours: str) -> Trouble | None:
    """Return what kept apt from the indices, or None. ``ours`` is part of the address that is new, empty for none.

    apt may end well although an index is missing: its warnings count as well where they name our address.
    """
    lines = [line.strip() for line in answer.text.splitlines()]
    reported = [line for line in lines if re.match(r"(E|W|Err):", line)]
    about_us = [line for line in reported if ours and ours.rstrip("/") in line]
    if answer.rc == 0 and not any(_KEY.search(line) or line.startswith("Err") for line in about_us):
        return None
    about = about_us or reported
    shown = " ".join(dict.fromkeys(line.partition(": ")[2] or line for line in about if line.startswith(("E:", "W:"))))
    shown = (shown or " ".join(about) or answer.text or "nothing")[:400].rstrip(". ")
    if answer.rc == TIMED_OUT:
        return Trouble(
            UNREACHABLE,
            f"apt's indices could not be fetched in time: {shown}. Remedy: see which source does not answer "
            "(apt-get update), and set host_apt_proxy where this host needs a proxy",
        )
    unsigned = any(_UNSIGNED.search(line) for line in about) and not any(_NETWORK.search(line) for line in about)
    if unsigned or any(_KEY.search(line) for line in about):
        return Trouble(
            KEY,
            f"apt does not trust a repository: {shown}. Remedy: give the key that signs it in "
            "nvidia_driver_repository_key (its owner publishes it), or fix the source that is named",
        )
    if any(_NETWORK.search(line) for line in about):
        return Trouble(
            UNREACHABLE,
            f"a repository cannot be read: {shown}. Remedy: set host_apt_proxy where this host needs a proxy, or "
            "nvidia_driver_repository_url to a mirror; remove sources of your own that no longer exist",
        )
    return Trouble(UNREACHABLE, f"apt-get update failed: {shown}. Remedy: run it on this host and fix what it reports")


def missing(names: Sequence[str], branch: int) -> Trouble:
    """Packages that apt does not know."""
    headers = [name for name in names if name.startswith("linux-headers-")]
    if headers:
        return Trouble(
            MISSING,
            f"apt has no package {headers[0]}, which is needed to build a module for this kernel. Remedy: install "
            "the newest kernel of the distribution with its headers, reboot into it, and run again",
        )
    if all(name.startswith(SIGNED_MODULES) for name in names):
        return Trouble(MISSING, f"apt has no package {names[0]}: {_SIGNED_FIT}. Remedy: {_NEWEST_KERNEL}")
    return Trouble(
        MISSING,
        f"apt has no package {', '.join(names)} for branch {branch}. Remedy: choose another nvidia_driver_branch or "
        "nvidia_driver_source",
    )


def no_version(names: Sequence[str], versions: Mapping[str, Sequence[str]], branch: int) -> Trouble:
    """No version that all locked packages have."""
    offered = "; ".join(f"{name} {', '.join(list(versions.get(name, ()))[:3]) or 'none'}" for name in names)
    return Trouble(
        MISSING,
        f"no common version of branch {branch} is available for all packages that must have the same version "
        f"({offered}). Remedy: choose another nvidia_driver_branch or nvidia_driver_source",
    )


def too_old(version: str, goal: Goal) -> Trouble:
    """The newest version of the branch is not new enough."""
    return Trouble(
        MISSING,
        f"the newest available driver of branch {goal.branch} is {version}, older than nvidia_driver_min_version "
        f"({goal.minimum}). Remedy: choose another nvidia_driver_branch or nvidia_driver_source, or a lower "
        "nvidia_driver_min_version",
    )


def too_old_for_kernel(version: str, goal: Goal) -> Trouble:
    """A driver whose module does not build on this kernel."""
    return Trouble(
        MISSING,
        f"driver {version} does not build on kernel {goal.kernel}: of branch {goal.branch}, {goal.builds_from} is the "
        "oldest that does. Remedy: choose another nvidia_driver_branch or nvidia_driver_source, or boot an older "
        "kernel",
    )


def no_manager(goal: Goal, versions: Mapping[str, Sequence[str]]) -> Trouble:
    """No fabric manager in the version of the driver."""
    had = ", ".join(f"{name} {versions[name][0]}" for name in goal.fabric if name in versions) or "none"
    wanted = f"version {goal.exact}" if goal.exact else f"branch {goal.branch} in the driver's version"
    return Trouble(
        MISSING,
        f"this host has NVSwitches, but apt has no fabric manager of {wanted} (found: {had}); without it CUDA fails "
        "with error 802. Remedy: choose another nvidia_driver_branch, or nvidia_driver_source: cuda_repository",
    )


def transitional(branch: int, others: Sequence[str]) -> Trouble:
    """A branch whose packages install another one."""
    return Trouble(
        MISSING,
        f"the packages of branch {branch} are only transitional in this release and install branch "
        f"{', '.join(others)}. Remedy: set nvidia_driver_branch: {others[-1]}, or nvidia_driver_source: "
        "cuda_repository",
    )


def unsolvable(answer: CommandResult) -> Trouble:
    """A conflict, in apt's words."""
    text = answer.text
    _head, separator, tail = text.partition("unmet dependencies:")
    reported = " ".join((tail if separator else text).split())[:400].rstrip(". ")
    if SIGNED_MODULES in reported:
        return Trouble(
            CONFLICT,
            f"apt cannot install Ubuntu's signed module for this kernel: {reported}: {_SIGNED_FIT}. Remedy: "
            f"{_NEWEST_KERNEL}",
        )
    return Trouble(
        CONFLICT,
        f"apt cannot install these packages together: {reported}. Remedy: check what is held or half-installed "
        "(apt-mark showhold; dpkg --audit), or choose another nvidia_driver_branch",
    )
