# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Words of the report: names, ages, numbers, secrets."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.values import number, plain, sealed
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.text import (
    age,
    briefly,
    domain,
    moment,
    names,
    sentence,
    short,
    size,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([], ""),
        (["gpu2", "gpu10", "gpu1"], "gpu1, gpu2, gpu10"),
        (["gpu3", "gpu1", "gpu2", "gpu7"], "gpu1–gpu3, gpu7"),
        (["gpu08", "gpu09", "gpu10"], "gpu08–gpu10"),
        (["gpu9", "gpu10", "gpu11"], "gpu9–gpu11"),
        (["a1.x", "a2.x", "a3.y"], "a1.x, a2.x, a3.y"),
        (["a", "b", "b"], "a, b"),
        (["-15", "0", "1", "2"], "0–2, -15"),
    ],
)
def test_names_of_many_nodes(chosen: list[str], text: str) -> None:
    assert names(chosen) == text


def test_the_rest_is_counted() -> None:
    odd = [f"gpu{one}" for one in range(1, 40, 2)]
    assert names(odd, 3) == "gpu1, gpu3, gpu5 and 17 more"
    assert names([*odd, "gpu2", "gpu4"], 1) == "gpu1–gpu5 and 17 more"


@given(st.sets(st.integers(0, 300), min_size=1))
def test_names_lose_none(numbers: set[int]) -> None:
    """Reading the text back gives the same nodes."""
    read: set[int] = set()
    for part in names((f"n{one}" for one in numbers), 1000).split(", "):
        ends = [int(end[1:]) for end in part.split("–")]
        read.update(range(ends[0], ends[-1] + 1))
    assert read == numbers


@pytest.mark.parametrize(
    ("everyone", "tail"),
    [
        (["a.x.org", "b.x.org"], ".x.org"),
        (["a.east.x.org", "b.west.x.org"], ".x.org"),
        (["a.x.org", "b.y.net"], ""),
        (["gpu1", "gpu2"], ""),
        (["a.x.org"], ""),
        (["a.x.org", "b"], ""),
        ([], ""),
    ],
)
def test_the_common_domain(everyone: list[str], tail: str) -> None:
    assert domain(everyone) == tail


def test_names_are_cut_in_texts_and_nothing_else_is() -> None:
    everyone = ["gpu1.x.org", "gpu10.x.org"]
    reported = {"a": ["gpu1.x.org → gpu10.x.org: 3 ms", 5], "b": "see hub.x.org or my-gpu1.x.org"}
    assert briefly(reported, everyone) == {"a": ["gpu1 → gpu10: 3 ms", 5], "b": "see hub.x.org or my-gpu1.x.org"}
    assert briefly(reported, ["gpu1"]) is reported


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (4.567, "4.57"), (118.2, "118"), (40200.0, "40200"), (1e-12, "0"), (3.0, "3")],
)
def test_three_digits(value: float, text: str) -> None:
    assert short(value) == text


@given(st.floats(1e-6, 1e9))
def test_short_is_near(value: float) -> None:
    assert abs(float(short(value)) - value) <= value * 0.0051


def test_sizes_and_numbers() -> None:
    assert [size(count) for count in (512, 4096, 1.5 * 2**30, 2**45)] == ["512 B", "4 KiB", "1.5 GiB", "32 TiB"]
    assert [number(value) for value in (3, 2.5, True, "3", float("nan"), None)] == [3.0, 2.5, None, None, None, None]
    assert [sentence(text) for text in (None, " a\n b ", "Done.", "So?")] == ["", "a b.", "Done.", "So?"]


def test_times() -> None:
    begin = moment("2026-11-22T06:00:00Z")
    assert begin == moment("2026-11-22T07:00:00+01:00") == moment("2026-11-22T06:00:00")
    assert moment("yesterday") is None and moment(None) is None and begin is not None
    assert age(None, 0) is None
    assert age(begin, begin + 7200) == {"text": "2 h ago", "time": "2026-11-22 06:00 UTC", "old": False}
    assert age(begin, begin - 5) == {"text": "just now", "time": "2026-11-22 06:00 UTC", "old": False}
    assert (age(begin, begin + 90000) or {})["old"] is True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("proxy http://me:hunter2@proxy:3128 said no", "proxy http://********@proxy:3128 said no"),
        ("HF_TOKEN=hf_abc is refused", "HF_TOKEN=******** is refused"),
        ("with WANDB_API_KEY=x1 NCCL_DEBUG=INFO", "with WANDB_API_KEY=******** NCCL_DEBUG=INFO"),
        ("password=hunter2 in line 3", "password=******** in line 3"),
        ("MY_AUTH=x", "MY_AUTH=********"),
        ("MONKEY=x", "MONKEY=x"),
        ("step=5 of http://host/", "step=5 of http://host/"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert sealed(text) == shown
    assert sealed({"a": [text, 1, None]}) == {"a": [shown, 1, None]}


def test_what_ansible_hands_over_becomes_plain() -> None:
    class Tagged(str):
        pass

    found = plain({Tagged("a"): (Tagged("b"), 1, None, {"c": {3}})})
    assert found == {"a": ["b", 1, None, {"c": "{3}"}]}
    assert next(iter(found)).__class__ is str and found["a"][0].__class__ is str
