# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of the swarm and of its hosts would make trouble later: names, ports, managers that are gone, fixed settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.problems import Problem, listing
from ..core.values import mapping, mappings, texts, whole
from ..plan.requested import Requested
from .foreign import SWARM_LABEL

Hosts = Mapping[str, Mapping[str, Any]]

DATA_PATH_PORT = 4789
MANAGER_PORT = 2377
GOSSIP_PORT = 7946
"""Source: https://docs.docker.com/engine/swarm/swarm-tutorial/#open-protocols-and-ports-between-the-hosts"""


CONTAINER_LABEL = "swarmspeed.spec"
"""Of the training containers alone; images hand on the cluster's label."""


def _swarm(node: Any) -> Mapping[str, Any]:
    return mapping(mapping(mapping(node).get("docker")).get("swarm"))


def _own_swarm(hosts: Hosts, wanted: Requested) -> Mapping[str, Any]:
    """Return what the first manager says of this cluster's swarm, empty where it is in none or in another one."""
    swarm = _swarm(hosts.get(wanted.managers[0])) if wanted.managers else {}
    ours = mapping(swarm.get("labels")).get(SWARM_LABEL) == wanted.cluster_name or wanted.swarm_allow_adopt
    return swarm if swarm.get("state") == "active" and swarm.get("manager") is True and ours else {}


def check_swarm_fixed(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """What is fixed when a swarm is formed, or when a node joins, is as requested."""
    swarm = _own_swarm(hosts, wanted)
    if wanted.runtime == "host" or not swarm:
        return
    rebuild = "rebuild the swarm: teardown.yml, then site.yml"
    requested, found = whole(wanted.swarm.get("data_path_port")), whole(swarm.get("data_path_port")) or DATA_PATH_PORT
    if requested and requested != found:
        yield Problem(
            "swarm_data_path_port",
            f"is {requested}, but the swarm was formed with {found}, which cannot be changed afterwards",
            f"set it to {found}, or {rebuild}",
        )
    pools, has = texts(wanted.swarm.get("default_address_pool")), texts(swarm.get("default_addr_pool"))
    if pools and has and pools != has:
        yield Problem(
            "swarm_default_address_pool",
            f"is {', '.join(pools)}, but the swarm was formed with {', '.join(has)}, which cannot be changed "
            "afterwards",
            f"set it to {', '.join(has)}, or {rebuild}",
        )
    members = {str(node.get("id")) for node in mappings(swarm.get("nodes"))}
    for host, address in mapping(wanted.swarm.get("addresses")).items():
        if _swarm(hosts.get(host)).get("node_id") in members:
            yield from _address(str(host), hosts, str(address), first=host == wanted.managers[0])


def _address(host: str, hosts: Hosts, address: str, *, first: bool) -> Iterator[Problem]:
    """The address that a node advertises is fixed when it joins. A worker that has lost it joins again by itself."""
    own = _swarm(hosts.get(host))
    advertised = own.get("node_addr")
    if lost := lost_address(hosts.get(host), address):
        if own.get("manager") is True:
            yield Problem(
                host,
                f"is a manager of the swarm at the address {lost}, which it no longer has; this address is fixed when "
                "a node joins",
                "rebuild the swarm with teardown.yml and site.yml, or give the host that address again"
                if first
                else "run `docker swarm leave --force` there and site.yml again, or give the host that address again",
            )
    elif advertised and address[:1].isdigit() and advertised != address:
        yield Problem(
            host,
            f"advertises {advertised} to the other nodes, not {address}; this address is fixed when a node joins",
            "run `docker swarm leave` there and site.yml again, or set swarm_advertise_address to that address",
            fatal=False,
        )


def own_address(node: Any, text: str) -> str:
    """Return the IPv4 address of the host's interface of this name; else the text as it is.

    Docker takes an interface for the address of its own host, and none for that of another one, which it joins.
    """
    for interface in mappings(mapping(mapping(node).get("fabric")).get("interfaces")):
        if text and interface.get("name") == text:
            found = (entry for entry in mappings(interface.get("addresses")) if entry.get("family") == "inet")
            return next((str(entry.get("address")) for entry in found), text)
    return text


def lost_address(node: Any, address: str) -> str:
    """Return the address that a node advertises and that its host no longer has; empty where there is none.

    ``node`` holds the facts of the host, ``address`` is the one to advertise, or an interface; the host must have it.
    Without it nothing is reported: behind a translation of addresses a host never has the one that it advertises.
    """
    interfaces = mappings(mapping(mapping(node).get("fabric")).get("interfaces"))
    own = {str(entry.get("address")) for interface in interfaces for entry in mappings(interface.get("addresses"))}
    usable = address in own or address in {interface.get("name") for interface in interfaces}
    advertised = str(_swarm(node).get("node_addr") or "")
    return advertised if usable and advertised not in own else ""


def check_swarm_managers(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """The managers that answer are a majority with one to spare, and none is gone for good."""
    swarm = _own_swarm(hosts, wanted)
    if wanted.runtime == "host" or not swarm:
        return
    nodes = mappings(swarm.get("nodes"))
    names = {str(mapping(node.get("system")).get("hostname")): host for host, node in hosts.items()}
    for name in texts(wanted.swarm.get("removed_nodes")):
        if name in names:
            yield Problem(
                "swarm_removed_nodes",
                f"names {name}, which is {names[name]} of the inventory",
                "take the host out of the inventory, or its name out of swarm_removed_nodes",
            )
    managers = [node for node in nodes if node.get("role") == "manager"]
    silent = [node for node in managers if node.get("reachability") != "reachable"]
    strangers = [str(node.get("hostname")) for node in silent if node.get("hostname") not in names]
    answering = len(managers) - len(silent)
    if silent:
        who = listing(str(node.get("hostname")) for node in silent)
        spare = 2 * (answering - 1) > len(managers)
        yield Problem(
            "group managers",
            f"{answering} of the swarm's {len(managers)} managers answer, but not {who}"
            + (
                ""
                if spare
                else "; if one more is lost, no node can join and no container can be attached to the overlay"
            ),
            "start the engines of those that do not answer"
            + (
                f", or set swarm_removed_nodes: [{', '.join(strangers)}] where they are gone for good"
                if strangers
                else ""
            ),
            fatal=False,
        )


def check_swarm_left(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """Every node of the swarm is a host of the inventory. One that was taken out of it runs on, with its container."""
    if wanted.runtime == "host":
        return
    ids = {str(_swarm(node).get("node_id")) for node in hosts.values()}
    names = {str(mapping(node.get("system")).get("hostname")) for node in hosts.values()}
    removed = texts(wanted.swarm.get("removed_nodes"))
    for node in mappings(_own_swarm(hosts, wanted).get("nodes")):
        name, address = str(node.get("hostname") or node.get("id")), str(node.get("addr") or "").rsplit(":", 1)[0]
        # A stale entry of a host that has joined again is removed by the role swarm.
        if str(node.get("id")) in ids or name in names or name in removed:
            continue
        if node.get("role") == "manager" and node.get("reachability") != "reachable":
            continue  # reported by check_swarm_managers
        forget = f'site.yml -e \'{{"swarm_removed_nodes": ["{name}"]}}\''
        if node.get("state") == "down":
            text = "is down and not in the inventory, but still listed by the swarm"
            yield Problem(name, text, f"put it back into the inventory, or run {forget}", fatal=False)
            continue
        label = f"label={SWARM_LABEL}={wanted.cluster_name}"
        filters = f"--filter {label} --filter label={CONTAINER_LABEL}"
        demote = f"run docker node demote {name} on a manager, " if node.get("role") == "manager" else ""
        where = f" (at {address})" if address else ""
        yield Problem(
            name,
            f"is not in the inventory, but still a node of the swarm{where}, and its container may still run",
            f"put it back into the inventory; or remove it: {demote}run on it "
            f"docker ps --all --quiet {filters} | xargs --no-run-if-empty docker rm --force; docker swarm leave, "
            f"and then here {forget}",
            fatal=False,
        )


def check_attached(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """What is attached to the swarm's networks is there. An engine can keep the place of a container that is gone.

    The network cannot be removed until that engine starts again, which gives the place up.
    """
    names = {str(_swarm(node).get("node_id")): host for host, node in hosts.items()}
    for entry in mappings(_own_swarm(hosts, wanted).get("attached")):
        host, container = names.get(str(entry.get("node"))), str(entry.get("container") or "")
        docker = mapping(mapping(hosts.get(host or "")).get("docker"))
        there = {str(mapping(one).get("id")) for one in mapping(docker.get("containers")).values()}
        if not host or not container or container in there or docker.get("error"):
            continue
        running = [str(name) for name, one in mapping(docker.get("containers")).items() if _runs(one)]
        yield Problem(
            host,
            f"its engine still holds the endpoint of container {container[:12]}, which no longer exists, in network "
            f"{listing(texts(entry.get('networks')))}: its address stays in use, and teardown.yml cannot remove the "
            "network",
            "systemctl restart docker there" + (f", when {listing(running)} may be interrupted" if running else ""),
            fatal=False,
        )


def _runs(container: Any) -> bool:
    return mapping(container).get("state") not in ("created", "exited", "dead")


def check_host_names(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """Every host has a name of its own, as cloned machines often have not."""
    if wanted.runtime == "host":
        return
    named: dict[str, list[str]] = {}
    for host, node in hosts.items():
        name = mapping(node.get("system")).get("hostname")
        if isinstance(name, str) and name:
            named.setdefault(name, []).append(host)
    for name, bearers in named.items():
        if len(bearers) > 1:
            yield Problem(
                ", ".join(bearers),
                f"all have the host name {name}, by which the swarm lists its nodes, so these could not be "
                "distinguished",
                "give each a name of its own (hostnamectl set-hostname …) and restart its engine",
            )


def check_swarm_ports(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """On a host that is still to join, no one else listens where the swarm will."""
    if wanted.runtime == "host":
        return
    data_path = whole(wanted.swarm.get("data_path_port")) or DATA_PATH_PORT
    for host, node in hosts.items():
        listening = mapping(node.get("listening"))
        # The role docker restarts an engine that has kept ports from a swarm that it has left.
        stale = mapping(node.get("docker")).get("stale_swarm_ports") or []
        if _swarm(node).get("state") != "inactive":
            continue
        uses = [("tcp", GOSSIP_PORT, "nodes' gossip"), ("udp", GOSSIP_PORT, "nodes' gossip")]
        uses += [("tcp", MANAGER_PORT, "managers")] if host in wanted.managers else []
        uses += [("udp", data_path, "overlay's traffic")]
        for protocol, port, what in uses:
            if port in (listening.get(protocol) or []) and port not in stale:
                other = ", or set another swarm_data_path_port" if port == data_path else ""
                yield Problem(
                    host,
                    f"{protocol.upper()} port {port} is in use, but the swarm needs it for the {what}",
                    f"find the process that listens there (ss -lnp{protocol[0]} 'sport = :{port}') and stop it{other}",
                )
