# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parts of a proof: each has a limit of its own within that of the whole, and what one does not manage is recorded."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

LIMIT = 2700.0
"""Seconds for the whole."""
_LEAST = 10.0
"""Seconds below which no part is begun."""

NUMBERS = re.compile(r"GPU-[0-9a-f]{8}[0-9a-f-]*|\b\d{1,3}(?:\.\d{1,3}){3}\b")
"""Identifiers of GPUs, and addresses."""

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Failed(Exception):
    """A part did not do what it should; with what it found until then."""

    def __init__(self, reason: str, found: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.found = found or {}


class Skipped(Exception):
    """A part cannot be run on this machine."""


@dataclass(frozen=True)
class Part:
    """``run`` gets the seconds that it has, and returns what it found."""

    name: str
    limit: float
    run: Callable[[float], dict[str, Any]]


@dataclass
class Proof:
    """What came of the parts so far."""

    clock: Callable[[], float] = time.monotonic
    limit: float = LIMIT
    secrets: tuple[str, ...] = ()
    """Texts that name the machine, such as its paths and its name: never written down."""
    results: list[dict[str, Any]] = field(default_factory=list)
    began: float = -1.0

    def run(self, parts: Iterator[Part]) -> Iterator[dict[str, Any]]:
        """Run them in turn; yield each result. An error of one does not end the others."""
        self.began = self.clock()
        for part in parts:
            left = self.limit - (self.clock() - self.began)
            started = self.clock()
            if left < _LEAST:
                outcome: dict[str, Any] = {"state": FAILED, "reason": "no time was left", "found": {}}
            else:
                outcome = self._one(part, min(part.limit, left))
            result = {"name": part.name, "seconds": round(self.clock() - started, 1), **outcome}
            self.results.append(result)
            yield result

    def state(self, name: str) -> str:
        """Return how a part ended that came before."""
        return next((result["state"] for result in self.results if result["name"] == name), SKIPPED)

    def seconds(self) -> float:
        """Return how long it all took."""
        return round(self.clock() - self.began, 1)

    def _one(self, part: Part, limit: float) -> dict[str, Any]:
        try:
            return {"state": PASSED, "reason": "", "found": part.run(limit)}
        except Skipped as error:
            return {"state": SKIPPED, "reason": self.plain(str(error)), "found": {}}
        except Failed as error:
            return {"state": FAILED, "reason": self.plain(str(error)), "found": error.found}
        except Exception as error:  # whatever it was, the parts after it go on
            return {"state": FAILED, "reason": self.plain(f"{type(error).__name__}: {error}"), "found": {}}

    def plain(self, text: str) -> str:
        """Return a text without what names the machine, not too long and in one line."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if secret:
                text = text.replace(secret, "…")
        text = NUMBERS.sub("…", text)
        text = re.sub(r"(?<![\w.:/])/(?:[\w.+@~-]+/)+", "…/", text)
        return " ".join(text.split())[:500]
