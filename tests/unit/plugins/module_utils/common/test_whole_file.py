# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A file is written whole, or it stays as it was and nothing unfinished lies beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.whole_file import whole_file, write_whole


def test_a_file_is_replaced_at_once_and_is_for_this_account_alone(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"n\xc3\xa4w")
        file.flush()
        assert path.read_text(encoding="utf-8") == "old"
        assert Path(file.name).parent == tmp_path and os.fstat(file.fileno()).st_mode & 0o077 == 0
    assert (path.read_text(encoding="utf-8"), oct(path.stat().st_mode & 0o777)) == ("n\u00e4w", "0o600")
    write_whole(path, "n\u00f6w")
    assert path.read_bytes() == b"n\xc3\xb6w"
    with whole_file(path, 0o644, durable=True) as file:
        file.write(b"for all")
    assert (path.read_text(), oct(path.stat().st_mode & 0o777)) == ("for all", "0o644")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_is_not_finished_is_removed_and_what_was_there_stays(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "list.json"
    path.write_text("old")
    with pytest.raises(type(error)), whole_file(path) as file:
        file.write(b"half")
        raise error
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_link_in_its_place_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "list.json"
    elsewhere.write_text("of somebody else")
    path.symlink_to(elsewhere)
    write_whole(path, "mine")
    assert (elsewhere.read_text(), path.is_symlink(), path.read_text()) == ("of somebody else", False, "mine")
