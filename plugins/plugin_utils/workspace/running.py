# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""While a job runs, verify compares with what it was started from, and not with what later jobs brought. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..core.values import mapping
from ..plan.changes import Change


def runs_apart(facts: Iterable[Mapping[str, Any]], role_vars: Mapping[str, Any]) -> bool:
    """Whether the configured job runs on any host, with code and files of its own."""
    name = str(role_vars.get("deepspeed_launch_name") or "")
    return any(name in mapping(mapping(found.get("code")).get("running")) for found in facts)


def tolerated(changes: Iterable[Change], what: Container[str] | None = None) -> list[Change]:
    """The same changes; verify does not fail at those of ``what``, or at all of them."""
    return [replace(change, tolerated=True) if what is None or change.what in what else change for change in changes]
