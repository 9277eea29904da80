# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of roles that act on the plan share: a plan of one role, and which of its tasks would run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.role_values import acts, load, variables

END, GATHER = "end", "gather and plan"
"""What a test calls the tasks after which others do not run, or run by another plan."""


def plan_of(
    role: str, nothing: Mapping[str, Any], pending: bool, drift: str = "", host: str = "gpu2", /, **act: Any
) -> dict[str, Any]:
    """Return what the action plan keeps of one role on one host; ``act`` is what differs from ``nothing``."""
    return {
        "pending": {host: {role: pending}},
        "acts": {host: {role: {**nothing, **act}}},
        "stops": {host: {role: []}},
        "drift": {host: {role: [drift] if drift else []}},
    }


def tasks_that_run(role: str, file: str, plan: Mapping[str, Any] | None, /, **changed: Any) -> Iterator[dict[str, Any]]:
    """Yield those of a file's tasks whose own conditions let them run; ``plan`` None where this run has none."""
    more = {} if plan is None else {"swarmspeed_plan": plan}
    given = variables(role, **{"ansible_check_mode": False, **more, **changed})
    # One after the other: behind a task that plans, conditions read what is not there yet.
    yield from (task for task in load(f"{role}/tasks/{file}.yml") if acts(task, given))


def shown(
    tasks: Iterable[dict[str, Any]], show: Callable[[str, dict[str, Any]], str], whole: bool = False
) -> list[str]:
    """Return what these tasks are called, until one ends the role or, unless ``whole``, makes another plan.

    ``show`` gets the key of a task that names its module, and the task.
    """
    found: list[str] = []
    for task in tasks:
        found.append(show(next((key for key in task if "." in key), "block"), task))
        if found[-1] == END or (found[-1] == GATHER and not whole):
            break
    return found


def differ(found: Any, wanted: Any) -> bool:
    """Whether found differs from wanted; keys that wanted does not name do not count."""
    if isinstance(wanted, Mapping):
        below = found if isinstance(found, Mapping) else {}
        return any(differ(below.get(key), value) for key, value in wanted.items())
    # In Python True == 1, but in JSON and for the engine they differ.
    return found != wanted or isinstance(found, bool) is not isinstance(wanted, bool)
