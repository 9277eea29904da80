# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The check that runs in the container before the launcher, with real releases of DeepSpeed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.ds_config_check import OPTION
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import PROGRAM
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive
from deepspeed_oracle import FOLDER, Oracle


def batch(total: int) -> dict[str, object]:
    return {"train_batch_size": total, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}


CASES: list[tuple[dict[str, object], str]] = [
    (
        {"train_batch_size": 10, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1},
        "10 != 1 * 1 * 6",
    ),
    ({"train_batch_size": "auto", "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}, ""),
    # A PipelineModule of two stages leaves three data-parallel ranks of six.
    ({**batch(6), "pipeline": {"stages": 2}}, ""),
    ({**batch(12), "pipeline": {"stages": 2}}, "12 != 2 * 1 * 3"),
    ({**batch(12), "pipeline": {"stages": "auto"}}, ""),
    ({**batch(12), "pipeline": {"stages": 4}}, "pipeline.stages 4 does not divide the 6 ranks"),
    ({**batch(6), "sequence_parallel_size": 2, "data_parallel_size": 3}, ""),
    ({**batch(12), "sequence_parallel_size": 2, "data_parallel_size": 3}, "12 != 2 * 1 * 3"),
]
"""Configuration for six ranks, and what DeepSpeed says against it."""


def written(folder: Path, config: dict[str, object]) -> str:
    path = folder / "ds_config.json"
    path.write_text(json.dumps(config))
    return str(path)


def assert_reported(oracle: Oracle, answer: dict[str, str], says: str) -> None:
    assert answer["release"] == oracle.release
    assert says in answer["refusal"] and bool(says) == bool(answer["refusal"])


@pytest.mark.parametrize(("config", "says"), CASES)
def test_what_deepspeed_says(oracle: Oracle, tmp_path: Path, config: dict[str, object], says: str) -> None:
    assert_reported(oracle, oracle.ask("job_check", path=written(tmp_path, config), world_size=6), says)


# Each is a process that imports DeepSpeed.
@pytest.mark.parametrize(
    ("config", "says"), [CASES[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[1:])]
)
def test_what_the_script_prints(oracle: Oracle, tmp_path: Path, config: dict[str, object], says: str) -> None:
    program = tmp_path / PROGRAM
    program.write_bytes(supervisor_archive())
    done = subprocess.run(
        [str(FOLDER / "venv/bin/python"), str(program), OPTION, written(tmp_path, config), "6"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(FOLDER / f"deepspeed-{oracle.release}")},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert_reported(oracle, json.loads(done.stdout), says)
