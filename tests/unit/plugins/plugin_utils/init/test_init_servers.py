# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The list of servers, and the options by which ssh and Ansible reach each."""

from __future__ import annotations

import shlex

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.servers import (
    Server,
    ServerError,
    ansible_ssh_args,
    jumps,
    lines_of,
    parse_server,
    parse_servers,
    ssh_options,
)


@pytest.mark.parametrize(
    ("line", "server", "label"),
    [
        ("10.0.0.11", Server("10.0.0.11"), "10.0.0.11"),
        ("ubuntu@10.0.0.11:22", Server("10.0.0.11", "ubuntu", 22), "10.0.0.11"),
        ("ubuntu@GPU1.example.com:2222", Server("gpu1.example.com", "ubuntu", 2222), "gpu1.example.com:2222"),
        ("fd00::A", Server("fd00::a"), "fd00::a"),
        ("root@[fd00::a]:2222", Server("fd00::a", "root", 2222), "[fd00::a]:2222"),
        (
            "10.0.0.11 name=gpu1 jump=admin@bastion:2200",
            Server("10.0.0.11", jump="admin@bastion:2200", name="gpu1"),
            "10.0.0.11 via admin@bastion:2200",
        ),
    ],
)
def test_a_line_names_a_server(line: str, server: Server, label: str) -> None:
    assert parse_server(line) == server
    assert server.label == label


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("10.0.0", "not an address or a host name"),
        ("10.0.0.256", "not an address or a host name"),
        ("-oProxyCommand=x", "not an address or a host name"),
        ("ubuntu@", "not [user@]address[:port]"),
        ("-x@10.0.0.1", "not the name of an account before the @"),
        ("10.0.0.1:0", "not a port after the colon"),
        ("10.0.0.1:70000", "not a port after the colon"),
        ("[fd00::x]", "not [user@]address[:port]"),
        ("10.0.0.1 gpu1", "followed by 'gpu1'; only name=… and jump=… may follow an address"),
        ("10.0.0.1 jump=-x", "not an address or a host name"),
    ],
)
def test_what_is_no_server_is_refused(line: str, error: str) -> None:
    with pytest.raises(ServerError) as caught:
        parse_server(line)
    assert str(caught.value) == error


def test_names_have_to_suit_docker() -> None:
    with pytest.raises(ServerError, match="after name="):
        parse_server("10.0.0.1 name=GPU_1")


def test_lists_and_files_are_read_alike() -> None:
    file = "# all\nubuntu@10.0.0.13 name=gpu3  # the third\n\n"
    assert list(lines_of("10.0.0.11, 10.0.0.12", file)) == ["10.0.0.11", "10.0.0.12", "ubuntu@10.0.0.13 name=gpu3"]
    assert list(lines_of(["10.0.0.11", "10.0.0.12"])) == ["10.0.0.11", "10.0.0.12"]


def test_what_all_share_is_given_once() -> None:
    servers, problems = parse_servers(["10.0.0.11", "root@10.0.0.12 jump=other"], "admin@bastion", "ubuntu")
    assert servers == [
        Server("10.0.0.11", "ubuntu", jump="admin@bastion"),
        Server("10.0.0.12", "root", jump="other"),
    ]
    assert problems == []
    assert jumps(servers) == [Server("bastion", "admin"), Server("other")]


@pytest.mark.parametrize(
    ("lines", "subject", "text"),
    [
        (["10.0.0.11", "root@10.0.0.11:22"], "10.0.0.11", "is the address of two servers"),
        (["10.0.0.11 name=a", "10.0.0.12 name=a"], "10.0.0.12", "has the name a, as another server does"),
        (["10.0.0.11", "10.0.0"], "'10.0.0'", "is not an address or a host name"),
    ],
)
def test_problems_name_the_line(lines: list[str], subject: str, text: str) -> None:
    (problem,) = parse_servers(lines)[1]
    assert (problem.subject, problem.text) == (subject, text)


def test_another_port_or_jump_host_is_another_machine() -> None:
    assert parse_servers(["10.0.0.11", "10.0.0.11:2222", "10.0.0.11 jump=bastion"])[1] == []


def test_a_pinned_key_is_the_only_one_that_counts() -> None:
    assert ssh_options(Server("10.0.0.11"), "/a/known_hosts") == ["-o", "UserKnownHostsFile=/a/known_hosts"]


@pytest.mark.parametrize(("address", "target"), [("10.0.0.11", "%h:%p"), ("fd00::a", "[%h]:%p")])
def test_a_jump_host_is_reached_with_its_own_pinned_key(address: str, target: str) -> None:
    args = ansible_ssh_args(Server(address, jump="admin@bastion:2200"), "/a/known_hosts", "~/key")
    pinned, proxy = shlex.split(args)[1::2]
    assert pinned == "UserKnownHostsFile=/a/known_hosts"
    # A shell runs what follows ProxyCommand=.
    command = shlex.split(proxy.removeprefix("ProxyCommand="))
    assert command[:3] == ["ssh", "-W", target]
    assert command[-5:] == ["-p", "2200", "-i", "~/key", "admin@bastion"]
    assert pinned in command and "BatchMode=yes" in command
