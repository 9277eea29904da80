# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The drivers of the table, and the kernels that they build on, in the plain form in which a request carries them."""

from __future__ import annotations

from typing import Any

from .table import Table, load_table


def offers(table: Table | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return what each source has, by distribution and release such as ``debian 12``."""
    known = table or load_table()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in known.drivers:
        found.setdefault(f"{row.distribution} {row.release}", []).append(
            {
                "source": row.source,
                "branch": row.branch,
                "ended": row.end if known.has_ended(row) else "",
                "key": row.key,
                "fingerprint": row.fingerprint,
            }
        )
    return found


def builds(table: Table | None = None) -> list[dict[str, Any]]:
    """Return the oldest driver of each branch that builds on a release of Linux, empty where none does."""
    return [{"linux": row.linux, "branch": row.branch, "driver": row.driver} for row in (table or load_table()).builds]
