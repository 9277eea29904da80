# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The frames of a channel between supervisors, without sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import frames
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.frames import FrameError, Opener, Sealer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

KEY = b"k" * 32
PAYLOADS = st.lists(st.binary(max_size=200), max_size=6)


def opened(opener: Opener, data: bytes) -> tuple[list[bytes], bool]:
    """What comes out of a stream, and whether the opener refused it."""
    found = []
    opener.feed(data)
    try:
        while (payload := opener.next()) is not None:
            found.append(payload)
    except FrameError:
        return found, True
    return found, False


@given(payloads=PAYLOADS, cuts=st.lists(st.integers(0, 2000), max_size=8))
@settings(max_examples=examples(200), deadline=None)
def test_frames_come_out_as_they_went_in_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    stream = b"".join(sealer.seal(payload) for payload in payloads)
    assert len(stream) == sum(len(payload) + frames.HEAD for payload in payloads)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    found = []
    for begin, end in zip(edges, edges[1:]):
        more, refused = opened(opener, stream[begin:end])
        assert not refused
        found += more
    assert found == payloads
    assert not opener.begun


@given(payloads=st.lists(st.binary(max_size=80), min_size=1, max_size=4), data=st.data())
@settings(max_examples=examples(400), deadline=None)
def test_whatever_is_done_to_the_stream_no_other_payload_comes_out(payloads: list[bytes], data: st.DataObject) -> None:
    sealer = Sealer(KEY)
    parts = [sealer.seal(payload) for payload in payloads]
    how = data.draw(st.sampled_from(["flip", "cut", "insert", "repeat", "drop", "swap"]))
    at = data.draw(st.integers(0, len(parts) - 1))
    stream = b"".join(parts)
    place = data.draw(st.integers(0, len(stream) - 1))
    if how == "flip":
        changed = stream[:place] + bytes([stream[place] ^ (1 << data.draw(st.integers(0, 7)))]) + stream[place + 1 :]
    elif how == "cut":
        changed = stream[:place] + stream[place + 1 :]
    elif how == "insert":
        changed = stream[:place] + data.draw(st.binary(min_size=1, max_size=50)) + stream[place:]
    elif how == "repeat":
        changed = b"".join([*parts[: at + 1], parts[at], *parts[at + 1 :]])
    elif how == "drop":
        changed = b"".join([*parts[:at], *parts[at + 1 :]])
    else:
        changed = b"".join([*parts[:at], *parts[at + 1 : at + 2], parts[at], *parts[at + 2 :]])
    found, refused = opened(Opener(KEY), changed)
    assert found == payloads[: len(found)]
    if len(changed) >= len(stream) and changed != stream:
        assert refused or len(found) < len(payloads) or changed.startswith(stream)


@given(data=st.binary(max_size=4000))
@settings(max_examples=examples(200), deadline=None)
def test_bytes_of_others_never_come_out(data: bytes) -> None:
    assert opened(Opener(KEY), data)[0] == []


def test_a_length_beyond_the_limit_is_refused_before_anything_is_read() -> None:
    opener = Opener(KEY)
    opener.feed((frames.LONGEST + 1).to_bytes(4, "big") + bytes(frames.MAC))
    with pytest.raises(FrameError, match="a message of 1048577 bytes was announced, where 1048576 are the most"):
        opener.next()
    whole = b"x" * frames.LONGEST
    assert opened(Opener(KEY), Sealer(KEY).seal(whole)) == ([whole], False)


USUAL: dict[str, Any] = {
    "secret": b"s" * 32,
    "leader_nonce": b"a" * 32,
    "follower_nonce": b"b" * 32,
    "run": "digits/1",
    "attempt": 1,
    "node": "lab2",
}


def test_the_same_at_both_ends_gives_the_same_keys_and_four_different_ones() -> None:
    one = frames.derive(**USUAL)
    assert one == frames.derive(**USUAL)
    assert len(set(one)) == 4
    assert {len(key) for key in one} == {32}


@pytest.mark.parametrize(
    "change",
    [
        {"secret": b"t" * 32},
        {"leader_nonce": b"c" * 32},
        {"follower_nonce": b"c" * 32},
        {"leader_nonce": b"b" * 32, "follower_nonce": b"a" * 32},
        {"run": "digits/2"},
        {"attempt": 2},
        {"node": "lab3"},
        {"run": "digits/11", "node": "ab2"},
    ],
)
def test_whatever_differs_all_keys_do(change: dict[str, Any]) -> None:
    assert not set(frames.derive(**USUAL)) & set(frames.derive(**{**USUAL, **change}))


def test_a_challenge_is_read_back_and_nothing_else_is() -> None:
    assert frames.unpack_challenge(frames.pack_challenge(b"n" * 32, 7)) == (b"n" * 32, 7)
    assert frames.unpack_challenge(b"HTTP/1.1 400 Bad Request\r\n\r\n".ljust(frames.CHALLENGE)) is None
    assert frames.unpack_challenge(b"") is None


def test_a_hello_has_one_length_whatever_the_name() -> None:
    for name in ("a", "lab2", "n" * 255, "knoten-ä"):
        hello = frames.pack_hello(name, b"n" * 32, b"p" * 32)
        assert len(hello) == frames.HELLO
        assert frames.unpack_hello(hello) == (frames.digest(name), b"n" * 32, b"p" * 32)


def test_the_secret_is_made_from_the_file(tmp_path: Path) -> None:
    for name, text in (("one", b"key"), ("two", b"key"), ("three", b"other")):
        (tmp_path / name).write_bytes(text)
    one, two, three = (frames.read_secret(str(tmp_path / name)) for name in ("one", "two", "three"))
    assert one == two != three
    assert b"key" not in one
