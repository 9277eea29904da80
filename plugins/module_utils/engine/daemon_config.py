# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The text of ``/etc/docker/daemon.json``: read strictly, merged key by key, written so that little else changes.

The merge is JSON Merge Patch (RFC 7396): mappings are merged, everything else is replaced, ``null`` removes a key.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from ..common.problems import Problem, shown

MAX_BYTES = 1024 * 1024
"""A larger file is not an engine's configuration."""
MAX_DEPTH = 32
"""Mappings and lists inside each other. The deepest key of the engine (builder.gc.policy) has five."""
DEFAULT_INDENT = 4

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_INDENT = re.compile(r"^\s*\{[^\S\n]*\n( +)\"")


class DaemonConfigError(Exception):
    """The file, or what is requested, cannot be used; the text says what, where, and what to do."""


def decode(content: bytes, path: str) -> str:
    """The text of the file, without the byte order mark that some editors put before it."""
    if len(content) > MAX_BYTES:
        raise DaemonConfigError(_refused(path, f"it has {len(content)} bytes, more than {MAX_BYTES}"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"the byte at position {error.start} is not UTF-8 text"
        raise DaemonConfigError(_refused(path, reason)) from None


def parse(text: str, path: str) -> dict[str, Any]:
    """The configuration in the file; an empty file is an empty configuration, as for the engine.

    Of a key that appears twice the last value counts, as for the engine (tried with 20.10), which however joins some
    mappings, replaces others, and passes over some nulls: such a file is refused.
    """
    if not text.strip():
        return {}
    unclear: list[str] = []

    def last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found and not same(found[key], value):
                unclear.extend([key] if {type(value), type(found[key])} & {dict, type(None)} else [])
            found[key] = value
        return found

    try:
        found = json.loads(text, parse_constant=_constant, parse_float=_finite, object_pairs_hook=last)
    except json.JSONDecodeError as error:
        reason = f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        # The engine reads no further than to the end of the mapping.
        raise DaemonConfigError(_refused(path, reason, starts=error.msg == "Extra data")) from None
    except RecursionError:
        raise DaemonConfigError(_refused(path, "it nests too deep")) from None
    except ValueError as error:  # numbers
        raise DaemonConfigError(_refused(path, f"it is not JSON: {error}", starts=False)) from None
    if not isinstance(found, dict):
        kind = f"it holds a JSON {_kind(found)}, not a mapping"
        raise DaemonConfigError(_refused(path, kind, starts=found is None))
    if too_deep(found):
        raise DaemonConfigError(_refused(path, f"it nests deeper than {MAX_DEPTH} levels"))
    if unclear:
        reason = (
            f"{doubled(text, unclear[0])}, with another content, which engines join for some keys and not for others"
        )
        raise DaemonConfigError(_refused(path, reason))
    return found


def wanted_problems(wanted: object, path: str = "config") -> list[Problem]:
    """What of ``wanted`` no JSON file can hold."""
    if too_deep(wanted):
        return [Problem(path, f"nests deeper than {MAX_DEPTH} levels")]
    return _unwritable(wanted, path)


def merge(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """``wanted`` merged into ``found``, whose keys keep their order. Neither is changed."""
    merged = dict(found)
    for key, value in wanted.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def render(config: dict[str, Any], like: str = "") -> bytes:
    """The file's content, indented as ``like``, the text that was there, is."""
    indented = _INDENT.match(like)
    indent = len(indented.group(1)) if indented else DEFAULT_INDENT
    try:
        return (json.dumps(config, indent=indent, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can escape and UTF-8 cannot hold
        return (json.dumps(config, indent=indent) + "\n").encode("ascii")


def same(one: object, other: object) -> bool:
    """Equality as JSON has it: ``true`` is not 1, 1 is not 1.0, and the order of keys does not count."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return _scalar(one) is _scalar(other) and one == other


def _scalar(value: object) -> type | None:
    # Not its type: Ansible gives numbers and texts of variables types of its own, which derive from these.
    return next((kind for kind in (bool, int, float, str) if isinstance(value, kind)), None)


def changed_keys(before: dict[str, Any], after: dict[str, Any], path: str = "") -> list[str]:
    """The dotted names of what differs, such as ``log-opts.max-size``: of the innermost mapping that both have."""
    names: list[str] = []
    for key in [*before, *(key for key in after if key not in before)]:
        one, other = before.get(key), after.get(key)
        name = f"{path}.{key}" if path else str(key)
        if isinstance(one, dict) and isinstance(other, dict):
            names += changed_keys(one, other, name)
        elif key not in before or key not in after or not same(one, other):
            names.append(name)
    return names


def too_deep(value: object) -> bool:
    """Whether mappings and lists stand more than ``MAX_DEPTH`` deep inside each other."""
    level: list[object] = [value]
    for dummy in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _refused(path: str, reason: str, *, starts: bool = True) -> str:
    """``starts``: whether an engine may start with the file all the same. What is said of it was tried with 20.10."""
    engine = "" if starts else "; the engine could not start with it either"
    return f"{path} was left as it is: {reason}. Fix it, or move it away{engine}"


def _kind(value: object) -> str:
    kinds = {list: "list", str: "text", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isfinite(number):
        return number
    raise ValueError(f"the number {shown(text)} is too large")


def doubled(text: str, name: str | None = None) -> str:
    """Which key, or whether ``name``, appears twice in one mapping of ``text``, which is JSON; empty for none."""
    seen: list[set[str] | None] = []
    last = None
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word == "{":
            seen.append(set())
        elif word == "[":
            seen.append(None)
        elif word in ("}", "]"):
            seen.pop()
        elif word == ":" and last is not None and seen and (keys := seen[-1]) is not None:
            key = json.loads(last.group())
            if key in keys and name in (None, key):
                start = last.start()
                line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
                return f"the key {shown(key)} appears twice, again at line {line}, column {column}"
            keys.add(key)
        last = token
    return ""


def _unwritable(value: object, path: str) -> list[Problem]:
    if isinstance(value, dict):
        return [
            problem
            for key, inner in value.items()
            for problem in (
                _unwritable(inner, f"{path}.{key}")
                if isinstance(key, str)
                else [Problem(path, f"the key {shown(key)} must be text")]
            )
        ]
    if isinstance(value, list):
        return [problem for i, inner in enumerate(value) for problem in _unwritable(inner, f"{path}[{i}]")]
    if isinstance(value, float) and not math.isfinite(value):
        return [Problem(path, f"must be a number, not {value}")]
    if value is None or isinstance(value, (str, bool, int, float)):
        return []
    return [Problem(path, f"must be text, a number, a boolean, a list or a mapping, not a {type(value).__name__}")]
