# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a known secret stands in a text: as it is, or as a program writes it between quotes; and the search for all.

Used on nodes, and in containers by the supervisor of a job: standard library, Python 3.8 or later. The secrets may be
those that a container names, so their number and size are bounded, and so is what the search costs for each character.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from html import escape
from re import Pattern
from typing import Any
from urllib.parse import quote, quote_plus

PIECE = 64
"""Characters after which a long secret is cut in pieces, each of which is hidden by itself."""
MOST_CHARACTERS = 256 << 10
"""Characters of all secrets together, and of what their spellings do not have in common."""

_SHELL = re.compile(r"[^A-Za-z0-9_@%+=:,./-]")
_SHELL_ASCII = re.compile(r"[^A-Za-z0-9_@%+=:,./\x80-\U0010ffff-]")
_IN_DOUBLE_QUOTES = re.compile(r"([\"\\$`])")
_ESCAPES = {**{code: f"\\{code:03o}" for code in (*range(32), *range(127, 256))}, 39: "\\'", 92: "\\\\"}
_ESCAPES.update({7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\E"})
_BOTH = "'\""
_HEX = re.compile(r"%[0-9A-F]{2}")


class TooManySecretsError(ValueError):
    """More than are searched for."""


def _json(text: str, ascii_only: bool = True) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def spellings(secret: str) -> set[str]:
    """A secret as it is, and as Python, JSON, shells, YAML, HTML and addresses spell it, without quotes around it."""
    data = secret.encode("utf-8", "surrogateescape")
    found = {
        *(secret, _json(secret), _json(secret, ascii_only=False)),
        # Python chooses its quotes by what is in the text, and in a larger text by what is in that.
        *(repr(secret)[1:-1], ascii(secret)[1:-1], repr(data)[2:-1]),
        *(repr(secret + _BOTH)[1:-4], ascii(secret + _BOTH)[1:-4], repr(data + _BOTH.encode())[2:-4]),
        # Shells: as shlex.quote and dash have it, as bash traces (set -x) and exports it, and printf %q.
        *(shlex.quote(secret)[1:-1] if _SHELL.search(secret) else secret, secret.replace("'", "'\\''")),
        "".join(_ESCAPES.get(code, chr(code)) for code in data),
        "".join(_ESCAPES.get(ord(one), one) if ord(one) < 128 else one for one in secret),
        *(_IN_DOUBLE_QUOTES.sub(r"\\\1", secret), *(one.sub(r"\\\g<0>", secret) for one in (_SHELL, _SHELL_ASCII))),
        *(secret.replace("'", "''"), escape(secret), escape(secret, quote=False)),
    }
    for address in (quote(data, safe=""), quote(data), quote_plus(data)):
        found |= {address, _HEX.sub(lambda one: one.group(0).lower(), address)}
    twice = {_json(secret), _json(secret, ascii_only=False), repr(secret)[1:-1], repr(data)[2:-1]}
    for one in twice:
        found |= {_json(one), _json(one, ascii_only=False), repr(one)[1:-1]}
    return found


def pieces(text: str) -> list[str]:
    """A long text in pieces of nearly the same length."""
    count = -(-len(text) // PIECE)
    return [text[at * len(text) // count : (at + 1) * len(text) // count] for at in range(count)]


def search_for(secrets: Iterable[str], shortest: int) -> Pattern[str] | None:
    """A pattern that finds, at each place of a text, the longest piece of a secret there; None without any.

    It is one tree of characters, so that what it costs does not grow with the number of secrets.
    Raises ``TooManySecretsError``.
    """
    tree: dict[str, Any] = {}
    size = 0
    for secret in secrets:
        for form in spellings(secret):
            if len(form) < shortest:
                continue
            for piece in pieces(form):
                node = tree
                for character in piece:
                    size += character not in node
                    node = node.setdefault(character, {})
                node[""] = {}
            if size > MOST_CHARACTERS:
                raise TooManySecretsError
    return re.compile(f"(?=({_pattern(tree)}))") if tree else None


def hidden(text: str, search: Pattern[str], mask: str) -> str:
    """A text with a mask in place of all that pieces of secrets cover: they may overlap."""
    shown: list[str] = []
    end = 0
    for found in search.finditer(text):
        if found.start() > end or not shown:
            shown += [text[end : found.start()], mask]
        end = max(end, found.end(1))
    return "".join([*shown, text[end:]]) if shown else text


def _pattern(tree: dict[str, Any]) -> str:
    """What follows in a tree; the longest first."""
    straight = ""
    while len(tree) == 1 and "" not in tree:
        ((character, tree),) = tree.items()
        straight += re.escape(character)
    ways = [re.escape(character) + _pattern(below) for character, below in tree.items() if character]
    if not ways:
        return straight
    return f"{straight}(?:{'|'.join(ways)}){'?' if '' in tree else ''}"
