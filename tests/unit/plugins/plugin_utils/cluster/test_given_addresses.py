# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The underlay of hosts that share no subnet, by the address of each. All hosts are invented."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.given_addresses import (
    given_underlay,
    own_subnet,
    senders,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import Underlay, UnderlayError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def interface(name: str, cidr: str, **changes: Any) -> dict[str, Any]:
    """An interface as fabric_info gives it."""
    one = ipaddress.ip_interface(cidr)
    entry = {"address": str(one.ip), "prefix": one.network.prefixlen, "subnet": str(one.network)}
    entry.update(family="inet", scope="global")
    plain = {"name": name, "mtu": 1500, "state": "up", "kind": "physical", "speed_mbps": 1000}
    return {**plain, "addresses": [entry], **changes}


def host(*interfaces: dict[str, Any]) -> dict[str, Any]:
    return {"interfaces": list(interfaces), "routes": [], "default_interface": None, "problems": []}


RENTED = {
    "server1": host(interface("eth0", "203.0.113.7/24"), interface("eth1", "10.0.0.1/24", speed_mbps=10000)),
    "server2": host(interface("ens3", "198.51.100.9/32", mtu=1450, speed_mbps=None)),
}
GIVEN = {"server1": "203.0.113.7", "server2": "198.51.100.9"}


def test_the_underlay_is_the_addresses_of_the_hosts() -> None:
    found = given_underlay(RENTED, GIVEN)
    assert found == Underlay(
        subnet="",
        interfaces={"server1": "eth0", "server2": "ens3"},
        addresses=GIVEN,
        mtu=1450,
        speed_mbps=None,
        reason="set by cluster_address",
    )


@pytest.mark.parametrize(
    ("given_by_hand", "text"),
    [
        (
            {"server1": "203.0.113.7"},
            "server2: cluster_address is not set, but it is for server1. Remedy: set it for every host of the cluster, "
            "or for none.",
        ),
        (
            {**GIVEN, "server2": "192.0.2.80"},
            "server2 (has ens3 198.51.100.9/32) should be reached at 192.0.2.80, but no active interface there has "
            "that address. Remedy: set cluster_address to an address that the host itself has, not to one that is "
            "translated on the way to it.",
        ),
        (
            dict.fromkeys(GIVEN, "203.0.113.7"),
            "cluster_address: server1 and server2 both have 203.0.113.7. Remedy: set it for each host, "
            "not for a group.",
        ),
        *(
            (
                {**GIVEN, "server1": text},
                f"server1: cluster_address is '{text}', at which no other host can reach it. Remedy: set it to an IPv4 "
                "address of the host, such as 203.0.113.7.",
            )
            for text in ("server1.example.com", "2001:db8::7", "127.0.0.1", "0.0.0.0", "203.0.113.7/24", "224.0.0.1")
        ),
    ],
)
def test_addresses_that_make_no_underlay(given_by_hand: dict[str, str], text: str) -> None:
    with pytest.raises(UnderlayError) as error:
        given_underlay(RENTED, given_by_hand)
    assert str(error.value) == text


def test_an_interface_that_is_down_does_not_count() -> None:
    hosts = {**RENTED, "server2": host(interface("ens3", "198.51.100.9/24", state="down"))}
    with pytest.raises(
        UnderlayError, match=r"^server2 \(has no IPv4 address .*\) should be reached at 198\.51\.100\.9,"
    ):
        given_underlay(hosts, GIVEN)


def test_what_a_host_reports_is_checked_before_it_is_used() -> None:
    hosts = {**RENTED, "server2": host(interface("ens3;reboot", "198.51.100.9/24"))}
    with pytest.raises(UnderlayError, match=r"^server2: "):
        given_underlay(hosts, GIVEN)


def test_what_takes_a_subnet_takes_addresses_instead() -> None:
    shared = {"subnet": "10.1.0.0/24", "addresses": GIVEN}
    assert (own_subnet(shared, "server1"), senders(shared)) == ("10.1.0.0/24", "10.1.0.0/24")
    apart = {"subnet": "", "addresses": GIVEN}
    assert (own_subnet(apart, "server2"), senders(apart)) == ("198.51.100.9/32", "203.0.113.7,198.51.100.9")
    assert (own_subnet({}, "server1"), senders({})) == ("", "")


@settings(max_examples=examples(100))
@given(st.dictionaries(st.text("abc", min_size=1), st.ip_addresses(v=4, network="203.0.112.0/20"), min_size=1))
def test_every_host_is_found_at_its_own_address(addresses: dict[str, ipaddress.IPv4Address]) -> None:
    hosts = {
        name: host(interface("eth0", "10.0.0.1/8"), interface("eth1", f"{address}/24"))
        for name, address in addresses.items()
    }
    wanted = {name: str(address) for name, address in addresses.items()}
    if len(set(wanted.values())) < len(wanted):
        with pytest.raises(UnderlayError, match="Remedy: set it for each host"):
            given_underlay(hosts, wanted)
        return
    found = given_underlay(hosts, wanted)
    assert (found.addresses, set(found.interfaces.values())) == (wanted, {"eth1"})
