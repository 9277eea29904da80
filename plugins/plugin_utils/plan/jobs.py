# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The jobs on a host, as its facts have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.values import mapping


def active_jobs(facts: Mapping[str, Any]) -> list[str]:
    """Return the names of those that run, or may."""
    jobs = mapping(facts.get("jobs"))
    return [str(name) for name, state in jobs.items() if state in ("starting", "running", "unknown")]
