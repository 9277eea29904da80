# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The messages of a channel between supervisors: their fields are checked before anything uses them.

Part of the supervisor's archive: standard library, Python 3.8 or later.

A message that is authentic still comes from another node, which may be broken or hostile. What is not listed here, has
another type, is longer or is not a finite number ends the channel.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

from ...gpu.readings import KEYS

LONGEST_LINE = 65536
"""Characters of one line of a log, as the supervisor reads it."""
LONGEST_TEXT = 262144
"""Characters of a reason."""
LONGEST_PATH = 4096
MOST_RANKS = 1 << 20
PIECE = 1 << 19
"""Bytes after which lines, or files of a listing, go into another message."""
MOST_PIECES = 32
"""Messages of one listing."""
MOST_GPUS = 64
MOST_DEVICES = 64
"""Interfaces, or ports of HCAs, of one node."""
LONGEST_SETTING = 1000

Check = Callable[[Any, str], None]

_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f'\"`$\\\u2028\u2029]")
_STATES = ("failed", "stopped", "succeeded")


class MessageError(Exception):
    """A message is not one that this end takes: which field, and why."""


def usable_path(path: str) -> bool:
    """Whether a path that a node found below a folder may become part of a message or an argument of a command."""
    if not path or len(path) > LONGEST_PATH or _NOT_IN_PATHS.search(path) or not _encodes(path):
        return False
    return all(part not in {"", ".", ".."} and part[0] not in "-~" for part in path.split("/"))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(least: int, most: int) -> Check:
    def check(value: Any, name: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise MessageError(f"{name} is not a whole number from {least} to {most}")

    return check


def _finite(least: float, most: float) -> Check:
    def check(value: Any, name: str) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
            or not least <= value <= most
        ):
            raise MessageError(f"{name} is not a number from {least:g} to {most:g}")

    return check


def _truth(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise MessageError(f"{name} is not true or false")


def _text(most: int, *, line: bool = False) -> Check:
    def check(value: Any, name: str) -> None:
        if not isinstance(value, str):
            raise MessageError(f"{name} is not a text")
        if len(value) > most:
            raise MessageError(f"{name} has {len(value)} characters, where {most} are the most")
        if ("\n" if line else "\0") in value or not _encodes(value):
            raise MessageError(f"{name} holds characters that do not belong there")

    return check


def _list(item: Check, most: int | None = None) -> Check:
    def check(value: Any, name: str) -> None:
        if not isinstance(value, list):
            raise MessageError(f"{name} is not a list")
        if most is not None and len(value) > most:
            raise MessageError(f"{name} has {len(value)} entries, where {most} are the most")
        for number, one in enumerate(value):
            item(one, f"{name}[{number}]")

    return check


def _or_none(inner: Check) -> Check:
    def check(value: Any, name: str) -> None:
        if value is not None:
            inner(value, name)

    return check


def _mapping(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise MessageError(f"{name} is not a mapping")


def _one_of(*values: str) -> Check:
    def check(value: Any, name: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise MessageError(f"{name} is none of {', '.join(values)}")

    return check


def _pair(first: Check, second: Check) -> Check:
    def check(value: Any, name: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise MessageError(f"{name} is not a pair")
        first(value[0], name)
        second(value[1], name)

    return check


def _row_of_gpu(value: Any, name: str) -> None:
    if not isinstance(value, list) or len(value) != len(KEYS):
        raise MessageError(f"{name} is not a row of {len(KEYS)}")
    _whole(0, MOST_RANKS)(value[0], name)
    for one in value[1:]:
        _or_none(_finite(0, 1e18))(one, name)


_RANK, _CODE = _whole(0, MOST_RANKS - 1), _whole(-(1 << 31), 1 << 31)
_LINE = _text(LONGEST_LINE, line=True)


def _name_of_hang(value: Any, name: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}", value, re.ASCII):
        raise MessageError(f"{name} is not the number of an examination")


def _codes_by_rank(value: Any, name: str) -> None:
    _mapping(value, name)
    for rank, code in value.items():
        if not re.fullmatch(r"[0-9]{1,7}", rank, re.ASCII):
            raise MessageError(f"{name} has a key that is not a rank")
        _CODE(code, name)


def _path(value: Any, name: str) -> None:
    if not isinstance(value, str) or not usable_path(value):
        raise MessageError(f"{name} is not a plain relative path")


def _listing(value: Any, name: str) -> None:
    _fields(value, {"files": _list(_pair(_path, _whole(-1, 1 << 62))), "latest": _mapping, "truncated": _truth}, name)
    for path, text in value["latest"].items():
        _path(path, f"{name}.latest")
        if text != "":
            _path(text, f"{name}.latest")


def _fields(value: Any, fields: Mapping[str, Check], name: str, optional: Iterable[str] = ()) -> None:
    _mapping(value, name)
    if set(value) - set(fields):
        raise MessageError(f"{name} has a field that is not known")
    for key, check in fields.items():
        if key in value:
            check(value[key], f"{name}.{key}")
        elif key not in optional:
            raise MessageError(f"{name}.{key} is missing")


_FROM_FOLLOWER: dict[str, dict[str, Check]] = {
    "beat": {},
    "ready": {"pid": _whole(0, 1 << 31)},
    "lines": {"lines": _list(_pair(_or_none(_RANK), _LINE))},
    "steps": {"lines": _list(_pair(_RANK, _LINE)), "sign": _truth},
    "part": {"ranks": _codes_by_rank, "seen": _list(_RANK), "code": _or_none(_CODE), "clean": _truth},
    "ended": {"ranks": _codes_by_rank, "code": _CODE, "problem": _LINE},
    "listing": {"found": _listing, "more": _truth},
    "stop": {"reason": _LINE},
    "examined": {
        "name": _name_of_hang,
        "piece": _text(2 * PIECE, line=True),
        "more": _truth,
        "problem": _LINE,
    },
    "gpus": {"gpus": _list(_row_of_gpu, MOST_GPUS)},
    "nccl": {
        "size": _whole(1, MOST_RANKS),
        "ranks": _list(_RANK),
        "rings": _truth,
        "network": _text(64, line=True),
        "devices": _list(_text(80, line=True), MOST_DEVICES),
        "interface": _text(LONGEST_SETTING, line=True),
        "hcas": _text(LONGEST_SETTING, line=True),
    },
}
_END: dict[str, Check] = {
    "state": _one_of(*_STATES),
    "reason": _text(LONGEST_TEXT),
    "grace": _finite(0, 86400),
    "again": _truth,
}
_FROM_LEADER: dict[str, dict[str, Check]] = {
    "beat": {},
    "start": {
        "attempt": _whole(1, 1 << 20),
        "master_port": _whole(0, 65535),
        "arguments": _list(_text(LONGEST_TEXT)),
        "members": _list(_text(255)),
        "config": _or_none(_mapping),
    },
    "list": {"folder": _text(LONGEST_PATH)},
    "examine": {"name": _name_of_hang},
    "end": _END,
    "bye": _END,
}


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MessageError("it has a number that is not finite")
    return value


def _integer(text: str) -> int:
    # Before Python 3.11 a number of a million digits takes seconds.
    if len(text) > 40:
        raise MessageError("it has a number of more than 40 digits")
    return int(text)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_number)
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode(message: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(message).encode("utf-8", "replace")


def decode(payload: bytes) -> dict[str, Any]:
    """The mapping that a payload holds."""
    try:
        message = _DECODER.decode(payload.decode("utf-8"))
    except RecursionError:
        raise MessageError("it is nested too deeply") from None
    except ValueError:
        raise MessageError("it is not JSON") from None
    if not isinstance(message, dict) or not isinstance(message.get("t"), str):
        raise MessageError("it does not say what it is")
    return message


def _checked(payload: bytes, kinds: Mapping[str, Mapping[str, Check]]) -> dict[str, Any]:
    message = decode(payload)
    kind = message["t"]
    if kind not in kinds:
        raise MessageError("it is of a kind that this end does not take")
    optional = _END if kind in {"end", "bye"} else ()
    _fields({key: value for key, value in message.items() if key != "t"}, kinds[kind], kind, optional)
    return message


def from_follower(payload: bytes) -> dict[str, Any]:
    """A message that the leader may use, or MessageError."""
    return _checked(payload, _FROM_FOLLOWER)


def from_leader(payload: bytes, node: str) -> dict[str, Any]:
    """A message that the follower on ``node`` may use, or MessageError."""
    message = _checked(payload, _FROM_LEADER)
    if message["t"] == "start" and node not in message["members"]:
        raise MessageError(f"start.members does not name {node}")
    return message


def pieces(lines: Iterable[tuple[int | None, str]]) -> Iterator[list[tuple[int | None, str]]]:
    """Lines in as many messages as they need."""
    found: list[tuple[int | None, str]] = []
    size = 0
    for item in lines:
        found.append(item)
        size += 6 * len(item[1]) + 16  # a character takes six bytes at most
        if size > PIECE:
            yield found
            found, size = [], 0
    if found:
        yield found


def listing_messages(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What ``list_files`` found, in as many messages as it needs. Odd names, which no checkpoint has, are left out."""
    latest: dict[str, str] = {}
    size = 0
    for path, text in found["latest"].items():
        size += len(path.encode("utf-8", "replace")) + 4 * len(text) + 16
        if usable_path(path) and size <= PIECE:
            latest[path] = text if usable_path(text) else ""
    parts: list[list[Any]] = [[]]
    for path, length in found["files"]:
        if not usable_path(path):
            continue
        if size > PIECE:
            parts.append([])
            size = 0
        parts[-1].append([path, length])
        size += len(path.encode()) + 32
    truncated = bool(found["truncated"]) or len(parts) > MOST_PIECES
    parts = parts[:MOST_PIECES]
    return [
        {
            "t": "listing",
            "found": {"files": files, "latest": {} if number else latest, "truncated": truncated},
            "more": number < len(parts) - 1,
        }
        for number, files in enumerate(parts)
    ]
