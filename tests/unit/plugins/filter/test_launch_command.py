# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.launch import launch_command, launch_program
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.command import given_words

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


def test_arguments_may_be_one_text() -> None:
    given = ["--name", "my run", "--epochs", "3"]
    listed = launch_command("train.py", {**BASE, "args": given})
    assert launch_command("train.py", {**BASE, "args": '--name "my run" --epochs 3'}) == listed
    assert launch_command("train.py", {**BASE, "args": 3})[-1] == "3"
    with pytest.raises(AnsibleFilterError, match="launch_command: args has a quote that is not closed"):
        launch_command("train.py", {**BASE, "args": '--name "my run'})


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "per_node"])
@pytest.mark.parametrize("change", [{}, {"include": "gpu1:0"}, {"shrink": True}])
def test_of_a_command_the_users_own_words_can_be_told(launcher: str, change: dict[str, Any]) -> None:
    given = ["--include", "x", "--redirects", "3"]
    words = given_words(launch_command("train.py", {**BASE, "launcher": launcher, "args": given, **change}))
    assert words[0] == {"per_node": "python3"}.get(launcher, launcher)
    assert words[-5:] == ["train.py", *given] and len(words) == (7 if launcher == "per_node" else 6)


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
    [
        ("train.py", "python3 -u train.py --x"),
        ("llamafactory-cli", "llamafactory-cli --x"),
        ("./train.sh", "./train.sh --x"),
        ("-m llamafactory.launcher", "python3 -u -m llamafactory.launcher --x"),
    ],
)
def test_the_users_own_command_on_each_node(script: str, expected: str) -> None:
    assert made(script, launcher="per_node", args=["--x"]) == expected


@pytest.mark.parametrize(
    ("launcher", "script", "given", "expected"),
    [
        ("deepspeed", "-m llamafactory.launcher", [], "--module llamafactory.launcher --x"),
        ("torchrun", "-m llamafactory.launcher", [], "--module llamafactory.launcher --x"),
        ("deepspeed", "llamafactory-cli", [], "--no_python --no_local_rank llamafactory-cli --x"),
        ("torchrun", "llamafactory-cli", [], "--no-python llamafactory-cli --x"),
        ("deepspeed", "./train", [], "./train --x"),
        ("torchrun", "tools/train", ["--tee", "3"], "--tee 3 tools/train --x"),
        # What the user's own arguments of the launcher say is not repeated.
        ("torchrun", "package.train", ["-m"], "-m package.train --x"),
        ("deepspeed", "-m package.train", ["--module"], "--module package.train --x"),
        ("deepspeed", "run", ["--no_python"], "--no_python run --x"),
    ],
)
def test_a_module_or_a_command_of_the_image(launcher: str, script: str, given: list[str], expected: str) -> None:
    before = made("x.py", launcher=launcher)
    assert made(script, launcher=launcher, launcher_args=given, args=["--x"]) == f"{before[: -len('x.py')]}{expected}"


@pytest.mark.parametrize(
    ("script", "kind", "name"),
    [
        ("train.py", "file", "train.py"),
        ("./train", "file", "./train"),
        ("/opt/train", "file", "/opt/train"),
        ("-m a.b_c", "module", "a.b_c"),
        ("-m  a", "module", "a"),
        ("train", "command", "train"),
        ("-mtrain", "command", "-mtrain"),
    ],
)
def test_what_is_started(script: str, kind: str, name: str) -> None:
    assert launch_program(script) == {"kind": kind, "name": name}


@pytest.mark.parametrize("name", ["a b", "a.", "1a", "a-b", "a/b.py", "a;b"])
def test_a_module_has_a_name(name: str) -> None:
    text = (
        f"deepspeed_launch_script: {name!r} is not a valid name of a Python module. Write it as in -m package.module, "
        "and its arguments into deepspeed_launch_args."
    )
    for call in (lambda: launch_program(f"-m {name}"), lambda: made(f"-m {name}")):
        with pytest.raises(AnsibleFilterError) as caught:
            call()
        assert str(caught.value).endswith(text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"launcher": "mpirun"}, "deepspeed_launch_launcher: 'mpirun' is none of deepspeed, torchrun, per_node."),
        ({"transport": "rsh"}, "deepspeed_launch_transport: 'rsh' is none of direct, pdsh. Choose one of them."),
        (
            {"launcher": "torchrun", "transport": "pdsh"},
            "deepspeed_launch_transport: pdsh starts only DeepSpeed's launcher, but deepspeed_launch_launcher is "
            "torchrun. Set the transport to direct.",
        ),
        ({"colour": "red"}, "Give the keys that are documented."),
    ],
)
def test_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        made(**change)
    assert text in str(caught.value)
