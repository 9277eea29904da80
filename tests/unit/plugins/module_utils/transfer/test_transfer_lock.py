# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The lock of a spool, held by an open file of this process in place of another transfer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import lock


def test_who_holds_it_is_known_as_long_as_it_is_held(tmp_path: Path) -> None:
    assert lock.held_by(tmp_path) == {}
    held = lock.take(tmp_path)
    assert lock.held_by(tmp_path) == {"pid": "?"}  # it has not written yet
    lock.write(held, {"pid": 77, "since": "11:40:12 UTC"})
    lock.write(held, {"pid": 8})
    assert lock.held_by(tmp_path) == {"pid": 8}
    with pytest.raises(BlockingIOError):
        lock.take(tmp_path)
    os.close(held)
    # What it wrote stays in the file, and counts for nothing.
    assert lock.held_by(tmp_path) == {} and lock.holder(tmp_path) == {"pid": 8}
    os.close(lock.take(tmp_path))
