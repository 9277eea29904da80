# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Anything that JSON can hold, and more, as a configuration: it is written or refused in words, and never raises."""

from __future__ import annotations

import json
import random
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import INTEGRATIONS, KNOWN_VERSIONS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.optimizers import (
    OPTIMIZERS,
    SCHEDULERS,
    TORCH_SCHEDULERS,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import BLOCKS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import render

from tests.effort import examples

CASES = examples(10_000)
KEYS = sorted({key for fields in BLOCKS.values() for key in fields})
WORDS = [
    *(
        "",
        "auto",
        "cpu",
        "nvme",
        "fp16",
        "true",
        "no",
        "5e8",
        "1e999",
        "-1",
        "0x10",
        "nan",
        "x" * 500,
        "\ud800",
        "\x00\n",
    ),
    *("\x00\n", "käse", "😀" * 50, "a.b", "[0]", "{}", *OPTIMIZERS, *SCHEDULERS, *TORCH_SCHEDULERS),
]
NUMBERS = [
    *(0, 1, -1, 2, 3, 8, 16, 2**31, 2**63, 2**63 + 1, -(2**70), 10**400, 10**5000, 0.5, 1.5, -0.0, 1e-300, 5e8, 1e300),
    *(float("inf"), float("-inf"), float("nan")),
]


class Junk:
    """Random values; the same ones in every run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(10 if depth < 4 else 6)
        if kind < 2:
            return self.random.choice(NUMBERS)
        if kind < 4:
            return self.random.choice(WORDS)
        if kind < 6:
            return self.random.choice([None, True, False])
        if kind < 8:
            return [self.value(depth + 1) for dummy in range(self.random.randrange(4))]
        return self.mapping(depth + 1)

    def mapping(self, depth: int) -> dict[Any, Any]:
        kinds: list[list[Any]] = [KEYS, KEYS, WORDS, NUMBERS]
        names = [self.random.choice(kinds) for dummy in range(self.random.randrange(5))]
        return {self.random.choice(kind): self.value(depth) for kind in names}

    def block(self, name: str = "", depth: int = 0) -> dict[Any, Any]:
        """Keys at their right places, most values wrong."""
        fields = BLOCKS[name]
        result: dict[Any, Any] = {}
        for key in self.random.sample(sorted(fields), min(len(fields), self.random.randrange(1, 5))):
            field = fields[key]
            inner = self.block(field.block, depth + 1) if field.block and depth < 6 else {}
            right = {"block": inner, "groups": {"g": inner}, "blocks": [inner]}.get(field.kind, 1)
            result[key] = right if self.random.random() < 0.7 else self.value(3)
        return result

    def config(self) -> Any:
        kind = self.random.randrange(4)
        if kind == 0:
            return self.value()
        if kind == 1:
            return self.mapping(0)
        config = self.block()
        return {**config, "train_batch_size": 8} if kind == 2 else config


def deep(levels: int) -> Any:
    value: Any = 1
    for dummy in range(levels):
        value = {"zero_optimization": value} if dummy % 2 else [value]
    return {"optimizer": value}


def judged(request: Request) -> bool:
    plan = build(request)
    for problem in [*plan.errors, *plan.warnings]:
        assert problem.message
        assert len(str(problem)) <= 400, problem
        assert problem.path or "nothing to write" in problem.message, problem
        json.dumps(str(problem))
    if not plan.errors:
        assert json.loads(render(plan.config)) == plan.config
    return not plan.errors


def test_any_input_is_written_or_refused_in_words() -> None:
    junk = Junk(20261121)
    written = 0
    for dummy in range(CASES):
        written += judged(
            Request(
                config=junk.config(),
                deepspeed_version=str(junk.random.choice(KNOWN_VERSIONS)),
                integration=junk.random.choice(INTEGRATIONS),
                world_size=junk.random.choice([None, 1, 2, 8]),
            )
        )
    # so that the fuzz reaches what is written too
    assert written > CASES / 50


def test_monstrous_inputs() -> None:
    configs: list[dict[str, Any]] = [
        {f"k{number}": 1 for number in range(20_000)},
        {"train_batch_size": 8, "optimizer": {"type": "x" * 100_000, "params": {"y" * 100_000: "z" * 100_000}}},
        {"train_batch_size": 8, "z" * 1_000_000: 1},
        {"train_batch_size": [1] * 100_000},
        {"comms_logger": {"prof_ops": [{}] * 100_000}},
        {"tensor_parallel": {"partition_config": {"layer_specs": [1] * 2_000}}},
        deep(60),
        deep(900),
    ]
    for config in configs:
        assert not judged(Request(config=config)) or config["comms_logger"]


def test_junk_as_script_keys() -> None:
    junk = Junk(3)
    for dummy in range(examples(500)):
        keys = junk.value()
        judged(Request(config={"train_batch_size": 8, "mine": 1}, script_keys=keys))
