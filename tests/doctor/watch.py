# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The whole doctor beside a run of HangBench: waits by the learned bound, examines, judges, and answers if it hangs.

python -m tests.hangbench run --when start --doctor "python -m tests.doctor.watch FOLDER HANG_AFTER" --env VARIABLES

VARIABLES are those of ``python -m tests.doctor.hangbench inside FOLDER``. Stands in for hang_watch.py of the
supervisor, which has logs in place of lines; bound, examination and judgement are the same. No answer is printed as
long as the run goes on.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import examination, judge
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.bound import (
    COLLECTIVE,
    LINE,
    STEP,
    Pace,
    announced,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.loud_lines import speaks
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.progress import Progress

from .hangbench import answer, examined, lines_of

RANK = re.compile(r"^\[rank\d+\] ")


class Lines:
    """The lines of a run as they come, as events of its pace."""

    def __init__(self, path: Path, pace: Pace) -> None:
        self._file, self._pace, self._progress, self._rest = path.open(encoding="utf-8"), pace, Progress(), ""

    def read(self) -> None:
        *whole, self._rest = (self._rest + self._file.read()).split("\n")
        for when, rank, text in map(json.loads, whole):
            line = RANK.sub("", text)
            if self._progress.feed(rank, line, when):
                self._pace.note(STEP, when)
            elif not speaks(line):
                self._pace.note(announced(line) or LINE, when)


def watch(folder: str, hang_after: float, request: dict[str, Any]) -> dict[str, Any]:
    pace = Pace(hang_after, float(request["started"]))
    lines, newest = Lines(Path(request["lines"]), pace), dict[str, int]()
    while True:
        lines.read()
        if not pace.bound().over(time.time()):
            time.sleep(0.2)
            continue
        found = examined(folder, request["ranks"])
        job = {"world_size": request["world_size"], "log": lines_of(request["lines"])}
        concluded = judge.judge(found, job)
        lines.read()
        before, newest = newest, examination.newest_collectives(found)
        if concluded["hang"] is False or examination.goes_on(before, newest):
            pace.note(COLLECTIVE, time.time())
        elif pace.bound().over(time.time()):
            return answer(concluded)


def main() -> int:
    folder, hang_after, path = sys.argv[1:]
    print(json.dumps(watch(folder, float(hang_after), json.loads(Path(path).read_text(encoding="utf-8")))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
