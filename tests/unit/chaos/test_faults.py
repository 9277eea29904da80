# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What faults do to nodes: scripts that are shell, on the node that was drawn, at moments while a run lasts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import lab as lab_module
from tests.chaos.faults import engine
from tests.chaos.faults.base import TRIES, Attempt, Failed, Unsuited
from tests.chaos.faults.catalogue import FAULTS
from tests.chaos.lab import Lab, LabError
from tests.chaos.plan import Round, Scope
from tests.chaos.runs import Durations, Ended, Running, Runs
from tests.chaos.scripts import TIDY, image_store
from tests.engines import NoEngine, SwarmNode
from tests.playbook_run import LAB

NODES = ("lab1", "lab2", "lab3")
DEAD = {"event": "unreachable", "host": "lab2", "task": "x", "texts": ["no route to lab2"], "ignored": False}
RECAP = {"event": "recap", "hosts": {name: {"failures": 0, "unreachable": 0} for name in NODES}}
SUCCESS = "".join(f"{name} : ok=1 changed=0\n" for name in NODES)


class FakeLab:
    """Remembers scripts and what was done to whole nodes; answers as a healthy node does."""

    nodes, manager = NODES, "lab1"
    arguments: tuple[str, ...] = ()
    follow, other_address = Lab.follow, Lab.other_address

    def __init__(self) -> None:
        self.hosts = {
            name: {"ansible_host": f"10.231.0.1{name[-1]}", "ansible_ssh_common_args": "-o X=y"} for name in NODES
        }
        self.scripts: list[tuple[str, str]] = []
        self.did: list[tuple[str, ...]] = []
        self.engines: dict[str, dict[str, Any]] = {}
        self.container = "running"
        self.in_swarm = SwarmNode("a", "lab2", "ready", "active", "worker", "")

    def run(self, name: str, script: str, timeout: float = 0) -> str:
        del timeout
        self.scripts.append((name, script))
        return ""

    def info(self, name: str) -> dict[str, Any]:
        if name not in self.engines:
            raise LabError("no engine answers")
        return self.engines[name]

    def training_container(self, name: str) -> str:
        assert name == "lab2"
        return self.container

    def member(self, name: str) -> SwarmNode:
        assert name == "lab2"
        return self.in_swarm

    def power(self, words: Sequence[str], *names: str) -> None:
        self.did.append((words[0], *names))

    def readdress(self, name: str, address: str) -> None:
        self.did.append(("readdress", name, address))

    def state(self, name: str) -> str:
        return "exited" if any(one[0] == "kill" and name in one for one in self.did) else "running"

    def wait_for(self, *names: str, seconds: float = 0) -> None:
        del seconds
        self.did.append(("wait", *names))


class FakeRun:
    """A playbook that takes some seconds, of which it only gets the output."""

    def __init__(self, takes: float, ended: Ended) -> None:
        self.takes, self.ended, self.killed, self.waited, self.left = takes, ended, "", 0.0, 0.0

    def ended_within(self, seconds: float) -> bool:
        self.waited = seconds
        return self.takes <= seconds

    def task(self) -> str:
        return "Join the swarm"

    def kill(self, scope: Scope) -> None:
        self.killed = scope

    def output(self) -> str:
        return self.ended.output

    def finish(self, timeout: float = 0) -> Ended:
        self.left = timeout
        return self.ended


def ended(rc: int | None = 0, seconds: float = 40.0, *events: dict[str, Any]) -> Ended:
    return Ended(rc, SUCCESS, [*events, RECAP], seconds)


class FakeAttempt(Attempt):
    """Starts runs that the test gives; any other succeeds at once."""

    ends: dict[str, list[FakeRun]]
    requested: list[str]

    def start(self, label: str, name: str, *arguments: str) -> Running:
        del name, arguments
        self.requested.append(label)
        given = self.ends.get(label) or []
        return cast(Running, given.pop(0) if given else FakeRun(0, ended()))


@pytest.fixture
def attempt(tmp_path: Path) -> FakeAttempt:
    one = Round(1, "x", "lab2", 0.5, 0.25, "main")
    made = FakeAttempt(cast(Lab, FakeLab()), one, Runs(tmp_path, Durations(tmp_path / "durations.json")), "lab2")
    made.ends, made.requested = {}, []
    made.runs.durations.learn("site", 100.0)
    return made


def fake(attempt: Attempt) -> FakeLab:
    return cast(FakeLab, attempt.lab)


SCRIPTED = [name for name, fault in FAULTS.items() if fault.inject.__module__.endswith(("engine", "node", "swarm"))]


@pytest.mark.parametrize("name", SCRIPTED)
def test_what_is_run_on_a_node_is_shell_and_hits_the_one_that_was_drawn(name: str, attempt: FakeAttempt) -> None:
    fault = FAULTS[name]
    for part in (fault.inject, fault.by_hand, fault.undo, fault.left):
        if part:
            cast(Callable[[Attempt], object], part)(attempt)
    assert fake(attempt).scripts
    for node, script in fake(attempt).scripts:
        subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=20)
        assert node == "lab2" or (node == "lab1" and "lab2" in script) or "sha256" in script


def test_what_is_tidied_up_is_shell() -> None:
    for script in (TIDY, image_store(of_containerd=True), image_store(of_containerd=False)):
        subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=20)


@pytest.mark.parametrize("before", ["", '{"mtu": 1400, "features": {"buildkit": true}}'])
def test_switching_the_image_store_leaves_all_other_settings(tmp_path: Path, before: str) -> None:
    path = tmp_path / "daemon.json"
    if before:
        path.write_text(before, encoding="utf-8")

    def switched(on: bool) -> str:
        script = image_store(of_containerd=on).replace("/etc/docker/daemon.json", str(path))
        (code,) = re.findall(r"<<'END'\n(.*?)\nEND\n", script, re.S)
        subprocess.run(["python3", "-"], input=code, text=True, check=True, timeout=20)
        return "".join(path.read_text(encoding="utf-8").split())

    assert '"containerd-snapshotter":true' in switched(True)
    assert switched(False) == (before or "{}").replace(" ", "")


def test_a_moment_is_a_part_of_what_the_playbook_is_known_to_take(attempt: FakeAttempt) -> None:
    run = FakeRun(100, ended())
    attempt.ends = {"site": [run]}
    FAULTS["kill-site"].inject(attempt)
    assert (run.waited, run.killed) == (50.0, "main")
    assert attempt.requested == ["teardown", "site"]
    assert attempt.moment == "Join the swarm (50.0 s after the start)"


def test_a_run_that_ends_before_its_moment_is_made_again_and_learnt_from(attempt: FakeAttempt) -> None:
    late = FakeRun(30, ended())
    attempt.ends = {"site": [FakeRun(40, ended(seconds=40.0)), late]}
    FAULTS["kill-site"].inject(attempt)
    assert late.killed and late.waited == pytest.approx(0.5 * 40 * 0.95)
    assert attempt.runs.durations.expected("site") == 40.0
    attempt.ends = {}
    with pytest.raises(Unsuited, match=f"{TRIES} runs in turn"):
        FAULTS["kill-site"].inject(attempt)


def test_a_run_that_fails_by_itself_is_a_failure(attempt: FakeAttempt) -> None:
    attempt.ends = {"site": [FakeRun(1, Ended(2, "", [], 1.0))]}
    with pytest.raises(Failed, match="a site that nothing had disturbed yet: it ended with 2"):
        FAULTS["kill-site"].inject(attempt)
    attempt.ends = {"teardown": [FakeRun(1, Ended(2, "", [], 1.0))]}
    with pytest.raises(Failed, match=r"teardown\.yml, before the fault was made"):
        FAULTS["kill-site"].inject(attempt)


def test_the_second_kill_is_in_the_run_after_the_first(attempt: FakeAttempt) -> None:
    first, second = FakeRun(100, ended()), FakeRun(90, ended())
    attempt.ends = {"site": [first], "site-again": [second]}
    FAULTS["kill-site-twice"].inject(attempt)
    assert (first.killed, second.killed, second.waited) == ("main", "main", 25.0)
    attempt.ends = {"site": [FakeRun(100, ended())], "site-again": [FakeRun(1, Ended(2, "", [], 1.0))]}
    with pytest.raises(Failed, match="the run after the first kill"):
        FAULTS["kill-site-twice"].inject(attempt)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.kill])
def test_every_kill_kills(name: str, attempt: FakeAttempt) -> None:
    runs = {label: FakeRun(1000, ended()) for label in ("site", "site-again", "verify", "launch", "transfer")}
    last = FakeRun(1000, ended())
    attempt.ends = {label: [run] for label, run in runs.items()}
    if name == "kill-teardown":
        attempt.ends = {"teardown": [last]}
    FAULTS[name].inject(attempt)
    assert any(run.killed == "main" for run in (*runs.values(), last))


WAITS = "lab1: its container does not reach lab2 over the overlay network yet; waiting up to 90 s, as …\n"


@pytest.mark.parametrize(("takes", "printed", "more"), [(1000, WAITS, 90.0), (1000, "", 0.0), (55, WAITS, 0.0)])
def test_a_disturbed_run_may_last_as_long_as_it_has_announced(
    takes: float, printed: str, more: float, attempt: FakeAttempt
) -> None:
    run = FakeRun(takes, Ended(None, printed, [], 0.0))
    attempt.ends = {"site": [run]}
    attempt.during_site(lambda: None, "lab2", patience=60)
    assert run.left == more
    (problem,) = attempt.problems
    assert problem.endswith(f"did not end in time ({60 + more:.0f} s)")


POWERED = {
    "node-rebooted": [("restart", "lab2"), ("wait", "lab2")],
    "node-power-cut": [("kill", "lab2"), ("start", "lab2"), ("wait", "lab2")],
    "all-power-cut": [("kill", *NODES), ("start", *NODES), ("wait", *NODES)],
    "node-frozen": [("pause", "lab2"), ("unpause", "lab2"), ("wait", "lab2")],
}


@pytest.mark.parametrize("name", POWERED)
def test_nodes_come_back_whatever_the_run_did(name: str, attempt: FakeAttempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda dummy: None)
    attempt.ends = {"site": [FakeRun(1000, ended(4, 60.0, DEAD))]}
    FAULTS[name].inject(attempt)
    assert fake(attempt).did == POWERED[name]
    assert attempt.problems == []
    fake(attempt).did.clear()
    attempt.ends = {"site": [FakeRun(1000, ended(None))]}
    FAULTS[name].inject(attempt)
    assert fake(attempt).did == POWERED[name]
    (problem,) = attempt.problems
    assert re.fullmatch(r"the run in the middle of which it happened did not end in time \((60|300) s\)", problem)


def test_the_inventory_follows_an_address_and_its_host_key_stays_pinned(attempt: FakeAttempt) -> None:
    fault = FAULTS["address-changed"]
    fault.inject(attempt)
    assert fake(attempt).did == [("readdress", "lab2", "10.231.0.112")]
    option, path = attempt.lab.arguments
    assert option == "--inventory"
    written = Path(path).read_text(encoding="utf-8")
    assert '"ansible_host": "10.231.0.112"' in written and "-o X=y -o HostKeyAlias=10.231.0.12" in written
    assert fault.undo
    fault.undo(attempt)
    assert attempt.lab.arguments == ()
    assert fake(attempt).did[1:] == [("readdress", "lab2", "10.231.0.12"), ("wait", "lab2")]


def test_two_controllers_may_refuse_and_may_not_crash(attempt: FakeAttempt) -> None:
    attempt.ends = {"first": [FakeRun(1000, ended())], "second": [FakeRun(1000, Ended(2, "", [], 1.0))]}
    FAULTS["two-controllers"].inject(attempt)
    assert attempt.problems == [
        "the second of two controllers: it ended with 2 and no failed task: nothing was printed"
    ]


def shown(version: str, *status: str) -> dict[str, Any]:
    return {"ServerVersion": version, "DriverStatus": [list(status)] if status else []}


OLD, NEW = shown("20.10.24+dfsg1", "Backing Filesystem", "extfs"), shown("26.1.5+dfsg1")
ENGINES = {
    "the one drawn": ({"lab2": NEW}, "lab2"),
    "the next": ({"lab2": OLD, "lab3": shown("28.5.2")}, "lab3"),
    "round to the first": ({"lab2": OLD, "lab3": OLD, "lab1": NEW}, "lab1"),
    "one that has it already": (
        {"lab2": shown("28.5.2", "driver-type", "io.containerd.snapshotter.v1"), "lab3": NEW},
        "lab3",
    ),
    "one that does not answer": ({"lab3": NEW}, "lab3"),
}


@pytest.mark.parametrize(("answers", "expected"), ENGINES.values(), ids=ENGINES)
def test_the_image_store_is_switched_where_the_engine_has_it(
    answers: dict[str, dict[str, Any]], expected: str, attempt: FakeAttempt
) -> None:
    fake(attempt).engines = answers
    assert engine.with_store(attempt.lab, "lab2") == expected


def test_without_such_an_engine_it_is_not_made(attempt: FakeAttempt) -> None:
    fake(attempt).engines = dict.fromkeys(NODES, OLD)
    with pytest.raises(Unsuited, match="no node has an engine of release 24 or later"):
        engine.with_store(attempt.lab, "lab2")


def test_a_container_that_is_no_node_of_the_lab_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []
    inspected: list[str] = []
    labels: list[dict[str, str] | None] = [{lab_module.LABEL: "another-lab"}, None]

    class Api:
        def inspect_container(self, name: str) -> dict[str, Any]:
            inspected.append(name)
            return {"Config": {"Labels": labels[len(inspected) - 1]}}

    monkeypatch.setattr(lab_module, "_run", lambda words, text, timeout: ran.append(words))
    monkeypatch.setattr(lab_module, "outside", lambda: SimpleNamespace(api=Api()))
    monkeypatch.setattr(lab_module, "lab_inventory", lambda: {"_meta": {"hostvars": {"lab1": {}}}})
    with pytest.raises(LabError, match="is no node of the lab"):
        Lab().run("lab1", "reboot")
    with pytest.raises(LabError, match="is no node of the lab"):
        Lab().power(["kill"], "lab1")
    assert inspected == [f"{LAB}-lab1"] * 2 and ran == []


DRAINED = SwarmNode("a", "lab2", "ready", "drain", "worker", "")
PROMOTED = SwarmNode("a", "lab2", "ready", "active", "manager", "reachable")
LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "container-paused": ({"container": "paused"}, "the container on lab2 is paused"),
    "swarm-drained": ({"in_swarm": DRAINED}, "lab2 is drain in the swarm"),
    "swarm-promoted": ({"in_swarm": PROMOTED}, "lab2 is manager in the swarm"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_still_there_of_a_fault_is_named_and_else_nothing(name: str, attempt: FakeAttempt) -> None:
    left = FAULTS[name].left
    assert left and left(attempt) == ""
    found, reported = LEFT[name]
    vars(fake(attempt)).update(found)
    assert left(attempt) == reported


class Answers:
    """Stands in for ``tests.engines`` beside a lab."""

    def __init__(self, *listed: SwarmNode, error: Exception | None = None) -> None:
        self.listed, self.error = list(listed), error

    def info(self, name: str) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"Swarm": {"NodeID": f"of {name}"}}

    def swarm_nodes(self, name: str) -> list[SwarmNode]:
        assert name == "lab1"
        return self.listed


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(lab_module, "lab_inventory", lambda: {"_meta": {"hostvars": {name: {} for name in NODES}}})
    return Lab()


def test_of_several_entries_of_a_host_its_own_counts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = SwarmNode("older", "lab2", "down", "active", "worker", "")
    own = SwarmNode("of lab2", "lab2", "ready", "drain", "worker", "")
    monkeypatch.setattr(lab_module, "engines", Answers(stale, own))
    assert lab.member("lab2") == own
    monkeypatch.setattr(lab_module, "engines", Answers(stale))
    with pytest.raises(LabError, match="lab2 is none of the nodes of lab1's swarm"):
        lab.member("lab2")


@pytest.mark.parametrize("error", [NoEngine("no engine answers"), ConnectionError("no engine answers")])
def test_an_engine_that_does_not_answer_is_an_error_of_the_lab(
    error: Exception, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_module, "engines", Answers(error=error))
    with pytest.raises(LabError, match="no engine answers"):
        lab.info("lab2")


def test_what_hangs_on_the_lab_ends_in_a_sentence() -> None:
    with pytest.raises(LabError, match=r"no answer within 0 s: sleep 30"):
        lab_module._run(["sleep", "30"], "", 0.1)
    with pytest.raises(LabError, match=r"exit status 3 \(oh\)"):
        lab_module._run(["sh", "-c", "echo oh >&2; exit 3"], "", 10)
