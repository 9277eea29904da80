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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..common.problems import Problem, shown
from .blocks_data import DATA
from .blocks_experts import EXPERTS
from .blocks_removed import OPEN, REMOVED
from .blocks_tools import TOOLS
from .blocks_training import EXTRA_REFUSED, PRECISION_REFUSES, TRAINING
from .facts import AUTO, FILLED_IN, TENSOR_PARALLEL_ALIASES, ZERO_ALIASES, ZERO_DEPRECATED, ZERO_SWITCHES, Version
from .field import ALWAYS, FLAG, MAX_NUMBER, Field, as_number
from .foreign import accelerate_fault, accelerate_keys, is_comment
from .optimizers import (
    SCHEDULERS,
    elsewhere,
    optimizer_fault,
    optimizer_params,
    scheduler_fault,
    steps_fault,
    torch_arguments,
)

BLOCKS = {**TRAINING, **TOOLS, **DATA, **EXPERTS, **REMOVED}
MAX_DEPTH = 40
"""Nesting that no configuration reaches; deeper input would exhaust the interpreter's stack."""
_SEQUENCE_PARALLEL = Version(0, 17, 6)
"""First known release whose configuration class reads sequence_parallel_size alone."""
_PARAMS = ("optimizer.params", "scheduler.params")
"""Here a script may also set what DeepSpeed knows, such as total_num_steps, which it counts in its data."""
_SCRIPT = "a key that only the script reads belongs in script_keys"
_GUESSES = 100
"""So many unknown keys are answered with a near one; more are not typos, and each guess takes a millisecond."""


def join(path: str, key: object) -> str:
    """``zero_optimization`` and ``stage`` as ``zero_optimization.stage``; a monstrous key or path is cut."""
    name = _text(key)
    if len(name) > 80:
        name = name[:77] + "..."
    if not name or not name.isprintable():
        name = repr(name)
    path = f"{path}.{name}" if path else name
    return path if len(path) <= 200 else "..." + path[-197:]


def _text(key: object) -> str:
    """A key as text; YAML has numbers as keys, which Python refuses to print beyond thousands of digits."""
    return shown(key) if isinstance(key, int) and not isinstance(key, bool) else str(key)


def plain(value: Any) -> tuple[Any, list[Problem]]:
    """A copy that JSON can hold, with integral floats as integers, and what JSON or DeepSpeed could not hold."""
    problems: list[Problem] = []
    return _plain(value, "", 0, problems), problems


def _plain(value: Any, path: str, depth: int, problems: list[Problem]) -> Any:
    fault = ""
    if depth > MAX_DEPTH:
        fault = f"is nested deeper than {MAX_DEPTH} levels"
    elif isinstance(value, dict):
        result = {_text(key): _plain(item, join(path, key), depth + 1, problems) for key, item in value.items()}
        if len(result) == len(value):
            return result
        fault = "has two keys that JSON cannot distinguish, such as 1 and '1'"
    elif isinstance(value, list):
        return [_plain(item, f"{path}[{index}]", depth + 1, problems) for index, item in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        fault = "must be a finite number; JSON has neither infinity nor NaN"
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > MAX_NUMBER:
        fault = "is larger than any number DeepSpeed uses (2**63)"
    elif isinstance(value, float) and value.is_integer():
        return int(value)
    if fault:
        problems.append(Problem(path[:200] or "config", fault))
        return None
    return value


def canonical_names(config: dict[str, Any]) -> tuple[dict[str, Any], list[Problem], list[Problem]]:
    """Old and short spellings by the one that is written; returns the copy, errors and warnings."""
    result, errors, warnings = dict(config), [], []
    if "bfloat16" in result:
        if "bf16" in result:
            errors.append(Problem("bfloat16", "is the old name of bf16, which is also given; keep bf16"))
        else:
            result["bf16"] = result["bfloat16"]
            warnings.append(Problem("bfloat16", "is deprecated; it is written as bf16"))
        del result["bfloat16"]
    for block, aliases in (("zero_optimization", ZERO_ALIASES), ("tensor_parallel", TENSOR_PARALLEL_ALIASES)):
        given = result.get(block)
        if isinstance(given, dict):
            for other, written in aliases.items():
                if other in given and written in given:
                    errors.append(Problem(f"{block}.{other}", f"is {written}, which is also given; keep {written}"))
            result[block] = {aliases.get(key, key): value for key, value in given.items()}
    zero = result.get("zero_optimization")
    if isinstance(zero, dict):
        for old in ZERO_SWITCHES:
            if old in zero and FLAG.convert(zero[old]) is False:
                del zero[old]
                text = f"false is left out: {ZERO_DEPRECATED[old]} has replaced this key and is off where it is absent"
                warnings.append(Problem(f"zero_optimization.{old}", text))
    return result, errors, warnings


class Checker:
    """Walks a configuration; ``errors`` collects what DeepSpeed of that release would refuse, ignore or misread.

    ``warnings``: comments, which it ignores as they are meant to be.

    ``script_keys``: keys, as paths such as ``n_epochs`` or ``optimizer.no_wd_kws``, that the training script itself
    reads from the file and DeepSpeed ignores, and parameters of the optimizer or scheduler that it sets itself; they
    are taken as they are, or may be absent.
    """

    def __init__(self, version: Version, integration: str, script_keys: Sequence[str] = ()) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self._version = version
        self._integration = integration
        self._script_keys = set()
        self._offloaded = False
        self._guesses = _GUESSES
        for index, key in enumerate(script_keys):
            fault = self._script_key_fault(key) if isinstance(key, str) else f"must be text, not {shown(key)}"
            if fault:
                self._error(f"script_keys[{index}]", fault)
            else:
                self._script_keys.add(key)

    def mapping(self, value: dict[str, Any], block: str = "", path: str = "") -> dict[str, Any]:
        """A copy with every value as the block's fields want it; a value with an error stays as it was."""
        if not block:
            value = self._without_accelerate(value)
            self._offloaded = _device(value) in ("cpu", "nvme")
            self._sequence_parallel(value)
        unknown = partial(self._unknown, block)
        open_, comments = block in OPEN, not self._refuses_others(block)
        result = self._keys(value, BLOCKS[block], path, None if open_ else unknown, comments=comments and not open_)
        if block in ("optimizer", "scheduler") and isinstance(result.get("type"), str) and result["type"] != AUTO:
            self._class(block, result, path)
        return result

    def _keys(
        self,
        value: dict[str, Any],
        fields: dict[str, Field],
        path: str,
        unknown: Callable[[str], str] | None,
        *,
        comments: bool = False,
    ) -> dict[str, Any]:
        """A copy of a mapping; ``unknown``: what to say to a key that is not among the fields, ``None``: nothing.

        ``comments``: a key that holds a comment does no harm there.
        """
        result: dict[str, Any] = {}
        for key, item in value.items():
            here = join(path, key)
            field = fields.get(key)
            result[key] = item
            if here in self._script_keys:
                continue
            if field is None and comments and is_comment(key):
                self.warnings.append(Problem(here, "is a comment: DeepSpeed ignores it, like every unknown key"))
            elif field is None:
                if unknown is not None:
                    self._error(here, unknown(key))
            elif field.known_to(self._version):
                result[key] = self._value(field.at(self._version), item, here)
            else:
                self._error(here, self._not_now(field))
        for key, field in fields.items():
            by_script = join(path, key) in self._script_keys
            if field.needed and key not in value and field.known_to(self._version) and not by_script:
                if field.needed == ALWAYS:
                    self._error(join(path, key), "is missing; DeepSpeed does not work without it")
                elif result.get(field.needed) is True:
                    self._error(join(path, key), f"is missing; it is needed with {field.needed}: true")
        return result

    def _without_accelerate(self, config: dict[str, Any]) -> dict[str, Any]:
        """The rest, so that the keys of accelerate's own configuration are one error and not one each."""
        keys = [key for key in accelerate_keys(config) if key not in self._script_keys]
        if not keys:
            return config
        self._error("config", accelerate_fault(config, keys))
        return {key: value for key, value in config.items() if key not in keys}

    def _error(self, path: str, message: str) -> None:
        self.errors.append(Problem(path, message))

    def _unknown(self, block: str, key: str) -> str:
        if is_comment(key):
            return f"is a comment, which DeepSpeed {self._version} refuses in {block}; remove it"
        text = f"is not a key of DeepSpeed {self._version}"
        tail = "" if self._refuses_others(block) else _SCRIPT
        self._guesses -= 1
        if len(key) <= 64 and self._guesses >= 0:
            known = [name for name, field in BLOCKS[block].items() if field.known_to(self._version)]
            homes = [home for home, fields in BLOCKS.items() if home != block and key in fields]
            begun = [name for name in known if key.startswith(f"{name}_")]
            near = [max(begun, key=len)] if begun else difflib.get_close_matches(key, known, n=1)
            if 0 < len(homes) <= 2:
                places = [f"into {home}" if home else "to the top level" for home in homes]
                text += " here; it belongs " + " or ".join(places)
            elif near:
                text += f"; did you mean {near[0]!r}?"
        if not tail:
            return text
        return f"{text} {tail[0].upper()}{tail[1:]}" if text.endswith("?") else f"{text}; {tail}"

    def _refuses_others(self, block: str) -> bool:
        """Whether DeepSpeed itself refuses a key there that it does not know."""
        plain_once = block in ("fp16", "bf16") and self._version < PRECISION_REFUSES
        return block in EXTRA_REFUSED and not plain_once

    def _not_now(self, field: Field) -> str:
        if field.gone is not None and self._version >= field.gone:
            return f"was removed in DeepSpeed {field.gone}: {field.instead}"
        return f"came with DeepSpeed {field.since}; {self._version} does not support it"

    def _script_key_fault(self, key: str) -> str:
        home, dummy, name = key.rpartition(".")
        fields = {} if home in _PARAMS else BLOCKS.get(home)
        if not name or fields is None:
            return f"{shown(key)} must be a key, or the path of one in a block that DeepSpeed describes"
        if self._refuses_others(home):
            return f"{shown(key)}: DeepSpeed refuses keys of others in {home}; give it another place in the file"
        if name in fields:
            return f"{shown(key)} is a key of DeepSpeed itself, and is checked as such; take it out of script_keys"
        return ""

    def _value(self, field: Field, value: Any, path: str) -> Any:
        if isinstance(value, str) and value == AUTO:
            if not field.own_auto:
                self._auto(path)
            return value
        if field.kind in {"block", "blocks", "groups", "free", "params"}:
            return self._nested(field, value, path)
        converted = field.convert(value)
        if converted is None:
            self._error(path, f"must be {field.wanted()}, not {shown(value)}")
            return value
        return converted

    def _nested(self, field: Field, value: Any, path: str) -> Any:
        if field.kind == "blocks":
            if isinstance(value, list):
                return [self._item(item, field.block, f"{path}[{index}]") for index, item in enumerate(value)]
            self._error(path, f"must be a list of mappings, not {shown(value)}")
        elif not isinstance(value, dict):
            hint = "; write {stage: 1} for true" if path == "zero_optimization" and value is True else ""
            self._error(path, f"must be a mapping, not {shown(value)}{hint}")
        elif field.kind == "block":
            return self.mapping(value, field.block, path)
        elif field.kind == "groups":
            return {name: self._item(item, field.block, join(path, name)) for name, item in value.items()}
        return value

    def _item(self, value: Any, block: str, path: str) -> Any:
        if isinstance(value, dict):
            return self.mapping(value, block, path)
        self._error(path, f"must be a mapping, not {shown(value)}")
        return value

    def _sequence_parallel(self, config: dict[str, Any]) -> None:
        alone = "data_parallel_size" not in config and as_number(config.get("sequence_parallel_size", 1)) != 1
        if alone and self._version < _SEQUENCE_PARALLEL:
            text = f"has no effect in DeepSpeed {self._version} without data_parallel_size; give both"
            self._error("sequence_parallel_size", text)

    def _class(self, block: str, config: dict[str, Any], path: str) -> None:
        """The name of an optimizer or scheduler, and the parameters that its class takes."""
        name, here = config["type"], join(path, "params")
        fault = optimizer_fault(name, self._version) if block == "optimizer" else scheduler_fault(name)
        if fault:
            self._error(join(path, "type"), fault)
        params = config.get("params", {})
        if not isinstance(params, dict):
            return
        if block == "optimizer":
            title, fields = optimizer_params(name, params, self._offloaded, self._version)
        else:
            title, fields = name, SCHEDULERS.get(name)
        if fields is not None:
            unknown = partial(self._no_parameter, title, name if block == "optimizer" else "", fields)
            params = self._keys(params, fields, here, unknown)
        else:
            refused = [key for key in params if is_comment(key) or (key == "max_grad_norm" and block == "optimizer")]
            for key in refused:
                self._error(join(here, key), self._no_parameter(title, name, {}, key))
            for key in torch_arguments(name, params) if block == "scheduler" else ():
                if join(here, key) not in self._script_keys:
                    self._error(join(here, key), f"is missing; {title} does not work without it")
            params = self._as_is(params, here)
        if "params" in config:
            config["params"] = params
        fault = steps_fault(name, params, self._version) if block == "scheduler" else ""
        if fault:
            self._error(join(here, "total_num_steps"), fault)

    def _no_parameter(self, title: str, optimizer: str, fields: dict[str, Field], key: str) -> str:
        if is_comment(key):
            return f"is a comment, which {title} would get as a parameter; remove it"
        text = f"is not a parameter of {title}"
        other = elsewhere(optimizer, key)
        if other:
            return f"{text}: {other}"
        known = [name for name, field in fields.items() if field.known_to(self._version)]
        self._guesses -= 1
        near = difflib.get_close_matches(key, known, n=1) if len(key) <= 64 and self._guesses >= 0 else []
        return f"{text}; did you mean {near[0]!r}?" if near else f"{text}, which has {', '.join(known)}"

    def _as_is(self, value: Any, path: str) -> Any:
        """Parameters of a class that is not described here: text that is a number is one, "auto" must be filled in."""
        if isinstance(value, dict):
            return {key: self._as_is(item, join(path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._as_is(item, path) for item in value]
        if isinstance(value, str) and value == AUTO:
            self._auto(path)
            return value
        number = as_number(value) if isinstance(value, str) else None
        return value if number is None else number

    def _auto(self, path: str) -> None:
        if path in FILLED_IN[self._integration]:
            return
        if self._integration == "deepspeed":
            self._error(
                path,
                '"auto" works only with Hugging Face: give a value, leave the key out for DeepSpeed\'s default,'
                " or set integration to huggingface or accelerate",
            )
        else:
            self._error(path, f'"auto" is not filled in here by integration {self._integration}: give a value')


def _device(config: dict[str, Any]) -> Any:
    """Where the optimizer runs: ``zero_optimization.offload_optimizer.device``, or what old keys say."""
    zero = config.get("zero_optimization")
    if not isinstance(zero, dict):
        return None
    offload = zero.get("offload_optimizer")
    if isinstance(offload, dict):
        return offload.get("device")
    return "cpu" if FLAG.convert(zero.get("cpu_offload")) else None
