# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reading and writing below a folder that others can write: what is ordinary. Attacks are in tests/adversary."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import empty_folder, untrusted_folder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
)


@pytest.fixture
def folder(tmp_path: Path) -> UntrustedFolder:
    return UntrustedFolder(tmp_path)


def test_a_file_is_written_read_moved_and_removed(folder: UntrustedFolder, tmp_path: Path) -> None:
    folder.make_folder("a/b")
    folder.write("a/b/file", b"one", 0o640)
    folder.write("a/b/file", io.BytesIO(b"two"), 0o600, mtime=1000.0)
    status = (tmp_path / "a/b/file").stat()
    assert (folder.read("a/b/file"), status.st_mode & 0o7777, status.st_mtime) == (b"two", 0o600, 1000.0)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    folder.rename("a/b/file", "a/moved")
    assert folder.entries("a") == {"b": "a folder", "moved": "a plain file"}
    folder.remove("a/moved")
    folder.remove("a")
    folder.remove("a")
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_no_error_to_read(folder: UntrustedFolder, tmp_path: Path) -> None:
    gone = UntrustedFolder(tmp_path / "none")
    for one in (folder, gone):
        assert [one.read("x/y"), one.read_json("x"), one.digest("x"), one.kind("x/y")] == [None] * 4
        assert one.entries("x") == {}
        one.remove("x/y")
    with pytest.raises(FolderError, match="has no folder to lie in"):
        gone.write("x", b"")
    with pytest.raises(FolderError, match="has no folder to lie in"):
        folder.write("x/y", b"")
    with pytest.raises(FolderError, match="has no folder to lie in"):
        folder.rename("x/a", "b")
    with pytest.raises(FolderError, match="does not exist"):
        gone.make_folder("x")


def test_a_link_to_the_folder_itself_is_the_operators(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    UntrustedFolder(tmp_path / "link").write("x", b"y")
    assert (tmp_path / "real/x").read_text() == "y"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "is a link, not a plain file"),
        (os.mkfifo, "is a named pipe, not a plain file"),
        (lambda path: path.mkdir(), "is a folder, not a plain file"),
    ],
)
def test_the_error_names_path_find_and_remedy(
    folder: UntrustedFolder, tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    make(tmp_path / "x")
    with pytest.raises(FolderError) as caught:
        folder.read("x")
    assert str(caught.value) == f"{tmp_path}/x {words}. Remedy: remove it on this node, and run again."


def test_limits(folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert folder.read("x", 5) == b"12345"
    with pytest.raises(FolderError, match="is larger than 4 bytes"):
        folder.read("x", 4)
    monkeypatch.setattr(untrusted_folder, "MOST_ENTRIES", 1)
    assert folder.entries() == {"x": "a plain file"}
    (tmp_path / "y").write_text("")
    with pytest.raises(FolderError, match="holds more than 1 names"):
        folder.entries()


def test_removing_needs_no_list_of_everything_at_once(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(empty_folder, "AT_ONCE", 2)
    for number in range(5):
        (tmp_path / "job" / f"{number}" / "deep").mkdir(parents=True)
        (tmp_path / "job" / f"{number}" / "file").write_text("")
    folder.remove("job")
    assert list(tmp_path.iterdir()) == []


def test_json_with_a_second_name_is_refused(folder: UntrustedFolder, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    assert folder.read_json("x") == {}
    (tmp_path / "y").hardlink_to(tmp_path / "x")
    with pytest.raises(FolderError, match="has 2 names"):
        folder.read_json("x")
