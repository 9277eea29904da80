# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Say from the examinations of all nodes which rank did not come, to which collective, and why. A pure function.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def judge(examinations: Iterable[Mapping[str, Any]], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the finding.

    ``job``: ``world_size``; ``nodes``, names by rank; ``log``, the last lines of ranks, ``[[time, rank, line], …]``.
    The finding: ``ranks`` that are to blame (none: no rank is), ``nodes`` they are on, ``collective`` that the others
    wait in (``operation``, ``sequence``, ``size``, ``group``, or None), ``does`` (``function``, ``file``, ``line``),
    ``kind``, ``link`` (``from``, ``to``, or None), ``sentence``, ``remedy``, ``confidence`` (certain, likely, not
    known).
    """
    raise NotImplementedError
