# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which fields of state.json and summary.json are taken, and where the jobs of the host lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.private import (
    check_private,
    host_jobs_dir,
    make_private,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.record import (
    FIELDS,
    RecordError,
    check_environment,
    check_place,
    check_state,
    check_summary,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import JobError

STATE: dict[str, Any] = {
    "state": "failed",
    "reason": "rank 1 ended\nwith 1",
    "run": 3,
    "leader": True,
    "members": [{"name": "gpu1", "address": "10.0.0.1", "slots": [0, 1], "first_rank": 0}],
    "figures": {"step": 3, "loss": 0.5, "bad_loss": "", "unit": "step", "slowest_rank": 1},
    "shrunk_from": None,
    "first_failure": {"node": "gpu1", "rank": 1, "cause": "x", "remedy": "", "line": "y"},
    "hang": {"bound": 60.0, "why": "it trains", "findings": [{"silent": 61.0, "ranks": [1], "woke": None}]},
    "later": "a field of a release to come",
}


def test_an_ordinary_state_is_taken_as_it_is() -> None:
    assert check_state(STATE, on_host=False) == STATE
    assert check_state(dict.fromkeys(FIELDS) | {"state": "running"}, on_host=False)["state"] == "running"
    assert check_state(STATE, on_host=True) == {**STATE, "runtime": "host"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"state": "owned"}, "its state is missing or none of starting, running,"),
        ({"run": "1"}, "run is not a whole number"),
        ({"run": True}, "run is not a whole number"),
        ({"heartbeat": "NaN"}, "heartbeat is not a time in seconds"),
        ({"container": "../x"}, "container is not the name of a container"),
        ({"hosts": [1]}, "hosts is not a list of texts"),
        ({"members": [{"name": "a", "slots": ["0"]}]}, "members is not a list of nodes with their slots"),
        ({"figures": {"loss": "1"}}, "figures is not a mapping of figures"),
        ({"hang": []}, "hang is not a mapping with the bound of silence and findings"),
        ({"hang": {"bound": -1}}, "hang is not a mapping with the bound of silence and findings"),
        ({"hang": {"findings": [{"ranks": ["1"]}]}}, "hang is not a mapping with the bound of silence and findings"),
        ({"hang": {"findings": [{"link": "x"}]}}, "hang is not a mapping with the bound of silence and findings"),
        ({"hang": {"findings": [{}] * 101}}, "hang is not a mapping with the bound of silence and findings"),
        ({"runtime": "host"}, "it says that the job runs on the host, where no job of this name was started"),
    ],
)
def test_a_field_that_is_wrong_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RecordError) as caught:
        check_state({**STATE, **change}, on_host=False)
    assert str(caught.value).startswith(says)


def test_a_job_that_runs_has_a_place() -> None:
    check_place({"state": "running", "container": None, "container_id": "x", "run": 1})
    check_place({"state": "failed"})
    check_place({"state": "running", "runtime": "host"})
    with pytest.raises(RecordError, match="container and container_id is missing"):
        check_place({"state": "running", "run": 1})


def test_a_summary_is_taken_whole_or_not_at_all() -> None:
    written = {**STATE, "figures": {**STATE["figures"], "loss": "nan"}, "history": [{"t": 1}], "spec": {}}
    assert check_summary(written) == written
    changes: tuple[dict[str, Any], ...] = (
        {"state": None},
        {"figures": {"step": "x"}},
        {"figures": []},
        {"history": [1]},
        {"members": 1},
    )
    for change in changes:
        assert check_summary({**written, **change}) is None


@pytest.mark.parametrize("found", [None, [], "x", {"A": 1, "B": "b"}])
def test_environment(found: Any) -> None:
    assert check_environment(found) == ({"B": "b"} if isinstance(found, dict) else {})


def test_the_place_of_the_hosts_jobs(tmp_path: Path) -> None:
    place = host_jobs_dir(f"{tmp_path}/jobs/")
    assert place == tmp_path / "host_jobs"
    make_private(place)
    make_private(place)
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o720)
    with pytest.raises(JobError, match=r"must be a folder of root that no one else can write: .*mode 0720\. Remedy: "):
        check_private(place)
    place.chmod(0o700)
    tmp_path.chmod(0o777)
    with pytest.raises(JobError, match="no one else can write"):
        check_private(place)
    tmp_path.chmod(0o1777)  # as /tmp
    check_private(place)
    tmp_path.chmod(0o700)
    place.rmdir()
    place.symlink_to("/root")
    with pytest.raises(JobError, match="no one else can write"):
        check_private(place)
    place.unlink()
    place.write_text("")
    with pytest.raises(JobError, match="cannot be made: "):
        make_private(place)
