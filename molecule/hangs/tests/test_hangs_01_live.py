"""One rank does not come to a collective: the job is examined on all nodes, long before a time-out ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fault_runs import STEPS, launch, state, training, wait
from tests.playbook_run import ROOT, inside, playbook, variables

BOUND = 60
"""Seconds without progress after which the job is examined here: on a busy machine the start is silent for 45."""
WAITS: dict[str, Any] = {
    "workspace_source": str(ROOT / "molecule/hangs/scripts"),
    "deepspeed_launch_script": "waits.py",
    "deepspeed_launch_args": ["--on", "1"],
    "deepspeed_launch_hang_after": BOUND,
}
OVER = "/tmp/hang-is-over"


@pytest.fixture(autouse=True)
def rank_1_waits() -> None:
    inside("lab2", f"rm -f {OVER}")


def findings() -> list[dict[str, Any]]:
    return list((state().get("hang") or {}).get("findings") or [])


def test_the_rank_that_did_not_come_is_named_and_the_job_goes_on_when_it_does() -> None:
    training(**WAITS)
    before = len(findings())
    wait(lambda: len(findings()) > before, 180)
    found = findings()[-1]
    assert (found["ranks"], found["nodes"]) == ([1], ["lab2"]), found
    assert found["collective"]["operation"].lower().replace("_", "").endswith("allreduce"), found
    assert "download_shard" in found["does"]["function"], found
    assert found["bound"] == BOUND and BOUND <= found["silent"] < BOUND + 5, found
    assert found["seconds"] < 60 and found["missing"] == [], found
    assert state()["state"] == "running"

    shown = playbook("status", *variables(**STEPS)).done(change=False).text
    assert found["sentence"].rstrip(".") in shown
    assert f"fault will be examined if it makes no progress for {BOUND} s: " in shown
    examined = playbook("doctor", *variables(**STEPS)).done(change=False).text
    assert "download_shard" in examined and "lab2" in examined, examined

    inside("lab2", f"touch {OVER}")
    wait(lambda: state()["state"] != "running", 120)
    assert state()["state"] == "succeeded", state()["reason"]
    assert findings()[-1]["woke"] >= found["silent"]


def test_a_job_that_hangs_is_stopped_where_that_is_requested_and_its_evidence_is_kept() -> None:
    run = launch(**WAITS, deepspeed_launch_on_hang="stop")
    assert run.rc != 0
    assert "no progress for " in run.text
    assert "(deepspeed_launch_on_hang: stop)" in run.text
    found = state()
    assert (found["state"], found["failed_node"], found["failed_rank"]) == ("failed", "lab2", 1), found["reason"]
    assert "download_shard" in found["reason"]
    kept, evidence = ROOT / ".cache/faults/fault", findings()[-1]["evidence"]
    finding = json.loads((kept / "lab1" / evidence / "finding.json").read_text())
    assert finding["ranks"] == [1]
    assert "download_shard" in (kept / "lab2" / evidence / "examination.json").read_text()
