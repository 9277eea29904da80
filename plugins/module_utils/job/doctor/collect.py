# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Examine one node of a job that makes no progress: what its ranks do, as data that can be kept and judged later.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LIMIT_S = 15.0
LIMIT_BYTES = 64 << 20


def examine(
    root: Path,
    ranks: Iterable[Mapping[str, Any]],
    limit_s: float = LIMIT_S,
    limit_bytes: int = LIMIT_BYTES,
    node: str = "",
) -> dict[str, Any]:
    """Return the examination of this node as JSON-able data: at most so many seconds and bytes of it.

    ``root``: the root of the file system, ``/``. ``ranks``: those of this node, ``{rank, pid}``, with ``folder`` where
    the ranks were started with inside.environment().
    """
    raise NotImplementedError
