# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The grammar of hostfiles. The tables of what DeepSpeed reads were measured with DeepSpeed 0.19.8."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.text import (
    Host,
    HostfileError,
    HostsError,
    check,
    meant,
    names_shown,
    parse,
    refusal,
    render,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
HOSTS = st.lists(
    st.builds(Host, NAMES, st.integers(1, 1024)), min_size=1, max_size=8, unique_by=lambda host: host.name.lower()
)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("w0 slots=4\nw1 slots=2\n", [("w0", 4), ("w1", 2)]),
        ("w1 slots=2\nw0 slots=4", [("w1", 2), ("w0", 4)]),
        ("\n  # comment\n\tw0\tslots=4  \n\n", [("w0", 4)]),
        ("w0 slots=4 max_slots=8\n", [("w0", 4)]),
        ("w0 slots=4 # c\n", [("w0", 4)]),
        ("w0 slots=4abc\n", [("w0", 4)]),
        ("w0 slots=0\n", [("w0", 0)]),
        ("w0 slots=04\n", [("w0", 4)]),
        ("w0 slots=4\r\nw1 slots=4\rw2 slots=4", [("w0", 4), ("w1", 4), ("w2", 4)]),
        ("user@w0 slots=1\n", [("user@w0", 1)]),
        ("fe80::1 slots=2\n", [("fe80::1", 2)]),
        ("w0 slots=1,w1 slots=1\n", [("w0", 1)]),
        ("\ufeffw0 slots=1\n", [("\ufeffw0", 1)]),
        ("w0 slots=\u0664\n", [("w0", 4)]),
        ("w0 slots=1\nW0 slots=1\n", [("w0", 1), ("W0", 1)]),
    ],
)
def test_it_reads_what_deepspeed_reads(text: str, hosts: list[tuple[str, int]]) -> None:
    assert parse(text) == [Host(name, slots) for name, slots in hosts]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it names no host"),
        ("# w0 slots=1\n", "it names no host"),
        ("w0 slots=1\nw0 slots = 4\n", "line 2 is not 'name slots=N': 'w0 slots = 4'"),
        ("w0 slots=-1\n", "line 1 is not 'name slots=N': 'w0 slots=-1'"),
        ("w0\n", "line 1 is not 'name slots=N': 'w0'"),
        ("w0:4\n", "line 1 is not 'name slots=N': 'w0:4'"),
        ("w0 Slots=1\n", "line 1 is not 'name slots=N': 'w0 Slots=1'"),
        ("w0 foo slots=1\n", "line 1 is not 'name slots=N': 'w0 foo slots=1'"),
        ("127.0.0.1 localhost\n", "line 1 is not 'name slots=N': '127.0.0.1 localhost'"),
        ("w0 slots=1\n\nw0 slots=2\n", "line 3 names the host 'w0' a second time"),
        pytest.param("w0 slots=" + "9" * 5000, "line 1 has an invalid number of slots", id="huge"),
    ],
)
def test_it_refuses_what_deepspeed_refuses(text: str, message: str) -> None:
    with pytest.raises(HostfileError) as caught:
        parse(text)
    assert str(caught.value) == message


SLOTS = (
    "must be a whole number from 1 to 1024, the processes on that host, one a GPU, or 0 to leave the host out, not {}"
)


def entry(name: Any = "w0", slots: Any = 1) -> dict[str, Any]:
    return {"name": name, "slots": slots}


@pytest.mark.parametrize("slots", [4, "4", 4.0, "04"])
def test_whole_numbers_in_any_form(slots: Any) -> None:
    assert check([entry(slots=slots)]) == ([Host("w0", 4)], [])


@pytest.mark.parametrize("slots", [0, "0", 0.0, "00", -0.0])
def test_hosts_without_slots_are_left_out_and_named(slots: Any) -> None:
    assert check([entry("w0", slots), entry("w1", 2), entry("w2", slots)]) == ([Host("w1", 2)], ["w0", "w2"])
    assert check({"w0": slots, "w1": 2, "w2": slots}) == ([Host("w1", 2)], ["w0", "w2"])


@pytest.mark.parametrize("entries", [[entry("w0", 0), entry("w1", 0)], {"w0": 0}])
def test_some_host_must_have_a_slot(entries: Any) -> None:
    with pytest.raises(HostsError) as caught:
        check(entries)
    assert caught.value.problems == [
        Problem("hosts", "every host has 0 slots, so no process would run; give at least one host a slot")
    ]


def test_a_host_without_slots_is_checked_like_the_others() -> None:
    with pytest.raises(HostsError) as caught:
        check([entry("w0", 4), entry("W0", 0), entry("w 1", 0)])
    assert [problem.path for problem in caught.value.problems] == ["hosts[1].name", "hosts[2].name"]


def test_a_mapping_keeps_its_order() -> None:
    assert check({"w1": 2, "w0": "4", "a": 1.0}) == ([Host("w1", 2), Host("w0", 4), Host("a", 1)], [])


def test_problems_in_a_mapping_say_which_key() -> None:
    with pytest.raises(HostsError) as caught:
        check({"w0": 1, "W0": 1, "fe80::1": True, "": 1, 5: 1, "w1": {"slots": 1}})
    assert [(p.path, p.message) for p in caught.value.problems] == [
        ("hosts['W0']", "'W0' is already hosts['w0'] (letter case does not count); name each host once"),
        (
            "hosts['fe80::1']",
            "'fe80::1' looks like an IPv6 address, which DeepSpeed cannot read; give a name that resolves to it",
        ),
        ("hosts['fe80::1']", SLOTS.format("true")),
        ("hosts['']", "is missing; give the host's name"),
        ("hosts[5]", "must be a name, not 5; put it into quotes if it is one"),
        ("hosts['w1']", SLOTS.format("{'slots': 1}")),
    ]


@pytest.mark.parametrize(
    ("slots", "given"),
    [
        (True, "true"),
        (False, "false"),
        (-1, "-1"),
        (1.5, "1.5"),
        ("x", "'x'"),
        ("", "''"),
        ("1.0", "'1.0'"),
        ("-1", "'-1'"),
        ("\u0664", "'\u0664'"),
        (None, "nothing"),
        ([], "[]"),
        (1025, "1025"),
        pytest.param(10**5000, "a huge number", id="huge"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_slots_that_are_refused(slots: Any, given: str) -> None:
    with pytest.raises(HostsError) as caught:
        check([entry(slots=slots)])
    assert caught.value.problems == [Problem("hosts[0].slots", SLOTS.format(given))]


@pytest.mark.parametrize("name", ["w0", "W0.example.com", "10.0.0.1", "a_b-c", "0", "a" * 253])
def test_names_that_are_written(name: str) -> None:
    assert check([entry(name)]) == ([Host(name, 1)], [])


CHARACTERS = "is not a host name: letters, digits, '.', '-' and '_', beginning with a letter or digit"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "is missing; give the host's name"),
        ("", "is missing; give the host's name"),
        (5, "must be a name, not 5; put it into quotes if it is one"),
        (True, "must be a name, not true"),
        (["w0"], "must be a name, not ['w0']"),
        ("a" * 254, f"{'a' * 76!r}"[:-1] + "... has 254 characters; a host name has at most 253"),
        ("w0\n", f"'w0\\n' {CHARACTERS}"),
        ("-w0", f"'-w0' {CHARACTERS}"),
        ("w0:1", f"'w0:1' {CHARACTERS}"),
        ("w0,w1", f"'w0,w1' {CHARACTERS}"),
        ("w 0", f"'w 0' {CHARACTERS}"),
        ("#w0", f"'#w0' {CHARACTERS}"),
        ("wö", f"'wö' {CHARACTERS}"),
        (
            "fe80::1",
            "'fe80::1' looks like an IPv6 address, which DeepSpeed cannot read; give a name that resolves to it",
        ),
        ("u@w0", "'u@w0' holds a user; put the user into the ssh configuration and give the host's name alone"),
    ],
)
def test_names_that_are_refused(name: Any, message: str) -> None:
    with pytest.raises(HostsError) as caught:
        check([entry(name)])
    assert [(p.path, p.message) for p in caught.value.problems] == [("hosts[0].name", message)]


@pytest.mark.parametrize(
    ("entries", "ending"),
    [
        ([], "; it is empty"),
        ({}, "; it is empty"),
        (None, ", not nothing"),
        ("w0", ", not 'w0'"),
        (3, ", not 3"),
        (True, ", not true"),
        # JSON as text is text.
        ('[{"name": "w0", "slots": 1}]', """, not '[{"name": "w0", "slots": 1}]'"""),
    ],
)
def test_no_hosts(entries: Any, ending: str) -> None:
    with pytest.raises(HostsError) as caught:
        check(entries)
    forms = "must be a list of {name, slots} or a mapping of name to slots, with at least one host"
    assert caught.value.problems == [Problem("hosts", f"{forms}{ending}")]


def test_a_list_of_names_is_no_list_of_hosts() -> None:
    with pytest.raises(HostsError) as caught:
        check(["w0", ["w1", 4]])
    assert caught.value.problems == [
        Problem("hosts[0]", "must be a mapping with name and slots, not 'w0'"),
        Problem("hosts[1]", "must be a mapping with name and slots, not ['w1', 4]"),
    ]


def test_all_problems_are_collected_in_order() -> None:
    with pytest.raises(HostsError) as caught:
        check([entry("w0"), entry("W0"), entry("b c", -1), "w1", {"name": "w2", "slots": 1, "port": 22}])
    assert [p.path for p in caught.value.problems] == [
        "hosts[1].name",
        "hosts[2].name",
        "hosts[2].slots",
        "hosts[3]",
        "hosts[4]",
    ]
    assert caught.value.problems[0].message == (
        "'W0' is already hosts[0] (letter case does not count); name each host once"
    )
    assert caught.value.problems[4].message == "unknown key 'port'; only name and slots are written"


@given(HOSTS)
@settings(max_examples=examples(300), deadline=None, derandomize=True)
def test_what_is_written_reads_back_the_same(hosts: list[Host]) -> None:
    assert check([{"name": host.name, "slots": host.slots} for host in hosts]) == (hosts, [])
    assert check({host.name: host.slots for host in hosts}) == (hosts, [])
    text = render(hosts)
    assert parse(text) == hosts
    assert re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9_.-]* slots=[1-9][0-9]*\n)+", text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "slots", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
@settings(max_examples=examples(300), deadline=None, derandomize=True)
def test_any_input_is_accepted_or_refused_in_words(entries: Any) -> None:
    try:
        hosts, left_out = check(entries)
    except HostsError as error:
        assert error.problems
        assert all(problem.path.startswith("hosts") and problem.message for problem in error.problems)
    else:
        assert parse(render(hosts)) == hosts
        assert len(hosts) + len(left_out) == len(entries)


@given(st.text(st.characters(codec="utf-8"), max_size=60) | st.text("w0 slots=1#\n\r\t", max_size=60))
@settings(max_examples=examples(300), deadline=None, derandomize=True)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse(text)
    except HostfileError as error:
        assert str(error)


def test_a_slip_on_thousands_of_hosts_is_a_short_message() -> None:
    with pytest.raises(HostsError) as caught:
        check([entry(f"w {number}") for number in range(5000)])
    assert len(caught.value.problems) == 5000
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[-1]) == ("Hosts that cannot be used: 5000 problems", "- and 4980 more")
    assert len(lines) == 22
    assert refusal("Not written", [Problem("hosts", "is bad")]) == "Not written: hosts: is bad"


def test_names_in_messages() -> None:
    assert names_shown(["a", "b"]) == "a, b"
    assert names_shown([str(number) for number in range(30)]).endswith(", 18, 19 and 10 more")
    assert meant("GPU1 ", ["gpu11", "gpu1"]) == ", perhaps 'gpu1' is meant"
    assert meant("gup1", ["gpu1", "cpu7"]) == ", perhaps 'gpu1' is meant"
    assert meant("x", ["gpu1"]) == meant(None, ["gpu1"]) == meant("g" * 300, ["g" * 253]) == ""
