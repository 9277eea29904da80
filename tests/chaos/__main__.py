# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Make faults on the lab, each followed by site.yml, site.yml and verify.yml; write down how often that failed.

Usage: python -m tests.chaos [run] [--seed N] [--rounds N] [--only FAULT] [--keep-going] [--list] [--dry-run]
       python -m tests.chaos report [--keep] [--check]
`run` goes on where it was interrupted. `report` writes docs/chaos.md from docs/chaos/*.jsonl; --keep first brings what
was recorded on the lab there; with --check nothing is written, and the exit status is 1 when the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.chaos import campaign, report
from tests.chaos.faults.catalogue import ENTRIES, FAULTS
from tests.chaos.lab import Lab, LabError
from tests.chaos.plan import Round, cycle_length, plan, rounds_of
from tests.chaos.records import digest, pending, read
from tests.playbook_run import ROOT

SEED = 17
SUPPOSED = ("lab1", "lab2", "lab3")
"""Nodes of a plan that is only shown, where no lab is up."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("what", nargs="?", choices=("run", "report"), default="run")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rounds", type=int, help=f"of the plan; without, {cycle_length(ENTRIES)}: each fault's share")
    parser.add_argument(
        "--only", metavar="FAULT", choices=sorted(FAULTS), help="the next rounds of this fault, by default one"
    )
    parser.add_argument("--keep-going", action="store_true", help="go on after a round that failed")
    parser.add_argument("--list", action="store_true", help="the faults, and how many rounds each has")
    parser.add_argument("--dry-run", action="store_true", help="the plan, without making it")
    parser.add_argument("--keep", action="store_true", help="with report: keep the recorded rounds in docs/chaos")
    parser.add_argument("--check", action="store_true", help="with report: only say whether the page is current")
    requested = parser.parse_args(given)
    if requested.rounds is not None and requested.rounds < 1:
        parser.error("--rounds: at least 1")
    return requested


def rounds(requested: argparse.Namespace, nodes: Sequence[str]) -> list[Round]:
    if requested.only:
        # The next ones of this fault: those that were made are not made again, and not counted twice.
        count, of = requested.rounds or 1, digest(ROOT)
        made = read(campaign.ROUNDS)
        wanted = rounds_of(requested.only, count + len(made), requested.seed, ENTRIES, nodes)
        return pending(wanted, made, requested.seed, of, len(nodes))[:count]
    return plan(requested.seed, requested.rounds or cycle_length(ENTRIES), ENTRIES, nodes)


def main(given: Sequence[str] | None = None) -> int:
    requested = arguments(given)
    if requested.what == "report":
        if requested.keep:
            report.keep(campaign.ROUNDS)
        return report.write(check=requested.check)
    if requested.list:
        for fault in FAULTS.values():
            print(f"{fault.name:22} {fault.times:3}  {fault.text}")
        return 0
    try:
        nodes: Sequence[str] = Lab().nodes
    except LabError as error:
        if not requested.dry_run:
            print(error, file=sys.stderr)
            return 1
        nodes = SUPPOSED
    planned = rounds(requested, nodes)
    if requested.dry_run:
        print("\n".join(one.line() for one in planned))
        return 0
    return campaign.run(requested.seed, planned, requested.keep_going)


if __name__ == "__main__":
    sys.exit(main())
