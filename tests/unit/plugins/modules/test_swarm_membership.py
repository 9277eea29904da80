# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whole runs of swarm_membership against scripted engines: the exact calls, in order. One call too many fails.

The answers have the shape of engine 20.10.24's; ids, names and tokens are invented.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm.engine_io import SwarmHost
from ansible_collections.swarmspeed.cluster.plugins.modules import swarm_membership

from tests.displayed import returned

WORKER_TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"
MANAGER_TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-a0bemyjuvbnoofqgpo8njzq0r"
AT = "10.0.0.1:2377"
Call = tuple[str, str, Any]
Json = dict[str, Any]


class ScriptedEngine:
    """Answers exactly these calls in exactly this order. Calls: (method and path, answer) or (…, answer, body)."""

    def __init__(self, *script: tuple[Any, ...]) -> None:
        self.script = list(script)
        self.bodies: list[Any] = []

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        assert self.script, f"one call too many: {method} {path}"
        expected, answer, *want = self.script.pop(0)
        assert f"{method} {path}" == expected
        if want:
            assert body == want[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """Time that passes only by sleeping."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def info(state: str = "active", node_id: str = "me", manager: bool = False, **more: Any) -> Json:
    swarm: Json = {"LocalNodeState": state, "NodeID": node_id, "ControlAvailable": manager, "Error": "", **more}
    if manager and "Cluster" not in more:
        swarm["Cluster"] = {"ID": "C1", "Version": {"Index": 10}, "Spec": {"Labels": {"swarmspeed.cluster": "demo"}}}
    return {"Swarm": swarm}


def node(node_id: str, role: str = "worker", state: str = "ready", hostname: str = "", **more: Any) -> Json:
    found = {
        "ID": node_id,
        "Version": {"Index": 5},
        "Spec": {"Labels": {"k": "v"}, "Role": role, "Availability": "active"},
        "Description": {"Hostname": hostname or node_id},
        "Status": {"State": state, "Addr": "10.0.0.1"},
        **more,
    }
    if role == "manager" and "ManagerStatus" not in more:
        found["ManagerStatus"] = {"Reachability": "reachable"}
    return found


NONE = info("inactive", "")
MANAGER, WORKER = info(manager=True), info()
ME = node("me", "manager")
REFUSED = EngineError('rpc error: desc = connection error: desc = "dial tcp 10.0.0.9:2377: connection refused"', 503)
TIMED_OUT = EngineError("Timeout was reached before node joined. The attempt to join the swarm will continue in …", 503)
HALF_LEFT = EngineError("context deadline exceeded", 500)  # recorded from 20.10.24
NO_WAY_BACK = EngineError(  # recorded from 20.10.24
    "manager stopped: can't initialize raft node: rpc error: code = Unknown desc = could not connect to prospective new"
    " cluster member using its advertised address: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    500,
)
STALE = EngineError("rpc error: code = Unknown desc = update out of sequence", 500)
JOIN: Json = {"remote_addrs": [AT], "join_token": WORKER_TOKEN, "cluster_id": "C1"}
JOIN_BODY = {"ListenAddr": "0.0.0.0:2377", "RemoteAddrs": [AT], "JoinToken": WORKER_TOKEN}


def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    engine: ScriptedEngine,
    check: bool = False,
    **params: Any,
) -> Json:
    """One run of the module as Ansible starts it; its answer, after the script was used up to the end."""
    arguments = {"cluster": "demo", **params, "_ansible_check_mode": check, "_ansible_diff": True}
    clock = Clock()
    host = functools.partial(SwarmHost, sleep=clock.sleep, clock=clock)
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(swarm_membership, "SocketEngine", lambda: engine)
    monkeypatch.setattr(swarm_membership, "SwarmHost", host)
    with pytest.raises(SystemExit):
        swarm_membership.main()
    answer: Json = returned(capsys.readouterr().out)
    assert engine.script == [], "calls that were not made"
    return answer


SPEC = {"Labels": {"k": "v"}, "Role": "worker", "Availability": "active"}
DRAINED = node("b", Spec={**SPEC, "Availability": "drain"})
# name: parameters, script of calls, actions, state. "GET /info" first: what the host is.
RUNS: dict[str, tuple[Json, list[tuple[Any, ...]], list[str], str]] = {
    "create the swarm": (
        {"state": "manager", "init": True, "advertise_addr": "10.0.0.1", "data_path_port": 4790},
        [
            ("GET /info", NONE),
            (
                "POST /swarm/init",
                "me",
                {
                    "ListenAddr": "0.0.0.0:2377",
                    "AdvertiseAddr": "10.0.0.1",
                    "DataPathPort": 4790,
                    "Spec": {"Labels": {"swarmspeed.cluster": "demo"}},
                },
            ),
            ("GET /info", info()),  # not yet in control
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME]),
        ],
        ["init"],
        "manager",
    ),
    "create the swarm with pools of its own": (
        {"state": "manager", "init": True, "default_addr_pool": ["10.42.0.0/16"]},
        [
            ("GET /info", NONE),
            (
                "POST /swarm/init",
                "me",
                {
                    "ListenAddr": "0.0.0.0:2377",
                    "DefaultAddrPool": ["10.42.0.0/16"],
                    "SubnetSize": 24,
                    "Spec": {"Labels": {"swarmspeed.cluster": "demo"}},
                },
            ),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME]),
        ],
        ["init"],
        "manager",
    ),
    "manager as asked": (
        {"state": "manager", "init": True},
        [("GET /info", MANAGER), ("GET /nodes", [ME])],
        [],
        "manager",
    ),
    "worker as asked": (
        {"state": "worker", "member_ids": ["boss", "me"], **JOIN},
        [("GET /info", WORKER)],
        [],
        "worker",
    ),
    "join, first address refused, second too slow, third good": (
        {"state": "worker", **JOIN, "remote_addrs": ["10.0.0.9:2377", "10.0.0.8:2377", AT]},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", REFUSED, {**JOIN_BODY, "RemoteAddrs": ["10.0.0.9:2377"]}),
            ("GET /info", NONE),
            ("POST /swarm/join", TIMED_OUT, {**JOIN_BODY, "RemoteAddrs": ["10.0.0.8:2377"]}),
            ("GET /info", info("pending", "")),
            ("POST /swarm/leave?force=true", None),
            ("POST /swarm/join", None, JOIN_BODY),
            ("GET /info", info("pending", "")),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
        ],
        ["join as worker"],
        "worker",
    ),
    "leave another swarm, then join": (
        {"state": "worker", "member_ids": ["boss"], "leave_foreign": True, **JOIN},
        [
            ("GET /info", info(node_id="you")),
            ("POST /swarm/leave", None),
            ("POST /swarm/join", None, JOIN_BODY),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
        ],
        ["leave foreign swarm", "join as worker"],
        "worker",
    ),
    "cancel the join of a run that was killed": (
        {"state": "worker", "member_ids": ["boss"], **JOIN},
        [
            ("GET /info", info("pending", "", RemoteManagers=[{"NodeID": "", "Addr": AT}])),
            ("POST /swarm/leave?force=true", None),
            ("POST /swarm/join", None, JOIN_BODY),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
        ],
        ["cancel unfinished join", "join as worker"],
        "worker",
    ),
    "a member whose managers come back": (
        {"state": "worker", "member_ids": ["me"]},
        [
            ("GET /info", info("pending")),
            ("GET /info", info("pending")),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
        ],
        [],
        "worker",
    ),
    "adopt": (
        {"state": "manager", "init": True, "adopt": True},
        [
            ("GET /info", info(manager=True, Cluster={"ID": "C1", "Version": {"Index": 7}, "Spec": {"Labels": None}})),
            ("GET /nodes", [ME]),
            (
                "GET /info",
                info(
                    manager=True, Cluster={"ID": "C1", "Version": {"Index": 8}, "Spec": {"Labels": {"a": "b"}, "X": 1}}
                ),
            ),
            ("POST /swarm/update?version=8", STALE),
            (
                "GET /info",
                info(
                    manager=True, Cluster={"ID": "C1", "Version": {"Index": 9}, "Spec": {"Labels": {"a": "b"}, "X": 1}}
                ),
            ),
            ("POST /swarm/update?version=9", None, {"Labels": {"a": "b", "swarmspeed.cluster": "demo"}, "X": 1}),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME]),
        ],
        ["label swarm"],
        "manager",
    ),
    "a manager that is to be a worker": (
        {"state": "worker"},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager")]),
            ("GET /nodes/me", ME),
            ("POST /nodes/me/update?version=5", None, SPEC),
            ("GET /info", MANAGER),
            ("GET /info", WORKER),
            ("GET /info", WORKER),
        ],
        ["demote to worker"],
        "worker",
    ),
    "promotion, with a stale version": (
        {"state": "manager", "node_roles": {"b": "manager"}},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b")]),
            ("GET /nodes/b", node("b")),
            ("POST /nodes/b/update?version=5", STALE),
            ("GET /nodes/b", node("b", Version={"Index": 6})),
            ("POST /nodes/b/update?version=6", None, {**SPEC, "Role": "manager"}),
            ("GET /nodes/b", node("b", "manager", ManagerStatus=None)),
            ("GET /nodes/b", node("b", "manager")),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager")]),
        ],
        ["promote b (b)"],
        "manager",
    ),
    "a node that was drained, with a stale version": (
        {"state": "manager", "node_availability": {"b": "active"}},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, DRAINED]),
            ("GET /nodes/b", DRAINED),
            ("POST /nodes/b/update?version=5", STALE),
            ("GET /nodes/b", {**DRAINED, "Version": {"Index": 6}}),
            ("POST /nodes/b/update?version=6", None, SPEC),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b")]),
        ],
        ["set b (b) to active"],
        "manager",
    ),
    "a stale manager, waited for": (
        {"state": "manager", "hostnames": {"h": "b"}},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", hostname="h"), node("old", "manager", hostname="h")]),
            ("GET /nodes/old", node("old", "manager", hostname="h")),
            ("POST /nodes/old/update?version=5", None, SPEC),
            ("GET /nodes/old", node("old", hostname="h")),
            ("GET /nodes/old", node("old", hostname="h")),
            ("GET /nodes/old", node("old", hostname="h")),
            ("GET /nodes/old", node("old", state="down", hostname="h")),
            ("DELETE /nodes/old", None),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", hostname="h")]),
        ],
        ["demote h (old)", "remove stale node h (old)"],
        "manager",
    ),
    "a worker leaves": (
        {"state": "absent", "member_ids": ["me"]},
        [("GET /info", WORKER), ("POST /swarm/leave", None), ("GET /info", NONE)],
        ["leave swarm"],
        "absent",
    ),
    "a worker leaves; its engine is too slow twice, and half out after the first time": (
        {"state": "absent", "member_ids": ["me"]},
        [
            ("GET /info", WORKER),
            ("POST /swarm/leave", HALF_LEFT),
            ("GET /info", info(node_id="")),
            ("POST /swarm/leave", HALF_LEFT),
            ("GET /info", NONE),
            ("GET /info", NONE),
        ],
        ["leave swarm"],
        "absent",
    ),
    "absent already": ({"state": "absent"}, [("GET /info", NONE)], [], "absent"),
    "a manager leaves, after the nodes that were removed": (
        {"state": "absent", "removed_nodes": ["w"]},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager"), node("w", state="down")]),
            ("DELETE /nodes/w", None),
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager")]),
            ("GET /nodes/me", ME),
            ("POST /nodes/me/update?version=5", None, SPEC),
            ("GET /info", WORKER),
            ("POST /swarm/leave", None),
            ("GET /info", NONE),
        ],
        ["remove node w (w)", "demote to worker", "leave swarm"],
        "absent",
    ),
    "the last manager leaves by force, without waiting": (
        {"state": "absent", "removed_nodes": ["w"], "force": True},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("w")]),
            ("POST /swarm/leave?force=true", None),
            ("GET /info", NONE),
        ],
        ["leave swarm"],
        "absent",
    ),
    "by force, while the others leave too": (
        {"state": "absent", "force": True},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager")]),
            ("GET /nodes/me", ME),
            ("POST /nodes/me/update?version=5", EngineError("attempting to demote the last manager of the swarm", 400)),
            ("POST /swarm/leave?force=true", None),
            ("GET /info", NONE),
        ],
        ["leave swarm"],
        "absent",
    ),
    "a worker of another swarm stays there": (
        {"state": "absent", "member_ids": ["boss"], "force": True},
        [("GET /info", WORKER)],
        [],
        "other",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_calls_of_a_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    params, script, actions, state = RUNS[name]
    answer = run(monkeypatch, capsys, ScriptedEngine(*script), **params)
    assert (answer.get("actions"), answer.get("state")) == (actions, state), answer
    assert answer["changed"] == bool(actions) == (answer["diff"]["before"] != answer["diff"]["after"])
    assert "SWMTKN" not in json.dumps({**answer, "invocation": None})


@pytest.mark.parametrize("name", RUNS)
def test_check_mode_predicts_the_run_and_only_reads(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    params, script, actions, state = RUNS[name]
    reads = script[: 2 if script[1:] and script[1][0] == "GET /nodes" else 1]
    answer = run(monkeypatch, capsys, ScriptedEngine(*reads), check=True, **params)
    if name == "by force, while the others leave too":  # what others do meanwhile cannot be foreseen
        actions = ["demote to worker", *actions]
    assert (answer["actions"], answer["state"], answer["changed"]) == (actions, state, bool(actions))


def test_the_answer_of_a_manager(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = {"JoinTokens": {"Worker": WORKER_TOKEN, "Manager": MANAGER_TOKEN}}
    engine = ScriptedEngine(("GET /info", MANAGER), ("GET /nodes", [ME]), ("GET /swarm", tokens))
    answer = run(monkeypatch, capsys, engine, state="manager", return_tokens=True)
    assert answer["join_tokens"] == {"worker": WORKER_TOKEN, "manager": MANAGER_TOKEN}
    assert (answer["cluster_id"], answer["node_id"]) == ("C1", "me")
    assert answer["nodes"] == [
        {
            "id": "me",
            "hostname": "me",
            "role": "manager",
            "state": "ready",
            "availability": "active",
            "addr": "10.0.0.1",
            "leader": False,
        }
    ]


def test_a_worker_returns_the_id_it_was_given_and_no_tokens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine(("GET /info", WORKER))
    answer = run(monkeypatch, capsys, engine, state="worker", member_ids=["me"], cluster_id="C1", return_tokens=True)
    assert (answer["cluster_id"], answer["nodes"], "join_tokens" in answer) == ("C1", [], False)


def test_nothing_of_a_foreign_swarm_is_predicted_but_leaving_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine(("GET /info", MANAGER), ("GET /nodes", [ME, node("old", state="down", hostname="h")]))
    lists = {"state": "manager", "hostnames": {"h": "b"}, "cluster_id": "C2", "leave_foreign": True}
    answer = run(monkeypatch, capsys, engine, check=True, **lists)
    assert answer["actions"] == ["leave foreign swarm", "join as manager"]
    engine = ScriptedEngine(("GET /info", MANAGER), ("GET /nodes", [ME]))
    answer = run(
        monkeypatch, capsys, engine, check=True, state="worker", cluster_id="C2", leave_foreign=True, return_tokens=True
    )
    assert answer["actions"] == ["leave foreign swarm", "join as worker"]
    assert (answer["cluster_id"], answer["node_id"], answer["nodes"]) == ("C2", None, [])
    assert answer["diff"] == {
        "before": {"membership": "manager of swarm demo (node me, swarm id C1, managers at unknown)"},
        "after": {"membership": "worker of swarm demo"},
    }


def no_answer(cause: OSError) -> EngineError:
    error = EngineError(f"no answer from the Docker engine at /var/run/docker.sock: {cause}")
    error.__cause__ = cause
    return error


MISSING, STOPPED = FileNotFoundError(2, "No such file or directory"), ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("cause", [MISSING, STOPPED])
def test_check_mode_works_before_there_is_an_engine(
    cause: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for params, actions in (
        ({"state": "manager", "init": True, "return_tokens": True}, ["init"]),
        ({"state": "worker"}, ["join as worker"]),
        ({"state": "absent"}, []),
    ):
        engine = ScriptedEngine(("GET /info", no_answer(cause)))
        answer = run(monkeypatch, capsys, engine, check=True, **params)
        assert (answer["actions"], answer["changed"], "join_tokens" in answer) == (actions, bool(actions), False)


def test_a_host_without_engine_has_nothing_to_leave(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(monkeypatch, capsys, ScriptedEngine(("GET /info", no_answer(MISSING))), state="absent")
    assert (answer["changed"], answer["state"]) == (False, "absent")


LATE = [("GET /info", info("pending", ""))] * 5  # 2 s in steps of 0.5 s
FAILURES: dict[str, tuple[Json, list[tuple[Any, ...]], str]] = {
    "no engine": (
        {"state": "worker", **JOIN},
        [("GET /info", no_answer(MISSING))],
        "Cannot talk to the Docker engine: no answer from the Docker engine at /var/run/docker.sock: [Errno 2] No such"
        " file or directory. Remedy: check that Docker is installed and running; the role docker does both.",
    ),
    "a stopped engine may be in a swarm": (
        {"state": "absent"},
        [("GET /info", no_answer(STOPPED))],
        "Cannot talk to the Docker engine: no answer from the Docker engine at /var/run/docker.sock: [Errno 111]"
        " Connection refused. Remedy: check that Docker is installed and running; the role docker does both.",
    ),
    "timeout": ({"state": "worker", "timeout": 0}, [], "timeout is 0; give a number of seconds, at least 1."),
    "bad parameter": ({"state": "worker", "init": True}, [], "init is true and state is worker"),
    "no token": (
        {"state": "worker", "remote_addrs": [AT]},
        [("GET /info", NONE)],
        "This host has to join swarm demo; missing: join_token.",
    ),
    "another swarm": (
        {"state": "worker", "member_ids": ["boss"], **JOIN},
        [("GET /info", WORKER)],
        "This host is a worker of another swarm (node me, managers at unknown), not of swarm demo.",
    ),
    "bad token: no other address is tried": (
        {"state": "worker", **JOIN, "remote_addrs": [AT, "10.0.0.2:2377"]},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", EngineError(f"A valid join token is necessary, not {WORKER_TOKEN}", 400)),
            ("GET /info", NONE),
        ],
        "Cannot join swarm demo at 10.0.0.1:2377: A valid join token is necessary, not (hidden). Remedy: take the",
    ),
    "no address answers": (
        {"state": "worker", **JOIN},
        [("GET /info", NONE), ("POST /swarm/join", REFUSED), ("GET /info", NONE)],
        "Cannot join swarm demo at 10.0.0.1:2377: rpc error: desc = connection error:",
    ),
    "join never ends, and is taken back": (
        {"state": "worker", "timeout": 2, **JOIN},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            *LATE,
            ("GET /info", info("pending", "", RemoteManagers=[{"NodeID": "", "Addr": AT}])),
            ("GET /info", info("pending", "")),
            ("POST /swarm/leave?force=true", None),
        ],
        "Swarm state of this host is pending after 2 s, not active; managers at 10.0.0.1:2377. Check that they run "
        "and that their port 2377/tcp is open to this host. A slow swarm needs a larger timeout.",
    ),
    "join ends in an error": (
        {"state": "worker", **JOIN},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            ("GET /info", info("error", Error=f"no good: {WORKER_TOKEN}")),
            ("GET /info", info("error")),
            ("POST /swarm/leave?force=true", None),
        ],
        "Swarm state of this host became error: no good: (hidden)",
    ),
    "no way back to this host": (
        {"state": "manager", **JOIN, "advertise_addr": "10.0.0.2"},
        [("GET /info", NONE), ("POST /swarm/join", NO_WAY_BACK), ("GET /info", NONE)],
        f"Cannot join swarm demo at 10.0.0.1:2377: {NO_WAY_BACK}. Remedy: the managers do not reach this host: open its"
        " port 2377/tcp to them, so that `nc -zv 10.0.0.2 2377` succeeds on a manager, or set advertise_addr (role"
        " swarm: swarm_advertise_address) to an address of this host that they reach.",
    ),
    "join ends in an error of the clock": (
        {"state": "worker", **JOIN},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            ("GET /info", info("error", Error="x509: certificate has expired or is not yet valid")),
            ("GET /info", info("error")),
            ("POST /swarm/leave?force=true", None),
        ],
        "Swarm state of this host became error: x509: certificate has expired or is not yet valid. Remedy: compare"
        " `date -u` on this host and on the managers, and where it is wrong run `timedatectl set-ntp true`;",
    ),
    "join hangs, and the engine says why": (
        {"state": "worker", "timeout": 2, **JOIN},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            *LATE,
            ("GET /info", info("pending", "", Error="rpc error: desc = context deadline exceeded")),
            ("GET /info", info("pending", "")),
            ("POST /swarm/leave?force=true", None),
        ],
        "Swarm state of this host is pending after 2 s, not active (rpc error: desc = context deadline exceeded);"
        " managers at unknown. Remedy: see that `docker node ls` on a manager lists a leader, and that `nc -zv 10.0.0.1"
        " 2377` succeeds on this host; then run again.",
    ),
    "a manager's token for a worker": (
        {"state": "worker", **JOIN},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
        ],
        "This host joined as a manager: join_token is the managers' token, and state is worker.",
    ),
    "a worker's token for a manager": (
        {"state": "manager", "timeout": 1, **JOIN},
        [("GET /info", NONE), ("POST /swarm/join", None), *[("GET /info", WORKER)] * 5],
        "This host is a worker of swarm demo and did not become a manager in 1 s. Give a manager node_roles: {me:"
        " manager}; if this host just joined, join_token is the workers' token.",
    ),
    "joined another swarm": (
        {"state": "manager", **JOIN, "cluster_id": "C2"},
        [
            ("GET /info", NONE),
            ("POST /swarm/join", None),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
            ("GET /info", MANAGER),
        ],
        "This host is in swarm C1, and cluster_id is C2: remote_addrs or join_token belong to another swarm.",
    ),
    "several addresses": (
        {"state": "manager", "init": True},
        [
            ("GET /info", NONE),
            ("POST /swarm/init", EngineError("could not choose an IP address to advertise since …", 400)),
        ],
        "Cannot create swarm demo: could not choose an IP address to advertise since …. Remedy: set advertise_addr"
        " to the address by which others reach this host, which has several.",
    ),
    "an engine that does not leave in time": (
        {"state": "absent", "member_ids": ["me"], "timeout": 3},
        [
            ("GET /info", WORKER),
            *[("POST /swarm/leave", HALF_LEFT), ("GET /info", info(node_id=""))] * 2,
            ("POST /swarm/leave", HALF_LEFT),
        ],
        "Cannot leave the swarm: context deadline exceeded. Remedy: systemctl restart docker on this host, and run"
        " again.",
    ),
    "no leader": (
        {"state": "manager"},
        [("GET /info", MANAGER), ("GET /nodes", EngineError("The swarm does not have a leader.", 500))],
        "Cannot list the swarm's nodes: The swarm does not have a leader. Remedy: start the engines of the other",
    ),
    "who departed is still there": (
        {"state": "manager", "removed_nodes": ["w"], "timeout": 1},
        [("GET /info", MANAGER), ("GET /nodes", [ME, node("w")]), *[("GET /nodes/w", node("w"))] * 4],
        "w (w) is still up: its host has not left the swarm. Run state: absent there first (waited 1 s).",
    ),
    "three stale versions are enough": (
        {"state": "manager", "node_roles": {"b": "manager"}},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b")]),
            *[("GET /nodes/b", node("b")), ("POST /nodes/b/update?version=5", STALE)] * 3,
        ],
        "Cannot promote b (b): rpc error: code = Unknown desc = update out of sequence.",
    ),
    "a demotion that never comes": (
        {"state": "manager", "node_roles": {"b": "worker"}, "timeout": 1},
        [
            ("GET /info", MANAGER),
            ("GET /nodes", [ME, node("b", "manager"), node("c", "manager")]),
            ("GET /nodes/b", node("b", "manager")),
            ("POST /nodes/b/update?version=5", None),
            *[("GET /nodes/b", node("b", "manager"))] * 3,
        ],
        "demote b (b): the managers do not count it out yet (waited 1 s).",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    params, script, text = FAILURES[name]
    answer = run(monkeypatch, capsys, ScriptedEngine(*script), **params)
    assert answer["failed"] and answer["msg"].startswith(text), answer["msg"]
    assert (answer["changed"], answer["actions"]) == (False, [])
    assert "SWMTKN" not in json.dumps({**answer, "invocation": None}) and "Traceback" not in json.dumps(answer)


def test_a_failure_half_way_says_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ScriptedEngine(
        ("GET /info", info(node_id="you")),
        ("POST /swarm/leave", None),
        ("POST /swarm/join", REFUSED),
        ("GET /info", NONE),
    )
    answer = run(
        monkeypatch, capsys, engine, **{**JOIN, "state": "worker", "member_ids": ["boss"], "leave_foreign": True}
    )
    assert (answer["failed"], answer["changed"], answer["actions"]) == (True, True, ["leave foreign swarm"])


def test_a_host_left_alone_is_warned_about(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    warned: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, text: warned.append(text))
    run(monkeypatch, capsys, ScriptedEngine(("GET /info", WORKER)), state="absent", member_ids=["boss"])
    assert warned == [
        "This host is a worker of another swarm (node me, managers at unknown), not of swarm demo, and was left alone."
        " leave_foreign: true makes it leave."
    ]


def test_documentation_and_arguments_agree() -> None:
    options = DataLoader().load(swarm_membership.DOCUMENTATION)["options"]
    assert set(options) == set(swarm_membership.ARGUMENTS)
    for name, argument in swarm_membership.ARGUMENTS.items():
        for key in ("type", "elements", "choices", "default"):
            assert options[name].get(key) == argument.get(key), f"{name}: {key}"
        assert options[name].get("required", False) == argument.get("required", False), name
    assert swarm_membership.ARGUMENTS["join_token"]["no_log"] is True
