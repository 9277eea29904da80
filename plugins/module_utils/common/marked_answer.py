# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What one of our programs answered, from a place where anybody may have answered instead: marked lines of JSON."""

from __future__ import annotations

from typing import Any

from .untrusted_text import clean, parse_json

ANSWER_BYTES = 8 << 20
"""Most that such a program may print: what is found about 1,000 nodes takes one million."""


def marked_answer(text: str, mark: str) -> dict[str, Any] | None:
    """Return the last answer in what was printed; None where there is none."""
    begin = f"\n{text}".rfind(f"\n{mark}")  # not line by line: there may be millions
    if begin < 0:
        return None
    return answer_of(text[begin + len(mark) :].partition("\n")[0].encode("utf-8", "replace"))


def answer_of(data: bytes) -> dict[str, Any] | None:
    """Return the mapping that it is, without control characters; None where it is none."""
    try:
        found = parse_json(data)
    except ValueError:
        return None
    return clean(found) if isinstance(found, dict) else None
