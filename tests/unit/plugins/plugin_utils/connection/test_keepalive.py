# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Our ssh options are added behind the user's, and never twice."""

from __future__ import annotations

import shlex

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.keepalive import (
    COUNT,
    INTERVAL,
    options,
    watched,
    with_keepalive,
)
from hypothesis import given
from hypothesis import strategies as st

OURS = "-o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o TCPKeepAlive=yes"


def test_a_dead_host_is_noticed_within_20_seconds() -> None:
    assert INTERVAL * (COUNT + 1) <= 20


@pytest.mark.parametrize(
    ("given_arguments", "expected"),
    [
        ("", OURS),
        ("  ", OURS),
        ("-J bastion", f"-J bastion {OURS}"),
        ("-o ProxyCommand='ssh -W %h:%p bastion'", f"-o ProxyCommand='ssh -W %h:%p bastion' {OURS}"),
        (OURS, OURS),
        (f"-J bastion {OURS}", f"-J bastion {OURS}"),
        ("-o ServerAliveInterval=60", "-o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o TCPKeepAlive=yes"),
        ("-oserveraliveinterval=60", "-oserveraliveinterval=60 -o ServerAliveCountMax=3 -o TCPKeepAlive=yes"),
        ("-o 'TCPKeepAlive no'", "-o 'TCPKeepAlive no' -o ServerAliveInterval=5 -o ServerAliveCountMax=3"),
        ("-o ProxyCommand='unclosed", f"-o ProxyCommand='unclosed {OURS}"),
    ],
)
def test_what_is_added(given_arguments: str, expected: str) -> None:
    assert with_keepalive(given_arguments) == expected


@given(st.lists(st.sampled_from(["-J bastion", "-4", "-o ServerAliveInterval=9", "-oTCPKeepAlive=no", "-o User=me"])))
def test_the_users_words_stay_first_and_a_second_time_adds_nothing(words: list[str]) -> None:
    text = " ".join(words)
    once = with_keepalive(text)
    assert shlex.split(once)[: len(shlex.split(text))] == shlex.split(text)
    assert with_keepalive(once) == once
    assert options(text).items() <= options(once).items()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-C -o ControlMaster=auto -o ControlPersist=60s", ""), False),
        (("-o ServerAliveInterval=5", ""), True),
        (("", "-oServerAliveInterval=30"), True),
        (("-o ServerAliveInterval=0", "-o ServerAliveInterval=5"), False),  # the first counts, as for ssh
    ],
)
def test_connections_that_notice_a_dead_host(arguments: tuple[str, str], expected: bool) -> None:
    assert watched(*arguments) is expected
