# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pings that may not be fragmented: their bytes, the search for the largest, and one for real on the loopback."""

from __future__ import annotations

import os

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import ping
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.ping import (
    HEADERS,
    SMALL,
    checksum,
    echo,
    largest,
    passes,
)
from hypothesis import given
from hypothesis import strategies as st


def test_the_checksum_is_that_of_the_rfc() -> None:
    # RFC 1071, section 3: the sum of these is ddf2.
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2


@given(st.integers(SMALL, 9000), st.binary(min_size=8, max_size=8))
def test_a_request_has_the_size_asked_for_and_a_good_checksum(size: int, mark: bytes) -> None:
    packet = echo(size, mark)
    assert len(packet) == size - HEADERS + 8
    assert checksum(packet) == 0
    assert packet[8:16] == mark


@given(st.integers(SMALL, 9000), st.integers(SMALL, 9000))
def test_the_largest_that_passes_is_found_to_the_byte(limit: int, wanted: int) -> None:
    tried: list[int] = []

    def link(_address: str, size: int, _seconds: float, _tries: int = 2) -> bool:
        tried.append(size)
        return size <= limit

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ping, "passes", link)
        assert largest("192.0.2.1", wanted) == min(limit, wanted)
    assert len(tried) <= 2 + 14
    assert tried[0] == wanted


@pytest.mark.parametrize(
    "error, reported", [(PermissionError(1, "Operation not permitted"), "Operation not permitted")]
)
def test_where_no_ping_may_be_sent_that_is_reported(
    error: OSError, reported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr(ping, "open_socket", refuse)
    assert largest("192.0.2.1", 1500) == f"not measured: {reported}"


def test_silence_is_distinguished_from_a_small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ping, "passes", lambda *_words: False)
    assert largest("192.0.2.1", 1500) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets are root's")
def test_for_real_on_the_loopback() -> None:
    assert passes("127.0.0.1", 1500, 2.0)
    assert largest("127.0.0.1", 9000) == 9000
