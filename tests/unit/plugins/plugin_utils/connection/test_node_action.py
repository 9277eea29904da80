# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What all our actions share: a cut in words, and a limit that ends a wait."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction, at_most

CUT = {"failed": True, "msg": "No start of json char found", "module_stdout": "", "module_stderr": "", "rc": 137}


class Asker(NodeAction):
    def __init__(self) -> None:
        self._task = SimpleNamespace(action="swarmspeed.cluster.node_facts")
        self._play_context = SimpleNamespace(remote_addr="10.0.0.7")

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        raise NotImplementedError


def requested(monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any], **named: Any) -> dict[str, Any]:
    monkeypatch.setattr(ActionBase, "_execute_module", lambda *_given, **_named: dict(reply))
    return Asker()._execute_module(**named)


def test_a_module_that_was_cut_off_is_reported_by_node_and_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = requested(
        monkeypatch,
        {**CUT, "exception": "…"},
        module_name="swarmspeed.cluster.job_logs",
        task_vars={"inventory_hostname": "gpu2"},
    )
    assert found["failed"] and found["msg"].startswith("gpu2: the module job_logs was cut off")
    assert "exception" not in found


def test_of_files_that_were_removed_no_traceback_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "/tmp/ansible_node_facts_payload_19/ansible_node_facts_payload.zip"
    reported = (
        f"Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or directory: '{place}'\n"
    )
    found = requested(monkeypatch, {**CUT, "module_stderr": reported})
    assert "its files were removed from the host's /tmp" in found["msg"] and found["module_stderr"] == ""
    kept = requested(monkeypatch, {**CUT, "module_stderr": "Traceback (most recent call last):\nOSError: else\n"})
    assert kept["msg"] == CUT["msg"] and "OSError" in kept["module_stderr"]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "Data could not be sent to remote host: Traceback (most recent call last):\nFileNotFoundError: gone",
            "the connection was closed while the module job_logs ran there",
        ),
        ("Failed to connect to the host via ssh: timed out", "Failed to connect to the host via ssh: timed out"),
    ],
)
def test_a_connection_that_ends_with_a_traceback_is_reported_without_it(
    monkeypatch: pytest.MonkeyPatch, message: str, shown: str
) -> None:
    def end(*_given: Any, **_named: Any) -> None:
        raise AnsibleConnectionFailure(message)

    monkeypatch.setattr(ActionBase, "_execute_module", end)
    with pytest.raises(AnsibleConnectionFailure) as raised:
        Asker()._execute_module("swarmspeed.cluster.job_logs", task_vars={"inventory_hostname": "gpu2"})
    assert str(raised.value) == shown


def test_without_names_the_task_and_the_address_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert requested(monkeypatch, CUT)["msg"].startswith("10.0.0.7: the module node_facts was cut off")


@pytest.mark.parametrize("reply", [{"failed": True, "msg": "no"}, {"changed": True}])
def test_other_replies_stay(monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any]) -> None:
    assert requested(monkeypatch, reply) == reply


def test_a_limit_ends_a_wait_also_one_that_catches_every_exception() -> None:
    def waits() -> None:
        try:
            time.sleep(5)
        except Exception:  # as the ssh connection does, which would try again
            time.sleep(5)

    began = time.monotonic()
    with pytest.raises(AnsibleConnectionFailure, match="too late"), at_most(0.1, "too late"):
        waits()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("seconds", [0, 5])
def test_what_ends_in_time_is_left_alone(seconds: float) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with at_most(seconds, "too late"):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_the_limit_of_the_task_holds_again_afterwards() -> None:
    signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        with at_most(5, "too late"):
            pass
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
