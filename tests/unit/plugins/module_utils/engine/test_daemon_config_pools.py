# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pools of addresses that keep an engine from starting. How dockerd 20.10.24 takes each one was tried by hand."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_keys import check
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_pools import (
    KEY,
    overlap_problems,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

FIRST = f"{KEY}[0]"
LINK_LOCAL = (
    ": on a host with a route of its own there (zeroconf, a cloud's metadata) the engine finds no free network and "
    "does not start; set a private network, such as '10.200.0.0/16'"
)


def pools(base: object, size: object) -> dict[str, Any]:
    return {KEY: [{"base": base, "size": size}]}


def reported(config: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in check(config, config, (20, 10))]


@pytest.mark.parametrize(
    ("base", "size", "message"),
    [
        *(
            (
                base,
                24,
                f".base: must be a network with its mask, such as '10.200.0.0/16', not '{base}', or the engine would "
                "not start",
            )
            for base in ("10.10.0.0", "10.10.0.0/255.255.0.0", "10.10.0.0/33", "10.10.0/16", "10.10.0.0/ 16", "", "any")
        ),
        (
            "10.10.0.0/16",
            12,
            ".size: is 12, and a network of that size is larger than the pool 10.10.0.0/16, so the engine would not "
            "start; set it to 16 or more, such as 24",
        ),
        (
            "fd00:1::/48",
            32,
            ".size: is 32, and a network of that size is larger than the pool fd00:1::/48, so the engine would not "
            "start; set it to 48 or more, such as 64",
        ),
        *(
            (
                "10.10.0.0/28",
                size,
                f".size: is {size}, which leaves no address for a container, so the engine would not start; set it to "
                "30 or less, such as 28",
            )
            for size in (31, 32, 33)
        ),
        ("169.254.0.0/16", 24, f".base: 169.254.0.0/16 is link-local (169.254.0.0/16){LINK_LOCAL}"),
        ("169.254.9.0/24", 24, f".base: 169.254.9.0/24 is link-local (169.254.0.0/16){LINK_LOCAL}"),
        ("fe80:1::/32", 64, f".base: fe80:1::/32 is link-local (fe80::/10){LINK_LOCAL}"),
    ],
)
def test_a_pool_with_which_the_engine_would_not_start(base: str, size: int, message: str) -> None:
    assert reported(pools(base, size)) == [f"{FIRST}{message}"]


@pytest.mark.parametrize(
    ("base", "size"),
    [("10.10.0.0/16", 24), ("10.10.3.4/16", 16), ("10.10.0.0/28", 30), ("fd00:1::/48", 64), ("192.168.0.0/16", 20)],
)
def test_a_pool_that_it_takes(base: str, size: int) -> None:
    assert reported(pools(base, size)) == []


def overlap(base: str, bip: str, index: int = 0) -> str:
    return (
        f"{KEY}[{index}].base: {base} overlaps bip ({bip}): the engine would not start if a network has these "
        "addresses already, and has none for networks if bip covers the pool; set bip outside of all pools, or to "
        "null, so that docker0 takes its addresses from the first pool"
    )


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        ({}, {"bip": "10.10.1.1/24", **pools("10.10.0.0/16", 24)}, [overlap("10.10.0.0/16", "10.10.1.1/24")]),
        (
            pools("10.10.0.0/16", 24),
            {"bip": "10.0.0.1/8", **pools("10.10.0.0/16", 24)},
            [overlap("10.10.0.0/16", "10.0.0.1/8")],
        ),
        (
            {"bip": "10.10.1.1/24"},
            {"bip": "10.10.1.1/24", KEY: [{"base": "10.9.0.0/16", "size": 24}, {"base": "10.10.0.0/16", "size": 24}]},
            [overlap("10.10.0.0/16", "10.10.1.1/24", 1)],
        ),
        # It runs so already; they are apart; one of them is not there or is not an address.
        (
            {"bip": "10.10.1.1/24", **pools("10.10.0.0/16", 24)},
            {"bip": "10.10.1.1/24", **pools("10.10.0.0/16", 24)},
            [],
        ),
        ({}, {"bip": "172.30.0.1/24", **pools("172.30.128.0/17", 24)}, []),
        ({}, {"bip": "10.10.1.1/24"}, []),
        ({}, pools("10.10.0.0/16", 24), []),
        ({}, {"bip": "fd00::1/64", **pools("10.10.0.0/16", 24)}, []),
        ({}, {"bip": 7, KEY: [{"base": 7}, 7, {}]}, []),
        ({}, {"bip": "10.10.1.1/24", KEY: "any"}, []),
    ],
)
def test_a_pool_across_the_bridge_is_refused_where_one_of_them_changes(
    before: dict[str, Any], after: dict[str, Any], messages: list[str]
) -> None:
    assert [str(problem) for problem in overlap_problems(before, after)] == messages


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(address=st.ip_addresses(v=4), mask=st.integers(0, 34), size=st.integers(1, 40))
def test_what_passes_can_be_split_into_networks_with_two_addresses_or_more(
    address: ipaddress.IPv4Address, mask: int, size: int
) -> None:
    if reported(pools(f"{address}/{mask}", size)) == []:
        base = ipaddress.IPv4Network(f"{address}/{mask}", strict=False)
        assert next(base.subnets(new_prefix=size)).num_addresses >= 4


@given(base=st.text(), size=st.integers(1, 128))
def test_any_text_is_judged(base: str, size: int) -> None:
    reported(pools(base, size))
