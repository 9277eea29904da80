# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of roles that act on the plan share: a plan of one role, and which of its tasks would run."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.planners import planners

from tests.role_values import NODES, ROLES, load, task_inputs, templar, variables

HERE = NODES[1]
END, GATHER, REPORT = "end", "gather and plan", "report"
"""What a test calls the tasks after which others do not run, or run by another plan."""
_CALLED = {
    "ansible.builtin.meta": END,
    "ansible.builtin.include_role": GATHER,
    "swarmspeed.cluster.plan": REPORT,
    "ansible.builtin.assert": "assert",
    "ansible.builtin.debug": "print",
}
_FILES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
_PARTS = ("block", "rescue", "always")


@functools.cache
def nothing() -> dict[str, dict[str, Any]]:
    """Return what each planner's role has to do where nothing is planned."""
    return {one.role: importlib.import_module(type(one).__module__).NOTHING for one in planners(PLANNED)}


def every(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield tasks with those in their blocks, a block before what is in it."""
    for task in tasks:
        yield task
        for part in _PARTS:
            yield from every(task.get(part, []))


def files(role: str) -> list[str]:
    """Return the names of a role's files of tasks."""
    return sorted(path.stem for path in (ROLES / role / "tasks").glob("*.yml"))


def module(task: Mapping[str, Any]) -> str:
    return next((key for key in task if "." in key), "block")


def file_of(included: Any) -> str:
    return str(included["file"] if isinstance(included, dict) else included)


def passes(task: Mapping[str, Any], given: dict[str, Any]) -> bool:
    """Whether what a task asserts holds."""
    conditions = task["ansible.builtin.assert"]["that"]
    each = conditions if isinstance(conditions, list) else [conditions]
    return all(templar(given).evaluate_conditional(condition) for condition in each)


_RESCUED = {"name", "block", "rescue"}


class PlannedRole:
    """A role that acts on the plan, on one host, always with these variables, and with what it reads of roles beside.

    ``modules``: what is not called by a name of its own is called by its module.
    """

    def __init__(self, role: str, *beside: str, modules: bool = False, **always: Any) -> None:
        self.role, self.beside, self.modules = role, beside, modules
        self.always = {"ansible_check_mode": False, **always}

    def plan(self, pending: bool, drift: str = "", /, **task_input: Any) -> dict[str, Any]:
        """Return what the action plan keeps of the role; ``act`` is what differs from nothing."""
        return {
            "pending": {HERE: {self.role: pending}},
            "task_inputs": {HERE: {self.role: {**nothing()[self.role], **task_input}}},
            "stops": {HERE: {self.role: []}},
            "drift": {HERE: {self.role: [drift] if drift else []}},
        }

    def given(self, plan: Mapping[str, Any] | None, /, **changed: Any) -> dict[str, Any]:
        """Return the role's variables; ``plan`` None where this run has none."""
        more = {} if plan is None else {"swarmspeed_plan": plan}
        return variables(self.role, *self.beside, **{**self.always, **more, **changed})

    def tasks(self, file: str) -> list[dict[str, Any]]:
        """Return a file's tasks, and instead of a block that only has a rescue those in it."""
        found: list[dict[str, Any]] = load(f"{self.role}/tasks/{file}.yml")
        return [one for task in found for one in (task["block"] if set(task) == _RESCUED else [task])]

    def task(self, file: str, start: str) -> dict[str, Any]:
        """Return the task of a file, in whatever block, whose name begins so."""
        (found,) = (task for task in every(self.tasks(file)) if task.get("name", "").startswith(start))
        return found

    def names(self, file: str, plan: Mapping[str, Any] | None, /, **changed: Any) -> list[str]:
        """Return the names of those of a file's tasks that run; a loop over nothing does not."""
        given = self.given(plan, **changed)
        return [
            task["name"]
            for task in self.tasks(file)
            if task_inputs(task, given) and ("loop" not in task or templar(given).template(task["loop"]))
        ]

    def runs(self, file: str, plan: Mapping[str, Any] | None, /, whole: bool = False, **changed: Any) -> list[str]:
        """Return what of a file's tasks would run, until one ends the role or, unless ``whole``, makes another plan."""
        given, found = self.given(plan, **changed), list[str]()
        # One after the other: behind a task that plans, conditions read what is not there yet.
        for task in self.tasks(file):
            # A block that only carries tags runs where one of its tasks does.
            inner = task["block"] if "tags" in task and "block" in task and "always" not in task else [{}]
            if task_inputs(task, given) and any(task_inputs(part, given) for part in inner):
                key = module(task)
                other = key if self.modules else task["name"]
                found.append(file_of(task[key]) if key in _FILES else _CALLED.get(key, other))
                if found[-1] == END or (found[-1] == GATHER and not whole):
                    break
        return found


def text(*folders: Path) -> str:
    """Return all YAML and templates in folders."""
    found = [path for folder in folders for end in ("*.yml", "*.j2") for path in sorted(folder.rglob(end))]
    return "".join(path.read_text(encoding="utf-8") for path in found)


def differ(found: Any, wanted: Any) -> bool:
    """Whether found differs from wanted; keys that wanted does not name do not count."""
    if isinstance(wanted, Mapping):
        below = found if isinstance(found, Mapping) else {}
        return any(differ(below.get(key), value) for key, value in wanted.items())
    # In Python True == 1, but in JSON and for the engine they differ.
    return found != wanted or isinstance(found, bool) is not isinstance(wanted, bool)
