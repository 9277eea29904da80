# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""``make mutants``: are the guards guarded? Each mutant is a guard that was broken; a test must fail with it.

A tool of our own, as mutmut and cosmic-ray mutate every operator of every line, have neither flags of system calls nor
checks after use among their kinds, and start a whole pytest for each mutant.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.documents import ROOT
from tests.mutants.campaign import CampaignError, campaign
from tests.mutants.choice import MOST, choose
from tests.mutants.kinds import all_mutants
from tests.mutants.mutant import KINDS, Mutant
from tests.mutants.results import ExplanationError, complaints, judged, read_explanations, settled, unexplained
from tests.mutants.table import keep, read
from tests.mutants.targets import TARGETS, Target


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", action="append", choices=[target.name for target in TARGETS], help="keeps nothing")
    parser.add_argument("--most", type=int, default=MOST, help="how many mutants, keeps nothing [%(default)s]")
    parser.add_argument("--named", help="all mutants with this in their name, tried or not, keeps nothing")
    parser.add_argument(
        "--again", action="store_true", help="only those that the kept results complain of; the other results stay"
    )
    parser.add_argument("--despite-failures", action="store_true", help="leave failing tests out, keeps nothing")
    parser.add_argument("--list", action="store_true", help="list the mutants that would be tried")
    options = parser.parse_args(arguments)
    try:
        known = read_explanations()
    except ExplanationError as error:
        print(error, file=sys.stderr)
        return 1
    began = time.monotonic()
    there = {
        target.name: [
            mutant
            for module in target.module_paths(ROOT)
            for mutant in all_mutants(module, (ROOT / module).read_bytes())
        ]
        for target in TARGETS
    }
    chosen = [
        (target, mutant)
        for target, mutant in _chosen(there, options)
        if not options.only or target.name in options.only
    ]
    kept, sizes, seconds = read() if options.again else ([], {name: len(found) for name, found in there.items()}, 0.0)
    done = {result.mutant: unexplained(result) for result in settled(kept, known)}
    if options.again:
        names = {result.mutant for result in kept} - set(done)
        chosen = [(target, mutant) for target, mutant in chosen if mutant.name in names]
    if options.list:
        print(*(mutant.name for _target, mutant in chosen), sep="\n")
        return 0
    try:
        found = campaign(chosen, lambda text: print(text, flush=True), options.despite_failures) if chosen else []
    except CampaignError as error:
        print(error, file=sys.stderr)
        return 1
    tried = {**done, **{result.mutant: result for result in found}}
    order = [result.mutant for result in kept] or list(tried)
    results = [judged(tried[name], known) for name in order if name in tried]
    seconds += time.monotonic() - began
    if not (options.only or options.named or options.despite_failures or options.most != MOST):
        keep(results, sizes, time.strftime("%Y-%m-%d", time.gmtime()), seconds)
    wrong = complaints(results, known, {mutant.name for mutants in there.values() for mutant in mutants})
    print(f"{len(found)} mutants in {seconds / 60:.1f} minutes, {len(wrong)} complaints", *wrong, sep="\n")
    return 1 if wrong else 0


def _chosen(there: dict[str, list[Mutant]], options: argparse.Namespace) -> list[tuple[Target, Mutant]]:
    if options.named:
        return [(target, one) for target in TARGETS for one in there[target.name] if options.named in one.name]
    cells = {
        (target, kind): [mutant for mutant in there[target.name] if mutant.kind == kind]
        for target in TARGETS
        for kind in KINDS
    }
    return [(target, mutant) for (target, _kind), found in choose(cells, options.most).items() for mutant in found]


if __name__ == "__main__":
    sys.exit(main())
