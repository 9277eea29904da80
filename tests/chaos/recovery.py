# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a round is judged by.

site.yml converges, or refuses with a remedy that helps; the next one changes nothing; verify.yml passes. After that
nothing may be left of the fault, seen without the collection.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.faults.base import Attempt, Failed, Fault
from tests.chaos.lab import LabError
from tests.chaos.remedy import Action, actions, is_command
from tests.chaos.runs import Ended
from tests.chaos.verdict import Refusal, changed_tasks, changes
from tests.playbook_run import variables

REFUSALS = 3
"""How often site.yml may refuse in turn: a remedy may uncover what was hidden before."""
WAIT = 60.0


@dataclass
class Recovery:
    """What the recovery was made of. ``why`` says what is wrong; empty: the cluster is whole."""

    why: str = ""
    refusals: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)


def recover(attempt: Attempt, fault: Fault) -> Recovery:
    """Run what a user runs after a fault, and see whether the cluster is whole."""
    found = Recovery()
    try:
        _converge(attempt, fault, found)
        _nothing_to_do(attempt, fault)
        _verified(attempt, fault)
        if fault.left and (rest := fault.left(attempt)):
            raise Failed(f"site.yml and verify.yml succeeded, and yet {rest}")
        if fault.undo:
            fault.undo(attempt)
            _converge(attempt, fault, found, after="after the lab had put its own part back, ")
    except Failed as error:
        found.why = str(error)
    except LabError as error:
        found.why = f"during the recovery: {error}"
    return found


def _converge(attempt: Attempt, fault: Fault, found: Recovery, after: str = "") -> None:
    given: tuple[str, ...] = ()
    for dummy in range(REFUSALS + 1):
        verdict = _run(attempt, "site", *fault.site, *given).verdict(attempt.lab.nodes)
        if verdict.kind == "converged":
            return
        if verdict.kind == "failed":
            raise Failed(f"{after}site.yml: {verdict.why}")
        found.refusals += [refusal.text for refusal in verdict.refusals]
        for refusal in verdict.refusals:
            if not fault.refusal or not re.search(fault.refusal, refusal.text):
                raise Failed(f"{after}site.yml refused what it is to repair: {refusal.text}")
        given = ()
        for refusal in verdict.refusals:
            given += _follow(attempt, fault, refusal, found)
    raise Failed(f"{after}site.yml still refused after {REFUSALS} remedies: {found.refusals[-1]}")


def _follow(attempt: Attempt, fault: Fault, refusal: Refusal, found: Recovery) -> tuple[str, ...]:
    """Do what a remedy says; return the arguments it wants for the next site.yml."""
    reported = actions(refusal, attempt.lab.nodes)
    if not reported:
        if not fault.by_hand:
            raise Failed(f"site.yml refused, and its remedy is nothing that can be done literally: {refusal.text}")
        found.followed.append(f"by hand: {refusal.remedy}")
        fault.by_hand(attempt)
        return ()
    given: tuple[str, ...] = ()
    for action in reported:
        kind = "" if action.kind == "wait" else action.kind  # its text says so
        found.followed.append(" ".join(filter(None, (kind, action.text, *action.arguments, action.node))))
        given += _done(attempt, action)
    return given


def _done(attempt: Attempt, action: Action) -> tuple[str, ...]:
    if action.kind == "variable":
        return variables(**{action.text: action.value})
    if action.kind == "wait":
        time.sleep(WAIT)
    elif action.kind == "playbook":
        verdict = _run(attempt, action.text, *action.arguments).verdict(attempt.lab.nodes)
        if verdict.kind != "converged":
            raise Failed(f"the remedy ({action.text}.yml) did not succeed: {verdict.why or verdict.refusals[0].text}")
    elif action.kind == "command":
        if not is_command(action.text):
            raise Failed(f"the remedy is no command that can be run: {action.text}")
        try:
            attempt.lab.as_user(action.node, action.text)
        except LabError as error:
            raise Failed(f"the remedy did not succeed: {error}") from error
    return ()


def _nothing_to_do(attempt: Attempt, fault: Fault) -> None:
    """A second run changes nothing on any host."""
    ended = _succeeds(attempt, fault, "site", "a second site.yml")
    if any(changes(ended.output).values()):
        raise Failed(f"a second site.yml changed something: {'; '.join(changed_tasks(ended.events)) or 'unknown'}")


def _verified(attempt: Attempt, fault: Fault) -> None:
    _succeeds(attempt, fault, "verify", "verify.yml")


def _succeeds(attempt: Attempt, fault: Fault, name: str, what: str) -> Ended:
    ended = _run(attempt, name, *fault.site)
    verdict = ended.verdict(attempt.lab.nodes)
    if verdict.kind != "converged":
        reported = verdict.why or "; ".join(refusal.text for refusal in verdict.refusals)
        raise Failed(f"{what} did not succeed: {reported}")
    return ended


def _run(attempt: Attempt, name: str, *arguments: str) -> Ended:
    return attempt.start(name, name, *arguments).finish()


def timed(what: Callable[[], None]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began
