# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What one key of ds_config.json may hold: the vocabulary in which the blocks are written down."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .facts import Version

ALWAYS = "always"
MAX_NUMBER = 2**63
"""sys.maxsize, the default of stage3_model_persistence_threshold, is the largest number DeepSpeed uses."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}
"""The words that pydantic, and so DeepSpeed, takes for a boolean."""


@dataclass(frozen=True)
class Field:
    """What a key may hold.

    ``kind``:
    ``flag`` (boolean), ``whole``, ``number``, ``text``, ``choice``;
    ``texts``, ``wholes``, ``numbers`` (a list of them), ``rate`` (a number or a list of numbers, one a parameter
    group), ``list`` (of anything);
    ``block`` (a mapping described by the block of that name), ``blocks`` (a list of such mappings), ``groups`` (a
    mapping whose keys the user invents and whose values are such mappings);
    ``params`` (a mapping whose keys belong to the optimizer or scheduler class);
    ``free`` (a mapping that is not checked).
    """

    kind: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    size: int | None = None
    """How many items a list has, ``None``: any number; for ``text``: not ``None`` where it must not be empty."""
    choices: tuple[str, ...] = ()
    """The words that are allowed; for a ``flag``: not empty where true is refused."""
    any_case: bool = False
    """DeepSpeed takes the choices in capital and small letters alike."""
    block: str = ""
    own_auto: bool = False
    """"auto" is a value that DeepSpeed itself knows here."""
    needed: str = ""
    """``always``, or the neighbouring key that makes this one necessary when it is true."""
    since: Version | None = None
    """First release that reads the key; ``None``: before any known one."""
    gone: Version | None = None
    """First release that refuses or ignores the key."""
    instead: str = ""
    """What to do where the key is gone."""
    before: tuple[Version, Field] | None = None
    """Another field that held before that release."""

    def known_to(self, version: Version) -> bool:
        """Whether that release reads the key."""
        return (self.since is None or version >= self.since) and (self.gone is None or version < self.gone)

    def at(self, version: Version) -> Field:
        """The field as that release has it."""
        return self.before[1] if self.before is not None and version < self.before[0] else self

    def convert(self, value: Any) -> Any:
        """The value as it is written, or ``None`` where the field cannot hold it; not for mappings."""
        return _CONVERT[self.kind](self, value)

    def wanted(self) -> str:
        """What the field may hold, in words; not for mappings."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        text = _WORDS[self.kind]
        if self.kind == "flag" and self.choices:
            text = "false; the class has the parameter and refuses true"
        if self.kind == "texts" and self.choices:
            text = "a list of " + ", ".join(self.choices)
        if self.kind == "text" and self.size is not None:
            text = "text that is not empty"
        elif self.size is not None:
            text = text.replace("a list of", f"a list of {self.size}")
        bounds = [
            f"{words} {bound:g}"
            for words, bound in (
                ("of at least", self.ge),
                ("above", self.gt),
                ("at most", self.le),
                ("below", self.lt),
            )
            if bound is not None
        ]
        return " ".join([text, " and ".join(bounds)]).strip()


def since(text: str, field: Field) -> Field:
    """The field, read first by that release."""
    return replace(field, since=_v(text))


def gone(text: str, field: Field, instead: str) -> Field:
    """The field, not read any more from that release on, and what to do then."""
    return replace(field, gone=_v(text), instead=instead)


def before(text: str, old: Field, field: Field) -> Field:
    """``old`` before that release, ``field`` from it on."""
    return replace(field, before=(_v(text), old))


def needed(field: Field, when: str = ALWAYS) -> Field:
    """The field, without which DeepSpeed fails: always, or when the neighbouring key ``when`` is true."""
    return replace(field, needed=when)


def choice(*choices: str, own_auto: bool = False, any_case: bool = False) -> Field:
    """One of the words."""
    return Field("choice", choices=choices, own_auto=own_auto, any_case=any_case)


def block(name: str) -> Field:
    """A mapping described by the block of that name."""
    return Field("block", block=name)


def as_number(value: Any) -> int | float | None:
    """A number, or text that is one, with integral floats as integers; ``None`` for anything else."""
    if isinstance(value, str) and len(value) <= 100 and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= MAX_NUMBER:
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _v(text: str) -> Version:
    return Version(*map(int, text.split(".")))


def _number(field: Field, value: Any) -> Any:
    number = as_number(value)
    if number is None or not (
        (field.ge is None or number >= field.ge)
        and (field.gt is None or number > field.gt)
        and (field.le is None or number <= field.le)
        and (field.lt is None or number < field.lt)
    ):
        return None
    return number


def _whole(field: Field, value: Any) -> Any:
    number = _number(field, value)
    return number if isinstance(number, int) else None


def _flag(field: Field, value: Any) -> Any:
    if isinstance(value, str):
        flag = _FLAGS.get(value.lower())
    else:
        flag = bool(value) if isinstance(value, int) and value in (0, 1) else None
    return None if flag and field.choices else flag


def _choice(field: Field, value: Any) -> Any:
    if field.any_case and isinstance(value, str):
        return next((known for known in field.choices if known.lower() == value.lower()), None)
    return value if isinstance(value, str) and value in field.choices else None


def _texts(field: Field, value: Any) -> Any:
    allowed = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return value if allowed and (not field.choices or set(value) <= set(field.choices)) else None


def _numbers(field: Field, value: Any) -> Any:
    if not isinstance(value, list) or field.size not in (None, len(value)):
        return None
    convert = _whole if field.kind == "wholes" else _number
    items = [convert(field, item) for item in value]
    return None if None in items else items


def _rate(field: Field, value: Any) -> Any:
    return _numbers(field, value) or None if isinstance(value, list) else _number(field, value)


_CONVERT: dict[str, Callable[[Field, Any], Any]] = {
    "flag": _flag,
    "whole": _whole,
    "number": _number,
    "text": lambda field, value: value if isinstance(value, str) and (value or field.size is None) else None,
    "choice": _choice,
    "texts": _texts,
    "wholes": _numbers,
    "numbers": _numbers,
    "rate": _rate,
    "list": lambda field, value: value if isinstance(value, list) else None,
}
_WORDS = {
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "text": "text",
    "texts": "a list of text",
    "wholes": "a list of whole numbers",
    "numbers": "a list of numbers",
    "rate": "a number or a list of numbers",
    "list": "a list",
}

FLAG = Field("flag")
WHOLE = Field("whole")
COUNT = Field("whole", gt=0)
SIZE = Field("whole", ge=0)
NUMBER = Field("number")
AMOUNT = Field("number", ge=0)
SHARE = Field("number", ge=0, le=1)
TEXT = Field("text")
NAME = Field("text", size=1)
TEXTS = Field("texts")
LIST = Field("list")
FREE = Field("free")
DEVICE = choice("none", "cpu", "nvme")
COMM_DTYPE = choice("fp16", "bf16", "fp32", any_case=True)
DTYPE = choice("fp16", "float16", "half", "bf16", "bfloat16", "fp32", "float32", "float")
"""The names that DeepSpeed's ``DtypeEnum`` knows, less int8, which is none to train with, and the ``torch.`` forms."""
