# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From keys to an engine that runs with them, or to everything as it was: with a stand-in for the engine and systemd.

The stand-in loads the real file at a start and at a reload, as the engine does, so that every test can ask which
configuration is in force, and records every command and question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.text_file import TextFileError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config import DaemonConfigError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_apply import (
    Request,
    Run,
    shown_diff,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_io import ConfigFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples

UNIT = """# /lib/systemd/system/docker.service
[Service]
ExecStart=/usr/sbin/dockerd -H fd://
ExecReload=/bin/kill -s HUP $MAINPID
"""
SHOW = "systemctl show --property=LoadState,ActiveState,SubState docker.service"
CAT = "systemctl cat docker.service"
GATHERING = [SHOW, CAT, "GET /info"]
VALIDATE = "/usr/sbin/dockerd --validate --config-file CANDIDATE"
RESTART, RELOAD = "systemctl restart docker.service", "systemctl reload docker.service"
RESET = "systemctl reset-failed docker.service"
JOURNAL = "journalctl --unit=docker.service --since=@1000 --lines=100 --no-pager --output=cat"
OLD_ENGINE = CommandResult(125, stderr="unknown flag: --validate\nSee 'dockerd --help'.")
NO_START = "Job for docker.service failed because the control process exited with error code.\nSee more."
SECRET = "hunter2"


class FakeHost:
    """A host with systemd and an engine that refuses files holding ``breaks`` (at a start) or ``ignores`` (reload)."""

    def __init__(self, path: Path, version: str = "28.5.2") -> None:
        self.path = path
        self.version = version
        self.calls: list[str] = []
        self.up = True
        self.has_systemd = True
        self.dockerd: str | None = "/usr/sbin/dockerd"
        self.unit = UNIT
        self.properties = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running"}
        self.containers: list[dict[str, Any]] = []
        self.swarm = "inactive"
        self.breaks = "breaks"
        self.ignores = "ignores"
        self.loaded = self.on_disk()
        self.events = 0
        self.several_events = False
        self.journal = "docker.service: Failed with result 'exit-code'.\nfailed to start daemon: no such thing\n"
        self.verdict = CommandResult(0, stderr="configuration OK")
        self.at: dict[str, Any] = {}
        self.clock = 1000.5

    def on_disk(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def run(self, command: Sequence[str], timeout: float) -> CommandResult:
        line = re.sub(r"\S*/\.daemon\.json\.\w+", "CANDIDATE", " ".join(command))
        self.calls.append(line)
        if line in self.at:
            happens = self.at.pop(line)
            if isinstance(happens, CommandResult):
                return happens
            happens()
        answers = {
            SHOW: CommandResult(0, "".join(f"{name}={value}\n" for name, value in self.properties.items())),
            CAT: CommandResult(0, self.unit),
            JOURNAL: CommandResult(0, self.journal),
            "/usr/sbin/dockerd --version": CommandResult(0, f"Docker version {self.version}, build abc\n"),
            RESET: CommandResult(0),
        }
        if line in answers:
            return answers[line]
        if "--validate" in line:
            return self.verdict
        if line == RESTART:
            self.up = self.breaks not in str(self.on_disk())
            self.loaded = self.on_disk() if self.up else None
            return CommandResult(0) if self.up else CommandResult(1, stderr=NO_START)
        if line == RELOAD:
            if self.ignores not in str(self.on_disk()):
                self.loaded = self.on_disk()
                self.events += 1
            return CommandResult(0)
        raise AssertionError(line)

    def program(self, name: str) -> str | None:
        assert name == "dockerd"
        return self.dockerd

    def systemd(self) -> bool:
        return self.has_systemd

    def text(self, path: str) -> str:
        raise AssertionError(path)

    def ask(self, path: str, timeout: float) -> Any:
        assert timeout >= 1
        self.calls.append(f"GET {path.partition('?')[0]}")
        if not self.up:
            raise EngineError("no answer from the Docker engine at /var/run/docker.sock: refused")
        if path == "/info":
            return {"ServerVersion": self.version, "Swarm": {"LocalNodeState": self.swarm}}
        if path == "/containers/json":
            return self.containers
        assert path.startswith("/events?since=1000.500000000&until=10")
        assert path.endswith(
            "&filters=%7B%22type%22%3A%20%5B%22daemon%22%5D%2C%20%22event%22%3A%20%5B%22reload%22%5D%7D"
        )
        if self.several_events:
            try:
                json.loads('{"a": 1}\n{"a": 2}')
            except ValueError as error:
                raise EngineError("the engine's answer is not JSON") from error
        return {"status": "reload"} if self.events else None

    def now(self) -> float:
        return self.clock

    def monotonic(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.clock += seconds


class Bench:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "daemon.json"
        self.path.write_text('{\n  "mtu": 1400\n}')
        self.host = FakeHost(self.path)
        self.run: Run | None = None

    @property
    def now(self) -> Any:
        return json.loads(self.path.read_text()) if self.path.exists() else None

    def __call__(self, config: dict[str, Any], **options: Any) -> Run:
        """Run it, and again where that must change nothing."""
        self.host.calls = []
        self.run = Run(ConfigFile(str(self.path)), self.host, Request(config, **options))
        self.run.converge()
        return self.run

    def refused(self, config: dict[str, Any], **options: Any) -> str:
        """Run it and return the refusal; file and engine must be what they were, and nothing left beside the file."""
        before, loaded = self.host.on_disk(), self.host.loaded
        with pytest.raises(DaemonConfigError) as refused:
            self(config, **options)
        assert self.run is not None
        assert (self.host.on_disk(), self.host.loaded) == (before, loaded)
        assert self.run.outcome.changed is False
        self.tidy()
        return str(refused.value).replace(str(self.path), "FILE")

    def tidy(self) -> None:
        assert {path.name for path in self.path.parent.iterdir()} <= {"daemon.json"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_nothing_differs_and_no_one_is_asked(bench: Bench) -> None:
    outcome = bench({"mtu": 1400}).outcome
    assert bench.host.calls == []
    assert (outcome.changed, outcome.changed_keys, outcome.engine_version) == (False, [], None)
    assert bench.path.read_text() == '{\n  "mtu": 1400\n}'  # not even its form


def test_a_doubled_key_is_read_as_the_engine_does_with_a_warning(bench: Bench) -> None:
    runtimes = '"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}'
    bench.path.write_text(f'{{\n  "log-driver": "json-file",\n  {runtimes},\n  "log-driver": "local"\n}}')
    warning = (
        f"{bench.path}: the key 'log-driver' appears twice, again at line 4, column 3. The engine uses the last value; "
        "a file that is written here has that one alone"
    )
    outcome = bench({"log-driver": "local"}).outcome
    assert (outcome.changed, outcome.warnings) == (False, [warning])
    outcome = bench({"debug": True}).outcome
    assert (outcome.changed_keys, outcome.warnings) == (["debug"], [warning])
    assert bench.path.read_text().count("log-driver") == 1 and '"log-driver": "local"' in bench.path.read_text()
    assert bench({"debug": True}).outcome.warnings == []


def test_a_reload_is_enough(bench: Bench) -> None:
    outcome = bench({"debug": True}, check_mode=True, folder=str(bench.path.parent)).outcome
    assert (outcome.changed, outcome.reloaded, outcome.restarted, outcome.validated) == (True, True, False, True)
    assert bench.now == {"mtu": 1400}
    assert bench.host.calls == [*GATHERING, VALIDATE]
    bench.tidy()
    outcome = bench({"debug": True}).outcome
    assert (outcome.changed, outcome.reloaded, outcome.restarted, outcome.validated) == (True, True, False, True)
    assert bench.host.calls == [*GATHERING, VALIDATE, RELOAD, "GET /events", "GET /info"]
    assert bench.path.read_bytes() == bench.host.loaded == b'{\n  "mtu": 1400,\n  "debug": true\n}\n'
    assert outcome.engine_version == "28.5.2"
    bench.tidy()
    assert bench({"debug": True}).outcome.changed is False


def test_a_restart_is_needed_and_nothing_runs(bench: Bench) -> None:
    outcome = bench({"mtu": 1500, "debug": True}).outcome
    assert bench.host.calls == [*GATHERING, "GET /containers/json", VALIDATE, RESTART, "GET /info"]
    assert (outcome.reloaded, outcome.restarted) == (False, True)
    assert outcome.changed_keys == ["mtu", "debug"]
    assert bench.now == json.loads(bench.host.loaded or b"") == {"mtu": 1500, "debug": True}
    assert bench({"mtu": None, "debug": None}, restart="always").outcome.restarted is True
    assert bench.host.calls == [*GATHERING, VALIDATE, RESTART, "GET /info"]
    assert bench.now == {}


def test_a_unit_without_reload_is_restarted(bench: Bench) -> None:
    bench.host.unit = UNIT.replace("ExecReload", "ExecStop")
    assert bench({"debug": True}).outcome.restarted is True


def test_containers_are_not_stopped_without_consent(bench: Bench) -> None:
    bench.host.containers = [{"Names": ["/train"]}, {"Names": ["/db", "/x/db"]}, {"Id": "0123456789abcdef"}]
    message = (
        "Nothing was written: the engine reads mtu only when it starts, and a restart stops these running containers:"
        " 0123456789ab, db, train. Stop them first, or allow the restart with restart: always"
    )
    assert bench.refused({"mtu": 1500, "debug": True}) == message
    assert bench.refused({"mtu": 1500}, check_mode=True) == message
    assert bench({"debug": True}).outcome.reloaded is True
    assert bench({"mtu": 1500}, restart="always").outcome.restarted is True
    bench.host.containers = [{"Names": [f"/c{number:02}"]} for number in range(25)]
    assert "c18, c19 and 5 more. Stop" in bench.refused({"mtu": 1})
    bench.host.unit = UNIT.replace("ExecReload", "ExecStop")
    assert bench.refused({"debug": False}).startswith("Nothing was written: the engine reads debug only when it starts")


def test_never(bench: Bench) -> None:
    bench.host.containers = [{"Names": ["/train"]}]
    outcome = bench({"mtu": 1500}, restart="never").outcome
    assert bench.host.calls == [*GATHERING, VALIDATE]
    assert (outcome.changed, outcome.restart_needed, outcome.restarted) == (True, True, False)
    assert bench.now == {"mtu": 1500}
    assert bench.host.loaded != bench.host.on_disk()
    bench.host.up = False
    assert bench({"mtu": 1501}, restart="never").outcome.restart_needed is True


def test_no_engine_yet(bench: Bench) -> None:
    bench.path.unlink()
    bench.host.up, bench.host.dockerd, bench.host.properties = False, None, {"LoadState": "not-found"}
    outcome = bench({"debug": True}).outcome
    assert bench.host.calls == [SHOW, "GET /info"]
    assert (outcome.changed, outcome.validated, outcome.restarted, outcome.engine_version) == (True, False, False, None)
    assert bench.path.read_bytes() == b'{\n    "debug": true\n}\n'
    bench.host.has_systemd = False
    assert bench({"debug": False}).outcome.changed is True
    assert bench.host.calls == ["GET /info"]


@pytest.mark.parametrize(
    "state", [("inactive", "dead"), ("failed", "failed"), ("activating", "auto-restart"), ("maintenance", "x")]
)
def test_a_stopped_engine_is_not_started(bench: Bench, state: tuple[str, str]) -> None:
    bench.host.up = False
    bench.host.properties.update(ActiveState=state[0], SubState=state[1])
    outcome = bench({"mtu": 1500}).outcome
    # Its socket is not asked, which would start it.
    assert bench.host.calls == [SHOW, CAT, "/usr/sbin/dockerd --version", VALIDATE]
    assert (outcome.changed, outcome.restarted, outcome.engine_version) == (True, False, "28.5.2")


def test_a_file_is_made_only_for_something(bench: Bench) -> None:
    bench.path.unlink()
    assert bench({}).outcome.changed is False
    assert bench({"debug": None}).outcome.changed is False
    assert bench.now is None
    bench.path.write_text("")
    assert bench({}).outcome.changed is False
    assert bench({"debug": True}).outcome.changed is True
    assert bench.now == {"debug": True}


def test_an_engine_that_cannot_be_asked(bench: Bench) -> None:
    bench.host.up = False
    assert bench.refused({"debug": True}) == (
        "Nothing was written: docker.service runs, but its engine does not answer (no answer from the Docker engine at"
        " /var/run/docker.sock: refused), so which containers run cannot be queried. Check: journalctl -u"
        " docker.service; or allow a restart nevertheless with restart: always"
    )
    outcome = bench({"debug": True}, restart="always").outcome
    assert bench.host.calls == [*GATHERING, "/usr/sbin/dockerd --version", VALIDATE, RESTART, "GET /info"]
    assert outcome.restarted is True


def test_containers_that_cannot_be_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(path: str, timeout: float) -> Any:
        if path == "/info":
            return {}
        raise EngineError("permission denied", 403)

    monkeypatch.setattr(bench.host, "ask", ask)
    assert bench.refused({"mtu": 1}) == (
        "Nothing was written: which containers run cannot be queried: permission denied"
    )


def test_an_engine_that_systemd_does_not_know(bench: Bench) -> None:
    bench.host.properties = {"LoadState": "not-found"}
    assert bench.refused({"debug": True}) == (
        "Nothing was written: an engine runs on this host, but systemd has no docker.service that could be restarted."
        " Name its unit with service, or set restart: never to write the file alone and restart the engine yourself"
    )
    assert bench({"debug": True}, restart="never").outcome.restart_needed is True


def test_systemd_that_does_not_answer(bench: Bench) -> None:
    bench.host.at[SHOW] = CommandResult(1, stderr="Failed to connect to bus")
    assert bench.refused({"debug": True}) == (
        "Nothing was written: systemctl show docker.service failed: Failed to connect to bus"
    )


def test_a_start_that_fails_is_rolled_back(bench: Bench) -> None:
    bench.path.chmod(0o640)
    assert bench.refused({"storage-driver": "breaks"}) == (
        "The engine did not apply the new FILE: systemctl restart docker.service failed: Job for docker.service"
        " failed because the control process exited with error code. It reported: failed to start daemon: no such"
        " thing. The previous configuration is in force again"
    )
    assert bench.host.calls == [
        *GATHERING, "GET /containers/json", VALIDATE, RESTART, JOURNAL, RESET, RESTART, "GET /info",
    ]  # fmt: skip
    assert bench.run is not None
    assert bench.run.outcome.rolled_back is True
    assert (bench.host.up, bench.path.stat().st_mode & 0o777) == (True, 0o640)


def test_a_start_that_fails_without_a_former_file(bench: Bench) -> None:
    bench.path.unlink()
    bench.host.loaded = None
    bench.host.journal = ""
    assert bench.refused({"storage-driver": "breaks"}) == (
        "The engine did not apply the new FILE: systemctl restart docker.service failed: Job for docker.service"
        " failed because the control process exited with error code. The previous configuration is in force again"
    )
    assert bench.now is None


def test_an_engine_that_starts_and_never_answers(bench: Bench) -> None:
    def silent() -> None:
        bench.host.breaks = "{"
        bench.host.at[RESTART] = CommandResult(0)
        bench.host.up = False

    bench.host.at[VALIDATE] = silent
    bench.host.at[RESET] = lambda: setattr(bench.host, "breaks", "breaks")
    assert bench.refused({"mtu": 1}, timeout=5) == (
        "The engine did not apply the new FILE: it does not answer within 5 seconds: no answer from the Docker"
        " engine at /var/run/docker.sock: refused. It reported: failed to start daemon: no such"
        " thing. The previous configuration is in force again"
    )
    assert bench.host.calls.count("GET /info") == 1 + 21 + 1
    assert bench.host.clock == 1005.5


def test_an_engine_that_does_not_come_back_at_all(bench: Bench) -> None:
    bench.host.breaks = "{"
    with pytest.raises(DaemonConfigError) as failed:
        bench({"mtu": 1})
    assert str(failed.value).endswith(
        " It reported: failed to start daemon: no such thing. The previous one was restored, but the engine also "
        "fails with it: systemctl restart docker.service failed: Job for docker.service failed because the control"
        " process exited with error code. Check: journalctl -u docker.service"
    )
    assert bench.now == {"mtu": 1400}
    bench.tidy()


def test_a_restart_without_end(bench: Bench) -> None:
    bench.host.at[RESTART] = CommandResult(124, stderr="no answer within 120 seconds")
    assert bench.refused({"mtu": 1}).startswith(
        "The engine did not apply the new FILE: systemctl restart docker.service failed: no answer within 120"
        " seconds. It reported: failed"
    )
    bench.host.at[RESTART] = CommandResult(1)
    assert "systemctl restart docker.service failed: status 1. It reported" in bench.refused({"mtu": 1})


def test_a_reload_that_the_engine_only_logs(bench: Bench) -> None:
    bench.host.journal = 'level=error msg="Error reconfiguring the daemon" error="no runtime ignores"\n'
    assert bench.refused({"default-runtime": "ignores"}) == (
        "The engine did not apply the new FILE: it was asked to reload it and did not. It reported: Error"
        " reconfiguring the daemon: no runtime ignores. The previous configuration is in force again"
    )
    assert bench.host.calls[-4:] == ["GET /events", JOURNAL, RELOAD, "GET /info"]
    assert bench.host.clock == 1015.5
    assert RESTART not in bench.host.calls


def test_two_reloads_at_once(bench: Bench) -> None:
    bench.host.several_events = True
    assert bench({"debug": True}).outcome.reloaded is True


def test_a_foreign_edit_before_and_after(bench: Bench) -> None:
    def edit() -> None:
        bench.path.write_text('{"theirs": 1}')

    bench.host.at[VALIDATE] = edit
    with pytest.raises(DaemonConfigError) as refused:
        bench({"mtu": 1})
    assert str(refused.value) == (
        f"{bench.path} was changed by another program at the same time, so nothing was written. Find out what else "
        "writes"
        " it, and run this again"
    )
    assert bench.now == {"theirs": 1}
    assert RESTART not in bench.host.calls
    bench.tidy()
    bench.host.at[JOURNAL] = edit
    with pytest.raises(DaemonConfigError) as refused:
        bench({"storage-driver": "breaks"})
    assert str(refused.value).endswith(
        f" {bench.path} was changed by another program since, so the previous one was not restored. Fix it by hand"
    )
    assert bench.run is not None
    assert (bench.run.outcome.changed, bench.run.outcome.rolled_back) == (True, False)
    assert bench.now == {"theirs": 1}
    bench.tidy()


def test_a_file_that_cannot_be_put_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: ConfigFile, candidate: str, expected: bytes | None) -> None:
        raise TextFileError("read-only file system")

    bench.host.at[JOURNAL] = lambda: monkeypatch.setattr(ConfigFile, "commit", cannot)
    with pytest.raises(
        DaemonConfigError, match=r"\. The previous one could not be restored: read-only file system\. Fix"
    ):
        bench({"storage-driver": "breaks"})


def test_the_verdict_of_the_engine(bench: Bench) -> None:
    bench.host.verdict = CommandResult(
        1, stderr=f"unable to configure the Docker daemon with file {bench.path}: conflict labels for a=b and a=c"
    )
    message = (
        "Nothing was written: the engine refuses the new FILE: unable to configure the Docker daemon with file FILE:"
        " conflict labels for a=b and a=c"
    )
    assert bench.refused({"labels": ["a=b", "a=c"]}) == message
    assert bench.host.calls == [*GATHERING, VALIDATE]
    assert bench.refused({"labels": ["a=b", "a=c"]}, check_mode=True, folder=str(bench.path.parent)) == message
    assert bench({"labels": ["a=b", "a=c"]}, validate=False).outcome.validated is False
    bench.host.verdict = OLD_ENGINE
    assert bench({"debug": True}).outcome.validated is False
    bench.host.dockerd = "/opt/dockerd"  # the program of the unit is asked, not any other
    bench({"debug": False})
    assert VALIDATE in bench.host.calls


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ({"debgu": True}, {},
         "debgu: is not a key of daemon.json; the engine refuses or ignores it, perhaps 'debug' is meant"),
        ({"mtu": "1400"}, {}, "mtu: must be a whole number without quotes, at least 0, not '1400'"),
        ({"default-stop-timeout": 1}, {},
         "default-stop-timeout: is supported by engines from 29.7 on, but the engine here is 28.5"),
        ({"hosts": ["fd://"]}, {},
         "hosts: is also set by the flag --host in /lib/systemd/system/docker.service, so dockerd would not start;"
         " leave hosts out, or start dockerd without -H by a drop-in that resets ExecStart"),
        ({"live-restore": True}, {"swarm": True},
         "live-restore: is incompatible with swarm mode, so the engine cannot join a swarm; set it to false or null"),
        ({"default-address-pools": [{"base": "10.10.0.0", "size": 24}]}, {},
         "default-address-pools[0].base: must be a network with its mask, such as '10.200.0.0/16', not '10.10.0.0', or"
         " the engine would not start"),
        ({"bip": "10.10.0.1/24", "default-address-pools": [{"base": "10.10.0.0/16", "size": 24}]}, {},
         "default-address-pools[0].base: 10.10.0.0/16 overlaps bip (10.10.0.1/24): the engine would not start if a"
         " network has these addresses already, and has none for networks if bip covers the pool; set bip outside of"
         " all pools, or to null, so that docker0 takes its addresses from the first pool"),
        ({"a": {"b": [float("nan")]}}, {}, "config.a.b[0]: must be a number, not nan"),
    ],
)  # fmt: skip
def test_keys_are_judged_before_anything_is_written(
    bench: Bench, config: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    assert bench.refused(config, **options) == f"FILE was left as it is: {message}"
    assert not [call for call in bench.host.calls if call.startswith(("systemctl re", "/usr"))]


def test_all_problems_at_once(bench: Bench) -> None:
    assert bench.refused({"debgu": True, "mtu": None, "hosts": 1}).split("\n- ") == [
        "FILE was left as it is: 3 problems",
        "debgu: is not a key of daemon.json; the engine refuses or ignores it, perhaps 'debug' is meant",
        "hosts: must be a list, not 1",
        "hosts: is also set by the flag --host in /lib/systemd/system/docker.service, so dockerd would not start; leave"
        " hosts out, or start dockerd without -H by a drop-in that resets ExecStart",
    ]


@pytest.mark.parametrize("state", ["active", "pending", "locked", "error"])
def test_an_engine_in_a_swarm_is_protected_unasked(bench: Bench, state: str) -> None:
    assert bench({"live-restore": True}).outcome.changed is True
    bench.host.swarm = state
    bench.path.write_text('{"debug": false}')
    assert bench.refused({"live-restore": True}).startswith("FILE was left as it is: live-restore: is incompatible")
    assert bench({"debug": True}).outcome.changed is True


def test_what_is_in_the_file_already_is_judged_for_a_swarm(bench: Bench) -> None:
    bench.path.write_text('{"live-restore": true}')
    assert bench.refused({}, swarm=True).startswith("FILE was left as it is: live-restore: is incompatible with swarm")
    assert bench({"live-restore": False}, swarm=True).outcome.reloaded is True


def test_a_unit_that_reads_another_file(bench: Bench) -> None:
    bench.host.unit = UNIT.replace("fd://", "fd:// --config-file=/srv/d.json")
    assert bench.refused({"debug": True}) == (
        "Nothing was written: the engine does not read FILE: --config-file in /lib/systemd/system/docker.service names"
        " /srv/d.json. Set path: /srv/d.json"
    )


def test_foreign_keys_that_are_unknown_are_kept_and_reported(bench: Bench) -> None:
    bench.path.write_text('{"theirs": 1, "mtu": "x", "default-stop-timeout": 3}')
    outcome = bench({"debug": True}).outcome
    assert bench.now == {"theirs": 1, "mtu": "x", "default-stop-timeout": 3, "debug": True}
    assert outcome.warnings == [
        f"{bench.path} holds keys that were there before and that the engine may refuse: theirs, default-stop-timeout"
    ]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]", b'{"a": {}, "a": null}'])
def test_a_file_that_cannot_be_read_is_never_overwritten(bench: Bench, content: bytes) -> None:
    bench.path.write_bytes(content)
    assert bench.refused({"debug": True}, restart="always").startswith("FILE was left as it is: ")
    assert bench.host.calls == []


def test_secrets_are_in_no_message_and_no_diff(bench: Bench) -> None:
    url = f"http://me:{SECRET}@proxy:3128"
    bench.path.write_text(json.dumps({"proxies": {"http-proxy": url}}))
    bench.host.verdict = CommandResult(1, stderr=f"failed to start daemon: proxy {url} and {SECRET}")
    message = bench.refused({"log-opts": {"splunk-token": "t0ps3cret"}, "mtu": 1})
    assert message.endswith("proxy http://********@proxy:3128 and ********")
    bench.host.verdict = CommandResult(0)
    bench.host.loaded = bench.host.on_disk()
    bench.host.journal = f"failed to start daemon: breaks t0ps3cret {url}"
    message = bench.refused({"storage-opts": ["breaks"], "log-opts": {"splunk-token": "t0ps3cret"}})
    assert "breaks ******** http://********@proxy:3128" in message
    run = bench({"proxies": {"http-proxy": url.replace("me", "you")}, "mtu": 1})
    shown = json.dumps(shown_diff(str(bench.path), run.outcome))
    assert SECRET not in shown
    assert "********@proxy:3128" in shown
    assert SECRET in bench.path.read_text()
    run = bench({"proxies": {"http-proxy": url}})
    diff = shown_diff("FILE", run.outcome)
    assert diff["before"] == diff["after"]
    assert diff["after_header"] == "FILE (a masked value differs)"


@pytest.mark.parametrize(("url", "mode"), [("http://me:pw@proxy", 0o600), ("http://proxy", 0o644)])
def test_a_new_file_with_a_credential_is_private(bench: Bench, url: str, mode: int) -> None:
    bench.path.unlink()
    bench({"proxies": {"http-proxy": url}})
    assert bench.path.stat().st_mode & 0o777 == mode


def test_a_copy_of_the_former_file(bench: Bench) -> None:
    seen: list[str] = []

    def backup() -> str:
        seen.append(bench.path.read_text())
        return "COPY"

    assert bench({"debug": True}, backup=backup).outcome.backup_file == "COPY"
    assert seen == ['{\n  "mtu": 1400\n}']
    assert bench({"debug": True}, backup=backup).outcome.backup_file is None
    bench({"debug": False}, backup=backup, check_mode=True, folder=str(bench.path.parent))
    bench.path.unlink()
    assert bench({"debug": True}, backup=backup).outcome.backup_file is None
    assert len(seen) == 1


names = st.sampled_from(["debug", "mtu", "log-opts", "labels", "proxies", "hosts", "storage-driver", "x"]) | st.text()
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["breaks", "ignores"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)
contents = st.binary() | st.dictionaries(names, anything, max_size=3).map(lambda config: json.dumps(config).encode())


@given(contents, st.dictionaries(names, anything, max_size=3), st.sampled_from(["never", "if_idle", "always"]))
@settings(
    deadline=None,
    derandomize=True,
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_whatever_is_there_and_asked_for(tmp_path: Path, content: bytes, config: dict[str, Any], restart: str) -> None:
    bench = Bench(tmp_path)
    bench.path.write_bytes(content)
    bench.host.loaded = content
    try:
        outcome = bench(config, restart=restart, timeout=1).outcome
    except DaemonConfigError as refused:
        # Words, and file and engine as before; an engine that cannot start with the former file says so.
        assert bench.path.read_bytes() == content
        assert bench.host.loaded == content or "the engine also fails with it" in str(refused)
    else:
        if outcome.restarted or outcome.reloaded:
            assert bench.host.loaded == bench.path.read_bytes()
        if not outcome.changed:
            assert bench.path.read_bytes() == content
        assert bench(config, restart=restart).outcome.changed is False
    bench.tidy()


usable = st.fixed_dictionaries(
    {},
    optional={
        "debug": st.booleans() | st.none(),
        "mtu": st.integers(0, 9000) | st.none(),
        "labels": st.lists(st.sampled_from(["a=b", "c=d"]), max_size=2),
        "log-opts": st.fixed_dictionaries(
            {}, optional={"max-size": st.sampled_from(["1m", None]), "my-token": st.sampled_from([SECRET, None])}
        ),
        "storage-driver": st.sampled_from(["overlay2", "breaks"]),
        "default-runtime": st.sampled_from(["nvidia", "ignores"]),
    },
)


@given(usable, usable, st.sampled_from(["never", "if_idle", "always"]), st.sampled_from(["stopped", "idle", "busy"]))
@settings(
    deadline=None,
    derandomize=True,
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_check_mode_predicts_the_run_and_a_failure_changes_nothing(
    tmp_path: Path, found: dict[str, Any], config: dict[str, Any], restart: str, engine: str
) -> None:
    bench = Bench(tmp_path)
    bench.path.write_text(json.dumps(found))
    bench.host.loaded = bench.host.on_disk()
    bench.host.containers = [{"Names": ["/train"]}] if engine == "busy" else []
    if engine == "stopped":
        bench.host.up, bench.host.properties["ActiveState"] = False, "inactive"

    def outcome(**options: Any) -> tuple[Any, ...]:
        run = None
        try:
            run = bench(config, restart=restart, timeout=1, **options)
        except DaemonConfigError as refused:
            assert SECRET not in str(refused)
            return (str(refused),)
        done = run.outcome
        assert SECRET not in json.dumps(shown_diff("x", done))
        return done.changed, done.changed_keys, done.reloaded, done.restarted, done.restart_needed, done.after

    before, loaded = bench.host.on_disk(), bench.host.loaded
    predicted = outcome(check_mode=True, folder=str(tmp_path))
    assert (bench.host.on_disk(), bench.host.loaded) == (before, loaded)
    bench.tidy()
    done = outcome()
    bench.tidy()
    if len(done) == 1:
        assert bench.host.on_disk() == before
        assert bench.host.loaded == loaded or "the engine also fails with it" in done[0]
        # What check mode cannot know is what the engine makes of the file.
        assert predicted == done or done[0].startswith("The engine did not apply the new ")
    else:
        assert predicted == done
        assert engine == "idle" or not done[3] or restart == "always"
        assert bench.now == (done[5] if done[0] else json.loads(before or b""))
