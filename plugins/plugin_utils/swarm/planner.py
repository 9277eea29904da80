# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role swarm: all hosts of the cluster in one swarm, in the roles of their groups.

A change of a node is listed on its host and, as the first manager makes it, on that one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...module_utils.swarm.state import Step, SwarmError
from ..core.values import mapping, texts
from ..docker.unseen import unseen
from ..plan.changes import Changes, Consent, Inputs, RolePlan, Unknown
from ..plan.files import add_file, differs, entry_of
from ..plan.fold import Facts, RoleVars
from ..plan.jobs import active_jobs
from ..plan.play_hosts import unknown_hosts
from .checks import lost_address, own_address
from .gathered import ROLE, record_path
from .members import MANAGER, WORKER, Cluster, Member
from .outcome import facts_after, leaving, task_inputs, to_record
from .record import record_files, was_ours
from .refusals import fixed, lives_elsewhere, refused_step, stuck

NOTHING: dict[str, Any] = {
    "cluster": "",
    "first": "",
    "form": {},
    "rejoin": {},
    "left": [],
    "join": {},
    "entering": [],
    "arrange": {},
    "arranging": False,
    "leave": {},
    "leave_last": {},
    "trouble": "",
    "record": [],
    "recorded": "",
}
"""What the role's tasks read of a host on which there is nothing to do."""
_WHY_RECORDED = "to recognise this swarm if its managers are lost"


class SwarmPlanner:
    """Plans all hosts together: the first manager knows who is in the swarm."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        return ()

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        nothing = dict.fromkeys(facts, NOTHING)
        here = [host for host in facts if role_vars[host]["deepspeed_launch_runtime"] != "host"]
        hosts = texts(inputs.cluster.get("hosts"))
        if not here:  # there Docker does not apply; what an earlier run has formed is left at teardown
            known = hosts if all(host in facts for host in hosts) else []
            members = [_member(host, facts, role_vars, inputs.cluster) for host in known]
            return RolePlan(task_inputs={**nothing, **_leaving(members)})
        if not hosts or any(host not in here for host in hosts):
            return RolePlan(refusals=list(unknown_hosts(ROLE, hosts, here)), task_inputs=nothing)
        if unseen(facts[hosts[0]]):  # only the first manager knows who is in the swarm
            return RolePlan(task_inputs=nothing)
        members = [_member(host, facts, role_vars, inputs.cluster) for host in hosts if not unseen(facts[host])]
        name = str(members[0].role_vars["cluster_name"])
        refusals = list(stuck(members, name))
        cluster = Cluster(name, members, frozenset(refusal.subject for refusal in refusals))
        if members[0].host in cluster.left_out:  # no one else knows what belongs to this swarm
            return RolePlan(refusals=refusals, task_inputs=nothing)
        refusals += [*lives_elsewhere(cluster), *fixed(cluster, facts)]
        try:
            steps = cluster.steps()
        except SwarmError as error:
            refusals.append(refused_step(members[0].host, str(error)))
            steps = []
        changes = _changes(cluster, steps, {refusal.subject for refusal in refusals})
        records = {host: found for host, found in to_record(cluster, facts, inputs.digest_key).items() if not refusals}
        for host, files in records.items():
            for item in files:
                add_file(changes[host], item, mapping(facts[host].get("files")), inputs.digest_key, _WHY_RECORDED)
        for member in members:
            if member.host not in records and not refusals:
                _foresee_record(changes[member.host], facts[member.host], name, inputs.digest_key)
        changed = [change for found in changes.values() for change in found.found]
        return RolePlan(
            changes=changed,
            refusals=refusals,
            task_inputs={
                **nothing,
                **{
                    member.host: {
                        **NOTHING,
                        **task_inputs(cluster, member, steps),
                        "record": [entry_of(item) for item in records.get(member.host, ())],
                    }
                    for member in members
                },
            },
            facts=facts_after(cluster, facts, steps, inputs.digest_key)
            if any(found.found for found in changes.values())
            else {},
        )


def _foresee_record(changes: Changes, facts: Mapping[str, Any], cluster: str, key: str) -> None:
    """Add the record of a host that enters the swarm: it is written by the plan that comes after, with the ids."""
    if not any(change.what == f"membership of swarm {cluster}" for change in changes.found):
        return
    folder, record = record_files(cluster, "", "")
    known = mapping(facts.get("files"))
    if differs(folder, known, key):
        add_file(changes, folder, known, key, _WHY_RECORDED)
    there = mapping(known.get(record.path)).get("exists") is True
    before = "of another swarm" if there else None
    changes.add(record.path, before, Unknown("ids of swarm and node"), _WHY_RECORDED)


def _leaving(members: Sequence[Member]) -> dict[str, dict[str, Any]]:
    """Return what teardown reads of the hosts that are in the swarm."""
    cluster = Cluster(str(members[0].role_vars["cluster_name"]), members) if members else None
    return {
        member.host: {**NOTHING, **leaving(cluster, member)} for member in members if cluster and cluster.lists(member)
    }


def _member(host: str, facts: Facts, role_vars: RoleVars, cluster: Mapping[str, Any]) -> Member:
    path = record_path(str(role_vars[host]["cluster_name"]))
    underlay = str(mapping(mapping(cluster.get("underlay")).get("addresses")).get(host) or "")
    names = ("swarm_advertise_address", "swarm_data_path_address")
    own = {name: own_address(facts[host], str(role_vars[host][name] or "")) for name in names}
    return Member(
        host=host,
        role=MANAGER if host in texts(cluster.get("managers")) else WORKER,
        docker=mapping(facts[host].get("docker")),
        hostname=str(mapping(facts[host].get("system")).get("hostname") or ""),
        role_vars={**role_vars[host], **own},
        underlay=underlay,
        jobs=active_jobs(facts[host]),
        was_ours=was_ours(facts[host], str(role_vars[host]["cluster_name"])),
        recorded=path if mapping(mapping(facts[host].get("files")).get(path)).get("exists") else "",
        lost=lost_address(facts[host], own["swarm_advertise_address"] or underlay),
    )


def _changes(cluster: Cluster, steps: list[Step], refused: set[str]) -> dict[str, Changes]:
    """Return the changes by host, the first manager's first."""
    found = {member.host: Changes(ROLE, member.host) for member in cluster.members}
    first, swarm = cluster.first.host, f"swarm {cluster.name}"
    for member in cluster.members:
        if member in cluster.entering:
            before = _before(cluster, member)
            consent = None if member.host in refused else _consent(cluster, member)
            why = "swarm_allow_adopt" if cluster.has(member) else ""
            after = member.role
            if member in cluster.moved:
                why, after = f"the host no longer has the address {member.lost}", f"{after} at {member.address}"
            found[member.host].add(f"membership of {swarm}", before, after, why, consent)
    for member in cluster.members:
        node_id = member.node_id if cluster.has(member) else member.future_id
        entry, mine = cluster.entry(member), [step for step in steps if step.node == node_id]
        if entry and member in cluster.moved:
            entry = replace(entry, role=member.role)
        role = next((step.role for step in mine if step.kind == "role"), entry.role if entry else member.role)
        availability = next((step.role for step in mine if step.kind == "availability"), "")
        if entry and role != entry.role:
            found[member.host].add(f"role in {swarm}", entry.role, role, f"group {role}s")
        if availability:
            before = entry.availability if entry else None
            found[member.host].add(f"availability in {swarm}", before, availability, "swarm_availability")
        if member.host != first and found[member.host].found:
            listed = f"{entry.role}, {entry.availability}" if entry else None
            now = f"{role}, {availability or (entry.availability if entry else 'active')}"
            if listed and member in cluster.moved:
                listed, now = f"{listed}, id {member.node_id}", f"{now}, with another id"
            found[first].add(f"node {member.host} of {swarm}", listed, now)
    for step in steps:
        if step.kind == "remove":
            why = "swarm_prune_stale_nodes" if step.words.startswith("remove stale") else "swarm_removed_nodes"
            found[first].add(f"node {step.subject} of {swarm}", step.before, None, why)
    return found


def _before(cluster: Cluster, member: Member) -> str | None:
    """Return what a host that forms or joins the swarm is now."""
    if member in cluster.moved:
        return f"{WORKER} at {member.lost}"
    if cluster.has(member):
        return "manager of a swarm without this cluster's label"
    if cluster.orphan(member):
        return f"{MANAGER if member.manages else WORKER} of this cluster's former swarm"
    if member.node_id:
        return f"{MANAGER if member.manages else WORKER} of another swarm"
    return None


def _consent(cluster: Cluster, member: Member) -> Consent | None:
    """Return the consent that is needed to leave another swarm."""
    if not member.node_id or cluster.lists(member):
        return None
    if cluster.orphan(member):
        return _consent_of_orphan(member)
    otherwise = "take the host out of the inventory"
    if member.host == cluster.first.host and member.manages and member.label is None:
        otherwise = "set swarm_allow_adopt: true to use that swarm for this cluster"
    what = "manager" if member.manages else "worker"
    return Consent(
        variable="swarm_allow_leave_foreign",
        effect=f"the host must leave another Docker swarm, of which it is a {what}, and what that swarm runs here ends",
        given=bool(member.role_vars["swarm_allow_leave_foreign"]),
        otherwise=otherwise,
    )


def _consent_of_orphan(member: Member) -> Consent | None:
    """Return the consent that is needed to leave this cluster's dead swarm: none where nothing is cut off."""
    effect = "the host must leave this cluster's former swarm, whose managers are lost, which cuts off "
    if member.jobs:
        return Consent(
            variable="training_container_allow_recreate",
            effect=f"{effect}job {', '.join(member.jobs)}",
            given=bool(member.role_vars["training_container_allow_recreate"]),
            otherwise="wait for the job, or stop it",
        )
    others = member.others_attached
    if not others:
        return None
    return Consent(
        variable="swarm_allow_leave_foreign",
        effect=f"{effect}container {', '.join(others)}",
        given=bool(member.role_vars["swarm_allow_leave_foreign"]),
        otherwise="stop it first",
    )
