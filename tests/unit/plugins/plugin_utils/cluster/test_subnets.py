# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Free subnets and collisions."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.subnets import (
    SubnetError,
    collisions,
    pick_subnet,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def test_collisions_name_what_is_in_the_way_in_order() -> None:
    taken = {
        "default route": "0.0.0.0/0",
        "default": "default",
        "a route": "10.0.0.0/8",
        "elsewhere": "192.168.0.0/16",
        "six": "fd00::/8",
        "nameserver": "10.20.0.53",
        "inside": "10.20.0.128/25",
    }
    assert collisions("10.20.0.0/24", taken) == [
        {"label": "a route", "network": "10.0.0.0/8"},
        {"label": "nameserver", "network": "10.20.0.53/32"},
        {"label": "inside", "network": "10.20.0.128/25"},
    ]
    assert collisions("172.30.0.0/24", taken) == []


@pytest.mark.parametrize(
    ("pool", "prefix", "taken", "expected"),
    [
        ("10.0.0.0/8", 24, [], "10.0.0.0/24"),
        ("10.0.0.0/8", 24, ["10.0.0.0/24", "10.0.2.15"], "10.0.1.0/24"),
        ("10.0.0.0/8", 24, ["10.0.0.0/9"], "10.128.0.0/24"),
        ("10.0.0.0/8", 24, {"loopback": "127.0.0.0/8", "default": "default", "all": "0.0.0.0/0"}, "10.0.0.0/24"),
        (["10.0.0.0/8", "172.16.0.0/12"], 24, ["10.0.0.0/8"], "172.16.0.0/24"),
        ("10.0.0.0/24", 24, ["10.0.1.0/24"], "10.0.0.0/24"),
        ("10.0.0.0/22", 24, ["10.0.0.0/25", "10.0.1.77", "10.0.2.0/23"], None),
        ("255.255.255.0/24", 25, ["255.255.255.0/26"], "255.255.255.128/25"),
    ],
)
def test_pick_subnet(pool: Any, prefix: int, taken: Any, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(SubnetError, match="is free in"):
            pick_subnet(pool, prefix, taken)
    else:
        assert pick_subnet(pool, prefix, taken) == expected


@pytest.mark.parametrize(
    ("pool", "prefix", "taken", "text"),
    [
        (
            "10.0.0.0/24",
            24,
            ["10.0.0.0/8"],
            "No /24 is free in 10.0.0.0/24. In use: 10.0.0.0/8. Name another address pool.",
        ),
        (
            ["10.0.0.0/29"],
            30,
            {**{f"host {n}": f"10.0.0.{n}" for n in range(8)}, "far": "10.9.0.0/16"},
            "No /30 is free in 10.0.0.0/29. In use: host 0, host 1, host 2, host 3, host 4 and 3 more. "
            "Name another address pool.",
        ),
        ([], 24, [], "No address pool is given to choose a subnet from."),
        ("10.0.0.0/24", 16, [], "the address pool 10.0.0.0/24: no subnet with prefix length 16 fits; give 24 to 30."),
        ("10.0.0.0/8", 31, [], "the address pool 10.0.0.0/8: no subnet with prefix length 31 fits; give 8 to 30."),
        ("10.0.0.1/8", 24, [], "the address pool: '10.0.0.1/8' has bits set right of its prefix; write 10.0.0.0/8."),
        ("10/8", 24, [], "the address pool: '10/8' is not an IPv4 network such as 10.20.0.0/24."),
        (
            "10.0.0.0/8",
            24,
            {"proxy": "cache.example"},
            "the taken network 'proxy': 'cache.example' is not an IPv4 network such as 10.20.0.0/24.",
        ),
    ],
)
def test_pick_subnet_refuses_in_words(pool: Any, prefix: int, taken: Any, text: str) -> None:
    with pytest.raises(SubnetError) as error:
        pick_subnet(pool, prefix, taken)
    assert str(error.value) == text


NETWORKS = st.builds(
    lambda bits, prefix: str(ipaddress.IPv4Network(((10 << 24) + bits, prefix), strict=False)),
    st.integers(0, 2**12 - 1),
    st.integers(22, 32),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(NETWORKS, max_size=12), st.integers(22, 28))
def test_pick_subnet_is_the_first_that_a_plain_search_finds(taken: list[str], prefix: int) -> None:
    pool = ipaddress.IPv4Network("10.0.0.0/20")
    barriers = [ipaddress.IPv4Network(network) for network in taken]
    free = (one for one in pool.subnets(new_prefix=prefix) if not any(one.overlaps(barrier) for barrier in barriers))
    expected = next(free, None)
    if expected is None:
        with pytest.raises(SubnetError):
            pick_subnet(str(pool), prefix, taken)
    else:
        found = pick_subnet(str(pool), prefix, taken)
        assert found == str(expected)
        assert collisions(found, {network: network for network in taken}) == []
