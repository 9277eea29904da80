# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a fault is, what it may use, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.lab import Lab
from tests.chaos.plan import Among, Entry, Round
from tests.chaos.runs import NO_JOB, Ended, Running, Runs
from tests.chaos.verdict import announced_wait, disturbed

TRIES = 4
"""How often a playbook is started for a moment that it has not reached its end before."""


class Failed(Exception):
    """The collection failed before the recovery: a run that nothing disturbed, or what the disturbed one said."""


class Unsuited(Exception):
    """This lab cannot have the fault, or it could not be made; says nothing of the collection."""


@dataclass
class Attempt:
    """A round while it is made."""

    lab: Lab
    round: Round
    runs: Runs
    target: str
    moment: str = ""
    """The task that was running, for the record."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with how a disturbed run ended."""

    def start(self, label: str, name: str, *arguments: str) -> Running:
        return self.runs.start(label, name, *self.lab.arguments, *arguments)

    def complete(self, label: str, name: str, *arguments: str) -> Ended:
        """Run a playbook that nothing disturbs, which must succeed."""
        ended = self.start(label, name, *arguments).finish()
        verdict = ended.verdict(self.lab.nodes)
        if verdict.kind != "converged":
            reported = verdict.why or "; ".join(refusal.text for refusal in verdict.refusals)
            raise Failed(f"{name}.yml, before the fault was made: {reported}")
        return ended

    def torn_down(self) -> None:
        """Leave site.yml something to do: engines and image stay, all else goes."""
        self.complete("teardown", "teardown")

    def at_the_moment(self, kind: str, prepare: Callable[[], None], start: Callable[[], Running]) -> Running:
        """Start a run and return it at the moment that was drawn, while it is still running.

        Where it ends earlier, which happens with moments near the end, how long it took is learnt and it is repeated.
        """
        for number in range(TRIES):
            prepare()
            running = start()
            moment = self.round.moment * self.runs.durations.expected(kind) * 0.95**number
            if not running.ended_within(moment):
                self.moment = f"{running.task()} ({moment:.1f} s after the start)"
                return running
            ended = running.finish()
            verdict = ended.verdict(self.lab.nodes)
            if verdict.kind != "converged":
                reported = verdict.why or "; ".join(refusal.text for refusal in verdict.refusals)
                raise Failed(f"a {kind} that nothing had disturbed yet: {reported}")
            self.runs.durations.learn(kind, ended.seconds)
        raise Unsuited(f"{TRIES} runs in turn had ended before the moment that was drawn ({self.round.moment:.2f})")

    def during_site(self, what: Callable[[], None], *hit: str, patience: float) -> None:
        """Do something in the middle of a site.yml that has all roles' work to do, and see how that run ends."""
        running = self.at_the_moment("site", self.torn_down, lambda: self.start("site", "site", *NO_JOB))
        what()
        # Hosts that are still there may be waiting for the one that is not, and have said so.
        more = 0.0 if running.ended_within(patience) else announced_wait(running.output())
        patience += more
        ended = running.finish(more)
        if problem := disturbed(ended.rc, ended.output, ended.events, hit):
            self.problems.append(f"{problem} ({patience:.0f} s)" if ended.rc is None else problem)


@dataclass(frozen=True)
class Fault:
    """A fault, what is allowed after it, and how the lab's own part of it is put back."""

    name: str
    text: str
    """What is done, for the page."""
    inject: Callable[[Attempt], None]
    among: Among = "any"
    times: int = 1
    """Rounds of a cycle."""
    kill: bool = False
    """Whether it is the controller that is killed: these are counted apart."""
    limit: float = 900.0
    """Seconds that making it may take, with the playbooks that run meanwhile."""
    refusal: str = ""
    """A pattern over 'where: cause. Remedy: remedy': so site.yml may refuse. Empty: it must converge."""
    by_hand: Callable[[Attempt], None] | None = None
    """What a person does where the remedy is no command, variable or wait."""
    left: Callable[[Attempt], str] | None = None
    """What is still there of the fault after the recovery, seen without the collection; empty: nothing."""
    undo: Callable[[Attempt], None] | None = None
    """Takes back what only the lab did, such as another address; site.yml must converge after that, too."""
    choose: Callable[[Lab, str], str] | None = None
    """Returns the node to hit in place of the one drawn. Raises ``Unsuited``."""
    site: tuple[str, ...] = NO_JOB
    """Variables of the playbooks of the recovery."""

    @property
    def entry(self) -> Entry:
        return Entry(self.name, self.times, self.among)
