# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""job_precheck with a fake host, and once for real on this one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.probe import MARK
from ansible_collections.swarmspeed.cluster.plugins.modules import job_precheck
from ansible_collections.swarmspeed.cluster.plugins.modules.job_precheck import InvalidRequest, gather
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.checks import judge

RUNS = {"running": True, "reference": "train:1", "id": "sha256:1", "content": "sha256:2"}


class FakeHost:
    """A host whose look ends as given."""

    def __init__(self, found: Any = "runs", done: CommandResult | None = None, **answer: Any) -> None:
        self.found = RUNS if found == "runs" else found
        self.done = done or CommandResult(0, f"{MARK}{json.dumps({'locks': [], **answer})}\n")
        self.commands: list[list[str]] = []
        self.requested: dict[str, Any] = {}

    def inspect(self, container: str) -> dict[str, Any] | None:
        if isinstance(self.found, Exception):
            raise self.found
        return None if self.found is None else dict(self.found)

    def run(self, command: Sequence[str], data: str) -> CommandResult:
        self.commands.append(list(command))
        self.requested = json.loads(data)["requested"]
        return self.done


def params(**change: Any) -> dict[str, Any]:
    return {
        "container": "ai-gpu1",
        "wrapper": ["sh", "/entry", "run"],
        "python": "python3",
        "node": "gpu1",
        "members": [
            {"name": "gpu1", "host": "ai-gpu1"},
            {"name": "gpu2", "host": "ai-gpu2"},
            {"name": "gpu3", "host": ""},
        ],
        "subnet": "10.0.1.0/24",
        "transport": "direct",
        "ssh_config": "",
        "packages": ["torch"],
        "programs": ["deepspeed"],
        "modules": ["package.train"],
        "chdir": "/workspace",
        "code": "",
        "script": "train.py",
        "data_paths": [],
        "checkpoints": "",
        "checkpoint_gib": 0.0,
        "ds_config": "",
        "hostfile": "",
        "slots": [0],
        "accelerator": "cpu",
        "operators": ["FUSED_ADAM"],
        "master_port": 29500,
        "torch_extensions": "",
        **change,
    }


def test_it_asks_for_all_the_others_and_not_for_itself() -> None:
    host = FakeHost(python="3.11.2")
    result = gather(params(), False, host)
    assert host.commands[0][:8] == ["docker", "exec", "-i", "ai-gpu1", "sh", "/entry", "run", "python3"]
    assert host.requested["names"] == {"gpu2": "ai-gpu2"}
    assert (host.requested["ssh"], host.requested["smi"], host.requested["sees_all"]) == ([], False, False)
    assert host.requested["remove_locks"] is True
    assert result["probe"] == {
        "asked": {
            "runtime": "container",
            "subnet": "10.0.1.0/24",
            "transport": "direct",
            "accelerator": "cpu",
            "slots": [0],
            "checkpoint_gib": 0.0,
            "chdir": "/workspace",
        },
        "image": {"reference": "train:1", "id": "sha256:1", "content": "sha256:2"},
        "answer": {"python": "3.11.2", "locks": []},
        "trouble": {},
    }
    assert (result["changed"], result["removed_locks"], result["diff"]["before"]) == (False, [], "")


def test_pdsh_needs_ssh_cuda_needs_nvidia_smi_and_a_host_needs_no_engine() -> None:
    host = FakeHost(EngineError("not asked"))
    result = gather(params(transport="pdsh", accelerator="cuda", container=None, wrapper=[]), False, host)
    assert host.commands[0][:2] == ["python3", "-B"]
    assert (host.requested["ssh"], host.requested["smi"], host.requested["sees_all"]) == (["gpu2", "gpu3"], True, True)
    assert (result["probe"]["asked"]["runtime"], result["probe"]["image"]) == ("host", {})


LOCKS = [
    {"path": "/c/a/lock", "state": "removed", "error": ""},
    {"path": "/c/b/lock", "state": "held", "error": ""},
    {"path": "/c/d/lock", "state": "dead", "error": "Read-only file system"},
]


def test_what_is_removed_is_a_change_and_its_diff() -> None:
    result = gather(params(), False, FakeHost(locks=LOCKS))
    assert (result["changed"], result["removed_locks"]) == (True, ["/c/a/lock"])
    assert (result["diff"]["before"], result["diff"]["after"]) == ("/c/a/lock\n", "")


def test_check_mode_predicts_it_and_removes_nothing() -> None:
    host = FakeHost(locks=[{"path": "/c/a/lock", "state": "dead", "error": ""}, LOCKS[1]])
    result = gather(params(), True, host)
    assert host.requested["remove_locks"] is False
    assert (result["changed"], result["removed_locks"]) == (True, ["/c/a/lock"])


UP = "ansible-playbook site.yml --tags training_container"


@pytest.mark.parametrize(
    ("host", "change", "text", "remedy"),
    [
        (FakeHost(None), {}, "its container ai-gpu1 does not exist", UP),
        (FakeHost({**RUNS, "running": False}), {}, "its container ai-gpu1 does not run", UP),
        (
            FakeHost(EngineError("no answer from the Docker engine")),
            {},
            "no answer from the Docker engine",
            "ansible-playbook site.yml --tags docker",
        ),
        (
            FakeHost(done=CommandResult(127, "", "sh: 0\nsh: 1: exec: python3: not found\n")),
            {},
            "its checks could not run in its container ai-gpu1: sh: 1: exec: python3: not found",
            "it needs python3 3.8 or later in the image",
        ),
        (
            FakeHost(done=CommandResult(0, "nothing\n")),
            {"container": None, "python": "/v/bin/python"},
            "its checks could not run on the host: nothing",
            "it needs /v/bin/python 3.8 or later there",
        ),
        (
            FakeHost(done=CommandResult(9, "")),
            {"container": None},
            "its checks could not run on the host: exit status 9",
            "it needs python3 3.8 or later there",
        ),
    ],
)
def test_a_node_that_cannot_be_looked_at_is_an_answer(host: FakeHost, change: Any, text: str, remedy: str) -> None:
    result = gather(params(**change), False, host)
    assert result["probe"]["trouble"] == {"text": text, "remedy": remedy}
    assert (result["changed"], result["probe"]["answer"]) == (False, {})
    assert judge({"gpu1": result["probe"]}).problems == [f"gpu1: {text}. Remedy: {remedy}."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node": "gpu9"}, "node: 'gpu9' is not among members; give the name that it has there."),
        (
            {"members": [{"name": "-oProxyCommand=x", "host": ""}]},
            "members: '-oProxyCommand=x' is not a name of a host; use letters, digits, '.', '_' and '-'.",
        ),
        ({"master_port": 65536}, "master_port: 65536 is not within 0 and 65535."),
        (
            {"subnet": "10.0.0"},
            "subnet: '10.0.0' does not appear to be an IPv4 or IPv6 network. Write it as in 10.20.0.0/24.",
        ),
    ],
)
def test_asked_wrongly(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        gather(params(**change), False, FakeHost())
    assert str(caught.value) == message


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    with patch_module_args(arguments), pytest.raises(SystemExit):
        job_precheck.main()
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_the_module_on_this_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "cache" / "op").mkdir(parents=True)
    lock = tmp_path / "cache" / "op" / "lock"
    lock.touch()
    os.utime(lock, (1, 1))
    arguments = {
        "node": "gpu1",
        "members": [{"name": "gpu1"}, {"name": "gpu2", "host": "localhost"}],
        "python": sys.executable,
        "chdir": str(tmp_path),
        "script": "train.py",
        "torch_extensions": str(tmp_path / "cache"),
    }
    planned = run(capsys, **arguments, _ansible_check_mode=True)
    assert lock.exists()
    result = run(capsys, **arguments)
    assert not lock.exists()
    assert (planned["changed"], planned["diff"]) == (result["changed"], result["diff"]) == (True, result["diff"])
    assert result["removed_locks"] == [str(lock)]
    verdict = judge({"gpu1": result["probe"]})
    assert [note.partition(",")[0] for note in verdict.notes] == [f"gpu1: the dead lock {lock}"]
    again = run(capsys, **arguments)
    assert (again["changed"], again["removed_locks"]) == (False, [])


def test_the_module_says_what_is_asked_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, node="gpu9", members=[{"name": "gpu1"}])
    assert (result["failed"], result["msg"]) == (
        True,
        "job_precheck: node: 'gpu9' is not among members; give the name that it has there.",
    )
