# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What pytest does in one run: which tests in which order, what they reach, and which fails first."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import Phase, settings

_FORKS = frozenset(["os.fork", "os.forkpty"])
_STARTS = frozenset(["os.posix_spawn", "subprocess.Popen"])
"""Audit events of a test that starts a process, in which a mutant may act unseen where it is a Python."""
PROBE = "_a_statement_is_reached"


class Outcome:
    """The tests that passed, with their seconds, and those that did not. ``running`` gets the one that runs."""

    def __init__(self, running: Path) -> None:
        self._running = running
        self.passed: dict[str, float] = {}
        self.failures: list[str] = []
        self.collected = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failures.append(f"{report.nodeid} (cannot be imported)")

    def pytest_collection_finish(self) -> None:
        self.collected = True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.write_text(nodeid, encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.append(report.nodeid)
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
    """Which tests execute which statements of some modules, and which start processes.

    Each statement of a function tells so: in this process only, and at less cost than with a tracing interpreter.
    """

    def __init__(self, root: Path, modules: Sequence[str]) -> None:
        self._modules = {str((root / module).resolve()): module for module in modules}
        self._test = ""
        self._seen: set[tuple[str, int]] = set()
        """What the running test has reached."""
        self.lines: dict[str, dict[int, set[str]]] = {module: {} for module in modules}
        self.starting: set[str] = set()
        sys.addaudithook(self._audit)
        setattr(builtins, PROBE, self._reached)
        reach, original = self, SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            module = reach._modules.get(os.path.realpath(loader.path))
            if module is None:
                return original(loader, fullname)
            return compile(probed(loader.get_data(loader.path), module), loader.path, "exec", dont_inherit=True)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]

    def _audit(self, event: str, arguments: Any) -> None:
        if self._test and (event in _FORKS or (event in _STARTS and "python" in str(arguments[:2]))):
            self.starting.add(self._test)

    def _reached(self, module: str, line: int) -> None:
        if (module, line) not in self._seen and self._test:
            self._seen.add((module, line))
            self.lines[module].setdefault(line, set()).add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = item.nodeid
        self._seen.clear()
        try:
            return (yield)
        finally:
            self._test = ""


def probed(source: bytes, module: str) -> ast.Module:
    """A module of which each statement within a function first calls the probe."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for function in functions:
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and not isinstance(node, ast.ClassDef):
                    setattr(node, name, [one for statement in statements for one in _with_probe(statement, module)])
    return ast.fix_missing_locations(tree)


def _with_probe(statement: ast.stmt, module: str) -> Iterator[ast.stmt]:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if not docstring and not hasattr(statement, "probed"):
        call = ast.parse(f"{PROBE}({module!r}, {statement.lineno})").body[0]
        for node in ast.walk(call):
            node.probed = True  # type: ignore[attr-defined]  # our own mark
        statement.probed = True  # type: ignore[attr-defined]
        yield ast.copy_location(call, statement)
    yield statement


def run(tests: Sequence[str], temporary: Path, plugins: Sequence[object], *options: str) -> None:
    """Run pytest in this process."""
    pytest.main(["-q", f"--basetemp={temporary}", *options, *tests], plugins=list(plugins))
