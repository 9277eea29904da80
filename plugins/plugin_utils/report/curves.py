# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Line charts as numbers that a template writes as SVG: scales, ticks, paths and points. Units are pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .text import short, size

WIDTH, HEIGHT = 376, 236
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 26, 36
WIDE = 30.0
"""Ratio of largest to smallest value from which an axis is logarithmic."""

Format = Callable[[float], str]


@dataclass(frozen=True)
class Series:
    """A line: ``style`` is its class in the page. A point without y breaks it."""

    name: str
    style: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``, of logarithms where ``base`` is given, onto the pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    base: int = 0
    step: float = 0.0

    def at(self, value: float) -> float:
        """Pixels of a value."""
        low, high, here = (math.log(x, self.base) if self.base else x for x in (self.low, self.high, value))
        share = 0.5 if high == low else (here - low) / (high - low)
        return self.start + (self.end - self.start) * share

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the axis, at most ``most`` and one."""
        if self.base == 2:
            first, last = math.ceil(math.log2(self.low) - 1e-9), math.floor(math.log2(self.high) + 1e-9)
            stride = max(1, math.ceil((last - first) / most))
            return [2.0**power for power in range(first, last + 1, stride)]
        if self.base == 10:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for parts in ((1, 2, 5), (1, 3), (1,)):
                found = [part * 10.0**power for power in range(first, last + 1) for part in parts]
                found = [value for value in found if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]
                if len(found) <= most + 1:
                    return found
            return found[:: math.ceil(len(found) / most)]
        step = self.step or nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        return [(first + index) * step for index in range(int((self.high - first * step) / step + 1e-9) + 1)]


def nice(raw: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten that is not smaller."""
    if raw <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    return next((part * power for part in (1.0, 2.0, 2.5, 5.0) if part * power >= raw * 0.999999), 10 * power)


def value_axis(values: Sequence[float], start: float, end: float, from_zero: bool) -> Axis:
    """The axis of y: from 0 or around the values, logarithmic where they span decades."""
    low, high = min(values), max(values)
    if low > 0 and high / low >= WIDE:
        return Axis(low * 0.85, high * 1.15, start, end, 10)
    if from_zero and low >= 0:
        low = 0.0
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    step = nice((high + room - low) / 5)
    bottom = 0.0 if from_zero and low == 0 else math.floor((low - room) / step) * step
    return Axis(bottom if low < 0 else max(0.0, bottom), math.ceil((high + room) / step) * step, start, end, 0, step)


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    sizes: bool = False,
    from_zero: bool = True,
    level: tuple[str, float] | None = None,
    width: int = WIDTH,
) -> dict[str, Any] | None:
    """A chart, or None where there is nothing to draw. ``sizes``: x is bytes; ``level``: a dashed line across."""
    known = [(x, y) for line in series for x, y in line.points if y is not None]
    if not known:
        return None
    xs, ys = [x for x, dummy in known], [y for dummy, y in known] + ([level[1]] if level else [])
    right, bottom = width - RIGHT, HEIGHT - BOTTOM
    across = Axis(min(xs), max(xs), LEFT, right, 2 if sizes and min(xs) > 0 else 0)
    up = value_axis(ys, bottom, TOP, from_zero)
    x_format: Format = size if sizes else whole
    x_ticks = across.ticks(4) if sizes else [tick for tick in across.ticks() if tick == round(tick)]  # whole steps
    if across.high == across.low:
        x_ticks = [across.low]
    return {
        "title": title,
        "width": width,
        "height": HEIGHT,
        "left": LEFT,
        "right": right,
        "top": TOP,
        "bottom": bottom,
        "x_title": x_title,
        "y_title": y_title + (" (logarithmic)" if up.base else ""),
        "x_ticks": [_x_tick(across.at(value), x_format(value), right) for value in x_ticks],
        "y_ticks": [{"at": px(up.at(value)), "text": short(value)} for value in up.ticks()],
        "level": {"at": px(up.at(level[1])), "text": level[0]} if level else None,
        "lines": [_line(line, across, up, x_format, y_title) for line in series],
    }


def _x_tick(at: float, text: str, right: float) -> dict[str, Any]:
    """A label at the edge is moved in, so that nothing is cut off."""
    half = len(text) * 3.3
    return {"at": px(at), "label": px(min(at, right + RIGHT - half - 1)), "text": text}


def whole(value: float) -> str:
    """Steps: 1200, 40k, 1.2M."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{short(value / (1e3 if letter == 'k' else limit))}{letter}"
    return short(round(value, 6))


def px(value: float) -> str:
    """Pixels as SVG has them: with one digit, and without it where it is 0."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _line(line: Series, across: Axis, up: Axis, x_format: Format, unit: str) -> dict[str, Any]:
    path, pen, dots = [], False, []
    for x, y in line.points:
        if y is None or (up.base and y <= 0):
            pen = False
            continue
        left, top = px(across.at(x)), px(up.at(y))
        path.append(f"{'L' if pen else 'M'}{left} {top}")
        pen = True
        dots.append({"x": left, "y": top, "tip": f"{line.name}, {x_format(x)}: {short(y)} {unit}".strip(", ")})
    marked = len(dots) <= 24
    return {"name": line.name, "style": line.style, "d": "".join(path), "dots": dots, "marked": marked}
