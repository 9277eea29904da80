# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.console import Console, duration

from tests.effort import examples
from tests.growth import assert_growth

RECORDED = Path(__file__).parents[2] / "module_utils" / "fixtures"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def console(clock: Clock | None = None, **options: Any) -> Console:
    return Console(["lab1", "lab2", "lab3"], clock or Clock(), **options)


def test_lines_show_node_and_rank() -> None:
    shown = console()
    assert shown.feed("lab1: rank 0: \x1b[32mepoch 1\x1b[0m\nlab1: set up\nlab1: rank 0: \nlab1: rank 0: lo") == [
        "lab1 | epoch 1",
        "lab1 | set up",
    ]
    assert shown.feed("ss 1\nlab2: rank 1: ERROR: no\n") == ["lab1 | loss 1"]
    assert shown.feed("other: rank 0: text\nend") == ["other: rank 0: text"]
    assert shown.finish() == ["end", "lab2 rank 1 | ERROR: no"]
    assert shown.finish() == []


def test_nodes_are_learnt_where_they_are_not_known() -> None:
    shown = Console([], Clock())
    assert shown.feed("loss: 3\n") == ["loss: 3"]
    assert shown.feed("lab1: rank 0: a\nlab2: [2026-11-20 10:33:22,057] [ERROR] b\nlab2: c\n") == [
        "lab1 | a",
        "lab2 | [2026-11-20 10:33:22,057] [ERROR] b",
        "lab2 | c",
    ]
    workers = Console([], Clock())
    assert workers.feed("lab1: Running on the following workers: lab1,lab2\nlab2: d\n") == [
        "lab1 | Running on the following workers: lab1,lab2",
        "lab2 | d",
    ]


def test_the_launchers_routine_is_not_shown() -> None:
    text = (RECORDED / "job" / "pdsh_raise.txt").read_text(encoding="utf-8").replace("␍", "\r")
    merged = "".join(f"lab1: {line}\n" for line in text.split("\n") if line)  # as the leader writes pdsh's output
    shown = console().feed(merged)
    assert not [line for line in shown if "[INFO]" in line or "cmd = " in line or "WORLD INFO" in line]
    assert next(line for line in shown if "exits with return code = 1" in line).startswith("lab2 | [2026-")
    assert "lab2 | [rank1]: ValueError: no such column" in shown
    assert "lab1 | pdsh@lab1: lab2: ssh exited with exit code 1" in shown
    assert console().feed("lab1: rank 0: cmd = [1]\n") == ["lab1 | cmd = [1]"]  # the script's own


def test_a_bar_that_redraws_itself_is_quiet() -> None:
    clock = Clock()
    shown = console(clock)
    assert shown.feed("lab1: rank 0: \r1%\r2%\r") == []
    clock.now = 11
    assert shown.feed("3%\r") == ["lab1 | 3%"]
    assert shown.feed("4%\r") == []
    clock.now = 22
    assert shown.feed("5%\r") == ["lab1 | 5%"]
    assert shown.feed("100%\nlab1: rank 0: done\n") == ["lab1 | 100%", "lab1 | done"]


def test_a_bar_written_line_by_line_is_as_quiet_for_each_rank() -> None:
    clock = Clock()
    shown = console(clock)
    lines = []
    for number in range(31):
        clock.now = number
        lines += shown.feed(f"lab1: rank 0:  {number}%|█ | {number}/30 [00:01<00:02]\n")
    assert [re.findall(r"(\d+)/30", line) for line in lines] == [["0"], ["10"], ["20"], ["30"]]
    assert shown.feed("lab2: rank 1:  9%|█ | 9/30 [00:01<00:02]\n") == []  # waits for other ranks
    assert shown.finish() == ["lab2 rank 1 |  9%|█ | 9/30 [00:01<00:02]"]


def test_long_lines_are_cut_and_an_endless_one_is_shown() -> None:
    assert console().feed("lab1: " + "x" * 5000 + "\n") == ["lab1 | " + "x" * 2000 + " …"]
    assert console().feed("lab1: " + "x" * 70000) == ["lab1 | " + "x" * 2000 + " …"]


def test_the_same_line_of_several_ranks_is_shown_once() -> None:
    clock = Clock()
    shown = console(clock)
    assert shown.feed("lab2: rank 1: [rank1]: ValueError: x\nlab2: rank 2: [rank2]: ValueError: x\n") == []
    clock.now = 1
    assert shown.feed("lab3: rank 3: [rank3]: ValueError: x\nlab3: rank 3: other\n") == []
    clock.now = 2
    assert shown.feed("") == ["lab2 rank 1 | [rank1]: ValueError: x (and ranks 2, 3)"]
    clock.now = 3
    assert shown.feed("") == ["lab3 rank 3 | other"]
    shown.feed("lab2: rank 1: x\n")
    clock.now = 5.5
    assert shown.feed("lab2: rank 2: x\n") == ["lab2 rank 1 | x (and rank 2)"]
    assert shown.feed("lab2: rank 2: x\n") == []  # later than that: a line of its own
    assert shown.finish() == ["lab2 rank 2 | x"]


def test_a_rank_that_repeats_itself_is_not_folded() -> None:
    shown = console()
    shown.feed("lab2: rank 1: again\nlab2: rank 1: again\n")
    assert shown.finish() == ["lab2 rank 1 | again"] * 2


def test_what_rank_0_says_too_is_not_shown_again() -> None:
    clock = Clock()
    shown = console(clock)
    assert shown.feed("lab2: rank 1: ValueError: x\nlab1: rank 0: ValueError: x\n") == [
        "lab1 | ValueError: x (and rank 1)"
    ]
    assert shown.feed("lab1: rank 0: a\nlab1: rank 0: b\n") == ["lab1 | a", "lab1 | b"]
    clock.now = 1
    for rank in (1, 2):
        assert shown.feed(f"lab2: rank {rank}: a\nlab2: rank {rank}: b\n") == []
    assert shown.feed("lab3: rank 3: a\n") == []
    clock.now = 3
    assert shown.feed("") == ["rank 3 | (the same 1 line as rank 0)", "ranks 1, 2 | (the same 2 lines as rank 0)"]
    assert shown.feed("lab2: rank 1: a\n") == []  # 3 s after rank 0: a line of its own
    assert shown.finish() == ["lab2 rank 1 | a"]


def test_every_line_is_accounted_for_however_the_log_is_cut() -> None:
    chooser = random.Random(3)
    for dummy in range(examples(200)):
        reported = [(rank, f"word{word}") for rank in range(4) for word in range(6)]
        chooser.shuffle(reported)
        log = "".join(f"lab{rank // 2 + 1}: rank {rank}: {word}\n" for rank, word in reported)
        clock = Clock()
        shown = console(clock)
        got: list[str] = []
        rest = log
        while rest:
            size = chooser.randint(1, 60)
            got += shown.feed(rest[:size])
            rest = rest[size:]
            clock.now += chooser.choice((0.0, 0.5, 3.0))
        got += shown.finish()
        count = 0
        for line in got:
            same = re.search(r"^ranks? ([\d, ]+) \| \(the same (\d+) line", line)
            also = re.search(r"\(and ranks? ([\d, ]+)\)$", line)
            count += len(same[1].split(",")) * int(same[2]) if same else 1 + (len(also[1].split(",")) if also else 0)
        assert count == len(reported)
        assert [line.split(" | ")[1].split(" (")[0] for line in got if re.match(r"lab\d \|", line)] == re.findall(
            r"rank 0: (\w+)", log
        )


def test_nothing_that_moves_a_cursor_gets_through() -> None:
    chooser = random.Random(4)
    shown, clock = console(), Clock()
    shown = console(clock)
    for dummy in range(examples(500)):
        text = "".join(
            chooser.choices(["lab1: ", "rank 1: ", "\x1b[2K", "\x1b]0;x\x07", "\r", "\n", "\x9b", "a", "\x07"], k=20)
        )
        clock.now += chooser.random() * 5
        lines = [*shown.feed(text), *shown.progress({"step": dummy, "loss": 1.0}, clock.now)]
        assert not [line for line in lines if re.search(r"[\x00-\x1f\x7f-\x9f]", line)]


def test_a_line_of_figures() -> None:
    shown = console(
        name="digits",
        members=[
            {"name": "lab1", "slots": [0, 1], "first_rank": 0},
            {"name": "lab2", "slots": [0, 1], "first_rank": 2},
        ],
    )
    figures = {
        **{"step": 120, "total": 1200, "loss": 0.43121, "samples_per_second": 512.3, "tokens_per_second": None},
        **{"seconds_left": 130.2, "slowest_rank": 3},
    }
    assert shown.progress(figures, 100) == [
        "digits: step 120 of 1200 (10 %), loss 0.4312, 512 samples/s, 2 min 10 s left, slowest rank 3 (lab2)"
    ]


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ({"step": 3, "total": 12, "unit": "epoch", "slowest_rank": 7}, "epoch 3 of 12 (25 %), slowest rank 7"),
        (
            {"step": 3, "total": None, "loss": 12345.0, "tokens_per_second": 98765.4},
            "step 3, loss 1.23e+04, 98765 tokens/s",
        ),
        (
            {"step": 3, "loss": None, "bad_loss": "nan", "samples_per_second": 0.1234},
            "step 3, loss nan, 0.123 samples/s",
        ),
        ({"loss": 0.00001234, "seconds_left": 5}, "loss 1.23e-05"),
        ({"step": 10, "total": 10, "loss": 0.0, "seconds_left": 0.0}, "step 10 of 10 (100 %), loss 0.0000"),
    ],
)
def test_only_what_is_known_is_reported(figures: dict[str, Any], line: str) -> None:
    assert console().progress(figures, 0) == [line]


@pytest.mark.parametrize("nothing", [None, {}, {"step": None, "loss": None, "seconds_left": 5.0, "slowest_rank": 1}])
def test_without_figures_there_is_no_line(nothing: dict[str, Any] | None) -> None:
    assert console().progress(nothing, 0) == []


@pytest.mark.parametrize(("terminal", "interval"), [(False, 15), (True, 5)])
def test_figures_come_in_intervals_and_when_they_changed(terminal: bool, interval: int) -> None:
    shown = console(terminal=terminal)
    times = [now for now in range(61) if shown.progress({"step": now}, now)]
    assert times == list(range(0, 61, interval))
    assert shown.progress({"step": 60, "seconds_left": 3.0}, 100) == []
    assert shown.progress({"step": 61}, 101) == ["step 61"]


def test_the_node_of_the_slowest_rank_is_learnt() -> None:
    shown = console()
    shown.feed("lab3: rank 5: WARNING x\n")
    assert shown.progress({"step": 1, "slowest_rank": 5}, 0) == ["step 1, slowest rank 5 (lab3)"]


@pytest.mark.parametrize(
    ("seconds_left", "text"),
    [
        (0.2, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (130.2, "2 min 10 s"),
        (3599.7, "1 h"),
        (3660, "1 h 1 min"),
        (86399, "1 d"),
        (90000, "1 d 1 h"),
        (86400 + 120, "1 d"),
    ],
)
def test_durations(seconds_left: float, text: str) -> None:
    assert duration(seconds_left) == text


def test_a_console_of_many_ranks_keeps_up() -> None:
    def run(ranks: int) -> None:
        shown = console()
        for rank in range(1, ranks + 1):
            shown.feed("".join(f"lab2: rank {rank}: line {number}\n" for number in range(20)))
        assert len(shown.finish()) == 20

    assert_growth(lambda: run(50), lambda: run(200), less_than=10)
