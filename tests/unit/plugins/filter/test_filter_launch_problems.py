# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filter over the prechecks of all nodes, and the task that calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter import launch_problems
from ansible_collections.swarmspeed.cluster.plugins.modules.job_precheck import DOCUMENTATION

ROOT = Path(__file__).parents[4]
FILTER = launch_problems.FilterModule().filters()["launch_problems"]
LINE = "gpu2: it did not answer the checks. Remedy: check the error of this node above."


def test_the_example_of_its_documentation() -> None:
    document = yaml.safe_load((ROOT / "plugins/filter/launch_problems.yml").read_text(encoding="utf-8"))
    assert FILTER({"gpu2": None}) == document["RETURN"]["_value"]["sample"]
    assert document["DOCUMENTATION"]["name"] == "launch_problems"


def test_a_preview_kept_nothing_from_starting() -> None:
    words = "As the nodes are now, 1 problem would keep the job from starting; the run may fix some before."
    assert FILTER({"gpu2": None}, preview=True)["message"] == f"{words}\n1. {LINE}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "swarmspeed.cluster.launch_problems: expected a mapping of node to probe, got list"),
        (
            {"gpu1": {"answer": {"python": "3"}}},
            "swarmspeed.cluster.launch_problems: this is not what job_precheck returned (KeyError 'asked').",
        ),
    ],
)
def test_what_it_cannot_read(value: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        FILTER(value)
    assert str(caught.value).partition(" Remedy:")[0] == message


def test_the_role_asks_for_what_the_module_knows() -> None:
    image, gathered, verdict = yaml.safe_load(
        (ROOT / "roles/deepspeed_launch/tasks/check.yml").read_text(encoding="utf-8")
    )
    options = yaml.safe_load(DOCUMENTATION)["options"]
    assert sorted(set(gathered["swarmspeed.cluster.job_precheck"]) - set(options)) == []
    assert "ansible.builtin.assert" in image  # costs no round trip
    # One look a node, and one verdict for all, whichever host is first.
    assert gathered["ignore_unreachable"] is True and gathered["any_errors_fatal"] is False
    assert verdict["run_once"] is True and "when" not in verdict
