# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A job that makes no progress, in status.yml, doctor.yml and the report."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import judge as judging
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.examined import examined
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.hangs import view
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.table import table
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.job import infos

FOUND: dict[str, Any] = {
    "at": "2026-11-28T10:00:00Z",
    "attempt": 1,
    "silent": 61.2,
    "bound": 60.0,
    "why": "as every pause may take as long",
    "examinations": 1,
    "woke": None,
    "seconds": 7.1,
    "ranks": [2],
    "nodes": ["gpu3"],
    "missing": [],
    "collective": {"operation": "all_reduce", "sequence": 9, "size": 64, "group": [0, 1, 2]},
    "does": {"function": "download", "file": "data.py", "line": 33},
    "kind": "own_code",
    "link": None,
    "sentence": "Rank 2 on gpu3 did not come to all_reduce 9: it sleeps in download, data.py:33",
    "remedy": "see data.py:33",
    "confidence": "certain",
    "evidence": "hangs/0001",
}
MEMBERS = [{"name": f"gpu{number}", "slots": [0], "first_rank": number - 1} for number in (1, 2, 3, 4)]


def job(state: str = "running", findings: list[Any] | None = None, **change: Any) -> dict[str, Any]:
    hang = {"bound": 60.0, "why": "as every pause may take as long", "findings": findings or []}
    return {
        "name": "digits",
        "state": state,
        "leader": True,
        "run": 1,
        "since": "2026-11-28T09:00:00Z",
        "seconds": 125.0,
        "log_path": "/srv/jobs/digits/launcher.log",
        "hang": hang,
        "summary": {"members": MEMBERS, "figures": {"step": 7}, "hangs": findings or []},
        **change,
    }


def shown(**change: Any) -> list[str]:
    return table(infos({"gpu1": {"jobs": [job(**change)]}}))[2:]


BOUND = "digits will be examined if it makes no progress for 60 s: as every pause may take as long"
SENTENCE = (
    "digits, at 2026-11-28T10:00:00Z: no progress for 61 s (bound: 60 s). "
    "Rank 2 on gpu3 did not come to all_reduce 9: it sleeps in download, data.py:33. Remedy: see data.py:33. "
    "Evidence: gpu1:/srv/jobs/digits/hangs/0001"
)


def test_status_shows_the_bound_and_the_last_finding() -> None:
    assert shown() == [BOUND]
    assert shown(findings=[{**FOUND, "sentence": "an older one"}, FOUND]) == [BOUND, SENTENCE]
    missing = {**FOUND, "missing": ["gpu2", "gpu4"]}
    assert " Nothing is known of gpu2, gpu4. Remedy" in shown(findings=[missing])[1]


def test_a_job_that_woke_is_said_to_go_on_and_one_that_ended_well_shows_nothing() -> None:
    woke = {**FOUND, "woke": 91.0}
    went_on = "digits: made no progress for 91 s until shortly after 2026-11-28T10:00:00Z, then continued"
    assert shown(findings=[woke]) == [BOUND, went_on]
    assert shown(state="succeeded", findings=[woke]) == []
    assert shown(state="succeeded", findings=[FOUND]) == []
    assert shown(state="stopped", findings=[FOUND]) == []


def test_of_a_job_that_failed_the_finding_stays() -> None:
    assert shown(state="failed", findings=[FOUND], reason="it hung")[-1] == SENTENCE


@pytest.mark.parametrize(
    "hang",
    [
        None,
        {},
        {"bound": 0, "why": "", "findings": []},
        {"bound": 0, "why": "", "findings": [{}]},
        {"bound": 0, "why": "", "findings": [{**FOUND, "silent": None}]},
    ],
)
def test_what_says_nothing_is_not_shown(hang: Any) -> None:
    assert shown(hang=hang) == []


@pytest.mark.parametrize(
    ("hang", "words"),
    [
        (7, "hang is 7"),
        ({"bound": "x"}, "hang.bound is 'x'"),
        ({"findings": [{"ranks": "x"}]}, "hang.findings[0].ranks is 'x'"),
        ({"findings": [{"collective": {"sequence": -1}}]}, "hang.findings[0].collective.sequence is -1"),
    ],
)
def test_what_no_job_writes_is_named_and_nothing_of_it_shown(hang: Any, words: str) -> None:
    (found,) = infos({"gpu1": {"jobs": [job(hang=hang)]}})["gpu1"]["jobs"]
    assert words in found["reason"] and "hang" not in found


def rows(**change: Any) -> list[tuple[str, str]]:
    found = view(job(findings=[{**FOUND, **change}]))
    assert found is not None
    return [(row["level"], row["what"]) for row in found["rows"]]


def test_the_report_shows_who_waits_for_whom() -> None:
    waits = ("warn", "waits for rank 2 in all_reduce 9")
    assert rows() == [waits, waits, ("bad", "is in download, data.py:33"), ("", "not in this collective")]
    found = view(job(findings=[FOUND]))
    assert found is not None and [row["node"] for row in found["rows"]] == ["gpu1", "gpu2", "gpu3", "gpu4"]
    assert (found["silent"], found["woke"], found["more"]) == ("61 s", None, 0)


def test_where_no_rank_is_to_blame_all_wait_for_the_others() -> None:
    waits = "waits for the others in all_reduce 9"
    link = {"from": 0, "to": 2}
    lost = "packets from 0 to 2 are lost"
    assert [what for dummy, what in rows(ranks=[], does=None, link=link)] == [
        f"{waits}; {lost}",
        waits,
        f"{waits}; {lost}",
        "not in this collective",
    ]


def test_where_nothing_is_known_no_rank_is_said_to_do_anything() -> None:
    assert {what for dummy, what in rows(ranks=[], does=None, collective=None)} == {""}
    assert rows(does=None, collective=None)[2] == ("bad", "did not come")


def test_of_many_ranks_those_to_blame_are_shown() -> None:
    members = [{"name": f"gpu{number}", "slots": list(range(8)), "first_rank": 8 * number} for number in range(100)]
    found = view(job(findings=[{**FOUND, "ranks": [417]}], summary={"members": members, "hangs": []}))
    assert found is not None
    assert [(row["rank"], row["node"]) for row in found["rows"]] == [(417, "gpu52")]
    assert found["more"] == 799


def packed(node: str, **change: Any) -> dict[str, Any]:
    data = json.dumps({"examination": {"node": node}, "log": [[1.0, 0, "step 7"]]}).encode()
    found = base64.b64encode(zlib.compress(data)).decode()
    return {"state": "running", "problem": "", "examination": found, **change}


def test_doctor_judges_what_all_nodes_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def judge(examinations: Any, about: Any) -> dict[str, Any]:
        seen.append(([one["node"] for one in examinations], about["nodes"], about["world_size"]))
        return {**FOUND, "ranks": [1]}

    monkeypatch.setattr(judging, "judge", judge)
    answers: dict[str, Any] = {f"gpu{number}": packed(f"gpu{number}") for number in (1, 2)}
    answers["gpu3"] = {"msg": "Failed to connect\nto gpu3", "unreachable": True}
    answers["gpu4"] = {"state": "running", "problem": "it ended with exit code 1", "examination": ""}
    lines = examined("digits", {"gpu1": {"jobs": [job()]}}, answers)
    assert seen == [(["gpu1", "gpu2"], {0: "gpu1", 1: "gpu2", 2: "gpu3", 3: "gpu4"}, 4)]
    assert lines == [
        f"digits (step 7): {FOUND['sentence']}. (certain)",
        "Remedy: see data.py:33.",
        "gpu3: the state of its ranks is unknown: Failed to connect to gpu3",
        "gpu4: the state of its ranks is unknown: it ended with exit code 1",
        "What each node found is in /srv/jobs/digits/hangs/request there.",
    ]


@pytest.mark.parametrize("examination", ["!", "eJw=", base64.b64encode(zlib.compress(bytes(40 << 20))).decode(), 7])
def test_what_is_no_examination_counts_as_none(monkeypatch: pytest.MonkeyPatch, examination: Any) -> None:
    def judge(examinations: Any, _about: Any) -> dict[str, Any]:
        assert list(examinations) == []
        raise ZeroDivisionError("nothing to judge")

    monkeypatch.setattr(judging, "judge", judge)
    lines = examined("digits", {"gpu1": {"jobs": [job()]}}, {"gpu1": packed("gpu1", examination=examination)})
    assert lines[0].startswith("digits (step 7): It is not known why the job makes no progress: ZeroDivisionError")
    assert lines[2].startswith("gpu1: the state of its ranks is unknown: ")


def test_doctor_says_where_there_is_nothing_to_examine() -> None:
    running: dict[str, Any] = {"gpu1": {"jobs": [job()]}, "gpu2": {"msg": "no answer", "unreachable": True}}
    lines = examined("chat", running, {})
    assert lines[0] == "There is no job chat. Running jobs: digits."
    assert lines[1].startswith("gpu2 cannot be reached")
    ended = examined("digits", {"gpu1": {"jobs": [job(state="failed")]}}, {})
    assert ended == ["digits is not running (failed). Running jobs: none."]
