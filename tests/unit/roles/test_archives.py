# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What two roles pack on the controller holds every file by its own name, whatever the name is made of."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.planned_roles import every
from tests.role_values import ROLES

NAMES = [
    *("plain", "-x", "--help", "a\nb", "back\\slash", "no\\newline", " before", "after ", "a\tb", "ü", "#h", "*", '"q'),
    *("'", "\\", "end\\", "sub/-y", "a,b", "[.]", "&", "{{ x }}"),
]
PACKED = [
    pytest.param("workspace/tasks/converge.yml", "Pack the source, once", id="workspace"),
    pytest.param("training_image/tasks/send.yml", "Pack the files", id="image"),
]


def find(tasks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the arguments of a task, in whatever block it stands."""
    (task,) = [task for task in every(tasks) if task.get("name") == name]
    arguments: dict[str, Any] = task["ansible.builtin.command"]
    return arguments


def pack(file: str, task: str, place: Path, names: list[str]) -> list[str]:
    """Run the task's own command line on files of these names; return those in the archive."""
    loader = DataLoader()
    archive = place / "archive.tar"
    variables = {
        "_workspace_input": {"code": {"source": str(place / "source")}},
        "_training_image_sent": {"folder": str(place / "source"), "names": names},
        "_workspace_manifest": dict.fromkeys(names, "x"),
        "_workspace_archive": {"path": str(archive)},
        "_training_image_archive": {"path": str(archive)},
    }
    arguments = find(loader.load_from_file(str(ROLES / file), trusted_as_template=True), task)
    templated = Templar(loader, variables=variables).template(arguments)
    # The module writes it to the system's log, which with Python 3.12 and later takes none.
    assert "\0" not in templated["stdin"]
    assert templated["stdin_add_newline"] is False
    subprocess.run(templated["argv"], input=templated["stdin"].encode(), check=True)
    with tarfile.open(archive) as tar:
        return tar.getnames()


def fill(place: Path, names: list[str]) -> None:
    for name in names:
        path = place / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


@pytest.mark.parametrize(("file", "task"), PACKED)
def test_names_that_mean_something_to_tar_or_to_a_template(file: str, task: str, tmp_path: Path) -> None:
    fill(tmp_path, [*NAMES, "left out"])
    assert pack(file, task, tmp_path, NAMES) == NAMES


@pytest.mark.parametrize(("file", "task"), PACKED)
def test_nothing_is_an_empty_archive_and_not_the_whole_folder(file: str, task: str, tmp_path: Path) -> None:
    fill(tmp_path, ["left out"])
    assert pack(file, task, tmp_path, []) == []


@example(["\\n", "\n", "\\\n"])
@given(st.lists(st.text(st.sampled_from("\\\n-. an0t\"'"), min_size=1, max_size=6), max_size=5, unique=True))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_name(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    wanted = [name for name in names if name not in (".", "..")]
    place = tmp_path_factory.mktemp("any")
    (place / "source").mkdir()
    fill(place, wanted)
    assert pack("workspace/tasks/converge.yml", "Pack the source, once", place, wanted) == wanted
