# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs the checks of a node where its ranks will run, in a container or on the host; asks the engine for the image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from ..common import source_runner
from ..common.command_io import NOT_STARTED, CommandResult, find_program, run_program
from ..common.marked_answer import ANSWER_BYTES, marked_answer
from ..engine.api_io import Engine, EngineError
from . import probe

TIMEOUT = probe.SMI_PATIENCE + 30
"""Seconds for the checks. They end by themselves much earlier; this is for an engine that hangs."""


class ProbeIO(Protocol):
    """What the checks need of their host; tests hand in a fake."""

    def inspect(self, container: str) -> dict[str, Any] | None:
        """Return ``running``, ``reference`` of the image, its ``id`` and its ``content``; None where there is none."""

    def run(self, command: Sequence[str], data: str) -> CommandResult:
        """Run a command with this on its standard input."""


class SystemProbeIO:
    """This host."""

    def __init__(self, engine: Engine, timeout: float = TIMEOUT) -> None:
        self._engine, self._timeout = engine, timeout

    def inspect(self, container: str) -> dict[str, Any] | None:
        try:
            found = self._engine.call("GET", f"/containers/{quote(container, safe='')}/json")
        except EngineError as error:
            if error.status == 404:
                return None
            raise
        image = {}
        try:
            image = self._engine.call("GET", f"/images/{quote(found['Image'], safe=':')}/json")
        except EngineError as error:
            if error.status != 404:  # an image can be removed under its container; then its id must do
                raise
        return {
            "running": bool(found["State"]["Running"]) and not found["State"].get("Paused", False),
            "reference": found["Config"].get("Image", ""),
            "id": found["Image"],
            "content": image_content(image) or found["Image"],
        }

    def run(self, command: Sequence[str], data: str) -> CommandResult:
        program = find_program(command[0])
        if program is None:
            return CommandResult(NOT_STARTED, stderr=f"{command[0]}: No such file or directory")
        return run_program([program, *command[1:]], self._timeout, data, ANSWER_BYTES)


def image_content(image: Mapping[str, Any]) -> str:
    """A digest of an image's layers, alike on every host. Its id is not: containerd's image store gives another."""
    layers = (image.get("RootFS") or {}).get("Layers") or []
    return f"sha256:{hashlib.sha256(json.dumps(layers).encode()).hexdigest()}" if layers else ""


def request_for(requested: Mapping[str, Any]) -> str:
    """Return what the checks take on their standard input."""
    return source_runner.request_for(probe, requested)


def read_answer(text: str) -> dict[str, Any] | None:
    """The answer in what the checks printed; None where there is none, or one that is of another form."""
    found = marked_answer(text, probe.MARK)
    locks = None if found is None else found.get("locks", [])
    return found if isinstance(locks, list) and all(_is_lock(lock) for lock in locks) else None


def _is_lock(lock: Any) -> bool:
    return isinstance(lock, dict) and all(isinstance(lock.get(key), str) for key in ("path", "state", "error"))
