# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Answers questions with one release of DeepSpeed: a JSON mapping a line on stdin, its answer a line on stdout.

A question names its ``op`` and the arguments of the function of that name below. The answer holds ``result``, or
``error`` and ``type`` where DeepSpeed raised. Runs in the oracle's own environment; started by ``deepspeed_oracle.py``.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any
from unittest import mock

# DeepSpeed logs and prints to stdout: that goes to stderr, and the protocol keeps the real one.
PROTOCOL = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
os.environ["DS_ACCELERATOR"] = "cpu"
warnings.filterwarnings("ignore")

import deepspeed
import deepspeed.comm as dist
from deepspeed.launcher import runner
from deepspeed.runtime.config import DeepSpeedConfig
from deepspeed.runtime.config_utils import dict_raise_error_on_duplicate_keys

logging.disable(logging.CRITICAL)

_NOT_MEANING = {"_param_dict", "mesh_device", "global_rank", "world_size"}
"""Attributes of DeepSpeedConfig that repeat the input or belong to the process."""


def version() -> str:
    """The release that answers."""
    return str(deepspeed.__version__)


def hostfile(text: str) -> list[list[Any]]:
    """Hosts and slots of a hostfile's text, read from a file as the launcher does."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        return [[name, slots] for name, slots in runner.fetch_hostfile(file.name).items()]


def resources(hosts: list[list[Any]], include: str, exclude: str) -> list[list[Any]]:
    """Hosts and slot numbers that ``--include`` or ``--exclude`` leave of a hostfile's hosts."""
    pool = runner.collections.OrderedDict((name, slots) for name, slots in hosts)
    active = runner.parse_inclusion_exclusion(pool, include, exclude)
    return [[name, list(slots)] for name, slots in active.items()]


def config(config: Any, world_size: int = 1) -> dict[str, Any]:
    """What DeepSpeed understands of a configuration (a mapping, or the text of a file) on so many ranks."""
    # DeepSpeed takes 1 where torch.distributed is not initialized; nothing else is asked of it here.
    with mock.patch.multiple(dist, get_rank=lambda *_, **__: 0, get_world_size=lambda *_, **__: world_size):
        if isinstance(config, str):
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
                file.write(config)
                file.flush()
                return _meaning(DeepSpeedConfig(file.name))
        return _meaning(DeepSpeedConfig(config))


def zero2_memory(**arguments: Any) -> list[float]:
    """DeepSpeed's estimator for model states of stage 1 and 2: bytes per host and per GPU."""
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs  # noqa: PLC0415 - slow

    return list(estimate_zero2_model_states_mem_needs(**arguments))


def zero3_memory(**arguments: Any) -> list[float]:
    """DeepSpeed's estimator for model states of stage 3: bytes per host, per GPU and of the largest layer."""
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs  # noqa: PLC0415 - slow

    return list(estimate_zero3_model_states_mem_needs(**arguments))


def hjson(text: str) -> Any:
    """What DeepSpeed reads from a configuration file with this text."""
    from deepspeed.runtime import config as reader  # noqa: PLC0415 - this operation has the name of the package

    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        with open(file.name, encoding="utf-8") as opened:  # noqa: PTH123 - as DeepSpeed does
            return reader.hjson.load(opened, object_pairs_hook=dict_raise_error_on_duplicate_keys)


def parameters() -> dict[str, Any]:
    """Names of optimizers and schedulers, and the parameters of their classes."""
    import classes  # noqa: PLC0415 - slow

    return classes.parameters()


def scheduler(name: str, params: dict[str, Any]) -> list[float]:
    """The learning rates of the first steps of a scheduler, made as the engine makes it."""
    import classes  # noqa: PLC0415 - slow

    return classes.rates(name, params)


def engine(
    config: dict[str, Any],
    *,
    world_size: int = 1,
    client_optimizer: str = "",
    client_scheduler: dict[str, Any] | None = None,
    compiled: bool = False,
    stepped: bool = False,
) -> dict[str, Any]:
    """Start the engine with a tiny model (a pipeline where the configuration has that block); see ``engine.py``.

    ``client_optimizer``: a class of torch.optim that the script would pass; ``client_scheduler``: a block scheduler
    with a class of torch's, for which it would pass a callable; ``compiled``: call ``engine.compile`` too; ``stepped``:
    take a step on one rank.
    """
    import engine as starter  # noqa: PLC0415 - slow

    starter.prepare()
    return starter.ask(
        config=config,
        world_size=world_size,
        client_optimizer=client_optimizer,
        client_scheduler=client_scheduler,
        compiled=compiled,
        stepped=stepped,
    )


def job_check(path: str, world_size: int) -> dict[str, str]:
    """What the check that runs in the container before the launcher says of a file."""
    sys.path.append(str(Path(__file__).parents[2] / "plugins"))
    # It leaves its own answers in the module that tells rank and world size.
    with mock.patch.multiple(dist, get_rank=None, get_world_size=None):
        found: dict[str, str] = importlib.import_module("module_utils.job.ds_config_check").verdict(path, world_size)
    return found


def _meaning(parsed: DeepSpeedConfig) -> dict[str, Any]:
    return {name: _plain(value) for name, value in vars(parsed).items() if name not in _NOT_MEANING}


def _plain(value: Any) -> Any:
    """A value that JSON can hold and that tells values with different meaning apart."""
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if type(value).__module__.startswith("deepspeed"):
        return _plain(value.model_dump() if hasattr(value, "model_dump") else vars(value))
    return str(value)


OPERATIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        version,
        hostfile,
        resources,
        config,
        hjson,
        parameters,
        scheduler,
        zero2_memory,
        zero3_memory,
        engine,
        job_check,
    )
}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to one question; an exception is one."""
    try:
        return {"result": OPERATIONS[question.pop("op")](**question)}
    except Exception as error:  # DeepSpeed raises whatever it likes, and that is what is asked for
        return {"error": str(error), "type": type(error).__name__}


def main() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        PROTOCOL.write(json.dumps(answer(json.loads(line))) + "\n")
        PROTOCOL.flush()


if __name__ == "__main__":
    main()
