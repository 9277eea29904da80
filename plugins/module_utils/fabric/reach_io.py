# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Tests from a container whether it reaches the others: for overlay_reach, and for node_facts beside other facts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..common import source_runner
from ..common.command_io import CommandResult, run_program
from ..common.marked_answer import ANSWER_BYTES, marked_answer
from ..common.untrusted_text import on_one_line
from . import reach

Run = Callable[[Sequence[str], str], CommandResult]
SECONDS = 3
"""Seconds that one test may take."""
STAGES = ("name", "connect", "done")
SLACK = 15.0
"""Seconds that the engine may take to start a process in the container."""


class ReachError(Exception):
    """It cannot be tested. The text says why and what to do."""


def read_answer(text: str) -> dict[str, Any] | None:
    """Return the answer in what was printed; None where there is none."""
    return marked_answer(text, reach.MARK)


def answer_about(how: Any) -> dict[str, str]:
    """What was found about one name. Anything may have answered: what is not of its form is no answer."""
    fits = isinstance(how, dict) and set(how) == {"stage", "error"} and how["stage"] in STAGES
    if not fits or not isinstance(how["error"], str):
        return {"stage": "name", "error": "no answer"}
    return {"stage": how["stage"], "error": on_one_line(how["error"])}


def reached(
    run: Run, container: str, hosts: Mapping[str, str], port: int, *, seconds: int = SECONDS, python: str = "python3"
) -> dict[str, Any]:
    """Return ``stage`` and ``error`` for each name of ``hosts``. Raises ``ReachError`` where nothing can be tested."""
    names = {str(name): str(host) for name, host in hosts.items()}
    requested = {"hosts": names, "port": port, "seconds": seconds}
    done = run(source_runner.command_for(container, [], python), source_runner.request_for(reach, requested))
    found = read_answer(done.stdout)
    if done.rc or found is None:
        raise ReachError(
            f"the container {container} cannot try its network: {done.final_line}. Remedy: "
            f"docker logs {container}; then ansible-playbook site.yml --tags training_container."
        )
    return {name: answer_about(found.get(name)) for name in names}


def _run(command: Sequence[str], data: str) -> CommandResult:
    return run_program(command, SECONDS + SLACK, data, ANSWER_BYTES)


class Beside:
    """A test that runs while other facts are gathered. What cannot be tested has no result."""

    def __init__(self, requested: Mapping[str, Any], docker: Mapping[str, Any], run: Run = _run) -> None:
        """``docker`` are the engine's facts: a container that does not run is left alone."""
        self._found: dict[str, Any] = {}
        self._requested, self._run = requested, run
        container = (docker.get("containers") or {}).get(requested.get("container") or "") or {}
        self._thread = threading.Thread(target=self._test, daemon=True)
        self._started = bool(requested.get("hosts")) and container.get("state") == "running"
        if self._started:
            self._thread.start()

    def _test(self) -> None:
        with contextlib.suppress(ReachError):  # the role tests again, and reports it
            self._found = reached(
                self._run, self._requested["container"], self._requested["hosts"], self._requested["port"]
            )

    def result(self) -> dict[str, Any]:
        if self._started:
            self._thread.join(SECONDS + SLACK + 1)
        return dict(self._found)
