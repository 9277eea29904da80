# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.launch import launch_command

BASE: dict[str, Any] = {
    "launcher": "deepspeed",
    "transport": "direct",
    "master": "c-gpu1",
    "nodes": 2,
    "etc": "/etc/swarmspeed",
}


def made(script: str = "train.py", **change: Any) -> str:
    return " ".join(launch_command(script, {**BASE, **change}))


def test_deepspeed_once_on_each_node() -> None:
    assert made(args=["--epochs", 3], config_argument="--deepspeed_config") == (
        "deepspeed --hostfile /etc/swarmspeed/hostfile --no_ssh --node_rank @node_rank@ --master_addr c-gpu1 "
        "--master_port @master_port@ --enable_each_rank_log @logs@ train.py --epochs 3 "
        "--deepspeed_config /etc/swarmspeed/ds_config.json"
    )


def test_deepspeed_over_ssh_on_some_slots() -> None:
    assert made(transport="pdsh", include="gpu1:0@gpu2:1", launcher_args=["--module"], prefix=["run"]) == (
        "run deepspeed --hostfile /etc/swarmspeed/hostfile --launcher pdsh --master_addr c-gpu1 "
        "--master_port @master_port@ --enable_each_rank_log @logs@ --include gpu1:0@gpu2:1 --module train.py"
    )


def test_torchrun() -> None:
    assert made(launcher="torchrun", include="gpu1:0@gpu2:1", launcher_args=["--max-restarts", "0"]) == (
        "torchrun --nnodes 2 --node-rank @node_rank@ --nproc-per-node @slots@ --master-addr c-gpu1 "
        "--master-port @master_port@ --log-dir @logs@ --redirects 3 --max-restarts 0 train.py"
    )


def test_what_changes_when_a_job_shrinks_is_filled_in_later() -> None:
    assert made(shrink=True, config_argument="--config", include="gpu1:0@gpu2:1") == (
        "deepspeed --hostfile @hostfile@ --no_ssh --node_rank @node_rank@ --master_addr c-gpu1 "
        "--master_port @master_port@ --enable_each_rank_log @logs@ --include @include@ train.py --config @ds_config@"
    )
    assert made(shrink=True, launcher="torchrun").startswith("torchrun --nnodes @nodes@ --node-rank @node_rank@ ")
    assert made(shrink=True, launcher="per_node") == "python3 -u train.py"


@pytest.mark.parametrize(
    ("script", "expected"),
    [("train.py", "python3 -u train.py --x"), ("llamafactory-cli", "llamafactory-cli --x")],
)
def test_the_users_own_command_on_each_node(script: str, expected: str) -> None:
    assert made(script, launcher="per_node", args=["--x"]) == expected


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"launcher": "mpirun"}, "deepspeed_launch_launcher: 'mpirun' is none of deepspeed, torchrun, per_node."),
        ({"transport": "rsh"}, "deepspeed_launch_transport: 'rsh' is none of direct, pdsh. Choose one of them."),
        (
            {"launcher": "torchrun", "transport": "pdsh"},
            "deepspeed_launch_transport: pdsh starts DeepSpeed's launcher only, and deepspeed_launch_launcher is "
            "torchrun. Set the transport to direct.",
        ),
        ({"colour": "red"}, "Give the keys that are documented."),
    ],
)
def test_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        made(**change)
    assert text in str(caught.value)
