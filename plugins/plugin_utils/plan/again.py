# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Planning again after roles have changed hosts: what the first plan of the run did not foresee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .changes import counts_of

Entry = Mapping[str, Any]
"""A change, a refusal or a plan, as ``document`` writes them."""


def unforeseen(first: Entry, later: Entry) -> list[int]:
    """Return which changes of a later plan the first one did not have, or led elsewhere, by their places in the list.

    Roles that the first plan did not cover are not compared. What only the run could know, ``(known after
    apply)``, may have become anything.
    """
    known = {_key(change): change["after"] for change in first["changes"]}
    found = []
    for place, change in enumerate(later["changes"]):
        if change["role"] not in first["roles"]:
            continue
        if _key(change) not in known or not _same(known[_key(change)], change["after"]):
            found.append(place)
    return found


def followed(first: Entry, later: Entry) -> dict[str, Any]:
    """Return the report of a run that planned again: its first plan, and what was found after.

    Roles that are applied one by one are planned one by one: each adds its first plan.
    """
    new = [role for role in later["roles"] if role not in first["roles"]]
    changes = [*first["changes"], *(change for change in later["changes"] if change["role"] in new)]
    found = [later["changes"][place] for place in unforeseen(first, later)]
    return {
        **first,
        "roles": [*first["roles"], *new],
        "hosts": [*first["hosts"], *(host for host in later["hosts"] if host not in first["hosts"])],
        "counts": asdict(counts_of(change["action"] for change in changes)),
        "changes": changes,
        "refusals": [*first["refusals"], *(one for one in later["refusals"] if one["role"] in new)],
        "found_after_apply": [
            *first["found_after_apply"],
            *(change for change in found if change not in first["found_after_apply"]),
        ],
    }


def _key(change: Entry) -> tuple[Any, Any, Any]:
    return change["role"], change["host"], change["what"]


def _same(planned: Any, after: Any) -> bool:
    return bool(planned == after) or (isinstance(planned, Mapping) and set(planned) == {"unknown"})
