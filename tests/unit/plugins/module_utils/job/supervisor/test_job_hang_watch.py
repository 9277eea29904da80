# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""When a silent job is examined, what is said of it, and whether it is ended: with a clock and examinations of our own.

With real processes: test_job_cluster.py.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import examination
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import judge as judging
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import hang_watch
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.hang_watch import (
    Examination,
    HangWatch,
)

FOUND: dict[str, Any] = {
    "hang": True,
    "works": False,
    "ranks": [2],
    "nodes": ["gpu3"],
    "collective": {"operation": "all_reduce", "sequence": 9, "size": 64, "group": [0, 1, 2]},
    "does": {"function": "download", "file": "data.py", "line": 33},
    "kind": "own_code",
    "link": None,
    "sentence": "Rank 2 on gpu3 did not come to all_reduce 9: it sleeps in download, data.py:33",
    "remedy": "see data.py:33",
    "confidence": "certain",
    "evidence": "hangs/0001",
    "missing": [],
    "seconds": 4.0,
    "newest": {},
}
NAMES = ("gpu1", "gpu2", "gpu3")


class Job:
    """What a watch needs of the supervisor, and a clock that the test turns."""

    def __init__(self, folder: Path, **options: Any) -> None:
        members = [{"name": name, "address": name, "slots": [0]} for name in NAMES]
        self.folder, self.now = folder, 0.0
        self.state: dict[str, Any] = {"attempt": 1}
        self.place: Any = SimpleNamespace(
            options={"hang_after": 600, **options}, members=members, world_size=3, node="gpu1", known_environment=dict
        )
        self.hub: Any = SimpleNamespace(connected=lambda: ["gpu2", "gpu3"])
        self.part = SimpleNamespace(living=lambda: [{"rank": 0, "pid": 17}])
        self.log: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.pace: Any = None
        self.on_examined: Any = None
        self.answers: list[dict[str, Any]] = []
        self.examined: list[float] = []
        self.takes = 5.0
        self.watch = HangWatch(self, lambda: self.now, self.examine)  # type: ignore[arg-type]

    def say(self, text: str) -> None:
        self.log.append(text)

    def broadcast(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def examine(self, _nodes: Any, _clock: Any) -> Any:
        began = self.now
        self.examined.append(began)
        found = self.answers.pop(0) if self.answers else FOUND
        return SimpleNamespace(poll=lambda: dict(found) if self.now >= began + self.takes else None, close=lambda: None)

    def go_on(self, seconds: float, *, steps: bool = False) -> Any:
        """Let the time pass; with ``steps``, one is made each second. The failure, where there is one."""
        until = self.now + seconds
        while self.now < until:
            self.now += 1.0
            if steps:
                self.pace.note("step", self.now)
            failure = self.watch.poll()
            if failure:
                return failure
        return None

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.state["hang"]["findings"]
        return found


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_job_that_trains_is_never_examined_and_its_bound_is_shown(job: Job) -> None:
    job.go_on(500, steps=True)
    assert (job.examined, job.log, job.findings) == ([], [], [])
    assert job.state["hang"]["bound"] == 60
    assert job.state["hang"]["why"].startswith("as every pause may take as long")


def test_a_hang_is_examined_after_the_bound_said_once_and_the_job_goes_on(job: Job) -> None:
    job.go_on(10, steps=True)
    assert job.go_on(5000) is None
    assert job.examined[0] == 71
    (line,) = job.log
    assert line == f"no progress for 61 s (bound: 60 s). {FOUND['sentence']}. Remedy: see data.py:33."
    (found,) = job.findings
    assert (found["ranks"], found["woke"], found["attempt"]) == ([2], None, 1)
    # Seldom, and more and more so.
    assert [round(when) for when in job.examined[1:]] == [611, 1213, 2417, 4825]
    assert job.watch.last() == found


def test_a_job_that_wakes_had_not_hung_and_its_next_pause_may_take_as_long(job: Job) -> None:
    job.go_on(10, steps=True)
    job.go_on(90)
    job.go_on(10, steps=True)
    assert job.log[1:] == ["the job goes on after 91 s without progress: it did not hang."]
    assert job.findings[0]["woke"] == 91.0
    assert job.watch.last() is None
    job.go_on(200)
    assert len(job.examined) == 1
    assert job.state["hang"]["bound"] == 273
    job.go_on(200)
    assert len(job.examined) == 2 and len(job.findings) == 2


def test_a_job_that_wakes_while_it_is_examined_is_not_said_to_hang(job: Job) -> None:
    job.go_on(10, steps=True)
    job.go_on(63)
    job.go_on(20, steps=True)
    assert job.log == ["the job goes on after 64 s without progress: it did not hang."]
    assert job.findings[0]["woke"] == 64.0


def test_a_script_that_prints_nothing_is_not_said_to_hang_while_every_rank_makes_collectives(job: Job) -> None:
    job.answers = [{**FOUND, "newest": {"0": 9, "1": 9}}, {**FOUND, "newest": {"0": 12, "1": 11}}]
    job.go_on(680)
    assert len(job.examined) == 2
    assert 60 <= job.examined[1] - job.examined[0] <= 60 + job.takes + 2
    assert (job.log, job.findings) == ([], [])
    # From then on it is silent again.
    assert job.go_on(590) is None and len(job.examined) == 2


def test_a_rank_that_works_is_not_said_to_hang_before_hang_after(job: Job) -> None:
    works = {**FOUND, "works": True, "sentence": "Rank 2 on gpu3 has not come: it computes. It works."}
    job.answers = [works, works]
    job.go_on(10, steps=True)
    assert job.go_on(500) is None
    assert (len(job.examined), job.log, job.findings) == (1, [], [])
    assert job.state["hang"]["bound"] == 600
    assert job.state["hang"]["why"] == f"as after 66 s: {works['sentence']}"
    assert job.watch.last() is None
    job.go_on(120)
    assert len(job.examined) == 2 and job.findings[0]["silent"] == 601
    assert job.log == [f"no progress for 601 s (bound: 60 s). {works['sentence']} Remedy: see data.py:33."]


def test_a_rank_that_worked_and_then_waits_is_said_to_hang_at_the_next_silence(job: Job) -> None:
    job.answers = [{**FOUND, "works": True}]
    job.go_on(10, steps=True)
    job.go_on(90)
    job.go_on(10, steps=True)
    assert (job.log, job.findings) == ([], [])  # a pause of which nothing was said needs no word when it ends
    assert job.state["hang"]["why"].startswith("3 times the longest silence")
    job.go_on(300)
    assert len(job.findings) == 1


def test_a_rank_that_works_is_reported_before_something_ends_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path, stall_timeout=200)
    job.answers = [{**FOUND, "works": True}] * 2
    job.go_on(10, steps=True)
    job.go_on(170)
    assert job.findings[0]["silent"] == 151


def test_a_job_that_moves_while_it_is_examined_does_not_hang(tmp_path: Path) -> None:
    job = Job(tmp_path, on_hang="stop")
    job.answers = [{**FOUND, "hang": False}] * 20
    job.go_on(10, steps=True)
    assert job.go_on(3000) is None
    assert (job.log, job.findings) == ([], [])
    # Each time it takes it for a step that was longer than those before.
    assert len(job.examined) < 6


def test_where_one_rank_makes_no_more_collectives_the_job_hangs(job: Job) -> None:
    job.answers = [{**FOUND, "newest": {"0": 9, "1": 9}}, {**FOUND, "newest": {"0": 12, "1": 9}}]
    job.go_on(680)
    assert len(job.log) == 1


@pytest.mark.parametrize(("action", "final"), [("restart", False), ("stop", True)])
def test_a_job_is_ended_after_a_second_examination_and_hang_after(tmp_path: Path, action: str, final: bool) -> None:
    job = Job(tmp_path, on_hang=action)
    job.go_on(10, steps=True)
    failure = job.go_on(5000)
    assert len(job.examined) == 2 and job.now - 10 >= 600
    assert (failure.node, failure.rank, failure.final) == ("gpu3", 2, final)
    assert failure.reason.startswith(
        f"the job makes no progress for 606 s (deepspeed_launch_on_hang: {action}). Rank 2"
    )
    assert failure.reason.endswith("data.py:33. Remedy: see data.py:33")
    assert (failure.finding.kind, failure.finding.remedy) == ("hang", "see data.py:33")


def test_a_job_that_wakes_before_the_second_examination_is_not_ended(tmp_path: Path) -> None:
    job = Job(tmp_path, on_hang="stop")
    job.go_on(10, steps=True)
    assert job.go_on(600) is None
    assert job.go_on(100, steps=True) is None


def test_it_is_examined_before_deepspeeds_own_time_out(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.place.known_environment = lambda: {"DEEPSPEED_TIMEOUT": "2"}
    job.watch = HangWatch(job, lambda: job.now, job.examine)  # type: ignore[arg-type]
    job.go_on(100)
    assert job.examined == [91]


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-3"])
def test_a_time_out_that_is_none_is_left_alone(tmp_path: Path, text: str) -> None:
    job = Job(tmp_path)
    job.place.known_environment = lambda: {"DEEPSPEED_TIMEOUT": text}
    assert hang_watch.ends_after(job.place) == 0


def test_without_hang_after_nothing_is_examined(tmp_path: Path) -> None:
    job = Job(tmp_path, hang_after=0)
    job.go_on(10_000)
    assert job.examined == []


def test_no_more_than_five_findings_are_kept(job: Job) -> None:
    for dummy in range(8):
        job.go_on(10, steps=True)
        job.go_on(job.state["hang"]["bound"] + 10)
    assert len(job.findings) == 5


# --- one examination: messages of the followers, and the files on rank 0's node


class Fake:
    """In place of the processes on this node."""

    def __init__(self, folder: Path, _clock: Any) -> None:
        self.folder, self.ended, self.judged = folder, "", False

    def begin(self, name: str, ranks: list[dict[str, Any]]) -> None:
        examination.begin(self.folder, name, ranks)
        self.name = name

    def judge(self, name: str) -> None:
        self.judged = True
        place = examination.place(self.folder, name)
        (place / examination.EXAMINATION).write_text(json.dumps({"examination": {"node": "gpu1"}, "log": []}))
        examination.judge_all(self.folder, name)

    def poll(self) -> str | None:
        return self.ended

    def close(self) -> None:
        pass


def packed(node: str, log: list[Any]) -> str:
    return base64.b64encode(zlib.compress(json.dumps({"examination": {"node": node}, "log": log}).encode())).decode()


def message(piece: str, more: bool = False, problem: str = "", name: str = "0001") -> dict[str, Any]:
    return {"t": "examined", "name": name, "piece": piece, "more": more, "problem": problem}


@pytest.fixture
def requested(job: Job, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An examination that is going on, and what judge() gets."""
    seen: dict[str, Any] = {}

    def judge(found: list[dict[str, Any]], about: dict[str, Any]) -> dict[str, Any]:
        seen.update(found=found, about=about)
        return FOUND

    monkeypatch.setattr(judging, "judge", judge)
    monkeypatch.setattr(hang_watch, "Examiner", Fake)
    seen["going"] = Examination(job, lambda: job.now)  # type: ignore[arg-type]
    return seen


def test_what_all_nodes_found_is_judged_together(job: Job, requested: dict[str, Any]) -> None:
    going = requested["going"]
    assert job.sent == [{"t": "examine", "name": "0001"}]
    text = packed("gpu2", [[1.5, 1, "step 7"]])
    half = len(text) // 8 * 4
    going.receive("gpu2", message(text[:half], more=True))
    assert going.poll() is None
    going.receive("gpu2", message(text[half:]))
    going.receive("gpu3", message(packed("gpu3", [])))
    assert going.poll() is None
    found = going.poll()
    assert [one["node"] for one in requested["found"]] == ["gpu1", "gpu2", "gpu3"]
    assert requested["about"] == {
        "world_size": 3,
        "nodes": {0: "gpu1", 1: "gpu2", 2: "gpu3"},
        "log": [[1.5, 1, "step 7"]],
    }
    assert (found["ranks"], found["missing"], found["evidence"]) == ([2], [], "hangs/0001")


def test_a_node_that_does_not_answer_is_named_and_not_waited_for(job: Job, requested: dict[str, Any]) -> None:
    going = requested["going"]
    going.receive("gpu2", message(packed("gpu2", [])))
    job.now = hang_watch.ANSWER - 1
    assert going.poll() is None and "about" not in requested
    job.now = hang_watch.ANSWER
    assert going.poll() is None
    found = going.poll()
    assert [one["node"] for one in requested["found"]] == ["gpu1", "gpu2"]
    assert found["missing"] == ["gpu3"]


@pytest.mark.parametrize(
    "lies",
    [
        [message("!")],
        [message(base64.b64encode(b"no such thing").decode())],
        [message(base64.b64encode(zlib.compress(b"[" * 100_000)).decode())],
        [message(base64.b64encode(zlib.compress(b'{"examination": 7}')).decode())],
        [message(base64.b64encode(zlib.compress(bytes(40 << 20))).decode())],
        [message("", problem="it did not end")],
        [message("A" * (1 << 20), more=True)] * 8,
    ],
    ids=["no base64", "not compressed", "too deep", "a number", "a bomb", "a problem", "no end"],
)
def test_a_node_that_sends_anything_else_counts_as_one_that_did_not_answer(
    job: Job, requested: dict[str, Any], lies: list[dict[str, Any]]
) -> None:
    going = requested["going"]
    going.receive("gpu2", message(packed("gpu2", [])))
    for lie in lies:
        going.receive("gpu3", lie)
    assert going.poll() is None
    found = going.poll()
    assert [one["node"] for one in requested["found"]] == ["gpu1", "gpu2"]
    assert found["missing"] == ["gpu3"]


def test_what_is_of_another_examination_or_node_is_ignored(job: Job, requested: dict[str, Any]) -> None:
    going = requested["going"]
    going.receive("gpu2", message(packed("gpu2", []), name="0007"))
    going.receive("gpu9", message(packed("gpu9", [])))
    going.receive("gpu3", message(packed("gpu3", [])))
    going.receive("gpu3", message(packed("another", [])))
    job.now = hang_watch.ANSWER
    going.poll()
    assert going.poll()["missing"] == ["gpu2"]
    assert [one["node"] for one in requested["found"]] == ["gpu1", "gpu3"]


def test_an_examination_that_fails_here_is_a_finding_too(job: Job, requested: dict[str, Any]) -> None:
    going = requested["going"]
    going._examiner.ended = "it did not end within 20 s"
    for node in ("gpu2", "gpu3"):
        going.receive(node, message(packed(node, [])))
    going.poll()
    found = going.poll()
    assert found["sentence"].startswith("It is not known why the job makes no progress: the examination failed: it did")
    assert found["confidence"] == "not known"


def test_a_disk_that_is_full_does_not_end_the_watch(job: Job, requested: dict[str, Any], tmp_path: Path) -> None:
    going = requested["going"]
    (tmp_path / "hangs/0001").rename(tmp_path / "gone")
    going.receive("gpu2", message(packed("gpu2", [])))
    job.now = hang_watch.ANSWER
    assert "the examination failed" in going.poll()["sentence"]
