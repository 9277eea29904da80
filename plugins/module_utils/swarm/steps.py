# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From what is to what is wanted: the steps, in order, or one error before the first of them. Pure.

Two plans: this host's membership, and (on a manager) its list of nodes. They are separate because the second needs
the list as it is after the first.
"""

from __future__ import annotations

from collections.abc import Iterable

from .state import (
    FOREIGN,
    LABEL,
    NONE,
    REMOVED,
    THIS,
    UNKNOWN,
    UNLABELLED,
    Current,
    Node,
    Step,
    SwarmError,
    Wanted,
    quorum_without,
    relation,
)

NO_SWARM = "in no swarm"


def plan_membership(current: Current, wanted: Wanted) -> list[Step]:
    """Steps that make this host a manager or worker of the swarm, or take it out. Raises ``SwarmError`` to refuse."""
    kind = relation(current, wanted)
    if wanted.state == "absent":
        return _plan_absent(current, wanted, kind)
    if kind == THIS:
        return _plan_member(current, wanted)
    if kind == UNLABELLED and wanted.init and wanted.adopt:
        _check_fixed(current, wanted)
        return [_label(current, wanted)]
    steps: list[Step] = []
    if kind == REMOVED:
        steps = [_leave("leave, as the managers removed this node", f"removed from swarm {wanted.cluster}")]
    elif kind != NONE:
        steps = [_leave_other(current, wanted, kind)]
    steps.append(_enter(wanted, alone=kind == NONE))
    _check_engine(current)
    return steps


def plan_nodes(current: Current, wanted: Wanted) -> list[Step]:
    """Steps on a manager's list: promotions, stale nodes, demotions; in that order a majority always stands.

    Availability comes last, as it depends on nothing.
    """
    nodes = {node.id: node for node in current.nodes}
    _check_listed(nodes, wanted)
    if wanted.state == "manager" and wanted.node_roles.get(current.node_id) == "worker":
        raise SwarmError(
            "node_roles makes this very node a worker, and state makes it a manager: take one of them out."
        )
    steps: list[Step] = []
    for node in current.nodes:
        if wanted.node_roles.get(node.id, node.role) == "manager" and node.role == "worker":
            if node.state != "ready":
                raise SwarmError(
                    f"{node.name} is {node.state} and cannot be promoted: start its engine, then run again."
                )
            steps.append(_role(node, "manager"))
            nodes[node.id] = Node(node.id, node.hostname, "manager")
    for node in current.nodes:
        if _is_stale(node, current, wanted):
            if node.role == "manager":
                _check_quorum(nodes.values(), node)
                steps.append(_role(node, "worker"))
            del nodes[node.id]
            if node.state != "down":
                steps.append(Step("wait", node=node.id))
            kind = "stale node" if node.hostname in wanted.hostnames else "node"
            words = f"remove {kind} {node.name}"
            steps.append(Step("remove", words, node.id, "", False, node.name, node.state, "removed"))
    for node in current.nodes:
        if node.role == "manager" and wanted.node_roles.get(node.id) == "worker":
            _check_quorum(nodes.values(), node)
            nodes[node.id] = Node(node.id, node.hostname, "worker")
            steps.append(_role(node, "worker"))
    return steps + [
        _availability(node, wanted.node_availability[node.id])
        for node in current.nodes
        if node.id in nodes and wanted.node_availability.get(node.id, node.availability) != node.availability
    ]


def notes(current: Current, wanted: Wanted) -> list[str]:
    """What a user should know although nothing is done about it."""
    kind = relation(current, wanted)
    found = []
    if wanted.state == "absent":
        if kind in (FOREIGN, UNLABELLED, UNKNOWN) and not plan_membership(current, wanted):
            found.append(
                f"This host is a {_where(current, kind)}, not of swarm {wanted.cluster}, and was left alone."
                " leave_foreign: true makes it leave."
                if kind != UNKNOWN
                else f"It is not known which swarm this host is in ({_condition(current)}), so it was left alone. Give"
                " member_ids, or leave_foreign: true to make it leave whichever it is."
            )
    elif kind == THIS and wanted.advertise_addr[:1].isdigit() and current.node_addr:
        requested = (
            wanted.advertise_addr.rsplit(":", 1)[0] if wanted.advertise_addr.count(":") == 1 else wanted.advertise_addr
        )
        if requested != current.node_addr:
            found.append(
                f"This node advertises {current.node_addr}, not {requested}: an address is fixed when a node joins. To"
                " change it, run with state: absent and then again."
            )
    return found


def _is_stale(node: Node, current: Current, wanted: Wanted) -> bool:
    belonging = frozenset(wanted.node_roles).union(*wanted.hostnames.values())
    if node.id == current.node_id or node.id in belonging:
        return False
    if node.hostname in wanted.hostnames:
        # One engine has one node id at a time: the same name at the same address is the entry of its former life,
        # even while the managers still wait for its heartbeat.
        own = {other.addr for other in current.nodes if other.id in wanted.hostnames[node.hostname]}
        return node.state == "down" or (bool(node.addr) and node.addr in own)
    return node.hostname in wanted.removed_nodes or node.id in wanted.removed_nodes


def _plan_absent(current: Current, wanted: Wanted, kind: str) -> list[Step]:
    if kind == NONE:
        return []
    if kind in (THIS, REMOVED) or _unfinished_join(current, wanted):
        was = _condition(current) if kind == UNKNOWN else f"{_role_of(current)} of swarm {wanted.cluster}"
        if not current.manager:
            return [_leave("leave swarm", was, force=current.state != "active")]
        answering, rest, enough = quorum_without(current.nodes, current.node_id)
        leave = _leave("leave swarm", was, force=wanted.force)
        if enough:
            return [Step("role", "demote to worker", current.node_id, "worker", wanted.force, before=was), leave]
        if wanted.force:
            return [leave]
        if not current.nodes:
            why = f"it has no leader ({current.error.rstrip('.')})"
        elif rest == 0:
            why = "it is the last manager, and with it go the swarm and its overlay networks"
        else:
            why = f"without it {answering} of {rest} managers answer, which is not a majority"
        raise SwarmError(
            f"This host cannot leave swarm {wanted.cluster} safely: {why}."
            " Bring other managers up first, or give force: true."
        )
    if wanted.leave_foreign:
        return [_leave("leave foreign swarm", _where(current, kind), current.manager or current.state != "active")]
    return []


def _plan_member(current: Current, wanted: Wanted) -> list[Step]:
    if current.state == "pending":
        return [Step("wait")]
    if current.state != "active":
        raise SwarmError(
            f"This host's membership of swarm {wanted.cluster} is in state {current.state}"
            f" ({current.error.rstrip('.') or 'no reason given'}). Run `docker swarm leave --force` on this host, then"
            " this play again: it joins again."
        )
    if current.manager and not current.cluster_id:
        raise SwarmError(
            f"Swarm {wanted.cluster} has no leader ({current.error.rstrip('.')}). Start the engines of the other"
            " managers. If they are lost, run `docker swarm init --force-new-cluster` here: it keeps the swarm."
        )
    _check_fixed(current, wanted)
    if wanted.state == "worker" and current.manager:
        own = next(node for node in current.nodes if node.id == current.node_id)
        _check_quorum(current.nodes, own)
        before, after = (f"{role} of swarm {wanted.cluster}" for role in ("manager", "worker"))
        return [Step("role", "demote to worker", own.id, "worker", before=before, after=after)]
    if wanted.state == "manager" and not current.manager:
        return [Step("wait", role="manager")]  # another manager promotes it (node_roles)
    if wanted.init and LABEL not in current.labels:
        return [_label(current, wanted)]
    return []


def _check_fixed(current: Current, wanted: Wanted) -> None:
    if not current.cluster_id:
        return
    for name, requested, found in (
        ("data_path_port", wanted.data_path_port, current.data_path_port),
        ("default_addr_pool", tuple(wanted.default_addr_pool), tuple(current.default_addr_pool)),
        ("subnet_size", wanted.subnet_size, current.subnet_size),
    ):
        if requested and requested != found:
            shown = [", ".join(value) if isinstance(value, tuple) else value for value in (found, requested)]
            raise SwarmError(
                f"Swarm {wanted.cluster} was made with {name} {shown[0]}, not {shown[1]}, and that is fixed for its"
                f" life. Set {name} to {shown[0]}, or tear the cluster down and build it again."
            )


def _check_engine(current: Current) -> None:
    if current.live_restore:
        raise SwarmError(
            "The Docker engine runs with live-restore, which swarm mode refuses: take live-restore out of"
            " /etc/docker/daemon.json (or the engine's command line) and restart the engine."
        )
    if current.nftables:
        raise SwarmError(
            "The Docker engine runs with the nftables firewall backend, which swarm mode refuses: set"
            ' "firewall-backend": "iptables" in /etc/docker/daemon.json and restart the engine.'
        )


def _check_listed(nodes: Iterable[str], wanted: Wanted) -> None:
    for name in ("node_roles", "node_availability"):
        for node_id in getattr(wanted, name):
            if node_id not in nodes:
                raise SwarmError(f"{name} names {node_id}, which this swarm does not know: join that host first.")


def _check_quorum(nodes: Iterable[Node], node: Node) -> None:
    answering, rest, enough = quorum_without(nodes, node.id)
    if not enough:
        raise SwarmError(
            f"Cannot demote {node.name}: without it {answering} of {rest} managers answer, and a swarm needs a"
            " majority, of at least one. Promote or bring back another manager first."
        )


def _enter(wanted: Wanted, alone: bool) -> Step:
    """Create the swarm only where nothing says that it exists; ``alone``: the host did not come out of another one."""
    exists = bool(wanted.cluster_id or (alone and wanted.member_ids) or (wanted.remote_addrs and wanted.join_token))
    if wanted.init and not exists:
        return Step("init", "init", role="manager", before=NO_SWARM, after=f"manager of swarm {wanted.cluster}")
    return Step(
        "join",
        f"join as {wanted.state}",
        role=wanted.state,
        before=NO_SWARM,
        after=f"{wanted.state} of swarm {wanted.cluster}",
    )


def check_join(steps: list[Step], wanted: Wanted) -> None:
    """What joining needs; fetched just before acting, as in check mode a swarm still to come has no token."""
    if any(step.kind == "join" for step in steps):
        missing = [name for name in ("remote_addrs", "join_token") if not getattr(wanted, name)]
        if missing:
            hint = " init does not create a second swarm beside one that exists." if wanted.init else ""
            raise SwarmError(
                f"This host has to join swarm {wanted.cluster}; missing: {', '.join(missing)}. Take the token"
                f" from a manager that is up (return_tokens: true) and its address with port 2377.{hint}"
            )


def _leave(words: str, before: str, force: bool = False) -> Step:
    return Step("leave", words, force=force, before=before, after=NO_SWARM)


def _leave_other(current: Current, wanted: Wanted, kind: str) -> Step:
    if _unfinished_join(current, wanted):
        return _leave("cancel unfinished join", _condition(current), force=True)
    if kind == UNKNOWN and current.state == "active" and not current.manager:
        raise SwarmError(
            "This host is a worker of some swarm, and which one only its managers know: give member_ids, the node ids"
            f" that the managers of {wanted.cluster} list (an empty list if there are none yet)."
        )
    if wanted.leave_foreign:
        words = "leave unknown swarm" if kind == UNKNOWN else "leave foreign swarm"
        return _leave(words, _where(current, kind), force=current.manager or current.state != "active")
    if kind == UNKNOWN:
        raise SwarmError(
            f"It is not known which swarm this host is in ({_condition(current)}). If it is locked,"
            " run `docker swarm unlock` on it; otherwise `docker swarm leave --force` on it, or leave_foreign: true"
            " here, lets it join again."
        )
    adopt = " adopt: true takes that swarm over as it is;" if kind == UNLABELLED and wanted.init else ""
    raise SwarmError(
        f"This host is a {_where(current, kind)}, not of swarm {wanted.cluster}.{adopt} leave_foreign: true makes"
        " this host leave it, which ends what that swarm runs here. Nothing was changed."
    )


def _where(current: Current, kind: str) -> str:
    label = current.labels.get(LABEL)
    which = (
        f"swarm {label}" if label else "a swarm that no cluster is named on" if kind == UNLABELLED else "another swarm"
    )
    managers = ", ".join(sorted(current.remotes)) or "unknown"
    cluster = f", swarm id {current.cluster_id}" if current.cluster_id else ""
    return f"{_role_of(current)} of {which} (node {current.node_id}{cluster}, managers at {managers})"


def _condition(current: Current) -> str:
    managers = ", ".join(sorted(current.remotes))
    parts = [f"state {current.state}", current.error.rstrip("."), f"managers at {managers}" if managers else ""]
    return ", ".join(part for part in parts if part)


def _unfinished_join(current: Current, wanted: Wanted) -> bool:
    """A join to our own managers that never ended, for instance of a run that was killed."""
    addresses = {address if ":" in address else f"{address}:2377" for address in wanted.remote_addrs}
    return current.state == "pending" and not current.node_id and bool(addresses & set(current.remotes))


def _role_of(current: Current) -> str:
    return "manager" if current.manager else "worker"


def _label(current: Current, wanted: Wanted) -> Step:
    before = f"manager of an unlabelled swarm ({current.cluster_id})"
    return Step("label", "label swarm", before=before, after=f"manager of swarm {wanted.cluster}")


def _role(node: Node, role: str) -> Step:
    words = f"{'promote' if role == 'manager' else 'demote'} {node.name}"
    return Step("role", words, node.id, role, False, node.name, node.role, role)


def _availability(node: Node, requested: str) -> Step:
    subject = f"{node.name} availability"
    return Step(
        "availability",
        f"set {node.name} to {requested}",
        node.id,
        requested,
        False,
        subject,
        node.availability,
        requested,
    )
