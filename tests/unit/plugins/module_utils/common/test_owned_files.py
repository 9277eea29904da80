# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files of a role on a node: real ones, in a temporary folder, with the owner that the test has."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import owned_files
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.owned_files import OwnedFileError, apply

MINE = {"owner": os.getuid(), "group": os.getgid()}


def make(path: Path, content: str | None = None, mode: str = "0644", state: str = "present", **other: Any) -> None:
    apply({"path": str(path), "content": content, "mode": mode, "state": state, **MINE, **other})


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    make(path, "first ü\n", "0640")
    assert (path.read_text("utf-8"), mode_of(path)) == ("first ü\n", 0o640)
    make(path, "", "0755")
    assert (path.read_text("utf-8"), mode_of(path)) == ("", 0o755)
    assert [found.name for found in tmp_path.iterdir()] == ["a.conf"]


def test_no_one_else_can_read_a_secret_before_it_has_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = owned_files._give

    def give(path: Path, *attributes: int) -> None:
        seen.append(mode_of(path))
        real(path, *attributes)

    monkeypatch.setattr(owned_files, "_give", give)
    make(tmp_path / "key", "secret\n", "0600")
    assert seen == [0o600]


def test_the_former_file_stays_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.conf"
    make(path, "first\n")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OwnedFileError) as caught:
        make(path, "second\n")
    assert str(caught.value) == f"{path}: cannot be written: No space left on device. Remedy: free space on its disk"
    assert path.read_text("utf-8") == "first\n"
    assert [found.name for found in tmp_path.iterdir()] == ["a.conf"]


def test_a_link_is_replaced_and_not_what_it_points_to(tmp_path: Path) -> None:
    target, link = tmp_path / "theirs", tmp_path / "ours"
    target.write_text("theirs\n")
    link.symlink_to(target)
    make(link, "ours\n")
    assert target.read_text() == "theirs\n"
    assert link.read_text() == "ours\n" and not link.is_symlink()


def test_directories_are_made_with_their_parents_and_get_their_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    make(path, mode="0700")
    assert (mode_of(path), mode_of(path.parent)) == (0o700, 0o700)
    path.parent.chmod(0o755)
    make(path, mode="0750")
    assert (mode_of(path), mode_of(path.parent)) == (0o750, 0o755)


def test_a_file_is_removed_and_one_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("x")
    make(path, "", state="absent")
    make(path, "", state="absent")
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "a.conf"
    folder.mkdir()
    with pytest.raises(OwnedFileError) as caught:
        make(folder, "x")
    assert str(caught.value) == f"{folder}: is a directory, where a file is wanted. Remedy: move it away"
    with pytest.raises(OwnedFileError, match=r"cannot be removed: Is a directory\. Remedy: correct that on the host"):
        make(folder, "", state="absent")
    with pytest.raises(OwnedFileError, match="cannot be written: No such file or directory"):
        make(tmp_path / "none" / "a.conf", "x")
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(OwnedFileError, match=r"cannot be written: (File exists|Not a directory)"):
        make(file / "below", mode="0700")
    with pytest.raises(OwnedFileError, match="cannot be written: File exists"):
        make(file, mode="0700")
