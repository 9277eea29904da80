# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""hostfile against DeepSpeed's launcher: what is read, what is written, and what filters choose."""

from __future__ import annotations

import re

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.filters import Plan, plan
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.text import (
    Host,
    HostfileError,
    HostsError,
    check,
    parse,
    render,
)
from deepspeed_oracle import DeepSpeedError, Oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples

# The oracle is one process for all examples. The same examples for every release, on every machine.
COMMON = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

NAMES = st.sampled_from(["w0", "w1", "W0", "w2.example.com", "10.0.0.1", "u@w0", "fe80::1", "#w0", "w0:1", "w,0", "é"])
GAPS = st.text(" \t\x0b\x0c\x1c\x1f\x85\xa0\u2003\u3000\u200b", max_size=2) | st.just(" ")
DIGITS = st.text("0123456789\u0664\u06f5\uff18\u00b2\u2460", max_size=3) | st.integers(0, 9).map(str)
TAILS = st.sampled_from(["", "", "", "abc", " max_slots=8", " # c", ",w1 slots=1", "-1", ".5", "\u200b"])
SLOTS = st.sampled_from(["slots=", "slots=", "slots=", "slots =", "slots= ", "Slots=", "slot=", ":", "=", ""])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", ""])
LINES = (
    st.tuples(GAPS, NAMES, GAPS | st.just(" "), SLOTS, DIGITS, TAILS, GAPS, ENDS)
    | st.tuples(NAMES, st.just(" slots="), st.integers(0, 99).map(str), ENDS)
    | st.tuples(st.sampled_from(["#", "# w0 slots=1", " #", "\ufeff#", "", " ", "\t", "\u200b"]), ENDS)
).map("".join)
GOOD_LINES = st.builds(
    "{}{}slots={}{}{}".format,
    st.sampled_from([f"host{number}" for number in range(40)]),
    st.sampled_from([" ", "\t", "  ", "\u3000"]),
    st.integers(0, 10**12),
    TAILS,
    st.sampled_from(["\n", "\r\n", "\r"]),
)
ANYTHING = st.text(st.characters(codec="utf-8"), max_size=40)
TEXTS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "", "\ufeff"]),
    st.lists(LINES, max_size=5).map("".join) | st.lists(GOOD_LINES, max_size=6).map("".join) | ANYTHING,
)


def read_by_deepspeed(oracle: Oracle, text: str) -> list[Host] | None:
    """The hosts, or nothing where DeepSpeed refuses the file."""
    try:
        return [Host(name, slots) for name, slots in oracle.ask("hostfile", text=text)]
    except DeepSpeedError as error:
        assert error.kind == "ValueError"
        return None


def read_by_us(text: str) -> list[Host] | None:
    try:
        return parse(text)
    except HostfileError:
        return None


@given(text=TEXTS)
@settings(COMMON, max_examples=examples(2000))
def test_every_text_is_read_or_refused_alike(oracle: Oracle, text: str) -> None:
    assert read_by_us(text) == read_by_deepspeed(oracle, text)


@pytest.mark.parametrize(
    "text",
    [
        "w0 slots=" + "9" * 4300,
        "w0 slots=" + "9" * 4301,
        "w0 slots=" + "0" * 5000 + "1",
        "w" * 100_000 + " slots=1",
        "".join(f"w{number} slots=8\n" for number in range(10_000)),
        "\x00 slots=1\n",
        "w0 slots=1\n" * 2,
        "w0\nslots=1\n",
        "w0 \n slots=1\n",
    ],
    ids=range(9),
)
def test_extreme_texts_are_read_or_refused_alike(oracle: Oracle, text: str) -> None:
    assert read_by_us(text) == read_by_deepspeed(oracle, text)


WRITABLE = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)


@given(
    hosts=st.lists(
        st.tuples(WRITABLE, st.integers(0, 1024)), min_size=1, max_size=12, unique_by=lambda host: host[0].lower()
    ).filter(lambda hosts: any(slots for dummy, slots in hosts))
)
@settings(COMMON, max_examples=examples(500))
def test_what_is_written_is_read_back(oracle: Oracle, hosts: list[tuple[str, int]]) -> None:
    listed = check([{"name": name, "slots": slots} for name, slots in hosts])
    assert listed == check(dict(hosts))
    assert listed.hosts == [Host(name, slots) for name, slots in hosts if slots]
    assert read_by_deepspeed(oracle, render(listed.hosts)) == listed.hosts


def test_ten_thousand_hosts_are_read_back(oracle: Oracle) -> None:
    hosts = check({f"node{number}.example.com": number % 8 + 1 for number in range(10_000)}).hosts
    assert read_by_deepspeed(oracle, render(hosts)) == hosts


POOLS = st.dictionaries(
    st.sampled_from(["w0", "w1", "w2", "10.0.0.1", "a-b", "7"]), st.integers(1, 4) | st.just(20), min_size=1
)
SLOT_TEXTS = st.sampled_from(["0", "0", "1", "1", "2", "3", "4", "00", "01", "8", "19", "20"])
ODD_SLOT_TEXTS = st.sampled_from(["", " 1", "1 ", "+1", "-1", "-0", "1_0", "0_1", "x", "1.0", "0x1", "\u0661", "0-3"])
ODD_SPECS = st.sampled_from(
    ["", " ", "w0 ", " w0", "W0", "jeff", "w0:", ":", ":0", "w0:0:1", "fe80::1", "w0,w1", "w0:0,"]
)


@st.composite
def filters(draw: st.DrawFn, odd: bool) -> tuple[dict[str, int], str]:
    """Hosts, and a filter over them; an odd one holds what is not, or not quite, in the grammar."""
    pool = draw(POOLS)
    specs = []
    for name in draw(st.lists(st.sampled_from(sorted(pool)), min_size=1, max_size=4)):
        slots = draw(st.lists((SLOT_TEXTS | ODD_SLOT_TEXTS) if odd else SLOT_TEXTS, max_size=3))
        specs.append(f"{name}:{','.join(slots)}" if slots else name)
    if odd:
        specs += draw(st.lists(ODD_SPECS, max_size=1))
        specs = draw(st.permutations(specs))
    return pool, "@".join(specs)


@st.composite
def sound_filters(draw: st.DrawFn) -> tuple[dict[str, int], str]:
    """Hosts and a filter that names only what is there."""
    pool = draw(POOLS)
    specs = []
    for name in draw(st.lists(st.sampled_from(sorted(pool)), min_size=1, unique=True)):
        slots = draw(st.lists(st.integers(0, pool[name] - 1), max_size=4))
        specs.append(f"{name}:{','.join(map(str, slots))}" if slots else name)
    return pool, "@".join(specs)


FILTERS = sound_filters() | filters(odd=False) | filters(odd=True)
KEYS = st.sampled_from(["include", "exclude"])


def chosen(planned: Plan) -> list[tuple[str, list[int]]]:
    return [(host.name, list(host.slots)) for host in planned.chosen]


def resolved(oracle: Oracle, pool: dict[str, int], include: str, exclude: str) -> list[tuple[str, list[int]]] | None:
    """What DeepSpeed's launcher would use, or nothing where it refuses."""
    try:
        found = oracle.ask("resources", hosts=list(pool.items()), include=include, exclude=exclude)
    except DeepSpeedError as error:
        assert error.kind == "ValueError"
        return None
    # Without a filter it gives every host with its number of slots made explicit all the same.
    return [tuple(entry) for entry in found]


def reads_include_right(oracle: Oracle) -> bool:
    """Releases 0.15.2 to 0.19.6 resolve a host without slots to no slots, and take slots that are not there."""
    return tuple(map(int, oracle.release.split("."))) >= (0, 19, 7)


STRICTER = (
    # Refused although DeepSpeed takes it; docs/hostfile.md gives the reasons.
    r"in '.*' is not a slot number;",
    r"once as a whole and once by slots;",
    r"leaves no slot on any host,",
)


@given(case=FILTERS, key=KEYS)
@settings(COMMON, max_examples=examples(2000))
def test_filters_choose_what_deepspeed_chooses(oracle: Oracle, case: tuple[dict[str, int], str], key: str) -> None:
    pool, text = case
    include, exclude = (text, "") if key == "include" else ("", text)
    theirs = resolved(oracle, pool, include, exclude)
    comparable = key == "exclude" or reads_include_right(oracle)
    try:
        planned = plan(pool, include, exclude)
    except HostsError as error:
        if comparable and theirs is not None:
            for problem in error.problems:
                assert any(re.search(reason, problem.message) for reason in STRICTER), (problem, theirs)
        return
    if comparable:
        assert chosen(planned) == theirs
    # What is handed on means the same to every release.
    assert resolved(oracle, pool, planned.include, "") == chosen(planned)


@given(pool=POOLS)
@settings(COMMON, max_examples=examples(100))
def test_without_a_filter_deepspeed_chooses_everything_too(oracle: Oracle, pool: dict[str, int]) -> None:
    assert resolved(oracle, pool, "", "") == chosen(plan(pool))


def test_the_fault_of_older_releases_is_still_what_the_documents_say(oracle: Oracle) -> None:
    bare = resolved(oracle, {"w0": 2, "w1": 2}, "w0", "")
    absent = resolved(oracle, {"w0": 2, "w1": 2}, "w0:7", "")
    if reads_include_right(oracle):
        assert (bare, absent) == ([("w0", [0, 1])], None)
    else:
        assert (bare, absent) == ([], [("w0", [7])])


@pytest.mark.parametrize(
    ("key", "text", "theirs"),
    [
        ("exclude", "w0: 1", [("w0", [0]), ("w1", [0, 1])]),
        ("exclude", "w0:+1", [("w0", [0]), ("w1", [0, 1])]),
        ("exclude", "w0:-0", [("w0", [1]), ("w1", [0, 1])]),
        ("exclude", "w0:0_1", [("w0", [0]), ("w1", [0, 1])]),
        ("exclude", "w0:\u0661", [("w0", [0]), ("w1", [0, 1])]),
        # The host as a whole is asked for, and one slot of it is what goes.
        ("exclude", "w0@w0:1", [("w0", [0]), ("w1", [0, 1])]),
        ("exclude", "w0@w1:0,1", []),
    ],
)
def test_what_is_refused_on_purpose(
    oracle: Oracle, key: str, text: str, theirs: list[tuple[str, list[int]]] | None
) -> None:
    pool = {"w0": 2, "w1": 2}
    assert resolved(oracle, pool, "", text) == theirs
    with pytest.raises(HostsError) as caught:
        plan(pool, **{key: text})
    assert any(re.search(reason, str(caught.value)) for reason in STRICTER)


def test_both_filters_are_refused_alike(oracle: Oracle) -> None:
    assert resolved(oracle, {"w0": 2}, "w0:0", "w0:1") is None
    with pytest.raises(HostsError, match="cannot be combined with include"):
        plan({"w0": 2}, "w0:0", "w0:1")
