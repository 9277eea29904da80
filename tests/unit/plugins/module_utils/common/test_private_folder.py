# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.private_folder import make_private


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(*folders: Path) -> list[str]:
    return [f"{folder.stat().st_mode & 0o777:o}" for folder in folders]


def test_the_folder_and_the_one_above_it_are_for_root_only(tmp_path: Path) -> None:
    base, root = tmp_path / "srv", tmp_path / "srv/lab"
    make_private(root / "transfer")
    # Of the folder above both others may have something, too.
    assert modes(base, root, root / "transfer") == ["755", "700", "700"]


def test_folders_that_exist_stay_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    root.mkdir(mode=0o755)
    make_private(root / "transfer")
    make_private(root / "transfer")
    assert modes(root, root / "transfer") == ["755", "700"]
