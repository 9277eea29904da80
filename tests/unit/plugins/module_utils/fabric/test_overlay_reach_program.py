# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What runs in the container, against sockets of this machine, and the way it gets there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import reach
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.reach_io import Beside, ReachError
from ansible_collections.swarmspeed.cluster.plugins.modules.overlay_reach import run_module


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number: int = server.getsockname()[1]
    return number


def test_a_port_that_listens_is_reached(port: int) -> None:
    assert reach.attempt("localhost", port, 2) == {"stage": "done", "error": ""}


def test_who_refuses_was_reached() -> None:
    assert reach.attempt("127.0.0.1", closed_port(), 2) == {"stage": "done", "error": ""}


def test_a_name_that_leads_nowhere() -> None:
    assert reach.attempt("no-such-host.invalid", 22, 2)["stage"] == "name"


def test_nothing_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def unanswered(*_args: Any, **_named: Any) -> None:
        raise OSError(113, "No route to host")

    monkeypatch.setattr(socket, "create_connection", unanswered)
    assert reach.attempt("127.0.0.1", 22, 2) == {"stage": "connect", "error": "No route to host"}


def test_one_that_hangs_does_not_hold_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(host: str, _port: int, _seconds: float) -> dict[str, str]:
        time.sleep(30 if host == "slow" else 0)
        return {"stage": "done", "error": ""}

    monkeypatch.setattr(reach, "attempt", attempt)
    began = time.monotonic()
    found = reach.reach({"hosts": {"a": "slow", "b": "quick"}, "port": 22, "seconds": 0.5})
    assert time.monotonic() - began < 5
    assert (found["a"]["stage"], found["b"]["stage"]) == ("name", "done")


class Here:
    """A container that is this machine."""

    def __init__(self, done: CommandResult | None = None) -> None:
        self.done, self.command = done, [""]

    def run(self, command: Sequence[str], data: str) -> CommandResult:
        self.command = list(command)
        if self.done:
            return self.done
        here = [sys.executable, *command[command.index("python3") + 1 :]]
        done = subprocess.run(here, input=data, capture_output=True, text=True, timeout=30, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr)


def params(**change: Any) -> dict[str, Any]:
    return {"container": "ai-gpu1", "hosts": {}, "port": 22, "seconds": 3, "python": "python3", **change}


def test_as_a_whole(port: int) -> None:
    here = Here()
    found = run_module(params(hosts={"gpu2": "localhost", "gpu3": "no-such-host.invalid"}, port=port), here)
    assert here.command[:4] == ["docker", "exec", "-i", "ai-gpu1"]
    assert found["changed"] is False
    assert found["reached"]["gpu2"] == {"stage": "done", "error": ""}
    assert found["reached"]["gpu3"]["stage"] == "name" and found["reached"]["gpu3"]["error"]


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (
            CommandResult(1, "", "Error response from daemon: container x is not running"),
            "is not running. Remedy: docker",
        ),
        (CommandResult(0, "no report\n"), "cannot try its network: no report. Remedy"),
        (CommandResult(0, f"{reach.MARK}no json\n"), "cannot try its network"),
        (CommandResult(0, f"{reach.MARK}[]\n"), "cannot try its network"),
    ],
)
def test_a_container_that_cannot_try(done: CommandResult, words: str) -> None:
    with pytest.raises(ReachError, match=words):
        run_module(params(hosts={"gpu2": "ai-gpu2"}), Here(done))


@pytest.mark.parametrize("seconds", [0, 31])
def test_seconds_that_cannot_be_meant(seconds: int) -> None:
    with pytest.raises(ReachError, match=f"seconds: {seconds} is not within 1 and 30"):
        run_module(params(seconds=seconds), Here())


def test_an_answer_that_lacks_a_host() -> None:
    found = run_module(params(hosts={"gpu2": "ai-gpu2"}), Here(CommandResult(0, reach.MARK + "{}\n")))
    assert found["reached"] == {"gpu2": {"stage": "name", "error": "no answer"}}


# Beside other facts

REQUESTED = {"container": "lab-a", "hosts": {"b": "lab-b"}, "port": 2222}
RUNS = {"containers": {"lab-a": {"state": "running"}}}


def answering(command: Sequence[str], data: str) -> CommandResult:
    assert command[:4] == ["docker", "exec", "-i", "lab-a"] and "lab-b" in data
    return CommandResult(0, f'{reach.MARK}{{"b": {{"stage": "done", "error": ""}}}}')


def test_beside_other_facts_it_is_tested_from_a_container_that_runs() -> None:
    assert Beside(REQUESTED, RUNS, answering).result() == {"b": {"stage": "done", "error": ""}}


@pytest.mark.parametrize(
    ("requested", "docker"),
    [
        ({}, RUNS),
        ({**REQUESTED, "hosts": {}}, RUNS),
        (REQUESTED, {}),
        (REQUESTED, {"containers": {"lab-a": {"state": "exited"}}}),
        (REQUESTED, {"containers": {"lab-b": {"state": "running"}}}),
    ],
)
def test_beside_other_facts_nothing_is_run_where_there_is_nothing_to_test(requested: Any, docker: Any) -> None:
    def never(*_args: Any) -> CommandResult:
        raise AssertionError("it was run")

    assert Beside(requested, docker, never).result() == {}


def test_beside_other_facts_what_cannot_be_tested_is_left_to_the_role() -> None:
    assert Beside(REQUESTED, RUNS, lambda *_args: CommandResult(125, "", "no such container")).result() == {}
