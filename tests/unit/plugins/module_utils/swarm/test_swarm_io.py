# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's refusals, explained; and no token in any of them. Engine texts recorded from 20.10.24."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm import engine_io as io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm import remedies
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"  # of a swarm long gone
NO_WAY_BACK = (
    "manager stopped: can't initialize raft node: rpc error: code = Unknown desc = could not connect to prospective "
    "new cluster member using its advertised address: "
)
OPEN_BACK = (
    "the managers do not reach this host: open its port 2377/tcp to them, so that `nc -zv ADDRESS-OF-THIS-HOST 2377` "
    "succeeds on a manager, or set advertise_addr (role swarm: swarm_advertise_address) to an address of this host "
    "that they reach."
)
CLOCK = (
    "compare `date -u` on this host and on the managers, and where it is wrong run `timedatectl set-ntp true`; if the "
    "clocks agree, `journalctl -u docker | grep -i certificate` on the managers names the certificate that has expired."
)
TOO_SLOW = (
    "see that `docker node ls` on a manager lists a leader, and that `nc -zv ADDRESS-OF-A-MANAGER 2377` succeeds on "
    "this host; then run again."
)
MODULE = (
    "run `modprobe br_netfilter` on this host, and `echo br_netfilter >/etc/modules-load.d/br_netfilter.conf` for the "
    "next boot; if there is no such module, install the modules of the running kernel, or boot the newest one."
)
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
        *(
            (NO_WAY_BACK + reported, OPEN_BACK)
            for reported in (
                DIAL + '10.99.0.9:2377: connect: network is unreachable"',
                DIAL + '10.77.0.2:2377: connect: connection refused"',
                DIAL + '10.77.0.2:2377: connect: no route to host"',
                "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            )
        ),
        (
            DIAL + '10.77.0.1:2377: connect: network is unreachable"',
            "give this host a route to the managers: `ip route get ADDRESS-OF-A-MANAGER`.",
        ),
        ("rpc error: code = DeadlineExceeded desc = context deadline exceeded", TOO_SLOW),
        *(
            (reported, CLOCK)  # not recorded: classicswarm#2726, docker/for-linux#400, and Go's text from 1.15 on
            for reported in (
                "x509: certificate has expired or is not yet valid",
                "error while validating Root CA Certificate: x509: certificate has expired or is not yet valid",
                'rpc error: code = Unavailable desc = connection error: desc = "transport: authentication handshake '
                "failed: x509: certificate has expired or is not yet valid: current time 2019-01-01T00:00:00Z is "
                'before 2026-11-28T07:00:00Z"',
            )
        ),
        (  # not recorded: moby#48948
            "error creating external connectivity network: cannot restrict inter-container communication: ensure that "
            "the br_netfilter kernel module is loaded",
            MODULE,
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
    explained = str(remedies.explain("do it", EngineError(reported, 503)))
    assert explained == f"Cannot do it: {reported.rstrip('.')}. Remedy: {remedy}"


@pytest.mark.parametrize(
    ("here", "manager", "command", "other"),
    [
        ("10.77.0.2", "10.77.0.1:2377", "nc -zv 10.77.0.2 2377", "nc -zv 10.77.0.1 2377"),
        ("10.77.0.2:2377", "fd00::1", "nc -zv 10.77.0.2 2377", "nc -zv fd00::1 2377"),
        ("eth0", "[fd00::1]:2377", "nc -zv ADDRESS-OF-THIS-HOST 2377", "nc -zv fd00::1 2377"),
        ("", "manager:2377; x", "nc -zv ADDRESS-OF-THIS-HOST 2377", "nc -zv ADDRESS-OF-A-MANAGER 2377"),
    ],
)
def test_commands_have_the_addresses_where_they_are_known(here: str, manager: str, command: str, other: str) -> None:
    for reported, expected in ((NO_WAY_BACK, command), ("context deadline exceeded", other)):
        explained = str(remedies.explain("join", EngineError(reported, 503), here=here, manager=manager))
        assert f"`{expected}`" in explained


def test_an_unknown_refusal_is_repeated_as_it_is() -> None:
    expected = "Cannot do it: odd. Remedy: see journalctl -u docker on this host, and run again."
    assert str(remedies.explain("do it", EngineError("odd", 500))) == expected


def test_a_join_that_is_taken_back_is_not_said_to_go_on() -> None:
    reported = (
        "Timeout was reached before node joined. The attempt to join the swarm will continue in the background. Use the"
        ' "docker info" command to see the current swarm status of your node.'
    )
    assert "background" not in str(remedies.explain("join", EngineError(reported, 503)))


PART = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=50)


@settings(max_examples=examples(80))
@given(st.text(max_size=20), PART, PART, st.text(max_size=20), st.sampled_from(["SWMTKN-1-", "SWMTKN-2-1-"]))
def test_no_token_survives_redaction(before: str, digest: str, secret: str, after: str, prefix: str) -> None:
    text = remedies.redact(f"{before} {prefix}{digest}-{secret} {after}")
    assert f"{prefix}{digest}" not in text and f"{digest}-{secret}" not in text
    assert text == f"{remedies.redact(before)} (hidden) {remedies.redact(after)}"


def test_tokens_and_unlock_keys_are_redacted() -> None:
    assert TOKEN not in str(remedies.explain("join", EngineError(f"bad token {TOKEN}.", 400)))
    assert (
        remedies.redact(f'"{TOKEN}", SWMKEY-1-7c37Cc8654o6p38HnroywCi19pllOnGtbdZEgtKxZu8.') == '"(hidden)", (hidden).'
    )
    assert remedies.redact("SWMTKN") == "SWMTKN"


@pytest.mark.parametrize(
    ("cause", "expected"),
    [(FileNotFoundError(), True), (ConnectionRefusedError(), True), (PermissionError(), False), (None, False)],
)
def test_a_missing_engine_is_distinguished_from_a_forbidden_one(cause: OSError | None, expected: bool) -> None:
    error = EngineError("no answer")
    error.__cause__ = cause
    assert io.no_engine(error) is expected
