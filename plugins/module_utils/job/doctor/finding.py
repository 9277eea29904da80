# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an examination concluded, in a form that can be kept and shown: bounded, each field of its kind.

Part of the supervisor's archive: standard library, Python 3.8 or later. What is judged comes from processes and nodes
that may be hostile, and so may be what the judgement quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.untrusted_text import on_one_line
from . import shape, timeline

CONFIDENCES = ("certain", "likely", "not known")
MOST_RANKS = 1024
"""Ranks of a group, or that are to blame, which are listed."""
MOST_FINDINGS = 5
"""Findings of a job that are kept in its state: the last ones."""
LONGEST = 1000
UNKNOWN = "It is not known why the job makes no progress"
REMEDY = "see what each node found, beside the job's log"


def _text(value: Any, longest: int = LONGEST) -> str:
    return on_one_line(value, longest) if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _numbers(value: Any) -> list[int]:
    listed = value if isinstance(value, (list, tuple)) else []
    return [one for one in map(_number, listed[:MOST_RANKS]) if one is not None]


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, (list, tuple)) else []
    return [text for text in (_text(one, 255) for one in listed[:MOST_RANKS]) if text]


def _collective(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    size, group = value.get("size"), value.get("group")
    return {
        "operation": _text(value.get("operation"), 100),
        "sequence": _number(value.get("sequence")),
        "size": size if _number(size) is not None else _text(str(size), 100) if isinstance(size, (str, list)) else None,
        "group": _text(group, 100) if isinstance(group, str) else _numbers(group),
        "ranks": _numbers(value.get("ranks")),
    }


def _does(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value:
        return {"function": _text(value, 300), "file": "", "line": None}
    if not isinstance(value, Mapping):
        return None
    return {
        "function": _text(value.get("function"), 300),
        "file": _text(value.get("file"), 500),
        "line": _number(value.get("line")),
    }


def _link(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    ends = {key: value.get(key) for key in ("from", "to")}
    return {key: one if _number(one) is not None else _text(one, 255) for key, one in ends.items()}


def _seconds(value: Any) -> float | None:
    found = shape.number(value)
    return float(found) if found is not None and abs(found) < 1 << 32 else None


_MARKS = shape.listed(_seconds, timeline.MOST_MARKS)
_LANE = shape.fields(rank=shape.rank, done=_MARKS, open=_MARKS)
_TIMELINE = shape.fields(waited=_seconds, ranks=shape.listed(_LANE, timeline.MOST_RANKS))


def _timeline(value: Any) -> dict[str, Any] | None:
    found = _TIMELINE(value)
    if not found or "ranks" not in found:
        return None
    lanes = [{"done": [], "open": [], **one} for one in found["ranks"] if "rank" in one]
    return {"waited": found.get("waited"), "ranks": lanes}


def bounded(found: Any) -> dict[str, Any]:
    """What judge() returned, with every field, or one that says that nothing is known."""
    found = found if isinstance(found, Mapping) else {}
    confidence = found.get("confidence")
    return {
        "hang": found.get("hang") is not False,
        "works": found.get("works") is True,
        "ranks": _numbers(found.get("ranks")),
        "nodes": _texts(found.get("nodes")),
        "collective": _collective(found.get("collective")),
        "does": _does(found.get("does")),
        "kind": _text(found.get("kind"), 60),
        "link": _link(found.get("link")),
        "timeline": _timeline(found.get("timeline")),
        "sentence": _text(found.get("sentence")) or UNKNOWN,
        "remedy": _text(found.get("remedy")) or REMEDY,
        "confidence": confidence if confidence in CONFIDENCES else CONFIDENCES[-1],
    }


def sentence(entry: Mapping[str, Any]) -> str:
    """What a person reads of a finding in the job's state."""
    missing = [str(node) for node in entry.get("missing") or []]
    without = f" Nothing is known of {', '.join(missing[:8])}." if missing else ""
    found, remedy = (str(entry[key]).rstrip(".") for key in ("sentence", "remedy"))
    bound = f"bound: {entry['bound']:g} s"
    return f"no progress for {entry['silent']:.0f} s ({bound}). {found}.{without} Remedy: {remedy}."
