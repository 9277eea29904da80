# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of job_logs, with the module run in place of a node."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.job_logs import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import log_files_io
from ansible_collections.swarmspeed.cluster.plugins.modules.job_logs import run_module


class Gatherer(ActionModule):
    def __init__(self, script: list[dict[str, Any]] | None = None, check_mode: bool = False, **args: Any) -> None:
        self._task = SimpleNamespace(args=args, check_mode=check_mode, async_val=0, action="job_logs")
        self.script, self.requested = script, 0

    def _execute_module(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        assert module_name == "swarmspeed.cluster.job_logs"
        self.requested += 1
        if self.script is not None:
            return self.script.pop(0)
        return json.loads(json.dumps(run_module({"max_mib": 8, **module_args})))  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})


@pytest.fixture
def args(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "jobs/digits"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text('{"run": 1, "started_at": "t0"}')
    (folder / "launcher.log").write_text("x" * 3000)
    (folder / "summary.json").write_text("{}")
    return {"name": "digits", "jobs_dir": str(folder.parent), "dest": str(tmp_path / "here")}


def run(action: Gatherer) -> dict[str, Any]:
    return action.run(task_vars={"inventory_hostname": "gpu1"})


def test_gathered_once(args: dict[str, Any]) -> None:
    action = Gatherer(**args)
    found = run(action)
    assert found == {
        "changed": True,
        "dest": f"{args['dest']}/digits",
        "gathered": ["launcher.log", "state.json", "summary.json"],
        "shortened": [],
        "problems": [],
    }
    assert action.requested == 1
    assert Path(args["dest"], "digits/gpu1/launcher.log").read_text() == "x" * 3000
    again = run(Gatherer(**args))
    assert (again["changed"], again["gathered"]) == (False, [])


def test_in_several_replies(args: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files_io, "REPLY_BYTES", 10)
    action = Gatherer(**args)
    assert run(action)["gathered"] == ["launcher.log", "state.json", "summary.json"]
    assert action.requested == 3


def test_a_long_file_is_reported(args: dict[str, Any]) -> None:
    Path(args["jobs_dir"], "digits/launcher.log").write_bytes(b"line\n" * 300000)
    assert run(Gatherer(**args, max_mib=1))["shortened"] == ["launcher.log"]


def test_check_mode_asks_no_one(args: dict[str, Any]) -> None:
    action = Gatherer(check_mode=True, **args)
    assert (run(action)["changed"], action.requested, Path(args["dest"]).exists()) == (False, 0, False)


@pytest.mark.parametrize("reply", [{"failed": True, "msg": "no"}, {"unreachable": True, "msg": "no"}, {"msg": "odd"}])
def test_a_node_that_does_not_answer(args: dict[str, Any], reply: dict[str, Any]) -> None:
    found = run(Gatherer([dict(reply)], **args))
    assert found == {**reply, "changed": False}
    assert not Path(args["dest"]).exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../x"}, "job_logs: name: '../x' is not a name for a job."),
        ({"node": "a/b"}, "job_logs: node: 'a/b' cannot be the name of a folder."),
        ({"dest": ""}, "job_logs: dest is missing. Give a folder on the controller."),
    ],
)
def test_what_is_asked_is_checked_before_the_node_is_asked(
    args: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    action = Gatherer(**{**args, **change})
    with pytest.raises(AnsibleError) as caught:
        run(action)
    assert words in str(caught.value) and action.requested == 0


def test_a_node_that_sends_something_else_writes_nothing(args: dict[str, Any]) -> None:
    script = [{"files": [{"path": "../../x", "data": "", "mtime_ns": 1}], "more": False}]
    with pytest.raises(
        AnsibleError, match=r"job_logs: the node sent a file '\.\./\.\./x', which is none of a job's logs"
    ):
        run(Gatherer(script, **args))
    assert not Path(args["dest"]).exists()


def test_a_controller_that_cannot_write_says_where(args: dict[str, Any]) -> None:
    Path(args["dest"]).write_text("a file")
    with pytest.raises(
        AnsibleError, match=r"here/digits/gpu1 on the controller cannot be written: .*Give another dest"
    ):
        run(Gatherer(**args))


@pytest.mark.parametrize("value", ["soon", -1, 1.5])
def test_a_patience_that_is_no_number_of_seconds(args: dict[str, Any], value: Any) -> None:
    with pytest.raises(AnsibleError, match=r"patience: .* is not a whole number of seconds, 0 or more"):
        run(Gatherer(**args, patience=value))


def test_a_node_that_hangs_counts_as_unreachable(args: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gatherer, "_execute_module", lambda *_args, **_named: time.sleep(30))
    began = time.monotonic()
    with pytest.raises(AnsibleConnectionFailure, match="gpu1: its logs did not arrive within 1 s"):
        run(Gatherer(**args, patience=1))
    assert time.monotonic() - began < 10
