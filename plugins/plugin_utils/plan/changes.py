# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a plan is made of: changes, refusals, and values that are secret or not known yet. Pure, and free of Ansible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.common.digests import keyed_digest
from ...module_utils.engine.daemon_config import same
from ..core.problems import Problem

ADD, CHANGE, REMOVE = "+", "~", "-"
ACTIONS = (ADD, CHANGE, REMOVE)


class PlanError(ValueError):
    """A planner returned what is not a plan: a bug in this collection, which the text describes."""


@dataclass(frozen=True)
class Unknown:
    """A value that only the run can know; ``reason`` says why."""

    reason: str


@dataclass(frozen=True)
class Sealed:
    """A secret. Two of one run can be compared by their digests, and neither can be read or guessed."""

    digest: str


def sealed(secret: str, key: str) -> Sealed:
    """Seal a secret with the key of the run, as ``node_facts`` digests files that hold one."""
    return Sealed(keyed_digest(secret.encode(), key))


@dataclass(frozen=True)
class Consent:
    """What a change needs the user's consent for: ``effect`` continues "the change …", ``variable`` gives consent.

    ``otherwise`` is what the user can do instead of giving it, ``value`` what the variable is set to.
    """

    variable: str
    effect: str
    given: bool
    otherwise: str = ""
    value: str = "true"

    @property
    def remedy(self) -> str:
        """How to give it."""
        instead = f", or {self.otherwise}" if self.otherwise else ""
        return f"set {self.variable}: {self.value} to allow it{instead}"


@dataclass(frozen=True)
class Change:
    """One thing that a role would change on a host. ``before`` None: there is none yet; ``after`` None: it goes.

    ``tolerated``: verify does not fail at it, as a later role makes it necessary, for the next run.
    """

    role: str
    host: str
    what: str
    action: str
    before: Any = None
    after: Any = None
    why: str = ""
    consent: Consent | None = None
    tolerated: bool = False

    def __post_init__(self) -> None:
        if self.action != action_for(self.before, self.after):
            raise PlanError(f"{self.role}: {self.what}: {self.action} does not lead from before to after")

    @property
    def missing_consent(self) -> Consent | None:
        """The consent that this change needs and does not have."""
        return self.consent if self.consent and not self.consent.given else None


def action_for(before: Any, after: Any) -> str:
    """Return the sign of a change. Values that are the same, as JSON has it, are no change, and PlanError."""
    if same(before, after):
        raise PlanError(f"{before!r} is both before and after")
    return ADD if before is None else REMOVE if after is None else CHANGE


@dataclass(frozen=True)
class Changes:
    """Collects the changes of one role on one host, in the order in which the role makes them."""

    role: str
    host: str
    found: list[Change] = field(default_factory=list)

    def add(  # noqa: PLR0917 - in the order in which a plan shows them
        self,
        what: str,
        before: Any,
        after: Any,
        why: str = "",
        consent: Consent | None = None,
        tolerated: bool = False,
    ) -> Change:
        """Add a change; before and after must differ."""
        change = Change(self.role, self.host, what, action_for(before, after), before, after, why, consent, tolerated)
        self.found.append(change)
        return change


@dataclass(frozen=True)
class Inputs:
    """What planners read beside facts and role_vars.

    ``cluster`` is what ``cluster_facts`` returned, empty where a role is applied alone. ``files`` are texts of files on
    the controller by path. ``digest_key`` is the key by which ``node_facts`` has digested secrets in this run.
    """

    cluster: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    digest_key: str = ""


@dataclass(frozen=True)
class RolePlan:
    """What one role would do, and why it would not begin on a host (``refusals``).

    ``task_inputs`` is what its tasks read, by host, and may hold secrets; ``facts`` is what ``node_facts`` would return
    afterwards, by host, as far as that is known. ``cluster`` is what planners of later roles find in
    ``Inputs.cluster`` beside what was there.
    """

    changes: Sequence[Change] = ()
    refusals: Sequence[Problem] = ()
    task_inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """How many changes of each kind."""

    add: int = 0
    change: int = 0
    remove: int = 0

    @property
    def total(self) -> int:
        return self.add + self.change + self.remove


def counts(changes: Iterable[Change]) -> Counts:
    return counts_of(change.action for change in changes)


def counts_of(actions: Iterable[str]) -> Counts:
    signs = list(actions)
    return Counts(*(signs.count(action) for action in ACTIONS))
