# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What counts as converged, as refused in one sentence, and as failed. All outputs here are made up."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem, Report

from tests.chaos.verdict import (
    announced_wait,
    changed_tasks,
    changes,
    crashed,
    current_task,
    disturbed,
    final_lines,
    judge,
    sentences,
)

NODES = ("lab1", "lab2")
RECAP = """
PLAY RECAP *********************************************************************
lab1                       : ok=30   changed={0}    unreachable=0    failed=0    skipped=9    rescued=0    ignored=0
lab2                       : ok=30   changed=0    unreachable=0    failed=0    skipped=9    rescued=0    ignored=0
"""
PROBLEM = Problem(
    "lab2", "member of another Docker swarm, as a worker", "set swarm_allow_leave_foreign: true", "foreign_swarm"
)
REPORT = Report((PROBLEM, Problem("lab1, lab2", "8.0 GiB are free", "free space there", "disk")), (), ()).message()
GOOD = "lab2: the disk of the engine is full. Remedy: make room there, and run again."
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nKeyError: 0\n'


def failed(host: str, *texts: str, ignored: bool = False, event: str = "failed") -> dict[str, Any]:
    return {"event": event, "host": host, "task": "a task", "texts": list(texts), "ignored": ignored}


def recap(**failures: int) -> dict[str, Any]:
    counts = {name: {"failures": failures.get(name, 0), "unreachable": 0} for name in NODES}
    return {"event": "recap", "hosts": counts}


def test_a_run_that_did_its_work_has_converged() -> None:
    assert judge(0, RECAP.format(3), [recap()], NODES).kind == "converged"
    assert changes(RECAP.format(3)) == {"lab1": 3, "lab2": 0}


def test_success_without_every_node_is_a_failure() -> None:
    found = judge(0, RECAP.format(0).replace("lab2", "lab7"), [recap()], NODES)
    assert (found.kind, found.why) == ("failed", "no recap of lab2")
    assert judge(0, "", [], NODES).why == "no recap of lab1, lab2"


REFUSED = {
    "a sentence": (GOOD, ["lab2"]),
    "the words of Ansible before it": (f"Task failed: Action failed: {GOOD}", ["lab2"]),
    "a variable is named": ("swarm_data_path_port: is 1. Remedy: correct it.", ["swarm_data_path_port"]),
    "a question": ("host_x: is odd, did you mean host_y? Remedy: rename it.", ["host_x"]),
    "the node comes later": (
        "The image was not sent. lab2: no room. Remedy: make room.",
        ["The image was not sent. lab2"],
    ),
    "a report of preflight": (REPORT, ["lab2", "lab1, lab2"]),
}


@pytest.mark.parametrize(("text", "subjects"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_has_node_cause_and_remedy(text: str, subjects: list[str]) -> None:
    found = judge(2, RECAP.format(0), [failed("lab2", text), recap(lab2=1)], NODES)
    assert found.kind == "refused", found
    assert [one.where for one in found.refusals] == subjects
    assert all(one.cause and one.remedy and not one.remedy.endswith(".") for one in found.refusals)


FAILED = {
    "a traceback in a message": (TRACEBACK, "KeyError: 0"),
    "two lines": ("lab2: is broken.\nRemedy: repair it.", "an error of more than one line"),
    "no remedy": ("lab2: is broken.", "an error without the form 'where: cause. Remedy: …'"),
    "an empty remedy": ("lab2: is broken. Remedy: ", "an error without the form"),
    "no cause": ("lab2: . Remedy: repair it.", "an error without the form"),
    "no node": ("the disk: is full. Remedy: make room.", "an error that names neither a node nor a variable"),
    "Ansible's own words": ("Failed to connect to the host via ssh: Connection refused", "an error without the form"),
    "a report without remedies": (REPORT.replace(" Remedy: ", " "), "a report that is not as preflight writes it"),
    "a module that died": ("Module result deserialization failed: No start of json char found", "deserialization"),
}


@pytest.mark.parametrize(("text", "why"), FAILED.values(), ids=FAILED)
def test_anything_else_is_a_failure(text: str, why: str) -> None:
    found = judge(2, RECAP.format(0), [failed("lab2", text), recap(lab2=1)], NODES)
    assert found.kind == "failed"
    assert why in found.why


def test_a_traceback_on_the_console_is_a_failure_even_of_a_run_that_succeeded() -> None:
    found = judge(0, TRACEBACK + RECAP.format(0), [recap()], NODES)
    assert (found.kind, found.why) == ("failed", "Traceback (most recent call last): KeyError: 0")


def test_a_traceback_of_the_job_is_the_jobs_own() -> None:
    shown = "".join(f"lab2 | {line}\nlab1 rank 0: {line}\n" for line in TRACEBACK.splitlines())
    assert crashed(shown, []) == ""
    assert crashed("", [failed("lab2", f"lab2: {TRACEBACK}")]) != ""


def test_one_good_sentence_does_not_excuse_a_bad_one() -> None:
    found = judge(2, "", [failed("lab1", "oh"), failed("lab2", GOOD), recap(lab1=1, lab2=1)], NODES)
    assert found.kind == "failed"
    assert found.why.startswith("lab1: ")


def test_what_was_ignored_or_rescued_is_not_what_a_run_ended_with() -> None:
    events = [failed("lab1", "apt said this"), failed("lab2", "ignored", ignored=True), failed("lab1", GOOD)]
    assert final_lines([*events, recap(lab1=1)]) == [("lab1", GOOD)]
    assert final_lines([failed("lab1", "rescued"), failed("lab2", GOOD), recap(lab2=1)]) == [("lab2", GOOD)]


def test_every_item_of_a_loop_is_judged() -> None:
    found = judge(2, "", [failed("lab1", GOOD, "lab1: is odd"), recap(lab1=1)], NODES)
    assert found.kind == "failed"


def test_a_run_that_ended_without_a_failed_task_shows_its_last_line() -> None:
    found = judge(4, "[WARNING]: x\n[ERROR]: the role 'y' was not found\n", [], NODES)
    assert found.why == "it ended with 4 and no failed task: [ERROR]: the role 'y' was not found"
    assert "nothing was printed" in judge(4, "", [], NODES).why


def test_a_run_that_does_not_end_is_a_failure() -> None:
    assert judge(None, RECAP.format(0), [recap()], NODES).why == "it did not end in time"


def test_sentences_of_no_cluster_node() -> None:
    with pytest.raises(ValueError, match="names neither"):
        sentences("lab22: is broken. Remedy: repair it.", NODES)


GONE = failed("lab2", "Failed to connect to the host via ssh: Connection timed out", event="unreachable")
DISTURBED = {
    "it succeeded": (0, "", [], ""),
    "the node is named": (4, "", [GONE], ""),
    "by another host's failure": (2, "", [failed("lab1", "lab2: has gone. Remedy: restore it.")], ""),
    "no host is named": (2, "", [failed("lab1", "broken pipe")], "failed without naming lab2"),
    "nothing failed": (4, "", [], "failed without naming lab2"),
    "a traceback": (4, TRACEBACK, [GONE], "KeyError"),
    "no end": (None, "", [GONE], "did not end in time"),
}


@pytest.mark.parametrize(("rc", "output", "events", "why"), DISTURBED.values(), ids=DISTURBED)
def test_a_run_whose_node_went_away_names_it(rc: int | None, output: str, events: list[Any], why: str) -> None:
    found = disturbed(rc, output, events, ["lab2"])
    assert why in found and bool(found) is bool(why)


def test_the_longest_wait_that_was_announced_counts() -> None:
    assert (
        announced_wait("lab1: the network is slow; waiting up to 90 s, as …\nlab2: no answer; waiting up to 45.5 s.\n")
        == 90
    )
    assert announced_wait("lab2: waiting up to 5 min for another transfer to end\nlab1: waiting up to date\n") == 0


def test_the_task_that_runs_and_what_was_changed() -> None:
    events = [
        {"event": "task", "task": "Join the swarm"},
        {"event": "changed", "host": "lab1", "task": "Join the swarm"},
        {"event": "task", "task": "Wait"},
    ]
    assert (current_task(events), current_task([])) == ("Wait", "")
    assert changed_tasks(events) == ["lab1: Join the swarm"]
