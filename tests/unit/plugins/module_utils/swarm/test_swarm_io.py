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
            "Take live-restore out of /etc/docker/daemon.json and restart the engine.",
        ),
        (
            "could not choose an IP address to advertise since this system has multiple addresses on interface eth0"
            " (172.31.77.14 and 172.31.78.14)",
            "This host has several addresses: set advertise_addr to the one others reach it by.",
        ),
        (
            "must specify a listening address because the address to advertise is not recognized as a system address,"
            " and a system's IP address to use could not be uniquely identified",
            "advertise_addr is no address of this host: set listen_addr to one that is.",
        ),
        (
            "advertise address must be a non-zero IP address or network interface (with optional port number)",
            "Set advertise_addr to an IP address or an interface of this host.",
        ),
        (
            DIAL + '172.31.77.12:2377: connect: connection refused"',
            "Is that host a manager with its engine running, and port 2377/tcp open to this host?",
        ),
        (
            "Timeout was reached before node joined.",
            "Is that the managers' address, and is port 2377/tcp open to this host?",
        ),
        (
            "rpc error: code = InvalidArgument desc = A valid join token is necessary to join this cluster",
            "The token is wrong or was rotated: take the present one from a manager (return_tokens: true).",
        ),
        (
            "invalid join token",
            "The token is wrong or was rotated: take the present one from a manager (return_tokens: true).",
        ),
        (
            'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.',
            "Something else put this host into a swarm meanwhile: run again to see into which.",
        ),
        (
            "rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are"
            " online. Make sure more than half of the managers are online.",
            "Start the engines of the other managers: more than half must run.",
        ),
        (
            "rpc error: code = FailedPrecondition desc = node abc is not down and can't be removed",
            "That node still answers: take its host out of the swarm first.",
        ),
        (
            "no answer from the Docker engine at /var/run/docker.sock: [Errno 13] Permission denied",
            "Run the task as root (become: true), or as a user who may use the engine's socket.",
        ),
        (
            "no answer from the Docker engine at /var/run/docker.sock: [Errno 2] No such file or directory",
            "Is Docker installed and running? The docker role does both.",
        ),
    ],
)
def test_known_refusals_name_the_remedy(reported: str, remedy: str) -> None:
    assert str(io.explain("do it", EngineError(reported, 503))) == f"Cannot do it: {reported.rstrip('.')}. {remedy}"


def test_an_unknown_refusal_is_repeated_as_it_is() -> None:
    assert str(io.explain("do it", EngineError("odd", 500))) == "Cannot do it: odd."


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
