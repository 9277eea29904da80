# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with what is requested: with itself, with the GPUs of a host, with what runs there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...module_utils.common.problems import shown
from ...module_utils.driver.packages import (
    CUDA_REPOSITORY,
    SOURCES,
    first_branch,
    has_flavour,
    known_branches,
    last_branch,
    possible_flavours,
)
from ...module_utils.driver.preview import numeric
from ...module_utils.gpu.pci import OPEN, PROPRIETARY
from .request import AUTO, RECOMMENDED_BRANCH, Node, Refusal, Request


def request_refusals(request: Request, node: Node) -> Iterator[Refusal]:
    if request.branch != RECOMMENDED_BRANCH and request.number is None:
        yield Refusal(
            f"nvidia_driver_branch is {shown(request.branch)}, which is neither a branch nor recommended",
            "write the first number of a driver's version, such as 580, or recommended",
        )
    for name, value, allowed in (
        ("nvidia_driver_flavour", request.flavour, (AUTO, OPEN, PROPRIETARY)),
        ("nvidia_driver_source", request.source, SOURCES),
    ):
        if value not in allowed:
            yield Refusal(f"{name} is {shown(value)}, which is unknown", f"write one of {', '.join(allowed)}")
    if request.min_version and not re.fullmatch(r"\d+(\.\d+)*", request.min_version, re.ASCII):
        yield Refusal(
            f"nvidia_driver_min_version is {shown(request.min_version)}, which is not a version",
            "write a version such as 570.86, or leave it empty",
        )
    possible = possible_flavours(node.generations)
    if not possible:
        yield Refusal(
            f"no flavour of the kernel module drives all of this host's GPUs ({', '.join(node.generations)})",
            "remove the older GPUs from this host, or assign them to a virtual machine",
        )
    elif request.flavour in (OPEN, PROPRIETARY) and request.flavour not in possible:
        yield Refusal(
            f"nvidia_driver_flavour is {request.flavour}, but this host's GPUs ({', '.join(node.generations)}) work "
            f"only with the {possible[0]} kernel module",
            f"set nvidia_driver_flavour: auto, or {possible[0]}",
        )


def branch_refusals(request: Request, node: Node, branch: int | None) -> Iterator[Refusal]:
    place, generations = node.place(request), node.generations
    if branch is None:
        yield Refusal(
            f"for {place.distribution} {place.release} no branch is recommended",
            "set nvidia_driver_branch to a number, or nvidia_driver_source: keep",
        )
        return
    first, last, known = first_branch(generations), last_branch(generations), known_branches(place)
    unknown = known is not None and branch not in known
    names = ", ".join(generations)
    if last is not None and branch > last:
        yield Refusal(
            f"branch {branch} no longer drives this host's GPUs ({names}); the last that does is {last}",
            f"set nvidia_driver_branch: {last}, or recommended",
        )
    elif branch < first:
        better = "580 of nvidia_driver_source: cuda_repository" if known and max(known) < first else f"{first} or later"
        yield Refusal(
            f"branch {branch} does not drive this host's GPUs yet ({names}); the first that does is {first}",
            f"take branch {better}",
        )
    elif unknown:
        offered = ", ".join(map(str, known or ()))
        yield Refusal(
            f"{place.distribution.capitalize()} {place.release} has no driver of branch {branch} (it has {offered})",
            f"set nvidia_driver_branch to one of {offered}, or nvidia_driver_source: cuda_repository",
        )
    if request.min_version and branch < numeric(request.min_version)[0]:
        yield Refusal(
            f"branch {branch} is older than nvidia_driver_min_version ({request.min_version})",
            f"set nvidia_driver_branch: {numeric(request.min_version)[0]} or a later one; where the distribution has "
            "none, nvidia_driver_source: cuda_repository",
        )


def flavour_refusals(request: Request, node: Node, branch: int, flavour: str) -> Iterator[Refusal]:
    place = node.place(request)
    if has_flavour(place, branch, flavour):
        return
    where = "NVIDIA's repository" if request.source == CUDA_REPOSITORY else f"{place.distribution} {place.release}"
    yield Refusal(
        f"branch {branch} of {where} has no {flavour} kernel module, which is what "
        + (f"this host's GPUs need ({', '.join(node.generations)})" if request.flavour == AUTO else "is requested"),
        "choose another nvidia_driver_branch or nvidia_driver_source"
        + ("" if request.flavour == AUTO else ", or nvidia_driver_flavour: auto"),
    )


def use_refusals(request: Request, node: Node, how: str, reasons: tuple[str, ...]) -> Iterator[Refusal]:
    """New libraries beside an old module that stays loaded break every program that starts from then on."""
    if not node.loaded.get("loaded") or node.loaded.get("matches") is False:
        return
    version = node.loaded.get("version")
    if node.active_jobs:
        yield Refusal(
            f"driver {version} would be replaced under a training job ({', '.join(node.active_jobs)})",
            "let it end, or stop it (training_job with state: stopped), and run again",
        )
    if how == "reboot" and request.reboot == "never":
        shown_reasons = "; ".join(reasons[:4])
        yield Refusal(
            f"driver {version} is in use ({shown_reasons}), so another one would run only after a reboot, and until "
            "then no program could use the GPUs",
            "set nvidia_driver_reboot: if_needed, or stop what uses the GPUs",
        )
