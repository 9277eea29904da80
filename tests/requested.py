# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What variables ask of a cluster, for tests of the checks on facts."""

from __future__ import annotations

from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import Requested, needs


def requested(*, space: Any = None, managers: Any = (), **given: Any) -> Requested:
    sizes = {path: entry if isinstance(entry, dict) else {"bytes": entry} for path, entry in (space or {}).items()}
    return Requested(**{"cluster_name": "demo", **given}, managers=tuple(managers), min_free=needs(sizes))


def entries(*sentences: str) -> list[dict[str, str]]:
    """Return refusals or consents as a plan has them."""
    split = (one.rpartition(". Remedy: ") for one in sentences)
    return [{"text": text, "remedy": remedy} for text, dummy, remedy in split]
