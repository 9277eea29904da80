# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of training_job_info and job_logs: arguments, errors, and that they return what they document."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.modules import job_logs, training_job_info

STATE = {"state": "failed", "run": 1, "started_at": "2026-11-22T10:00:00Z", "finished_at": "2026-11-22T10:00:30Z"}


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text(json.dumps(STATE))
        (tmp_path / name / "launcher.log").write_text("one\ntwo\n")
    return tmp_path


def ended(module: ModuleType, capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit) as end:
        module.main()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (end.value.code == 0) is not found.get("failed", False)
    return found


def test_all_jobs_or_one(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = ended(training_job_info, capsys, jobs_dir=str(jobs), _ansible_check_mode=True)
    assert ([job["name"] for job in every["jobs"]], every["changed"], every["engine_error"]) == (
        ["a", "b"],
        False,
        None,
    )
    one = ended(training_job_info, capsys, jobs_dir=str(jobs), name="b", tail=1)
    assert [(job["name"], job["log"]) for job in one["jobs"]] == [("b", ["two"])]
    assert ended(training_job_info, capsys, jobs_dir=str(jobs), name="c")["jobs"] == []
    assert ended(training_job_info, capsys, jobs_dir=str(jobs / "none"))["jobs"] == []


def test_what_is_returned_is_documented(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documented = from_yaml(training_job_info.RETURN)
    found = ended(training_job_info, capsys, jobs_dir=str(jobs))
    assert set(documented) == set(found) - {"changed", "invocation"}
    contains = documented["jobs"]["contains"]
    assert sorted(set(contains) - set(found["jobs"][0])) == []
    assert set(contains["summary"]["contains"]) == set(found["jobs"][0]["summary"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tail": 1001}, "tail: 1001 is not within 0 and 1000 lines."),
        ({"tail": -1}, "tail: -1 is not within 0 and 1000 lines."),
        ({"name": "../x"}, "name: '../x' is not a name for a job."),
    ],
)
def test_info_refuses(jobs: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str) -> None:
    assert words in ended(training_job_info, capsys, jobs_dir=str(jobs), **change)["msg"]


def test_a_folder_that_cannot_be_read(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reported = ended(training_job_info, capsys, jobs_dir=str(jobs / "a/state.json"))["msg"]
    assert reported == (
        f"{jobs}/a/state.json cannot be opened: Not a directory. Remedy: correct the path, or use become."
    )


def test_logs_are_sent_by_what_the_controller_has(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = {"jobs_dir": str(jobs), "name": "a", "dest": "/unused"}
    first = ended(job_logs, capsys, **args)
    assert [sent["path"] for sent in first["files"]] == ["launcher.log", "state.json"]
    assert first["run"] == {"run": 1, "run_id": None, "started_at": STATE["started_at"]}
    have = {
        name: [path.stat().st_size, path.stat().st_mtime_ns]
        for name in ("launcher.log", "state.json")
        for path in [jobs / "a" / name]
    }
    assert ended(job_logs, capsys, **args, have=have, have_run=first["run"])["files"] == []
    other = {**first["run"], "run": 7}
    assert len(ended(job_logs, capsys, **args, have=have, have_run=other)["files"]) == 2
    assert len(ended(job_logs, capsys, **args, skip=["state.json"])["files"]) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_mib": 0}, "logs of job a: max_mib: 0 is not within 1 and 64."),
        ({"max_mib": 65}, "logs of job a: max_mib: 65 is not within 1 and 64."),
        ({"name": "A"}, "logs of job A: name: 'A' is not a name for a job."),
    ],
)
def test_logs_refuses(jobs: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str) -> None:
    assert words in ended(job_logs, capsys, **{"jobs_dir": str(jobs), "name": "a", "dest": "/x", **change})["msg"]
