# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which hosts are in a swarm that is not this cluster's.

*This* swarm is the one in which the first host of group ``managers`` is a manager and that carries the label
``swarmspeed.cluster`` with the cluster's name (without the label only where ``swarm_allow_adopt`` allows). A host is in
it when one of its managers lists the host's node id. Every other host that is active in some swarm is in a foreign one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping, mappings

SWARM_LABEL = "swarmspeed.cluster"

_LEAVE = "set swarm_allow_leave_foreign: true to make it leave that swarm"

_STUCK = {
    "pending": "is still being taken into a swarm (state pending)",
    "error": "is in a swarm whose state is error",
    "locked": "is in a locked swarm",
}
_STUCK_REMEDY = {
    "pending": "wait a minute and run again; if it stays so, run `docker swarm leave --force` there",
    "error": "see `docker info` there; `docker swarm leave --force` takes the host out of that swarm",
    "locked": "run `docker swarm unlock` there, or `docker swarm leave --force` to take the host out of that swarm",
}


def check_foreign_swarm(
    docker: Mapping[str, Mapping[str, Any]],
    *,
    managers: Sequence[str],
    cluster_name: str,
    leave_foreign: bool,
    adopt: bool,
    own: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield a problem for each host that cannot be taken into this cluster's swarm as it stands.

    ``docker`` holds the docker facts of each host that gave any. Without those of the first manager nothing is said of
    the others' swarms, as it cannot be determined which is this cluster's. ``own`` are hosts in a swarm that is
    recorded on them as this cluster's: where its managers are lost it is left, with the consent that the plan asks for.
    """
    active: dict[str, Mapping[str, Any]] = {}
    for host, facts in docker.items():
        swarm = mapping(facts.get("swarm"))
        state, error = swarm.get("state"), _sentence(facts.get("error"))
        if "swarm" in error.lower():
            # /info answered but a manager's /swarm did not: above all "The swarm does not have a leader".
            yield Problem(
                host,
                f"is in a swarm that does not work: {error}",
                "bring back that swarm's other managers; where they are lost, `docker swarm init --force-new-cluster` "
                "there keeps the swarm with this one, and `docker swarm leave --force` gives it up",
            )
        elif isinstance(state, str) and state in _STUCK:
            detail = _sentence(swarm.get("error"))
            yield Problem(host, _STUCK[state] + (f": {detail}" if detail else ""), _STUCK_REMEDY[state])
        elif state == "active" and not _node_id(swarm):
            # Seen with engine 20.10: `docker swarm leave` timed out, and the engine stays between the two.
            yield Problem(
                host,
                "has an engine that is half out of a swarm (active without a node id)",
                "run `systemctl restart docker` there, as a `docker swarm leave` has hung",
            )
        elif state == "active":
            active[host] = swarm
    first = managers[0] if managers else None
    if first is None or first not in docker or leave_foreign:
        return
    anchor = _anchor(active, managers, cluster_name, adopt)
    if anchor == first or (anchor is None and first not in active):
        pass
    elif anchor is None:
        yield _first_is_foreign(first, active[first], cluster_name)
    else:
        yield Problem(
            anchor,
            f"is a manager of this cluster's swarm, but {first}, the first host of group managers, is not",
            f"list {anchor} first in group managers; with swarm_allow_leave_foreign: true that swarm is given up "
            "instead",
        )
    members = _members(active, anchor)
    listed = {_node_id(mapping(node), "id") for swarm in active.values() for node in mappings(swarm.get("nodes"))}
    members |= {_node_id(active[host]) for host in own if host in active} - listed
    for host, swarm in active.items():
        if host != first and _node_id(swarm) not in members:
            yield Problem(
                host,
                f"is in another Docker swarm, as {'a manager' if swarm.get('manager') is True else 'a worker'}",
                f"{_LEAVE}, or take the host out of the inventory",
            )


def _anchor(
    active: Mapping[str, Mapping[str, Any]], managers: Sequence[str], cluster_name: str, adopt: bool
) -> str | None:
    """Return the host whose swarm is this cluster's: the first manager, else another that bears the label."""
    first = managers[0]
    if adopt and first in active and active[first].get("manager") is True:
        return first
    labelled = (
        host
        for host in managers
        if host in active and active[host].get("manager") is True and _label(active[host]) == cluster_name
    )
    return next(labelled, None)


def _members(active: Mapping[str, Mapping[str, Any]], anchor: str | None) -> set[str]:
    """Return the node ids of this swarm: all that any of its managers lists, and the anchor's own."""
    if anchor is None:
        return set()
    cluster_id = active[anchor].get("cluster_id")
    members = {_node_id(active[anchor])}
    for host, swarm in active.items():
        nodes = swarm.get("nodes")
        if host == anchor or (cluster_id and swarm.get("cluster_id") == cluster_id):
            members.update(_node_id(mapping(node), "id") for node in (nodes if isinstance(nodes, list) else []))
    return members - {""}


def _first_is_foreign(first: str, swarm: Mapping[str, Any], cluster_name: str) -> Problem:
    if swarm.get("manager") is not True:
        return Problem(first, "is a worker of another Docker swarm, but is to be this cluster's first manager", _LEAVE)
    label = _label(swarm)
    found = f"bears the label {SWARM_LABEL}={label}" if label else f"does not bear the label {SWARM_LABEL}"
    return Problem(
        first,
        f"is a manager of a Docker swarm that is not cluster {cluster_name}'s: it {found}",
        f"{_LEAVE}, or swarm_allow_adopt: true to use that swarm for this cluster",
    )


def _label(swarm: Mapping[str, Any]) -> str:
    return str(mapping(swarm.get("labels")).get(SWARM_LABEL) or "")


def _node_id(entry: Mapping[str, Any], key: str = "node_id") -> str:
    return str(entry.get(key) or "")


def _sentence(text: Any) -> str:
    return " ".join(text.split()).rstrip(".") if isinstance(text, str) else ""
