# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of image_build, with a script of replies in place of the module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import image_build
from ansible_collections.swarmspeed.cluster.plugins.action.image_build import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following

ARGS = {"name": "team/x:1", "context": "/srv/x", "place": "/srv/x.build"}
HEAD = "#5 [2/3] RUN : 'Install PyTorch' && pip install torch\n"


def piece(text: str, begin: int = 0, *, running: bool = True, rc: int | None = None) -> dict[str, Any]:
    end = begin + len(text)
    return {"changed": False, "text": text, "offset": end, "size": end, "running": running, "rc": rc}


class Builder(ActionModule):
    """The action with a script of replies and a clock of its own."""

    def __init__(self, script: list[Any], *, check_mode: bool = False) -> None:
        self._task = SimpleNamespace(args=dict(ARGS), check_mode=check_mode, async_val=0, action="image_build")
        self.script = list(script)
        self.waits: list[float] = []
        self.requested: list[dict[str, Any]] = []
        self.resets = 0
        self._connection = SimpleNamespace(reset=self._reset, _shell=SimpleNamespace(tmpdir=None))
        self._display = None
        self._cleanup_remote_tmp = False

    def _reset(self) -> None:
        self.resets += 1

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def _clock(self) -> float:
        return float(sum(self.waits))

    def _execute_module(self, **call: Any) -> dict[str, Any]:
        self.requested.append(dict(call["module_args"]))
        reply = self.script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return dict(reply)


def terminal(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    monkeypatch.setattr(image_build, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: there)))


@pytest.fixture(name="printed")
def _printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(ActionBase, "run", lambda *dummy: {})
    monkeypatch.setattr(following.display, "display", lines.append)
    terminal(monkeypatch, there=True)
    return lines


def run(action: Builder) -> dict[str, Any]:
    return action.run(task_vars={"inventory_hostname": "lab1"})


def test_steps_are_printed_as_they_go(printed: list[str]) -> None:
    action = Builder([{"changed": True}, piece(HEAD), piece("#5 DONE 62.2s\n", len(HEAD), running=False, rc=0)])
    result = run(action)
    assert printed == ["lab1: Install PyTorch …", "lab1: Install PyTorch: 62 s"]
    assert result == {
        "changed": True,
        "seconds": 2.0,
        "steps": [{"title": "Install PyTorch", "seconds": 62.2}],
        "msg": "Install PyTorch 62 s",
    }
    assert [requested.get("offset") for requested in action.requested] == [None, 0, len(HEAD)]


def test_without_a_terminal_nothing_is_printed(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, there=False)
    run(Builder([{"changed": True}, piece(HEAD + "#5 DONE 62.2s\n", running=False, rc=0)]))
    assert printed == []


def test_a_build_that_fails_returns_the_end_of_its_log(printed: list[str]) -> None:
    text = HEAD + "#5 1.0 ERROR: No matching distribution found for torch\n#5 ERROR: exit code: 1\n"
    result = run(Builder([{"changed": True}, piece(text, running=False, rc=1)]))
    assert (result["failed"], result["msg"], result["log"]) == (True, "docker build ended with exit status 1.", text)
    assert result["reason"] == ""
    assert printed[-1] == "lab1: Install PyTorch: failed"


@pytest.mark.usefixtures("printed")
def test_what_a_step_itself_said_is_the_reason() -> None:
    text = HEAD + "#5 1.0 torch has no CUDA in it. Remedy: correct it.\n#5 ERROR: exit code: 1\n"
    result = run(Builder([{"changed": True}, piece(text, running=False, rc=1)]))
    assert result["reason"] == "torch has no CUDA in it. Remedy: correct it."


def test_the_rest_of_a_long_log_is_read_after_the_end(printed: list[str]) -> None:
    first = {**piece(HEAD, running=False, rc=0), "size": len(HEAD) + 14}
    action = Builder([{"changed": True}, first, piece("#5 DONE 62.2s\n", len(HEAD), running=False, rc=0)])
    assert run(action)["msg"] == "Install PyTorch 62 s"
    assert action.waits == []
    assert len(printed) == 2


def test_a_lost_connection_comes_back(printed: list[str]) -> None:
    action = Builder(
        [{"changed": True}, AnsibleConnectionFailure("gone"), {"msg": "busy"}, piece(HEAD, running=False, rc=0)]
    )
    assert run(action)["changed"] is True
    assert printed[:2] == [
        "The build: no answer (gone); trying again in 2 s.",
        "The build: no answer (busy); trying again in 4 s.",
    ]
    assert (action.waits, action.resets) == ([2.0, 4.0], 1)


@pytest.mark.usefixtures("printed")
def test_a_connection_that_stays_lost() -> None:
    action = Builder([{"changed": True}, *[AnsibleConnectionFailure("gone")] * 6])
    with pytest.raises(
        AnsibleConnectionFailure,
        match=r"Lost contact with the build after 5 more tries \(gone\)\. It continues in the background: run",
    ):
        run(action)


@pytest.mark.usefixtures("printed")
def test_a_build_that_is_not_started_is_not_followed() -> None:
    assert (
        run(Builder([{"failed": True, "msg": "There is no docker command."}]))["msg"] == "There is no docker command."
    )
    assert run(Builder([{"changed": True}], check_mode=True)) == {"changed": True}
