# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""precision auto and preset auto: the answers for jobs that people have, worked out by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.auto import (
    ORDER,
    ORDER_ALONE,
    Choice,
    choose,
    precision_for,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import (
    Gpus,
    Memory,
    plan,
    read_bytes,
    read_gpus,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import Model, read
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import preset

GIB = 1024**3
SETTLED = {"sequence_length": 2048, "activation_checkpointing": True}
LLAMA3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def model(**given_model: Any) -> Model:
    found, problems = read({**SETTLED, **given_model})
    assert found is not None and not problems
    return found


def gpus(count: int, memory: str) -> Gpus:
    found, problems = read_gpus({"count": count, "memory": memory})
    assert found is not None and not problems
    return found


def configuration(name: str) -> dict[str, Any]:
    return {**preset(name, "deepspeed"), "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 1}


def with_nvme(name: str) -> dict[str, Any]:
    config = configuration(name)
    for block in ("offload_optimizer", "offload_param"):
        if config["zero_optimization"].get(block, {}).get("device") == "nvme":
            config["zero_optimization"][block]["nvme_path"] = "/nvme"
    return config


def auto(
    chosen_for: Model, cards: Gpus, world_size: int, host: str | None, config: Any = configuration
) -> tuple[Choice | None, list[Problem]]:
    return choose(config, chosen_for, cards, world_size, read_bytes(host, "host_memory")[0])


def choice(chosen_for: Model, cards: Gpus, world_size: int, host: str | None) -> Choice:
    found, problems = auto(chosen_for, cards, world_size, host)
    assert found is not None and not problems
    return found


def memory_of(found: Choice, name: str) -> Memory:
    memory = next(candidate.memory for candidate in found.candidates if candidate.preset == name)
    assert memory is not None
    return memory


@pytest.mark.parametrize(
    "capability, name, reason",
    [
        ((9, 0), "bf16", "compute capability 9.0: bf16 is there from 8.0 and needs no loss scaling"),
        ((8, 0), "bf16", "compute capability 8.0: bf16 is there from 8.0 and needs no loss scaling"),
        ((7, 5), "fp16", "compute capability 7.5: bf16 comes with 8.0, DeepSpeed takes fp16 from 7.0"),
        ((7, 0), "fp16", "compute capability 7.0: bf16 comes with 8.0, DeepSpeed takes fp16 from 7.0"),
        ((6, 1), "fp32", "compute capability 6.1: DeepSpeed refuses fp16 below 7.0, and bf16 comes with 8.0"),
    ],
)
def test_precision(capability: tuple[int, int], name: str, reason: str) -> None:
    found = precision_for(capability)
    assert found is not None and (found.name, found.reason) == (name, reason)


def test_precision_of_unknown_gpus() -> None:
    assert precision_for(None) is None
    mixed, dummy = read_gpus({"compute_capability": ["8.6", "7.5"]})
    assert mixed is not None
    found = precision_for(mixed.compute_capability)
    assert found is not None and found.name == "fp16"


def test_10b_on_two_hosts_of_four_24_gb_gpus() -> None:
    """The case that this exists for; P = 10^10, N = 8, in 10^9 bytes; a card has 24 less 3.9 of reserve.

    Typical shape: 37 layers of 4736, vocabulary 128256, so the largest layer is the embedding with 0.607 * 10^9.
    Activations: inputs 2048 x 2 x 4736 x 37 = 0.72, logits 2048 x 14 x 128256 = 3.68: 4.4.
    zero2: weights 2P = 20, already too much with 3.9 and 4.4. The same for zero2_offload.
    zero3: weights 2P/8 = 2.5, gradients 2.5, master weights 5, moments 10: 20, with 3.9 and 4.4 too much as it is.
    zero3_offload_optimizer: weights 2.5, activations 4.5, buffers 4 x 0.607 + 2 x 0.393 + 2 x 0.2 + 2 x 0.05 + 0.07 =
    3.8: 10.7 of 20.1, when the loss's gradient is there. NCCL: 768 MiB, and 256 MiB and 4 x 64 MiB between the hosts.
    Its hosts, for four ranks: 18 bytes x P / 8 x 4 = 90 (master 4, moments 8, gradients 4 and 2), pinned blocks rounded
    up by 4 x (2^32 - 2.5e9 + 2^32 - 4e9 + 2^30 - 1e9) = 8.7, reserve 17.2.
    """
    found = choice(model(parameters="10B"), gpus(4, "24GB"), 8, "256GB")
    assert found.preset == "zero3_offload_optimizer"
    assert [candidate.preset for candidate in found.candidates] == list(ORDER[:6])
    assert [candidate.fits for candidate in found.candidates] == [False] * 5 + [True]
    per_gpu = found.memory.as_dict()["per_gpu"]
    assert per_gpu["weights"] == 25 * 10**8
    assert per_gpu["gradients"] == per_gpu["optimizer_states"] == 0
    assert per_gpu["activations"] == 2048 * (2 * 4736 * (37 + 2) + 14 * 128256)
    assert per_gpu["fullest"] == "loss"
    assert per_gpu["buffers"] == 4 * 607_420_416 + 2 * (10**9 - 607_420_416) + 2 * 2 * 10**8 + 10**8 + 64 * 1024**2
    assert per_gpu["reserve"] == 3 * GIB // 2 + 24 * 10**9 // 25 + (768 + 256 + 4 * 64) * 1024**2
    assert (per_gpu["available"], per_gpu["fits"]) == (24 * 10**9, True)
    per_host = found.memory.as_dict()["per_host"]
    assert per_host["gradients"] + per_host["optimizer_states"] == 90 * 10**9
    assert per_host["buffers"] == 4 * (2 * 2**32 + 2**30 - 75 * 10**8)
    assert per_host["total"] == 90 * 10**9 + per_host["buffers"] + 16 * GIB
    alone = memory_of(found, "zero3").as_dict()["per_gpu"]
    assert (alone["weights"], alone["optimizer_states"]) == (25 * 10**8, 15 * 10**9)
    # 16-bit gradients of a rank; in the step also those of a sub-group of 10^9 and its overhang, flattened and in fp32
    assert alone["gradients"] == 25 * 10**8
    assert memory_of(found, "zero3").at("step", "gradients") == 25 * 10**8 + 6 * (10**9 + 607_420_416 // 8)
    assert alone["weights"] + alone["optimizer_states"] + alone["gradients"] + alone["activations"] > 24 * 10**9
    assert found.reasons[3] == (
        "zero3: does not fit; a GPU has 22.4 GiB, it needs 29.9 GiB (9.3 GiB of that for moments)"
    )
    assert found.reasons[5] == (
        "zero3_offload_optimizer: fits; 13.6 GiB of 22.4 GiB per GPU, 107.9 GiB of 238.4 GiB per host"
    )


def test_7b_on_one_80_gb_gpu() -> None:
    """zero0: 24 bytes x 7 * 10^9 = 168. With offload: weights 14, activations and buffers below 8; 16 x 7 in RAM."""
    found = choice(model(parameters="7B"), gpus(1, "80GB"), 1, "256GB")
    assert found.preset == "zero2_offload"
    assert memory_of(found, "zero0").gpu > 168 * 10**9
    assert found.memory.of("gpu", "weights") == 14 * 10**9 and found.memory.gpu < 30 * 10**9
    states = found.memory.of("host", "optimizer_states") + found.memory.of("host", "gradients")
    assert states == 16 * 7 * 10**9
    # a host of 128 GB is too small for that, and the parameters on the CPU would not help
    none, problems = auto(model(parameters="7B"), gpus(1, "80GB"), 1, "128GB")
    assert none is None
    assert "preset: zero2_offload: does not fit; a host has 119.2 GiB, it needs 139.2 GiB" in map(str, problems)


def test_70b_on_two_hosts_of_eight_80_gb_gpus() -> None:
    """zero3: 16 bytes x 70 / 16 = 70 of 80, and when the loss is there activations 6.3, buffers 4.7, reserve 6.4: no.

    Offloaded optimizer: weights 8.75 on each GPU; 18 x 70 / 2 = 630 in each host.
    """
    found = choice(model(parameters="70B"), gpus(8, "80GB"), 16, "1TB")
    assert found.preset == "zero3_offload_optimizer"
    zero3 = memory_of(found, "zero3")
    states = zero3.of("gpu", "weights") + zero3.of("gpu", "optimizer_states")
    assert states == 14 * 70 * 10**9 // 16 and 80 * 10**9 < zero3.gpu < 90 * 10**9
    assert found.memory.of("gpu", "weights") == 8_750_000_000
    assert found.memory.of("host", "optimizer_states") + found.memory.of("host", "gradients") == 630 * 10**9
    # with twice the GPUs nothing need be offloaded
    assert choice(model(parameters="70B"), gpus(8, "80GB"), 32, "1TB").preset == "zero3"


def test_1_3b_on_one_24_gb_gpu() -> None:
    """zero0: 24 x 1.3 = 31 alone is above 24. With offload: 2.6, and 16 x 1.3 = 20.8 in RAM."""
    found = choice(model(parameters="1.3B"), gpus(1, "24GB"), 1, "64GB")
    assert (found.preset, [candidate.preset for candidate in found.candidates]) == (
        "zero2_offload",
        list(ORDER_ALONE[:2]),
    )
    assert found.memory.of("gpu", "weights") == 26 * 10**8 and found.memory.gpu < 10 * 10**9


def test_13b_on_eight_40_gb_gpus() -> None:
    """zero3: 16 x 13 / 8 = 26, and when the loss is there activations 4.5, buffers 3.8, reserve 4.1: 38.4 in 10^9.

    So an A100 holds it, sold as 40 GB, with 40960 MiB, 42.9 * 10^9 bytes; and by its trade name too, a lower bound.
    """
    exact = choice(model(parameters="13B"), gpus(8, "40960 MiB"), 8, "512GB")
    assert exact.preset == "zero3"
    assert 38 * 10**9 < exact.memory.gpu < 39 * 10**9
    assert choice(model(parameters="13B"), gpus(8, "40GB"), 8, "512GB").preset == "zero3"


def test_lora_of_8b_on_one_24_gb_gpu() -> None:
    """Weights 16.06, adapters 0.02 x 18 = 0.4, activations 4.2 (logits 3.7), reserve 2.6: 23.2 of 24."""
    found = choice(model(**LLAMA3_8B, trainable_parameters="20M"), gpus(1, "24GB"), 1, "64GB")
    assert found.preset == "zero0"
    assert found.memory.of("gpu", "weights") == 2 * 8_030_261_248
    assert 23 * 10**9 < found.memory.gpu < 24 * 10**9


def test_small_models_are_not_sharded() -> None:
    assert choice(model(parameters="350M"), gpus(4, "24GB"), 4, None).preset == "zero0"


def test_hosts_of_unknown_memory() -> None:
    found = choice(model(parameters="10B"), gpus(4, "24GB"), 8, None)
    assert found.preset == "zero3_offload_optimizer"
    assert found.reasons[-1].endswith("107.9 GiB per host; host_memory was not given: see that a host has that")


def test_what_is_missing_is_named() -> None:
    found, problems = choose(configuration, None, None, None)
    assert found is None
    assert [str(problem) for problem in problems] == [
        "model: is needed with preset auto: its parameters, such as 10B, or the fields of its config.json",
        "gpus.count: is needed with preset auto: the number of GPUs in each host",
        "gpus.memory: is needed with preset auto: of one GPU, such as 24GB or 24564 MiB",
        "world_size: is needed with preset auto: the number of ranks of the job, one for each GPU",
    ]
    dummy, problems = choose(configuration, model(parameters="1B"), Gpus(count=4), 4)
    assert [problem.path for problem in problems] == ["gpus.memory"]


def test_remedies_when_nothing_fits() -> None:
    """Each remedy is true: with it, the preset that it names fits."""
    big, cards, host = model(parameters="70B"), gpus(4, "24GB"), 256 * 10**9
    found, problems = auto(big, cards, 4, "256GB")
    assert found is None and [problem.path for problem in problems] == ["preset"] * (1 + len(ORDER))
    assert all(len(problem.message) < 400 for problem in problems)
    text = problems[0].message
    more = re.search(r"(\d+) GPUs, (\d+) hosts of 4 \((\w+)\)", text)
    assert more is not None
    ranks = int(more[1])
    assert ranks == 4 * int(more[2])
    fits = [fitting(plan(configuration(more[3]), big, cards, number, host)) for number in (ranks - 4, ranks)]
    assert fits == [False, True]
    assert fitting(plan(configuration("zero3_infinity"), big, cards, 4, host)) is ("a local NVMe disk" in text)
    assert problems[1].message.startswith("zero0: does not fit; a GPU has 22.4 GiB, it needs ")
    assert problems[-1].message == (
        "zero3_infinity: not considered; it needs zero_optimization.offload_param.nvme_path and"
        " offload_optimizer.nvme_path in config"
    )


def test_a_shorter_sequence_or_checkpointing() -> None:
    long = model(parameters="7B", sequence_length=131072)
    dummy, problems = auto(long, gpus(8, "40GB"), 8, "1TB")
    match = re.search(r"sequence_length (\d+) instead of 131072 \((\w+)\)", problems[0].message)
    assert match is not None
    lengths = [int(match[1]) * factor for factor in (1, 2)]
    assert [
        auto(model(parameters="7B", sequence_length=length), gpus(8, "40GB"), 8, "1TB")[0] is not None
        for length in lengths
    ] == [True, False]
    kept = model(parameters="7B", sequence_length=8192, activation_checkpointing=False)
    dummy, problems = auto(kept, gpus(8, "40GB"), 8, "1TB")
    assert "What would: activation checkpointing (zero3)" in problems[0].message


def test_lora_as_a_remedy() -> None:
    dummy, problems = auto(model(parameters="8B"), gpus(1, "40GB"), 1, "64GB")
    assert "LoRA with 1 % of the parameters (zero0)" in problems[0].message
    assert "of memory in each host (zero2_offload)" in problems[0].message


def test_nvme_is_taken_where_its_folder_is_given() -> None:
    """13B on one GPU, host of 128 GB: 16 bytes x 13 * 10^9 are too much for it, not for a disk."""
    needs = (model(parameters="13B"), gpus(1, "40GB"), 1, "128GB")
    dummy, problems = auto(*needs)
    assert "a local NVMe disk with " in problems[0].message
    found, problems = auto(*needs, config=with_nvme)
    assert found is not None and (found.preset, problems) == ("zero3_infinity", [])
    assert found.memory.nvme == (16 + 2) * 13 * 10**9


def test_overrides_count() -> None:
    """Somebody who fixes the stage gets no other, whatever the preset's name."""

    def fixed(name: str) -> dict[str, Any]:
        config = configuration(name)
        config["zero_optimization"] = {**config["zero_optimization"], "stage": 1}
        return config

    found, dummy = choose(fixed, model(parameters="350M"), gpus(4, "24GB"), 4)
    assert found is not None and found.memory.of("gpu", "optimizer_states") == 12 * 350 * 10**6 // 4


def fitting(memory: Memory) -> bool:
    return memory.fits_gpu is not False and memory.fits_host is not False
