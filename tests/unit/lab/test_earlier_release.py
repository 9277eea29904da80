# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The tree of an earlier release comes out of the history, and a clone that lacks it is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.tests.earlier_release import COMMIT, MissingReleaseError, unpack


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *author, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_tree_is_that_of_the_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "clone")
    clone = tmp_path / "clone"
    for text in ("earlier", "later"):
        (clone / "file").write_text(text, encoding="utf-8")
        git(clone, "add", "file")
        git(clone, "commit", "--quiet", "--message", text)
    tree = unpack(tmp_path / "tree", git(clone, "rev-parse", "HEAD~1"), clone)
    assert (tree / "file").read_text(encoding="utf-8") == "earlier"
    assert sorted(path.name for path in tree.iterdir()) == ["file"]
    with pytest.raises(MissingReleaseError) as caught:
        unpack(tmp_path / "none", COMMIT, clone)
    assert str(caught.value) == (
        "This clone lacks commit 6074c8e3, the release to upgrade from. Remedy: git fetch --unshallow origin"
    )
    assert not (tmp_path / "none").exists()
