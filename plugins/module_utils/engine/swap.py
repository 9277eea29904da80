# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A new container in the place of a running one of the same name, such that a failure leaves the running one as it was.

The new one is created beforehand as NAME.new. The one that ran is NAME.old until the new one is known to work. A dot is
in no host's name, so neither is the name of another node's container. ``others`` are containers of this host from when
it had another name: they end with the one that ran, and run again with it. Whatever step it is interrupted after, the
next run finds by name and label what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from .api_io import Engine, EngineError

NEW, OLD = ".new", ".old"
LABEL = "swarmspeed.spec"
"""Only a container of this collection has it: no other is touched."""
GRACE = 20
"""Seconds for a container to end by itself."""
TRIES, PAUSE = 3, 3.0
"""The engine's first attempt at the overlay after its own restart can fail; seen with 20.10 and 26.1."""


class SwapError(Exception):
    """Why the new container is not in place, and what is there now: one sentence."""


class Swap:
    """The containers NAME, NAME.new and NAME.old of one engine, and ``others``."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        others: Sequence[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine, self._name, self._sleep = engine, name, sleep
        self._others = [other for other in others if other not in (name, name + NEW, name + OLD)]
        self._new, self._old = name + NEW, name + OLD

    def swapped(self) -> bool:
        """Put NAME.new into the place of NAME, and start it."""
        if not self._found(self._new):
            raise SwapError(f"There is no container {self._new} to take the place of {self._name}.")
        for other in filter(self._found, self._others):
            self._post(other, f"stop?t={GRACE}")
        if self._found(self._name):
            self._remove(self._old)
            self._post(self._name, f"stop?t={GRACE}")
            self._rename(self._name, self._old)
        self._rename(self._new, self._name)
        try:
            self._start(self._name)
        except EngineError as error:
            why = " ".join(str(error).split()).rstrip(".")
            raise SwapError(f"The new container {self._name} cannot be started: {why}.{self._outcome()}") from error
        return True

    def settled(self) -> bool:
        """Remove NAME.new, NAME.old and the others."""
        removed = [self._remove(name) for name in (self._new, self._old, *self._others)]
        return any(removed)

    def restored(self) -> bool:
        """Start NAME.old again as NAME. What has failed stays as NAME.new, stopped, for its log to be read."""
        others, old = [*filter(self._found, self._others)], self._found(self._old)
        if not old and not others:
            return False
        if self._found(self._name):
            self._remove(self._new)
            self._post(self._name, f"stop?t={GRACE}")
            self._rename(self._name, self._new)
        if old:
            self._rename(self._old, self._name)
        for name in ([self._name] if old else []) + others:
            self._start(name)
        return True

    def _outcome(self) -> str:
        try:
            there = self.restored()
        except EngineError as error:
            why = " ".join(str(error).split()).rstrip(".")
            return f" Nor does the earlier one start again: {why}."
        return " The earlier one runs again, as it was." if there else ""

    def _found(self, name: str) -> bool:
        try:
            found: Any = self._engine.call("GET", f"/containers/{quote(name, safe='')}/json")
        except EngineError as error:
            if error.status == 404:
                return False
            raise
        config = found.get("Config") if isinstance(found, dict) else None
        labels = config.get("Labels") if isinstance(config, dict) else None
        if not isinstance(labels, dict) or LABEL not in labels:
            raise SwapError(f"The container {name} exists, but this collection did not create it. Rename or remove it.")
        return True

    def _remove(self, name: str) -> bool:
        if not self._found(name):
            return False
        self._engine.call("DELETE", f"/containers/{quote(name, safe='')}?force=true")
        return True

    def _post(self, name: str, path: str) -> None:
        self._engine.call("POST", f"/containers/{quote(name, safe='')}/{path}")

    def _rename(self, name: str, other: str) -> None:
        self._post(name, f"rename?name={quote(other, safe='')}")

    def _start(self, name: str) -> None:
        for left in range(TRIES - 1, -1, -1):
            try:
                self._post(name, "start")
                return
            except EngineError:
                if not left:
                    raise
                self._sleep(PAUSE)
