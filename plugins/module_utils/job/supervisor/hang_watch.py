# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Has a job examined that is silent for longer than its own pace explains, and reports what was found.

Part of the supervisor's archive: standard library, Python 3.8 or later. Nothing here waits. An examination ends nothing
and delays nothing; a job that goes on has shown that such a pause is none too long.
"""

from __future__ import annotations

import base64
import contextlib
import time
from typing import Any, Callable

from ..doctor import examination
from ..doctor.bound import COLLECTIVE, FEWEST, Pace, in_words
from ..doctor.finding import MOST_FINDINGS, UNKNOWN, bounded, sentence
from ..evidence import LIKELY, Finding
from ..members import ranks_by_node
from .base import NodeContext, now_text
from .examiner import LIMIT, Examiner
from .judge import Failure
from .nodes import Nodes, ignore

ANSWER = LIMIT + 5.0
"""Seconds after which a node that has not said what it found is left out."""
PATIENCE = 60.0
"""Seconds between the first two examinations of a job of which nothing is known but its collectives."""
ENOUGH = 2
"""Examinations of the same silence without which no job is ended."""
REPORT, STOP = "report", "stop"


def ends_after(place: NodeContext) -> float:
    """Seconds of silence after which something ends this job; 0 where nothing is known to."""
    known = [float(place.options.get("stall_timeout") or 0)]
    with contextlib.suppress(ValueError):  # of DeepSpeed, in minutes; the job ends when its ranks do
        known.append(60.0 * float(place.known_environment().get("DEEPSPEED_TIMEOUT") or 0))
    return min((seconds for seconds in known if 0 < seconds < float("inf")), default=0.0)


class Examination:
    """One examination of all nodes that are connected, and its judgement."""

    def __init__(self, nodes: Nodes, clock: Callable[[], float]) -> None:
        self._folder, self._clock, self._began = nodes.folder, clock, clock()
        self.name = examination.next_name(self._folder)
        self._ranks = {str(rank): node for node, ranks in ranks_by_node(nodes.place.members).items() for rank in ranks}
        self._members = [member["name"] for member in nodes.place.members] or [nodes.place.node]
        self._world_size = nodes.place.world_size
        self._waiting = set(nodes.hub.connected()) if nodes.hub else set()
        self._problems = dict.fromkeys(set(self._members[1:]) - self._waiting, "it is not connected")
        self._pieces: dict[str, list[bytes]] = {}
        self._own: str | None = None
        self._judging = False
        self._examiner = Examiner(self._folder, clock)
        self._examiner.begin(self.name, nodes.part.living())
        nodes.broadcast({"t": "examine", "name": self.name})

    def receive(self, node: str, message: dict[str, Any]) -> None:
        """A part of what a follower found."""
        if message["name"] != self.name or node not in self._waiting or self._judging:
            return
        parts, problem = self._pieces.setdefault(node, []), message["problem"]
        try:
            parts.append(base64.b64decode(message["piece"], validate=True))
        except ValueError as error:
            problem = str(error)
        if sum(map(len, parts)) > examination.SENT_BYTES:
            problem = "it sent more than fits"
        if message["more"] and not problem:
            return
        if not problem:
            try:
                examination.keep(self._folder, self.name, self._members.index(node), b"".join(parts))
            except OSError as error:
                problem = str(error)
        if problem:
            self._problems[node] = problem
        self._waiting.discard(node)
        del self._pieces[node]

    def poll(self) -> dict[str, Any] | None:
        """The finding, once there is one."""
        if self._judging:
            ended = self._examiner.poll()
            return None if ended is None else self._finding(ended)
        if self._own is None:
            self._own = self._examiner.poll()
        if (self._own is None or self._waiting) and self._clock() - self._began < ANSWER:
            return None
        self._problems.update(dict.fromkeys(self._waiting, "it did not answer in time"))
        if self._own:
            self._problems[self._members[0]] = self._own
        job = {"world_size": self._world_size, "nodes": self._ranks}
        try:
            examination.keep_job(self._folder, self.name, {**job, "members": self._members, "problems": self._problems})
        except OSError as error:
            return self._finding(str(error))
        self._judging = True
        self._examiner.judge(self.name)
        return None

    def _finding(self, problem: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not problem:
            try:
                found = examination.read_finding(self._folder, self.name)
            except (OSError, ValueError) as error:
                problem = str(error)
        if problem:
            found = {"sentence": f"{UNKNOWN}: the examination failed: {problem}"}
        return {
            **bounded(found),
            "evidence": f"{examination.HANGS}/{self.name}",
            "newest": found.get("newest") or {},
            "missing": sorted(found.get("problems") or self._problems),
            "seconds": round(self._clock() - self._began, 1),
        }

    def close(self) -> None:
        self._examiner.close()


class HangWatch:
    """One attempt of a job, from the start of its launchers on."""

    def __init__(
        self,
        nodes: Nodes,
        clock: Callable[[], float] = time.monotonic,
        examine: Callable[[Nodes, Callable[[], float]], Examination] = Examination,
    ) -> None:
        options = nodes.place.options
        self._nodes, self._clock, self._examine = nodes, clock, examine
        self._after = float(options.get("hang_after") or 0)
        self._action = str(options.get("on_hang") or REPORT)
        self._pace = nodes.pace = Pace(self._after, clock(), ends_after(nodes.place))
        nodes.on_examined = self._receive
        self._going: Examination | None = None
        self._since: float | None = None
        """Since when nothing had moved when it was last examined; ``None`` where something has moved since."""
        self._woke_after = 0.0
        self._examinations = 0
        self._newest: dict[str, int] = {}
        self._silent, self._bound = 0.0, self._pace.bound()
        self._due = 0.0
        """Seconds of the same silence after which it is examined once more."""
        self._slow = ""
        """What was found of a rank that works: why a silence is not reported before ``_due``."""
        state = nodes.state.get("hang") or {}
        self._findings: list[dict[str, Any]] = list(state.get("findings") or [])

    def _receive(self, node: str, message: dict[str, Any]) -> None:
        if self._going is not None:
            self._going.receive(node, message)

    def poll(self) -> Failure | None:
        """See whether it is time to look, and what was found; why the job is ended, where that was requested."""
        now, bound = self._clock(), self._pace.bound()
        if self._since is not None and bound.since > self._since:
            self._woke_after = self._woke_after or bound.since - self._since
            if self._going is None:
                self._woke(self._woke_after)
        failure = None
        if self._going is not None:
            found = self._going.poll()
            if found is not None:
                self._going = None
                failure = self._found(found, now)
        elif bound.seconds and now - bound.since > max(bound.seconds, self._due):
            self._since, self._slow = bound.since, ""
            # Once more, in case it is to be ended, or to see what has changed: each time after twice as long.
            self._due = max(2 * (now - bound.since), self._after)
            self._silent, self._bound = now - bound.since, bound
            self._going = self._examine(self._nodes, self._clock)
        seconds, why = (self._due, self._slow) if self._slow else (bound.seconds, bound.why)
        self._nodes.state["hang"] = {"bound": seconds, "why": why, "findings": self._findings}
        return failure

    def _found(self, found: dict[str, Any], now: float) -> Failure | None:
        newest, before = found.pop("newest"), self._newest
        self._newest = newest
        if not found.pop("hang") or examination.goes_on(before, newest):
            self._pace.note(COLLECTIVE, now)  # it only prints nothing
            return None
        if newest and not before and self._pace.steps < FEWEST and self._since is not None:
            # What takes a script that prints nothing long to make the next collective is not known: once more.
            self._due = now - self._since + min(PATIENCE, self._after / 4)
            return None
        latest = min(self._after, self._pace.most or self._after)
        if found.pop("works") and self._since is not None and now - self._since < latest:
            # As an evaluation or a checkpoint does that no line announces.
            self._due, self._slow = latest, f"as after {in_words(now - self._since)}: {found['sentence']}"
            return None
        self._examinations += 1
        entry = {
            **found,
            "at": now_text(),
            "attempt": self._nodes.state.get("attempt"),
            "silent": round(self._silent, 1),
            "bound": self._bound.seconds,
            "why": self._bound.why,
            "examinations": self._examinations,
            "woke": None,
        }
        known = self._findings[-1] if self._examinations > 1 and self._findings else None
        earlier = self._findings[:-1] if known else self._findings
        # Of the last one only, as the state is sent with every poll.
        self._findings = [*({**one, "timeline": None} for one in earlier), entry][-MOST_FINDINGS:]
        still = self._pace.bound().since == self._since
        if still and (known is None or known["sentence"] != entry["sentence"]):
            self._nodes.say(sentence(entry))
        if self._action == REPORT or self._examinations < ENOUGH or not still or self._since is None:
            return None
        cause = f"{entry['sentence'].rstrip('.')}."
        finding = Finding(
            **{"id": "hang", "kind": "hang", "cause": cause, "remedy": entry["remedy"], "confidence": LIKELY},
            node=next(iter(entry["nodes"]), ""),
            rank=next(iter(entry["ranks"]), None),
        )
        reason = f"the job makes no progress for {now - self._since:.0f} s (deepspeed_launch_on_hang: {self._action})"
        text = f"{reason}. {cause} Remedy: {entry['remedy']}"
        return Failure(text, node=finding.node, rank=finding.rank, finding=finding, final=self._action == STOP)

    def _woke(self, seconds: float) -> None:
        examinations, self._since, self._woke_after = self._examinations, None, 0.0
        self._examinations, self._due, self._newest, self._slow = 0, 0.0, {}, ""
        if not examinations:
            return
        if self._findings and self._findings[-1]["woke"] is None:
            self._findings = [*self._findings[:-1], {**self._findings[-1], "woke": round(seconds, 1)}]
        self._nodes.say(f"the job goes on after {in_words(seconds)} without progress: it did not hang.")

    def last(self) -> dict[str, Any] | None:
        """What is known of the silence there is now."""
        return self._findings[-1] if self._since is not None and self._findings else None

    def close(self, succeeded: bool = False) -> None:
        """The attempt has ended; one that has succeeded did not hang, although its last steps may not have shown it."""
        if succeeded and self._since is not None:
            self._woke(self._clock() - self._since)
            self._nodes.state["hang"] = {**self._nodes.state["hang"], "findings": self._findings}
        if self._going is not None:
            self._going.close()
            self._going = None
        self._nodes.on_examined = ignore
