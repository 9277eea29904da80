# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What keeps hosts out of the cluster's swarm as they are, by the checks that preflight makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.problems import Problem
from ..plan.requested import Requested
from .checks import check_swarm_fixed
from .foreign import check_foreign_swarm
from .members import MANAGER, Cluster, Member


def stuck(members: Sequence[Member], name: str) -> Iterator[Problem]:
    """Hosts whose engine does not run, or which neither leave nor join a swarm in the state that they are in."""
    for member in members:
        if member.docker.get("running") is not True:
            yield Problem(member.host, "its Docker engine does not run", "apply the role docker first")
        elif member.docker.get("stale_swarm_ports"):
            text = "its Docker engine has kept ports from a swarm that it has left"
            yield Problem(member.host, text, "systemctl restart docker, or apply the role docker first")
    running = {member.host: member.docker for member in members if member.docker.get("running") is True}
    managers = [member.host for member in members if member.role == MANAGER]
    # Whether another swarm may be left is a consent of the change that leaves it.
    yield from check_foreign_swarm(running, managers=managers, cluster_name=name, leave_foreign=True, adopt=False)


def lives_elsewhere(cluster: Cluster) -> Iterator[Problem]:
    """The cluster's swarm lives on in another manager: a second one is not formed beside it by accident."""
    if cluster.exists:
        return
    first = cluster.first.host
    for member in cluster.members[1:]:
        ours = member.node_id and member.manages and member.label == cluster.name
        if ours and member.host not in cluster.left_out and not member.wishes["swarm_allow_leave_foreign"]:
            yield Problem(
                member.host,
                f"is a manager of this cluster's swarm, but {first}, the first host of group managers, is not",
                f"list {member.host} first in group managers; with swarm_allow_leave_foreign: true that swarm is given "
                "up instead",
            )
            return


def fixed(cluster: Cluster, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """What is fixed when a swarm is formed is as configured."""
    first = cluster.first
    wanted = Requested(
        cluster_name=cluster.name,
        managers=(first.host,),
        swarm_allow_adopt=bool(first.wishes["swarm_allow_adopt"]),
        swarm={
            "data_path_port": first.wishes["swarm_data_path_port"],
            "default_address_pool": first.wishes["swarm_default_address_pool"],
            "addresses": {member.host: member.address for member in cluster.members},
        },
    )
    hosts = [member.host for member in cluster.members]
    for problem in check_swarm_fixed(facts, wanted):
        if problem.fatal and problem.subject in hosts:
            yield problem
        elif problem.fatal:
            yield Problem(first.host, f"{problem.subject} {problem.text}", problem.remedy)


def refused_step(host: str, sentence: str) -> Problem:
    """Return why ``swarm_membership`` would not change the list of nodes; its sentence ends with what to do."""
    for mark in (". ", ": "):
        text, found, remedy = sentence.rstrip(".").rpartition(mark)
        if found:
            return Problem(host, text, f"{remedy[:1].lower()}{remedy[1:]}")
    return Problem(host, sentence.rstrip("."), "correct the group of that host")
