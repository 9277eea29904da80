# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role ssh_trust: a key pair for the cluster, a host key for each container, and who trusts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..cluster.given_addresses import senders
from ..core.problems import Problem
from ..plan.changes import Change, Changes, Inputs, RolePlan
from ..plan.container import container_of, entry_point, runs_as_ours
from ..plan.files import add_file, differs, entry_of, fact_after, found_file
from ..plan.fold import Facts, RoleVars
from ..plan.managed_file import ManagedFile
from ..plan.owned import add_records, entries, ours_to_change, recorded, unrecorded
from ..plan.text import KNOWN_AFTER
from .files import (
    OVERLAY,
    SSHD_CONFIG,
    Request,
    authorized_keys,
    configuration,
    folders,
    known_hosts,
    ours,
    public_part,
)
from .gathered import ROLE
from .keys import Pair, add_copy, add_pair, add_unknown, is_of_another_key, pair, private_after, public_after
from .servers import NOTHING, files_of, plan_servers


@dataclass(frozen=True)
class Cluster:
    """The keys of all hosts: ``pairs`` of the containers, and the first host's pair of the cluster."""

    pairs: Mapping[str, Pair]
    of_first: Pair

    @property
    def host_keys(self) -> dict[str, str]:
        return {host: found.public or KNOWN_AFTER for host, found in self.pairs.items()}

    @property
    def host_keys_known(self) -> bool:
        return all(found.public is not None for found in self.pairs.values())


class SshTrustPlanner:
    """Plans all hosts of the cluster together, or none: each trusts the keys of all."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        yield SSHD_CONFIG

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        hosts = [str(host) for host in inputs.cluster.get("hosts") or []]
        if not inputs.cluster.get("underlay") or any(host not in facts for host in hosts):
            return RolePlan(task_inputs=dict.fromkeys(facts, NOTHING))  # preflight says why
        ports = {host: int(role_vars[host]["ssh_trust_hosts_port"]) for host in hosts}
        wanted = {host: request(host, role_vars[host], inputs, ports) for host in hosts}
        on_hosts = [host for host in hosts if role_vars[host]["deepspeed_launch_runtime"] == "host"]
        requested = [host for host in hosts if role_vars[host]["ssh_trust_hosts"]]
        misplaced = _misplaced(hosts, on_hosts, requested)
        if misplaced:
            return RolePlan(refusals=[misplaced], task_inputs=dict.fromkeys(facts, NOTHING))
        if on_hosts:  # each node starts its own ranks: keys are made on request only
            return plan_servers(wanted, facts, inputs, bool(requested))
        known = {host: files_of(facts[host]) for host in wanted}
        first = wanted[str(inputs.cluster["first"])]
        cluster = Cluster(
            {host: pair(host, known[host], one.host_key, one.host_comment) for host, one in wanted.items()},
            pair(first.host, known[first.host], first.cluster_key, first.cluster_comment),
        )
        changes: list[Change] = []
        task_inputs: dict[str, Mapping[str, Any]] = dict.fromkeys(facts, NOTHING)
        after: dict[str, Mapping[str, Any]] = {}
        for host, one in wanted.items():
            made, task_inputs[host], left = _plan_host(one, facts[host], cluster, inputs)
            changes += made
            if made:
                after[host] = {
                    **facts[host],
                    "files": {**known[host], **left},
                    "folders": recorded(facts[host], [item["path"] for item in task_inputs[host]["owned"]]),
                }
        return RolePlan(changes, task_inputs=task_inputs, facts=after)


def _misplaced(hosts: list[str], on_hosts: list[str], requested: list[str]) -> Problem | None:
    """Return why ``ssh_trust_hosts`` cannot be as it is requested."""
    if requested and not on_hosts:
        text = "ssh_trust_hosts is set, but ranks run in containers with their own keys"
        return Problem(requested[0], text, "remove it, or deepspeed_launch_runtime: host")
    if requested and len(requested) < len(hosts):
        other = next(host for host in hosts if host not in requested)
        text = f"ssh_trust_hosts is set here, but not for {other}"
        return Problem(requested[0], text, "set it once, for the group cluster")
    return None


def request(host: str, role_vars: Mapping[str, Any], inputs: Inputs, server_ports: Mapping[str, int]) -> Request:
    """Return what is configured for a host, with what the cluster says."""
    cluster = inputs.cluster
    underlay = cluster["underlay"]
    mode = str(role_vars["cluster_network_mode"] or OVERLAY)
    sources = (cluster.get("overlay") or {}).get("subnet") if mode == OVERLAY else senders(underlay)
    return Request(
        cluster=str(role_vars["cluster_name"]),
        host=host,
        root=str(role_vars["cluster_root"]),
        network_mode=mode,
        sources=str(sources or ""),
        port=int(role_vars["ssh_trust_port"]),
        forwarding=bool(role_vars["ssh_trust_port_forwarding"]),
        hosts=[str(name) for name in cluster["hosts"]],
        first=str(cluster["first"]),
        addresses=underlay.get("addresses") or {},
        server_ports=server_ports,
    )


def _plan_host(
    requested: Request, facts: Mapping[str, Any], cluster: Cluster, inputs: Inputs
) -> tuple[list[Change], dict[str, Any], dict[str, Any]]:
    """Return the changes of a host, what its tasks read, and the facts of its files afterwards."""
    known, key = files_of(facts), inputs.digest_key
    changes = Changes(ROLE, requested.host)
    records = unrecorded(facts, ours(requested))
    add_records(changes, facts, records)
    places = [item for item in ours_to_change(facts, folders(requested)) if differs(item, known, key)]
    for item in places:
        add_file(changes, item, known, key)
    mine, is_first = cluster.pairs[requested.host], requested.host == requested.first
    copied = pair(requested.host, known, requested.cluster_key)
    makes_host_key = add_pair(changes, requested.host_key, mine, known)
    if is_first:
        takes_cluster_key = add_pair(changes, requested.cluster_key, cluster.of_first, known)
    else:
        takes_cluster_key = add_copy(changes, requested, copied, cluster.of_first)
    own = {requested.host_key: mine, **({requested.cluster_key: cluster.of_first} if is_first else {})}
    trusted = [
        *((public_part(path, found.public or KNOWN_AFTER), True) for path, found in own.items() if found.foreign),
        (authorized_keys(requested, cluster.of_first.public or KNOWN_AFTER), cluster.of_first.public is not None),
        (known_hosts(requested, cluster.host_keys), cluster.host_keys_known),
        *((item, True) for item in configuration(requested, inputs.files.get(SSHD_CONFIG, ""))),
    ]
    if not is_first and is_of_another_key(found_file(known, f"{requested.cluster_key}.pub"), cluster.of_first):
        trusted.append(
            (
                public_part(requested.cluster_key, cluster.of_first.public or KNOWN_AFTER),
                cluster.of_first.public is not None,
            )
        )
    texts: list[ManagedFile] = []
    for item, complete in trusted:
        if not complete:
            add_unknown(changes, item, known)
        elif differs(item, known, key):
            add_file(changes, item, known, key)
            texts.append(item)
    provide: dict[str, Any] = {}
    if makes_host_key or takes_cluster_key:
        provide = {
            "generate_host": makes_host_key,
            "host_path": requested.host_key,
            "host_comment": requested.host_comment,
            "generate_cluster": is_first and takes_cluster_key,
            "copy_cluster": takes_cluster_key and not is_first,
            "copied_from": requested.first,
            "path": requested.cluster_key,
            "comment": requested.cluster_comment,
        }
    reads = runs_as_ours(container_of(facts, requested.cluster, requested.host), requested.cluster)
    task_input = {
        **NOTHING,
        "owned": entries(records),
        "folders": [entry_of(item) for item in places],
        "provide": provide,
        "files": [entry_of(item) for item in (*places, *texts)],
        # One that is about to be re-created reads them itself, but does so here without harm.
        "reload": entry_point(requested.cluster, requested.host, "reload") if texts and reads else [],
    }
    left = {
        item.path: fact_after(item, key)
        for item in (*ours_to_change(facts, folders(requested)), *(item for item, dummy in trusted))
    }
    left[requested.host_key], left[requested.cluster_key] = private_after(mine), private_after(copied, cluster.of_first)
    for path, found in own.items():
        left[f"{path}.pub"] = public_after(path, found, found_file(known, f"{path}.pub"))
    return changes.found, task_input, left
