# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs tests in a copy of the checkout, each time in a process of its own that has imported all but the collection.

Speaks JSON lines with tests/mutants/campaign.py. Whatever a test with a mutant leaves running is killed: this process
inherits what its descendants leave behind, and has no other children.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mutants.checkout import Mutated
from tests.mutants.watch import Order, Outcome, Reach, run

_PR_SET_CHILD_SUBREAPER = 36
_MEMORY = 6 << 30
"""Address space of a process: a mutant without its bound may read for ever."""


class Worker:
    """``root`` is the copy."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def reach(self, modules: list[str], tests: list[str]) -> dict[str, Any]:
        """Run tests as they are, and report what each of them reaches."""

        def child(place: Path) -> dict[str, Any]:
            known = set(sys.modules)
            outcome, reach = Outcome(place / "running"), Reach(self.root, modules)
            run(tests, place / "tests", [Order(None), outcome, reach])
            return {
                "failed": sorted(set(outcome.failures)),
                "collected": outcome.collected,
                "passed": {test: seconds for test, seconds in outcome.passed.items() if test not in outcome.failures},
                "starting": sorted(reach.starting),
                "lines": {
                    module: {line: sorted(found) for line, found in lines.items()}
                    for module, lines in reach.lines.items()
                },
                "imported": [name for name in sys.modules if name not in known and self._foreign(name)],
            }

        return self._apart(child, 1200.0)

    def _foreign(self, name: str) -> bool:
        """Whether a module is of Python or of a library, and can be imported once for all."""
        path = str(getattr(sys.modules[name], "__file__", None) or "")
        return bool(path) and not path.startswith(str(self.root)) and not name.startswith("ansible_collections")

    def warm(self, names: list[str]) -> dict[str, Any]:
        """Import what the tests import of others, before they run."""
        with warnings.catch_warnings(action="ignore"):
            for name in names:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        return {}

    def mutant(self, module: str, source: str, tests: list[str], limit: float) -> dict[str, Any]:
        """Run tests with another source of a module."""

        def child(place: Path) -> dict[str, Any]:
            outcome = Outcome(place / "running")
            run(sorted({test.partition("::")[0] for test in tests}), place / "tests", [Order(tests), outcome], "-x")
            return {
                "failed": "".join(outcome.failures[:1]),
                "collected": outcome.collected,
                "passed": list(outcome.passed),
            }

        with Mutated(self.root / module, source.encode()):
            return self._apart(child, limit)

    def _apart(self, work: Callable[[Path], dict[str, Any]], limit: float) -> dict[str, Any]:
        """What ``work`` returns in a process of its own; nothing where it does not end by itself in time."""
        with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as name:
            place = Path(name)
            began = time.monotonic()
            pid = os.fork()
            if not pid:
                _child(place, work)
            try:
                late = not _ended(pid, began + limit)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                _bury_all()
            found = json.loads(_text(place / "result") or "{}")
            words = {"output": _text(place / "output")[-3000:], "running": _text(place / "running")}
            return {"late": late, **words, **found, "wall": time.monotonic() - began}


def _child(place: Path, work: Callable[[Path], dict[str, Any]]) -> None:
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for name in ("home", "tmp"):
            (place / name).mkdir()
        os.environ.update(HOME=str(place / "home"), TMPDIR=str(place / "tmp"))
        tempfile.tempdir = None
        sys.dont_write_bytecode = False
        output = os.open(place / "output", os.O_WRONLY | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, number in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, number)
        found = work(place)
        beside = place / "result.new"
        beside.write_text(json.dumps(found), encoding="utf-8")
        beside.rename(place / "result")
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _ended(pid: int, until: float) -> bool:
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    return False


def _bury_all() -> None:
    """Kill and collect what is left: every child is one of the tests', or was left behind by one of theirs."""
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
        if not children:
            return
        for child in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def main() -> None:
    worker = Worker(Path.cwd())
    # The tests have other places for what they print.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    shutil.rmtree(worker.root / ".hypothesis", ignore_errors=True)
    for line in sys.stdin:
        request = json.loads(line)
        act = getattr(worker, request.pop("act"))
        print(json.dumps(act(**request)), file=replies, flush=True)


if __name__ == "__main__":
    main()
