# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The jobs of several nodes as one table, and what stop.yml has to end."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.table import (
    MAY_RUN,
    duration,
    gathered,
    merge,
    silent,
    table,
    to_stop,
)

from tests.effort import examples

ENDS = "ansible-playbook stop.yml ends what is left of it."
MEMBERS = [{"name": f"gpu{number}"} for number in (1, 2, 3)]


def job(name: str = "digits", state: str = "running", leader: bool = True, **change: Any) -> dict[str, Any]:
    figures = change.pop("figures", {"step": 120, "total": 1200, "loss": 0.43121})
    return {
        "name": name,
        "state": state,
        "reason": "",
        "run": 1,
        "leader": leader,
        "since": "2026-11-22T10:00:00Z",
        "seconds": 125.0,
        "started_at": "2026-11-22T10:00:00Z",
        "log_path": f"/srv/jobs/{name}/launcher.log",
        "summary": {
            "members": change.pop("members", MEMBERS),
            "figures": figures,
            "first_failure": change.pop("first_failure", None),
        },
        **change,
    }


def nodes(*states: str, **change: Any) -> dict[str, dict[str, Any]]:
    """One job on gpu1 (its leader), gpu2 …"""
    return {
        f"gpu{number}": {"jobs": [job(state=state, leader=number == 1, **change)]}
        for number, state in enumerate(states, 1)
    }


def test_a_line_a_job_and_nothing_where_all_is_well() -> None:
    results = nodes("running", "running", "running")
    results["gpu1"]["jobs"].append(job("a-longer-name", "succeeded", seconds=7260.0, figures={}, run=12, members=[]))
    assert table(results) == [
        "JOB            STATE      RUN  SINCE                 RAN FOR    NODES               STEP    LOSS",
        "a-longer-name  succeeded   12  2026-11-22T10:00:00Z  2 h 1 min  gpu1                   -       -",
        "digits         running      1  2026-11-22T10:00:00Z  2 min 5 s  gpu1,gpu2,gpu3  120/1200  0.4312",
    ]


def test_a_job_that_runs_shows_its_arguments_as_a_list() -> None:
    command = ["torchrun", "--redirects", "3", "train.py", "--name", "my run", "\x1b[2J"]
    results = nodes("running", "running")
    for result in results.values():
        result["jobs"][0]["summary"]["spec"] = {"command": command}
    assert table(results)[2:] == [r'digits runs ["torchrun", "train.py", "--name", "my run", "\u001b[2J"]']
    odds: list[Any] = [{"entries": 80, "sha256": "ab"}, [], None, "train.py"]
    for odd in odds:
        results["gpu1"]["jobs"][0]["summary"]["spec"] = {"command": odd}
        assert len(table(results)) == 2
    results["gpu1"]["jobs"][0] = job(state="succeeded", spec={"command": command})
    results["gpu2"]["jobs"][0]["state"] = "succeeded"
    assert len(table(results)) == 2


def test_many_nodes_are_counted() -> None:
    members = [{"name": f"gpu{number}"} for number in range(1, 65)]
    assert "  gpu1..gpu64 (64)  " in table({"gpu1": {"jobs": [job(members=members)]}})[1]


def test_no_jobs() -> None:
    assert table({"gpu1": {"jobs": []}, "gpu2": {"jobs": []}}) == ["No jobs on gpu1, gpu2."]
    assert table({}) == []


def test_a_failure_is_reported_by_what_failed_first() -> None:
    first = {"node": "gpu2", "rank": 1, "cause": "No module named 'x'", "remedy": "install it", "exit_code": 1}
    results = nodes("failed", "failed", first_failure=first)
    assert table(results)[2:] == [
        "digits failed, rank 1 on gpu2 first: No module named 'x'. Remedy: install it. "
        "Log: gpu1:/srv/jobs/digits/launcher.log"
    ]
    first.update(rank=None, remedy="")
    assert table(results)[2:] == [
        "digits failed, gpu2 first: No module named 'x'. Log: gpu1:/srv/jobs/digits/launcher.log"
    ]
    for without in (None, {"node": "gpu2", "cause": ""}):
        results["gpu1"]["jobs"][0]["summary"]["first_failure"] = without
        results["gpu1"]["jobs"][0]["reason"] = "rank 1 ended."
        assert table(results)[2:] == [
            "Training job digits failed: rank 1 ended. Log: gpu1:/srv/jobs/digits/launcher.log"
        ]


def test_lost_and_unreadable_jobs_are_named() -> None:
    results = {"gpu1": {"jobs": [job("a", "lost", reason="gone"), job("b", "unreadable", reason="not JSON")]}}
    assert table(results)[3:] == [
        "Training job a was lost: gone. Log: gpu1:/srv/jobs/a/launcher.log",
        "Training job b cannot be read: not JSON. Log: gpu1:/srv/jobs/b/launcher.log",
    ]


@pytest.mark.parametrize(
    ("states", "line"),
    [
        (
            ("failed", "running"),
            "digits: its part on gpu2 is running, while the job is failed. " + ENDS,
        ),
        (
            ("succeeded", "lost"),
            "digits: its part on gpu2 is lost, while the job is succeeded. " + ENDS,
        ),
        (("running", "lost"), "digits: its part on gpu2 is lost: no reason is known."),
    ],
)
def test_a_part_that_does_not_fit_the_job_is_named(states: tuple[str, ...], line: str) -> None:
    assert table(nodes(*states))[-1] == line


def test_parts_of_a_lost_job_that_are_lost_too_are_no_news() -> None:
    assert len(table(nodes("lost", "lost"))) == 3


def test_a_leader_that_did_not_answer() -> None:
    results = nodes("running", "running")
    results["gpu1"] = {"unreachable": True, "msg": "Task failed: no route\nto host."}
    lines = table(results)
    assert lines[1].startswith("digits  running?")
    assert lines[2:] == [
        "digits: only the part on gpu2 is known, because the node of rank 0 (gpu1) did not report the job. " + ENDS,
        "gpu1 cannot be reached, so the state of its jobs is unknown: no route to host. Check: ansible gpu1 -m ping",
    ]
    results["gpu2"]["jobs"][0].update(state="stopped")
    assert table(results)[2].endswith("(gpu1) did not report the job.")


def test_a_node_that_cannot_be_read_is_named() -> None:
    assert silent({"gpu1": {"msg": "jobs_dir: no"}, "gpu2": {}, "gpu3": {"jobs": []}}) == [
        "gpu1: its jobs cannot be read: jobs_dir: no",
        "gpu2: its jobs cannot be read: it gave no answer",
    ]


def test_the_later_of_two_leaders_counts() -> None:
    results = {
        "gpu1": {"jobs": [job(state="running", run=1)]},
        "gpu2": {"jobs": [job(state="succeeded", run=2, started_at="2026-11-22T11:00:00Z")]},
        "gpu3": {"jobs": [job(state="failed", run=9, leader=False, started_at="2026-11-22T12:00:00Z")]},
    }
    (known,) = merge(results)
    assert (known.node, known.job["run"], list(known.others)) == ("gpu2", 2, ["gpu1", "gpu3"])
    assert "its part on gpu1 is running, while the job is succeeded" in table(results)[-1]
    # Its supervisor has no connection: it is stopped where it is, in check mode too.
    assert to_stop(results, "digits")["followers"] == [{"node": "gpu1", "name": "digits", "orphan": True}]


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [
        (None, "-"),
        (0.2, "0 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3659, "1 h"),
        (90000, "1 d 1 h"),
        (86400 * 400, "400 d"),
    ],
)
def test_durations(seconds: float | None, reported: str) -> None:
    assert duration(seconds) == reported


def test_stopping_begins_where_the_job_is_led() -> None:
    results = nodes("running", "running", "succeeded")
    found = to_stop(results, "digits")
    assert found["leaders"] == [{"node": "gpu1", "name": "digits"}]
    assert found["followers"] == [{"node": "gpu2", "name": "digits", "orphan": False}]
    assert found["lines"] == ["digits, running on gpu1 (rank 0), gpu2"]
    assert (found["anything"], found["silent"]) == (True, [])


def test_nothing_to_stop_is_reported() -> None:
    results = nodes("succeeded", "succeeded")
    for wanted, line in (
        ("digits", "digits is not running: succeeded since 2026-11-22T10:00:00Z"),
        ("other", "There is no job other. Jobs here: digits (succeeded)"),
        (None, "No job runs"),
    ):
        found = to_stop(results, wanted)
        assert (found["anything"], found["lines"]) == (False, [line])
    assert to_stop({"gpu1": {"jobs": []}}, "x")["lines"] == ["There is no job x. There are no jobs at all"]


MUTE: dict[str, Any] = {"unreachable": True, "msg": "no route to host"}
LEFT_OUT: dict[str, Any] = {"left_out": True}
EMPTY: dict[str, Any] = {"jobs": []}


@pytest.mark.parametrize(
    ("results", "wanted", "lines"),
    [
        (
            {"gpu1": MUTE, "gpu2": MUTE},
            "digits",
            ["gpu1, gpu2 did not answer, so the state of jobs there is unknown"],
        ),
        (
            {"gpu1": MUTE, "gpu2": {"msg": "jobs_dir: no"}},
            None,
            ["gpu1, gpu2 did not answer, so the state of jobs there is unknown"],
        ),
        (
            {"gpu1": MUTE, "gpu2": EMPTY},
            "digits",
            [
                "There is no job digits on gpu2. There are no jobs on gpu2",
                "gpu1 did not answer, so the state of jobs there is unknown",
            ],
        ),
        (
            {"gpu1": LEFT_OUT, "gpu2": EMPTY, "gpu3": LEFT_OUT},
            None,
            ["No job runs on gpu2", "gpu1, gpu3 were not queried (--limit), so the state of jobs there is unknown"],
        ),
        (
            {"gpu1": MUTE, "gpu2": LEFT_OUT, "gpu3": {"jobs": [job(state="succeeded")]}},
            "digits",
            [
                "digits is not running: succeeded since 2026-11-22T10:00:00Z",
                "gpu1 did not answer and gpu2 was not queried (--limit), so the state of jobs there is unknown",
            ],
        ),
    ],
)
def test_what_is_not_known_is_not_said_to_be_none(
    results: dict[str, dict[str, Any]], wanted: str | None, lines: list[str]
) -> None:
    found = to_stop(results, wanted)
    assert (found["anything"], found["lines"]) == (False, lines)
    assert found["unknown"] == [node for node, result in results.items() if "jobs" not in result]
    assert len(found["silent"]) == sum("msg" in result for result in results.values())


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        (
            {"gpu1": LEFT_OUT, "gpu2": EMPTY},
            ["No jobs on gpu2.", "gpu1 was not queried (--limit), so the state of jobs there is unknown."],
        ),
        ({"gpu1": LEFT_OUT}, ["gpu1 was not queried (--limit), so the state of jobs there is unknown."]),
    ],
)
def test_the_table_names_the_nodes_that_were_not_asked(results: dict[str, dict[str, Any]], lines: list[str]) -> None:
    assert table(results) == lines


def test_what_no_one_leads_is_stopped_where_it_is() -> None:
    results = nodes("failed", "running", "lost")
    orphans = [{"node": node, "name": "digits", "orphan": True} for node in ("gpu2", "gpu3")]
    assert (to_stop(results, "digits")["leaders"], to_stop(results, None)["followers"]) == ([], orphans)
    results["gpu1"] = {"unreachable": True, "msg": "no"}
    found = to_stop(results, "digits")
    assert (found["leaders"], found["followers"]) == ([], orphans)
    assert found["lines"] == [
        "digits, running on gpu2, gpu3",
        "gpu1 did not answer, so the state of jobs there is unknown",
    ]
    assert len(found["silent"]) == 1


def test_whatever_the_states_all_that_may_run_is_stopped_and_nothing_else() -> None:
    draw = random.Random(3)
    states = [*MAY_RUN, "succeeded", "failed", "stopped", "unreadable"]
    for dummy in range(examples(500)):
        results: dict[str, dict[str, Any]] = {}
        for node in range(draw.randrange(1, 6)):
            names = [name for name in ("a", "b", "c") if draw.random() < 0.7]
            results[f"n{node}"] = {
                "jobs": [
                    job(name, draw.choice(states), draw.random() < 0.4, started_at=draw.choice(["1", "2"]))
                    for name in names
                ]
            }
        wanted = draw.choice([None, "a"])
        found = to_stop(results, wanted)
        planned = [(item["node"], item["name"]) for item in (*found["leaders"], *found["followers"])]
        assert len(planned) == len(set(planned))
        assert set(planned) == {
            (node, one["name"])
            for node, result in results.items()
            for one in result["jobs"]
            if one["state"] in (*MAY_RUN, "unreadable") and wanted in (None, one["name"])
        }
        led = {item["name"] for item in found["leaders"]}
        assert all(item["orphan"] for item in found["followers"] if item["name"] not in led)
        assert all("\n" not in line for line in table(results))


def test_gathered_logs_are_named_and_so_are_missing_ones() -> None:
    found = {"dest": "/home/me/jobs/digits", "gathered": ["launcher.log"], "shortened": []}
    assert gathered({"gpu1": {**found, "gathered": []}, "gpu2": {"skipped": True}}) == []
    assert gathered(
        {
            "gpu1": {**found, "shortened": ["launcher.log"]},
            "gpu2": found,
            "gpu3": {"unreachable": True, "msg": "no route."},
            "gpu4": {**found, "gathered": [], "problems": ["x cannot be read: y."]},
        }
    ) == [
        "Logs of gpu1, gpu2 are in /home/me/jobs/digits",
        "gpu1: only the end of launcher.log was gathered, because the file is long",
        "The logs of gpu3 were not gathered and remain there: no route",
        "gpu4: x cannot be read: y.",
    ]
