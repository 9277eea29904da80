# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.loud_lines import Loud, speaks
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.progress import HISTORY, Progress

from tests.effort import examples
from tests.growth import assert_growth

RECORDED = Path(__file__).parents[2] / "fixtures" / "progress"


def fed(*texts: str, step: float = 1.0) -> dict[str, Any]:
    progress = Progress()
    for number, text in enumerate(texts):
        progress.feed(0, text, number * step)
    return progress.figures()


def text_lines(name: str) -> list[str]:
    """``splitlines`` would also split at carriage returns, which bars use to redraw themselves."""
    return (RECORDED / name).read_text(encoding="utf-8").replace("␍", "\r").rstrip("\n").split("\n")


@pytest.mark.parametrize(
    ("name", "step", "total", "loss", "samples"),
    [
        ("deepspeed_0.19.8.txt", 8, None, None, pytest.approx(1041, rel=0.9)),
        ("deepspeed_0.15.4.txt", 8, None, None, pytest.approx(1041, rel=0.9)),
        ("deepspeed_pipeline.txt", 8, None, pytest.approx(1.0, rel=0.2), pytest.approx(250, rel=0.9)),
        ("transformers.txt", 20, 20, 1.302, 304.0),
        ("lightning_tqdm.txt", 80, None, 0.602, None),
        ("lightning_rich.txt", 80, 80, 0.672, None),
    ],
)
def test_recorded_logs_give_their_figures(name: str, step: int, total: int | None, loss: Any, samples: Any) -> None:
    figures = fed(*text_lines(name))
    assert (figures["step"], figures["total"], figures["unit"]) == (step, total, "step")
    assert figures["loss"] == loss
    assert figures["samples_per_second"] == samples
    assert figures["slowest_rank"] is None


def test_every_recorded_line_moves_a_training_forward_or_not_at_all() -> None:
    for name in ("deepspeed_0.19.8.txt", "deepspeed_0.15.4.txt", "deepspeed_pipeline.txt", "transformers.txt"):
        progress, last = Progress(), 0
        for now, line in enumerate(text_lines(name)):
            progress.feed(0, line, now)
            step = progress.figures()["step"] or 0
            assert step >= last, f"{name}: {line!r}"
            last = step


BAR = "[00:12<01:50,  1.06it/s"


@pytest.mark.parametrize(
    ("line", "step", "total", "unit", "loss"),
    [
        ("digits: epoch 3/12 loss 0.3000 accuracy 0.9000", 3, 12, "epoch", 0.3),
        ("Epoch 3/12", 3, 12, "epoch", None),
        ("step 10/100 loss=1.5e-1", 10, 100, "step", 0.15),
        ("iter 5/20", 5, 20, "step", None),
        ("Step [100/600], Loss: 2.30", 100, 600, "step", 2.3),
        ("Iteration 7 of 50, training loss 0.25, val loss 0.5", 7, 50, "step", 0.25),
        ('{"step": 40, "loss": 0.5, "lr": 0.001}', 40, None, "step", 0.5),
        ("global_step: 12 | loss (avg): 3.5 | 1,234 tokens/s", 12, None, "step", 3.5),
        (f" 10%|█         | 13/130 {BAR}]", 13, 130, "step", None),
        (f"[rank0]: 10%|█         | 13/130 {BAR}]", 13, 130, "step", None),
        (f"Training:  10%|█         | 13/130 {BAR}]", 13, 130, "step", None),
        (f"Epoch 0:  50%|█████     | 10/20 {BAR}, v_num=0, train_loss=0.500]", 10, None, "step", 0.5),
        (f"Epoch 2/3:  50%|█████     | 10/20 {BAR}, loss=0.500]", 30, 60, "step", 0.5),
        (f"Epoch:  33%|███       | 1/3 {BAR}]", 1, 3, "epoch", None),
        (f" 10%|█ | 13/130 {BAR}]{{'loss': 1.25, 'epoch': 0.3}}", 13, 130, "step", 1.25),
        # Stand-ins, written after the sources of nanoGPT and Megatron:
        ("iter 5: loss 10.2031, time 123.40ms, mfu 1.20%", 5, None, "step", 10.2031),
        ("step 0: train loss 10.9800, val loss 10.9700", 0, None, "step", 10.98),
        (
            " iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 100.0 "
            "| learning rate: 1.5E-04 | global batch size:    16 | lm loss: 6.700000E+00 | loss scale: 1.0 |",
            10,
            100,
            "step",
            6.7,
        ),
    ],
)
def test_a_line_is_read(line: str, step: int, total: int | None, unit: str, loss: float | None) -> None:
    figures = fed(line)
    assert (figures["step"], figures["total"], figures["unit"], figures["loss"]) == (step, total, unit, loss)


@pytest.mark.parametrize(
    "line",
    [
        "2026/11/20 10:33:22 INFO starting step-by-step tutorial",
        "Epoch times are in seconds since 1970, loss of data is possible",
        "Training for 3 epochs with transformers 4.30/5.0",
        "Step 1/3: preparing the data",
        "step 1 of 3: installing requirements",
        f"Downloading model.safetensors:  10%|█         | 13/130 {BAR}]",
        f"Map:  10%|█         | 13/130 {BAR}]",
        f"Loading checkpoint shards:  50%|█████     | 1/2 {BAR}]",
        f"Generating train split:  50%|█████     | 1/2 {BAR}]",
        f"Evaluating:  50%|█████     | 1/2 {BAR}]",
        f"Validation DataLoader 0:  50%|█████     | 1/2 {BAR}]",
        f"Training tokenizer:  50%|█████     | 1/2 {BAR}]",
        "[Torch] Saving global_step120/mp_rank_00_model_states.pt",
        "steps_per_print ............................... 10",
        "'eval_loss': 0.5, 'eval_samples_per_second': 12.0",
        "loss scale: 65536, attempting to reduce",
        "iter time (s): 0.100",
        "step 2026/11/20 started at time 10",
        "micro_step=8",
    ],
)
def test_decoys_are_not_taken(line: str) -> None:
    figures = fed(line)
    assert {key: value for key, value in figures.items() if value is not None} == {"unit": "step"}


def test_speed_and_time_left_come_from_what_is_printed() -> None:
    assert fed("step 5/10 loss 1 | 1,234.5 tokens/s | 12 samples/sec")["tokens_per_second"] == 1234.5
    assert fed("step 5/10 loss 1 | 1,234.5 tokens/s | 12 samples/sec")["samples_per_second"] == 12
    assert fed("step 5/10 loss 1 tokens/s/gpu: 99")["tokens_per_second"] is None
    assert fed(f" 10%|█ | 13/130 {BAR}]")["seconds_left"] == 110
    assert fed("step 5/10 loss 1, ETA: 1:00:05")["seconds_left"] == 3605
    assert fed("iteration 10/ 100 | elapsed time per iteration (ms): 100.0 | global batch size: 16 |")[
        "samples_per_second"
    ] == pytest.approx(160)


def test_time_left_is_computed_from_recent_steps() -> None:
    figures = fed(*[f"step {number}/100 loss 1" for number in range(0, 50, 10)], step=20.0)
    assert figures["seconds_left"] == pytest.approx(60 / 10 * 20)
    assert fed("step 5/10 loss 1")["seconds_left"] is None  # one report says nothing about speed
    assert fed("step 5/10 loss 1", "step 6/10 loss 1", step=0)["seconds_left"] is None  # read at once
    assert fed("step 5/10 loss 1", "step 10/10 loss 1")["seconds_left"] == 0


def test_a_loss_that_is_no_number_is_reported_and_stays_json() -> None:
    figures = fed("step 5/10 loss nan")
    assert (figures["loss"], figures["bad_loss"]) == (None, "nan")
    assert "NaN" not in json.dumps(figures)
    assert fed("step 5/10 loss nan", "step 6/10 loss 0.5")["bad_loss"] is None


def test_samples_are_computed_where_the_batch_is_known() -> None:
    progress = Progress(samples_per_step=32)
    for number in range(4):
        progress.feed(0, f"step {number}/10 loss 1", number * 2.0)
    assert progress.figures()["samples_per_second"] == pytest.approx(16)


def test_an_evaluation_between_the_steps_does_not_count() -> None:
    train, other = f" 10%|█ | 13/130 {BAR}]", f" 50%|█ | 5/10 {BAR}]"
    assert (fed(train, other)["step"], fed(train, other)["total"]) == (13, 130)
    ended = fed("100%|█| 130/130 [00:12<00:00,  1.06it/s]", "{'train_runtime': '9', 'train_loss': '7'}", other)
    assert (ended["step"], ended["total"], ended["loss"]) == (130, 130, None)


def test_steps_within_epochs_are_added_up_unless_they_count_on() -> None:
    inner = [f"Epoch [{epoch}/3], Step [{step}/100], Loss: 1" for epoch in (1, 2) for step in (50, 100)]
    assert [fed(*inner[:count])["step"] for count in range(1, 5)] == [50, 100, 150, 200]
    assert fed(*inner)["total"] == 300
    outer = [f"epoch {step // 101 + 1}/3 step {step}/300 loss 1" for step in (50, 100, 150, 200)]
    assert (fed(*outer)["step"], fed(*outer)["total"]) == (200, 300)


def test_steps_of_n_win_over_epochs_and_a_kind_that_ended_is_forgotten() -> None:
    assert fed("epoch 1/3 loss 1", "step 10/100 loss 1", "epoch 2/3 loss 1")["step"] == 10
    figures = fed("step 1/3 loss 1", *[f"step {number}, loss 1" for number in range(100)])
    assert (figures["step"], figures["total"]) == (99, None)


def test_figures_come_from_the_rank_that_reports() -> None:
    progress = Progress()
    progress.feed(0, "starting epoch loop", 0)
    progress.feed(3, "iteration 10/ 100 | lm loss: 6.7E+00 |", 1)
    assert (progress.figures()["step"], progress.figures()["loss"]) == (10, 6.7)


def test_the_slowest_rank() -> None:
    def ranks(*paces: float, lag: int = 0) -> int | None:
        progress = Progress()
        for number in range(8):
            for rank, pace in enumerate(paces):
                if not (lag and rank == 1 and number >= 8 - lag):
                    progress.feed(rank, f"step {number}/100 loss 1", number * pace)
        slowest: int | None = progress.figures()["slowest_rank"]
        return slowest

    assert ranks(1.0, 1.0, 1.0) is None
    assert ranks(1.0) is None
    assert ranks(1.0, 1.0, 1.05) is None  # not clearly
    assert ranks(1.0, 1.0, 1.5) == 2
    assert ranks(1.0, 1.0, lag=1) is None  # it may just not have printed yet
    assert ranks(1.0, 1.0, lag=3) == 1


def test_history_is_bounded_even_and_ends_with_the_last_point() -> None:
    progress = Progress()
    for number in range(10001):
        progress.feed(0, f"step {number}/20000 loss {number / 10}", float(number))
        assert len(progress.history()) <= HISTORY
    points = progress.history()
    assert len(points) > HISTORY / 3
    assert points[-1] == {"t": 10000.0, "step": 10000, "loss": 1000.0, "rate": 1.0}
    gaps = {after["step"] - before["step"] for before, after in zip(points[:-1], points[1:-1], strict=False)}
    assert len(gaps) == 1
    assert points[0]["step"] == 0


def test_no_text_breaks_the_reader() -> None:
    chooser = random.Random(5)
    pieces = [
        "step ",
        "epoch ",
        "1/",
        "3",
        "loss",
        ": ",
        "nan",
        "%|",
        "█| 5/10 [00:01<",
        "?]",
        "\r",
        "\n",
        "[",
        "0/0",
        " of ",
        "eta 1:2",
        "50%| | 5/10 [::1<1::2",
        "]",
    ]
    for dummy in range(examples(2000)):
        progress = Progress()
        progress.feed(chooser.randrange(3), "".join(chooser.choices(pieces, k=12)), chooser.random())
        json.dumps(progress.figures())


@pytest.mark.parametrize(
    "piece", ["step ", "loss", "a", "1", " ", "% ", "1%|", "epoch 1/", " /s", "'", "(", "[00:", "E"]
)
def test_reading_a_line_takes_time_in_proportion(piece: str) -> None:
    short, long = "step loss " + piece * 250, "step loss " + piece * 1000
    assert_growth(lambda: (fed(short), speaks(short)), lambda: (fed(long), speaks(long)), less_than=12)


@pytest.mark.parametrize(
    ("text", "loud"),
    [
        ("[2026-11-20 10:33:22,057] [WARNING] [engine.py:4437:load_checkpoint] Unable to find latest file", True),
        ("[2026-11-20 10:33:22,057] [INFO] [engine.py:1:f] Error: handled", False),
        ("WARNING:root:disk is slow", True),
        ("ERROR: no such file", True),
        ("Traceback (most recent call last):", True),
        ("[rank1]: ValueError: no such column", True),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", True),
        ("AssertionError", True),
        ("lab2:12:34 [0] NCCL WARN Bootstrap : no socket interface found", True),
        ("lab2:12:34 [0] NCCL INFO NCCL_DEBUG set by environment to WARN", False),
        ("terminate called without an active exception", True),
        ("Killed", True),
        ("bash: line 1:   348 Killed                  python train.py", True),
        (
            "[E1120 10:33:22.123456789 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout",
            True,
        ),
        ("[W socket.cpp:436] [c10d] The server socket cannot be initialized", True),
        ("Bus error (core dumped)", True),
        ("RuntimeWarning: divide by zero", True),
        ("/opt/x.py:83: FutureWarning: `a` is deprecated. An Error: is near", False),
        ("/opt/x.py:83: UserWarning: old", False),
        ("<string>:1: DeprecationWarning: old", False),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING=3", False),
        ("export NCCL_DEBUG=WARN", False),
        ("step 3 loss 0.5 errors 0", False),
        ("no error so far", False),
        ("", False),
    ],
)
def test_speaks(text: str, loud: bool) -> None:
    assert speaks(text) is loud
    assert Loud().feed(text) == ([text] if loud else [])


TRACE = [
    "[rank1]: Traceback (most recent call last):",
    '[rank1]:   File "/workspace/train.py", line 8, in <module>',
    '[rank1]:     raise ValueError("no such column")',
    "[rank1]: ValueError: no such column",
]


def test_a_traceback_is_passed_on_whole_and_alone() -> None:
    plain_trace = [line.removeprefix("[rank1]: ") for line in TRACE]
    for trace in (TRACE, plain_trace):
        loud = Loud()
        assert loud.feed("\n".join(["step 1 loss 3", *trace, "step 2 loss 3"]) + "\n") == trace
        assert loud.before() == ["step 2 loss 3"]  # what stood before it would be taken for later


def test_chained_tracebacks_and_what_follows_an_exception() -> None:
    text = [
        *[line.removeprefix("[rank1]: ") for line in TRACE],
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error",
        "ncclSystemError: System call failed",
        "Last error:",
        "socketStartConnect: Connect to 10.0.0.2<1234> failed",
        *[f"line {number}" for number in range(9)],
    ]
    shown = Loud().feed("\n".join(text))
    assert shown == [line for line in text if line][:-7]  # five lines after the exception's own


def test_a_warning_of_pythons_takes_its_source_line_with_it() -> None:
    loud = Loud()
    recorded = text_lines("deepspeed_0.19.8.txt")
    assert any("FutureWarning" in line for line in recorded)
    assert loud.feed("\n".join(recorded)) == []
    assert loud.before() == recorded  # they are reported when the rank fails


def test_lines_before_a_failure_are_given_out_once() -> None:
    loud = Loud(keep=3)
    loud.feed("a\nb\nc\n\x1b[32md\x1b[0m")
    assert loud.before(2) == ["c", "d"]
    assert loud.before() == []
    loud.feed("e\nf")
    assert loud.before(0) == []
    loud.feed("g")
    assert loud.before() == ["g"]
