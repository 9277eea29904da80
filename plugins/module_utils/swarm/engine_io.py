# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Read a host's swarm state from its engine, and carry out planned steps. Error texts leave here without tokens."""

from __future__ import annotations

import time
from typing import Any, Callable

from ..engine.api_io import Engine, EngineError
from .remedies import explain, known_remedy, redact
from .state import DEFAULT_SUBNET_SIZE, LABEL, Current, Node, Step, SwarmError, Wanted, parse_current, parse_node

POLL = 0.5
"""Seconds between two checks while waiting."""
PAUSE = 2.0
"""Seconds before an engine that was too slow is asked once more."""

_TOO_LATE = "context deadline exceeded"
_OUT_OF_SEQUENCE = "update out of sequence"
_HALF_OUT = "systemctl restart docker on this host, and run again."
_NEXT_ADDRESS = ("connection error", "Timeout was reached", "no route to host", "deadline", "i/o timeout")


def no_engine(error: EngineError) -> bool:
    """Whether nothing listens on the socket: no engine yet, or a stopped one."""
    return isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError))


class SwarmHost:
    """One host's engine. ``timeout`` bounds each wait, in seconds."""

    def __init__(
        self,
        engine: Engine,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._timeout = timeout
        self._sleep = sleep
        self._clock = clock

    def read(self) -> Current:
        """``GET /info``, and ``GET /nodes`` on a manager. Lets ``EngineError`` through where there is no engine."""
        current = self._info()
        if not current.cluster_id:
            return current
        try:
            nodes = self._engine.call("GET", "/nodes")
        except EngineError as error:
            raise explain("list the swarm's nodes", error) from None
        return parse_current(self._raw, nodes)

    def tokens(self) -> dict[str, str]:
        """The join tokens; managers only."""
        tokens = self._call("read the join tokens", "GET", "/swarm")["JoinTokens"]
        return {"worker": tokens["Worker"], "manager": tokens["Manager"]}

    def run(self, step: Step, wanted: Wanted) -> bool:
        """Do one step and wait for its effect; false where it could not be done and need not be."""
        if step.kind == "init":
            self._init(wanted)
        elif step.kind == "join":
            self._join(wanted)
        elif step.kind == "leave":
            self._leave(step.force)
        elif step.kind == "label":
            self._label(wanted.cluster)
        elif step.kind == "role":
            return self._role(step)
        elif step.kind == "availability":
            self._availability(step)
        elif step.kind == "remove":
            self._call(step.words, "DELETE", f"/nodes/{step.node}")
        elif step.node:
            self._await_down(step.node)
        else:
            self._await_member(step.role, wanted)
        return True

    # single steps

    def _init(self, wanted: Wanted) -> None:
        body = {
            **_addresses(wanted),
            "DataPathPort": wanted.data_path_port,
            "DefaultAddrPool": list(wanted.default_addr_pool),
            # An engine with pools and no size makes no network: its allocator ends with "invalid pools size: 0".
            "SubnetSize": wanted.subnet_size or (DEFAULT_SUBNET_SIZE if wanted.default_addr_pool else 0),
            "Spec": {"Labels": {LABEL: wanted.cluster}},
        }
        self._call(f"create swarm {wanted.cluster}", "POST", "/swarm/init", {k: v for k, v in body.items() if v})
        self._await_member("manager", wanted)

    def _join(self, wanted: Wanted) -> None:
        failures: list[str] = []
        for address in wanted.remote_addrs:
            # The engine itself checks the first address only (moby daemon/cluster/swarm.go, Join).
            body = {**_addresses(wanted), "RemoteAddrs": [address], "JoinToken": wanted.join_token}
            try:
                self._engine.call("POST", "/swarm/join", body)
                break
            except EngineError as error:
                doing = f"join swarm {wanted.cluster} at {address}"
                failure = explain(doing, error, here=wanted.advertise_addr, manager=address)
                self._undo_join()
                if not any(part in str(error) for part in _NEXT_ADDRESS):
                    raise failure from None
                failures.append(str(failure))
        else:
            raise SwarmError(" ".join(failures))
        try:
            self._await_member(wanted.state, wanted)
        except SwarmError:
            self._undo_join()
            raise

    def _undo_join(self) -> None:
        """An unfinished join goes on in the engine and blocks the next one. The host was in no swarm before: end it."""
        if self._info().state in ("pending", "error"):
            self._leave(force=True)

    def _leave(self, force: bool) -> None:
        """Leave, again where the engine did not do it in time: it stays half out of the swarm (seen with 20.10)."""
        end = self._clock() + self._timeout
        while True:
            try:
                self._engine.call("POST", "/swarm/leave?force=true" if force else "/swarm/leave")
                return
            except EngineError as error:
                late = _TOO_LATE in str(error)
                if not late or self._clock() >= end:
                    raise explain("leave the swarm", error, _HALF_OUT if late else "") from None
            self._sleep(PAUSE)
            if self._info().state == "inactive":
                return

    def _label(self, cluster: str) -> None:
        for attempt in range(3):
            self._info()
            found = self._raw["Swarm"]["Cluster"]
            spec = {**found["Spec"], "Labels": {**(found["Spec"].get("Labels") or {}), LABEL: cluster}}
            if self._update(
                f"label the swarm {cluster}", f"/swarm/update?version={found['Version']['Index']}", spec, attempt
            ):
                return

    def _role(self, step: Step) -> bool:
        try:
            self._set_role(step)
        except SwarmError:
            if not step.force:  # with force the leave that follows does without it
                raise
            return False
        return True

    def _set_role(self, step: Step) -> None:
        for attempt in range(3):
            node = self._call(step.words, "GET", f"/nodes/{step.node}")
            spec = {**node["Spec"], "Role": step.role}
            if self._update(step.words, f"/nodes/{step.node}/update?version={node['Version']['Index']}", spec, attempt):
                break
        if step.subject == "membership":
            self._await(lambda: not self._info().manager, f"{step.words}: this host is still a manager")
        else:
            manager = step.role == "manager"
            self._await(
                lambda: self._is_manager(step.node) == manager,
                f"{step.words}: the managers do not count it {'in' if manager else 'out'} yet",
            )

    def _availability(self, step: Step) -> None:
        for attempt in range(3):
            node = self._call(step.words, "GET", f"/nodes/{step.node}")
            spec = {**node["Spec"], "Availability": step.role}
            if self._update(step.words, f"/nodes/{step.node}/update?version={node['Version']['Index']}", spec, attempt):
                break

    def _update(self, doing: str, path: str, spec: dict[str, Any], attempt: int) -> bool:
        """Write a spec; false where the object changed between reading and writing, and is to be read again."""
        try:
            self._engine.call("POST", path, spec)
        except EngineError as error:
            if _OUT_OF_SEQUENCE in str(error) and attempt < 2:
                return False
            raise explain(doing, error) from None
        return True

    # waiting

    def _await_member(self, role: str, wanted: Wanted) -> None:
        def ready() -> bool:
            now = self._info()
            if now.state in ("error", "locked"):
                remedy = _remedy(now, wanted)
                raise SwarmError(
                    f"Swarm state of this host became {now.state}: {redact(now.error) or 'no reason given'}"
                    + (f". Remedy: {remedy}" if remedy else "")
                )
            return now.state == "active" and bool(now.node_id) and (role != "manager" or now.manager)

        try:
            self._await(ready, "")
        except TimeoutError:
            raise SwarmError(self._not_member(self._info(), role, wanted)) from None
        now = self._info()
        if role == "worker" and now.manager:
            raise SwarmError("This host joined as a manager: join_token is the managers' token, and state is worker.")
        if wanted.cluster_id and now.cluster_id and now.cluster_id != wanted.cluster_id:
            raise SwarmError(
                f"This host is in swarm {now.cluster_id}, and cluster_id is {wanted.cluster_id}:"
                " remote_addrs or join_token belong to another swarm."
            )

    def _not_member(self, now: Current, role: str, wanted: Wanted) -> str:
        if now.state == "active" and role == "manager":
            return (
                f"This host is a worker of swarm {wanted.cluster} and did not become a manager in {self._timeout:g} s."
                f" Give a manager node_roles: {{{now.node_id}: manager}};"
                " if this host just joined, join_token is the workers' token."
            )
        managers = ", ".join(sorted(now.remotes)) or "unknown"
        reason = f" ({redact(now.error)})" if now.error else ""
        remedy = _remedy(now, wanted)
        return (
            f"Swarm state of this host is {now.state} after {self._timeout:g} s, not active{reason};"
            f" managers at {managers}. "
            + (
                f"Remedy: {remedy}"
                if remedy
                else "Check that they run and that their port 2377/tcp is open to this host. "
                "A slow swarm needs a larger timeout."
            )
        )

    def _await_down(self, node: str) -> None:
        def down() -> bool:
            return self._node(node).state == "down"

        name = self._node(node).name
        self._await(down, f"{name} is still up: its host has not left the swarm. Run state: absent there first")

    def _await(self, done: Callable[[], bool], late: str) -> None:
        """Look until ``done``; then raise ``late``, or ``TimeoutError`` where the caller words it."""
        end = self._clock() + self._timeout
        while not done():
            if self._clock() >= end:
                if late:
                    raise SwarmError(f"{late} (waited {self._timeout:g} s).")
                raise TimeoutError
            self._sleep(POLL)

    # reading

    def _info(self) -> Current:
        self._raw: dict[str, Any] = self._engine.call("GET", "/info")
        return parse_current(self._raw)

    def _node(self, node: str) -> Node:
        return parse_node(self._call(f"read node {node}", "GET", f"/nodes/{node}"))

    def _is_manager(self, node: str) -> bool:
        """Whether the managers themselves count it: ``ManagerStatus`` is there only for members of their quorum."""
        status = self._call(f"read node {node}", "GET", f"/nodes/{node}").get("ManagerStatus") or {}
        return bool(status) and status.get("Reachability") in ("reachable", "unreachable")

    def _call(self, doing: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            return self._engine.call(method, path, body)
        except EngineError as error:
            raise explain(doing, error) from None


def _remedy(now: Current, wanted: Wanted) -> str:
    """What to do about the error that the engine keeps, empty where that is not known."""
    return known_remedy(now.error, wanted.advertise_addr, next(iter(wanted.remote_addrs), ""))


def _addresses(wanted: Wanted) -> dict[str, str]:
    given = {
        "ListenAddr": wanted.listen_addr,
        "AdvertiseAddr": wanted.advertise_addr,
        "DataPathAddr": wanted.data_path_addr,
    }
    return {key: value for key, value in given.items() if value}
