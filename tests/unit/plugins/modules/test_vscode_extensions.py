# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""vscode_extensions: what it unpacks, predicts, keeps and removes. The extensions are stand-ins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode import install
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.state import unpacked
from ansible_collections.swarmspeed.cluster.plugins.modules import vscode_extensions

from tests.vsix import FOLDER, vsix

THEIRS: dict[str, Any] = {"identifier": {"id": "you.x"}, "version": "3", "relativeLocation": "you.x-3"}


class Node:
    """A folder that stands in for a node's, and runs of the module on it."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys, self.root = path, capsys, path / "cluster" / "vscode"
        self.root.parent.mkdir()
        self.extensions, self.list = self.root / "extensions", self.root / "extensions/extensions.json"

    def run(self, *files: Path, check: bool = False, **more: Any) -> dict[str, Any]:
        args = {"root": str(self.root), "files": [str(file) for file in files], "_ansible_check_mode": check, **more}
        with patch_module_args(args), pytest.raises(SystemExit):
            vscode_extensions.main()
        reply: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return reply

    def done(self, *files: Path, **more: Any) -> dict[str, Any]:
        """Run in check mode, then for real: the prediction must be right, and a second run must change nothing."""
        predicted, made = self.run(*files, check=True, **more), self.run(*files, **more)
        assert predicted == made and not made.get("failed"), made
        again = self.run(*files, **more)
        assert (again["changed"], again["unpacked"], again["removed"]) == (False, [], [])
        return made

    def vsix(self, file: str = "x.vsix", **given: Any) -> Path:
        return vsix(self.path / file, **given)

    def tree(self) -> list[str]:
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())

    def listed(self) -> list[str]:
        return [one["relativeLocation"] for one in json.loads(self.list.read_text())]


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Node:
    return Node(tmp_path, capsys)


def test_an_extension_is_unpacked_listed_and_removed(node: Node) -> None:
    file = node.vsix()
    assert node.run(file, check=True)["changed"] is True and not node.root.exists()
    made = node.done(file)
    assert (made["changed"], made["unpacked"], made["removed"], made["extensions"]) == (True, [FOLDER], [], [FOLDER])
    assert (made["diff"]["before"], made["diff"]["after"]) == ("", f"{FOLDER}\n")
    assert node.tree() == [
        "extensions/extensions.json",
        f"extensions/{FOLDER}/out/main.js",
        f"extensions/{FOLDER}/package.json",
        "unpacked.json",
    ]
    modes = [
        path.stat().st_mode & 0o777 for path in (node.root, node.extensions, node.root / "unpacked.json", node.list)
    ]
    assert modes == [0o700, 0o755, 0o600, 0o644]
    assert node.listed() == [FOLDER]
    gone = node.done()
    assert (gone["changed"], gone["removed"], gone["diff"]["after"]) == (True, [FOLDER], "")
    # The folder stays, as a container may have it mounted.
    assert node.tree() == [] and node.extensions.is_dir()


def test_another_version_takes_the_place_of_the_one_before(node: Node) -> None:
    node.done(node.vsix())
    made = node.done(node.vsix(version="1.3.0"))
    assert (made["unpacked"], made["removed"]) == (["stand-in.debugger-1.3.0"], [FOLDER])
    assert node.listed() == ["stand-in.debugger-1.3.0"] and not (node.extensions / FOLDER).exists()


def test_another_file_of_the_same_version_takes_its_place(node: Node) -> None:
    node.done(node.vsix(members={"extension/old.js": b""}))
    made = node.done(node.vsix(members={"extension/new.js": b""}))
    assert (made["unpacked"], made["removed"]) == ([FOLDER], [])
    names = sorted(path.name for path in (node.extensions / FOLDER).iterdir())
    assert names == ["new.js", "out", "package.json"]


def test_what_others_put_there_stays(node: Node) -> None:
    file, other = node.vsix(), node.vsix("other.vsix", name="other")
    (node.extensions / "you.x-3").mkdir(parents=True)
    node.list.write_text(json.dumps([THEIRS]))
    node.done(file, other)
    assert node.listed() == ["you.x-3", FOLDER, "stand-in.other-1.2.3"]
    node.done(other)
    assert node.listed() == ["you.x-3", "stand-in.other-1.2.3"]
    removed = node.done(state="absent")
    assert removed["removed"] == ["stand-in.other-1.2.3"]
    assert (node.listed(), (node.extensions / "you.x-3").is_dir()) == (["you.x-3"], True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda node: (node.extensions / FOLDER / "package.json").unlink(),
        lambda node: node.list.unlink(),
        lambda node: node.list.write_text("[]"),
        lambda node: node.list.write_text(""),
        lambda node: (node.extensions / ".obsolete").write_text(json.dumps({FOLDER: True, "you.x-3": True})),
    ],
)
def test_what_a_user_uninstalled_is_there_again(node: Node, damage: Any) -> None:
    file = node.vsix()
    node.done(file)
    damage(node)
    assert node.done(file)["changed"] is True
    assert node.listed() == [FOLDER] and (node.extensions / FOLDER / "package.json").is_file()
    marked = node.extensions / ".obsolete"
    assert not marked.exists() or json.loads(marked.read_text()) == {"you.x-3": True}


def test_absent_leaves_nothing(node: Node) -> None:
    assert node.done(state="absent")["changed"] is False
    node.done(node.vsix())
    assert node.done(state="absent")["changed"] is True and not node.root.exists()
    # As after a run without files: the folders alone are left.
    node.extensions.mkdir(parents=True)
    assert node.done(state="absent")["changed"] is True and not node.root.exists()


def test_a_list_that_is_none_is_reported_and_left_alone(node: Node) -> None:
    file = node.vsix()
    node.done(file)
    for text, cause in (("{}", "holds no list"), ("[", "cannot be read: Expecting value: line 1 column 2 (char 1)")):
        node.list.write_text(text)
        remedy = "Remedy: remove it on this node, and run again; VS Code's server makes another one."
        assert node.run(file)["msg"] == f"{node.list} {cause}. {remedy}"
        assert node.list.read_text() == text
        (one,) = unpacked(str(node.root)).values()
        assert one == {"folder": FOLDER, "intact": False}


def test_a_damaged_record_is_reported(node: Node) -> None:
    file = node.vsix()
    node.done(file)
    (node.root / "unpacked.json").write_text("no JSON")
    assert unpacked(str(node.root)) == {}
    assert f"{node.root}/unpacked.json cannot be read" in node.run(file)["msg"]
    (node.root / "unpacked.json").write_text('{"a": 1, "b": {"sha256": 1}}')
    assert unpacked(str(node.root)) == {}


def test_two_files_of_one_extension_are_refused(node: Node) -> None:
    first, second = node.vsix(), node.vsix("y.vsix", version="2.0.0", publisher="STAND-IN")
    expected = f"{second}: it is stand-in.debugger, and {first} is that, too. Remedy: list one of them."
    assert node.run(first, second)["msg"] == expected and not node.root.exists()
    node.done(first)
    assert node.run(first, second)["msg"] == expected
    assert node.run(first, first)["msg"] == expected.replace(str(second), str(first))


def test_one_file_that_is_refused_keeps_all_from_being_unpacked(node: Node) -> None:
    bad = node.path / "bad.vsix"
    bad.write_text("no zip")
    made = node.run(node.vsix(), bad)
    assert made["failed"] and made["msg"].startswith(f"{bad}: it is not a zip. Remedy: ") and not node.root.exists()


def test_a_file_that_is_not_there_is_reported(node: Node) -> None:
    missing = node.path / "none.vsix"
    assert node.run(missing, check=True)["msg"] == (
        f"{missing}: it cannot be opened: No such file or directory. Remedy: name a file that is on this node; "
        "site.yml --tags assets brings those of assets_sources."
    )
    os.mkfifo(missing)
    assert node.run(missing)["msg"] == f"{missing}: it is a named pipe, not a plain file. Remedy: name a .vsix."
    assert node.run(node.path)["msg"] == f"{node.path}: it is a folder, not a plain file. Remedy: name a .vsix."


def test_a_disk_that_is_full_leaves_what_was_there(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    old = node.vsix()
    node.done(old)

    def full(*_args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(install, "unpack_extension", full)
        made = node.run(node.vsix("new.vsix", version="2.0.0"))
    assert made["msg"] == (
        f"{node.root} cannot be written: [Errno 28] No space left on device. "
        "Remedy: make room on its disk, or use become."
    )
    assert node.listed() == [FOLDER] and not (node.root / install.INCOMING).exists()
    assert node.run(old)["changed"] is False
