# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's refusals, explained; and no token in any of them. Engine texts recorded from 20.10.24."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm import engine_io as io
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"  # of a swarm long gone
DIAL = 'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial tcp '


@pytest.mark.parametrize(
    ("reported", "remedy"),
    [
        (
            "--live-restore daemon configuration is incompatible with swarm mode",
            "take live-restore out of /etc/docker/daemon.json and restart the engine.",
        ),
        (
            "could not choose an IP address to advertise since this system has multiple addresses on interface eth0"
            " (172.31.77.14 and 172.31.78.14)",
            "set advertise_addr to the address by which others reach this host, which has several.",
        ),
        (
            "must specify a listening address because the address to advertise is not recognized as a system address,"
            " and a system's IP address to use could not be uniquely identified",
            "set listen_addr to an address of this host, as advertise_addr is none.",
        ),
        (
            "advertise address must be a non-zero IP address or network interface (with optional port number)",
            "set advertise_addr to an IP address or an interface of this host.",
        ),
        (
            DIAL + '172.31.77.12:2377: connect: connection refused"',
            "check that that host is a manager whose engine runs, and that its port 2377/tcp is open to this host.",
        ),
        (
            "Timeout was reached before node joined.",
            "check that this is the managers' address, and that their port 2377/tcp is open to this host.",
        ),
        (
            "rpc error: code = InvalidArgument desc = A valid join token is necessary to join this cluster",
            "take the present token from a manager (return_tokens: true), as this one is wrong or was rotated.",
        ),
        (
            "invalid join token",
            "take the present token from a manager (return_tokens: true), as this one is wrong or was rotated.",
        ),
        (
            'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.',
            "run again to see into which swarm something else has put this host meanwhile.",
        ),
        (
            "rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are"
            " online. Make sure more than half of the managers are online.",
            "start the engines of the other managers: more than half must run.",
        ),
        (
            "rpc error: code = FailedPrecondition desc = node abc is not down and can't be removed",
            "take that node's host out of the swarm first, as it still answers.",
        ),
        (
            "no answer from the Docker engine at /var/run/docker.sock: [Errno 13] Permission denied",
            "run the task as root (become: true), or as a user who may use the engine's socket.",
        ),
        (
            "no answer from the Docker engine at /var/run/docker.sock: [Errno 2] No such file or directory",
            "check that Docker is installed and running; the role docker does both.",
        ),
    ],
)
def test_known_refusals_name_the_remedy(reported: str, remedy: str) -> None:
    explained = str(io.explain("do it", EngineError(reported, 503)))
    assert explained == f"Cannot do it: {reported.rstrip('.')}. Remedy: {remedy}"


def test_an_unknown_refusal_is_repeated_as_it_is() -> None:
    expected = "Cannot do it: odd. Remedy: see journalctl -u docker on this host, and run again."
    assert str(io.explain("do it", EngineError("odd", 500))) == expected


def test_a_join_that_is_taken_back_is_not_said_to_go_on() -> None:
    reported = (
        "Timeout was reached before node joined. The attempt to join the swarm will continue in the background. Use the"
        ' "docker info" command to see the current swarm status of your node.'
    )
    assert "background" not in str(io.explain("join", EngineError(reported, 503)))


PART = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=50)


@settings(max_examples=examples(80))
@given(st.text(max_size=20), PART, PART, st.text(max_size=20), st.sampled_from(["SWMTKN-1-", "SWMTKN-2-1-"]))
def test_no_token_survives_redaction(before: str, digest: str, secret: str, after: str, prefix: str) -> None:
    text = io.redact(f"{before} {prefix}{digest}-{secret} {after}")
    assert f"{prefix}{digest}" not in text and f"{digest}-{secret}" not in text
    assert text == f"{io.redact(before)} (hidden) {io.redact(after)}"


def test_tokens_and_unlock_keys_are_redacted() -> None:
    assert TOKEN not in str(io.explain("join", EngineError(f"bad token {TOKEN}.", 400)))
    assert io.redact(f'"{TOKEN}", SWMKEY-1-7c37Cc8654o6p38HnroywCi19pllOnGtbdZEgtKxZu8.') == '"(hidden)", (hidden).'
    assert io.redact("SWMTKN") == "SWMTKN"


@pytest.mark.parametrize(
    ("cause", "expected"),
    [(FileNotFoundError(), True), (ConnectionRefusedError(), True), (PermissionError(), False), (None, False)],
)
def test_a_missing_engine_is_distinguished_from_a_forbidden_one(cause: OSError | None, expected: bool) -> None:
    error = EngineError("no answer")
    error.__cause__ = cause
    assert io.no_engine(error) is expected
