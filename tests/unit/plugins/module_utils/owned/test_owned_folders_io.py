# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders that change while they are used, and the record with its folders: on real folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned import folders_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.folders_io import (
    NAME,
    OwnedError,
    SystemFolders,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.record import Entry, Found, Identity, parse

RECORD = {"/srv/x": Entry(Identity(1, 2), ours=True)}


@pytest.fixture
def folders(tmp_path: Path) -> SystemFolders:
    return SystemFolders("lab", str(tmp_path / "records"))


@pytest.fixture
def open_umask() -> Iterator[None]:
    """One under which a mode that is not given lets everybody write."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def found(folders: SystemFolders, path: Path) -> Found:
    one = folders.find(str(path))
    assert one is not None
    return one


@pytest.mark.parametrize("cluster", ["", "../x", "a/b", "A", "-a", "a\n", "x" * 64])
def test_a_name_of_a_cluster_is_no_path(cluster: str) -> None:
    with pytest.raises(OwnedError) as caught:
        SystemFolders(cluster)
    assert str(caught.value) == f"cluster: {cluster!r} is not a valid name of a cluster. Remedy: give cluster_name."


def test_a_link_that_takes_the_place_of_a_folder_meanwhile_is_not_followed(
    folders: SystemFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    monkeypatch.setattr(os.path, "realpath", lambda path: path)  # it was none when its path was resolved
    with pytest.raises(
        OwnedError, match=r"link cannot be opened: it is not a folder\. Remedy: correct the path, remove"
    ):
        folders.find(str(tmp_path / "link"))


@pytest.mark.parametrize("act", ["empty", "remove_empty"])
def test_a_folder_that_was_replaced_meanwhile_is_left_alone(folders: SystemFolders, tmp_path: Path, act: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    before = found(folders, place)
    place.rename(tmp_path / "kept")  # so that its inode stays taken
    place.mkdir()
    if act == "empty":
        (place / "mine").write_text("mine")
    with pytest.raises(OwnedError) as caught:
        getattr(folders, act)(before)
    assert str(caught.value) == f"{place} was replaced meanwhile. Remedy: find out by whom, and run again."
    assert list(place.iterdir()) == ([place / "mine"] if act == "empty" else [])


def test_a_folder_that_is_gone_meanwhile_is_removed(folders: SystemFolders, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    before = found(folders, tmp_path / "place")
    (tmp_path / "place").rmdir()
    folders.empty(before)
    assert folders.remove_empty(before)


def busy(_handle: int) -> bool:
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


@pytest.mark.parametrize(
    ("emptied", "text"),
    [
        (lambda _handle: False, "is written while it is emptied. Remedy: stop what writes there, and run again."),
        (
            busy,
            "cannot be emptied: Device or resource busy. Remedy: unmount what is mounted in it, and run again.",
        ),
    ],
)
def test_a_folder_that_cannot_be_emptied_is_an_error(
    folders: SystemFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emptied: Callable[[int], bool], text: str
) -> None:
    monkeypatch.setattr(folders_io, "empty_folder", emptied)
    with pytest.raises(OwnedError) as caught:
        folders.empty(found(folders, tmp_path))
    assert str(caught.value) == f"{tmp_path} {text}"


@pytest.mark.usefixtures("open_umask")
def test_a_folder_that_is_made_is_for_root_until_it_is_recorded(folders: SystemFolders, tmp_path: Path) -> None:
    made = folders.create(str(tmp_path / "above" / "place"))
    assert made.real == str(tmp_path / "above" / "place") and made.is_empty
    assert (mode(tmp_path / "above"), mode(tmp_path / "above" / "place")) == ("0o755", "0o700")


def test_a_folder_that_cannot_be_made_is_an_error(
    folders: SystemFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OwnedError) as caught:
        folders.create(str(tmp_path / "file" / "place"))
    assert str(caught.value).startswith(f"{tmp_path}/file/place cannot be made: ")
    assert str(caught.value).endswith(". Remedy: correct the path, or use become.")
    monkeypatch.setattr(folders, "find", lambda path: None)
    with pytest.raises(OwnedError) as caught:
        folders.create(str(tmp_path / "place"))
    assert str(caught.value) == f"{tmp_path}/place is gone again. Remedy: find out who removes it, and run again."


@pytest.mark.usefixtures("open_umask")
def test_the_folders_of_the_record_are_written_by_root_alone(folders: SystemFolders, tmp_path: Path) -> None:
    folders.write(RECORD)
    assert folders.read() == RECORD
    place = tmp_path / "records"
    assert (mode(place), mode(place / "lab"), mode(place / "lab" / NAME)) == ("0o755", "0o700", "0o600")
    (place / "lab").chmod(0o755)  # of an earlier release
    folders.write(RECORD)
    assert mode(place / "lab") == "0o700"
    folders.write({})
    assert not place.exists()


@pytest.mark.parametrize("which", ["", "lab"])
def test_a_folder_of_the_record_that_is_a_link_is_refused(folders: SystemFolders, tmp_path: Path, which: str) -> None:
    folders.write(RECORD)
    place = tmp_path / "records" / which
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        OwnedError, match=r"must be a folder of root that no one else can write: it records which folders"
    ):
        folders.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_the_record_that_is_another_accounts_is_refused(folders: SystemFolders, tmp_path: Path) -> None:
    folders.write(RECORD)
    os.chown(tmp_path / "records" / "lab", 4001, 4001)
    with pytest.raises(
        OwnedError, match=r"It is owned by 4001, mode 0700\. Remedy: find out who changed it, then chown"
    ):
        folders.read()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Identity(1, 2, "5.0"), Identity(9, 2, "5.0"), True),  # devices get other numbers when a host starts
        (Identity(1, 2, "5.0"), Identity(1, 2, "6.0"), False),
        (Identity(1, 2, "5.0"), Identity(1, 3, "5.0"), False),
        (Identity(1, 2, "5.0"), Identity(1, 2, ""), True),
        (Identity(1, 2, ""), Identity(1, 2, "5.0"), True),
        (Identity(1, 2, ""), Identity(9, 2, ""), False),
    ],
)
def test_which_folder_it_is(one: Identity, other: Identity, same: bool) -> None:
    assert one.is_same(other) is same


def test_a_record_that_cannot_be_looked_at_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OwnedError) as caught:
        SystemFolders("lab", str(tmp_path / "file" / "records")).read()
    assert str(caught.value) == f"{tmp_path}/file/records cannot be read: Not a directory. Remedy: use become."


@pytest.mark.parametrize("ours", ['"false"', "0", "null", "[]"])
def test_a_record_says_yes_or_no_of_each_folder(ours: str) -> None:
    def text(value: Any) -> str:
        entry = f'{{"ours": {value}, "device": 1, "inode": 2, "born": ""}}'
        return f'{{"version": 1, "folders": {{"/srv/x": {entry}}}}}'

    assert parse(text("true")) == RECORD
    assert parse(text(ours)) == {}
