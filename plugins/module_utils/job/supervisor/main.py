# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs on each node of a training job, beside its launcher: starts it, reports, ends it, and leaves nothing behind.

The module training_job writes this package, with what it imports from beside it, as one archive into the job's folder
and starts that detached, in the node's container or on the host; it needs nothing but Python 3.8. Usage:
``supervisor.pyz FOLDER [--sweep]``; the other options shorten tests. ``supervisor.pyz --check-ds-config FILE
WORLD_SIZE`` is the check before the launcher (ds_config_check.py). ``--examine`` and ``--judge`` examine a job that
runs (doctor/examination.py).

The supervisor on the node of rank 0 leads and judges the job (leader.py). The others follow (follower.py):
they start their launcher when the leader says so, pass on what their ranks print, and end when it says so or is gone.
"""

from __future__ import annotations

import argparse
import os
import signal
import traceback
from pathlib import Path
from typing import Any

from .. import ds_config_check
from ..doctor import examination
from . import base, gpu_watch
from .follower import Follower
from .leader import Leader
from .local_run import LocalRun, environments, rank_pids


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sweep", action="store_true", help="only end what an earlier run left behind")
    parser.add_argument("--again", action="store_true", help="the container was restarted while the job ran")
    parser.add_argument("--examine", metavar="NAME", help="only see what the ranks on this node do; see doctor/")
    parser.add_argument("--judge", metavar="NAME", help="only say what follows from what all nodes found")
    for name, default in (
        ("poll", base.POLL),
        ("grace", base.GRACE),
        ("after-failure", base.AFTER_FAILURE),
        ("failure-grace", base.FAILURE_GRACE),
        ("leader-gone", base.LEADER_GONE),
        ("silence", base.SILENCE),
        ("start-timeout", base.START_TIMEOUT),
        ("gpu-every", gpu_watch.EVERY),
    ):
        parser.add_argument(f"--{name}", type=float, default=default)
    return parser


def _sweep(given: argparse.Namespace, grace: float) -> bool:
    """End what is left of the job on this node, and keep what it has made; say whether nothing runs any more."""
    left = base.Supervisor(given.folder, given)
    clean = left.sweep(LocalRun(given.folder, "launcher.log", lambda _rank, _line: None), grace)
    if clean:
        left.settle(base.NodeContext(given.folder))
    return clean


def _examine(given: argparse.Namespace) -> int:
    """Examine the ranks on this node, or judge what all nodes found: beside a supervisor, or without one."""
    if given.judge:
        examination.judge_all(given.folder, given.judge)
        return 0
    living = rank_pids(environments(given.folder))
    ranks = [{"rank": rank, "pid": pid} for rank, pid in sorted(living.items())]
    if given.examine == examination.REQUEST:
        examination.begin(given.folder, given.examine, ranks)
    examination.examine(given.folder, given.examine, base.NodeContext(given.folder).node, ranks)
    return 0


def main(arguments: list[str]) -> int:
    if arguments[:1] == [ds_config_check.OPTION]:
        return ds_config_check.main(arguments[1:])
    given = options().parse_args(arguments)
    os.umask(0o077)
    if given.examine or given.judge:
        return _examine(given)
    if given.sweep:
        return 0 if _sweep(given, given.grace) else 1
    supervisor: Any = (Leader if base.NodeContext(given.folder).rank == 0 else Follower)(given.folder, given)

    def end_on_signal(number: int, _frame: object) -> None:
        supervisor.stop_reason = f"its supervisor was asked to end ({signal.Signals(number).name})"

    signal.signal(signal.SIGTERM, end_on_signal)
    signal.signal(signal.SIGINT, end_on_signal)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        supervisor.run()
    except Exception as error:
        # Without this the job would count as lost, and no one would know why.
        with (given.folder / "supervisor.log").open("a", encoding="utf-8") as log:
            log.write(traceback.format_exc())
        _sweep(given, given.failure_grace)
        supervisor.state.update(
            state="failed",
            exit_code=1,
            finished_at=base.now_text(),
            reason=f"the supervisor failed: {error!r}; see supervisor.log beside the log.",
        )
        supervisor.write()
        return 1
    return 0
