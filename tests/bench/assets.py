# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A model to all nodes beside one node alone, every link between nodes limited as for images.

What is timed is the transfer, without Ansible's part. LAB_NODES=3 and 9 show how it grows.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tests.bench.distribution import MEBIBYTES, compared, limited, nodes, times
from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import CLUSTER_ROOT, on, playbook, variables

NAME, FILES = "bench", 4
FOLDER = f"{CLUSTER_ROOT}/assets/{NAME}"


def make(folder: Path) -> None:
    """Write files of chance, as a model has few and large ones."""
    for number in range(FILES):
        (folder / f"model-{number}.bin").write_bytes(os.urandom(MEBIBYTES // FILES << 20))


def sent(folder: Path, lacking: list[str]) -> float:
    """Seconds until the slowest of those nodes that lack the files has them."""
    sources = [{"name": NAME, "folder": str(folder)}]
    run = playbook("site", "--tags", "assets", *variables(assets_sources=sources)).done(nodes=())
    reported = dict(re.findall(rf"(lab\d+): {MEBIBYTES} MiB of models and data sets in ([\d.]+) s", run.text))
    assert set(lacking) == reported.keys(), run.output[-3000:]
    return max(float(reported[name]) for name in lacking)


def forget(names: list[str]) -> None:
    for name in names:
        on(name, f"rm -rf {FOLDER}")


@REGISTRY.add("assets")
def assets(rounds: int) -> list[Row]:
    """In turn: all by the chain, one node alone. The first node has the files, as it has an image that it has built."""
    names = nodes()
    others = names[1:]
    alone: list[float] = []
    chained: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for dummy in times(rounds):
                make(Path(folder))
                sent(Path(folder), names)
                forget(others)
                with limited(names):
                    chained.append(sent(Path(folder), others))
                    forget(others[:1])  # all others have them
                    alone.append(sent(Path(folder), others[:1]))
        finally:
            forget(names)
    return compared(others, alone, chained)
