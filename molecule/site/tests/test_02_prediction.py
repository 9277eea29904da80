"""Check mode on hosts that had nothing said which host and role the run would change: all of them, and no other."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="module")
def plans() -> list[dict[str, Any]]:
    """The plans of the steps check, converge and idempotence, as ``cluster_plan_file`` has them."""
    paths = sorted(Path(os.environ["RECORD_CHANGES"]).parent.glob("plan-*.json"), key=lambda path: path.stat().st_mtime)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def item(change: dict[str, Any]) -> tuple[str, str, str, str]:
    """A change, but for secrets, which each run seals with a key of its own."""
    after = re.sub(r"\{'sealed': '[0-9a-f]+'\}", "a secret", str(change["after"]))
    return change["host"], change["role"], change["what"], after


def test_what_was_planned_on_bare_hosts_is_what_the_run_changed_item_by_item(plans: list[dict[str, Any]]) -> None:
    check, run, again = plans
    assert len(run["changes"]) > 90
    assert [item(change) for change in check["changes"]] == [item(change) for change in run["changes"]]
    # Planned again after each role, from the facts: nothing but what was planned, and in the end nothing is left.
    assert run["found_after_apply"] == []
    assert again["changes"] == [] and again["refusals"] == []


KNOWN_AFTER_APPLY = {
    "docker": r"package (python3-docker|python3-requests|docker\.io|docker-cli|docker-buildx|iptables)",
    "swarm": r"/var/lib/swarmspeed/\S+/swarm[.]json",
    "training_image": r"image \S+( on lab[23])?",
    "ssh_trust": r"\S+/etc/ssh/(ssh_host_ed25519_key(\.pub)?|id_ed25519(\.pub)?|authorized_keys|known_hosts)",
}
"""All that only the run can know: versions that apt chooses, ids of the swarm, an image, generated keys."""


def test_what_only_the_run_could_know_is_a_closed_list(plans: list[dict[str, Any]]) -> None:
    unknown = [change for change in plans[1]["changes"] if "'unknown':" in str(change["after"])]
    assert {change["role"] for change in unknown} == set(KNOWN_AFTER_APPLY)
    left = [change for change in unknown if not re.fullmatch(KNOWN_AFTER_APPLY[change["role"]], change["what"])]
    assert left == []


def test_the_prediction_was_made_on_virgin_hosts(record: list[dict[str, object]]) -> None:
    predicted = changed(record, check=True)
    everywhere = ("docker", "swarm", "training_image", "ssh_trust", "nccl_env", "training_container", "workspace")
    assert {(name, role) for name in NODES for role in everywhere} <= predicted
    assert ("lab1", "overlay_network") in predicted


def test_a_job_was_predicted_to_start_on_the_first_node(record: list[dict[str, object]]) -> None:
    # In check mode the checks before the start report it; otherwise they change nothing.
    tasks = ("Decide whether to start the job", "Start the job")
    started = {
        (line["check"], line["host"])
        for line in record
        if line["changed"] and str(line["task"]).removeprefix("swarmspeed.cluster.deepspeed_launch : ") in tasks
    }
    assert started == {(True, "lab1"), (False, "lab1")}
