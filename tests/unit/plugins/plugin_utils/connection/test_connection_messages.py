# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One sentence for a host that was lost, that hangs, or whose module was cut off; nothing for an ordinary failure."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.messages import (
    cut,
    explained,
    hung,
    lost,
    reason,
    sentence,
    waits_for_sudo,
    was_cut,
)

# Recorded with ansible-core 2.19.14 and OpenSSH 9.2, but for the names.
VIA_SSH = "Task failed: Failed to connect to the host via ssh: "
TIMED_OUT = f"{VIA_SSH}ssh: connect to host 10.0.0.7 port 22: Connection timed out"
# While a host was shut down.
REMOVED = (
    'Task failed: Data could not be sent to remote host "10.0.0.7". Make sure this host can be reached over ssh: '
    'Traceback (most recent call last):\n  File "<stdin>", line 266, in <module>\n'
    "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/ansible_swarmspeed.cluster.node_facts_payload_x'"
)
NO_JSON: dict[str, Any] = {
    "failed": True,
    "msg": "Task failed: Module result deserialization failed: No start of json char found",
    "module_stdout": "",
    "module_stderr": "",
    "rc": 137,
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (TIMED_OUT, "ssh: connect to host 10.0.0.7 port 22: Connection timed out"),
        (
            f"{VIA_SSH}Warning: Permanently added '10.0.0.7' (ED25519) to the list of known hosts.\n"
            "Timeout, server 10.0.0.7 not responding.\n",
            "Timeout, server 10.0.0.7 not responding",
        ),
        (f"{VIA_SSH}mux_client_request_session: read from master failed: Broken pipe", "its connection was closed"),
        ("", "its connection was closed"),
        (REMOVED, "its connection was closed while a module ran there"),
    ],
)
def test_the_reason_is_what_ssh_said_last(message: str, expected: str) -> None:
    assert reason(message) == expected


def test_a_host_that_was_lost() -> None:
    assert lost("gpu2", "docker : Start the engine", TIMED_OUT) == (
        "gpu2: stopped responding during 'docker : Start the engine' (ssh: connect to host 10.0.0.7 port 22: "
        "Connection timed out). Remedy: check that the host is up and answers ssh, then run the playbook again: it "
        "resumes from what is there. To go on without the host, take it out of the inventory."
    )


def test_a_host_that_lets_no_one_in_is_not_called_dead() -> None:
    found = lost("gpu2", "Gather", f"{VIA_SSH}root@10.0.0.7: Permission denied (publickey).")
    assert found == (
        "gpu2: refused the connection during 'Gather' (root@10.0.0.7: Permission denied (publickey)). Remedy: make "
        '"ansible gpu2 -m ping" succeed: ansible_user, key, known_hosts.'
    )


# As ansible-core composes it, with the prompt of sudo-rs 0.2.8 (ansible/ansible#85837).
PROMPT = (
    "Timeout (12s) waiting for privilege escalation prompt: [sudo: [sudo via ansible, key=spnnznr] password:] Password:"
)


def test_a_host_whose_sudo_does_not_ask_as_ansible_expects_it() -> None:
    found = lost("gpu2", "Gather", PROMPT)
    assert found == (
        f"gpu2: sudo gave no prompt that Ansible knows during 'Gather' ({PROMPT}). Remedy: check that sudo accepts the "
        "password there (ansible_become_password); where sudo is sudo-rs, as on Ubuntu 26.04, ansible-core up to 2.21.3"
        " does not recognise its prompt (ansible/ansible#87423): set ansible_become_exe: sudo.ws."
    )
    assert not waits_for_sudo(TIMED_OUT)


def test_a_host_that_hangs() -> None:
    assert hung("gpu2", "docker : Start the engine", 300) == (
        "gpu2: 'docker : Start the engine' did not finish within 300 s, although the host is reachable. Remedy: look "
        "on the host for what hangs (systemctl status docker; apt or dpkg; a network file system: ps -eo pid,stat,args "
        "| grep ' D'), end it, and run the playbook again."
    )


def test_a_module_that_was_cut_off() -> None:
    assert cut("gpu2", "the module node_facts", NO_JSON) == (
        "gpu2: the module node_facts was cut off before it returned a result (exit status 137): its connection was "
        "lost, or the process was killed there. Remedy: check that the host is up and answers ssh, then run the "
        'playbook again: it resumes from what is there. If the host is up, "journalctl -k" there names what the '
        "kernel has killed."
    )


# Recorded as above, while a host shut down; shortened.
REMOVED = """Traceback (most recent call last):
  File "<stdin>", line 266, in <module>
FileNotFoundError: [Errno 2] No such file or directory: '/tmp/ansible_x_payload_19/ansible_x_payload.zip'
"""


def test_a_module_whose_files_were_removed() -> None:
    assert cut("gpu2", "the module node_facts", {**NO_JSON, "module_stderr": REMOVED, "rc": 1}) == (
        "gpu2: the module node_facts was cut off before it returned a result (exit status 1): its files were removed "
        "from the host's /tmp, as when the host shuts down. Remedy: check that the host is up and answers ssh, then "
        "run the playbook again: it resumes from what is there. If the host is up, find out what clears /tmp."
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"module_stderr": REMOVED, "rc": 1}, True),
        ({"module_stderr": REMOVED, "module_stdout": "{}"}, False),
        ({"module_stdout": "Shared connection to 10.0.0.7 closed.\r\n"}, True),
        ({"module_stderr": "mux_client_read_packet: read header failed: Broken pipe"}, True),
        # These say themselves what is wrong.
        ({"module_stdout": "/bin/sh: 1: /usr/bin/python3: not found\n", "rc": 127}, False),
        ({"module_stderr": "Traceback (most recent call last):\n  …"}, False),
        ({"module_stderr": "sudo: a password is required"}, False),
        ({"failed": False}, False),
    ],
)
def test_what_counts_as_cut_off(change: dict[str, Any], expected: bool) -> None:
    assert was_cut({**NO_JSON, **change}) is expected


@pytest.mark.parametrize(
    ("result", "unreachable", "begins"),
    [
        ({"msg": TIMED_OUT}, True, "gpu2: stopped responding during 'T' ("),
        ({"failed": True, "timedout": {"period": 30}}, False, "gpu2: 'T' did not finish within 30 s"),
        (NO_JSON, False, "gpu2: 'T' was cut off"),
        ({**NO_JSON, "msg": cut("gpu2", "the module x", NO_JSON)}, False, ""),  # its action has said so
        ({"failed": True, "msg": "no such package"}, False, ""),
    ],
)
def test_which_sentence(result: dict[str, Any], unreachable: bool, begins: str) -> None:
    found = sentence("gpu2", "T", result, unreachable)
    assert found.startswith(begins) and bool(found) is bool(begins)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"module_stdout": "/bin/sh: 1: sudo: not found\r\n", "rc": 127}, "/bin/sh: 1: sudo: not found"),
        ({"module_stderr": "sudo: a password is required\n", "rc": 1}, "sudo: a password is required"),
        (
            {"module_stdout": "pyenv: python3.13: command not found\n\nNote: see also\n"},
            "pyenv: python3.13: command not found",
        ),
        ({"module_stdout": "Your account has expired.\n"}, "Your account has expired"),
    ],
)
def test_a_module_that_could_not_run(change: dict[str, Any], words: str) -> None:
    result = {**NO_JSON, **change}
    assert explained("gpu2", "the module x", result) == (
        f"gpu2: the module x could not run (exit status {result['rc']}): {words}. Remedy: make "
        '"ansible gpu2 --become -m ping" succeed: python3 there, sudo and its password.'
    )


@pytest.mark.parametrize(
    "result",
    [
        {"failed": True, "msg": "no"},
        {**NO_JSON, "module_stderr": "Traceback (most recent call last):\nKeyError: 'x'\n"},
        {"changed": True, "module_stdout": "x"},
    ],
)
def test_what_says_enough_itself(result: dict[str, Any]) -> None:
    assert explained("gpu2", "the module x", result) == ""


def test_a_module_that_was_cut_off_is_explained_as_that() -> None:
    assert explained("gpu2", "the module x", NO_JSON) == cut("gpu2", "the module x", NO_JSON)
