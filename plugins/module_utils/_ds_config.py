# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A ds_config.json from a preset, overrides and what is known of the job: built, checked, rendered, read back.

Everything here is pure; ``plugins/modules/ds_config.py`` is the glue. Facts and checks: the other ``_ds_*`` files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from ansible_collections.swarmspeed.cluster.plugins.module_utils import _ds_batch, _ds_rules, _ds_schema
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import (
    AUTO,
    NEWEST,
    Version,
    nearest_known,
    parse_version,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_presets import PRESETS, preset
from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import Problem, shown

PRECISIONS = ("auto", "fp32", "fp16", "bf16")
_SECRET = re.compile(r"(?:^|_)(?:api_?key|token|secret|password)$", re.IGNORECASE)
"""Not ``max_tokens``: that value would be masked wherever its digits appear."""
_SECRET_IN_TEXT = re.compile(
    r"""(?:\b|_)(?:api_?key|token|secret|password)["']?\s*:\s*["']?([^"',\s}]+)""", re.IGNORECASE
)


class UnreadableError(Exception):
    """A file that is no ds_config.json: not JSON, a key twice, or not a mapping."""


@dataclass(frozen=True)
class Request:
    """What a user asks for; the fields are the module's parameters."""

    preset: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    integration: str = "deepspeed"
    deepspeed_version: str = str(NEWEST)
    world_size: int | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be written, what to say about it, and, where ``errors`` is not empty, why it must not be."""

    config: dict[str, Any]
    batch: dict[str, int] | None = None
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)


def build(request: Request) -> Plan:
    """The configuration for a request, with all errors at once."""
    overrides, errors = _ds_schema.plain(request.config)
    if errors:
        return Plan({}, errors=errors)  # nothing further can be said of a value that JSON cannot hold
    overrides, errors, warnings = _ds_schema.canonical_names(overrides)
    version = _version(request.deepspeed_version, errors, warnings)
    if request.preset is None and not overrides:
        errors.append(Problem("", f"nothing to write: give a preset ({', '.join(PRESETS)}), config, or both"))
        return Plan({}, errors=errors)
    if request.preset == "pipeline" and request.integration != "deepspeed":
        errors.append(Problem("preset", f"pipeline is not driven by integration {request.integration}; use deepspeed"))

    config = merge(_base(request, overrides), overrides)
    checker = _ds_schema.Checker(version, request.integration)
    config = checker.mapping(config)
    errors += checker.errors
    errors += _precision_errors(request.precision, config)
    errors += _ds_rules.conflicts(config, version)
    warnings += _ds_rules.warnings(config)
    batch = None
    if request.world_size is not None and (isinstance(request.world_size, bool) or request.world_size < 1):
        errors.append(Problem("world_size", f"must be a whole number of at least 1, not {shown(request.world_size)}"))
    else:
        batch, found = _ds_batch.solve(config, request.world_size)
        errors += found
    if batch is not None:
        config.update({key: batch[key] for key in (_ds_batch.TOTAL, _ds_batch.MICRO, _ds_batch.STEPS)})
    return Plan(config, batch, warnings, errors)


def merge(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``overrides`` laid over it, mapping by mapping; ``None`` removes a key, a list replaces a list."""
    result = dict(base)
    for key, value in overrides.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result


def render(config: dict[str, Any]) -> str:
    """Canonical JSON: keys in order, so that equal configurations are equal texts.

    ASCII only, because DeepSpeed opens the file in the locale's encoding, which in a container is often not UTF-8.
    """
    return json.dumps(config, indent=2, sort_keys=True, allow_nan=False) + "\n"


def parse(text: str) -> dict[str, Any]:
    """Read a ds_config.json; an empty file is an empty configuration, as for DeepSpeed.

    DeepSpeed reads hjson (comments, trailing commas), of which JSON is the part read here.
    """
    if not text.strip():
        return {}
    try:
        config = json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise UnreadableError("it is nested too deeply") from error
    except ValueError as error:
        raise UnreadableError(f"it is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise UnreadableError(f"it holds {shown(config)} instead of a mapping")
    return cast("dict[str, Any]", config)


def same(existing: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether two configurations mean the same; ``5e8`` is ``500000000``, but ``true`` is not ``1``."""
    normal, problems = _ds_schema.plain(existing)
    return not problems and render(normal) == render(wanted)


def secrets(config: Any) -> Iterator[str]:
    """Values whose keys say that they are secret, such as ``comet.api_key``, at any depth."""
    pending = [config]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            for key, value in current.items():
                if _SECRET.search(str(key)) and value and isinstance(value, (str, int)) and not isinstance(value, bool):
                    yield str(value)
                else:
                    pending.append(value)
        elif isinstance(current, list):
            pending.extend(current)


def secrets_in_text(text: str) -> list[str]:
    """The same for a file as it is, which may be JSON, hjson or broken."""
    return _SECRET_IN_TEXT.findall(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {shown(key)} is there twice, which DeepSpeed refuses")
        result[key] = value
    return result


def _version(text: str, errors: list[Problem], warnings: list[Problem]) -> Version:
    wanted = parse_version(text)
    if wanted is None:
        errors.append(
            Problem(
                "deepspeed_version", f"{shown(text)} is not a release; give all three numbers in quotes, as '{NEWEST}'"
            )
        )
        return NEWEST
    known = nearest_known(wanted)
    if known != wanted:
        warnings.append(Problem("deepspeed_version", f"{wanted} is not known here; checked as for {known}"))
    return known


def _base(request: Request, overrides: dict[str, Any]) -> dict[str, Any]:
    base = preset(request.preset, request.integration) if request.preset else {}
    if request.precision in ("fp16", "bf16"):
        base[request.precision] = {"enabled": True}
    elif (
        request.precision == "auto"
        and request.preset
        and request.integration != "deepspeed"
        and not {"fp16", "bf16"} & set(overrides)
    ):
        # the trainer's own fp16 and bf16 arguments decide
        base.update(fp16={"enabled": AUTO}, bf16={"enabled": AUTO})
    return base


def _precision_errors(precision: str, config: dict[str, Any]) -> Iterator[Problem]:
    """Where the configuration says otherwise than ``precision``; both fp16 and bf16 true is reported elsewhere."""
    for name in ("fp16", "bf16"):
        enabled = _ds_rules.get(config, f"{name}.enabled")
        if precision == name and enabled is not True:
            yield Problem(
                f"{name}.enabled", f"is {shown(enabled)}, but precision is {precision}; remove one of the two"
            )
        if precision == "fp32" and enabled in (True, AUTO):
            yield Problem(f"{name}.enabled", f"is {shown(enabled)}, but precision is fp32; remove one of the two")
