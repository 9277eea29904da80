# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What root in a container fills its folders with costs the host a bounded time, and hides no job from it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import untrusted_folder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import info_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import system_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.parsers import changed_files
from ansible_collections.swarmspeed.cluster.plugins.modules import training_job_info
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.faults import occupied
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.node import node_facts

from tests.adversary import hostile
from tests.adversary.job_attacks import STATE, Engine

MANY = 1200
"""More than the limits below, which are a hundredth of the real ones, as a disk takes its time to make names."""
TEXT = b"print(1)\n"
SHA = hashlib.sha256(TEXT).hexdigest()


def linked(folder: Path, names: list[str]) -> None:
    (folder / "one").write_bytes(os.urandom(8 << 20))
    for name in names:
        os.link(folder / "one", folder / name)


def hollow(folder: Path, names: list[str]) -> None:
    for name in names:
        with (folder / name).open("wb") as file:
            file.truncate(1 << 30)


def nearly_hollow(folder: Path, names: list[str]) -> None:
    """Just enough of each is there."""
    for name in names:
        with (folder / name).open("wb") as file:
            file.write(os.urandom(1 << 16))
            file.truncate(16 << 20)


@pytest.mark.parametrize("fill", [linked, hollow, nearly_hollow])
def test_files_of_another_size_are_not_read(fill: Callable[[Path, list[str]], None], tmp_path: Path) -> None:
    names = [f"f{number}.py" for number in range(200)]
    fill(tmp_path, names)
    (tmp_path / "train.py").write_bytes(TEXT)
    wanted = {**dict.fromkeys(names, SHA), "train.py": SHA}
    began = time.process_time()
    found = system_io.tree_digests(str(tmp_path), list(wanted), dict.fromkeys(wanted, len(TEXT)))
    assert time.process_time() - began < 1
    assert changed_files(wanted, found) == sorted(names)


@pytest.mark.parametrize("fill", [linked, hollow])
def test_links_and_holes_are_not_read_where_no_size_is_known(
    fill: Callable[[Path, list[str]], None], tmp_path: Path
) -> None:
    names = [f"f{number}.py" for number in range(200)]
    fill(tmp_path, names)
    began = time.process_time()
    assert set(system_io.tree_digests(str(tmp_path), names).values()) == {None}
    assert time.process_time() - began < 1


def job(jobs: Path, name: str = "real", at: float | None = None, **state: Any) -> None:
    (jobs / name).mkdir(parents=True)
    (jobs / name / "state.json").write_text(json.dumps({**STATE, "run_id": f"{name}/1/t", **state}))
    if at is not None:
        os.utime(jobs / name / "state.json", (at, at))


def empty_names(jobs: Path) -> None:
    for number in range(MANY):
        os.close(os.open(jobs / f"x{number}", os.O_CREAT | os.O_WRONLY))


def links(jobs: Path) -> None:
    for number in range(MANY):
        (jobs / f"x{number}").symlink_to("real")


def forged(jobs: Path) -> None:
    (jobs / "state").write_text(json.dumps({**STATE, "state": "succeeded"}))
    for number in range(MANY):
        (jobs / f"a{number}").mkdir()
        (jobs / f"a{number}" / "state.json").write_text('{"state": "succeeded"}')
        os.utime(jobs / f"a{number}" / "state.json", (1e9, 1e9))


def forged_later(jobs: Path) -> None:
    """They say that they were written when no one has been yet."""
    forged(jobs)
    for number in range(MANY):
        os.utime(jobs / f"a{number}" / "state.json", (4e9, 4e9))


@pytest.mark.parametrize("fill", [empty_names, links, forged, forged_later])
def test_a_running_job_is_seen_and_forbids_what_it_forbids(
    fill: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted_folder, "MOST_ENTRIES", 1000)
    monkeypatch.setattr(system_io, "MOST_JOBS", 1000)
    monkeypatch.setattr(info_io, "MOST_JOBS", 100)
    jobs = tmp_path / "jobs"
    job(jobs)
    fill(jobs)
    found = system_io.job_facts(str(jobs), "k")["jobs"]
    assert found.get("real") == "running" or found[system_io.UNLISTED] == "unknown"
    facts = node_facts("gpu1", {**hostile.facts(), "jobs": found})
    assert occupied({"gpu1": facts}, {})["gpu1"]
    params = {"jobs_dir": str(jobs), "tail": 0, "gpus": False}
    reported = training_job_info.gather({**params, "name": None}, {"container": Engine()}, None)  # type: ignore[arg-type]
    assert "real" in [one["name"] for one in reported["jobs"]] and len(reported["jobs"]) <= 100
    assert reported["whole"] is (fill in (empty_names, links))
    (named,) = training_job_info.gather({**params, "name": "real"}, {"container": Engine()}, None)["jobs"]  # type: ignore[arg-type]
    assert named["name"] == "real"


def test_what_cannot_be_listed_may_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = tmp_path / "jobs"
    job(jobs)
    monkeypatch.setattr(system_io, "MOST_JOBS", 0)
    assert system_io.job_facts(str(jobs), "k")["jobs"] == {system_io.UNLISTED: "unknown"}
    (tmp_path / "file").write_text("")
    assert system_io.job_facts(str(tmp_path / "file"), "k")["jobs"] == {system_io.UNLISTED: "unknown"}
    assert system_io.job_facts(str(tmp_path / "none"), "k")["jobs"] == {}
    with pytest.raises(JobError):
        JobsReader(str(tmp_path / "file"), {}).names()
