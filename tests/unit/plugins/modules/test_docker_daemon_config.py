# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of docker_daemon_config: over a real file, on a host without an engine, and what it logs and returns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.modules import docker_daemon_config
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.displayed import displayed, returned
from tests.effort import examples

PROXY = {"proxies": {"http-proxy": "http://me:hunter2@proxy:3128"}}


class Bare:
    """A host without systemd and without an engine."""

    def systemd(self) -> bool:
        return False

    def program(self, name: str) -> str | None:
        return None

    def ask(self, path: str, timeout: float) -> Any:
        raise EngineError("no answer from the Docker engine at /var/run/docker.sock: no such file")


class Serving(Bare):
    """A host whose engine is restarted by hand, and a dockerd that refuses every file."""

    def program(self, name: str) -> str | None:
        return "/usr/sbin/dockerd"

    def ask(self, path: str, timeout: float) -> Any:
        return {"ServerVersion": "28.5.2"}

    def run(self, command: Sequence[str], timeout: float) -> CommandResult:
        return CommandResult(1, stderr="failed to start daemon: hunter2")


class Bench:
    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str], invocation_requested: dict[str, Any]) -> None:
        self.path = path
        self.invocation_requested = invocation_requested
        self.warned: list[str] = []
        self._capsys = capsys

    def __call__(self, config: Any = None, **args: Any) -> dict[str, Any]:
        self.warned.clear()
        given = {"path": str(self.path), "config": config, **self.invocation_requested, **args}
        with patch_module_args(given), pytest.raises(SystemExit) as ended:
            docker_daemon_config.main()
        text = self._capsys.readouterr().out
        assert "hunter2" not in displayed(text)
        result = returned(text)
        assert (ended.value.code == 0) is not result.get("failed", False)
        return result


@pytest.fixture
def run(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    invocation_requested: dict[str, Any],
) -> Bench:
    monkeypatch.setattr(docker_daemon_config, "LocalHost", Bare)
    folder = tmp_path / "docker"
    folder.mkdir()
    bench = Bench(folder / "daemon.json", capsys, invocation_requested)
    monkeypatch.setattr(AnsibleModule, "warn", lambda dummy, text: bench.warned.append(text))
    return bench


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_check_run_and_run_again(run: Bench) -> None:
    config = {"debug": True, "log-opts": {"max-size": "50m"}}
    predicted = run(config, _ansible_check_mode=True, _ansible_diff=True)
    assert not run.path.exists()
    first = run(config, _ansible_diff=True)
    second = run(config, _ansible_diff=True)
    assert [result["changed"] for result in (predicted, first, second)] == [True, True, False]
    assert predicted["diff"] == first["diff"]
    assert first["diff"] == [
        {
            "before_header": str(run.path),
            "after_header": str(run.path),
            "before": "",
            "after": '{\n    "debug": true,\n    "log-opts": {\n        "max-size": "50m"\n    }\n}\n',
        }
    ]
    assert run.path.read_text() == first["diff"][0]["after"]
    assert second["diff"] == []
    assert mode(run.path) == 0o644
    for result in (predicted, first, second):
        assert result["config"] == config
        assert set(from_yaml(docker_daemon_config.RETURN)) - {"backup_file"} <= set(result)
    assert first["changed_keys"] == ["debug", "log-opts"]
    assert (first["restarted"], first["reloaded"], first["validated"], first["engine_version"]) == (False,) * 3 + (
        None,
    )


def test_keys_are_merged_and_a_copy_is_kept_on_request(run: Bench) -> None:
    run.path.write_text('{"mtu": 1400, "debug": true}')
    result = run({"debug": None, "ipv6": False}, backup=True)
    assert json.loads(run.path.read_text()) == {"mtu": 1400, "ipv6": False}
    assert Path(result["backup_file"]).read_text() == '{"mtu": 1400, "debug": true}'
    assert "backup_file" not in run({"ipv6": True})


def test_secrets_are_neither_returned_nor_logged(run: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, msg, log_args=None: logged.append(f"{msg} {log_args}"))
    config = {**PROXY, "log-opts": {"splunk-token": "t0ps3cret"}}
    for result in (run(config, _ansible_check_mode=True), run(config, _ansible_diff=True), run({"mtu": "t0ps3cret"})):
        assert "t0ps3cret" not in displayed(json.dumps(result))
    assert run({})["config"]["proxies"] == {"http-proxy": "http://********@proxy:3128"}
    assert mode(run.path) == 0o600
    assert "hunter2" in run.path.read_text()
    assert "proxy:3128" in logged[0]
    assert "hunter2" not in displayed(str(logged))
    assert "t0ps3cret" not in displayed(str(logged[:2]))


def test_the_mode(run: Bench) -> None:
    run({"debug": True}, mode="0640")
    assert mode(run.path) == 0o640
    assert run({"debug": False})["changed"] is True
    assert mode(run.path) == 0o640
    assert run({"debug": False}, mode="0600", _ansible_check_mode=True)["changed"] is True
    result = run({"debug": False}, mode="0600")
    assert (result["changed"], mode(run.path)) == (True, 0o600)
    assert run({"debug": False}, mode="0600")["changed"] is False
    assert run({"debug": True}, mode="0644")["changed"] is True
    assert mode(run.path) == 0o644
    before = run.path.read_bytes()
    assert "mode" in run({"debug": False}, mode="rubbish")["msg"]
    assert run.path.read_bytes() == before
    assert [path.name for path in run.path.parent.iterdir()] == ["daemon.json"]


def test_a_credential_that_everybody_can_read(run: Bench) -> None:
    run.path.write_text("{}")
    run.path.chmod(0o644)
    warning = f"{run.path} holds a credential and everybody on this host can read it. Set mode: '0600'"
    for changed in (True, False):
        assert run(PROXY)["changed"] is changed
        assert run.warned == [warning]
    run(PROXY, mode="0600")
    assert run.warned == []
    run.path.write_text('{"theirs": 1}')
    run({"debug": True})
    assert run.warned == [f"{run.path} holds keys that were there before and that the engine may refuse: theirs"]


def test_failures_say_how_far_it_came(run: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run({"debgu": True})
    assert result["msg"] == (
        f"{run.path} was left as it is: debgu: is not a key of daemon.json; the engine refuses or ignores it, perhaps"
        " 'debug' is meant"
    )
    assert (result["changed"], result["rolled_back"], result["path"]) == (False, False, str(run.path))
    assert run({"debug": True}, timeout=0)["msg"] == "timeout is 0; give a number of seconds, at least 1"
    run.path.write_bytes(b"{")
    assert "it is not JSON" in run({"debug": True})["msg"]
    run.path.unlink()
    monkeypatch.setattr(docker_daemon_config, "LocalHost", Serving)
    assert "systemd has no docker.service" in run({"debug": True})["msg"]
    assert "systemd has no x.service" in run({"debug": True}, service="x.service")["msg"]
    result = run({**PROXY, "mtu": 1}, restart="never")
    assert result["msg"] == (
        f"Nothing was written: the engine refuses the new {run.path}: failed to start daemon: ********"
    )
    assert (result["changed"], result["engine_version"]) == (False, "28.5.2")
    assert run({"debug": True}, restart="never", validate=False)["restart_needed"] is True
    run.path = run.path.parent / "a" / "b" / "daemon.json"
    monkeypatch.setattr(docker_daemon_config, "LocalHost", Bare)
    assert run({"debug": True})["msg"] == f"{run.path}: cannot be written: No such file or directory"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["debug", "labels", "proxies", "token"]) | st.text(), anything, max_size=3))
@example({"x": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]})
@example({"mtu": 10**400})
@settings(
    deadline=None,
    derandomize=True,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_configuration_is_written_or_refused_in_words(run: Bench, config: dict[str, Any]) -> None:
    run.path.unlink(missing_ok=True)
    result = run(config)
    assert "Traceback" not in str(result)
    assert run.path.exists() is result["changed"]
    if result.get("failed"):
        assert result["msg"].startswith(f"{run.path} was left as it is: ")


def test_half_a_surrogate_pair_in_the_file(run: Bench) -> None:
    # Ansible's controller refuses results that hold one.
    run.path.write_text('{"labels": ["a=\\ud800"], "\\ud801": 1}')
    result = run({"debug": True, "\\ud801": None}, _ansible_diff=True)
    assert json.loads(run.path.read_text()) == {"labels": ["a=\ud800"], "\ud801": 1, "debug": True}
    assert result["config"] == {"labels": ["a=\\ud800"], "\\ud801": 1, "debug": True}
    assert run.warned[0].endswith(" may refuse: \\ud801")
    str(result).encode()
