# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A build in the background, with shell commands in place of docker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_build.runner import BuildError, gather, start


def until_over(folder: Path) -> dict[str, Any]:
    for dummy in range(500):
        found = gather(folder, 0)
        if not found["running"]:
            return found
        time.sleep(0.02)
    raise AssertionError("the build did not end")


def test_log_and_exit_status(tmp_path: Path) -> None:
    assert start(
        tmp_path / "b", "team/x:1", ["sh", "-c", "echo $GREETING; echo two >&2; exit 3"], {"GREETING": "hello"}
    )
    found = until_over(tmp_path / "b")
    assert (found["rc"], found["text"], found["offset"], found["size"]) == (3, "hello\ntwo\n", 10, 10)
    assert gather(tmp_path / "b", 6)["text"] == "two\n"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o700


def test_the_same_build_is_followed_and_another_refused(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    wait = ["sh", "-c", f"read x <'{gate}'"]
    assert start(tmp_path / "b", "team/x:1", wait, {})
    try:
        assert gather(tmp_path / "b", 0)["running"]
        assert gather(tmp_path / "b", 0)["rc"] is None
        assert not start(tmp_path / "b", "team/x:1", ["false"], {})
        with pytest.raises(
            BuildError, match=r"another build \(team/x:1\) is running there\. Remedy: wait until it has"
        ):
            start(tmp_path / "b", "team/x:2", ["false"], {})
    finally:
        gate.write_text("go\n")
    assert until_over(tmp_path / "b")["rc"] == 0


def test_a_build_that_was_killed(tmp_path: Path) -> None:
    start(tmp_path / "b", "team/x:1", ["sh", "-c", "echo $PPID; exec sleep 60"], {})
    while not gather(tmp_path / "b", 0)["text"].endswith("\n"):
        time.sleep(0.02)
    os.killpg(int(gather(tmp_path / "b", 0)["text"]), signal.SIGKILL)
    assert until_over(tmp_path / "b")["rc"] == 137


def test_a_later_build_begins_its_own_log(tmp_path: Path) -> None:
    start(tmp_path / "b", "team/x:1", ["false"], {})
    assert until_over(tmp_path / "b")["rc"] == 1
    start(tmp_path / "b", "team/x:2", ["echo", "new"], {})
    found = until_over(tmp_path / "b")
    assert (found["rc"], found["text"]) == (0, "new\n")


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="lock"):
        start(tmp_path / "b", "team/x:1", ["true"], {})
    assert not (tmp_path / "other").exists()
