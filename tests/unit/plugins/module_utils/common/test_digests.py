# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Digests of just the bytes that were read, and those that only who has the key can compare."""

from __future__ import annotations

import hashlib
import io

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import CHUNK, Hashed, keyed_digest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import peak_memory

PIECES = st.lists(st.binary(max_size=30), max_size=5)


def test_a_known_value() -> None:
    # RFC 4231, test case 2
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert keyed_digest(b"what do ya want for nothing?", "Jefe") == expected


def test_another_key_is_another_digest() -> None:
    assert len({keyed_digest(b"x", key) for key in ("", "a", "b")}) == 3


@given(st.binary(max_size=200), st.integers(0, 250), PIECES)
def test_it_is_of_what_was_read_and_added(data: bytes, most: int, more: list[bytes]) -> None:
    hashed = Hashed(io.BytesIO(data)).read_all(most)
    for piece in more:
        hashed.add(piece)
    used = data[:most] + b"".join(more)
    assert (hashed.size, hashed.sha256) == (len(used), hashlib.sha256(used).hexdigest())


@given(st.binary(max_size=200), st.lists(st.integers(-1, 90), max_size=6))
def test_what_is_read_through_it_is_what_it_is_of(data: bytes, sizes: list[int]) -> None:
    hashed = Hashed(io.BytesIO(data))
    used = b"".join(hashed.read(size) for size in sizes)
    assert data.startswith(used)
    assert (hashed.size, hashed.sha256) == (len(used), hashlib.sha256(used).hexdigest())


def test_a_large_file_is_read_in_pieces_with_signs_of_life() -> None:
    beats: list[int] = []
    zeros = io.BytesIO(bytes(8 * CHUNK))
    hashed = Hashed(zeros, lambda: beats.append(hashed.size))
    with peak_memory() as peak:
        hashed.read_all()
    assert peak() < 3 * CHUNK
    assert beats == [number * CHUNK for number in [*range(1, 9), 8]]
    assert hashed.sha256 == hashlib.sha256(zeros.getvalue()).hexdigest()
