# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of training_job, with a script of replies in place of the module."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.training_job import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.arguments import ARGUMENTS, spec_of
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import spec_hash
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following

ARGS = {"name": "digits", "jobs_dir": "/srv/jobs", "container": "c", "environment": {"T": "s3cret"}, "rerun": True}
VARS = {"inventory_hostname": "lab1"}


def reply(state: str, log: str = "", changed: bool = False, offset: int = 0, **change: Any) -> dict[str, Any]:
    job = {"name": "digits", "state": state, "run": 1, "hosts": ["lab2"], "started_at": "t0", "finished_at": "t1"}
    job.update(world_size_seen=3, nodes_seen=3, reason="", failed_node=None)
    job.update(change.pop("job", {}))
    size = change.pop("size", offset)
    return {
        "changed": changed,
        "job": job,
        "log": log,
        "log_offset": offset,
        "log_size": size,
        "log_path": "/srv/jobs/digits/launcher.log",
        "invocation": {"module_args": {"environment": {"T": "s3cret"}}},
        **change,
    }


class Follower(ActionModule):
    """The action with a script of replies, a clock of its own and its display kept."""

    def __init__(self, script: list[Any], check_mode: bool = False, **args: Any) -> None:
        self._task = SimpleNamespace(args={**ARGS, **args}, check_mode=check_mode, async_val=0, action="training_job")
        self.script = list(script)
        self.requested: list[dict[str, Any]] = []
        self.waits: list[float] = []
        self.resets = 0
        self._connection = SimpleNamespace(reset=self._reset, _shell=SimpleNamespace(tmpdir=None))
        self._display = None
        self._cleanup_remote_tmp = False

    def _reset(self) -> None:
        self.resets += 1

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def _clock(self) -> float:
        return sum(self.waits)

    def _execute_module(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        # The first call may start the job; what follows it is asked of the module that cannot.
        assert module_name == "swarmspeed.cluster.training_job" + ("_follow" if self.requested else "")
        self.requested.append(module_args)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(following, "display", SimpleNamespace(display=lines.append))
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    return lines


def test_follows_a_started_job_to_its_end(shown: list[str]) -> None:
    action = Follower(
        [
            reply("running", changed=True, log="lab2: early\n", offset=12, size=12),
            reply("running", log="lab2: early\n", offset=12),
            reply("running", offset=12),
            reply("succeeded", log="lab2: late\nlast", offset=27),
        ]
    )
    result = action.run(task_vars=VARS)
    assert not result.get("failed")
    assert (result["changed"], result["log"], result["job"]["state"]) == (True, "", "succeeded")
    assert "Ctrl-C ends only this view" in shown[0]
    assert "launch.yml attaches to it again" in shown[0]
    assert "`touch /srv/jobs/digits/stop` on lab1" in shown[0]
    assert shown[1:] == ["lab2 | early", "lab2 | late", "last", "Job digits succeeded: 3 rank(s) on 3 node(s)."]
    assert action.requested[0]["log_offset"] == -8192
    gathered = {"name": "digits", "jobs_dir": "/srv/jobs", "wait": 10.0}
    assert action.requested[1:] == [{**gathered, "log_offset": offset} for offset in (0, 12, 12)]
    assert action.waits == [2.0, 2.0]
    assert "s3cret" not in str(result)


def test_attaches_to_a_running_job(shown: list[str]) -> None:
    action = Follower([reply("running", log="old\n", offset=4), reply("succeeded", offset=4)])
    result = action.run(task_vars=VARS)
    assert result["changed"] is False
    assert shown[0].startswith("Job digits is running since t0.")
    assert shown[1] == "old"


def test_a_finished_job_is_not_followed(shown: list[str]) -> None:
    action = Follower([reply("succeeded")])
    result = action.run(task_vars=VARS)
    assert (result["changed"], len(action.requested), action.waits) == (False, 1, [])
    assert shown == ["Job digits succeeded at t1: not started again."]


def test_a_failed_job_is_one_message(shown: list[str]) -> None:
    failed = reply("failed", log="boom\n", offset=5, job={"reason": "rank 1 on lab2 ended.", "failed_node": "lab2"})
    result = Follower([reply("running", changed=True), failed]).run(task_vars=VARS)
    assert result["failed"] is True
    assert result["changed"] is True
    assert result["msg"] == (
        "Training job digits failed: rank 1 on lab2 ended. Log: lab1:/srv/jobs/digits/launcher.log"
    )
    assert shown[-1] == "boom"


@pytest.mark.parametrize("state", ["failed", "stopped", "lost"])
@pytest.mark.parametrize("follow", [True, False])
def test_a_job_that_ended_badly_at_once(shown: list[str], state: str, follow: bool) -> None:
    result = Follower([reply(state, changed=True)], follow=follow).run(task_vars=VARS)
    assert (result["failed"], result["changed"]) == (True, True)
    assert result["msg"].startswith(f"Training job digits {'failed' if state == 'failed' else 'was ' + state}")


@pytest.mark.parametrize(
    ("args", "check_mode", "state"),
    [
        ({}, True, "running"),
        ({}, True, "failed"),
        ({"follow": "no"}, False, "running"),
        ({"state": "stopped"}, False, "stopped"),
        ({"state": "absent"}, False, "absent"),
        ({"observe": True}, False, "failed"),
    ],
)
def test_asks_once_and_does_not_judge(shown: list[str], args: dict[str, Any], check_mode: bool, state: str) -> None:
    action = Follower([reply(state, changed=True, log="x\n")], check_mode=check_mode, **args)
    result = action.run(task_vars=VARS)
    assert "failed" not in result
    assert (len(action.requested), result["log"], shown) == (1, "x\n", [])


def test_follow_timeout_leaves_the_job_running(shown: list[str]) -> None:
    action = Follower([reply("running", changed=True)] + [reply("running")] * 5, follow_timeout="3")
    result = action.run(task_vars=VARS)
    assert result["failed"] is True
    assert result["msg"].startswith("Job digits has not ended within 3 s. It keeps running: launch.yml attaches")
    assert sum(action.waits) >= 3


@pytest.mark.parametrize("value", ["soon", -1, "nan", "inf", None])
def test_bad_follow_timeout(shown: list[str], value: Any) -> None:
    action = Follower([], follow_timeout=value)
    with pytest.raises(AnsibleError, match=r"follow_timeout: .* is not a number of seconds, 0 or more"):
        action.run(task_vars=VARS)
    assert action.requested == []  # refused before anything was started


def test_bad_follow(shown: list[str]) -> None:
    with pytest.raises(AnsibleError, match="follow and observe are true or false, not 'perhaps'"):
        Follower([], follow="perhaps").run(task_vars=VARS)


def test_a_broken_connection_is_tried_again(shown: list[str]) -> None:
    broken = [AnsibleConnectionFailure("timed out"), {"failed": True, "msg": "no answer from the Docker engine"}]
    action = Follower([reply("running", changed=True), *broken, reply("succeeded", log="end\n", offset=4)])
    result = action.run(task_vars=VARS)
    assert not result.get("failed")
    assert action.waits == [2.0, 4.0]
    assert action.resets == 1
    assert "Job digits: no answer (timed out); trying again in 2 s." in shown
    assert ["wait" in requested for requested in action.requested] == [False, True, True, True]  # never started twice


def test_a_connection_that_stays_broken(shown: list[str]) -> None:
    action = Follower([reply("running", changed=True)] + [AnsibleConnectionFailure("timed out")] * 6)
    with pytest.raises(AnsibleConnectionFailure) as caught:
        action.run(task_vars=VARS)
    assert "lost contact after 5 more tries (timed out). It keeps running" in str(caught.value)
    assert action.script == []


def test_a_refusal_of_the_module_is_passed_on(shown: list[str]) -> None:
    refused = {"failed": True, "msg": "no", "invocation": {"module_args": {"environment": {"T": "s3cret"}}}}
    result = Follower([refused]).run(task_vars=VARS)
    assert (result["failed"], result["msg"]) == (True, "no")
    assert result["invocation"]["module_args"]["environment"] == {"T": "(not shown)"}


def test_a_console_far_behind_jumps_ahead_and_reports_it(shown: list[str]) -> None:
    action = Follower(
        [
            reply("running", log="a\n", offset=2, size=5_000_000),
            reply("succeeded", log="z\n", offset=5_000_000),
        ]
    )
    action.run(task_vars=VARS)
    assert action.requested[1]["log_offset"] == -8192
    assert any("bytes of the log are not shown" in line for line in shown)


def test_ranks_that_no_one_saw_are_not_counted(shown: list[str]) -> None:
    job = {"world_size_seen": None, "nodes_seen": None, "nodes_expected": 3}
    Follower([reply("running", changed=True, job=job), reply("succeeded", job=job)]).run(task_vars=VARS)
    assert shown[-1] == "Job digits succeeded: its command ended well on 3 node(s)."


def test_another_run_in_its_place_is_an_error(shown: list[str]) -> None:
    action = Follower([reply("running", changed=True), reply("running", job={"run": 2})])
    with pytest.raises(AnsibleError, match=r"Job digits, run 1, was replaced meanwhile by someone else's run\."):
        action.run(task_vars=VARS)


def test_ctrl_c_waits_until_a_line_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def pressed(words: str) -> None:
        # To this thread, as the action's process has no other: beside xdist's the signal would go to that one.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        printed.append(words)

    monkeypatch.setattr(following, "display", SimpleNamespace(display=pressed))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts us in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            following.say("whole")
    finally:
        signal.signal(signal.SIGINT, before)
    assert printed == ["whole"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


class Dead(Follower):
    """A host that is dead: each answer that is no reply takes as long as ssh takes to give up."""

    def __init__(self, script: list[Any], seconds: list[float]) -> None:
        super().__init__(script)
        self.seconds, self.spent = list(seconds), 0.0

    def _clock(self) -> float:
        return super()._clock() + self.spent

    def _execute_module(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        self.spent += self.seconds.pop(0)
        return super()._execute_module(module_name, module_args, task_vars)


@pytest.mark.parametrize(
    ("seconds", "tries"),
    [
        # Noticed; then new connections end after Ansible's 10 s, or 20, or at once with no route.
        ([30, 10, 10, 10, 10, 10], 1),
        ([20, 20, 20, 20, 20, 20], 1),
        ([20, 3, 3, 3, 3, 3], 2),
    ],
)
def test_a_host_that_died_is_given_up_within_the_minute(shown: list[str], seconds: list[float], tries: int) -> None:
    action = Dead([reply("running", changed=True), *[AnsibleConnectionFailure("timed out")] * 6], [0.1, *seconds])
    with pytest.raises(AnsibleConnectionFailure, match=f"lost contact after {tries} more tries"):
        action.run(task_vars=VARS)
    assert action._clock() < 50
    assert len(shown) == 1 + tries


def test_a_poll_that_hangs_is_one_that_gave_no_answer(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "ASK_LIMIT", 0.2)

    class Hanging(Follower):
        def _execute_module(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
            if len(self.requested) == 1:
                self.requested.append(module_args)
                threading.Event().wait(30)
            return super()._execute_module(module_name, module_args, task_vars)

    action = Hanging([reply("running", changed=True), reply("succeeded")])
    assert action.run(task_vars=VARS)["job"]["state"] == "succeeded"
    assert "Job digits: no answer (no answer within 0.2 s); trying again in 2 s." in shown


# A job that succeeded before

KEY = "of this run"
JOB: dict[str, Any] = {"name": "digits", "jobs_dir": "/srv/jobs", "container": "c", "rerun": False, "follow": False}
SPEC: dict[str, Any] = {
    "command": ["deepspeed", "train.py"],
    "world_size": 3,
    "nodes": 3,
    "environment": {"T": "s3cret"},
}


def recorded(key: str = KEY, **change: Any) -> dict[str, Any]:
    given = ArgumentSpecValidator(ARGUMENTS).validate({**JOB, **SPEC, **change}).validated_parameters
    return {"spec": keyed_digest(spec_hash(spec_of(given)).encode(), key), "finished_at": "t1"}


def decide(known: dict[str, Any], check_mode: bool = True, key: str = KEY, **change: Any) -> tuple[Any, Follower]:
    action = Follower([reply("succeeded")], check_mode, **{**JOB, **SPEC, **change, "recorded": known})
    return action.run(task_vars={**VARS, "_preflight_digest_key": key}), action


def test_of_a_job_that_succeeded_as_it_is_specified_the_host_is_not_asked(shown: list[str]) -> None:
    # As Jinja gives it: numbers as text, and paths and lists of the play.
    result, action = decide(recorded(), world_size="3")
    job = {"name": "digits", "state": "succeeded", "finished_at": "t1"}
    assert action.requested == [] and result == {"changed": False, "todo": "none", "job": job}
    assert shown == ["Job digits succeeded at t1: not started again."]


@pytest.mark.parametrize(
    ("known", "change"),
    [
        ({}, {}),
        (recorded(), {"command": ["deepspeed", "other.py"]}),
        (recorded(), {"environment": {"T": "another"}}),
        (recorded(), {"rerun": True}),
        (recorded(), {"key": "of another run"}),
        (recorded(key=""), {"key": ""}),
        (recorded(), {"check_mode": False}),
        (recorded(), {"observe": True}),
        (recorded(), {"state": "absent"}),
        (recorded(), {"world_size": "three"}),
        (recorded(), {"world_size": 0}),
        (recorded(), {"nosuch": 1}),
    ],
)
def test_otherwise_the_host_is_asked_and_gets_no_record(known: dict[str, Any], change: dict[str, Any]) -> None:
    _result, action = decide(known, **change)
    assert len(action.requested) == 1 and "recorded" not in action.requested[0]


def test_gpus_and_nccl_are_shown_beside_the_log(shown: list[str]) -> None:
    """From the state that each look returns; nothing more is asked."""
    row = [0, 97.0, 98.0, 71 << 30, 80 << 30, 612.3, 700.0, 64.0]
    members = [{"name": "lab2", "slots": [0], "first_rank": 0}]
    nodes = {"lab2": {"network": "Socket", "devices": ["eth0"], "interface": "=eth0", "hcas": ""}}
    found = {"size": 1, "connected": 1, "rings": True, "nodes": nodes}
    job = {"members": members, "gpus": {"lab2": [row]}, "nccl": found, "world_size_expected": 1}
    action = Follower(
        [
            reply("running", changed=True),
            reply("running", "lab2: a\n", job=job),
            reply("succeeded", job={"nccl": found, "world_size_expected": 1}),
        ]
    )
    action.run(task_vars=VARS)
    assert shown[1:-1] == [
        "lab2 | a",
        "digits: NCCL has connected 1 of 1 ranks, all rings: sockets on eth0 (lab2).",
        "digits: 1 GPU: 97 % busy, 71 of 80 GiB, 612 of 700 W, 64 °C",
    ]
    assert len(action.requested) == 3


def test_gpus_that_a_node_forged_are_refused(shown: list[str]) -> None:
    action = Follower([reply("running", changed=True), reply("running", job={"gpus": {"lab2": [[0, "x"]]}})])
    with pytest.raises(
        AnsibleError, match=r"lab1: training_job\.job\.gpus\[lab2\]\[0\]\[1\] is 'x', not a finite number"
    ):
        action.run(task_vars=VARS)
