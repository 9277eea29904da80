# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where ``nvidia_driver_source: auto`` takes the driver from: the distribution, or NVIDIA's repository where that is
better.

The distribution comes first, as it signs its modules (Ubuntu) and needs no key. It is left where its branch is past its
end of life, is not the one that is requested, does not drive the GPUs, or has no fabric manager for NVSwitches.
"""

from __future__ import annotations

from dataclasses import replace

from ...module_utils.driver.packages import (
    AUTO_SOURCE,
    CUDA_REPOSITORY,
    DISTRIBUTION,
    Offer,
    first_branch,
    known_branches,
    recommended_branch,
)
from ...module_utils.driver.preview import numeric
from .request import Node, Request


def resolve(request: Request, node: Node) -> Request:
    """Return the request with a source in the place of ``auto``; where a release is not known, the distribution."""
    if request.source != AUTO_SOURCE:
        return request
    own = replace(request, source=DISTRIBUTION)
    other = replace(request, source=CUDA_REPOSITORY)
    theirs = node.place(other).offer
    reason, instead = _against(own, node, theirs) if theirs else ("", "")
    return replace(other, reason=reason, instead=instead) if reason else own


def recommendation(request: Request, node: Node) -> tuple[str, int | None]:
    """Return the source and the branch that would be installed, whatever works now."""
    found = resolve(request, node)
    return found.source, request.number or recommended_branch(node.place(found), node.generations)


def _against(request: Request, node: Node, theirs: Offer) -> tuple[str, str]:
    """Return what rules out the distribution's driver, and what the user could do to have it all the same."""
    place, generations = node.place(request), node.generations
    where = f"{place.distribution.capitalize()} {place.release}"
    if place.offer is None:
        return f"{where} has no driver of its own", ""
    if node.switch_management:
        return "this host has NVSwitches of B200 or later, and only NVIDIA has the packages that they need", ""
    if node.switches and place.packaged_by_debian:
        return "this host has NVSwitches, and Debian has no fabric manager", ""
    if request.number is not None:
        lacks = request.number not in (known_branches(place) or (request.number,))
        return (f"{where} has no driver of branch {request.number}" if lacks else "", "")
    branch, instead = recommended_branch(place, generations) or place.offer.branch, ""
    reason = ""
    if branch < first_branch(generations):
        reason = f"{where}'s branch {branch} does not drive this host's GPUs ({', '.join(generations)}) yet"
    elif (branch,) < numeric(request.min_version)[:1] <= (theirs.branch,):
        reason = f"{where}'s branch {branch} is older than nvidia_driver_min_version ({request.min_version})"
    elif place.offer.ended:
        reason = f"the driver of {where} itself, branch {branch}, has had no security updates since {place.offer.ended}"
        instead = f"set nvidia_driver_source: distribution, to use branch {branch} nevertheless"
    return reason, instead
