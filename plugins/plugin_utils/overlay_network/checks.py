# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the overlay can be as it is asked, on all hosts, before it or anything else is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..cluster.subnets import SubnetError, collisions
from ..core.problems import Problem, missing
from ..core.values import mapping, mappings, texts, whole
from ..plan.requested import Requested
from .addressing import VXLAN_BYTES, differences
from .subnet_conflicts import conflicts, in_the_way

Hosts = Mapping[str, Mapping[str, Any]]

_RECREATE = (
    "set overlay_network_allow_recreate: true to have the network re-created, for which its containers are stopped and "
    "restarted"
)


def _applies(wanted: Requested) -> bool:
    return wanted.network_mode != "host" and wanted.runtime != "host"


def _first(hosts: Hosts, wanted: Requested) -> Mapping[str, Any]:
    """Return the facts of the first manager, where networks are made and listed."""
    return mapping(hosts.get(wanted.managers[0])) if wanted.managers else {}


def _networks(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(node.get("docker")).get("networks"))


def _overlay(hosts: Hosts, wanted: Requested) -> Mapping[str, Any]:
    return mapping(_networks(_first(hosts, wanted)).get(wanted.overlay_network))


def check_overlay_subnet(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """The overlay's subnet overlaps nothing that a host has: one asked for must not, one that exists had better not."""
    requested = wanted.overlay_subnet
    existing = texts(_overlay(hosts, wanted).get("subnets"))
    subnet = requested or ("" if wanted.overlay.get("recreate") else next(iter(existing), ""))
    if not subnet or not _applies(wanted):
        return
    remedy = "choose another overlay_network_subnet, or remove the variable to have a free one chosen"
    if not requested:
        remedy = f"the network works, but its containers cannot reach that; {_RECREATE}, on a free subnet"
    try:
        collisions(subnet, {})
    except SubnetError as error:
        yield Problem("overlay_network_subnet", str(error).rstrip("."), remedy)
        return
    pools = texts(wanted.swarm.get("default_address_pool"))
    for host, node in hosts.items():
        fabric = mapping(node.get("fabric"))
        if not isinstance(fabric.get("interfaces"), list) or not isinstance(fabric.get("routes"), list):
            yield missing(host, "which routes and interfaces it has")
            continue
        for item in in_the_way(subnet, conflicts(node, wanted.overlay_network, pools)):
            yield Problem(host, f"{item.words} overlaps the overlay's subnet {subnet}", remedy, fatal=bool(requested))


def check_overlay_network(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """A network of that name that exists is as asked, or may be re-created; and no host has one of another kind."""
    name, planned = wanted.overlay_network, mapping(wanted.overlay.get("planned"))
    if not _applies(wanted) or not name:
        return
    for host, node in hosts.items():
        driver = mapping(_networks(node).get(name)).get("driver")
        if driver and driver != "overlay":
            yield Problem(
                host,
                f"has a network {name} of driver {driver}, which containers there would join, not the overlay",
                f"remove it (docker network rm {name}), or choose another overlay_network_name",
            )
            return
    found = _overlay(hosts, wanted)
    if not found or not planned:
        return
    differing = differences(found, {**planned, "encrypted": wanted.overlay.get("encrypted")})
    for setting, check in _OWN_CHECKS.items():
        # What no network can be has a check of its own that reports it, and is no reason to give this one up.
        if setting in differing and any(problem.fatal for problem in check(hosts, wanted)):
            del differing[setting]
    subject = f"network {name}"
    if not differing:
        yield from _unused_mtu(wanted, planned, subject)
    elif not wanted.overlay.get("recreate"):
        yield Problem(
            subject,
            f"exists with other settings: {'; '.join(differing.values())}",
            f"{_RECREATE}; or set the overlay_network_* variables to what exists, or choose another "
            "overlay_network_name",
        )
    else:
        yield from _strangers(hosts, wanted)


def _unused_mtu(wanted: Requested, planned: Mapping[str, Any], subject: str) -> Iterator[Problem]:
    able, has = whole(wanted.underlay.get("mtu")), whole(planned.get("mtu"))
    if able and has and has < able and not whole(wanted.overlay.get("mtu")):
        text = f"was made for an MTU of {has}, and all hosts have {able} now: larger packets would be faster"
        yield Problem(subject, text, _RECREATE, fatal=False)


def _strangers(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """Containers that are not ours hold the network fast; only their owner takes them off it."""
    for host, node in hosts.items():
        ours = wanted.containers.get(host, f"{wanted.cluster_name}-{host}")
        for name, container in mapping(mapping(node.get("docker")).get("containers")).items():
            if name != ours and wanted.overlay_network in mapping(mapping(container).get("addresses")):
                yield Problem(
                    host,
                    f"container {name} is not ours and is on network {wanted.overlay_network}, which is to be "
                    "re-created",
                    f"take it off (docker network disconnect {wanted.overlay_network} {name}), or remove it",
                )


def check_overlay_mtu(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """No host's underlay interface is too small for the MTU asked for; and all have the same."""
    if not _applies(wanted):
        return
    interfaces = mapping(wanted.underlay.get("interfaces"))
    sizes: dict[str, int] = {}
    for host, name in interfaces.items():
        fabric = mapping(mapping(hosts.get(host)).get("fabric"))
        for interface in mappings(fabric.get("interfaces")):
            size = whole(interface.get("mtu"))
            if interface.get("name") == name and size:
                sizes[str(host)] = size
    requested = whole(wanted.overlay.get("mtu")) or 0
    for host, size in sizes.items():
        if requested > size:
            yield Problem(
                host,
                f"overlay_network_mtu is {requested}, and its interface {interfaces[host]} takes at most {size} bytes: "
                "larger "
                "packets would be lost, and transfers hang",
                f"set overlay_network_mtu to {min(sizes.values())}, or to 0 to have the smallest of all hosts taken",
            )
        elif not requested and size == min(sizes.values()) < max(sizes.values()):
            yield Problem(
                host,
                f"its interface {interfaces[host]} has an MTU of {size}, others have up to {max(sizes.values())}: the "
                f"overlay takes {size}, which is {size - VXLAN_BYTES} in the containers",
                "give all hosts' interfaces the larger one, where switches let it through",
                fatal=False,
            )


def check_overlay_encryption(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """Every kernel can do what an encrypted overlay needs."""
    if not _applies(wanted) or not wanted.overlay.get("encrypted"):
        return
    for host, node in hosts.items():
        esp = mapping(node.get("system")).get("esp")
        if esp is False:
            yield Problem(
                host,
                "its kernel has no ESP (CONFIG_INET_ESP), which overlay_network_encrypted needs: containers would not "
                "reach one another",
                "run a kernel that has it, or set overlay_network_encrypted: false",
            )
        elif esp is not True:
            yield Problem(
                host,
                "it is unknown whether its kernel has ESP, which overlay_network_encrypted needs",
                "see that `modprobe esp4` succeeds there",
                fatal=False,
            )


_OWN_CHECKS = {"subnet": check_overlay_subnet, "mtu": check_overlay_mtu, "encrypted": check_overlay_encryption}


def check_overlay_names(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """No container elsewhere on the overlay has the name of a node's: its name would lead to either of them."""
    if not _applies(wanted):
        return
    owners = {wanted.containers.get(host, f"{wanted.cluster_name}-{host}"): host for host in hosts}
    for host, node in hosts.items():
        for name, container in mapping(mapping(node.get("docker")).get("containers")).items():
            on_it = wanted.overlay_network in mapping(mapping(container).get("addresses"))
            if on_it and owners.get(name, host) != host:
                yield Problem(
                    host,
                    f"container {name} on network {wanted.overlay_network} has the name of {owners[name]}'s training "
                    "container, so that the name leads to either of them",
                    f"rename it (docker rename {name} …) and restart it, or remove it",
                )
