# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parsers of lists and mappings, made of parsers of what is in them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import WHOLE_MOST, Parser, UnfitError, escaped, host_name, sentence, text, whole

MOST_ENTRIES = 500_000
"""Entries of all lists and mappings of one answer: a workspace of many files is listed in it."""
MOST_TEXT = 32 << 20
"""Characters of one answer together."""
LONGEST = 1 << 20
"""Characters of one text."""
DEEPEST = 30


def optional(parser: Parser) -> Parser:
    """Take null as well."""
    return lambda value: None if value is None else parser(value)


def _below(path: str, parser: Parser, value: Any) -> Any:
    try:
        return parser(value)
    except UnfitError as error:
        raise UnfitError(error.value, error.expected, f"{path}{error.path}") from None


def listing(parser: Parser, most: int = MOST_ENTRIES) -> Parser:
    """Take a list of at most ``most`` entries that ``parser`` takes."""

    def parse(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise UnfitError(value, f"a list of at most {most}")
        return [_below(f"[{index}]", parser, item) for index, item in enumerate(value)]

    return parse


def by_name(key: Parser, parser: Parser, most: int = MOST_ENTRIES) -> Parser:
    """Take a mapping of which ``key`` takes the names and ``parser`` the values."""

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping) or len(value) > most:
            raise UnfitError(value, f"a mapping of at most {most}")
        return {
            _below(" (a name in it)", key, name): _below(f"[{escaped(str(name), 60)}]", parser, item)
            for name, item in value.items()
        }

    return parse


def mapping(required: Mapping[str, Parser], optional_: Mapping[str, Parser] | None = None) -> Parser:
    """Take a mapping that has all of ``required``. What is named nowhere stays, as bounded data."""
    further = dict(optional_ or {})

    def parse(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise UnfitError(value, "a mapping")
        lacking = [name for name in required if name not in value]
        if lacking:
            raise UnfitError(None, "left out", f".{lacking[0]}")
        parsed = {}
        for name, item in value.items():
            if not isinstance(name, str):
                raise UnfitError(name, "a name", " (a name in it)")
            parser = required.get(name) or further.get(name) or data
            parsed[name] = _below(f".{escaped(name, 60)}", parser, item)
        return parsed

    return parse


def one_of(*words: str) -> Parser:
    """Take one of some words."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str) or value not in words:
            raise UnfitError(value, f"one of {', '.join(words)}")
        return value

    return parse


def data(value: Any) -> Any:
    """Take anything that JSON has, within bounds: finite numbers, no giant texts, not endlessly deep."""
    return _bounded(value, DEEPEST, [MOST_ENTRIES, MOST_TEXT])


def _bounded(value: Any, depth: int, left: list[int]) -> Any:
    if value is None:
        return value
    if isinstance(value, str):
        left[1] -= len(value)
        if len(value) > LONGEST or left[1] < 0:
            raise UnfitError(value, f"text of at most {LONGEST} characters")
        return value
    if isinstance(value, (int, float)):
        if abs(value) > 4 * WHOLE_MOST or not math.isfinite(value):
            raise UnfitError(value, "a finite number")
        return value
    entries = list(value.items()) if isinstance(value, Mapping) else list(enumerate(value)) if _is_list(value) else None
    if entries is None:
        raise UnfitError(value, "plain data")
    left[0] -= len(entries)
    if depth <= 0 or left[0] < 0:
        raise UnfitError(value, f"at most {DEEPEST} deep and of {MOST_ENTRIES} entries")
    parsed = []
    for name, item in entries:
        if not isinstance(name, (str, int)) or isinstance(name, bool) or len(str(name)) > 4096:
            raise UnfitError(name, "a name", " (a name in it)")
        try:
            parsed.append((name, _bounded(item, depth - 1, left)))
        except UnfitError as error:
            where = f".{escaped(name, 60)}" if isinstance(name, str) else f"[{name}]"
            raise UnfitError(error.value, error.expected, f"{where}{error.path}") from None
    return dict(parsed) if isinstance(value, Mapping) else [item for dummy, item in parsed]


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def matching(pattern: re.Pattern[str], expected: str) -> Parser:
    """Take text that a pattern matches from end to end."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise UnfitError(value, expected)
        return value

    return parse


def or_empty(parser: Parser) -> Parser:
    """Take empty text as well, which is what engines say for "none"."""
    return lambda value: value if isinstance(value, str) and not value else parser(value)


def own_name(value: Any) -> Any:
    # What the kernel says of a host that was given no name.
    return value if isinstance(value, str) and value == "(none)" else host_name(value)


NAME = text(255)
version = text(200)
count = whole()
sentences = listing(sentence, 1000)
names = listing(NAME)
