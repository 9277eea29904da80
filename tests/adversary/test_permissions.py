# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Another account on the controller reads nothing that was found in the cluster, at no moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action.network_test_result import write
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files import Piece
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import Copy
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.files import write_private

from tests.role_values import load

BENCH = "overlay_network/tasks/bench_run.yml"


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """A controller on which new files are for everybody to read, and to write."""
    before = os.umask(0)
    yield
    os.umask(before)


def report(folder: Path) -> Path:
    write_private(folder / "report.html", "401 for me@example.org")
    return folder / "report.html"


def verify(folder: Path) -> Path:
    return Path(write(str(folder), {"roles": {}}))


def log(folder: Path) -> Path:
    Copy(str(folder), "digits", "gpu1").write(Piece("launcher.log", 5, b"step 1"))
    return folder / "digits" / "gpu1" / "launcher.log"


WRITERS = (report, verify, log)


def modes(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): stat.S_IMODE(path.stat().st_mode) for path in top.rglob("*")}


@pytest.mark.parametrize("writer", WRITERS)
def test_it_is_read_when_it_is_there(writer: Any, tmp_path: Path) -> None:
    writer(tmp_path / "reports" / "lab")
    found = modes(tmp_path)
    assert found and {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


@pytest.mark.parametrize("writer", WRITERS)
def test_it_is_read_while_it_is_written(writer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}
    replace = Path.replace

    def gather(self: Path, target: Path) -> Path:
        seen.update(modes(tmp_path))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", gather)
    writer(tmp_path / "reports" / "lab")
    assert len(seen) > 2 and {name: oct(mode) for name, mode in seen.items() if mode & 0o077} == {}


@pytest.mark.parametrize("writer", WRITERS)
def test_one_that_was_open_to_all_is_closed_by_the_next(writer: Any, tmp_path: Path) -> None:
    path = writer(tmp_path)
    path.chmod(0o666)
    path.write_text("older")
    assert writer(tmp_path) == path and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_of_the_users_own_stays_as_it_is(writer: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o750)
    writer(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_the_figures_of_a_benchmark() -> None:
    """These are written by Ansible's own modules."""
    tasks = {task["name"]: task for task in load(BENCH)}
    assert tasks["Write the report"]["ansible.builtin.copy"]["mode"] == "0600"
    folder = tasks["Create the folder of the reports"]
    assert folder["ansible.builtin.file"]["mode"] == "0700"
    assert "not _overlay_network_bench_reports.stat.exists" in folder["when"], "a folder of the user's own stays"
