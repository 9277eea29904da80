# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables that every rank of a cluster gets, read on the host: their secrets are hidden in what a job printed."""

from __future__ import annotations

import contextlib
from pathlib import Path


def ranks_environment(jobs_dir: str | Path) -> dict[str, str]:
    """What the role nccl_env wrote to ``etc/env`` beside the folder of the jobs; none where there is no such file.

    Containers have that folder read-only, so it is opened like any file of root's.
    """
    text = ""
    with contextlib.suppress(OSError):
        text = (Path(jobs_dir).parent / "etc" / "env").read_text(encoding="utf-8", errors="replace")
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, sign, value in pairs if sign}
