# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How long a job may be silent: a table of histories, and what holds of every history."""

from __future__ import annotations

from itertools import accumulate

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.bound import (
    AGAIN,
    FLOOR,
    Pace,
    announced,
    learned,
)
from hypothesis import given
from hypothesis import strategies as st

HANG_AFTER = 600.0

History = list[tuple[float, str]]


def history(*gaps: tuple[float, str]) -> History:
    """Events by the seconds since the one before; the ranks start at 1000."""
    times = accumulate((seconds for seconds, dummy in gaps), initial=1000.0)
    return list(zip(times, ["start", *(kind for dummy, kind in gaps)]))


QUICK = "as every pause may take as long, and 3 times the longest silence after a step so far (2.0 s) is less"
STEPS = [(30.0, "step"), *[(2.0, "step")] * 5]


@pytest.mark.parametrize(
    ("gaps", "seconds", "why"),
    [
        ([], 600, "deepspeed_launch_hang_after, as no step has been reported yet"),
        ([(5, "line"), (200, "line")], 600, "deepspeed_launch_hang_after, as no step has been reported yet"),
        # What took longer than the bound and went on has shown that it may.
        ([(5, "line"), (800, "line")], 1200, "1.5 times the longest silence so far (800 s)"),
        ([(5, "checkpoint")], 600, "deepspeed_launch_hang_after, as no step has been reported yet"),
        (
            STEPS[:2],
            600,
            "deepspeed_launch_hang_after, as only 2 of 3 steps have been reported from which the pace is learned",
        ),
        (STEPS, 60, QUICK),
        ([*STEPS, (25, "step")], 75, "3 times the longest silence after a step so far (25 s)"),
        ([*STEPS, (9, "line"), (25, "line")], 75, "3 times the longest silence after a step so far (25 s)"),
        (
            [*STEPS, (250, "step")],
            600,
            "deepspeed_launch_hang_after, as 3 times the longest silence after a step so far (250 s) is more",
        ),
        ([*STEPS, (700, "step")], 1050, "1.5 times the longest silence after a step so far (700 s)"),
        (
            [*STEPS, (1, "checkpoint")],
            600,
            "deepspeed_launch_hang_after, as this is the first checkpoint that the log announces",
        ),
        (
            [*STEPS, (1, "checkpoint"), (100, "step"), (2, "checkpoint")],
            300,
            "3 times the longest silence while a checkpoint was saved so far (100 s)",
        ),
        # A checkpoint that has been seen says nothing of an evaluation, and nothing of steps.
        (
            [*STEPS, (1, "checkpoint"), (100, "step"), (2, "evaluation"), (5, "line")],
            600,
            "deepspeed_launch_hang_after, as this is the first evaluation that the log announces",
        ),
        (
            [*STEPS, (1, "checkpoint"), (100, "step"), (2, "step")],
            60,
            QUICK,
        ),
        (
            [*STEPS, (1, "checkpoint"), (40, "evaluation"), (50, "step"), (1, "checkpoint")],
            120,
            "3 times the longest silence while a checkpoint was saved so far (40 s)",
        ),
        ([(1, "collective")] * 4, 60, QUICK.replace("2.0", "1.0")),
    ],
)  # fmt: skip
def test_the_bound_follows_from_what_the_job_has_done(gaps: list[tuple[float, str]], seconds: float, why: str) -> None:
    found = learned(history(*gaps), HANG_AFTER)
    assert (found.seconds, found.why) == (seconds, why)


def test_a_job_that_has_trained_for_long_without_a_pause_may_make_its_first_one() -> None:
    steps = [(30.0, "step"), *[(2.0, "step")] * 1800]
    found = learned(history(*steps), HANG_AFTER)
    assert found.seconds == 360
    assert found.why == "as it has trained for 3600 s and made 0 of 3 pauses so far"
    assert learned(history(*steps, *steps[1:]), HANG_AFTER).seconds == 600  # never more than hang_after
    saves = [*[(2.0, "step")] * 50, (25.0, "step")]
    two, three = (learned(history(*steps, *saves * times), HANG_AFTER) for times in (2, 3))
    assert two.seconds > 360 and two.why.endswith("and made 2 of 3 pauses so far")
    assert three.seconds == 75 and three.why == "3 times the longest silence after a step so far (25 s)"


def test_a_thread_that_prints_whatever_happens_does_not_hide_that_no_step_is_made() -> None:
    events = history(*STEPS, *[(10.0, "line")] * 130)
    found, now = learned(events, HANG_AFTER), events[-1][0]
    assert found.over(now + 1) and found.seconds == 1200
    assert found.why == "lines are printed, but no step is reported, which took 2.0 s at most so far"
    assert not learned(events[:100], HANG_AFTER).over(events[99][0] + 9)
    # An evaluation that prints its own progress may take as long as it likes.
    events[7] = (events[7][0], "evaluation")
    assert not learned(events, HANG_AFTER).over(now + 1)


LIMITED = ", but 75 % at most of the time after which silence ends the job"


@pytest.mark.parametrize(
    ("gaps", "ends_after", "seconds", "why"),
    [
        ([], 120, 90, f"deepspeed_launch_hang_after, as no step has been reported yet{LIMITED}"),
        ([*STEPS, (100, "step")], 200, 150, f"3 times the longest silence after a step so far (100 s){LIMITED}"),
        ([*STEPS, (21, "step")], 200, 63, "3 times the longest silence after a step so far (21 s)"),
    ],
)
def test_it_is_examined_before_silence_ends_the_job(
    gaps: list[tuple[float, str]], ends_after: float, seconds: float, why: str
) -> None:
    found = learned(history(*gaps), HANG_AFTER, ends_after)
    assert (found.seconds, found.why) == (seconds, why)


def test_without_hang_after_nothing_is_ever_examined() -> None:
    found = learned(history(*STEPS), 0)
    assert not found.over(1e12) and found.why == "deepspeed_launch_hang_after is 0: the job is not examined"


KINDS = st.sampled_from(["line", "step", "checkpoint", "evaluation", "collective"])
GAPS = st.lists(st.tuples(st.floats(0, 1e4), KINDS), max_size=40)


@given(GAPS, st.floats(1, 1e4))
def test_every_bound_is_at_least_the_floor_and_a_pause_that_was_seen_is_not_reported_again(
    gaps: list[tuple[float, str]], hang_after: float
) -> None:
    pace = Pace(hang_after, 0.0)
    now = 0.0
    seen: dict[str, float] = {}
    phase = "start"
    for seconds, kind in gaps:
        bound = pace.bound()
        assert bound.seconds >= round(min(FLOOR, hang_after), 1)
        # The same pause as before, in the same place, is no news.
        silence = bound.since == pace.last
        assert not silence or bound.seconds >= seen.get(phase, 0.0) * AGAIN - 0.1
        seen[phase] = max(seen.get(phase, 0.0), seconds)
        now += seconds
        pace.note(kind, now)
        if kind in ("step", "collective"):
            phase = "step"
        elif kind != "line" and pace.steps:
            phase = kind


@given(GAPS, st.floats(1, 1e4), st.floats(1, 1e4))
def test_no_bound_of_silence_comes_after_the_end_of_the_job(
    gaps: list[tuple[float, str]], hang_after: float, ends_after: float
) -> None:
    events = history(*gaps)
    found = learned(events, hang_after, ends_after)
    assert found.since + found.seconds <= events[-1][0] + ends_after


@given(GAPS, st.floats(0, 1e5))
def test_a_clock_that_runs_backwards_changes_nothing(gaps: list[tuple[float, str]], back: float) -> None:
    events = history(*gaps)
    pace, same = Pace(HANG_AFTER, 1000.0), Pace(HANG_AFTER, 1000.0)
    for when, kind in events[1:]:
        same.note(kind, when)
        pace.note(kind, when)
        pace.note("line", when - back)
        same.note("line", when)
    assert pace.bound() == same.bound()


@pytest.mark.parametrize(
    ("line", "pause"),
    [
        ("Saving model checkpoint to out/checkpoint-500", "checkpoint"),
        ("[INFO] [Rank 0] [Torch] Checkpoint global_step10 is about to be saved!", "checkpoint"),
        ("[INFO] [Rank 0] Saving model checkpoint: out/mp_rank_00_model_states.pt", "checkpoint"),
        ("saving checkpoint at iteration 100 to ckpt in torch_dist format", "checkpoint"),
        ("saving checkpoint to out", "checkpoint"),
        ("***** Running Evaluation *****", "evaluation"),
        ("***** Running Prediction *****", "evaluation"),
        ("Evaluating:  20%|██        | 2/10 [00:01<00:04]", "evaluation"),
        ("Validation DataLoader 0:   0%|          | 0/5 [00:00<?, ?it/s]", "evaluation"),
        ("step 100/200 loss 0.41", ""),
        ("[rank2] step 3/12 val loss 0.3", ""),
        ("a model that was saved before is loaded", ""),
        ("This evaluation strategy is deprecated", ""),
        ("x" * 5000 + " Saving model checkpoint", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_lines_that_announce_a_pause(line: str, pause: str) -> None:
    assert announced(line) == pause
