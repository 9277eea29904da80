# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Words of the report: names of many nodes, ages, numbers with units; and what must not be shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ..job.table import duration

OLD = 24 * 3600.0
"""Seconds after which a measurement is called old: a day's work on a cluster can change all of it."""

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def sequence(value: Any) -> list[Any]:
    """``value`` where it is a list, else an empty one."""
    return list(value) if isinstance(value, (list, tuple)) else []


def sentence(text: Any) -> str:
    """One line that ends with a full stop."""
    reported = " ".join(str(text or "").split())
    return reported if not reported or reported.endswith((".", "!", "?", ".)")) else f"{reported}."


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts gpu2 before gpu10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def names(chosen: Iterable[str], most: int = 12) -> str:
    """``gpu1, gpu3–gpu7``: runs of three or more are joined; of more than ``most`` entries the number of the rest."""
    runs: list[list[str]] = []
    for name in sorted(set(chosen), key=natural):
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[tuple[str, int]] = []
    for run in runs:
        parts += [(f"{run[0]}–{run[-1]}", len(run))] if len(run) > 2 else [(name, 1) for name in run]
    shown = ", ".join(text for text, dummy in parts[:most])
    rest = sum(count for dummy, count in parts[most:])
    return shown + (f" and {rest} more" if rest else "")


def _follows(before: str, after: str) -> bool:
    first, second = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    if not first or not second or (first[1], first[3]) != (second[1], second[3]):
        return False
    same_width = len(first[2]) == len(second[2]) or not (first[2].startswith("0") or second[2].startswith("0"))
    return same_width and int(second[2]) == int(first[2]) + 1


def domain(all_names: Sequence[str]) -> str:
    """What all names of several nodes end in, from a dot on: ``.example.org``. Empty where they have nothing so."""
    tails = [name.partition(".")[2] for name in all_names]
    common = tails[0] if len(tails) > 1 else ""
    while common and not all(tail == common or tail.endswith(f".{common}") for tail in tails):
        common = common.partition(".")[2]
    return f".{common}" if common else ""


def briefly(value: Any, all_names: Sequence[str]) -> Any:
    """``value`` with the names of nodes in its texts cut before the domain that all have in common."""
    tail = domain(all_names)
    if not tail:
        return value
    found = re.compile(
        r"(?<![\w.-])(" + "|".join(map(re.escape, sorted(all_names, key=len, reverse=True))) + r")(?![\w-])"
    )

    def cut(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: cut(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [cut(inner) for inner in part]
        return found.sub(lambda match: match[1][: -len(tail)], part) if isinstance(part, str) else part

    return cut(value)


def counted(count: int, one: str, many: str = "") -> str:
    """``1 node``, ``3 nodes``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def short(value: float) -> str:
    """Three significant digits, never an exponent: 0.0123, 4.57, 118, 40200."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(places, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count: float) -> str:
    """Bytes in binary units: 4 KiB, 1.5 GiB."""
    step = 0
    while abs(count) >= 1024 and step < len(_SIZES) - 1:
        count, step = count / 1024, step + 1
    return f"{short(count)} {_SIZES[step]}"


def moment(text: Any) -> float | None:
    """Seconds since the epoch of an ISO 8601 time; one without a zone is UTC. None where it is not a time."""
    try:
        found = datetime.fromisoformat(re.sub(r"Z$", "+00:00", str(text)))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


def clock(seconds: float) -> str:
    """``2026-11-22 07:05 UTC``."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def age(then: float | None, now: float) -> dict[str, Any] | None:
    """``{text, time, old}`` of something that happened ``then``; None where that is not known."""
    if then is None:
        return None
    passed = now - then
    text = "just now" if passed < 60 else f"{duration(passed)} ago"
    return {"text": text, "time": clock(then), "old": passed > OLD}
