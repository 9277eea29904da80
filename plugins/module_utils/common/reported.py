# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parsers for what a managed node returned, before it becomes a path, an argument or a line of a file. Pure.

A parser takes a value and returns it, or raises ``UnfitError``. ``accept`` turns that into the one error that people
read: host, field, what was received, remedy.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from pathlib import PurePosixPath
from typing import Any, Callable

Parser = Callable[[Any], Any]

REMEDY = (
    "Remedy: nothing that this host reports is used until that is fixed: check there what reports it, "
    "or take the host out of the inventory"
)
LONGEST_SHOWN = 60
"""Characters of a refused value that an error shows."""
WHOLE_MOST = 1 << 62
"""No count, size or time in a fact is greater."""

# Control characters, line and paragraph separators, what turns the direction of text, halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+\\-]{0,255}\$?")
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~-]{0,14}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~%:@=-]{0,254}")
_HEX = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+~/@-]{0,254}")
_KEY_TYPES = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9-]+(?:@openssh\.com)?")


class UnfitError(ValueError):
    """A value is not what a parser takes. ``path`` leads to it within what was parsed."""

    def __init__(self, value: Any, expected: str, path: str = "") -> None:
        super().__init__(f"{path or 'it'} is {shown(value)}, not {expected}")
        self.value, self.expected, self.path = value, expected, path


class ReportedError(ValueError):
    """What a node returned cannot be used. Its text is one line: host, field, what was received, remedy."""


def accept(host: str, field: str, value: Any, parser: Parser) -> Any:
    """Return the value, or raise ``ReportedError`` that names host and field."""
    try:
        return parser(value)
    except UnfitError as error:
        where = escaped(f"{field}{error.path}")
        raise ReportedError(f"{host}: {where} is {shown(error.value)}, not {error.expected}. {REMEDY}.") from None


def escaped(text: str, most: int = 300) -> str:
    """Return a text on one line, short, with control characters spelt out."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], cut)


def visible(text: str) -> str:
    """Return text for a terminal: control characters spelt out, tabs and line breaks kept."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in "\t\n" else ascii(found[0])[1:-1], text)


def shown(value: Any) -> str:
    """Return a value for a message: short, on one line."""
    if isinstance(value, str):
        more = f"... ({len(value)} characters)" if len(value) > LONGEST_SHOWN else ""
        return ascii(str(value[:LONGEST_SHOWN])) + more
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) < WHOLE_MOST else f"a number of {value.bit_length()} bits"
    if isinstance(value, (list, tuple, dict)):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    return f"a {type(value).__name__}"


def _matching(pattern: re.Pattern[str], expected: str) -> Parser:
    def parser(value: Any) -> Any:
        # A value of thousands of characters is refused before it is searched.
        if not isinstance(value, str) or len(value) > 4096 or not pattern.fullmatch(value):
            raise UnfitError(value, expected)
        return value

    return parser


host_name = _matching(_HOST_NAME, "a host name")
account = _matching(_ACCOUNT, "the name of an account")
interface = _matching(_INTERFACE, "the name of a network interface")
hex_digest = _matching(_HEX, "a SHA-256 in hexadecimal")
digest = _matching(_DIGEST, "a digest such as sha256:…")
identity = _matching(_IDENTITY, "an identifier")
word = _matching(_WORD, "one word of letters, digits and ._:+~/@-")
_plain_file_name = _matching(_FILE_NAME, "the name of a file")


def file_name(value: Any) -> Any:
    """One part of a path: no folder, not hidden, no option."""
    _plain_file_name(value)
    if ".." in value:
        raise UnfitError(value, "the name of a file")
    return value


def relative_path(value: Any) -> Any:
    """A path below a folder, written plainly."""
    path = PurePosixPath(value) if isinstance(value, str) and len(value) <= 4096 else PurePosixPath("/")
    plain = bool(path.parts) and str(path) == value and not path.is_absolute()
    if not plain or ".." in path.parts or "\\" in value or _CONTROL.search(value) or value.startswith("-"):
        raise UnfitError(value, "a path below the folder it is in")
    return value


def absolute_path(value: Any) -> Any:
    """A path from the root, without a step upwards and on one line."""
    path = value if isinstance(value, str) and len(value) <= 4096 else ""
    if not path.startswith("/") or ".." in path.split("/") or _CONTROL.search(path):
        raise UnfitError(value, "an absolute path")
    return value


def address(value: Any) -> Any:
    """An IPv4 or IPv6 address without a zone, which could hold anything."""
    try:
        if isinstance(value, str) and len(value) <= 64 and "%" not in value:
            ipaddress.ip_address(value)
            return value
    except ValueError:
        pass
    raise UnfitError(value, "an IP address")


def network(value: Any) -> Any:
    """A network such as 10.20.0.0/24."""
    try:
        if isinstance(value, str) and len(value) <= 64 and "%" not in value:
            ipaddress.ip_network(value, strict=False)
            return value
    except ValueError:
        pass
    raise UnfitError(value, "a network such as 10.20.0.0/24")


def whole(low: int = 0, high: int = WHOLE_MOST) -> Parser:
    """Take whole numbers from ``low`` to ``high``; no booleans."""

    def parser(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise UnfitError(value, f"a whole number from {low} to {high}")
        return value

    return parser


port = whole(1, 65535)


def number(value: Any) -> Any:
    """A finite number; no boolean."""
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not real or abs(value) > WHOLE_MOST or not math.isfinite(value):
        raise UnfitError(value, "a finite number")
    return value


def flag(value: Any) -> Any:
    """True or false."""
    if not isinstance(value, bool):
        raise UnfitError(value, "true or false")
    return value


def text(most: int = 1000) -> Parser:
    """Take text of one line without control characters."""

    def parser(value: Any) -> Any:
        if not isinstance(value, str) or len(value) > most or _CONTROL.search(value):
            raise UnfitError(value, f"one line of at most {most} characters")
        return value

    return parser


short_text = text()


def lines(most: int = 1 << 20) -> Parser:
    """Take text with line breaks: what is compared or shown, and becomes no line of a file as it is."""

    def parser(value: Any) -> Any:
        if not isinstance(value, str) or len(value) > most:
            raise UnfitError(value, f"text of at most {most} characters")
        return value

    return parser


def sentence(value: Any) -> Any:
    """Words for people, which may hold what a program printed: put on one line and shortened, not refused."""
    if not isinstance(value, str):
        raise UnfitError(value, "text")
    return escaped(" ".join(value[:20000].split()), 4000)


def ssh_public_key(value: Any) -> Any:
    """One public key as OpenSSH writes it: type, key, perhaps a comment; one line."""
    try:
        line = value if isinstance(value, str) and len(value) <= 16384 else ""
        kind, key = line.split()[:2]
        raw = base64.b64decode(key, validate=True)
        length = int.from_bytes(raw[:4], "big")
        same = raw[4 : 4 + length].decode("ascii") == kind and _KEY_TYPES.fullmatch(kind)
        if same and line.startswith(kind) and not _CONTROL.search(line.removesuffix("\n")):
            return value
    except (ValueError, binascii.Error):
        pass
    raise UnfitError(value, "one public key of OpenSSH")
