# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role overlay_network: one network, which the first manager makes, and all containers are on.

Its subnet and MTU were chosen by ``addressing``, with the facts of all hosts. A network that is replaced is listed on
the first manager, and on every host whose container is taken off it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping, texts, whole
from ..docker.unseen import unseen
from ..plan.changes import Changes, Consent, Inputs, RolePlan
from ..plan.fold import Facts, Wishes
from ..plan.jobs import active_jobs
from ..plan.play_hosts import unknown_hosts
from ..swarm.checks import lost_address
from .addressing import DEFAULT_MTU, MTU_OPTION, differences
from .gathered import ROLE

CLUSTER_LABEL, BENCH_LABEL = "swarmspeed.cluster", "swarmspeed.bench"
NOTHING: dict[str, Any] = {
    "name": "",
    "detach": "",
    "replace": False,
    "create": {},
    "ours": False,
    "exists": False,
    "encrypted": False,
    "subnet": None,
    "bench_left": False,
}
"""What the role's tasks read of a host on which there is nothing to do, and no network."""


@dataclass(frozen=True)
class Network:
    """The network as configured, and as the first manager has it, empty where it does not."""

    name: str
    cluster: str
    subnet: str
    mtu: int
    encrypted: bool
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wanted(self) -> dict[str, Any]:
        return {
            "driver": "overlay",
            "attachable": True,
            "subnet": self.subnet,
            "MTU": str(self.mtu),
            "encryption": self.encrypted,
        }

    @property
    def present(self) -> dict[str, Any]:
        """The same settings, of the network that exists."""
        options = mapping(self.found.get("options"))
        return {
            "driver": self.found.get("driver"),
            "attachable": self.found.get("attachable"),
            "subnet": subnet_of(self.found),
            "MTU": str(options.get(MTU_OPTION, DEFAULT_MTU)),
            "encryption": "encrypted" in options,
        }

    @property
    def differing(self) -> list[str]:
        """The settings in which the network that exists is another one."""
        present = self.present if self.found else self.wanted
        return [setting for setting, value in self.wanted.items() if present[setting] != value]

    @property
    def options(self) -> dict[str, str]:
        return {MTU_OPTION: str(self.mtu), **({"encrypted": ""} if self.encrypted else {})}

    @property
    def labels(self) -> dict[str, str]:
        return {CLUSTER_LABEL: self.cluster}


class OverlayNetworkPlanner:
    """Plans all hosts together: the network is the first manager's, its containers are everywhere."""

    role = ROLE

    def files(self, wishes: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        return ()

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        hosts = texts(inputs.cluster.get("hosts"))
        overlay = mapping(inputs.cluster.get("overlay"))
        network = _network(hosts[0], facts, wishes, overlay) if hosts and hosts[0] in facts else None
        acts = {host: _as_found(host, facts, network, is_first=host in hosts[:1]) for host in facts}
        here = [host for host in facts if _applies(wishes[host])]
        if not here:
            return RolePlan(acts=acts)
        if hosts and _lost(hosts[0], facts, wishes, inputs):
            acts[hosts[0]]["ours"] = False
        if not network or not overlay or any(host not in here for host in hosts):
            return RolePlan(refusals=list(unknown_hosts(ROLE, hosts, here)), acts=acts)
        first, replaced = hosts[0], bool(network.differing)
        if unseen(facts[first]):  # the network is the first manager's
            return RolePlan(acts=acts)
        attached = {
            host: container
            for host, container in ((host, f"{network.cluster}-{host}") for host in hosts)
            if replaced and network.name in _containers(facts[host]).get(container, ())
        }
        consent = _consent(network, attached, facts, wishes[first]) if replaced else None
        changes = {host: Changes(ROLE, host) for host in hosts}
        _add_network(changes[first], network, consent)
        for host, container in attached.items():
            before, after = f"on network {network.name}", "taken off until the network is made again"
            # The first manager needs it once, for the network itself.
            changes[host].add(f"container {container}", before, after, consent=None if host == first else consent)
            acts[host]["detach"] = container
        if changes[first].found:
            acts[first]["replace"] = replaced
            acts[first]["create"] = {
                "subnet": network.subnet,
                "driver_options": network.options,
                "labels": network.labels,
            }
        found = [change for one in changes.values() for change in one.found]
        return RolePlan(
            changes=found,
            refusals=list(_refusals(network, facts, hosts, wishes[first])),
            acts=acts,
            facts=_facts_after(network, facts, first, attached) if found else {},
        )


def _lost(first: str, facts: Facts, wishes: Wishes, inputs: Inputs) -> bool:
    """Whether no node reaches the first manager at the address that the swarm knows.

    Then teardown cannot remove the network, as the manager does not learn of the containers that leave it. It goes with
    the swarm.
    """
    known = facts.get(first, {})
    underlay = mapping(mapping(inputs.cluster.get("underlay")).get("addresses")).get(first)
    return bool(lost_address(known, str(wishes.get(first, {}).get("swarm_advertise_address") or underlay or "")))


def _as_found(host: str, facts: Facts, network: Network | None, is_first: bool) -> dict[str, Any]:
    """Return what the tasks read of what is there, whatever is planned."""
    found = network.found if network else {}
    left = [*_entries(facts[host], "containers"), *(_entries(facts[host], "networks") if is_first else ())]
    return {
        **NOTHING,
        "name": network.name if network else "",
        "exists": bool(found),
        "encrypted": bool(found and network and network.present["encryption"]),
        "subnet": subnet_of(found),
        "ours": bool(is_first and network and _labels(found).get(CLUSTER_LABEL) == network.cluster),
        "bench_left": any(BENCH_LABEL in _labels(entry) for entry in left),
    }


def subnet_of(network: Mapping[str, Any]) -> str | None:
    """Return the first subnet of a network."""
    return next(iter(texts(network.get("subnets"))), None)


def _applies(wishes: Mapping[str, Any]) -> bool:
    return str(wishes["cluster_network_mode"]) == "overlay" and str(wishes["deepspeed_launch_runtime"]) != "host"


def _network(first: str, facts: Facts, wishes: Wishes, overlay: Mapping[str, Any]) -> Network:
    wished = wishes[first]
    name = str(wished["overlay_network_name"])
    found = mapping(mapping(mapping(facts[first].get("docker")).get("networks")).get(name))
    return Network(
        name=name,
        cluster=str(wished["cluster_name"]),
        subnet=str(overlay.get("subnet") or ""),
        mtu=whole(overlay.get("mtu")) or DEFAULT_MTU,
        encrypted=bool(wished["overlay_network_encrypted"]),
        found={**found, "options": mapping(found.get("options")), "subnets": texts(found.get("subnets"))}
        if found
        else {},
    )


def _add_network(changes: Changes, network: Network, consent: Consent | None) -> None:
    what = f"network {network.name}"
    if not network.found:
        kind = "encrypted" if network.encrypted else "not encrypted"
        changes.add(what, None, f"overlay, subnet {network.subnet}, MTU {network.mtu}, {kind}")
        return
    for setting in network.differing:
        changes.add(f"{setting} of {what}", network.present[setting], network.wanted[setting])
    if network.differing:
        changes.add(what, "present", "replaced", ", ".join(network.differing), consent)


def _consent(network: Network, attached: Mapping[str, str], facts: Facts, wishes: Mapping[str, Any]) -> Consent:
    """Return what replacing the network needs: consent for itself, and for cutting off jobs that run over it."""
    words = differences(network.found, {"subnet": network.subnet, "mtu": network.mtu, "encrypted": network.encrypted})
    allowed = bool(wishes["overlay_network_allow_recreate"])
    jobs = sorted({name for host in attached for name in active_jobs(facts[host])})
    if allowed and jobs:
        # A job runs over all nodes: none of them begins without this.
        return Consent(
            variable="training_container_allow_recreate",
            effect=f"network {network.name} is replaced, which cuts off job {', '.join(jobs)}",
            given=bool(wishes["training_container_allow_recreate"]),
            otherwise="wait for the job, or stop it",
        )
    return Consent(
        variable="overlay_network_allow_recreate",
        effect=f"network {network.name} exists with other settings ({'; '.join(words.values())}) and must be replaced, "
        "for which its containers are taken off it",
        given=allowed,
        otherwise="set the overlay_network_* variables to what exists, or choose another overlay_network_name",
    )


def _refusals(network: Network, facts: Facts, hosts: list[str], wishes: Mapping[str, Any]) -> Iterator[Problem]:
    swarm = mapping(mapping(facts[hosts[0]].get("docker")).get("swarm"))
    if swarm.get("state") != "active" or swarm.get("manager") is not True:
        text = "it manages no swarm, and an overlay network is made in one"
        yield Problem(hosts[0], text, "apply the role swarm first")
    if not network.differing or not wishes["overlay_network_allow_recreate"]:
        return
    for host in hosts:
        for container, networks in _containers(facts[host]).items():
            if network.name in networks and container != f"{network.cluster}-{host}":
                yield Problem(
                    host,
                    f"container {container} is not ours and is on network {network.name}, which is to be replaced",
                    f"take it off (docker network disconnect {network.name} {container}), or remove it",
                )


def _facts_after(
    network: Network, facts: Facts, first: str, detached: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    made = {
        "driver": "overlay",
        "scope": "swarm",
        "attachable": True,
        "subnets": [network.subnet],
        "options": network.options,
        "labels": network.labels,
    }
    after: dict[str, Mapping[str, Any]] = {}
    for host in {first: "", **detached}:
        docker = dict(mapping(facts[host].get("docker")))
        if host == first:
            docker["networks"] = {**mapping(docker.get("networks")), network.name: made}
        if host in detached:
            containers = dict(mapping(docker.get("containers")))
            container = mapping(containers[detached[host]])
            left = {
                name: address for name, address in mapping(container.get("addresses")).items() if name != network.name
            }
            docker["containers"] = {**containers, detached[host]: {**container, "addresses": left}}
        after[host] = {**facts[host], "docker": docker}
    return after


def _containers(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the networks of each container of a host."""
    known = mapping(mapping(facts.get("docker")).get("containers"))
    return {str(name): list(mapping(mapping(one).get("addresses"))) for name, one in known.items()}


def _entries(facts: Mapping[str, Any], name: str) -> Iterable[Any]:
    return mapping(mapping(facts.get("docker")).get(name)).values()


def _labels(entry: Any) -> Mapping[str, Any]:
    return mapping(mapping(entry).get("labels"))
