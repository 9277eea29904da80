# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""VS Code's launch.json: what it would start is what the role starts, and what others have in the file stays."""

from __future__ import annotations

import json
import posixpath
import random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.filter.launch import launch_command
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.command import LaunchError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.vscode import vscode_launch

COMMAND = [
    "deepspeed",
    "--hostfile",
    "/etc/swarmspeed/hostfile",
    "--master_port",
    "@master_port@",
    "train.py",
    "--x",
    "1",
]
OURS = "swarmspeed: job"
BY_HAND = """{
    // Use IntelliSense to learn about possible attributes.
    "version": "0.2.0",
    "inputs": [{"id": "which", "type": "promptString"}],
    "configurations": [
        {"name": "mine", "type": "debugpy", "request": "attach", "connect": {"port": 5678}}, // attach
    ],
    "compounds": [],
}
"""


def started_by_vscode(configuration: dict[str, Any]) -> list[str]:
    """The argv of the process that VS Code's Python debugger starts for a configuration, without debugpy's own part."""
    assert (configuration["type"], configuration["request"]) == ("debugpy", "launch")
    assert posixpath.isabs(configuration["program"]) and posixpath.isabs(configuration["python"])
    words = [configuration["program"], *configuration["args"]]
    assert [word for word in words if not isinstance(word, str) or "${" in word] == []
    return [configuration["python"], *words]


def only(text: str) -> dict[str, Any]:
    (found,) = json.loads(text)["configurations"]
    assert isinstance(found, dict)
    return found


def launch(transport: str = "pdsh", launcher: str = "deepspeed") -> list[str]:
    return launch_command(
        "train.py",
        {
            "launcher": launcher,
            "transport": transport,
            "master": "train-gpu1",
            "nodes": 2,
            "etc": "/etc/swarmspeed",
            "include": "gpu1:0@gpu2:0,1",
            "args": ["--epochs", "3"],
            "config_argument": "--deepspeed_config",
        },
    )


def test_it_starts_the_roles_own_command() -> None:
    argv = started_by_vscode(only(vscode_launch("", launch(), OURS)))
    assert argv[:2] == ["/opt/swarmspeed/bin/python3", "/opt/swarmspeed/bin/deepspeed"]
    assert argv[2:] == [
        *("--hostfile", "/etc/swarmspeed/hostfile", "--launcher", "pdsh"),
        *("--master_addr", "train-gpu1", "--master_port", "29600", "--include", "gpu1:0@gpu2:0,1"),
        *("train.py", "--epochs", "3", "--deepspeed_config", "/etc/swarmspeed/ds_config.json"),
    ]
    # the launcher's own arguments come before the script, all others after it
    assert argv.index("--hostfile") < argv.index("train.py") < argv.index("--epochs")


def test_nothing_but_log_files_and_the_port_differs_from_the_job() -> None:
    job = launch()
    at = job.index("--enable_each_rank_log")
    assert job[at + 1] == "@logs@"
    seen = started_by_vscode(only(vscode_launch("", job, OURS, port=29511)))
    assert seen[2:] == ["29511" if word == "@master_port@" else word for word in job[1:at] + job[at + 2 :]]


def test_the_whole_configuration() -> None:
    text = vscode_launch(
        None,
        COMMAND,
        OURS,
        environment={"B": 2, "A": "x"},
        env_file="/root/.ssh/environment",
        folder="/opt/x/bin",
        cwd="/w",
    )
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "version": "0.2.0",
        "configurations": [
            {
                "name": OURS,
                "type": "debugpy",
                "request": "launch",
                "python": "/opt/x/bin/python3",
                "program": "/opt/x/bin/deepspeed",
                "args": ["--hostfile", "/etc/swarmspeed/hostfile", "--master_port", "29600", "train.py", "--x", "1"],
                "cwd": "/w",
                "env": {"A": "x", "B": "2"},
                "console": "integratedTerminal",
                "justMyCode": False,
                "subProcess": True,
                "envFile": "/root/.ssh/environment",
            }
        ],
    }
    assert "envFile" not in only(vscode_launch("", COMMAND, OURS))


def test_an_absolute_program_stays() -> None:
    assert only(vscode_launch("", ["/usr/bin/tool"], OURS))["program"] == "/usr/bin/tool"


def test_values_that_say_secret_stay_out() -> None:
    environment = {"WANDB_API_KEY": "0123456789", "TOKENIZERS_PARALLELISM": "false", "HF_TOKEN": "hf_abcdefgh"}
    text = vscode_launch("", COMMAND, OURS, environment=environment)
    assert only(text)["env"] == {"TOKENIZERS_PARALLELISM": "false"}
    assert "0123456789" not in text and "hf_abcdefgh" not in text


def test_what_others_have_in_the_file_stays() -> None:
    found = json.loads(vscode_launch(BY_HAND, COMMAND, OURS))
    assert [entry["name"] for entry in found["configurations"]] == ["mine", OURS]
    assert found["configurations"][0] == {
        "name": "mine",
        "type": "debugpy",
        "request": "attach",
        "connect": {"port": 5678},
    }
    assert (found["inputs"], found["compounds"]) == ([{"id": "which", "type": "promptString"}], [])


def test_a_file_that_has_it_comes_back_as_it_is_comments_and_all() -> None:
    entry = json.dumps(only(vscode_launch("", COMMAND, OURS)))
    commented = f'{{\n  // mine\n  "configurations": [{entry},],\n}}\n'
    assert vscode_launch(commented, COMMAND, OURS) == commented
    assert vscode_launch(commented, [*COMMAND, "--more"], OURS) != commented


@pytest.mark.parametrize("seed", range(20))
def test_ours_is_replaced_in_its_place_and_nothing_else_is(seed: int) -> None:
    chosen = random.Random(seed)
    others: list[dict[str, Any]] = [
        {"name": f"other {number}", "type": "node", "seed": seed} for number in range(chosen.randint(0, 4))
    ]
    stale: list[dict[str, Any]] = [
        {"name": OURS, "type": "python", "args": []} for _number in range(chosen.randint(0, 3))
    ]
    entries = [*others, *stale]
    chosen.shuffle(entries)
    before = json.dumps({"configurations": entries, "version": "0.2.0"})
    after = vscode_launch(before, COMMAND, OURS)
    names = [entry["name"] for entry in json.loads(after)["configurations"]]
    expected = [entry["name"] for entry in entries]
    first = expected.index(OURS) if OURS in expected else len(expected)
    assert names == [*expected[:first], OURS] + [name for name in expected[first:] if name != OURS]
    assert [entry for entry in json.loads(after)["configurations"] if entry["name"] != OURS] == [
        entry for entry in entries if entry["name"] != OURS
    ]
    assert vscode_launch(after, COMMAND, OURS) == after


def test_an_old_file_without_a_list_gets_one() -> None:
    assert json.loads(vscode_launch('{"compounds": []}', COMMAND, OURS))["compounds"] == []
    assert only(vscode_launch("{}", COMMAND, OURS))["name"] == OURS


@pytest.mark.parametrize(
    ("current", "command", "name", "text"),
    [
        (
            "",
            launch("direct"),
            OURS,
            "the command has @node_rank@ in it, which differs between nodes, and a debugger starts one "
            "process. Give the command of launcher deepspeed with transport pdsh",
        ),
        (
            "",
            launch("direct", "torchrun"),
            OURS,
            "the command has @node_rank@ and @slots@ in it, which differs between nodes, and a debugger "
            "starts one process. Give the command of launcher deepspeed with transport pdsh",
        ),
        (
            "",
            [*COMMAND, "${HOME}/x"],
            OURS,
            "'${HOME}/x' has ${ in it, which VS Code would replace. Write it without",
        ),
        (
            "[]",
            COMMAND,
            OURS,
            ".vscode/launch.json has no list named configurations in it. Fix or remove it",
        ),
        (
            '{"configurations": {}}',
            COMMAND,
            OURS,
            ".vscode/launch.json has no list named configurations in it. Fix or remove it",
        ),
    ],
)
def test_refusals(current: str, command: Any, name: str, text: str) -> None:
    with pytest.raises(LaunchError) as caught:
        vscode_launch(current, command, name)
    assert str(caught.value) == text


def test_a_file_that_is_no_json() -> None:
    with pytest.raises(LaunchError) as caught:
        vscode_launch('{"configurations": [', COMMAND, OURS)
    assert str(caught.value).startswith(".vscode/launch.json is not JSON: ")
    assert str(caught.value).endswith(". Fix or remove it")
