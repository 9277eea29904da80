# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the doctor's part in the ranks costs a step: pairs of short trainings, with it and without, in turn.

python -m tests.doctor.cost [--pairs 20] [--steps 400] [--python PATH with torch]

Prints the ratio of each pair's medians, with minus without, as mean and 95 % interval (Student's t), for the time of a
step and for its processor time, which other work on the machine disturbs less; and the memory that it takes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import inside

from .corpus import TORCH

RANKS = 2
TRAINING = """\
import json, os, resource, statistics, sys, time
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
network = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
times, used = [], []
for step in range(int(sys.argv[1])):
    began, cpu = time.perf_counter(), time.process_time()
    network.zero_grad()
    network(torch.randn(64, 512)).square().mean().backward()
    for parameter in network.parameters():
        dist.all_reduce(parameter.grad)
    times.append(time.perf_counter() - began)
    used.append(time.process_time() - cpu)
warm = len(times) // 10
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"step": statistics.median(times[warm:]), "cpu": statistics.median(used[warm:]), "mib": memory}))
dist.destroy_process_group()
"""


def trained(python: Path, steps: int, port: int, variables: dict[str, str]) -> dict[str, float]:
    """Train once; return the means over the ranks."""
    given = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS), **variables}
    ranks = [
        subprocess.Popen(
            [python, "-W", "ignore", "-c", TRAINING, str(steps)],
            env={**given, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    printed = [rank.communicate(timeout=300)[0] for rank in ranks]
    found: list[dict[str, float]] = [json.loads(text.splitlines()[-1]) for text in printed]
    return {name: statistics.fmean(one[name] for one in found) for name in found[0]}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and half the width of its 95 % interval."""
    # Quantiles of Student's t by Cornish and Fisher's expansion, right to 0.1 % from 9 degrees of freedom on.
    free, z = len(values) - 1, statistics.NormalDist().inv_cdf(0.975)
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(len(values))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.doctor.cost", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--python", type=Path, default=TORCH)
    given = parser.parse_args()
    pairs: list[dict[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        own = inside.environment(Path(folder) / "inside", {})
        # Of torch 2.13 the recorder is on by itself.
        ways: dict[str, Any] = {"with": own, "without": {"TORCH_FR_BUFFER_SIZE": "0"}}
        for number in range(given.pairs):
            order = list(ways) if number % 2 else list(reversed(ways))
            made = {way: trained(given.python, given.steps, 29600 + number % 2, ways[way]) for way in order}
            pairs.append(made)
            print(number + 1, made, file=sys.stderr, flush=True)
    for name, unit in (("step", "time of a step"), ("cpu", "processor time of a step")):
        mean, half = interval([pair["with"][name] / pair["without"][name] for pair in pairs])
        usual = statistics.median(pair["without"][name] for pair in pairs) * 1000
        print(f"{unit}: {100 * (mean - 1):+.2f} % ± {100 * half:.2f} % of {usual:.1f} ms ({len(pairs)} pairs)")
    mean, half = interval([pair["with"]["mib"] - pair["without"]["mib"] for pair in pairs])
    print(f"memory of a rank: {mean:+.1f} MiB ± {half:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
