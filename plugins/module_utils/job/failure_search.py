# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which entry of the table in failures.py a line of a log shows.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Iterable

from .failures import FAILURES, Failure


def _pieces(text: str) -> tuple[str, bool, tuple[str, ...]]:
    first, *rest = text.split("…")
    return first.lstrip("^"), text.startswith("^"), tuple(rest)


def _signs(texts: tuple[str, ...], length: int = 4) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Few short strings, each with the texts to look for where a line holds it: most lines hold one or none."""
    holders: dict[str, set[int]] = {}
    for index, text in enumerate(texts):
        for at in range(max(1, len(text) - length + 1)):
            holders.setdefault(text[at : at + length], set()).add(index)
    parts: dict[int, list[str]] = {index: [] for index in range(len(texts))}
    for part, held in holders.items():
        for index in held:
            parts[index].append(part)
    counts = {part: len(held) for part, held in holders.items()}
    left = set(parts)
    chosen = []
    while left:  # each time the one that most of the rest hold
        best = max(counts, key=lambda part: counts[part])
        taken = tuple(sorted(holders[best] & left))
        chosen.append((best, taken))
        left.difference_update(taken)
        for index in taken:
            for part in parts[index]:
                counts[part] -= 1
    return tuple(chosen)


# Plain substrings, not one large regular expression, which is ten times slower where nothing fits.
_NEEDLES = tuple((*_pieces(text), failure) for failure in FAILURES for text in failure.texts)
_SIGNS = _signs(tuple(needle[0] for needle in _NEEDLES))


def _fits(line: str, first: str, start: bool, rest: tuple[str, ...]) -> bool:
    if start and not line.startswith(first):
        return False
    at = line.find(first) + len(first)
    for piece in rest:
        found = line.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def known_failure(line: str, frames: Iterable[str] = ()) -> Failure | None:
    """Return the entry of the table that ``line`` shows; ``frames``: files and last line of its traceback."""
    best = len(_NEEDLES)
    for sign, indexes in _SIGNS:
        if sign in line:
            for index in indexes:
                if index >= best:
                    break
                first, start, rest, failure = _NEEDLES[index]
                if first in line and _fits(line, first, start, rest):
                    if failure.frame and not any(failure.frame in path for path in frames):
                        continue
                    if failure.unless and any(text in line for text in failure.unless):
                        continue
                    best = index
                    break
    return _NEEDLES[best][3] if best < len(_NEEDLES) else None
