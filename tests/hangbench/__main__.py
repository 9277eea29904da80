# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""HangBench: hangs of distributed training whose cause is known.

Usage: python -m tests.hangbench list [--half tuned|held] [--healthy]
       python -m tests.hangbench run [--case ID …] [--kind KIND …] [--half tuned|held] [--healthy] [--out DIR]
                                     [--doctor COMMAND [--when hang|start]] [--env NAME=VALUE …] [--python PATH]
       python -m tests.hangbench score DIR/results.jsonl …
       python -m tests.hangbench keep DIR/results.jsonl …        (what was verified, into verified.json)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import score, verify
from .catalogue import KINDS, Case, halves, hangs, healthy
from .ranks import Launcher
from .runner import Options, Run


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hangbench", description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="what", required=True)
    for name, text in (("list", "the cases"), ("run", "run cases, one after another, and score the doctor's answers")):
        chosen = commands.add_parser(name, help=text)
        chosen.add_argument("--case", nargs="+", metavar="ID", help="only these")
        chosen.add_argument("--kind", nargs="+", choices=KINDS, help="only hangs of these kinds")
        chosen.add_argument("--half", choices=("tuned", "held"), help="only this half")
        chosen.add_argument("--healthy", action="store_true", help="the healthy runs instead of the hangs")
        chosen.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth of them")
    run = commands.choices["run"]
    run.add_argument("--out", type=Path, default=Path(".cache/hangbench"), help="folder of results and logs")
    run.add_argument("--doctor", metavar="COMMAND", help="gets the path of a JSON file; without, cases are verified")
    run.add_argument("--when", choices=("hang", "start"), default="hang", help="when the doctor is started")
    run.add_argument("--patience", type=float, default=120, metavar="S", help="how long a doctor may take")
    run.add_argument("--env", nargs="+", default=[], metavar="NAME=VALUE", help="for the ranks")
    run.add_argument("--python", default=sys.executable, help="the interpreter of the ranks, with torch")
    run.add_argument(
        "--fork", action="store_true", help="fork the ranks from one process with torch: verification only"
    )
    run.add_argument("--jobs", type=int, default=1, help="cases side by side: verification only")
    for name, text in (("score", "a table of results"), ("keep", "keep what was verified in verified.json")):
        commands.add_parser(name, help=text).add_argument("results", type=Path, nargs="+")
    parsed = parser.parse_args(given)
    if parsed.what == "run" and parsed.doctor and (parsed.fork or parsed.jobs > 1):
        parser.error("--fork and --jobs are for verification, without --doctor")
    return parsed


def chosen(options: argparse.Namespace) -> list[Case]:
    everything = [*hangs(), *healthy()]
    half = halves(everything)
    found = [one for one in everything if one.healthy == options.healthy or (options.case and one.id in options.case)]
    if options.case:
        if unknown := set(options.case) - {one.id for one in found}:
            raise SystemExit(f"unknown cases: {', '.join(sorted(unknown))}")
        found = [one for one in found if one.id in options.case]
    if options.kind:
        found = [one for one in found if one.kind in options.kind]
    return [one for one in found if options.half in (None, half[one.id])][:: options.every]


def run(options: argparse.Namespace) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    cases, file = chosen(options), options.out / "results.jsonl"
    signal.signal(signal.SIGTERM, lambda *dummy: sys.exit(143))
    results: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        given = Options(options.out.resolve(), options.python, options.doctor, options.when, options.patience)
        given.environment = dict(one.split("=", 1) for one in options.env)
        given.launcher = stack.enter_context(Launcher(options.python)) if options.fork else None
        versions = {} if options.doctor else verify.versions(options.python, options.fork)
        written = stack.enter_context(file.open("a", encoding="utf-8"))

        def one(case: Case) -> None:
            result = Run(case, given).result()
            result.update(versions, blames=bool(case.truth and case.truth["culprits"]))
            written.write(json.dumps(result) + "\n")
            written.flush()
            results.append(result)
            print(case.id, outcome(result), f"{result.get('seconds', 0)} s", flush=True)

        if options.jobs > 1:
            pool = ThreadPoolExecutor(options.jobs)
            stack.callback(pool.shutdown, cancel_futures=True)
            list(pool.map(one, cases))
        else:
            for case in cases:
                one(case)
    print(score.table(results, halves([*hangs(), *healthy()])))
    return int(any("failed" in one or one.get("verified") is False for one in results))


def outcome(result: dict[str, Any]) -> str:
    if "verified" in result:
        return "verified" if result["verified"] else "; ".join(result["problems"])
    return str(result.get("scores") or result.get("failed") or result.get("skipped"))


def main() -> int:
    options = arguments()
    if options.what == "run":
        return run(options)
    if options.what in ("score", "keep"):
        lines = [line for path in options.results for line in path.read_text(encoding="utf-8").splitlines()]
        last = {result["id"]: result for result in map(json.loads, lines)}
        print(score.table(list(last.values()), halves([*hangs(), *healthy()])))
        if options.what == "keep":
            verify.keep(last.values())
        return 0
    half = halves([*hangs(), *healthy()])
    for one in chosen(options):
        print(f"{one.id:40} {one.kind or 'healthy':22} {half[one.id]:6} {one.structure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
