# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""network_mesh_test with fake test processes: what each is sent, and errors. For real: fabric/test_fabric_peer.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.probe_io import Gone
from ansible_collections.swarmspeed.cluster.plugins.modules import network_mesh_test
from ansible_collections.swarmspeed.cluster.plugins.modules.network_mesh_test import InvalidRequest, order, step
from hypothesis import given
from hypothesis import strategies as st

OUTER = {"subnet": "10.1.0.0/24", "udp": [4789, 7946], "tcp": {"gpu2": [7946], "gpu3": [7946]}}


class FakeEnds:
    """Ends that answer as given; a kind that is not given is gone."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.started: dict[str, tuple[list[str], dict[str, Any]]] = {}
        self.commands: list[tuple[str, dict[str, Any]]] = []

    def start(self, name: str, command: Sequence[str], requested: Mapping[str, Any]) -> None:
        self.started[name] = (list(command), dict(requested))

    def send(self, name: str, command: Mapping[str, Any]) -> None:
        self.commands.append((name, dict(command)))

    def wait(self, name: str, kind: str, seconds: float) -> dict[str, Any]:
        if kind not in self.answers:
            raise Gone("it ended without a word")
        return {"kind": kind, **self.answers[kind]}


def params(**change: Any) -> dict[str, Any]:
    return {
        "step": "start",
        "run": "r1",
        "token": "secret",
        "node": "gpu1",
        "hosts": ["gpu1", "gpu2", "gpu3"],
        "container": "ai-gpu1",
        "wrapper": ["sh", "/entry", "run"],
        "python": "python3",
        "subnet": "10.64.0.0/24",
        "addresses": {"gpu1": "10.1.0.1"},
        "names": {"gpu1": "ai-gpu1", "gpu2": "ai-gpu2", "gpu3": "ai-gpu3"},
        "ports": [29500, 29599],
        "ssh": True,
        "backend": "gloo",
        "env_file": "",
        "outer": OUTER,
        "peers": {},
        "life": 300,
        **change,
    }


READY = {"address": "10.64.0.2", "port": 29599, "store_port": 29598}


def test_one_end_is_in_the_container_and_one_on_the_host() -> None:
    ends = FakeEnds(ready=READY)
    answer = step(params(), ends, "/usr/bin/python3")
    assert not answer["trouble"] and set(answer["ready"]) == {"inner", "outer"}
    inner, requested = ends.started["inner"]
    assert inner[:8] == ["docker", "exec", "-i", "ai-gpu1", "sh", "/entry", "run", "python3"]
    assert requested["names"] == {"gpu2": "ai-gpu2", "gpu3": "ai-gpu3"}
    assert "torch" in requested["collective"] and requested["udp"] == []
    outer, requested = ends.started["outer"]
    assert outer[0] == "/usr/bin/python3"
    assert (requested["udp"], requested["tcp"], requested["ports"], requested["ssh"]) == (
        [4789, 7946],
        OUTER["tcp"],
        [],
        False,
    )
    assert not any("secret" in word for word in inner + outer)


def test_without_an_overlay_there_is_no_end_on_the_host() -> None:
    ends = FakeEnds(ready=READY)
    answer = step(params(outer=None, container=None), ends, "python3")
    assert set(ends.started) == set(answer["ready"]) == {"inner"}


@given(st.integers(2, 20).map(lambda count: [f"n{number}" for number in range(count)]))
def test_each_tries_all_others_once_and_partners_meet_in_the_same_round(hosts: list[str]) -> None:
    orders = {name: order(hosts, name) for name in hosts}
    for name, others in orders.items():
        assert sorted([*others, name]) == sorted(hosts)
    if len(hosts) % 2 == 0:  # with an odd number one rests in each round
        for number in range(len(hosts) - 1):
            for name in hosts:
                assert orders[orders[name][number]][number] == name


def test_only_those_that_answer_are_tried() -> None:
    ends = FakeEnds()
    peers = {"gpu1": {"inner": READY, "outer": {}}, "gpu2": {}, "gpu3": {"inner": READY, "outer": READY}}
    step(params(step="pairs", peers=peers), ends, "python3")
    assert [(name, command["order"]) for name, command in ends.commands] == [("inner", ["gpu3"]), ("outer", ["gpu3"])]


@pytest.mark.parametrize("reported", [{"address": "x\n"}, {"address": "10.0.0.1", "port": "22"}, "x", [1]])
@pytest.mark.parametrize("work", ["pairs", "collective"])
def test_an_answer_of_another_node_that_is_none_is_not_handed_on(reported: Any, work: str) -> None:
    ends = FakeEnds()
    with pytest.raises(ReportedError, match=r"^gpu1: network_mesh_test\.ready\.inner"):
        step(params(step=work, peers={"gpu1": {"inner": reported}}), ends, "python3")
    assert ends.commands == []


@pytest.mark.parametrize(
    "inner, passable",
    [
        ([("gpu2", "tcp", True), ("gpu3", "tcp", True), ("gpu3", "ssh", False), ("gpu3", "clock", False)], True),
        ([("gpu2", "tcp", True), ("gpu3", "tcp", False)], False),
        ([("gpu2", "tcp", True), ("gpu3", "tcp", True), ("gpu2", "mtu", False)], False),
        ([("gpu2", "tcp", True)], False),
    ],
)
def test_a_collective_is_worth_it_where_all_others_are_reached(
    inner: list[tuple[str, str, bool]], passable: bool
) -> None:
    results = [{"to": to, "check": check, "ok": ok} for to, check, ok in inner]
    ends = FakeEnds(pairs={"results": results, "seconds": 1})
    assert step(params(step="paired", outer=None), ends, "python3")["passable"] is passable


def test_all_ranks_meet_at_the_first_node() -> None:
    ends = FakeEnds()
    peers = {"gpu1": {"inner": {**READY, "address": "10.64.0.9"}}, "gpu2": {"inner": READY}, "gpu3": {"inner": READY}}
    step(params(step="collective", node="gpu3", peers=peers), ends, "python3")
    (shown,) = ends.commands
    assert shown == (
        "inner",
        {
            "do": "collective",
            "rank": 2,
            "world": 3,
            "seconds": 2,
            "master": "10.64.0.9",
            "port": 29598,
            "backend": "gloo",
        },
    )


def test_the_process_is_asked_for_what_came_in_and_ended() -> None:
    ends = FakeEnds(pairs={"results": []}, collective={"ok": True}, ended={"seen": {"gpu2": [4789]}})
    answer = step(params(step="end", peers={"gpu1": {"inner": READY}}), ends, "python3")
    assert answer["seen"] == {"gpu2": [4789]} and answer["collective"]["ok"]
    assert ends.commands == [("inner", {"do": "end"}), ("outer", {"do": "end"})]


def test_an_end_that_is_gone_is_an_answer_with_a_remedy() -> None:
    answer = step(params(), FakeEnds(), "python3")
    assert answer["trouble"] == {
        "text": "what tries the network in the container ai-gpu1 gave up (it ended without a word)",
        "remedy": "ansible-playbook site.yml --tags training_container",
    }


@pytest.mark.parametrize(
    "change, reported",
    [
        ({"node": "gpu9"}, "hosts: gpu1, gpu2, gpu3. Give each node once, gpu9 among them."),
        ({"hosts": ["gpu1", "gpu1"]}, "hosts: gpu1, gpu1. Give each node once, gpu1 among them."),
        ({"token": None}, "token, subnet and ports (first and last) are needed to start."),
        ({"ports": [1]}, "token, subnet and ports (first and last) are needed to start."),
    ],
)
def test_asked_wrongly(change: dict[str, Any], reported: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        step(params(**change), FakeEnds(ready=READY), "python3")
    assert str(caught.value) == reported


@pytest.mark.parametrize(
    "arguments, reported",
    [
        ({"run": "../x"}, "network_mesh_test: run: '../x'. Use letters and digits only."),
        ({"run": "r1", "node": "gpu9"}, "network_mesh_test: hosts: gpu1. Give each node once, gpu9 among them."),
    ],
)
def test_the_module_says_what_is_asked_wrongly(
    arguments: dict[str, Any], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given_arguments = {"step": "start", "node": "gpu1", "hosts": ["gpu1"], **arguments}
    with patch_module_args(given_arguments), pytest.raises(SystemExit):
        network_mesh_test.main()
    result = json.loads(capsys.readouterr().out)
    assert (result["failed"], result["msg"]) == (True, reported)
