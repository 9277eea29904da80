# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of the examples share: running an example as its README says, and reading what it left."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.playbook_run import CLUSTER_ROOT, JOBS, NODES, Run, as_the_readme_says, inside, job, on, playbook, variables

CHECKPOINTS = "/workspace/checkpoints"


def extra(example: str, **values: Any) -> tuple[str, ...]:
    return ("-e", f"@examples/{example}/vars.yml", *(variables(**values) if values else ()))


def log(name: str) -> str:
    return on("lab1", f"cat {JOBS}/{name}/launcher.log")


def rank_log(example: str, rank: int) -> str:
    """Return what a rank printed, from its own node."""
    return on(NODES[rank], f"cat {JOBS}/{example}/ranks/rank-{rank:05d}.log")


def python(name: str, code: str) -> Any:
    """Run Python in a node's container; return what it printed, which is JSON."""
    return json.loads(inside(name, f"python3 -c '{code}' 2>/dev/null"))


def trained(example: str) -> Run:
    """Run an example by the line in its README, from the beginning where it has run before on this lab."""
    on("lab1", f"rm -rf {JOBS}/{example} {CLUSTER_ROOT}/workspace/checkpoints/tensorboard/{example}")
    return as_the_readme_says(example)


def succeeded(run: Run, example: str, ranks: int, nodes: int, reached: str) -> None:
    """Assert that a run did what its README says, and that nothing is left to do."""
    assert f"Job {example} succeeded: {ranks} rank(s) on {nodes} node(s)." in run.text
    assert re.search(reached, run.text), run.output[-4000:]
    state = job(example)
    assert (state["state"], state["world_size_seen"], state["nodes_seen"]) == ("succeeded", ranks, nodes)
    assert [rank["exit_code"] for rank in state["ranks"].values()] == [0] * ranks
    again = as_the_readme_says(example).done(change=False)
    assert re.search(rf"Job {example} succeeded at \S+: not started again\.", again.text)
    # And launch.yml is the same, once the image is there.
    playbook("launch", *extra(example)).done(change=False)


def adapter(example: str) -> tuple[int, float]:
    """Return the number of layers that LoRA has trained, and of each one's largest weight in B the smallest."""
    code = (
        "import json; from safetensors.torch import load_file; "
        f'found = load_file("{CHECKPOINTS}/{example}/adapter_model.safetensors"); '
        'lora = [part for name, part in found.items() if "lora_B" in name]; '
        "print(json.dumps([len(lora), min(float(part.abs().max()) for part in lora)]))"
    )
    layers, smallest = python("lab1", code)
    return layers, smallest
