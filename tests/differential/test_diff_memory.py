# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The memory plan against DeepSpeed's own estimators, and every preset against DeepSpeed's configuration class.

The estimators (``estimate_zero2/3_model_states_mem_needs``) count weights, gradients and Adam's states in mixed
precision, and no activations, buckets or reserve. Each test names the parts of a plan that are the same thing. Equal
means to within the rounding of the parts: a plan rounds each rank's share up to whole parameters.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config import rules
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import Gpus, Memory, plan
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory_terms import LARGEST
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import Model, read
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import PRESETS, available, preset
from deepspeed_oracle import Oracle

PARAMETERS = (124_439_808, 1_315_758_080, 7_000_000_001, 10_000_000_000, 70_553_706_496)
HOSTS, GPUS = (1, 2, 3, 8), (1, 2, 4, 7, 8)
GRID = tuple(itertools.product(PARAMETERS, HOSTS, GPUS))
STATES = {"weights", "gradients of a step", "gradients of a step, one sub_group", "master weights", "moments"}
ROUNDING = 18
"""Bytes: one parameter's worth of all states, for a rank."""


def model_of(parameters: int) -> Model:
    model, problems = read({"parameters": parameters, "sequence_length": 2048, "activation_checkpointing": True})
    assert model is not None and not problems
    return model


def planned(name: str, parameters: int, hosts: int, gpus: int, **zero: Any) -> Memory:
    config = {**preset(name, "deepspeed"), "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 1}
    config["zero_optimization"] = {**config["zero_optimization"], **zero}
    return plan(config, model_of(parameters), Gpus(count=gpus), hosts * gpus)


def of(memory: Memory, place: str, names: set[str]) -> int:
    return sum(part.bytes for part in memory.parts if part.place == place and part.name in names)


def same(ours: int, theirs: float, ranks: int = 1) -> bool:
    return 0 <= ours - theirs <= ROUNDING * ranks


def test_stage_2_on_the_gpu(oracle: Oracle) -> None:
    for parameters, hosts, gpus in GRID:
        dummy, theirs = oracle.ask(
            "zero2_memory", total_params=parameters, num_gpus_per_node=gpus, num_nodes=hosts, cpu_offload=False
        )
        assert same(of(planned("zero2", parameters, hosts, gpus), "gpu", STATES | {"gradients"}), theirs)


def test_stage_2_with_offload_on_the_gpu(oracle: Oracle) -> None:
    for parameters, hosts, gpus in GRID:
        dummy, theirs = oracle.ask(
            "zero2_memory", total_params=parameters, num_gpus_per_node=gpus, num_nodes=hosts, cpu_offload=True
        )
        assert of(planned("zero2_offload", parameters, hosts, gpus), "gpu", STATES | {"gradients"}) == theirs


def test_stage_2_with_offload_in_one_host(oracle: Oracle) -> None:
    """Theirs is the larger of the states and of loading in fp32, and does not divide the states among hosts.

    ``additional_buffer_factor`` stands for what a plan counts by name: copies, and pinned blocks rounded up.
    """
    compared = 0
    for parameters, gpus in itertools.product(PARAMETERS, GPUS):
        theirs, dummy = oracle.ask(
            "zero2_memory", total_params=parameters, num_gpus_per_node=gpus, num_nodes=1, additional_buffer_factor=1
        )
        memory = planned("zero2_offload", parameters, 1, gpus)
        states, loading = of(memory, "host", STATES), 2 * memory.of("host", "loading")
        assert same(max(states, loading), theirs, gpus)
        compared += states >= loading
    assert compared >= 15


def test_loading_with_stage_2_is_half_of_theirs(oracle: Oracle) -> None:
    """They load in fp32, a plan in the precision of training: transformers 5 takes the checkpoint's."""
    for parameters, hosts, gpus in GRID:
        theirs, dummy = oracle.ask(
            "zero2_memory",
            total_params=parameters,
            num_gpus_per_node=gpus,
            num_nodes=hosts,
            cpu_offload=False,
            additional_buffer_factor=1,
        )
        assert 2 * planned("zero2", parameters, hosts, gpus).of("host", "loading") == theirs


@pytest.mark.parametrize("sub_group", [10**9, 10**12])
def test_stage_3_on_the_gpu(oracle: Oracle, sub_group: int) -> None:
    """They leave out the gradients that accumulate in 16 bit, and count the step's fp32 gradients for all parameters.

    DeepSpeed makes the latter for one ``sub_group`` at a time: a plan with smaller groups is less by the rest.
    """
    split = 0
    for parameters, hosts, gpus in GRID:
        model = model_of(parameters)
        dummy, theirs, layer = oracle.ask(
            "zero3_memory",
            total_params=parameters,
            largest_layer_params=model.largest,
            num_gpus_per_node=gpus,
            num_nodes=hosts,
            cpu_offload=False,
            cpu_offload_params=False,
        )
        memory = planned("zero3", parameters, hosts, gpus, sub_group_size=sub_group)
        assert of(memory, "gpu", {LARGEST}) == layer
        ranks = hosts * gpus
        own, largest = -(-parameters // ranks), -(-model.largest // ranks)
        later = 4 * max(0, own - (sub_group + largest))
        split += later > 0
        assert same(of(memory, "gpu", STATES | {LARGEST}) + later, theirs)
        assert of(memory, "gpu", {"gradients"}) == 2 * own
    assert (split > 0) is (sub_group == 10**9)


@pytest.mark.parametrize("name", ["zero3_offload_optimizer", "zero3_offload"])
def test_stage_3_with_offload(oracle: Oracle, name: str) -> None:
    """In the hosts they leave out the gradients in 16 bit here too."""
    for parameters, hosts, gpus in GRID:
        host, gpu, dummy = oracle.ask(
            "zero3_memory",
            total_params=parameters,
            largest_layer_params=model_of(parameters).largest,
            num_gpus_per_node=gpus,
            num_nodes=hosts,
            cpu_offload=True,
            cpu_offload_params=name == "zero3_offload",
            zero_init=True,
            additional_buffer_factor=1,
        )
        memory = planned(name, parameters, hosts, gpus)
        assert same(of(memory, "gpu", STATES | {LARGEST}), gpu)
        assert same(of(memory, "host", STATES), host, gpus)
        assert of(memory, "host", {"gradients"}) == 2 * -(-parameters // (hosts * gpus)) * gpus


def test_every_preset_is_understood(oracle: Oracle) -> None:
    version = parse_version(oracle.release)
    assert version is not None
    for name in PRESETS:
        if name not in available(version):
            # what the release lacks it refuses: the preset is rightly withheld
            refused = oracle.refusal(
                "config", config={**preset(name, "deepspeed"), "train_batch_size": 8}, world_size=8
            )
            assert "Extra inputs are not permitted" in refused
            continue
        config = {**preset(name, "deepspeed", version), "train_batch_size": 8, "bf16": {"enabled": True}}
        meaning = oracle.ask("config", config=config, world_size=8)
        wanted = config["zero_optimization"]
        found = meaning["zero_config"]
        for key, value in wanted.items():
            understood = found[key.replace("stage3_", "") if key not in found else key]
            if not isinstance(value, dict):
                assert str(understood).rsplit(".", maxsplit=1)[-1] in (str(value), _stage(value)), (name, key)
        conflicts = rules.conflicts(config, version)
        nvme = {f"zero_optimization.offload_{what}.nvme_path" for what in ("optimizer", "param")}
        users = {"zero3_infinity": nvme, "zenflow": {"zero_optimization.zenflow"}}
        assert {problem.path for problem in conflicts} == users.get(name, set())


def _stage(value: Any) -> str:
    return (
        {0: "disabled", 1: "optimizer_states", 2: "gradients", 3: "weights"}.get(value, "") if value in range(4) else ""
    )


def test_parts_are_dataclasses_of_plain_values() -> None:
    for part in planned("zero3_offload", 10**10, 2, 4).parts:
        fields = dataclasses.asdict(part)
        assert all(isinstance(value, str) for value in fields.pop("when"))
        assert all(isinstance(value, (str, int)) for value in fields.values())
