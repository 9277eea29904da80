# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a module that transfers something from node to node returned, in what images and assets have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import (
    Parser,
    UnfitError,
    accept,
    account,
    file_name,
    flag,
    number,
    sentence,
    ssh_public_key,
    whole,
    word,
)
from .shape import by_name, data, listing, mapping

COUNT = whole()
ACCESS = {"account": account, "host_key": ssh_public_key, "public_key": ssh_public_key}
"""How other nodes reach a node."""


def _reported(value: Any) -> Any:
    """Who runs another transfer: numbers and words of a file, for a message."""
    return sentence(str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value)


_RUNNING = by_name(word, _reported, 100)


class Replies:
    """The replies of one such module. ``start`` parses what a node reports at first, ``more`` fields of its own."""

    def __init__(self, module: str, start: Parser, more: Mapping[str, Parser]) -> None:
        self.module, self._start = module, start
        self._fields = {
            "gathered": self._gather,
            "running": _RUNNING,
            "over": flag,
            "trouble": sentence,
            "received": by_name(file_name, COUNT, 10_000),
            "resumed": COUNT,
            "notes": listing(sentence, 100),
            "seconds": number,
            "progress": mapping({}, {"bytes": COUNT, "spooled": COUNT, "state": sentence}),
            **more,
        }
        self._whole = mapping({}, self._fields)

    def _gather(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise UnfitError(value, "a mapping")
        if value.get("running"):
            return {"running": _RUNNING(value["running"])}
        if value.get("trouble"):
            return {"trouble": sentence(value["trouble"])}
        return self._start(value)

    def gathered(self, reported: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return what every node reported; raises ``ReportedError`` that names node and field."""
        field = f"{self.module}.gathered"
        return {
            name: accept(name, field, accept(name, field, value, data), self._gather)
            for name, value in reported.items()
        }

    def reply(self, host: str, reported: Mapping[str, Any]) -> dict[str, Any]:
        """Return a reply of the module, one that failed as it is; raises ``ReportedError``."""
        if reported.get("failed") or reported.get("unreachable") or reported.get("skipped"):
            return dict(reported)
        own = {key: value for key, value in reported.items() if key in self._fields}
        return {**reported, **accept(host, self.module, own, self._whole)}
