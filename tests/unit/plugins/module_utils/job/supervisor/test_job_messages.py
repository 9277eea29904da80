# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which messages of another node a supervisor takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import messages
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.frames import LONGEST
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.messages import (
    MessageError,
    from_follower,
    from_leader,
    listing_messages,
    pieces,
    usable_path,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

FILES = {"files": [["step7/mp_rank_00_model_states.pt", 12]], "latest": {"latest": "step7"}, "truncated": False}
CHOSEN = {"interface": "=eth0", "hcas": "=mlx5_0:1"}
FOLLOWER: list[dict[str, Any]] = [
    {"t": "beat"},
    {"t": "ready", "pid": 17},
    {"t": "lines", "lines": [[None, "launcher"], [3, "\u001b[1mred\r"]]},
    {"t": "steps", "lines": [], "sign": True},
    {"t": "part", "ranks": {"3": -9}, "seen": [3], "code": None, "clean": True},
    {"t": "ended", "ranks": {}, "code": 127, "problem": "no such file"},
    {"t": "listing", "found": FILES, "more": False},
    {"t": "stop", "reason": "on request"},
    {"t": "examined", "name": "0002", "piece": "eJw=", "more": False, "problem": ""},
    {"t": "gpus", "gpus": [[0, 97.5, 99, 1 << 36, 1 << 37, None, 700.0, 64]]},
    {"t": "nccl", "size": 4, "ranks": [2, 3], "rings": True, "network": "IB", "devices": ["mlx5_0:1"], **CHOSEN},
]
START: dict[str, Any] = {
    "t": "start",
    "attempt": 2,
    "master_port": 29500,
    "arguments": ["--from", "step7"],
    "members": ["lab1", "lab2"],
    "config": {"train_batch_size": 24, "fp16": {"loss_scale": 0.5}},
}
LEADER: list[dict[str, Any]] = [
    {"t": "beat"},
    START,
    {"t": "list", "folder": "/workspace/checkpoints"},
    {"t": "examine", "name": "0002"},
    {"t": "end", "again": True, "grace": 6.0},
    {"t": "end", "state": "failed", "reason": "rank 2\nended", "grace": 20},
    {"t": "bye", "state": "stopped", "reason": "on request"},
]


def sent(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


@pytest.mark.parametrize("message", FOLLOWER, ids=lambda message: message["t"])
def test_what_followers_send_is_taken_as_it_is(message: dict[str, Any]) -> None:
    assert from_follower(sent(message)) == message


@pytest.mark.parametrize("message", LEADER, ids=lambda message: message["t"])
def test_what_leaders_send_is_taken_as_it_is(message: dict[str, Any]) -> None:
    assert from_leader(sent(message), "lab2") == message


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\xff\xfe", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"[" * 100000, "it is nested too deeply"),
        (b'{"t":' + b'{"a":' * 100000, "it is nested too deeply"),
        (b"[1]", "it does not say what it is"),
        (b'{"t": 1}', "it does not say what it is"),
        (b'{"t": "ready", "pid": NaN}', "it has a number that is not finite"),
        (b'{"t": "ready", "pid": -Infinity}', "it has a number that is not finite"),
        (b'{"t": "ready", "pid": 1e999}', "it has a number that is not finite"),
        (b'{"t": "ready", "pid": ' + b"9" * 1000000 + b"}", "it has a number of more than 40 digits"),
        (b'{"t": "stop", "reason": "\\ud800"}', "stop.reason holds characters that do not belong there"),
        (b'{"t": "start"}', "it is of a kind that this end does not take"),
    ],
)
def test_what_is_no_message_is_refused(payload: bytes, words: str) -> None:
    with pytest.raises(MessageError) as caught:
        from_follower(payload)
    assert str(caught.value) == words


def changed(message: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {**message, **change}


READY, LINES, PART, ENDED, LISTING, STOP, EXAMINED, GPUS, NCCL = (
    FOLLOWER[index] for index in (1, 2, 4, 5, 6, 7, 8, 9, 10)
)
ROW = GPUS["gpus"][0]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (changed(READY, pid="17"), "ready.pid is not a whole number from 0 to 2147483648"),
        (changed(READY, pid=True), "ready.pid is not a whole number from 0 to 2147483648"),
        (changed(READY, pid=1.5), "ready.pid is not a whole number from 0 to 2147483648"),
        ({"t": "ready"}, "ready.pid is missing"),
        (changed(READY, more=1), "ready has a field that is not known"),
        (changed(LINES, lines="text"), "lines.lines is not a list"),
        (changed(LINES, lines=[["0"]]), "lines.lines[0] is not a pair"),
        (changed(LINES, lines=[[0, "a"], ["0", "a"]]), "lines.lines[1] is not a whole number from 0 to 1048575"),
        (changed(LINES, lines=[[0, None]]), "lines.lines[0] is not a text"),
        (
            changed(LINES, lines=[[0, "a\nlab3: rank 0: forged"]]),
            "lines.lines[0] holds characters that do not belong there",
        ),
        (changed(LINES, lines=[[0, "x" * 65537]]), "lines.lines[0] has 65537 characters, where 65536 are the most"),
        (changed(PART, ranks=[]), "part.ranks is not a mapping"),
        (changed(PART, ranks={"../x": 1}), "part.ranks has a key that is not a rank"),
        (changed(PART, ranks={"1": None}), "part.ranks is not a whole number from -2147483648 to 2147483648"),
        (changed(PART, seen=7), "part.seen is not a list"),
        (changed(PART, clean="yes"), "part.clean is not true or false"),
        (changed(ENDED, problem="x\ny"), "ended.problem holds characters that do not belong there"),
        (
            changed(LISTING, found={**FILES, "files": [["../../etc/passwd", 1]]}),
            "listing.found.files[0] is not a plain",
        ),
        (changed(LISTING, found={**FILES, "files": [["a", 1, 2]]}), "listing.found.files[0] is not a pair"),
        (changed(LISTING, found={**FILES, "latest": {"latest": "-oProxyCommand=x"}}), "listing.found.latest is not a"),
        (changed(LISTING, found={**FILES, "latest": {"latest": 5}}), "listing.found.latest is not a plain"),
        (changed(STOP, reason=None), "stop.reason is not a text"),
        (changed(EXAMINED, name="../x"), "examined.name is not the number of an examination"),
        (changed(EXAMINED, name=2), "examined.name is not the number of an examination"),
        (changed(EXAMINED, piece="x" * 1048577), "examined.piece has 1048577 characters, where 1048576 are the most"),
        (changed(GPUS, gpus=[ROW[:-1]]), "gpus.gpus[0] is not a row of 8"),
        (changed(GPUS, gpus=[[0.5, *ROW[1:]]]), "gpus.gpus[0] is not a whole number from 0 to 1048576"),
        (changed(GPUS, gpus=[[*ROW[:-1], "64"]]), "gpus.gpus[0] is not a number from 0 to 1e+18"),
        (changed(GPUS, gpus=[ROW] * 65), "gpus.gpus has 65 entries, where 64 are the most"),
        (changed(NCCL, size=0), "nccl.size is not a whole number from 1 to 1048576"),
        (changed(NCCL, devices=["x"] * 65), "nccl.devices has 65 entries, where 64 are the most"),
        (changed(NCCL, interface="=eth0\n"), "nccl.interface holds characters that do not belong there"),
    ],
)
def test_a_field_that_does_not_fit_is_named(message: dict[str, Any], words: str) -> None:
    with pytest.raises(MessageError) as caught:
        from_follower(sent(message))
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (changed(START, attempt=0), "start.attempt is not a whole number from 1 to 1048576"),
        (changed(START, master_port=70000), "start.master_port is not a whole number from 0 to 65535"),
        (changed(START, arguments=["a\0b"]), "start.arguments[0] holds characters that do not belong there"),
        (changed(START, members=["lab1"]), "start.members does not name lab2"),
        (changed(START, config=[]), "start.config is not a mapping"),
        ({"t": "list", "folder": "/a\0"}, "list.folder holds characters that do not belong there"),
        ({"t": "examine", "name": "request"}, "examine.name is not the number of an examination"),
        ({"t": "end", "grace": -1}, "end.grace is not a number from 0 to 86400"),
        ({"t": "bye", "state": "running"}, "bye.state is none of failed, stopped, succeeded"),
        (LINES, "it is of a kind that this end does not take"),
    ],
)
def test_a_follower_checks_its_leader_too(message: dict[str, Any], words: str) -> None:
    with pytest.raises(MessageError) as caught:
        from_leader(sent(message), "lab2")
    assert str(caught.value) == words


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(message=st.sampled_from(FOLLOWER + LEADER), key=st.integers(0, 5), value=VALUES)
@settings(max_examples=examples(600), deadline=None)
def test_any_value_in_any_field_is_taken_or_refused_in_one_sentence(
    message: dict[str, Any], key: int, value: Any
) -> None:
    names = list(message)
    payload = json.dumps({**message, names[key % len(names)]: value}).encode()
    for check in (from_follower, lambda data: from_leader(data, "lab2")):
        try:
            check(payload)
        except MessageError as error:
            assert "\n" not in str(error) and len(str(error)) < 200


@pytest.mark.parametrize(
    ("path", "usable"),
    [
        ("global_step10/mp_rank_00_model_states.pt", True),
        ("epoch=1-step=10.ckpt/checkpoint/latest", True),
        ("my run/checkpoint-10", True),
        ("späť/x", True),
        ("", False),
        ("/etc/passwd", False),
        ("a//b", False),
        ("a/../b", False),
        ("./a", False),
        ("-oProxyCommand=x/y", False),
        ("a/-rf", False),
        ("~root/x", False),
        ("a\nb", False),
        ("a'b", False),
        ("$(id)", False),
        ("`id`", False),
        ("a\udcffb", False),
        ("x" * 4097, False),
    ],
)
def test_which_paths_may_become_arguments(path: str, usable: bool) -> None:
    assert usable_path(path) is usable


def test_a_large_listing_goes_in_pieces_and_comes_out_whole() -> None:
    files = [[f"run/global_step{number}/zero_pp_rank_0_mp_rank_00_optim_states.pt", number] for number in range(50000)]
    found = {"files": [*files, ["odd\nname", 1], ["caf\udce9", 1]], "latest": {"run/latest": "x"}, "truncated": False}
    parts = listing_messages(found)
    assert len(parts) > 1
    assert [part["more"] for part in parts] == [True] * (len(parts) - 1) + [False]
    assert all(len(sent(part)) < LONGEST for part in parts)
    assert [from_follower(sent(part)) for part in parts] == parts
    assert [file for part in parts for file in part["found"]["files"]] == files
    assert [part["found"]["latest"] for part in parts][:2] == [{"run/latest": "x"}, {}]


def test_more_than_a_listing_may_hold_is_left_out_and_said() -> None:
    name = "n" * 4000
    parts = listing_messages(
        {"files": [[f"{name}{number}", 1] for number in range(6000)], "latest": {}, "truncated": False}
    )
    assert len(parts) == messages.MOST_PIECES
    assert all(part["found"]["truncated"] for part in parts)
    assert not parts[-1]["more"]


def test_an_odd_text_in_latest_is_no_tag() -> None:
    found = {"files": [], "latest": {"latest": "a\0b", "x/latest": "-rf", "y\n": "z"}, "truncated": False}
    (part,) = listing_messages(found)
    assert part["found"]["latest"] == {"latest": "", "x/latest": ""}


@given(lines=st.lists(st.tuples(st.none() | st.integers(0, 99), st.text(max_size=300)), max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_lines_go_in_pieces_and_none_is_lost(lines: list[tuple[int | None, str]]) -> None:
    assert [line for piece in pieces(lines) for line in piece] == lines


def test_no_piece_is_longer_than_a_message() -> None:
    worst = [(3, "\x00" * messages.LONGEST_LINE), (3, "\x1f" * messages.LONGEST_LINE), (1, "x")] * 5
    found = list(pieces(worst))
    assert [line for piece in found for line in piece] == worst
    assert max(len(sent({"t": "lines", "lines": piece})) for piece in found) < LONGEST


@pytest.mark.parametrize("row", [5, None, {}, "", [], [0], [0] * 99, [[]] * 8])
def test_a_row_of_a_gpu_is_a_list_of_its_length(row: Any) -> None:
    with pytest.raises(MessageError):
        from_follower(sent({"t": "gpus", "gpus": [row]}))
