# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the launcher puts into ranks, so that they can be asked for their stacks and for torch's flight recorder.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from ...common.whole_file import write_whole
from . import rank_side

STACKS = int(signal.SIGRTMAX) - rank_side.STACKS_BELOW_MAX
REPORT = int(signal.SIGRTMAX) - rank_side.REPORT_BELOW_MAX
ENTRIES = 2000
"""Entries that the flight recorder keeps: torch's own default in recent releases, where older ones record nothing."""
MODULES = "PYTHONPATH"


def environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Write into a private ``folder`` what ranks need; return the variables for them, on top of those given.

    Variables that are given are kept, by either name, PYTHONPATH behind our folder.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(folder / "sitecustomize.py", inspect.getsource(rank_side))
    values = (str(ENTRIES), str(folder / "recorder_rank_"))
    names = zip(rank_side.RECORDER, values)
    own = {name: value for both, value in names if not any(name in given for name in both) for name in both}
    return {**own, MODULES: os.pathsep.join([str(folder), *filter(None, [given.get(MODULES)])])}
