"""Check mode on hosts that had nothing said which host and role the run would change: all of them, and no other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.playbook_run import NODES


@pytest.fixture(scope="module")
def record() -> list[dict[str, object]]:
    """What molecule/callbacks/record_changes.py wrote during the steps check, converge and idempotence."""
    lines = Path(os.environ["RECORD_CHANGES"]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def changed(record: list[dict[str, object]], check: bool) -> set[tuple[object, object]]:
    return {(line["host"], line["role"]) for line in record if line["check"] is check and line["changed"]}


def test_the_run_changed_what_was_predicted(record: list[dict[str, object]]) -> None:
    assert changed(record, check=False) == changed(record, check=True)


def test_the_prediction_was_made_on_virgin_hosts(record: list[dict[str, object]]) -> None:
    predicted = changed(record, check=True)
    everywhere = ("docker", "swarm", "training_image", "ssh_trust", "nccl_env", "training_container", "workspace")
    assert {(name, role) for name in NODES for role in everywhere} <= predicted
    assert ("lab1", "overlay_network") in predicted


def test_a_job_was_predicted_to_start_on_the_first_node(record: list[dict[str, object]]) -> None:
    # In check mode the checks before the start report it; otherwise they change nothing.
    tasks = ("Decide whether to start the job", "Run the job, once for a specification")
    started = {
        (line["check"], line["host"])
        for line in record
        if line["changed"] and str(line["task"]).removeprefix("swarmspeed.cluster.deepspeed_launch : ") in tasks
    }
    assert started == {(True, "lab1"), (False, "lab1")}
