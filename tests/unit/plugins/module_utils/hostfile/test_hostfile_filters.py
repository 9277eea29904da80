# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which hosts and slots a launch uses. The first table is that of DeepSpeed's own tests (tests/unit/launcher)."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.filters import Chosen, Plan, plan
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.text import Host, HostsError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

ONE = {"worker-0": 4}
TWO = {"worker-0": 4, "worker-1": 4}
UNEVEN = {"gpu2": 2, "gpu1": 4, "spare": 0, "gpu3": 1}


def chosen(planned: Plan) -> dict[str, list[int]]:
    return {host.name: list(host.slots) for host in planned.chosen}


def problems(*arguments: Any, **named: Any) -> list[Problem]:
    with pytest.raises(HostsError) as caught:
        plan(*arguments, **named)
    return caught.value.problems


@pytest.mark.parametrize(
    ("hosts", "key", "text", "expected"),
    [
        (ONE, "include", "worker-0:1", {"worker-0": [1]}),
        (ONE, "include", "worker-0:1,1", {"worker-0": [1]}),
        (ONE, "include", "worker-0:1@worker-0:0,1", {"worker-0": [0, 1]}),
        (ONE, "include", "worker-0", {"worker-0": [0, 1, 2, 3]}),
        (ONE, "exclude", "worker-0:1", {"worker-0": [0, 2, 3]}),
        (ONE, "exclude", "worker-0:1,2", {"worker-0": [0, 3]}),
        (TWO, "include", "worker-1:0,3", {"worker-1": [0, 3]}),
        (TWO, "exclude", "worker-1", {"worker-0": [0, 1, 2, 3]}),
        (TWO, "exclude", "worker-0:0,1@worker-1:3", {"worker-0": [2, 3], "worker-1": [0, 1, 2]}),
        # Below: not from there.
        (UNEVEN, "include", "gpu1:3,0@gpu2", {"gpu2": [0, 1], "gpu1": [0, 3]}),
        (UNEVEN, "include", "gpu1@gpu1", {"gpu1": [0, 1, 2, 3]}),
        (UNEVEN, "include", "gpu1:00,002", {"gpu1": [0, 2]}),
        (UNEVEN, "exclude", "gpu2:0,1", {"gpu1": [0, 1, 2, 3], "gpu3": [0]}),
    ],
)
def test_filters_choose_as_deepspeed_does(hosts: Any, key: str, text: str, expected: dict[str, list[int]]) -> None:
    planned = plan(hosts, **{key: text})
    assert chosen(planned) == expected
    assert list(chosen(planned)) == list(expected)
    assert planned.world_size == sum(map(len, expected.values()))
    assert planned.first_host == next(iter(expected))


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_a_filter_everything_is_chosen(nothing: Any) -> None:
    planned = plan(UNEVEN, nothing, nothing, nothing)
    assert planned.hosts == [Host("gpu2", 2), Host("gpu1", 4), Host("gpu3", 1)]
    assert planned.left_out == ["spare"]
    assert planned.chosen == [Chosen("gpu2", (0, 1)), Chosen("gpu1", (0, 1, 2, 3)), Chosen("gpu3", (0,))]
    assert (planned.include, planned.world_size, planned.first_host) == ("", 7, "gpu2")


def test_the_choice_is_handed_on_with_every_slot() -> None:
    assert plan(UNEVEN, include="gpu1@gpu2:1").include == "gpu2:1@gpu1:0,1,2,3"
    assert plan(UNEVEN, exclude="gpu1:1@gpu3").include == "gpu2:0,1@gpu1:0,2,3"
    assert plan(UNEVEN, include="gpu1@gpu3:0@gpu2").include == ""


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True), st.integers(1, 5), min_size=1), st.data())
@settings(max_examples=examples(300), deadline=None, derandomize=True)
def test_what_is_handed_on_resolves_to_itself(hosts: dict[str, int], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(hosts)), min_size=1, unique=True))
    specs = [
        ":".join([name, *([",".join(map(str, slots))] if slots else [])])
        for name in names
        for slots in [data.draw(st.lists(st.integers(0, hosts[name] - 1), max_size=4))]
    ]
    included = plan(hosts, include="@".join(specs))
    assert set(chosen(included)) == set(names)
    if included.include:
        assert plan(hosts, include=included.include).chosen == included.chosen
        # What include leaves, exclude of the rest leaves too.
        rest = {name: set(range(slots)) - set(chosen(included).get(name, [])) for name, slots in hosts.items()}
        text = "@".join(f"{name}:{','.join(map(str, left))}" for name, left in rest.items() if left)
        assert plan(hosts, exclude=text).chosen == included.chosen


EMPTY = "names no host at one place; '@' stands only between hosts, as in gpu1:0,1@gpu2"
MISSING = "a slot number is missing in {}; write slots as in gpu1:0,1, or the name alone for the whole host"
NUMBER = "{} in {} is not a slot number; slots are counted from 0, with ',' between, as in gpu1:0,1"


@pytest.mark.parametrize("key", ["include", "exclude"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jeff", "'jeff' is not one of the hosts"),
        ("worker-2", "'worker-2' is not one of the hosts, perhaps 'worker-1' is meant"),
        ("Worker-1:0", "'Worker-1' is not one of the hosts, perhaps 'worker-1' is meant"),
        ("worker-1 ", "'worker-1 ' is not one of the hosts, perhaps 'worker-1' is meant"),
        (" ", "' ' is not one of the hosts; '@' stands between hosts, as in gpu1:0,1@gpu2, without spaces"),
        (
            "worker-0,worker-1",
            "'worker-0,worker-1' is not one of the hosts; '@' stands between hosts, as in gpu1:0,1@gpu2, without"
            " spaces",
        ),
        ("worker-1:4", "'worker-1' has no slot 4: it has slots 0 to 3"),
        ("worker-1:9,4,0", "'worker-1' has no slot 4, 9: it has slots 0 to 3"),
        ("@", EMPTY),
        ("worker-0@", EMPTY),
        ("worker-0@@worker-1", EMPTY),
        (":1", "names no host before ':' in ':1'; write it as in gpu1:0,1@gpu2"),
        ("worker-0:", MISSING.format("'worker-0:'")),
        ("worker-0:0,", MISSING.format("'worker-0:0,'")),
        ("worker-0:x", NUMBER.format("'x'", "'worker-0:x'")),
        ("worker-0:-1", NUMBER.format("'-1'", "'worker-0:-1'")),
        ("worker-0:0x1", NUMBER.format("'0x1'", "'worker-0:0x1'")),
        ("worker-0:1.0", NUMBER.format("'1.0'", "'worker-0:1.0'")),
        # Python's int() reads these, and so does DeepSpeed.
        ("worker-0: 1", NUMBER.format("' 1'", "'worker-0: 1'")),
        ("worker-0:+1", NUMBER.format("'+1'", "'worker-0:+1'")),
        ("worker-0:0_1", NUMBER.format("'0_1'", "'worker-0:0_1'")),
        ("worker-0:\u0661", NUMBER.format("'\u0661'", "'worker-0:\u0661'")),
        (
            "worker-0:0-3",
            "'0-3' in 'worker-0:0-3' is a range, which DeepSpeed does not support; name every slot, as in gpu1:0,1,2,3",
        ),
        (
            "fe80::1",
            "'fe80::1' has more than one ':'; it stands only before slots, '@' stands between hosts, as in"
            " gpu1:0,1@gpu2, and an IPv6 address cannot be named",
        ),
        (
            "worker-0@worker-0:1",
            "names 'worker-0' once as a whole and once by slots; keep the one that is meant",
        ),
        (["worker-0"], "must be text such as gpu1:0,1@gpu2, put into quotes, not ['worker-0']"),
        (0, "must be text such as gpu1:0,1@gpu2, put into quotes, not 0"),
        # YAML 1.1 reads 1:30 as a number.
        (90, "must be text such as gpu1:0,1@gpu2, put into quotes, not 90"),
        (False, "must be text such as gpu1:0,1@gpu2, put into quotes, not false"),
    ],
)
def test_filters_that_are_refused(key: str, text: Any, message: str) -> None:
    assert problems(TWO, **{key: text}) == [Problem(key, message)]


def test_slots_of_a_host_that_has_one() -> None:
    assert problems({"a": 1}, include="a:1") == [Problem("include", "'a' has no slot 1: it has slot 0 alone")]


def test_a_host_without_slots_cannot_be_filtered() -> None:
    message = "'spare' has 0 slots, so it takes no part; do not name it here"
    assert problems(UNEVEN, include="spare") == [Problem("include", message)]
    assert problems(UNEVEN, exclude="spare:0") == [Problem("exclude", message)]


@pytest.mark.parametrize("text", ["worker-0", "worker-0:0,1,2,3"])
def test_something_must_be_left(text: str) -> None:
    assert problems(ONE, exclude=text) == [
        Problem("exclude", "leaves no slot on any host, so no process would run; leave some in")
    ]


def test_only_one_filter() -> None:
    both = Problem("exclude", "cannot be combined with include, as in DeepSpeed; give one of the two")
    assert problems(TWO, "worker-0", "worker-1") == [both]
    assert problems(TWO, "worker-0", "worker-1:") == [
        both,
        Problem("exclude", MISSING.format("'worker-1:'")),
    ]


def test_all_problems_of_a_filter_come_at_once_and_each_once() -> None:
    found = problems(UNEVEN, include="gpu1:x@gpu1:7@jeff@@gpu2:5@gpu1:x@@spare")
    assert [problem.message for problem in found] == [
        NUMBER.format("'x'", "'gpu1:x'"),
        EMPTY,
        "'gpu1' has no slot 7: it has slots 0 to 3",
        "'jeff' is not one of the hosts",
        "'gpu2' has no slot 5: it has slots 0 to 1",
        "'spare' has 0 slots, so it takes no part; do not name it here",
    ]


def test_hosts_and_filter_are_checked_in_one_go() -> None:
    found = problems([{"name": "a", "slots": -1}], include="b:@c", first_host="d")
    # Whether b, c and d are hosts is not known before the hosts are in order.
    assert [problem.path for problem in found] == ["hosts[0].slots", "include"]


NAME_GPU2 = "; rank 0 would be on 'gpu2': name 'gpu2', whose address is then the --master_addr, or "


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("gpu1", f"'gpu1' does not come first among the hosts that take part{NAME_GPU2}put 'gpu1' first in hosts"),
        ("GPU2", f"'GPU2' is not one of the hosts, perhaps 'gpu2' is meant{NAME_GPU2}put 'GPU2' first in hosts"),
        ("jeff", f"'jeff' is not one of the hosts{NAME_GPU2}put 'jeff' first in hosts"),
        ("spare", f"'spare' has 0 slots{NAME_GPU2}give 'spare' a slot"),
        (["gpu2"], "must be the name of a host, put into quotes, not ['gpu2']"),
        (5, "must be the name of a host, put into quotes, not 5"),
        (False, "must be the name of a host, put into quotes, not false"),
    ],
)
def test_rank_0_must_be_where_it_is_wanted(wanted: Any, message: str) -> None:
    assert problems(UNEVEN, first_host=wanted) == [Problem("first_host", message)]
    assert plan(UNEVEN, first_host="gpu2").first_host == "gpu2"


def test_rank_0_and_filters() -> None:
    assert plan(UNEVEN, exclude="gpu2", first_host="gpu1").first_host == "gpu1"
    assert plan(UNEVEN, include="gpu1@gpu2:1", first_host="gpu2").first_host == "gpu2"
    assert problems(UNEVEN, exclude="gpu2", first_host="gpu2") == [
        Problem(
            "first_host",
            "'gpu2' is filtered out; rank 0 would be on 'gpu1': name 'gpu1', whose address is then the --master_addr,"
            " or leave a slot of 'gpu2' in",
        )
    ]
    # With a filter at fault, who would hold rank 0 is not known; that there is no jeff is.
    assert problems(UNEVEN, include="gpu1:", first_host="jeff") == [
        Problem("include", MISSING.format("'gpu1:'")),
        Problem("first_host", "'jeff' is not one of the hosts"),
    ]
    assert [problem.path for problem in problems(UNEVEN, include="gpu1:", first_host="gpu1")] == ["include"]
