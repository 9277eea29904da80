# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What forbids to use a server, a controller or a folder, each in one sentence with the way on."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.access import access_problem, same_machines
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.controller import (
    controller_problems,
    folder_problems,
    release_of,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.writing import written
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import Controller

from tests.init_servers import given, server


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        ("Task failed: Missing sudo password", "asks for a password for sudo", "--ask-become-pass"),
        ("sudo: a password is required", "asks for a password for sudo", "--ask-become-pass"),
        ("Incorrect sudo password", "refuses the password for sudo", "--ask-become-pass"),
        ("MODULE FAILURE: ada is not in the sudoers file.", "does not let this account use sudo", "user@address"),
        ("/bin/sh: 1: sudo: not found", "has no sudo", "root@address"),
        (
            "u@10.0.0.11: Permission denied (publickey,password).",
            "asks for a password, or does not accept",
            "ssh-copy-id",
        ),
        ("Host key verification failed.", "presents another host key than a moment ago", "fingerprint"),
        ("The module interpreter '/usr/bin/python3' was not found.", "has no Python", "apt install python3"),
        ("It could not run: x. Remedy: make 'ping' succeed.", "cannot be read (It could not run: x)", "init again"),
        ("Connection\nreset", "cannot be read (Connection reset)", "init again"),
    ],
)
def test_errors_of_servers(error: str, text: str, remedy: str) -> None:
    problem = access_problem("10.0.0.11", error)
    assert problem.subject == "10.0.0.11"
    assert problem.text.startswith(text) and remedy in problem.remedy


def test_one_machine_with_two_addresses() -> None:
    (problem,) = same_machines({"a": "1", "b": "2", "c": "1", "d": "", "e": ""})
    assert problem.subject == "a, c"


GOOD = Controller("2.21.0", "3.12.1")


@pytest.mark.parametrize(
    ("system", "versions", "installed", "subject", "remedy"),
    [
        ("Darwin", GOOD, ["/a"], "the controller", "on one of the servers"),
        ("Linux", Controller("2.17.1", "3.10.2"), ["/a"], "ansible-core 2.17.1", "Python 3.12 or later"),
        ("Linux", GOOD, ["/a", "/b"], "swarmspeed.cluster", "remove one of them"),
    ],
)
def test_controllers(system: str, versions: Controller, installed: list[str], subject: str, remedy: str) -> None:
    (problem,) = controller_problems(system, versions, installed)
    assert problem.subject == subject and remedy in problem.remedy


@pytest.mark.parametrize("versions", [GOOD, Controller("2.19.4", "3.11.2")])
def test_controllers_that_work(versions: Controller) -> None:
    assert list(controller_problems("Linux", versions, ["/a"])) == []


def test_an_inventory_of_inits_own_has_a_release() -> None:
    text = written(given(server(11)))[0].outcome.write["hosts.yml"]
    assert release_of(text) == "1.0.0"
    assert release_of("# mine\n---\n") == ""
    assert list(folder_problems("/a", text, [])) == []
    assert list(folder_problems("/a", None, [])) == []


@pytest.mark.parametrize(
    ("folder", "inventory", "others", "subject"),
    [
        ("/a", "---\ncluster:\n", [], "/a/hosts.yml"),
        ("/a", None, ["hosts.ini"], "/a/hosts.ini"),
        ("/a%h", None, [], "init_folder"),
        ("/a b", None, [], "init_folder"),
    ],
)
def test_folders(folder: str, inventory: str | None, others: list[str], subject: str) -> None:
    (problem,) = folder_problems(folder, inventory, others)
    assert problem.subject == subject
