# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys and values of a ds_config.json against the blocks of one DeepSpeed release.

Why it is needed: DeepSpeed ignores unknown keys at the top level and in its plain blocks, so a typo trains with a
default, and it reads "auto" in its pydantic blocks as "use the default". A value that DeepSpeed would convert (``"2"``,
``5e8``) is written as the plain value; YAML reads ``5e8`` and ``1e-5`` as text, so text that is a number counts as one.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_blocks_tools import TOOLS
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_blocks_training import TRAINING
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import AUTO, FILLED_IN, ZERO_ALIASES, Version
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_field import Field
from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import Problem, shown

BLOCKS = {**TRAINING, **TOOLS}
MAX_DEPTH = 40
"""Nesting that no configuration reaches; deeper input would exhaust the interpreter's stack."""
MAX_NUMBER = 2**63
"""sys.maxsize, the default of stage3_model_persistence_threshold, is the largest number DeepSpeed uses."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def join(path: str, key: object) -> str:
    """``zero_optimization`` and ``stage`` as ``zero_optimization.stage``; a monstrous key is cut."""
    name = str(key) if len(str(key)) <= 80 else str(key)[:77] + "..."
    return f"{path}.{name}" if path else name


def plain(value: Any) -> tuple[Any, list[Problem]]:
    """A copy that JSON can hold, with integral floats as integers, and what JSON or DeepSpeed could not hold."""
    problems: list[Problem] = []
    return _plain(value, "", 0, problems), problems


def _plain(value: Any, path: str, depth: int, problems: list[Problem]) -> Any:
    fault = ""
    if depth > MAX_DEPTH:
        fault = f"is nested deeper than {MAX_DEPTH} levels"
    elif isinstance(value, dict):
        return {str(key): _plain(item, join(path, key), depth + 1, problems) for key, item in value.items()}
    elif isinstance(value, list):
        return [_plain(item, f"{path}[{index}]", depth + 1, problems) for index, item in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        fault = "must be a finite number; JSON knows no infinity and no NaN"
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > MAX_NUMBER:
        fault = "is larger than any number DeepSpeed uses (2**63)"
    elif isinstance(value, float) and value.is_integer():
        return int(value)
    if fault:
        problems.append(Problem(path[:200], fault))
        return None
    return value


def canonical_names(config: dict[str, Any]) -> tuple[dict[str, Any], list[Problem], list[Problem]]:
    """Old and short spellings by the one that is written; returns the copy, errors and warnings."""
    result, errors, warnings = dict(config), [], []
    if "bfloat16" in result:
        if "bf16" in result:
            errors.append(Problem("bfloat16", "is the old name of bf16, which is given too; keep bf16"))
        else:
            result["bf16"] = result["bfloat16"]
            warnings.append(Problem("bfloat16", "is deprecated; it is written as bf16"))
        del result["bfloat16"]
    zero = result.get("zero_optimization")
    if isinstance(zero, dict):
        for short, long in ZERO_ALIASES.items():
            if short in zero and long in zero:
                errors.append(Problem(f"zero_optimization.{short}", f"is {long}, which is given too; keep {long}"))
        result["zero_optimization"] = {ZERO_ALIASES.get(key, key): value for key, value in zero.items()}
    return result, errors, warnings


class Checker:
    """Walks a configuration; ``errors`` collects what DeepSpeed of that release would refuse, ignore or misread."""

    def __init__(self, version: Version, integration: str) -> None:
        self.errors: list[Problem] = []
        self._version = version
        self._integration = integration

    def mapping(self, value: dict[str, Any], block: str = "", path: str = "") -> dict[str, Any]:
        """A copy with every value as the block's fields want it; a value with an error stays as it was."""
        fields = BLOCKS[block]
        result: dict[str, Any] = {}
        for key, item in value.items():
            here = join(path, key)
            field = fields.get(key)
            if field is None or not field.known_to(self._version):
                self._error(here, self._unknown(key, block, field))
                result[key] = item
            else:
                result[key] = self._value(field, item, here)
        return result

    def _error(self, path: str, message: str) -> None:
        self.errors.append(Problem(path, message))

    def _unknown(self, key: str, block: str, field: Field | None) -> str:
        if field is not None and field.gone is not None and self._version >= field.gone:
            return f"was removed in DeepSpeed {field.gone}: {field.instead}"
        if field is not None:
            return f"came with DeepSpeed {field.since}; {self._version} does not know it"
        text = f"is not a key of DeepSpeed {self._version}"
        if len(key) > 64:
            return text
        homes = [home for home, fields in BLOCKS.items() if home != block and key in fields]
        if 0 < len(homes) <= 2:
            return f"{text} here; it belongs " + " or ".join(
                f"into {home}" if home else "to the top level" for home in homes
            )
        known = [name for name, candidate in BLOCKS[block].items() if candidate.known_to(self._version)]
        near = difflib.get_close_matches(key, known, n=1)
        return f"{text}; did you mean {near[0]!r}?" if near else text

    def _value(self, field: Field, value: Any, path: str) -> Any:
        if value == AUTO:
            if not field.own_auto:
                self._auto(path)
            return value
        if field.kind == "block":
            return self._mapping_or_error(value, path, field.block)
        if field.kind == "free":
            return self._mapping_or_error(value, path, None)
        if field.kind == "params":
            return self._params(self._mapping_or_error(value, path, None), path)
        converted = _convert(field, value)
        if converted is None:
            self._error(path, f"must be {_wanted(field)}, not {shown(value)}")
            return value
        return converted

    def _mapping_or_error(self, value: Any, path: str, block: str | None) -> Any:
        if not isinstance(value, dict):
            hint = "; write {stage: 1} for true" if path == "zero_optimization" and value is True else ""
            self._error(path, f"must be a mapping, not {shown(value)}{hint}")
            return value
        return value if block is None else self.mapping(value, block, path)

    def _params(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {key: self._params(item, join(path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._params(item, path) for item in value]
        if value == AUTO:
            self._auto(path)
            return value
        number = _number(value) if isinstance(value, str) else None
        return value if number is None else number

    def _auto(self, path: str) -> None:
        if path in FILLED_IN[self._integration]:
            return
        if self._integration == "deepspeed":
            self._error(
                path,
                '"auto" is filled in by Hugging Face alone: give a value, leave the key out for DeepSpeed\'s default,'
                " or set integration to huggingface or accelerate",
            )
        else:
            self._error(path, f'"auto" is not filled in here by integration {self._integration}: give a value')


def _convert(field: Field, value: Any) -> Any:
    """The value as the field's type, or ``None`` where it is none."""
    if field.kind == "flag":
        return _flag(value)
    if field.kind in {"whole", "number"}:
        number = _number(value)
        fits = number is not None and _within(field, number) and (field.kind == "number" or isinstance(number, int))
        return number if fits else None
    if field.kind == "choice":
        word = value.lower() if isinstance(value, str) else None
        return next((known for known in field.choices if known.lower() == word), None)
    if field.kind == "texts":
        allowed = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return value if allowed and (not field.choices or set(value) <= set(field.choices)) else None
    return value if isinstance(value, list if field.kind == "list" else str) else None


def _flag(value: Any) -> bool | None:
    if isinstance(value, str):
        return _FLAGS.get(value.lower())
    return bool(value) if isinstance(value, int) and value in (0, 1) else None


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number, problems = plain(int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else float(value))
        return None if problems else number
    return value if isinstance(value, (int, float)) else None


def _within(field: Field, number: float) -> bool:
    return (
        (field.ge is None or number >= field.ge)
        and (field.gt is None or number > field.gt)
        and (field.le is None or number <= field.le)
        and (field.lt is None or number < field.lt)
    )


def _wanted(field: Field) -> str:
    """What a field may hold, in words."""
    if field.kind in {"whole", "number"}:
        words = "a whole number" if field.kind == "whole" else "a number"
        bounds = [
            f"{text} {bound:g}"
            for text, bound in (
                ("of at least", field.ge),
                ("above", field.gt),
                ("at most", field.le),
                ("below", field.lt),
            )
            if bound is not None
        ]
        return " ".join([words, " and ".join(bounds)]).strip()
    if field.kind == "choice":
        return "one of " + ", ".join(field.choices)
    return {
        "flag": "true or false",
        "text": "text",
        "texts": "a list of " + (", ".join(field.choices) or "text"),
        "list": "a list",
    }[field.kind]
