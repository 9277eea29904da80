# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starts DeepSpeed's engine with a configuration and a tiny model, to learn what ``deepspeed.initialize`` refuses.

Every question is answered in a fork of the process that has imported everything: process groups, the names that
DeepSpeed remembers and its patches of torch never reach the next question, and a crash is seen as one. What this
machine lacks is stood in for, and nothing else: compiled operators, arithmetic in 16 bit, CUDA, and the other ranks.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import sys
from typing import Any

import deepspeed
import deepspeed.ops
import torch
from deepspeed.accelerator import get_accelerator
from deepspeed.ops.op_builder import builder as op_builder
from deepspeed.pipe import PipelineModule
from torch.testing._internal.distributed.fake_pg import FakeStore

WIDTH = 16
LONGEST = 60
"""Seconds after which a start that hangs is killed."""

# Imported by the engine only when it needs them, which every fork would do again.
_LATE = (
    "deepspeed.compile.init_z3",
    "deepspeed.ops.adagrad",
    "deepspeed.ops.lamb",
    "deepspeed.ops.lion",
    "deepspeed.runtime.superoffload.superoffload_stage3",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "deepspeed.runtime.zero.stage3",
)


class NeedsOperatorError(Exception):
    """The engine came as far as using a compiled operator that cannot be stood in for: nothing was refused."""


class _Operator:
    """Stand-in: a compiled operator whose functions do nothing, which is enough to construct an optimizer."""

    def __init__(self, name: str = "", **dummy: Any) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        beyond = self._name == "dc" and not function.startswith(("cleanup", "init", "register"))
        if beyond or self._name in {"async_io", "gds", "pin_memory"}:
            raise NeedsOperatorError(f"{self._name}.{function}")
        return lambda *args, **kwargs: None


@functools.cache
def prepare() -> None:
    """Import what a start may need, and put the stand-ins into their places."""
    modules: dict[str, Any] = {}
    for name in _LATE:
        with contextlib.suppress(ModuleNotFoundError):  # an older release has not all of them
            modules[name] = importlib.import_module(name)
    # Stand-in: nothing is compiled. A single rank needs no shared-memory collective either (ShareMemCommBuilder).
    op_builder.OpBuilder.load = lambda builder, *args, **kwargs: _Operator(builder.NAME)
    not_for_cpu = importlib.import_module("deepspeed.ops.op_builder.cpu.no_impl").NotImplementedBuilder
    not_for_cpu.load = op_builder.OpBuilder.load
    # Stand-in: a GPU computes in both; this CPU may not.
    accelerator = type(get_accelerator())
    accelerator.is_fp16_supported = accelerator.is_bf16_supported = lambda dummy: True
    superoffload = modules.get("deepspeed.runtime.superoffload.superoffload_stage3")
    if superoffload is not None:
        # Stand-in: CUDA, and the worker process that steps.
        superoffload._validate_superoffload_accelerator = lambda: None
        superoffload.SuperOffloadCPUOptimizer = _Operator
    # What DeepSpeed's launcher tells a rank.
    os.environ.update(LOCAL_RANK="0", RANK="0", LOCAL_SIZE="1", CROSS_RANK="0", CROSS_SIZE="1")
    torch.set_num_threads(1)
    # Both take a second, and every fork would do them again.
    cpuinfo: Any = importlib.import_module("cpuinfo.cpuinfo")
    processor = cpuinfo.get_cpu_info_json()
    cpuinfo.get_cpu_info_json = lambda: processor
    getattr(deepspeed.ops, "__compatible_ops__", None)
    # DeepSpeed collects garbage at each start: not what the parent left, which takes 0.2 s.
    gc.freeze()


def start(
    config: dict[str, Any],
    *,
    world_size: int,
    client_optimizer: str,
    client_scheduler: dict[str, Any] | None,
    compiled: bool,
    stepped: bool,
) -> dict[str, Any]:
    """Start the engine in this process, which is of no use for another start afterwards."""
    os.environ["WORLD_SIZE"] = str(world_size)
    # Stand-in: the other ranks. Its collectives return at once; starting needs nothing of what they would return.
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
    deepspeed.init_distributed("fake", auto_mpi_discovery=False)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for dummy in range(2)]
    model = (
        PipelineModule(layers=layers, num_stages=1, loss_fn=torch.nn.functional.mse_loss)
        if "pipeline" in config
        else torch.nn.Sequential(*layers)
    )
    optimizer = getattr(torch.optim, client_optimizer)(model.parameters(), lr=1e-3) if client_optimizer else None
    if "activation_checkpointing" in config:
        # What a script does so that the block has an effect; Megatron gives the number of its layers too.
        deepspeed.checkpointing.configure(None, deepspeed_config=config, num_checkpoints=len(layers))
    scheduler = None
    if client_scheduler:
        kind = getattr(torch.optim.lr_scheduler, client_scheduler["type"])
        scheduler = functools.partial(kind, **client_scheduler["params"])
    engine = deepspeed.initialize(model=model, optimizer=optimizer, lr_scheduler=scheduler, config=config)[0]
    if compiled:
        try:
            engine.compile()
        except AttributeError as error:
            if "_OpNamespace" not in str(error):
                raise
            raise NeedsOperatorError(str(error)) from error
    if stepped:
        given = torch.ones(1, WIDTH, dtype=next(engine.module.parameters()).dtype)
        engine.backward(engine(given).float().sum())
        engine.step()
    return {"engine": type(engine).__name__, "optimizer": type(engine.optimizer).__name__}


def ask(**arguments: Any) -> dict[str, Any]:
    """What ``start`` returns or raises (an exception of the same name and text), run in a fork."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)
        try:
            answer: dict[str, Any] = {"result": start(**arguments)}
        except BaseException as error:  # DeepSpeed raises Warning and SystemExit too
            answer = {"error": str(error), "type": type(error).__name__}
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not text:
        raise RuntimeError(f"the engine ended without an answer, status {status}")
    answer = json.loads(text)
    if "error" in answer:
        raise type(answer["type"], (Exception,), {})(answer["error"])
    return dict(answer["result"])
