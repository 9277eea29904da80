# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the output of ranks says about a training: how far it is, its loss and speed.

Part of the supervisor's archive: standard library, Python 3.8 or later.
The formats are those of DeepSpeed 0.15.4 to 0.19.8, the Hugging Face Trainer, Lightning, Megatron, nanoGPT and of plain
scripts. DeepSpeed 0.16.9 prints its own "step=…" lines; 0.17.6 and later print warnings only, and from 0.19.3 on
``"log_level": "info"`` in ds_config.json brings them back.
"""

from __future__ import annotations

import math
import re
from collections import deque
from typing import Any

from ..launcher_log import plain

HISTORY = 500
"""Points kept for curves."""
RECENT = 32
"""Reports of a rank from which its speed is computed."""
CLEARLY = 1.25
"""A rank is slow when its steps take this much longer than those of the others."""
LONGEST = 4000
"""Characters of a line that are read."""

# Every run of digits or blanks is bounded: a log can hold anything, and an open one would be tried in too many ways.
_NUMBER = r"([-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,4})?)"
_WORTH = re.compile(r"step|iter|epoch|loss|%\||/s|per.?sec", re.IGNORECASE)
_BAR = re.compile(r"\d{1,3}%\|[^|]*\|\s{0,12}(\d{1,15})/(\d{1,15})\s{0,12}\[[\d:]{1,20}<([\d:]{1,20}|\?)")
_RICH = re.compile(r"Epoch (\d{1,9})/(\d{1,9})\s{1,4}[━╸╺ ]{1,200}(\d{1,15})/(\d{1,15}) \d+:\d\d:\d\d • ")
"""Lightning's bar where rich is installed; its last epoch is one less than max_epochs."""
_TITLE = re.compile(
    r"(?:\[[\w ]+\]:?\s{0,12})?(?:(?:running )?(?:train(?:ing)?|steps?|iter(?:ation)?s?|epochs?)\b.{0,60})?\s{0,12}:?",
    re.IGNORECASE,
)
_NOT_TRAINING = re.compile(r"eval|valid|test|token|predict|split|download|data", re.IGNORECASE)
_STEP = r"(?<![\w.])(?:global[_ ]?step|steps?|iter(?:ation)?s?)\b['\"]?\s{0,12}[:=#]?\s{0,12}[\[(]?\s{0,12}"
_EPOCH = r"(?<![\w.])epochs?\b['\"]?\s{0,12}[:=#]?\s{0,12}[\[(]?\s{0,12}"
_OF = r"(\d{1,15})\s{0,12}(?:/|of)\s{0,12}(\d{1,15})(?![\d./-])"
_STEP_OF = re.compile(_STEP + _OF, re.IGNORECASE)
_STEP_AT = re.compile(_STEP + r"(\d{1,15})(?![\d.]*[\w/%])", re.IGNORECASE)
_EPOCH_OF = re.compile(_EPOCH + _OF, re.IGNORECASE)
_EPOCH_AT = re.compile(_EPOCH + r"(\d{1,9})", re.IGNORECASE)
_ALONE = re.compile(
    rf"(?:[\w-]{{1,30}}:\s{{0,12}})?(?:{_STEP}{_OF}|{_EPOCH}{_OF})[\])]?\s{{0,12}}[:.]?\s{{0,12}}", re.IGNORECASE
)
METRIC = re.compile(
    r"(?:(?<![A-Za-z])(?:loss(?:es)?|lr|rate|acc(?:uracy)?|norm|ppl|perplexity|mfu|eta|elapsed|time|samples?|tokens?"
    r"|skipped)(?![A-Za-z])|SamplesPerSec)[^|,;\d]{0,30}\d",
    re.IGNORECASE,
)
_LOSS = re.compile(
    r"((?<![A-Za-z])[A-Za-z]+[ _/.-])?(?<![A-Za-z])loss(?:_step|_epoch)?(?![ _]?scal)"
    rf"['\"]?\s{{0,12}}(?:\([^)]{{0,20}}\))?\s{{0,12}}[:=]?\s{{0,12}}['\"]?(?:{_NUMBER}|(nan|-?inf)\b)",
    re.IGNORECASE,
)
_NOT_THE_LOSS = re.compile(r"(?:eval|val|valid|validation|test|dev|aux|best|max|min)[ _/.-]", re.IGNORECASE)
_THE_LOSS = re.compile(r"(?:lm|train|training)[ _/.-]", re.IGNORECASE)
_PER_SECOND = r"(?:/s(?:ec(?:ond)?)?|[ _]?per[ _]?sec(?:ond)?)(?![\w/])"


def _speed(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """``NAME/s: 12``, and ``12 NAME/s`` for lines that have none of the first."""
    unit = rf"(?<!\w)(?:train_)?{name}{_PER_SECOND}"
    after = rf"{unit}['\"]?\s{{0,12}}(?:\([^)]{{0,20}}\))?\s{{0,12}}[:=]\s{{0,12}}['\"]?{_NUMBER}"
    before = rf"(?<![\d.,])(\d[\d,]{{0,17}}(?:\.\d{{0,12}})?)\s{{0,12}}{unit}"
    return re.compile(after, re.IGNORECASE), re.compile(before, re.IGNORECASE)


_SAMPLES, _TOKENS = _speed("samples?"), _speed("(?:tokens?|tok)")
_DS_SAMPLES = re.compile(rf"RunningAvgSamplesPerSec={_NUMBER}")
_MEGATRON = re.compile(rf"elapsed time per iteration \(ms\): {_NUMBER}.*?global batch size:\s{{0,12}}(\d{{1,15}})")
_LEFT = re.compile(
    r"\b(?:eta|remaining|remaining_time|time left)\b['\"]?\s{0,12}[:=]?\s{0,12}['\"]?((?:\d{1,4}:)?\d{1,4}:\d\d)\b",
    re.IGNORECASE,
)

_KINDS = ("of", "epoch_bar", "at", "epoch")
"""How a step is printed, the best first: step N of M; N of M in epoch E; step N; epoch E of F."""
_STALE = 50
"""After so many reports of another kind, a kind that was not seen again is forgotten."""


def _seconds(text: str) -> float | None:
    if not text[:1].isdigit():
        return None
    value = 0
    for part in text.split(":"):
        value = value * 60 + int(part or 0)
    return float(value)


def counts(text: str) -> bool:
    """Whether a line may hold a figure: cheap, and true of more lines than do."""
    return bool(_WORTH.search(text))


class _Rank:
    """What one rank has said."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[int, int | None]] = {}
        self.idle: dict[str, int] = {}
        self.times: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self.kind = ""
        self.loss: float | None = None
        self.bad_loss = ""
        self.samples: float | None = None
        self.tokens: float | None = None
        self.left: tuple[float, float] | None = None  # seconds, and when it was computed
        self.ended = False
        self._from_zero = False
        self._epoch: tuple[int, int] = (-1, -1)  # the last epoch, and the step it was at
        self._global = False  # "epoch 2/3 step 150/300": the step counts on over epochs

    def note(self, kind: str, step: int, total: int | None, now: float) -> bool:
        """Take a report. True when the figure that counts has moved."""
        self.seen[kind] = (step, total)
        self.idle[kind] = 0
        for other in [name for name in self.seen if name != kind]:
            self.idle[other] += 1
            if self.idle[other] > _STALE:
                del self.seen[other]
        best = next(name for name in _KINDS if name in self.seen)
        if best != self.kind:
            self.kind = best
            self.times.clear()
        if kind != best or (self.times and self.times[-1][1] == step):
            return False
        if self.times and step < self.times[-1][1]:  # another training in the same job
            self.times.clear()
        self.times.append((now, step))
        return True

    def epoch_step(self, epoch: int, at: int, of: int, epochs: int | None, now: float) -> bool:
        """A step within an epoch. Whether it counts on over epochs shows when the first epoch ends."""
        last, last_at = self._epoch
        if last >= 0 and epoch > last:
            self._global = at > last_at
        self._epoch = (epoch, at)
        self._from_zero = self._from_zero or epoch == 0
        if self._global:
            return self.note("of", at, of, now)
        done = max(0, epoch if self._from_zero else epoch - 1)
        return self.note("epoch_bar", done * of + at, epochs * of if epochs else None, now)

    @property
    def step(self) -> int | None:
        return self.seen[self.kind][0] if self.kind in self.seen else None

    @property
    def total(self) -> int | None:
        return self.seen[self.kind][1] if self.kind in self.seen else None

    def rate(self) -> float | None:
        """Steps a second, of the last reports."""
        if len(self.times) < 2:
            return None
        (began, first), (ended, last) = self.times[0], self.times[-1]
        return (last - first) / (ended - began) if ended > began else None

    def stride(self) -> int:
        """Steps between two reports."""
        steps = [step for _when, step in self.times]
        return max((after - before for before, after in zip(steps, steps[1:])), default=1)


class Progress:
    """Fed with what ranks print; ``figures`` says where the training is.

    ``samples_per_step``: train_batch_size, where it is known and no rank prints samples a second.
    """

    def __init__(self, samples_per_step: int | None = None) -> None:
        self._samples_per_step = samples_per_step
        self._ranks: dict[int, _Rank] = {}
        self._now = 0.0
        self._points: list[dict[str, Any]] = []
        self._last_point: dict[str, Any] | None = None
        self._every, self._count = 1, 0

    def feed(self, rank: int, text: str, now: float) -> bool:
        """``text``: one or more whole lines, or what a bar that redraws itself has drawn. True: it went on."""
        self._now = max(self._now, now)
        moved = False
        if not _WORTH.search(text):
            return moved
        state = self._ranks.setdefault(rank, _Rank())
        for line in text.split("\n"):
            for piece in line.split("\r")[-20:]:
                if _WORTH.search(piece) and self._read(state, plain(piece[:LONGEST]), now) and rank == self._main():
                    self._remember(state, now)
                    moved = True
        return moved

    def _read(self, state: _Rank, line: str, now: float) -> bool:
        if "'train_runtime'" in line or '"train_runtime"' in line:
            state.ended = True  # the bars that may follow are of an evaluation; this loss is a mean
        else:
            self._loss(state, line)
        found = _DS_SAMPLES.search(line) or _SAMPLES[0].search(line) or _SAMPLES[1].search(line)
        if found:
            state.samples = float(found.group(1).replace(",", ""))
        found = _TOKENS[0].search(line) or _TOKENS[1].search(line)
        if found:
            state.tokens = float(found.group(1).replace(",", ""))
        found = _MEGATRON.search(line)
        if found and float(found.group(1)) > 0:
            state.samples = float(found.group(2)) * 1000 / float(found.group(1))
        found = _LEFT.search(line)
        if found:
            state.left = (_seconds(found.group(1)) or 0.0, now)
        rich, drawn = _RICH.search(line), _BAR.search(line)
        if rich:
            epoch, last, at, of = (int(text) for text in rich.groups()[:4])
            return state.note("epoch_bar", epoch * of + at, (last + 1) * of, now)
        return self._bar(state, line[: drawn.start()], drawn, now) if drawn else self._plain(state, line, now)

    @staticmethod
    def _loss(state: _Rank, line: str) -> None:
        found = [one for one in _LOSS.finditer(line) if not _NOT_THE_LOSS.fullmatch(one.group(1) or "")]
        if found:
            best = next((one for one in found if _THE_LOSS.fullmatch(one.group(1) or "")), found[0])
            value = float(best.group(2) or best.group(3))
            state.loss = value if math.isfinite(value) else None
            state.bad_loss = "" if math.isfinite(value) else str(value)

    @staticmethod
    def _bar(state: _Rank, title: str, drawn: re.Match[str], now: float) -> bool:
        title = re.sub(r"^\{[^}]*\}\s*", "", title).strip()
        if state.ended or not _TITLE.fullmatch(title) or _NOT_TRAINING.search(title):
            return False
        at, of, left = int(drawn.group(1)), int(drawn.group(2)), _seconds(drawn.group(3))
        if not of or at > of:
            return False
        epoch = _EPOCH_OF.search(title) or _EPOCH_AT.search(title)
        if epoch:
            epochs = int(epoch.group(2)) if epoch.re is _EPOCH_OF else None
            return state.epoch_step(int(epoch.group(1)), at, of, epochs, now)
        if re.fullmatch(r"epochs?\s*:?", title, re.IGNORECASE):
            return state.note("epoch", at, of, now)
        known, total = state.seen.get("of", (0, of))
        if total and of < total and known < total:
            return False  # an evaluation between the steps draws a bar without a title, too
        if left is not None:
            state.left = (left, now)
        return state.note("of", at, of, now)

    @staticmethod
    def _plain(state: _Rank, line: str, now: float) -> bool:
        if not (METRIC.search(line) or _ALONE.fullmatch(line.strip())):
            return False  # prose, such as "Step 1/3: preparing the data"
        step, epoch, at = _STEP_OF.search(line), _EPOCH_OF.search(line), _STEP_AT.search(line)
        if step and int(step.group(1)) > int(step.group(2)):
            step = None
        if epoch and int(epoch.group(1)) > int(epoch.group(2)):
            epoch = None
        if step and epoch:
            numbers = [int(text) for text in (*epoch.groups(), *step.groups())]
            return state.epoch_step(numbers[0], numbers[2], numbers[3], numbers[1], now)
        if step:
            return state.note("of", int(step.group(1)), int(step.group(2)), now)
        moved = state.note("epoch", int(epoch.group(1)), int(epoch.group(2)), now) if epoch else False
        return (state.note("at", int(at.group(1)), None, now) if at else False) or moved

    def _main(self) -> int | None:
        """The rank whose figures count: rank 0, or the one that reports (Megatron's are printed by the last)."""
        known = [rank for rank, state in self._ranks.items() if state.step is not None]
        if 0 in known or not known:
            return 0 if 0 in self._ranks else min(self._ranks, default=None)
        return max(known, key=lambda rank: (self._ranks[rank].step or 0, -rank))

    def _remember(self, state: _Rank, now: float) -> None:
        self._last_point = {"t": now, "step": state.step, "loss": state.loss, "rate": state.rate()}
        if self._count % self._every == 0:
            self._points.append(self._last_point)
            if len(self._points) >= HISTORY:  # room for the last point
                del self._points[1::2]
                self._every *= 2
        self._count += 1

    def history(self) -> list[dict[str, Any]]:
        """Points {t, step, loss, rate} for curves, at most HISTORY, evenly thinned; ``rate`` is steps a second."""
        fresh = self._last_point is not None and (not self._points or self._points[-1] is not self._last_point)
        return [*self._points, self._last_point] if fresh and self._last_point else list(self._points)

    def figures(self) -> dict[str, Any]:
        """What is known now. ``unit``: what step and total count; ``bad_loss``: nan or inf, instead of a loss."""
        main = self._main()
        state = self._ranks[main] if main is not None else _Rank()
        spoken = (
            state
            if state.loss is not None or state.bad_loss
            else next((other for other in self._ranks.values() if other.loss is not None or other.bad_loss), state)
        )
        rate, samples = state.rate(), state.samples
        if samples is None and self._samples_per_step and rate and state.kind != "epoch":
            samples = rate * self._samples_per_step
        return {
            "step": state.step,
            "total": state.total,
            "unit": "epoch" if state.kind == "epoch" else "step",
            "loss": spoken.loss,
            "bad_loss": spoken.bad_loss or None,
            "samples_per_second": samples,
            "tokens_per_second": state.tokens,
            "seconds_left": self._left(state, rate),
            "slowest_rank": self._slowest(),
        }

    def _left(self, state: _Rank, rate: float | None) -> float | None:
        if state.step is not None and state.total is not None and state.step >= state.total:
            return 0.0
        if state.left is not None:
            seconds, reported = state.left
            return max(0.0, seconds - (self._now - reported))
        if state.step is None or state.total is None or not rate:
            return None
        return max(0.0, (state.total - state.step) / rate - (self._now - state.times[-1][0]))

    def _slowest(self) -> int | None:
        """The rank that is behind by more than one report, else the one whose steps take clearly longest."""
        counting = {rank: state for rank, state in self._ranks.items() if state.step is not None}
        kinds = {state.kind for state in counting.values()}
        if len(counting) < 2 or len(kinds) > 1:
            return None
        behind = sorted(counting, key=lambda rank: (counting[rank].step or 0, rank))
        lowest, ahead = counting[behind[0]], counting[behind[-1]]
        if (ahead.step or 0) - (lowest.step or 0) > max(ahead.stride(), lowest.stride()):
            return behind[0]
        rates = {rank: state.rate() for rank, state in counting.items() if len(state.times) >= 4}
        known = sorted((rate, rank) for rank, rate in rates.items() if rate)
        if len(known) < 2 or known[0][0] * CLEARLY > known[1][0]:
            return None
        return known[0][1]
