# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which image of an archive is the one that was requested. Pure.

``docker save NAME`` keeps the name, ``docker save ID`` none: then the engine answers "Loaded image ID: sha256:…".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ID = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Loaded:
    """``untagged`` is the id that still needs the name; ``problem`` says why there is no such image."""

    untagged: str = ""
    problem: str = ""


def choose_loaded(names: Sequence[str], expected: str, archive: str, variable: str) -> Loaded:
    """Judge what the engine has loaded; ``variable`` holds the name that was requested."""
    named = [name for name in names if not _ID.fullmatch(name)]
    ids = list(dict.fromkeys(name for name in names if _ID.fullmatch(name)))
    if expected in named:
        return Loaded()
    if len(ids) == 1 and not named:
        return Loaded(untagged=ids[0])
    if not names:
        return Loaded(problem=f"{archive} holds no image. Remedy: create it with docker save {expected}.")
    if named:
        return Loaded(
            problem=f"{archive} holds {', '.join(named)}, not {expected}. "
            f"Remedy: set {variable} to the name in the archive."
        )
    return Loaded(
        problem=f"{archive} holds {len(ids)} images without a name, so which of them is {expected} is unknown. "
        f"Remedy: create it from one image, docker save {expected}."
    )
