# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reading and writing below a folder that others can write: what is ordinary. Attacks are in tests/adversary."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import empty_folder, untrusted_folder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
)


class Counted:
    """A list of a folder that counts what is read of it."""

    original: Any = staticmethod(os.scandir)
    read: ClassVar[list[int]] = []

    def __init__(self, handle: int) -> None:
        self._found = self.original(handle)
        self.read.append(0)

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_what: object) -> None:
        self._found.close()

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> os.DirEntry[str]:
        entry: os.DirEntry[str] = next(self._found)
        self.read[-1] += 1
        return entry


@pytest.fixture(autouse=True)
def nothing_read() -> None:
    Counted.read.clear()


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
    (tmp_path / "z").write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Counted)
        with pytest.raises(FolderError, match="holds more than 1 names"):
            folder.entries()
    assert Counted.read == [2]


def test_removing_needs_no_list_of_everything_at_once(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(empty_folder, "AT_ONCE", 2)
    for number in range(5):
        (tmp_path / "job" / f"{number}" / "deep").mkdir(parents=True)
        (tmp_path / "job" / f"{number}" / "file").write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Counted)
        folder.remove("job")
    assert list(tmp_path.iterdir()) == [] and max(Counted.read) == 2


def test_json_with_a_second_name_is_refused(folder: UntrustedFolder, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    assert folder.read_json("x") == {}
    (tmp_path / "y").hardlink_to(tmp_path / "x")
    with pytest.raises(FolderError, match="has 2 names"):
        folder.read_json("x")


def test_the_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is done by the handle of a folder: a call without it would mean what lies where Ansible was started."""
    root, here = tmp_path / "root", tmp_path / "here"
    for place in (root, here):
        for name in ("a", "deep/inner", "deep"):
            (place / name).mkdir(parents=True, exist_ok=True)
            (place / name / "file").write_text("1")
    monkeypatch.chdir(here)
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    folder = UntrustedFolder(root)
    folder.write("a/new", b"2")
    (root / "a/only").write_text("333")
    assert (folder.read("a/only"), folder.kind("a/only")) == (b"333", "a plain file")
    assert folder.entries("a") == dict.fromkeys(("file", "new", "only"), "a plain file")
    folder.make_folder("a/b/c")
    folder.rename("a/only", "deep/only")
    assert (root / "deep/only").is_file() and (root / "a/b/c").is_dir()
    folder.remove("a/file")
    folder.remove("deep")
    assert not (root / "deep").exists() and not (root / "a/file").exists()
    assert {path: path.stat().st_mtime_ns for path in here.rglob("*")} == before


def test_what_the_system_refuses_is_an_error_of_ours(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    (tmp_path / "file").write_text("")
    for act in (
        lambda: folder.write("full", b""),
        lambda: folder.rename("file", "full"),
        lambda: folder.make_folder("file/below"),
        lambda: folder.entries("file"),
    ):
        with pytest.raises(FolderError, match="cannot be used"):
            act()
    with pytest.raises(FolderError, match=r"/file cannot be opened: Not a directory"):
        UntrustedFolder(tmp_path / "file").entries()

    def busy(*_arguments: object, **_more: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "unlink", busy)
    with pytest.raises(FolderError, match="cannot be used: Device or resource busy"):
        folder.remove("file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_a_folder_that_never_gets_empty_is_an_error(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy/x").write_text("")
    monkeypatch.setattr(empty_folder, "ROUNDS", 1)
    with pytest.raises(FolderError, match="is written while it is removed; stop the container first"):
        folder.remove("busy")


def test_an_error_of_a_caller_that_is_one_of_the_system_says_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AssetError(OSError):
        pass

    monkeypatch.setattr(untrusted_folder, "empty_folder", lambda _handle: False)
    (tmp_path / "full").mkdir()
    with pytest.raises(AssetError, match="is written while it is removed; stop the container first"):
        UntrustedFolder(tmp_path, AssetError).remove("full")


@pytest.mark.parametrize(
    "name", ["..", "a/../b", "/a", "a//b", "a/", "a\0b", ".", "n" * 256, "a/" + "é" * 128, "\ud800"]
)
def test_what_is_no_path_below_the_folder_is_refused(folder: UntrustedFolder, name: str) -> None:
    for act in (folder.read, folder.kind, folder.entries, folder.remove, folder.make_folder):
        with pytest.raises(FolderError, match="is not a path below"):
            act(name)


def test_the_folder_itself_is_not_read_or_removed(folder: UntrustedFolder, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    for act in (
        folder.read,
        folder.remove,
        lambda name: folder.write(name, b""),
        lambda name: folder.rename("x", name),
    ):
        with pytest.raises(FolderError, match="itself is not to be read or replaced"):
            act("")
    assert (folder.kind(""), folder.entries("")) == ("a folder", {"x": "a plain file"})


@pytest.mark.parametrize(("text", "words"), [("[1]", "does not hold a mapping"), ("{", "cannot be read: ")])
def test_json_that_is_no_mapping_is_an_error(folder: UntrustedFolder, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(FolderError, match=words):
        folder.read_json("x")


def test_a_file_that_grows_while_it_is_read_is_too_large(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is checked before and after; what is read between is no more than one byte beyond the limit."""
    sizes: list[int] = []
    original = UntrustedFolder.open

    def growing(self: UntrustedFolder, name: str) -> object:
        file = original(self, name)
        assert file is not None

        class Grows(io.BufferedReader):
            def read(self, size: int | None = -1, /) -> bytes:
                sizes.append(-1 if size is None else size)
                with (tmp_path / "x").open("ab") as more:
                    more.write(b"y" * 100)
                return super().read(size)

        return Grows(io.FileIO(os.dup(file.fileno())))

    (tmp_path / "x").write_bytes(b"1234")
    monkeypatch.setattr(UntrustedFolder, "open", growing)
    with pytest.raises(FolderError, match="is larger than 8 bytes"):
        folder.read("x", 8)
    assert sizes == [9]


def test_a_digest_reads_by_pieces_and_no_further_than_the_file_was(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = UntrustedFolder.open

    def counted(self: UntrustedFolder, name: str) -> object:
        file = original(self, name)
        assert file is not None

        class Counts(io.BufferedReader):
            def read(self, size: int | None = -1, /) -> bytes:
                sizes.append(-1 if size is None else size)
                with (tmp_path / "x").open("ab") as more:
                    more.write(b"more")
                return super().read(size)

        return Counts(io.FileIO(os.dup(file.fileno())))

    (tmp_path / "x").write_bytes(b"x" * ((1 << 20) + 5))
    monkeypatch.setattr(UntrustedFolder, "open", counted)
    assert folder.digest("x") == hashlib.sha256(b"x" * ((1 << 20) + 5)).hexdigest()
    assert sizes == [1 << 20, 5]


def test_folders_among_any_number_of_names(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a1", "a2", "b1"):
        (tmp_path / name).mkdir()
    (tmp_path / "a3").write_text("")
    (tmp_path / "a4").symlink_to("b1")
    assert folder.folders(2, lambda name: name.startswith("a")) == (["a1", "a2"], True)
    names, whole = folder.folders(2, lambda _name: True)
    assert (len(names), whole) == (2, False)
    assert UntrustedFolder(tmp_path / "none").folders(2, lambda _name: True) == ([], True)
    monkeypatch.setattr(untrusted_folder, "MOST_READ", 4)
    assert folder.folders(10, lambda _name: False) == ([], False)


@pytest.mark.parametrize("which", ["x", "/proc/self/fd/"])
def test_a_disk_that_fails_is_an_error_of_ours(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    (tmp_path / "x").write_text("")
    original = os.open

    def fails(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).startswith(which):
            raise OSError(5, "Input/output error")
        return original(path, *arguments, **more)

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(FolderError, match="/x cannot be used: Input/output error"):
        folder.read("x")


def test_a_second_name_leaves_no_third(folder: UntrustedFolder, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "x").write_text("1")
    for _again in range(2):
        file = folder.open("x")
        assert file is not None
        with file:
            folder.link("a/y", file)
    assert folder.entries("a") == {"y": "a plain file"}
    assert (tmp_path / "a/y").samefile(tmp_path / "x")


def test_a_file_that_is_gone_before_it_is_read_is_none(
    folder: UntrustedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("{}")
    original = UntrustedFolder.read

    def gone(self: UntrustedFolder, name: str, *limit: int) -> bytes | None:
        (tmp_path / "x").unlink()
        return original(self, name, *limit)

    monkeypatch.setattr(UntrustedFolder, "read", gone)
    assert folder.read_json("x") is None


def test_no_handle_stays_open(folder: UntrustedFolder, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_text("{}")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - of this process
    for name in ("", "a", "a/x", "a/none", "none/x"):
        folder.status(name)
        folder.kind(name)
    folder.read("a/x")
    folder.read_json("a/x")
    folder.digest("a/x")
    folder.write("a/y", b"")
    folder.entries("a")
    folder.remove("a")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
