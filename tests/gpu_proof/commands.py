# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run a program of a proof with a time limit, and read the JSON that it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.gpu_proof.environment import ENVIRONMENT, variables
from tests.gpu_proof.parts import Failed
from tests.gpu_proof.paths import CACHE, HERE

JOB = HERE / "job"
PYTHON = str(ENVIRONMENT / "bin" / "python3")
EXTENSIONS = CACHE / "extensions"


def run(command: Sequence[str], limit: float, *, extra: Mapping[str, str] | None = None, cwd: Path = JOB) -> str:
    """Return what it printed. Raises Failed with the last line of that; ends all its processes at the limit."""
    code, printed = attempt(command, limit, extra=extra, cwd=cwd)
    if code:
        raise Failed(f"{Path(command[0]).name} ended with {code}: {final_lines(printed)}")
    return printed


def attempt(
    command: Sequence[str], limit: float, *, extra: Mapping[str, str] | None = None, cwd: Path = JOB
) -> tuple[int, str]:
    """Return its exit status and what it printed. Raises Failed only where it does not end in time."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**variables(), **(extra or {})},
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        printed = output.read()
    if code is None:
        raise Failed(f"{Path(command[0]).name} took longer than {limit:.0f} s; last it printed: {final_lines(printed)}")
    return code, printed


def python(
    script: str, arguments: Sequence[str], limit: float, extra: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a script of job/ with the proof's Python; return what it wrote to the file that is its last argument."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        run([PYTHON, str(JOB / script), *arguments, str(result)], limit, extra=extra)
        return read(result)


def read(result: Path) -> dict[str, Any]:
    """Return what a program left. Raises Failed where it left nothing."""
    try:
        found = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failed(f"no result was written: {error}") from error
    if not isinstance(found, dict):
        raise Failed("the result is no mapping")
    return found


def final_lines(text: str) -> str:
    """Return the line that tells most: the last error, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("[ERROR]: ")]  # Ansible's own sentence says more than "fatal:"
    if named:
        return named[-1][:300]
    errors = [line for line in lines if "Error" in line or "ERROR" in line or line.startswith("fatal:")]
    return (errors or lines or ["nothing"])[-1][:300]
