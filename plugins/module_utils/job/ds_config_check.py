# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs inside the container before the launcher: DeepSpeed itself reads the configuration, for the job's world size.

Part of the supervisor's archive, and a process of its own: ``supervisor.pyz --check-ds-config FILE WORLD_SIZE``. It
prints one line of JSON: ``release`` (of the DeepSpeed that read, empty where there is none) and ``refusal`` (empty:
accepted). It takes the 1 to 3 seconds of importing DeepSpeed, and spares a job that would fail on every rank at once.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

from .batch import batch_ranks

OPTION = "--check-ds-config"
AUTO = "auto"
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
MESH = ("sequence_parallel_size", "data_parallel_size")
LONGEST = 2000
"""Characters of a refusal: pydantic quotes the input, which may be large."""


def without_auto(value: Any) -> Any:
    """``value`` without what an integration fills in, at any depth."""
    if not isinstance(value, dict):
        return value
    return {key: without_auto(inner) for key, inner in value.items() if inner != AUTO}


def filled_in(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as an integration leaves it: "auto" values, which DeepSpeed cannot read, are gone.

    Without a batch size it would not go on.
    """
    config = without_auto(config)
    if "train_batch_size" not in config:
        config.setdefault("train_micro_batch_size_per_gpu", 1)
    return config


def for_ranks(config: dict[str, Any], world_size: int) -> tuple[dict[str, Any], int]:
    """The configuration and the number of ranks for which DeepSpeed would read it, once the script has its model.

    Where only the script knows the ranks, a batch that is given in full cannot be judged.
    """
    ranks, (path, words) = batch_ranks(config, world_size)
    if path:
        raise ValueError(f"{path} {words}")
    # The mesh is DeepSpeed's way to these ranks; without it, newer releases would divide once more.
    config = {key: value for key, value in config.items() if key not in MESH}
    if ranks is None and all(key in config for key in BATCH):
        config.pop(BATCH[0])
    return config, ranks or 1


def verdict(path: str, world_size: int) -> dict[str, str]:
    """What DeepSpeed says of the file."""
    try:
        deepspeed = importlib.import_module("deepspeed")
    except ModuleNotFoundError as error:
        if error.name == "deepspeed":
            return {"release": "", "refusal": ""}
        raise
    read = importlib.import_module("deepspeed.runtime.config").DeepSpeedConfig
    comm = importlib.import_module("deepspeed.comm")
    refusal = ""
    try:
        config: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        given, ranks = config, world_size
        if isinstance(config, dict):
            autos = without_auto(config) != config
            given, ranks = for_ranks(filled_in(config) if autos else config, world_size)
        # DeepSpeed asks torch.distributed, which is not initialized here, and would take 1.
        vars(comm).update(get_rank=lambda *args, **kwargs: 0, get_world_size=lambda *args, **kwargs: ranks)
        read(path if given == config else given)
    except Exception as error:  # DeepSpeed raises ValueError, AssertionError, TypeError and pydantic's own
        refusal = f"{type(error).__name__}: {error}"[:LONGEST]
    return {"release": str(deepspeed.__version__), "refusal": refusal}


def main(arguments: list[str]) -> int:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # DeepSpeed logs to stdout
    result = verdict(arguments[0], int(arguments[1]))
    answer.write(json.dumps(result) + "\n")
    answer.close()
    return 0
