# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Text and JSON that somebody else has written: without control characters, and never too deep or too long to use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

DEPTH = 32
"""Most lists and mappings within each other. Python's own functions fail at about a thousand."""
VALUES = 2_000_000
"""Most values: each empty list of two bytes costs 60 in memory."""
VALUES_OF_FILES = 20_000_000
"""The same of a list of files: a data set may have millions."""
DIGITS = 18
"""Most digits of a whole number: reading a long one takes time that grows with its square."""


def printable(text: str, longest: int = 65536) -> str:
    """``text`` for a person: line breaks and tabs stay, other control and invisible characters become ``\\x1b``."""
    short = text if len(text) <= longest else f"{text[:longest]} (cut off)"
    if short.isprintable():
        return short
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode("ascii") for one in short
    )


def on_one_line(text: str, longest: int = 300) -> str:
    """``text`` as a part of a sentence."""
    return printable(" ".join(text.split()), longest)


def clean(value: Any) -> Any:
    """Every text in JSON that was read, without control characters."""
    if isinstance(value, dict):
        return {printable(str(key), 300): clean(part) for key, part in value.items()}
    if isinstance(value, list):
        return [clean(part) for part in value]
    return printable(value) if isinstance(value, str) else value


def parse_json(data: bytes, values: int = VALUES) -> Any:
    """JSON, or ``ValueError`` in a few words. What JSON has no number for (``NaN``, ``1e999``) becomes text."""
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > values:
        raise ValueError(f"it holds more than {values} values")
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=str, parse_float=_real, parse_int=_whole)
    except UnicodeDecodeError as error:
        raise ValueError("it is not text in UTF-8") from error
    except RecursionError as error:
        raise ValueError(f"lists and mappings are nested more than {DEPTH} deep") from error
    level, depth = _within([found]), 0
    while level:
        depth += 1
        if depth > DEPTH:
            raise ValueError(f"lists and mappings are nested more than {DEPTH} deep")
        level = _within(part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
    return found


def _within(parts: Iterable[Any]) -> list[Any]:
    """The lists and mappings among these."""
    return [part for part in parts if isinstance(part, (dict, list))]


def _real(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= DIGITS else text
