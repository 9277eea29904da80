# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What pytest is told and asked in one run: which tests in which order, what they reach, and which fails first."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

_STARTS = frozenset(["os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"])
"""Audit events of a test that starts a process, in which a mutant may act unseen."""


class Outcome:
    """The tests that passed, with their seconds, and the first that did not. ``running`` gets the one that runs."""

    def __init__(self, running: Path) -> None:
        self._running = running
        self.passed: dict[str, float] = {}
        self.failed = ""
        self.collected = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (cannot be imported)"

    def pytest_collection_finish(self) -> None:
        self.collected = True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.write_text(nodeid, encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
        elif report.passed:
            self.passed[report.nodeid] = self.passed.get(report.nodeid, 0.0) + report.duration


class Order:
    """Runs the tests that are wanted, in their order. A failure is reported as it is found: no smaller example."""

    def __init__(self, wanted: Sequence[str] | None) -> None:
        self._wanted = wanted

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        phases = [phase for phase in settings().phases if phase not in (Phase.shrink, Phase.explain)]
        settings.register_profile("mutants", settings(), phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._wanted is not None:
            places = {name: place for place, name in enumerate(self._wanted)}
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])


class Reach:
    """Which tests execute which lines of some modules, and which start processes."""

    def __init__(self, root: Path, modules: Sequence[str]) -> None:
        self._modules = {str(root / module): module for module in modules}
        self._test = ""
        self.lines: dict[str, dict[int, set[str]]] = {module: {} for module in modules}
        self.starting: set[str] = set()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _arguments: Any) -> None:
        if event in _STARTS and self._test:
            self.starting.add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = item.nodeid
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self._test = ""

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        module = self._module(frame.f_code.co_filename)
        if module is None:
            return None
        lines, test = self.lines[module], self._test

        def line(inner: FrameType, _event: str, _argument: Any) -> Any:
            lines.setdefault(inner.f_lineno, set()).add(test)
            return line

        return line(frame, _event, _argument)

    def _module(self, path: str) -> str | None:
        if path not in self._modules:
            # Once a path: through the link of the collection it has another name.
            real = str(Path(path).resolve()) if "/swarmspeed/cluster/" in path else ""
            self._modules[path] = self._modules.get(real, "")
        return self._modules[path] or None


def run(tests: Sequence[str], temporary: Path, plugins: Sequence[object]) -> float:
    """Run pytest in this process until the first failure; return the seconds."""
    began = time.monotonic()
    pytest.main(["-x", "-q", f"--basetemp={temporary}", *tests], plugins=list(plugins))
    return time.monotonic() - began
