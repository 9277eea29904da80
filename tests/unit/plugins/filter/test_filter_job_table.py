# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters for status.yml, stop.yml, doctor.yml and gathered logs: their glue, and that each is documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.job_table import FilterModule

FILTERS = Path(__file__).parents[4] / "plugins/filter"
NAMES = ["gathered_logs", "job_examined", "job_table", "jobs_to_stop", "stop_report"]


def test_they_are_all_there_and_documented() -> None:
    assert sorted(FilterModule().filters()) == NAMES
    for name in NAMES:
        described = yaml.safe_load((FILTERS / f"{name}.yml").read_text(encoding="utf-8"))
        assert described["DOCUMENTATION"]["name"] == name and described["RETURN"]


def test_they_answer() -> None:
    filters = FilterModule().filters()
    assert filters["job_table"]({"gpu1": {"jobs": []}}) == ["No jobs on gpu1."]
    assert filters["jobs_to_stop"]({"gpu1": {"jobs": []}}, "x")["lines"] == [
        "There is no job x. There are no jobs at all"
    ]
    assert filters["jobs_to_stop"]({"gpu1": {"jobs": []}})["lines"] == ["No job runs"]
    assert filters["gathered_logs"]({"gpu1": {"skipped": True}}) == []


def test_a_job_that_was_examined() -> None:
    job_examined = FilterModule().filters()["job_examined"]
    assert job_examined({}, {"gpu1": {"jobs": []}}, "digits") == ["There is no job digits. Running jobs: none."]
    wrongs: list[tuple[Any, Any]] = [(None, {}), ({}, None), ({"gpu1": []}, {})]
    for wrong in wrongs:
        with pytest.raises(AnsibleFilterError, match="job_examined: the input must be a mapping of results by node"):
            job_examined(*wrong, "digits")


def test_what_was_stopped() -> None:
    found = {"gpu1": {"jobs": [{"name": "digits", "state": "running", "leader": True, "log_path": "/l"}]}}
    filters = FilterModule().filters()
    stops, done = filters["jobs_to_stop"](found), {"gpu1": [{"item": {"name": "digits"}, "changed": True}]}
    assert filters["stop_report"](stops, done) == {"lines": ["digits, running on gpu1 (rank 0)"], "problems": []}
    wrongs: list[tuple[Any, Any]] = [(None, {}), (stops, None)]
    for wrong in wrongs:
        with pytest.raises(AnsibleFilterError, match=r"swarmspeed\.cluster\.stop_report: the input must be"):
            filters["stop_report"](*wrong)


@pytest.mark.parametrize("name", ["gathered_logs", "job_table", "jobs_to_stop"])
@pytest.mark.parametrize("value", [None, [], "x", {"gpu1": None}])
def test_what_is_no_mapping_of_results_is_refused(name: str, value: Any) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        FilterModule().filters()[name](value)
    assert str(caught.value).endswith(f"swarmspeed.cluster.{name}: the input must be a mapping of results by node")
