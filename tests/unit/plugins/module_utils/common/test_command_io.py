# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Running one reading command: every way it can end is a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import (
    NOT_STARTED,
    TIMED_OUT,
    CommandResult,
    find_program,
    run_program,
)


def test_outputs_status_and_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("KEPT", "yes")
    done = run_program(["sh", "-c", 'echo "$LC_ALL $KEPT"; echo trouble >&2; exit 3'], 10)
    assert done == CommandResult(3, "C yes\n", "trouble\n")
    assert done.text == "C yes\ntrouble"


def test_bytes_that_are_no_text_do_not_crash() -> None:
    assert run_program(["printf", r"a\377b"], 10) == CommandResult(0, "a\ufffdb", "")


def test_a_command_that_hangs_is_ended() -> None:
    assert run_program(["sleep", "60"], 0.2) == CommandResult(TIMED_OUT, "", "no answer within 0.2 seconds")


def test_a_command_that_cannot_start(tmp_path: Path) -> None:
    done = run_program([str(tmp_path / "nothing")], 10)
    assert done.rc == NOT_STARTED
    assert "No such file or directory" in done.stderr


def test_it_reads_no_input() -> None:
    assert run_program(["cat"], 10) == CommandResult(0, "", "")


def test_sbin_is_searched_also_without_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("sh") in ("/usr/bin/sh", "/bin/sh")
    assert find_program("no-such-program-at-all") is None
    own = tmp_path / "sh"
    own.write_text("#!/bin/sh\n", encoding="utf-8")
    own.chmod(0o755)
    assert find_program("sh") == str(own)
