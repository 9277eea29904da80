# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The text of a ds_config.json: written in one canonical form, read as DeepSpeed reads it, searched for secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from ..common.problems import shown
from ..common.secret_names import is_secret_name
from . import hjson, schema

_ENTRY = re.compile(r"""(?<!\w)([A-Za-z_][\w-]{0,80})["']?\s{0,8}:\s{0,8}["']?([^"',\s}]+)""")

_EXPONENT = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\d.])(\d+)(e[+-]\d+)')
"""A text, which stays, or a number with an exponent and without a point."""


def _with_point(found: re.Match[str]) -> str:
    return found[1] or f"{found[2]}.0{found[3]}"


class UnreadableError(Exception):
    """A file that is not a valid ds_config.json: not hjson, a key twice, or not a mapping."""


def render(config: dict[str, Any]) -> str:
    """Canonical JSON: keys in order, so that equal configurations are equal texts.

    ASCII only, because DeepSpeed opens the file in the locale's encoding, which in a container is often not UTF-8.
    1.0e-05 and not 1e-05, because scripts with a configuration argument of their own may read it as YAML (gdGPT does),
    and PyYAML takes a number without a point for a text.
    """
    return _EXPONENT.sub(_with_point, json.dumps(config, indent=2, sort_keys=True, allow_nan=False)) + "\n"


def parse(text: str) -> dict[str, Any]:
    """Read a ds_config.json as DeepSpeed does, which takes hjson (comments, trailing commas, bare keys).

    An empty file is an empty configuration. Raises ``UnreadableError``.
    """
    try:
        config = hjson.loads(text)
    except hjson.HjsonError as error:
        raise UnreadableError(str(error)) from error
    if not isinstance(config, dict):
        raise UnreadableError(f"it holds {shown(config)} instead of a mapping")
    return cast("dict[str, Any]", config)


def is_json(text: str) -> bool:
    """Whether a text is plain JSON: hjson has comments, which rewriting it would lose."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text.strip()
    return True


def same(existing: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether two configurations mean the same; ``5e8`` is ``500000000``, but ``true`` is not ``1``."""
    normal, problems = schema.plain(existing)
    return not problems and render(normal) == render(wanted)


def secrets(config: Any) -> Iterator[str]:
    """Values whose keys say that they are secret, such as ``comet.api_key``, at any depth."""
    pending = [config]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            for key, value in current.items():
                if is_secret_name(key) and value and isinstance(value, (str, int)) and not isinstance(value, bool):
                    yield str(value)
                else:
                    pending.append(value)
        elif isinstance(current, list):
            pending.extend(current)


def secrets_in_text(text: str) -> list[str]:
    """The same for a file as it is, which may be JSON, hjson or broken."""
    return [value for name, value in _ENTRY.findall(text) if is_secret_name(name)]
