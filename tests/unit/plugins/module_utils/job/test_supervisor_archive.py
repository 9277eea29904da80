# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The archive of the supervisor: what is in it, and that it runs from it alone. With jobs: supervisor/test_job_*.py."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import PROGRAM
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive

from tests.documents import ROOT

MODULE_UTILS = ROOT / "plugins/module_utils"
PREFIX = "ansible_collections/swarmspeed/cluster/plugins/module_utils"
ALONE = [sys.executable, "-I", "-S", "-B"]
BUILD = """\
import sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import supervisor_archive
assert ".zip" in supervisor_archive.__file__
sys.stdout.buffer.write(supervisor_archive.supervisor_archive())
"""


@pytest.fixture
def files() -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(supervisor_archive())) as archive:
        assert archive.namelist() == sorted(archive.namelist())
        for entry in archive.infolist():
            assert (entry.date_time, entry.compress_type) == ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED)
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / PROGRAM
    path.write_bytes(supervisor_archive())
    return path


def test_the_whole_package_is_in_it_with_what_it_imports(files: dict[str, str]) -> None:
    package = {f"swarmspeed/job/supervisor/{path.name}" for path in (MODULE_UTILS / "job/supervisor").glob("*.py")}
    assert len(package) > 15 and package <= set(files)
    beside = {name for name, source in files.items() if source and name not in package} - {"__main__.py"}
    assert {"swarmspeed/job/exits.py", "swarmspeed/common/secret_names.py"} <= beside
    # What was not asked for would be sent to every node with each job.
    assert not beside & {"swarmspeed/job/store_io.py", "swarmspeed/job/resource.py", "swarmspeed/engine/api_io.py"}


def test_it_needs_python_3_8_and_the_standard_library(files: dict[str, str]) -> None:
    for name, source in files.items():
        for node in ast.walk(ast.parse(source, name, feature_version=(3, 8))):
            if isinstance(node, ast.ImportFrom) and not node.level and name != "__main__.py":
                assert str(node.module).partition(".")[0] in sys.stdlib_module_names, f"{name} imports {node.module}"
            if isinstance(node, ast.Import):
                assert {entry.name.partition(".")[0] for entry in node.names} <= sys.stdlib_module_names, name


def test_each_of_its_modules_can_be_imported_from_it_alone(program: Path, files: dict[str, str]) -> None:
    names = [
        name[: -len(".py")].replace("/", ".") for name in files if not name.endswith(("__init__.py", "__main__.py"))
    ]
    code = f"import sys, importlib; sys.path.insert(0, {str(program)!r}); [importlib.import_module(n) for n in {names}]"
    subprocess.run([*ALONE, "-c", code], check=True, timeout=60)


def test_it_is_a_program(program: Path) -> None:
    done = subprocess.run([*ALONE, str(program), "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "--sweep" in done.stdout


def test_it_is_the_same_where_modules_run_out_of_an_archive(tmp_path: Path) -> None:
    """As they do on a node, where another Python builds it, at another time."""
    payload = tmp_path / "payload.zip"
    with zipfile.ZipFile(payload, "w") as archive:
        folders = {PREFIX}
        for path in MODULE_UTILS.rglob("*.py"):
            name = f"{PREFIX}/{path.relative_to(MODULE_UTILS)}"
            archive.write(path, name)
            folders.add(name.rpartition("/")[0])
        folders |= {PREFIX[:place] for place, sign in enumerate(PREFIX) if sign == "/"}
        for folder in sorted(folders):
            archive.writestr(f"{folder}/__init__.py", "")
    done = subprocess.run([*ALONE, "-c", BUILD, str(payload)], capture_output=True, check=True, timeout=60)
    assert done.stdout == supervisor_archive()


def test_the_entry_point_starts_the_same_file() -> None:
    """After a restart of the container."""
    text = (ROOT / "roles/nccl_env/files/entrypoint").read_text(encoding="utf-8")
    assert f'python3 -B "$folder/{PROGRAM}" "$folder" --again' in text
