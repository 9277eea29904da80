# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue to dpkg: its locks as real processes hold them, its journal, and commands that end or do not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt import dpkg_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.dpkg_io import SystemDpkg
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import NOT_STARTED, TIMED_OUT

_HOLD = (
    "import fcntl, sys; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); input()"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "updates").mkdir()
    for name in ("lock", "lock-frontend"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture(params=["lock", "lock-frontend"])
def held(root: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """Hold one of the locks in another process, as dpkg does."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, root / request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_a_lock_is_seen_while_it_is_held_and_not_taken(root: Path, held: subprocess.Popen[bytes]) -> None:
    assert SystemDpkg(str(root)).locked() is True
    held.communicate(b"\n", timeout=10)
    assert SystemDpkg(str(root)).locked() is False


def test_a_host_without_dpkg_has_no_lock_and_no_journal(tmp_path: Path) -> None:
    host = SystemDpkg(str(tmp_path / "none"))
    assert (host.locked(), host.updates()) == (False, [])


def test_the_journal_is_listed(root: Path) -> None:
    (root / "updates" / "0000").touch()
    (root / "updates" / "tmp.i").touch()
    assert SystemDpkg(str(root)).updates() == ["0000", "tmp.i"]


def test_a_command_asks_nothing() -> None:
    answer = SystemDpkg().change(("sh", "-c", "echo $DEBIAN_FRONTEND; echo trouble >&2; read x || exit 3"), 10)
    assert (answer.rc, answer.stdout) == (3, "noninteractive\ntrouble\n")


def test_a_command_that_does_not_end_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpkg_io, "GRACE", 0.2)
    mark = tmp_path / "alive"
    # Deaf to SIGTERM, as is what it started.
    script = f"trap '' TERM; (while :; do touch {mark}; sleep 0.05; done) & wait"
    assert SystemDpkg().change(("sh", "-c", script), 0.3).rc == TIMED_OUT
    mark.unlink()
    time.sleep(0.3)
    assert not mark.exists()


def test_a_program_that_is_not_there() -> None:
    assert SystemDpkg().change(("no-such-program",), 1).rc == NOT_STARTED
