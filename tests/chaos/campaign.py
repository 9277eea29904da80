# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Makes the rounds of a plan, one after another, and records each; goes on where it was interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import ansible

from tests.chaos.faults.base import Attempt, Failed, Fault, Unsuited
from tests.chaos.faults.catalogue import FAULTS
from tests.chaos.faults.kills import JOB
from tests.chaos.lab import Lab, LabError
from tests.chaos.plan import Round
from tests.chaos.records import Outcome, Record, append, commit, digest, pending, read, without_paths
from tests.chaos.recovery import Recovery, recover, timed
from tests.chaos.runs import NO_JOB, Durations, Runs
from tests.needs import Needs, free_memory_gib, gather, refusal
from tests.playbook_run import LAB, ROOT, variables

FOLDER = ROOT / ".cache" / "chaos" / LAB
ROUNDS = FOLDER / "rounds.jsonl"
NEEDS = Needs(nodes=2, more_nodes=True, disk_gib=15, memory_gib=4)
FIRST_PATIENCE = 2400.0
"""Seconds of the site.yml before the first round, which may have to build the image."""


class Stopped(Exception):
    """The rounds end here, with a sentence for whoever started them."""


@dataclass
class Campaign:
    """The rounds that are to be made on one lab."""

    lab: Lab
    seed: int
    keep_going: bool
    of: str = ""
    """The digest of the collection that is tried."""

    def __post_init__(self) -> None:
        self.of = digest(ROOT)
        self.durations = Durations(FOLDER / "durations.json")

    def run(self, rounds: list[Round]) -> int:
        """Make those that are still to be made; return how many failed."""
        waiting = pending(rounds, read(ROUNDS), self.seed, self.of, len(self.lab.nodes))
        print(f"{len(waiting)} of {len(rounds)} rounds are to be made; seed {self.seed}, code {self.of}.", flush=True)
        if not waiting:
            return 0
        with locked(FOLDER):
            self._prepare()
            described = self.lab.description()
            failed = 0
            for one in waiting:
                record = self._round(one, described)
                append(ROUNDS, record)
                print(shown(record), flush=True)
                if digest(ROOT) != self.of:
                    raise Stopped("The collection's files were changed meanwhile: its rounds are counted from zero.")
                if record.outcome in {"failed", "not made"}:
                    failed += record.outcome == "failed"
                    if not self.keep_going:
                        raise Stopped(
                            f"Round {one.number} ({one.fault}): {record.outcome}. Logs: {folder_of(self.seed, one)}. "
                            "KEEP_GOING=1 goes on with the next."
                        )
                    self._repair()
        return failed

    def _round(self, one: Round, described: str) -> Record:
        fault = FAULTS[one.fault]
        print(one.line(), flush=True)
        place = folder_of(self.seed, one)
        shutil.rmtree(place, ignore_errors=True)
        began = time.monotonic()
        attempt = Attempt(self.lab, one, Runs(place, self.durations), one.target)
        recovery = Recovery()
        try:
            outcome, why = self._made(attempt, fault, recovery)
        finally:
            attempt.runs.sweep()
        shared = "\n".join([why, *recovery.refusals])
        if shared.strip():
            (place / "result.txt").write_text(f"{outcome}\n{shared}\n", encoding="utf-8")
        return Record(
            seed=self.seed,
            round=one.number,
            fault=one.fault,
            target=attempt.target,
            scope=one.scope if fault.kill else "",
            moment=without_paths(attempt.moment, ROOT),
            outcome=outcome,
            why=without_paths(why, ROOT)[:1000],
            refusals=[without_paths(text, ROOT)[:1000] for text in recovery.refusals],
            followed=[without_paths(text, ROOT)[:300] for text in recovery.followed],
            seconds=round(time.monotonic() - began, 1),
            digest=self.of,
            commit=commit(ROOT),
            nodes=len(self.lab.nodes),
            lab=described,
            ansible=ansible.__version__,
            at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        )

    def _made(self, attempt: Attempt, fault: Fault, recovery: Recovery) -> tuple[Outcome, str]:
        """Make the fault and recover from it; return the outcome, and what is wrong."""
        try:
            if fault.choose:
                attempt.target = fault.choose(self.lab, attempt.target)
            took = timed(lambda: fault.inject(attempt))
        except Failed as error:
            return "failed", str(error)
        except (Unsuited, LabError) as error:
            return "not made", str(error)
        found = recover(attempt, fault)
        recovery.refusals, recovery.followed = found.refusals, found.followed
        problems = [*attempt.problems, *([found.why] if found.why else [])]
        if took > fault.limit:
            problems.append(f"the fault and what ran meanwhile took {took:.0f} s of {fault.limit:.0f}")
        if problems:
            return "failed", "; ".join(problems)
        return ("refused" if found.refusals else "converged"), ""

    def _prepare(self) -> None:
        """Bring the lab to where every round begins: nodes that are up, and a whole cluster without a job."""
        self.lab.settle()
        gathered = {name: gather(name) for name in self.lab.nodes}
        if any(seen.get("trains") for seen in gathered.values()):  # of a round that was interrupted
            Runs(FOLDER / "stop", self.durations).complete("stop", "stop", *variables(**JOB))
            gathered = {name: gather(name) for name in self.lab.nodes}
        reported = refusal("chaos", NEEDS, gathered, memory_gib=free_memory_gib(), root=True, lab=LAB)
        if reported:
            raise Stopped(reported)
        self._whole("prepare")

    def _repair(self) -> None:
        """After a round that failed, the next one begins with a whole cluster all the same, or none does."""
        self.lab.settle()
        try:
            self._whole("repair")
        except Stopped:
            # What site.yml could not repair may go away with what it had made.
            Runs(FOLDER / "repair", self.durations).complete("teardown", "teardown")
            self._whole("repair-again")

    def _whole(self, label: str) -> None:
        ended = Runs(FOLDER / label, self.durations).complete("site", "site", *NO_JOB, patience=FIRST_PATIENCE)
        verdict = ended.verdict(self.lab.nodes)
        if verdict.kind != "converged":
            reported = verdict.why or "; ".join(one.text for one in verdict.refusals)
            name = "" if LAB == "swarmspeed" else f" LAB_NAME={LAB}"
            raise Stopped(
                f"The lab is not whole before a round: {reported} Remedy: make fresh-lab{name}, and run again."
            )


def folder_of(seed: int, one: Round) -> Path:
    return FOLDER / f"seed-{seed}" / f"{one.number:04}-{one.fault}"


def shown(record: Record) -> str:
    reported = f": {record.why or '; '.join(record.refusals)}" if record.why or record.refusals else ""
    return f"      {record.outcome} in {record.seconds:.0f} s{reported}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second suite off this lab."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Stopped(f"The lab {LAB} has a chaos suite already. Remedy: wait until it has ended.") from None
        yield


def run(seed: int, rounds: list[Round], keep_going: bool) -> int:
    """Make the rounds; return the exit status: 1 where one failed."""
    # So that a suite that is stopped leaves no playbook behind, which would run beside the next.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 1 if Campaign(Lab(), seed, keep_going).run(rounds) else 0
    except (Stopped, LabError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: the round is not counted, and made again next time.", file=sys.stderr)
        return 130
