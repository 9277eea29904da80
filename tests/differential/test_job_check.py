# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The check that runs in the container before the launcher, with real releases of DeepSpeed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils import _job_ds_config
from deepspeed_oracle import FOLDER, Oracle


def check(oracle: Oracle, path: Path, world_size: int) -> tuple[str, str]:
    done = subprocess.run(
        [str(FOLDER / "venv/bin/python"), _job_ds_config.__file__, str(path), str(world_size)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(FOLDER / f"deepspeed-{oracle.release}")},
        stdout=subprocess.PIPE,
        check=True,
    )
    answer = json.loads(done.stdout)
    return answer["release"], answer["refusal"]


def batch(total: int) -> dict[str, object]:
    return {"train_batch_size": total, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"train_batch_size": "auto", "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}, ""),
        (
            {"train_batch_size": 10, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1},
            "10 != 1 * 1 * 6",
        ),
        # A PipelineModule of two stages leaves three data-parallel ranks of six.
        ({**batch(6), "pipeline": {"stages": 2}}, ""),
        ({**batch(12), "pipeline": {"stages": 2}}, "12 != 2 * 1 * 3"),
        ({**batch(12), "pipeline": {"stages": "auto"}}, ""),
        ({**batch(12), "pipeline": {"stages": 4}}, "pipeline.stages 4 does not divide the 6 ranks"),
        ({**batch(6), "sequence_parallel_size": 2, "data_parallel_size": 3}, ""),
        ({**batch(12), "sequence_parallel_size": 2, "data_parallel_size": 3}, "12 != 2 * 1 * 3"),
    ],
)
def test_what_deepspeed_says(oracle: Oracle, tmp_path: Path, config: dict[str, object], says: str) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps(config))
    release, refusal = check(oracle, path, 6)
    assert release == oracle.release
    assert says in refusal and bool(says) == bool(refusal)
