# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight says of the job, naming the variable that holds the slip."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.requested import requested

CHECKS = {name: FACT_CHECKS[name] for name in ("hostfile", "ds_config", "shrink")}
HOSTS = {"gpu1": 8, "gpu2": 8}
CONFIG = {"train_micro_batch_size_per_gpu": 4}


def lines(**launch: Any) -> list[str]:
    wanted = requested(launch=launch)
    return [problem.line() for problem in collect(CHECKS, Facts({}, wanted)).problems]


def config_lines(**request: Any) -> list[str]:
    return lines(hosts=HOSTS, ds_config={"preset": "zero2", "config": CONFIG, **request})


def test_a_good_job_and_none() -> None:
    assert config_lines() == lines(hosts=HOSTS, include="gpu2:0,1", ds_config={}) == lines() == []
    assert config_lines(gpus=None, model=None, host_memory=None, memlock=None, script_keys=[]) == []


def test_a_slip_in_the_configuration() -> None:
    assert config_lines(config={**CONFIG, "zero_optimization": {"overlap_com": True}}) == [
        "deepspeed_launch_ds_config: zero_optimization.overlap_com: is not a key of DeepSpeed 0.19.8; did you mean"
        " 'overlap_comm'? Remedy: correct deepspeed_launch_ds_config."
    ]


def test_a_remedy_names_the_variable_and_not_the_option_of_the_module() -> None:
    (line,) = config_lines(config={"train_micro_batch_size_per_gpu": "auto"})
    assert "or set deepspeed_launch_ds_config_integration to huggingface or accelerate" in line


@pytest.mark.parametrize(
    ("request_", "variable"),
    [
        ({"preset": "zero9"}, "deepspeed_launch_ds_config_preset"),
        ({"deepspeed_version": "new"}, "training_image_deepspeed_version"),
        ({"script_keys": ["train_batch_size"]}, "deepspeed_launch_ds_config_script_keys"),
        ({"model": {"parameters": "many"}}, "deepspeed_launch_ds_config_model"),
        ({"precision": "fp16", "config": {**CONFIG, "fp16": {"enabled": False}}}, "deepspeed_launch_ds_config"),
        ({"config": {**CONFIG, "train_batch_size": 7}}, "deepspeed_launch_ds_config"),
    ],
)
def test_the_variable_is_named(request_: dict[str, Any], variable: str) -> None:
    found = config_lines(**request_)
    assert found
    assert all(line.startswith(f"{variable}: ") and line.endswith(f"Remedy: correct {variable}.") for line in found)


def test_world_size_follows_the_filter() -> None:
    config = {"train_batch_size": 24, "train_micro_batch_size_per_gpu": 4}
    assert lines(hosts=HOSTS, include="gpu1:0,1,2", ds_config={"config": config}) == []
    assert lines(hosts=HOSTS, ds_config={"config": config})[0].startswith(
        "deepspeed_launch_ds_config: train_batch_size: 24 is not a multiple of"
    )


def test_a_plan_waits_for_gpus_whose_driver_is_still_to_come() -> None:
    requested = {"preset": "auto", "model": {"parameters": "10B"}, "config": CONFIG}
    assert len(lines(hosts=HOSTS, gpus_known=True, ds_config=requested)) == 2
    assert lines(hosts=HOSTS, gpus_known=False, ds_config=requested) == []
    typo = {**requested, "config": {**CONFIG, "typo": 1}}
    assert len(lines(hosts=HOSTS, gpus_known=False, ds_config=typo)) == 1


def test_a_wrong_filter_is_reported_once() -> None:
    assert len(lines(hosts=HOSTS, include="gpu9", ds_config={"config": {"train_batch_size": 24}})) == 1


def test_hosts_and_filters() -> None:
    assert lines(hosts={"gpu1": 0, "gpu2": 0})[0].startswith("gpu_slots: ")
    assert lines(hosts=HOSTS, include="gpu3")[0].startswith("deepspeed_launch_include: 'gpu3' is not one of the hosts")
    assert lines(hosts=HOSTS, exclude="gpu1@gpu2")[0].startswith("deepspeed_launch_exclude: leaves no slot on any host")
    assert (
        "deepspeed_launch_exclude: cannot be combined with include"
        in lines(hosts=HOSTS, include="gpu1", exclude="x")[0]
    )


SHRINK = {"wanted": True, "resume": "auto"}


def test_a_configuration_in_the_environment_cannot_follow_fewer_nodes() -> None:
    zero0 = {"preset": None, "config": {**CONFIG, "zero_optimization": {"stage": 0}}}
    (line,) = lines(hosts=HOSTS, shrink={**SHRINK, "by_environment": True}, ds_config=zero0)
    assert line.startswith("deepspeed_launch_shrink: is true, but a script of Accelerate reads the cluster's")


def test_a_job_that_may_shrink() -> None:
    zero0 = {"preset": "zero0", "config": CONFIG}
    assert lines(hosts=HOSTS, shrink=SHRINK, ds_config=zero0) == []
    assert lines(hosts=HOSTS, shrink=SHRINK) == []  # the script does not get a configuration
    assert lines(hosts=HOSTS, shrink={"wanted": False, "resume": "never"}, ds_config={"config": CONFIG}) == []


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"preset": "zero2", "config": CONFIG}, "zero_optimization.stage is 2, "),
        (
            {"preset": "zero0", "config": {**CONFIG, "bf16": {"enabled": True}}, "deepspeed_version": "0.16.9"},
            "DeepSpeed 0.16.9 splits bf16's optimizer states ",
        ),
    ],
)
def test_a_job_that_could_not_shrink(request_: dict[str, Any], why: str) -> None:
    (line,) = lines(hosts=HOSTS, shrink=SHRINK, ds_config=request_)
    assert line.startswith(f"deepspeed_launch_shrink: is true, but the job could not continue with fewer nodes: {why}")
    assert line.endswith(". Remedy: correct deepspeed_launch_ds_config, or set deepspeed_launch_shrink: false.")


def test_a_job_that_is_not_resumed_does_not_shrink() -> None:
    requested = {**SHRINK, "resume": "never"}
    assert lines(hosts=HOSTS, shrink=requested, ds_config={"preset": "zero0", "config": CONFIG}) == [
        "deepspeed_launch_shrink: is true, but a job is restarted only with deepspeed_launch_resume: auto. Remedy: "
        "set deepspeed_launch_resume: auto, or deepspeed_launch_shrink: false."
    ]


def test_what_else_is_wrong_is_reported_once() -> None:
    assert len(lines(hosts=HOSTS, shrink=SHRINK, ds_config={"preset": "zero9", "config": CONFIG})) == 1
    assert len(lines(hosts=HOSTS, include="gpu9", shrink=SHRINK, ds_config={"config": CONFIG})) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["hosts", "include", "exclude", "ds_config", "shrink"])


def test_a_job_whose_files_are_damaged_is_named_with_the_command_that_clears_it() -> None:
    hosts = {"gpu1": {"jobs": {"digits": "unreadable"}}, "gpu2": {"jobs": {"digits": "failed", "x": "unreadable"}}}
    check = {"job_files": FACT_CHECKS["job_files"]}

    def found(name: str) -> list[str]:
        wanted = requested(launch={"name": name})
        return [problem.line() for problem in collect(check, Facts(hosts, wanted)).problems]

    (line,) = found("digits")
    assert line.startswith("gpu1: the files of job digits are damaged")
    assert "ansible-playbook stop.yml -e deepspeed_launch_name=digits" in line
    assert found("") == found("other") == []


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.dictionaries(KEYS, JSON))
def test_whatever_is_given_ends_in_words(launch: dict[str, Any]) -> None:
    for line in lines(**launch):
        assert ". Remedy: " in line
