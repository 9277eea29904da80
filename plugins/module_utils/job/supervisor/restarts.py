# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether, when and from where a job that failed is started once more.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..evidence import CERTAIN
from ..members import placed
from ..shrink import is_universal, zero_stage
from .checkpoints import Verdict, newest, universal_tag
from .judge import Failure

HOPELESS = ("script", "configuration", "environment")
"""Kinds of failure that another start would only repeat, where the cause is certain."""
BACKOFF = 10.0
"""Seconds before the first restart; each further one waits twice as long as the one before, BACKOFF_MOST at most."""
BACKOFF_MOST = 300.0
NODE_WAIT = 300.0
"""Seconds in which a node that has gone may come back: the time of a reboot."""
TAG = "@tag@"
"""In the arguments to resume with: the name of the checkpoint."""


class Restarts:
    """What was requested of restarts, and those there have been."""

    def __init__(self, options: dict[str, Any], done: list[dict[str, Any]]) -> None:
        self.wanted = options.get("resume") == "auto"
        self._limit = int(options.get("restarts") or 0)
        self._arguments: list[str] = list(options.get("resume_args") or [])
        self.folder = str(options.get("checkpoints") or "")
        self._backoff = float(options.get("backoff") or BACKOFF)
        self.node_wait = float(options.get("node_wait") or NODE_WAIT)
        self.done = done

    def allowed(self, failure: Failure) -> bool:
        """Another start may help, and is not one too many."""
        found = failure.finding
        hopeless = found is not None and found.kind in HOPELESS and found.confidence == CERTAIN
        return self.wanted and len(self.done) < self._limit and not hopeless and not failure.final

    def pause(self) -> float:
        """Seconds to wait now."""
        return min(BACKOFF_MOST, self._backoff * 2.0 ** len(self.done))

    def arguments(self, verdict: Verdict | None) -> list[str]:
        """What the command gets to go on from that checkpoint; nothing where there is none."""
        if verdict is None or verdict.tag is None:
            return []
        return [word.replace(TAG, verdict.tag) for word in self._arguments]


def judge(
    listings: dict[str, dict[str, Any]], members: list[dict[str, Any]], ds_config: str | None, world_size: int
) -> Verdict:
    """The checkpoint to go on from. Whether each node keeps its own shards is what ds_config.json says."""
    config: Any = {}
    if ds_config:
        try:
            config = json.loads(Path(ds_config).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            config = {}
    config = config if isinstance(config, dict) else {}
    checkpoint = config.get("checkpoint")
    local = isinstance(checkpoint, dict) and checkpoint.get("use_node_local_storage") is True
    if is_universal(config) and zero_stage(config):
        return universal_tag(listings, members)
    return newest(listings, placed(members), None, local, world_size)
