# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads hjson, the form in which DeepSpeed reads its configuration file: JSON with comments and less punctuation.

What it knows beyond JSON, as the Python package hjson 3.1 reads it: comments (``#``, ``//``, ``/* */``), commas that
may be left out at a line's end or put after the last item, keys and text without quotes, text in single quotes or over
several lines in three of them, and a root mapping without braces. As in DeepSpeed, a key that is there twice is an
error. Linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ..common.problems import shown

MAX_DEPTH = 100
"""Nesting that no configuration reaches; deeper input would exhaust the interpreter's stack."""

_GAP = re.compile(r"(?:[ \t\n\r]+|(?:#|//)[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN_END = re.compile(r"[\r\n,}\]#]|/[/*]|\Z")
_LINE_END = re.compile(r"[\r\n]|\Z")
_NUMBER = re.compile(r"[\t ]*(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?[\t ]*")
_KEY = re.compile(r"([^ \t\n\r:{}\[\],]+)([ \t\n\r]*):")
_SPACE = re.compile(r"[ \t\r]*")
_CHUNK = re.compile(r"[^'\"\\\x00-\x1f]*")
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"null": None, "true": True, "false": False}
_LARGE = 1e10
"""From here on the package leaves a number that was written with point or exponent as it is."""


class HjsonError(ValueError):
    """A text that is not hjson; the message says what is wrong, and where."""


def loads(text: str) -> Any:
    """The value that DeepSpeed would read; ``{}`` for an empty text. Raises ``HjsonError``."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_float=_fraction, parse_constant=_no_json)
    except (ValueError, OverflowError, RecursionError):
        pass  # not JSON, or wrong: read again, slowly, by somebody who can say where
    # DeepSpeed opens the file as text, where every kind of line end is read as one
    return _Reader(text.replace("\r\n", "\n").replace("\r", "\n")).document()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key twice")
    return result


def _fraction(text: str) -> int | float:
    """A number with point or exponent, an integer where it is integral; ``OverflowError`` beyond every float."""
    number = float(text)
    whole = int(number)
    return whole if whole == number and abs(number) < _LARGE else number


def _no_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


class _Reader:
    """One text; every method takes a position in it and returns what is there with the position after it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def document(self) -> Any:
        start = 1 if self._text.startswith("\ufeff") else 3 if self._text.startswith("\xef\xbb\xbf") else 0
        first = self._skip(start)
        if first == len(self._text) and start == 0:
            return {}
        if self._text[first : first + 1] in ("{", "["):
            value, end = self._value(first, 0)
        else:
            try:
                value, end = self._mapping(first, 0, braces=False)
            except HjsonError as error:
                try:
                    value, end = self._value(first, 0)
                except HjsonError:
                    raise error from None
        end = self._skip(end)
        if end != len(self._text):
            raise self._fault("something follows where the text should end", end)
        return value

    def _fault(self, what: str, at: int) -> HjsonError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return HjsonError(f"{what} (line {line}, column {column})")

    def _skip(self, at: int) -> int:
        """The next position that is neither white space nor comment."""
        match = _GAP.match(self._text, at)
        end = match.end() if match else at
        if self._text.startswith("/*", end):
            raise self._fault("a comment is not closed with */", end)
        return end

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise self._fault(f"it is nested deeper than {MAX_DEPTH} levels", at)
        char = self._text[at : at + 1]
        if not char:
            raise self._fault("a value is missing at the end of the text", at)
        if char == "{":
            return self._mapping(at + 1, depth, braces=True)
        if char == "[":
            return self._list(at + 1, depth)
        if self._text.startswith("'''", at):
            return self._lines(at)
        if char in "\"'":
            return self._quoted(at)
        if char in "}],:":
            raise self._fault(f"a value is missing before {char!r}", at)
        return self._bare(at)

    def _mapping(self, at: int, depth: int, braces: bool) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        at = self._skip(at)
        if braces and self._text.startswith("}", at):
            return result, at + 1
        while True:
            start = at
            key, at = self._key(at)
            if key in result:
                raise self._fault(f"the key {shown(key)} is given twice, which DeepSpeed refuses", start)
            at = self._skip(at)
            if not self._text.startswith(":", at):
                raise self._fault(f"the key {shown(key)} is not followed by ':'", at)
            result[key], at = self._value(self._skip(at + 1), depth + 1)
            at = self._comma(at)
            if braces and self._text.startswith("}", at):
                return result, at + 1
            if not braces and at == len(self._text):
                return result, at

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        result: list[Any] = []
        at = self._skip(at)
        while not self._text.startswith("]", at):
            if at == len(self._text):
                raise self._fault("a list is not closed with ]", at)
            value, at = self._value(at, depth + 1)
            result.append(value)
            at = self._comma(at)
        return result, at + 1

    def _comma(self, at: int) -> int:
        at = self._skip(at)
        return self._skip(at + 1) if self._text.startswith(",", at) else at

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in ('"', "'"):
            return self._quoted(at)
        match = _KEY.match(self._text, at)
        if match:
            key, space = match.groups()
            return key.rstrip() if space else key, match.end() - 1
        if at == len(self._text):
            raise self._fault("the text ends where a key or a closing brace should be", at)
        raise self._fault("a key with ':' is missing; a key with spaces or punctuation needs quotes", at)

    def _bare(self, at: int) -> tuple[Any, int]:
        """A number or word up to a delimiter, else text up to the end of the line."""
        end = _end(_PLAIN_END, self._text, at)
        word = self._text[at:end].strip()
        if word in _WORDS and self._text[at] == word[0]:
            return _WORDS[word], end
        match = _NUMBER.match(self._text, at)
        if match and match.end() == end and self._text[at] in "-0123456789":
            whole, fraction, exponent = match.groups()
            try:
                if fraction or exponent:
                    return _fraction(whole + (fraction or "") + (exponent or "")), end
                return int(whole), end
            except (OverflowError, ValueError):
                raise self._fault("a number is too large", at) from None
        end = _end(_LINE_END, self._text, at)
        return self._text[at:end].strip(), end

    def _quoted(self, at: int) -> tuple[str, int]:
        text, quote, start = self._text, self._text[at], at
        parts: list[str] = []
        at += 1
        while True:
            end = _end(_CHUNK, text, at, whole=True)
            parts.append(text[at:end])
            char = text[end : end + 1]
            at = end + 1
            if not char:
                raise self._fault("text is not closed with its quote", start)
            if char == quote:
                return "".join(parts), at
            if char in "\"'":
                parts.append(char)
            elif char != "\\":
                raise self._fault("text in quotes holds a line end or another control character", end)
            else:
                part, at = self._escape(at)
                parts.append(part)

    def _escape(self, at: int) -> tuple[str, int]:
        """What follows a backslash."""
        char = self._text[at : at + 1]
        if char in _ESCAPES:
            return _ESCAPES[char], at + 1
        code = self._code(at)
        if code is None:
            raise self._fault("a backslash is not followed by \" ' \\ / b f n r t or u and four hexadecimal digits", at)
        at += 5
        if code & 0xFC00 == 0xD800 and self._text.startswith("\\u", at):
            low = self._code(at + 1)
            if low is None and self._text[at + 3 : at + 4] not in ("x", "X") and len(self._text) >= at + 6:
                raise self._fault("\\u is not followed by four hexadecimal digits", at)
            if low is not None and low & 0xFC00 == 0xDC00:
                return chr(0x10000 + (((code - 0xD800) << 10) | (low - 0xDC00))), at + 6
        return chr(code), at

    def _code(self, at: int) -> int | None:
        digits = self._text[at + 1 : at + 5]
        if self._text[at : at + 1] != "u" or len(digits) != 4 or digits[1] in "xX":
            return None
        try:
            code = int(digits, 16)
        except ValueError:
            return None
        return code if code >= 0 else None

    def _lines(self, at: int) -> tuple[str, int]:
        """Text in three single quotes; its lines lose the indentation of the first quote."""
        text = self._text
        newline = text.rfind("\n", 0, at)
        if newline < 0:
            # the package looks for the line's start from the end of the text then, and fails without any line end
            newline = text.rfind("\n") - len(text)
            if newline < -len(text):
                raise self._fault("text in three quotes needs a line end somewhere in the file", at)
        indent = at - 1 - newline
        start = _end(_SPACE, text, at + 3, whole=True)
        close = text.find("'''", start)
        if close < 0:
            raise self._fault("text is not closed with three quotes", at)
        first, *rest = text[start:close].split("\n")
        lines = [first, *(_unindented(line, indent) for line in rest)]
        if start < len(text) and text[start] == "\n":
            lines = lines[1:]
        result = "\n".join(line.replace("\r", "") for line in lines)
        return result[:-1] if result.endswith("\n") else result, close + 3


def _end(pattern: re.Pattern[str], text: str, at: int, whole: bool = False) -> int:
    """Where the pattern's next match begins, or, for the ``whole`` of one that begins here, ends."""
    match = pattern.match(text, at) if whole else pattern.search(text, at)
    return len(text) if match is None else match.end() if whole else match.start()


def _unindented(line: str, indent: int) -> str:
    kept = len(line) - len(line.lstrip(" \t\r"))
    return line[min(kept, indent) :]
