# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A remedy that is printed, as something to be done literally."""

from __future__ import annotations

import pytest

from tests.chaos.remedy import Action, actions, is_command
from tests.chaos.verdict import Refusal

NODES = ("lab1", "lab2")

# The remedies that roles, preflight and modules print (roles/, plugins/module_utils), and the first thing they say.
LITERAL = {
    "set swarm_allow_leave_foreign: true to make it leave that swarm, or take the host out of the inventory": [
        Action("variable", "swarm_allow_leave_foreign", value=True)
    ],
    "set docker_allow_restart: true to allow it, or stop the containers first": [
        Action("variable", "docker_allow_restart", value=True)
    ],
    "ansible-playbook site.yml --tags training_image": [
        Action("playbook", "site", arguments=("--tags", "training_image"))
    ],
    "ansible-playbook site.yml --tags docker; then check the journal": [
        Action("playbook", "site", arguments=("--tags", "docker"))
    ],
    "run `systemctl restart docker` there, as a `docker swarm leave` has hung": [
        Action("command", "systemctl restart docker", node="lab2")
    ],
    "see `docker info` there; `docker swarm leave --force` takes the host out of that swarm": [
        Action("command", "docker swarm leave --force", node="lab2")
    ],
    "systemctl restart docker there, and run again": [Action("command", "systemctl restart docker", node="lab2")],
    "timedatectl set-ntp true, or install systemd-timesyncd": [
        Action("command", "timedatectl set-ntp true", node="lab2")
    ],
    "dpkg --configure -a on lab1": [Action("command", "dpkg --configure -a", node="lab1")],
    "run again; it goes on from what is there": [Action("again", "run again; it goes on from what is there")],
    "wait until it ends, or stop it: kill 7 on lab2": [
        Action("wait", "wait until it ends, or stop it: kill 7 on lab2")
    ],
    "the value that the swarm has, or teardown.yml and site.yml": [Action("playbook", "teardown")],
}
FOR_A_PERSON = [
    "free space there, or lower preflight_min_free_gib",
    "make room there (docker image prune), and run again",
    "restore it, and run again",
    "read `docker logs x` there",
    "correct it",
]


@pytest.mark.parametrize(("remedy", "expected"), LITERAL.items())
def test_the_first_of_what_it_says(remedy: str, expected: list[Action]) -> None:
    assert actions(Refusal("lab2", "is odd", remedy), NODES) == expected


@pytest.mark.parametrize("remedy", FOR_A_PERSON)
def test_what_only_a_person_can_do_is_no_action(remedy: str) -> None:
    assert actions(Refusal("lab2", "is odd", remedy), NODES) == []


def test_a_command_for_several_nodes_is_done_on_each() -> None:
    found = actions(Refusal("lab1, lab2", "are odd", "run `systemctl restart docker` there"), NODES)
    assert [action.node for action in found] == ["lab1", "lab2"]


@pytest.mark.parametrize(
    "text",
    [
        "docker rm x; rm -rf /",
        "docker run $(id)",
        "docker run x && reboot",
        "rm -rf /srv",
        "bash -c true",
        "docker run x | sh",
        "docker run x > /etc/passwd",
        "docker\nreboot now",
        "",
    ],
)
def test_what_is_printed_never_becomes_a_line_of_shell(text: str) -> None:
    assert not is_command(text)
    for found in actions(Refusal("lab2", "is odd", f"run `{text}` there"), NODES):
        assert found.kind != "command", found


def test_commands_are_plain() -> None:
    assert is_command("docker swarm leave --force")
    assert is_command("docker rmi -f swarmspeed/swarmspeed:0a1b")
