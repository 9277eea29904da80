# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys and values against DeepSpeed's blocks: what is converted, what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import NEWEST, parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import (
    _GUESSES,
    Checker,
    canonical_names,
    plain,
)

SCRIPT = "a key that only the script reads belongs in script_keys"


def check(
    config: dict[str, Any],
    version: str = str(NEWEST),
    integration: str = "deepspeed",
    script_keys: tuple[Any, ...] = (),
) -> tuple[Any, list[str]]:
    release = parse_version(version)
    assert release is not None
    checker = Checker(release, integration, script_keys)
    result = checker.mapping(config)
    return result, [str(error) for error in checker.errors]


@pytest.mark.parametrize(
    ("config", "written"),
    [
        ({"train_batch_size": "8"}, {"train_batch_size": 8}),
        ({"zero_optimization": {"stage": "2"}}, {"zero_optimization": {"stage": 2}}),
        (
            {"zero_optimization": {"reduce_bucket_size": "5e8", "overlap_comm": "True"}},
            {"zero_optimization": {"reduce_bucket_size": 500000000, "overlap_comm": True}},
        ),
        ({"fp16": {"enabled": 1, "loss_scale": "0.5"}}, {"fp16": {"enabled": True, "loss_scale": 0.5}}),
        ({"bf16": {"enabled": "off"}}, {"bf16": {"enabled": False}}),
        ({"communication_data_type": "FP16"}, {"communication_data_type": "fp16"}),
        ({"checkpoint": {"tag_validation": "fail"}}, {"checkpoint": {"tag_validation": "FAIL"}}),
        (
            {"optimizer": {"type": "Adam", "params": {"lr": "1e-5", "betas": ["0.9", 0.999]}}},
            {"optimizer": {"type": "Adam", "params": {"lr": 1e-5, "betas": [0.9, 0.999]}}},
        ),
        ({"csv_monitor": {"job_name": "x"}, "datastates_ckpt": {"any": "thing"}}, None),
        ({"pipeline": {"stages": "auto"}, "data_types": {"keep_in_fp32_modules": "auto"}}, None),
        ({"data_types": {"keep_in_fp32_modules": ["norm"]}, "compile": {"passes": ["z3"]}}, None),
        ({"zero_optimization": {"zenflow": {"select_interval": "auto", "update_interval": 4}}}, None),
        ({"tensor_parallel": {"tp": {"tp_size": 2}}}, None),
    ],
)
def test_values_are_written_plainly(config: dict[str, Any], written: dict[str, Any] | None) -> None:
    result, errors = check(config)
    assert errors == []
    assert repr(result) == repr(config if written is None else written)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"train_batch_sise": 8},
            "train_batch_sise: is not a key of DeepSpeed 0.19.8; did you mean 'train_batch_size'?"
            " A key that only the script reads belongs in script_keys",
        ),
        ({"zzz": 8}, f"zzz: is not a key of DeepSpeed 0.19.8; {SCRIPT}"),
        ({"z" * 99: 8}, f"{'z' * 77}...: is not a key of DeepSpeed 0.19.8; {SCRIPT}"),
        ({"stage": 2}, f"stage: is not a key of DeepSpeed 0.19.8 here; it belongs into zero_optimization; {SCRIPT}"),
        (
            {"zero_optimization": {"train_batch_size": 8}},
            "zero_optimization.train_batch_size: is not a key of DeepSpeed 0.19.8 here; it belongs to the top level",
        ),
        (
            {"zero_optimization": {"offload_param": {"devise": "cpu"}}},
            "zero_optimization.offload_param.devise: is not a key of DeepSpeed 0.19.8; did you mean 'device'?",
        ),
        (
            {"activation_checkpointing": {"partition_activation": True}},
            "activation_checkpointing.partition_activation: is not a key of DeepSpeed 0.19.8;"
            " did you mean 'partition_activations'? A key that only the script reads belongs in script_keys",
        ),
        (
            {"zero_optimization": {"stage": 4}},
            "zero_optimization.stage: must be a whole number of at least 0 and at most 3, not 4",
        ),
        (
            {"zero_optimization": {"stage": 1.5}},
            "zero_optimization.stage: must be a whole number of at least 0 and at most 3, not 1.5",
        ),
        (
            {"zero_optimization": {"stage": True}},
            "zero_optimization.stage: must be a whole number of at least 0 and at most 3, not true",
        ),
        (
            {"zero_optimization": True},
            "zero_optimization: must be a mapping, not true; write {stage: 1} for true",
        ),
        ({"zero_optimization": [1]}, "zero_optimization: must be a mapping, not [1]"),
        (
            {"zero_optimization": {"reduce_bucket_size": 0}},
            "zero_optimization.reduce_bucket_size: must be a whole number above 0, not 0",
        ),
        (
            {"zero_optimization": {"offload_optimizer": {"ratio": 1.1}}},
            "zero_optimization.offload_optimizer.ratio: must be a number of at least 0 and at most 1, not 1.1",
        ),
        (
            {"zero_optimization": {"offload_optimizer": {"device": "disk"}}},
            "zero_optimization.offload_optimizer.device: must be one of none, cpu, nvme, not 'disk'",
        ),
        ({"fp16": {"enabled": "maybe"}}, "fp16.enabled: must be true or false, not 'maybe'"),
        ({"fp16": {"enabled": 2}}, "fp16.enabled: must be true or false, not 2"),
        ({"fp16": {"loss_scale": -1}}, "fp16.loss_scale: must be a number of at least 0, not -1"),
        ({"fp16": {"loss_scale": True}}, "fp16.loss_scale: must be a number of at least 0, not true"),
        ({"bf16": "on"}, "bf16: must be a mapping, not 'on'"),
        ({"optimizer": {"type": 3}}, "optimizer.type: must be text, not 3"),
        ({"optimizer": {"type": "Adam", "params": 3}}, "optimizer.params: must be a mapping, not 3"),
        ({"elastic": {}}, f"elastic: is not a key of DeepSpeed 0.19.8; {SCRIPT}"),
        ({"compile": {"passes": ["z9"]}}, "compile.passes: must be a list of z1, z3, autosp, autotp, not ['z9']"),
        ({"comms_logger": {"prof_ops": "all"}}, "comms_logger.prof_ops: must be a list, not 'all'"),
    ],
)
def test_what_deepspeed_would_refuse_or_ignore(config: dict[str, Any], error: str) -> None:
    result, errors = check(config)
    assert errors == [error]
    assert result == config


@pytest.mark.parametrize(
    ("config", "version", "error"),
    [
        ({"nebula": {"enabled": True}}, "0.19.6", None),
        (
            {"nebula": {"enabled": True}},
            "0.19.7",
            "nebula: was removed in DeepSpeed 0.19.7:"
            " use the checkpoint block (checkpoint.writer) or plain checkpoints",
        ),
        ({"amp": {"enabled": True}}, "0.19.7", None),
        (
            {"amp": {"enabled": True}},
            "0.19.8",
            "amp: was removed in DeepSpeed 0.19.8: use fp16, bf16 or torch_autocast",
        ),
        ({"zero_optimization": {"mics_shard_size": 4}}, "0.18.9", None),
        (
            {"zero_optimization": {"mics_shard_size": 4}},
            "0.19.8",
            "zero_optimization.mics_shard_size: was removed in DeepSpeed 0.19.7:"
            " remove the key; MiCS sharding left DeepSpeed",
        ),
        ({"zero_optimization": {"zeropp_loco_param": {"err_beta": 0.8, "reset_T": 1024}}}, "0.19.7", None),
        (
            {"zero_optimization": {"zeropp_loco_param": {"beta": 1}}},
            "0.15.4",
            "zero_optimization.zeropp_loco_param: came with DeepSpeed 0.16.9; 0.15.4 does not support it",
        ),
        ({"log_level": "info"}, "0.19.3", None),
        ({"log_level": "info"}, "0.19.2", "log_level: came with DeepSpeed 0.19.3; 0.19.2 does not support it"),
        ({"aio": {"thread_count": 1}}, "0.15.4", None),
        (
            {"aio": {"thread_count": 1}},
            "0.16.9",
            "aio.thread_count: was removed in DeepSpeed 0.16.9: use intra_op_parallelism",
        ),
    ],
)
def test_keys_come_and_go_with_releases(config: dict[str, Any], version: str, error: str | None) -> None:
    assert check(config, version)[1] == ([error] if error else [])


def test_a_typo_is_not_answered_with_a_key_that_the_release_lacks() -> None:
    assert check({"log_lewel": "info"}, "0.19.2")[1] == [f"log_lewel: is not a key of DeepSpeed 0.19.2; {SCRIPT}"]
    assert check({"log_lewel": "info"}, "0.19.3")[1] == [
        "log_lewel: is not a key of DeepSpeed 0.19.3; did you mean 'log_level'?"
        " A key that only the script reads belongs in script_keys"
    ]


NO_INTEGRATION = (
    ': "auto" works only with Hugging Face: give a value, leave the key out for DeepSpeed\'s default,'
    " or set integration to huggingface or accelerate"
)


def holding(path: str, value: Any) -> dict[str, Any]:
    """A configuration with the value at the path, and what its block needs besides."""
    result: dict[str, Any] = {}
    node = result
    *blocks, key = path.split(".")
    for block in blocks:
        node = node.setdefault(block, {})
    node[key] = value
    if "optimizer" in result:
        result["optimizer"]["type"] = "AdamW"
    if "scheduler" in result:
        result["scheduler"]["type"] = "WarmupLR" if "warmup" in key else "WarmupDecayLR"
    return result


@pytest.mark.parametrize(
    ("path", "filled"),
    [
        ("train_batch_size", {"huggingface", "accelerate"}),
        ("gradient_clipping", {"huggingface", "accelerate"}),
        ("fp16.enabled", {"huggingface", "accelerate"}),
        ("zero_optimization.reduce_bucket_size", {"huggingface", "accelerate"}),
        ("zero_optimization.stage3_gather_16bit_weights_on_model_save", {"accelerate"}),
        ("optimizer.params.lr", {"huggingface", "accelerate"}),
        ("optimizer.params.betas", {"huggingface"}),
        ("scheduler.params.total_num_steps", {"huggingface", "accelerate"}),
        ("zero_optimization.stage", set()),
        ("zero_optimization", set()),
    ],
)
@pytest.mark.parametrize("integration", ["deepspeed", "huggingface", "accelerate"])
def test_auto_only_where_it_is_filled_in(path: str, filled: set[str], integration: str) -> None:
    config = holding(path, "auto")
    result, errors = check(config, integration=integration)
    assert result == config
    if integration in filled:
        assert errors == []
    elif integration == "deepspeed":
        assert errors == [path + NO_INTEGRATION]
    else:
        assert errors == [f'{path}: "auto" is not filled in here by integration {integration}: give a value']


@pytest.mark.parametrize(
    ("value", "result", "problems"),
    [
        ({"a": [5e8, 0.5, -0.0, True, None, "5e8"]}, {"a": [500000000, 0.5, 0, True, None, "5e8"]}, []),
        (
            {"a": {"b": [float("inf")]}},
            {"a": {"b": [None]}},
            ["a.b[0]: must be a finite number; JSON has neither infinity nor NaN"],
        ),
        ({"a": float("nan")}, {"a": None}, ["a: must be a finite number; JSON has neither infinity nor NaN"]),
        ({"a": 2**63}, {"a": 2**63}, []),
        ({"a": 2**63 + 1}, {"a": None}, ["a: is larger than any number DeepSpeed uses (2**63)"]),
    ],
)
def test_plain_values(value: Any, result: Any, problems: list[str]) -> None:
    found, errors = plain(value)
    assert repr(found) == repr(result)
    assert [str(error) for error in errors] == problems


def test_nesting_has_an_end() -> None:
    value: dict[str, Any] = {}
    for number in range(500):
        value = {f"a{number}": value}
    errors = plain(value)[1]
    assert len(errors) == 1
    assert errors[0].message == "is nested deeper than 40 levels"


def test_one_spelling_is_written() -> None:
    given = {"bfloat16": {"enabled": True}, "zero_optimization": {"prefetch_bucket_size": 5, "stage": 3}}
    result, errors, warnings = canonical_names(given)
    assert result == {"bf16": {"enabled": True}, "zero_optimization": {"stage3_prefetch_bucket_size": 5, "stage": 3}}
    assert errors == []
    assert [str(warning) for warning in warnings] == ["bfloat16: is deprecated; it is written as bf16"]
    assert given["bfloat16"] == {"enabled": True}


def test_two_spellings_of_one_key_are_refused() -> None:
    zero = {"prefetch_bucket_size": 5, "stage3_prefetch_bucket_size": 6}
    errors, warnings = canonical_names({"bf16": {}, "bfloat16": {}, "zero_optimization": zero})[1:]
    assert [str(error) for error in errors] == [
        "bfloat16: is the old name of bf16, which is also given; keep bf16",
        "zero_optimization.prefetch_bucket_size: is stage3_prefetch_bucket_size, which is also given; keep "
        "stage3_prefetch_bucket_size",
    ]
    assert warnings == []


def test_both_names_in_tensor_parallel() -> None:
    given = {"tensor_parallel": {"tp": {}, "tensor_parallel": {"tp_size": 2}, "replace_with_kernel_inject": True}}
    result, errors, dummy = canonical_names(given)
    assert [str(error) for error in errors] == ["tensor_parallel.tensor_parallel: is tp, which is also given; keep tp"]
    assert result["tensor_parallel"]["kernel_inject"] is True


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"scheduler": {"type": "WarmupLR"}},
            "scheduler.params: is missing; DeepSpeed does not work without it",
        ),
        ({"optimizer": {}}, "optimizer.type: is missing; DeepSpeed does not work without it"),
        (
            {"data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": "yes"}}}},
            "data_efficiency.data_sampling.dynamic_batching.max_tokens: is missing; it is needed with enabled: true",
        ),
    ],
)
def test_what_is_missing(config: dict[str, Any], error: str) -> None:
    assert check(config)[1] == [error]


CURRICULUM = {
    "index_to_sample_path": "/data/samples",
    "index_to_metric_path": "/data/metric",
    "difficulty_type": "percentile",
    "clustering_type": "single_cluster",
    "min_difficulty": 1,
    "max_difficulty": 100,
    "schedule_type": "fixed_root",
    "schedule_config": {"total_curriculum_step": 110000, "difficulty_step": 1, "root_degree": 2},
}


def test_a_key_that_begins_as_a_known_one_is_near_that_one() -> None:
    text = "is not a key of DeepSpeed 0.19.8; did you mean"
    assert check({"pipeline_parallel": {"pp_size": 64}})[1] == [
        f"pipeline_parallel: {text} 'pipeline'? {SCRIPT[0].upper()}{SCRIPT[1:]}"
    ]
    assert check({"gradient_clipping_norm": 1})[1][0].startswith(f"gradient_clipping_norm: {text} 'gradient_clipping'?")


def test_groups_have_names_of_their_own() -> None:
    def config(metric: Any) -> dict[str, Any]:
        learning = {"enabled": True, "data_cluster_path": "/data", "curriculum_metrics": {"any name": metric}}
        return {"data_efficiency": {"data_sampling": {"curriculum_learning": learning}}}

    assert check(config(CURRICULUM))[1] == []
    path = "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.any name"
    assert check(config(7))[1] == [f"{path}: must be a mapping, not 7"]
    assert check(config({**CURRICULUM, "schedule_type": "fixed"}))[1] == [
        f"{path}.schedule_type: must be one of fixed_discrete, fixed_root, fixed_linear, custom, not 'fixed'"
    ]


def test_lists_of_blocks() -> None:
    def config(specs: Any) -> dict[str, Any]:
        return {"tensor_parallel": {"partition_config": {"layer_specs": specs}}}

    assert check(config([{"patterns": ["q_proj"], "partition_type": "COLUMN"}]))[0] == config(
        [{"patterns": ["q_proj"], "partition_type": "column"}]
    )
    path = "tensor_parallel.partition_config.layer_specs"
    assert check(config({}))[1] == [f"{path}: must be a list of mappings, not {{}}"]
    assert check(config([{}, 3]))[1] == [f"{path}[1]: must be a mapping, not 3"]
    assert check(config([{"shapes": []}]))[1] == [
        f"{path}[0].shapes: is not a key of DeepSpeed 0.19.8; did you mean 'shape'?"
        " A key that only the script reads belongs in script_keys"
    ]


def test_what_apex_gets_is_not_judged() -> None:
    assert check({"amp": {"enabled": True, "opt_level": "O1"}}, "0.18.9")[1] == []
    assert check({"amp": {"opt_level": "O1"}}, "0.18.9")[1] == [
        "amp.enabled: is missing; DeepSpeed does not work without it"
    ]


@pytest.mark.parametrize(
    ("version", "bucket", "wanted"),
    [("0.19.5", -1, "of at least 0"), ("0.19.6", 0, "above 0")],
)
def test_bounds_are_those_of_the_release(version: str, bucket: int, wanted: str) -> None:
    assert check({"zero_optimization": {"reduce_bucket_size": bucket}}, version)[1] == [
        f"zero_optimization.reduce_bucket_size: must be a whole number {wanted}, not {bucket}"
    ]
    assert check({"zero_optimization": {"reduce_bucket_size": bucket + 1}}, version)[1] == []


def test_sequence_parallelism_alone_before_it_was_read() -> None:
    text = "sequence_parallel_size: has no effect in DeepSpeed 0.16.9 without data_parallel_size; give both"
    assert check({"sequence_parallel_size": 2}, "0.16.9")[1] == [text]
    assert check({"sequence_parallel_size": "1"}, "0.16.9")[1] == []
    assert check({"sequence_parallel_size": 2, "data_parallel_size": 2}, "0.16.9")[1] == []
    assert check({"sequence_parallel_size": 2}, "0.17.6")[1] == []


def test_script_keys_are_taken_as_they_are() -> None:
    config = {
        "model_topo": {"process_topology": {"axes": ["pipe", "data"]}, "parallel_config": "auto"},
        "n_epochs": "three",
        "optimizer": {"type": "AdamW", "params": {"lr": "1e-5"}, "no_wd_kws": ["bias"]},
    }
    result, errors = check(config, script_keys=("model_topo", "n_epochs", "optimizer.no_wd_kws", "not_there"))
    assert errors == []
    assert (result["model_topo"], result["n_epochs"]) == (config["model_topo"], "three")
    assert result["optimizer"] == {"type": "AdamW", "params": {"lr": 1e-5}, "no_wd_kws": ["bias"]}


def test_parameters_that_the_script_sets() -> None:
    """gdGPT counts total_num_steps in its data and puts it in before DeepSpeed starts."""
    config = {"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 100, "mine": "5"}}}
    keys = ("scheduler.params.total_num_steps", "scheduler.params.mine")
    assert check(config, script_keys=keys) == (config, [])
    assert len(check(config)[1]) == 2


def test_a_script_key_in_fp16_while_deepspeed_let_it_be() -> None:
    config = {"fp16": {"enabled": True, "fused_optimizer": False}}
    assert check(config, "0.16.9", script_keys=("fp16.fused_optimizer",)) == (config, [])
    assert check(config, "0.16.9")[1] == [f"fp16.fused_optimizer: is not a key of DeepSpeed 0.16.9; {SCRIPT}"]
    assert check(config, "0.17.6")[1] == ["fp16.fused_optimizer: is not a key of DeepSpeed 0.17.6"]
    assert check(config, "0.17.6", script_keys=("fp16.fused_optimizer",))[1][0].startswith("script_keys[0]: ")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (
            "train_batch_size",
            "'train_batch_size' is a key of DeepSpeed itself, and is checked as such; take it out of script_keys",
        ),
        ("nebula", "'nebula' is a key of DeepSpeed itself, and is checked as such; take it out of script_keys"),
        (
            "fp16.mine",
            "'fp16.mine': DeepSpeed refuses keys of others in fp16; give it another place in the file",
        ),
        ("nowhere.mine", "'nowhere.mine' must be a key, or the path of one in a block that DeepSpeed describes"),
        ("amp.inner.mine", "'amp.inner.mine' must be a key, or the path of one in a block that DeepSpeed describes"),
        ("", "'' must be a key, or the path of one in a block that DeepSpeed describes"),
        ("optimizer.", "'optimizer.' must be a key, or the path of one in a block that DeepSpeed describes"),
        (3, "must be text, not 3"),
        (["a"], "must be text, not ['a']"),
    ],
)
def test_what_is_no_script_key(key: Any, text: str) -> None:
    (error,) = check({}, script_keys=("fine", key))[1]
    assert error.startswith(f"script_keys[1]: {text}")


def test_of_many_unknown_keys_the_first_are_answered_with_a_guess() -> None:
    """A guess takes a millisecond: a file of nonsense would take minutes."""
    errors = check({f"train_batch_sise{number}": 1 for number in range(20000)})[1]
    assert len(errors) == 20000
    assert sum("did you mean" in error for error in errors) == _GUESSES
    assert "did you mean" in errors[0]
    assert "did you mean" not in errors[-1]


def test_paths_stay_short_and_printable() -> None:
    errors = plain({"a" * 300: {"b" * 300: {"\ud800\n": {"c" * 300: float("nan")}}}})[1]
    assert len(errors[0].path) <= 200
    assert errors[0].path.isprintable()


def test_keys_that_json_cannot_tell_apart() -> None:
    assert [str(error) for error in plain({"a": {1: 2, "1": 3}})[1]] == [
        "a: has two keys that JSON cannot distinguish, such as 1 and '1'"
    ]
