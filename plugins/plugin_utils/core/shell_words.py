# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A text as the words that a shell makes of it, without expansion. Pure."""

from __future__ import annotations

import re
import shlex
from typing import Any

_PARTS = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class WordsError(Exception):
    """A text cannot be split; the text says why, as a clause."""


def words_of(value: Any) -> Any:
    """Return the words of a text, and anything else as it is. Raises ``WordsError``."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(_PARTS.sub(_joined, value))
    except ValueError as error:
        if "quot" in str(error):
            raise WordsError("has a quote that is not closed") from None
        raise WordsError("ends in a backslash with nothing behind it") from None


def _joined(part: re.Match[str]) -> str:
    """Return a part without the ends of lines that a backslash escapes: shlex would keep them."""
    text = part[0]
    return text if text.startswith("'") else _ESCAPED.sub(lambda one: "" if one[1] == "\n" else one[0], text)
