# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One variable says how long a job may be silent; DeepSpeed's own time-out of collectives follows it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.planner import NOTHING

from tests.role_values import value, variables

FRONT = "/opt/train/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(**changed: Any) -> dict[str, str]:
    found: dict[str, str] = value("_deepspeed_launch_variables", variables("nccl_env", "workspace", **changed))
    return found


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [(1800, "29"), (7200, "119"), ("900", "14"), (601, "10"), (600, "9"), (60, "1"), (1, "1"), (0, "28800")],
)
def test_deepspeed_gives_up_a_minute_before_the_job_does(seconds: Any, minutes: str) -> None:
    assert environment(deepspeed_launch_stall_timeout=seconds) == {"DEEPSPEED_TIMEOUT": minutes}


def test_a_time_out_of_the_users_stays() -> None:
    assert environment(deepspeed_launch_environment={"DEEPSPEED_TIMEOUT": 5, "A": "b"}) == {
        "DEEPSPEED_TIMEOUT": 5,
        "A": "b",
    }
    assert environment(nccl_env_environment={"DEEPSPEED_TIMEOUT": 5}) == {}


def test_ranks_get_the_secrets_and_which_they_are() -> None:
    found = environment(deepspeed_launch_secrets={"WANDB": "abcdef", "A": "b"}, deepspeed_launch_environment={"C": "d"})
    assert found == {"DEEPSPEED_TIMEOUT": "29", "WANDB": "abcdef", "A": "b", "C": "d", "SWARMSPEED_SECRETS": "A,WANDB"}


def test_without_docker_the_environments_programs_come_first() -> None:
    found = environment(deepspeed_launch_runtime="host", workspace_python_environment="/opt/train")
    assert found == {"DEEPSPEED_TIMEOUT": "29", "PATH": FRONT}


@pytest.mark.parametrize("by_environment", [True, False])
def test_a_script_of_accelerate_finds_its_configuration_in_the_environment(by_environment: bool) -> None:
    task_input = {**NOTHING, "by_environment": by_environment}
    found = environment(swarmspeed_etc="/etc/swarmspeed", _deepspeed_launch_input=task_input)
    passed = {
        "ACCELERATE_USE_DEEPSPEED": "true",
        "ACCELERATE_DEEPSPEED_CONFIG_FILE": "/etc/swarmspeed/ds_config.json",
    }
    assert found == {"DEEPSPEED_TIMEOUT": "29", **(passed if by_environment else {})}
