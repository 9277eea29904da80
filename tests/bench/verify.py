# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""verify.yml, and what of it all pairs of nodes take; LAB_NODES=3 and 12 show how that grows."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import playbook, variables


@REGISTRY.add("verify")
def verify(rounds: int) -> list[Row]:
    """A verify.yml of a cluster that is up, nothing of which is wrong."""
    whole: list[float] = []
    pairs: list[float] = []
    nodes = 0
    for dummy in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            playbook("verify", *variables(cluster_reports_dir=folder)).done(change=False)
            whole.append(time.monotonic() - began)
            found = json.loads(Path(folder, "verify.json").read_text(encoding="utf-8"))
        nodes = len(found["nodes"])
        pairs.append(float(found["seconds"]))
    return [
        Row("verify.yml", whole),
        Row("of that all pairs", pairs, note=f"{nodes * (nodes - 1) // 2} pairs, and a collective of two seconds"),
    ]
