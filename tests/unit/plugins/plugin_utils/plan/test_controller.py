# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What planners read of the controller beside texts of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import (
    DIGEST,
    NAMES,
    REAL,
    TEXT,
    TREE,
    read,
    split_kind,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.whl", "a.whl", ".hidden", "sub/c.whl", ".git/index"):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() + b"\r\n")
    return tmp_path / "x"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("/a/b", ("", "/a/b")),
        ("role:host/files/x", ("", "role:host/files/x")),
        (f"{TEXT}role:host/files/x", (TEXT, "role:host/files/x")),
        (f"{NAMES}/a", (NAMES, "/a")),
        (f"{REAL}/a", (REAL, "/a")),
        (f"{DIGEST}~/a", (DIGEST, "~/a")),
        (f"{TREE}a:b", (TREE, "a:b")),
    ],
)
def test_a_name_says_how_it_is_read(name: str, wanted: tuple[str, str]) -> None:
    assert split_kind(name) == wanted


def test_what_is_read(folder: Path) -> None:
    assert read(NAMES, str(folder)) == "a.whl\nb.whl"
    assert read(TEXT, f"{folder}/a.whl") == "a.whl\r\n"
    assert read(DIGEST, f"{folder}/a.whl") == hashlib.sha256(b"a.whl\r\n").hexdigest()
    (folder / "link").symlink_to(folder / "sub")
    assert read(REAL, f"{folder}/link/c.whl") == str((folder / "sub/c.whl").resolve())
    assert list(json.loads(read(TREE, str(folder)))) == [".hidden", "a.whl", "b.whl", "sub/c.whl"]


def test_a_relative_path_starts_where_the_playbook_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(folder.parent))
    monkeypatch.setenv("HOME", str(folder))
    assert read(TEXT, "x/a.whl") == read(TEXT, "~/a.whl") == "a.whl\r\n"


@pytest.mark.parametrize("kind", [NAMES, TEXT, REAL, DIGEST, TREE])
def test_what_is_not_there_is_an_error(folder: Path, kind: str) -> None:
    with pytest.raises(OSError, match="gone"):
        read(kind, f"{folder}/gone")
