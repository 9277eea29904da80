# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Charts and heat maps of the report, and its colours."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.curves import Axis, Series, line_chart, nice
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.heat import (
    WRITTEN,
    cell_size,
    clipped,
    heat_map,
    step_of,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.palette import (
    DARK,
    LIGHT,
    contrast,
    variables,
)
from hypothesis import example, given
from hypothesis import strategies as st

NODES = ["gpu1", "gpu2", "gpu3"]
ALIKE = dict.fromkeys(permutations(NODES, 2), 0.1)


def test_a_slow_pair_stands_out() -> None:
    found = heat_map("Latency", "ms", NODES, {**ALIKE, ("gpu3", "gpu1"): 0.3}, high_is_good=False)
    assert [path["step"] for path in found["paths"]] == [1, 4]
    assert found["paths"][1]["d"] == "M0 112h54v54h-54z"  # row 3, column 1
    assert found["summary"] == "Median 0.1 ms over 6 pairs. Slowest: gpu3 → gpu1 with 0.3 ms, 3 × the median."
    assert [text["text"] for text in found["texts"]] == ["0.1", "0.1", "0.1", "0.1", "0.3", "0.1"]
    assert found["data"]["values"] == [[None, 0.1, 0.1], [0.1, None, 0.1], [0.3, 0.1, None]]


def test_little_bandwidth_is_slow_too() -> None:
    found = heat_map("Bandwidth", "Gbit/s", NODES, {**ALIKE, ("gpu1", "gpu2"): 0.02}, high_is_good=True)
    assert [path["step"] for path in found["paths"]] == [1, 5]
    assert found["summary"].endswith("Slowest: gpu1 → gpu2 with 0.02 Gbit/s, 0.2 of the median.")


def test_noise_stays_calm() -> None:
    values = {pair: 0.1 + 0.004 * index for index, pair in enumerate(ALIKE)}
    found = heat_map("Latency", "ms", NODES, values, high_is_good=False)
    assert [path["step"] for path in found["paths"]] == [1]
    assert found["summary"] == (
        "Median 0.11 ms over 6 pairs. No pair stands out; the slowest is gpu3 → gpu2 with 0.12 ms."
    )


def test_pairs_that_fail_are_crossed_out_and_not_measured() -> None:
    found = heat_map("Latency", "ms", NODES, ALIKE, high_is_good=False, failed=[("gpu1", "gpu2"), ("gone", "gpu1")])
    assert found["failed"].count("M") == 2 and found["paths"][0]["d"].count("M") == 5
    assert found["summary"].endswith("1 pair did not work (✕).")
    assert found["data"]["failed"] == [[0, 1]]


def test_nothing_measured() -> None:
    found = heat_map("Latency", "ms", NODES, {("gpu1", "gone"): 3.0, ("gpu1", "gpu2"): 0.0}, high_is_good=False)
    assert (found["paths"], found["summary"], found["failed"]) == ([], "", "")


def test_steps() -> None:
    assert [step_of(value) for value in (0.5, 0.8, 1.0, 1.25, 1.6, 2.5, 4.0, 99)] == [0, 1, 1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize("count", [1, 2, 3, 6, 12, 13, 24, 40, 64, 200])
def test_labels_and_cells_fit(count: int) -> None:
    nodes = [f"node{number}.x.org" for number in range(count)]
    found = heat_map("Latency", "ms", nodes, dict.fromkeys(permutations(nodes, 2), 1.0), high_is_good=False)
    at = [float(row["at"]) for row in found["rows"]]
    assert all(later - earlier >= 12 for earlier, later in zip(at, at[1:]))
    assert float(found["extent"]) <= 800
    assert bool(found["texts"]) is (1 < count <= WRITTEN)
    assert cell_size(count) >= 4
    assert found["rows"][0]["name"] == ("node0" if count > 1 else "node0.x.org")
    assert len("".join(path["d"] for path in found["paths"])) < 30 * max(1, count * count)


@given(st.text(min_size=1, max_size=60), st.integers(3, 30))
def test_clipped_names_fit(name: str, most: int) -> None:
    assert len(clipped(name, most)) <= most
    assert clipped(name, 60) == name
    assert clipped("rack-17-node-23", 9) == "rack…e-23"


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_lie_on_the_axis_and_are_few(low: float, width: float) -> None:
    # Narrower ones are below what a float can tell apart.
    axis = Axis(low, low + max(width, abs(low) * 1e-9), 0.0, 100.0)
    if axis.high > axis.low:
        ticks = axis.ticks()
        assert len(ticks) <= 7
        assert all(-0.01 <= axis.at(tick) <= 100.01 for tick in ticks)


@given(st.floats(1e-9, 1e9), st.floats(1.01, 1e12), st.sampled_from([2, 10]))
@example(1.001, 1.125, 10)
def test_ticks_of_logarithms(low: float, ratio: float, base: int) -> None:
    axis = Axis(low, low * ratio, 0.0, 100.0, base)
    ticks = axis.ticks()
    assert len(ticks) <= 7
    assert all(-0.5 <= axis.at(tick) <= 100.5 for tick in ticks)


@given(st.floats(1e-9, 1e9))
def test_nice_is_round_and_not_less(raw: float) -> None:
    assert raw * 0.99 <= nice(raw) <= raw * 2.6
    assert re.match(r"(1|2|2\.5|5)e", f"{nice(raw):.3e}".replace("000e", "e").replace("00e", "e").replace(".e", "e"))


POINTS = st.lists(st.tuples(st.integers(1, 10**6), st.one_of(st.none(), st.floats(-1e6, 1e6))), max_size=40)


@given(POINTS, st.booleans(), st.booleans())
def test_any_line_stays_inside_its_chart(points: list[tuple[int, float | None]], sizes: bool, zero: bool) -> None:
    line = [(float(x), y) for x, y in sorted(points, key=lambda point: point[0])]
    chart = line_chart("T", [Series("a", "host", line)], x_title="x", y_title="y", sizes=sizes, from_zero=zero)
    if chart is None:
        assert all(y is None for dummy, y in line)
        return
    for dot in chart["lines"][0]["dots"]:
        assert chart["left"] - 0.1 <= float(dot["x"]) <= chart["right"] + 0.1
        assert chart["top"] - 0.1 <= float(dot["y"]) <= chart["bottom"] + 0.1
    assert len(chart["lines"][0]["dots"]) == sum(y is not None for dummy, y in line)
    heights = [float(tick["at"]) for tick in chart["y_ticks"]]
    assert all(abs(one - other) > 8 for one, other in zip(heights, heights[1:]))


def test_a_missing_point_breaks_the_line() -> None:
    chart = line_chart("Loss", [Series("", "job", [(1, 2.0), (2, None), (3, 1.0), (4, 0.5)])], x_title="", y_title="")
    assert chart is not None
    assert re.sub(r"[\d. ]", "", chart["lines"][0]["d"]) == "MML"
    assert chart["lines"][0]["dots"][0]["tip"] == "1: 2"


def test_steps_are_whole() -> None:
    chart = line_chart("Loss", [Series("", "job", [(1, 2.0), (2, 1.5), (4, 1.0)])], x_title="step", y_title="")
    assert chart is not None
    assert [tick["text"] for tick in chart["x_ticks"]] == ["1", "2", "3", "4"]


def test_decades_are_logarithmic_and_say_so() -> None:
    chart = line_chart(
        "T", [Series("a", "host", [(4096, 0.001), (2**30, 10.0)])], x_title="", y_title="GB/s", sizes=True
    )
    assert chart is not None and chart["y_title"] == "GB/s (logarithmic)"
    assert [tick["text"] for tick in chart["y_ticks"]] == ["0.001", "0.01", "0.1", "1", "10"]
    assert [tick["text"] for tick in chart["x_ticks"]] == ["4 KiB", "128 KiB", "4 MiB", "128 MiB"]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    """4.5 : 1 for text, 3 : 1 for lines and marks; greater steps of heat are ever further from the calm one."""
    pairs = [(ink, ground) for ink in ("ink", "soft", "accent") for ground in ("panel", "page", "sunk")]
    pairs += [(level, ground) for level in ("ok", "warn", "bad") for ground in ("panel", f"{level}-bg")]
    pairs += [("ink", "bad-bg"), ("warn", "page")]
    pairs += [(f"on-heat{step}", f"heat{step}") for step in range(6)]
    weak = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}
    lines = {name: contrast(palette[name], palette["panel"]) for name in ("host", "overlay", "overlay_encrypted")}
    assert {name: ratio for name, ratio in lines.items() if ratio < 3} == {}
    steps = [contrast(palette[f"heat{step}"], palette["heat1"]) for step in range(1, 6)]
    assert steps == sorted(steps) and steps[-1] > 4.5


def test_palettes_have_the_same_names() -> None:
    assert list(LIGHT) == list(DARK)
    assert variables({"ink": "#000000"}) == "--ink:#000000;"
    assert round(contrast("#000000", "#ffffff"), 2) == 21.0
