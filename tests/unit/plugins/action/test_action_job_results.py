# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Both sides of job_results, with the module run in place of a node, and nodes that send something else."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.job_results import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import UntrustedFolder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import results
from ansible_collections.swarmspeed.cluster.plugins.modules.job_results import run_module


class Bringer(ActionModule):
    """The node is this machine; ``spoil`` changes what it sends."""

    def __init__(self, work: Path, spoil: Callable[[Path, dict[str, Any]], None] | None = None, **args: Any) -> None:
        self._task = SimpleNamespace(args=args, check_mode=args.pop("check_mode", False), async_val=0, action="x")
        shell = SimpleNamespace(tmpdir=str(work), join_path=os.path.join)
        self._connection = SimpleNamespace(_shell=shell, fetch_file=shutil.copyfile)
        self.spoil, self.sent = spoil, list[str]()

    def _execute_module(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        self.sent.append(module_name)
        if module_name != "swarmspeed.cluster.job_results":
            return {}
        answer: dict[str, Any] = json.loads(json.dumps(run_module({"max_gib": 1, **module_args})))
        if self.spoil:
            self.spoil(Path(module_args["folder"], "results.tar"), answer)
        return answer


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def args(tmp_path: Path) -> dict[str, Any]:
    model = tmp_path / "workspace/out/model"
    model.mkdir(parents=True)
    (model / "weights.bin").write_bytes(b"w" * 5000)
    (model / "config.json").write_text("{}")
    (tmp_path / "workspace/out/loss.png").write_bytes(b"png")
    (tmp_path / "workspace/secret").write_text("s")
    paths = ["out/model", "out/loss.png"]
    return {"name": "sft", "root": str(tmp_path / "workspace"), "paths": paths, "dest": str(tmp_path / "jobs")}


def bring(work: Path, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return Bringer(work, **args, **more).run(task_vars={"inventory_hostname": "gpu1"})


def test_files_and_folders_are_brought_once(work: Path, args: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / "jobs/sft/results"
    names = ["out/loss.png", "out/model/config.json", "out/model/weights.bin"]
    found = bring(work, args)
    assert found == {"changed": True, "dest": str(place), "files": names, "moved": "", "problems": []}
    assert (place / "out/model/weights.bin").read_bytes() == b"w" * 5000
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()) == names
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*") if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (place, place / "out")} == {0o700}
    assert bring(work, args)["changed"] is False
    assert [path.name for path in place.parent.iterdir()] == ["results"]


def test_former_results_are_kept(work: Path, args: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / "jobs/sft/results"
    for number in range(3):
        Path(args["root"], "out/loss.png").write_text(str(number))
        found = bring(work, args)
        assert found["moved"] == (f"{place}.{number}" if number else "")
    assert [Path(f"{place}{end}", "out/loss.png").read_text() for end in (".1", ".2", "")] == ["0", "1", "2"]


def test_nothing_in_check_mode(work: Path, args: dict[str, Any], tmp_path: Path) -> None:
    assert bring(work, args, check_mode=True)["changed"] is False
    assert not (tmp_path / "jobs").exists()


def test_what_is_missing_or_no_file_is_named_and_no_link_is_followed(work: Path, args: dict[str, Any]) -> None:
    model, root = Path(args["root"], "out/model"), args["root"]
    (model / "link").symlink_to("/etc/passwd")
    (model / "up").symlink_to("..", target_is_directory=True)
    os.mkfifo(model / "pipe")
    found = bring(work, {**args, "paths": ["out/model", "gone"]})
    assert found["files"] == ["out/model/config.json", "out/model/weights.bin"]
    assert found["problems"] == [
        f"{root}/out/model/link is a link, and left out.",
        f"{root}/out/model/pipe is a named pipe, and left out.",
        f"{root}/out/model/up is a link, and left out.",
        f"{root}/gone is not there.",
    ]
    # A link on the way to what was asked for, too.
    Path(root, "way").symlink_to("/etc", target_is_directory=True)
    assert bring(work, {**args, "paths": ["way/passwd"]})["problems"] == [f"{root}/way/passwd is not there."]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../..", "", "-x", "a//b"])
def test_only_paths_of_the_workspace_are_asked_for(work: Path, args: dict[str, Any], path: str) -> None:
    with pytest.raises(AnsibleError) as error:
        bring(work, {**args, "paths": [path]})
    assert str(error.value) == (
        f"job_results: deepspeed_launch_results: {path!r} is not a path below the workspace. Remedy: write it "
        "relative to the workspace, as in checkpoints/model."
    )


def test_too_much_is_refused_on_the_node(args: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = UntrustedFolder(args["root"])
    files, dummy = results.found(folder, args["paths"])
    with pytest.raises(results.ResultsError, match=r"the results have more than 0 GiB\. Remedy: name fewer in"):
        results.pack(folder, files, tmp_path / "results.tar", 100)
    monkeypatch.setattr(results, "MOST_FILES", 2)
    with pytest.raises(results.ResultsError, match="the results are more than 2 files"):
        results.found(folder, args["paths"])


def replaced(archive: Path, *members: tuple[str, bytes, bytes]) -> None:
    with tarfile.open(archive, "w") as tar:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(data), "/etc/passwd"
            tar.addfile(member, io.BytesIO(data))


W, C, P = (
    ("out/model/weights.bin", tarfile.REGTYPE, b"w" * 5000),
    ("out/model/config.json", tarfile.REGTYPE, b"{}"),
    (
        "out/loss.png",
        tarfile.REGTYPE,
        b"png",
    ),
)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([W, C], "out/loss.png did not arrive. Remedy: run launch.yml again"),
        ([W, C, P, ("../../evil", tarfile.REGTYPE, b"x")], "the archive differs from what was reported."),
        ([W, C, P, P], "the archive differs from what was reported."),
        ([W, C, ("out/loss.png", tarfile.SYMTYPE, b"")], "the archive differs from what was reported."),
        ([W, C, ("out/loss.png", tarfile.REGTYPE, b"gnp")], "loss.png arrived incomplete."),
        ([W, C, ("out/loss.png", tarfile.REGTYPE, b"longer")], "the archive differs from what was reported."),
    ],
)
def test_an_archive_with_something_else_leaves_nothing(
    work: Path, args: dict[str, Any], tmp_path: Path, members: list[Any], text: str
) -> None:
    with pytest.raises(AnsibleError) as error:
        bring(work, args, spoil=lambda archive, _answer: replaced(archive, *members))
    assert str(error.value).startswith("job_results: gpu1: job_results: ") and text in str(error.value)
    assert list((tmp_path / "jobs/sft").iterdir()) == []


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        ({"../../evil": {"size": 1, "sha256": "a" * 64}}, "a path below the folder it is in"),
        ({"secret": {"size": 1, "sha256": "a" * 64}}, "secret was not requested"),
        ({"out/model/x": {"size": 2 << 30, "sha256": "a" * 64}}, "it sent more than was requested"),
        (
            {"out/model/x": {"size": -1, "sha256": "a" * 64}},
            "job_results.packed[out/model/x].size is -1, not a whole number",
        ),
        ({"out/model/x": {"size": 1, "sha256": "../a"}}, "not a SHA-256"),
        ([], "not a mapping"),
    ],
)
def test_a_node_that_reports_something_else_is_refused(
    work: Path, args: dict[str, Any], tmp_path: Path, packed: Any, text: str
) -> None:
    with pytest.raises(AnsibleError) as error:
        bring(work, args, max_gib=1, spoil=lambda _archive, answer: answer.update(packed=packed))
    assert "gpu1" in str(error.value) and "\n" not in str(error.value)
    assert text in str(error.value)
    assert not (tmp_path / "jobs").exists()
