# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Real runs of ansible-playbook: what ssh is given beside the user's own options, and what is said of a lost host.

ssh itself is a stand-in here, a program that notes its arguments and ends as asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stand_ins import ANSIBLE, newcomer

OURS = ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "TCPKeepAlive=yes"]
PROXY = "-o ProxyCommand='nc -X 5 %h %p'"
SSH = """\
#!{python}
import json, os, sys
with open(os.path.join(os.path.dirname(__file__), "given"), "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if "-O" in sys.argv:
    sys.exit(0)
sys.stderr.write("ssh: connect to host " + [a for a in sys.argv if a.startswith("10.")][0] + " port 22: {words}\\n")
sys.exit(255)
"""
PLAYBOOK = """\
- name: Find
  ansible.builtin.import_playbook: swarmspeed.cluster.find_cluster
- name: Go there
  hosts: cluster
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Say hello
      ansible.builtin.ping:
"""


class Bench:
    """A folder with an inventory, its group_vars, and a playbook that begins as all of this collection do."""

    def __init__(self, place: Path, words: str = "Connection timed out") -> None:
        self.place = place
        self.ssh = place / "ssh"
        self.ssh.write_text(SSH.replace("{python}", sys.executable).replace("{words}", words))
        self.ssh.chmod(0o755)
        (place / "play.yml").write_text(PLAYBOOK)
        hosts = {name: {"ansible_host": f"10.9.9.{number}"} for number, name in enumerate(("gpu1", "gpu2"), 1)}
        self.inventory = {"cluster": {"children": {"managers": {"hosts": hosts}}}}
        self.group_vars: dict[str, Any] = {}

    def run(self, *arguments: str, ends: int = 4, environment: dict[str, str] | None = None) -> str:
        (self.place / "given").unlink(missing_ok=True)
        (self.place / "hosts.json").write_text(json.dumps(self.inventory))
        (self.place / "group_vars").mkdir(exist_ok=True)
        settings = {"ansible_ssh_executable": str(self.ssh), **self.group_vars}
        (self.place / "group_vars" / "all.yml").write_text(json.dumps(settings))
        done = subprocess.run(
            [ANSIBLE, "-i", "hosts.json", "play.yml", *arguments],
            cwd=self.place,
            env={**newcomer(self.place), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == ends, done.stdout + done.stderr  # 4: unreachable
        return " ".join(done.stdout.split())

    def given(self, host: str, *, closing: bool = False) -> list[list[str]]:
        """Arguments of each command to this host; with ``closing`` of those to the kept connection."""
        address = {"gpu1": "10.9.9.1", "gpu2": "10.9.9.2"}[host]
        lines = [json.loads(line) for line in (self.place / "given").read_text().splitlines()]
        return [line for line in lines if address in line and ("-O" in line) is closing]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_command_has_them_and_connections_from_before_are_closed(bench: Bench) -> None:
    text = bench.run()
    for host in ("gpu1", "gpu2"):
        commands = bench.given(host)
        assert commands
        assert all(" ".join(OURS) in " ".join(command) for command in commands)
        assert [line[line.index("-O") + 1] for line in bench.given(host, closing=True)] == ["check", "stop"]
        words = f"{host}: stopped responding during 'Say hello' (ssh: connect to host 10.9.9."
        assert words in text
    assert text.index("PLAY RECAP") < text.index("gpu1: stopped responding")  # at the end, where it is read


@pytest.mark.parametrize(
    ("group_vars", "arguments", "environment"),
    [
        ({"ansible_ssh_extra_args": PROXY}, (), {}),
        ({"proxy": "-X 5", "ansible_ssh_extra_args": PROXY.replace("-X 5", "{{ proxy }}")}, (), {}),
        ({"ansible_ssh_common_args": PROXY}, (), {}),
        ({}, (f"--ssh-extra-args={PROXY}",), {}),
        ({}, (), {"ANSIBLE_SSH_EXTRA_ARGS": PROXY}),
    ],
    ids=["group_vars", "template", "common", "command line", "environment"],
)
def test_the_users_own_options_stay_and_come_first(
    bench: Bench, group_vars: dict[str, Any], arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    bench.group_vars = group_vars
    bench.run(*arguments, environment=environment)
    (command, *_more) = bench.given("gpu1")
    proxy = command.index("ProxyCommand=nc -X 5 %h %p")
    assert command[proxy + 1 : proxy + 1 + len(OURS)] == OURS


def test_one_hosts_own_options_are_not_anothers(bench: Bench) -> None:
    hosts = bench.inventory["cluster"]["children"]["managers"]["hosts"]
    hosts["gpu2"]["ansible_ssh_extra_args"] = "-J bastion"
    bench.run()
    assert "-J" not in bench.given("gpu1")[0]
    command = bench.given("gpu2")[0]
    assert command[command.index("-J") : command.index("-J") + 2] == ["-J", "bastion"]
    assert " ".join(OURS) in " ".join(command)


def test_the_users_own_interval_wins_and_connections_that_have_one_stay_open(bench: Bench) -> None:
    bench.group_vars = {"ansible_ssh_common_args": "-o ServerAliveInterval=60"}
    bench.run()
    (command, *_more) = bench.given("gpu1")
    intervals = [word for word in command if word.startswith("ServerAliveInterval")]
    assert intervals[0] == "ServerAliveInterval=60"  # of two values ssh takes the first
    assert bench.given("gpu1", closing=True) == []


def test_an_extra_variable_of_the_users_replaces_ours(bench: Bench) -> None:
    bench.run("-e", "ansible_ssh_extra_args='-J bastion'")
    (command, *_more) = bench.given("gpu1")
    assert "-J" in command and "ServerAliveInterval=5" not in command


def test_a_host_that_refuses_is_not_called_dead(tmp_path: Path) -> None:
    text = Bench(tmp_path, "Permission denied (publickey)").run()
    assert "gpu1: refused the connection during 'Say hello'" in text


def test_a_task_that_hangs_is_named_with_its_limit(bench: Bench) -> None:
    hosts = bench.inventory["cluster"]["children"]["managers"]["hosts"]
    for one in hosts.values():
        one.update(ansible_connection="local", ansible_python_interpreter=sys.executable)
    hangs = PLAYBOOK.replace("ansible.builtin.ping:", "ansible.builtin.command: sleep 30\n      timeout: 1")
    (bench.place / "play.yml").write_text(hangs)
    text = bench.run(ends=2)
    assert not (bench.place / "given").exists()  # other connections have no use for ssh
    assert (
        "gpu1: 'Say hello' did not finish within 1 s, although the host is reachable. Remedy: look on the host" in text
    )


def test_an_ordinary_failure_gets_no_word_more(bench: Bench) -> None:
    hosts = bench.inventory["cluster"]["children"]["managers"]["hosts"]
    for one in hosts.values():
        one.update(ansible_connection="local", ansible_python_interpreter=sys.executable)
    (bench.place / "play.yml").write_text(PLAYBOOK.replace("ping:", "command: 'false'"))
    text = bench.run(ends=2)
    assert "Remedy" not in text
    assert text.endswith("ignored=0")
