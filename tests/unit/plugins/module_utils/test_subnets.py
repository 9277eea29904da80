# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Free subnets, collisions and the common underlay. All hosts here are invented."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils._subnets import (
    SubnetError,
    Underlay,
    UnderlayError,
    collisions,
    common_underlay,
    pick_subnet,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def interface(name: str, cidr: str, **changes: Any) -> dict[str, Any]:
    """An interface as fabric_info gives it."""
    one = ipaddress.ip_interface(cidr)
    entry = {
        "address": str(one.ip),
        "prefix": one.network.prefixlen,
        "subnet": str(one.network),
        "family": "inet" if one.version == 4 else "inet6",
        "scope": changes.pop("scope", "global"),
    }
    plain = {"name": name, "mac": None, "mtu": 1500, "state": "up", "kind": "physical", "speed_mbps": None}
    return {**plain, "addresses": [entry], **changes}


def host(*interfaces: dict[str, Any], default: str | None = None, **more: Any) -> dict[str, Any]:
    """A host as fabric_info gives it."""
    return {"interfaces": list(interfaces), "routes": [], "default_interface": default, "problems": [], **more}


LO = interface("lo", "127.0.0.1/8", kind="loopback", mtu=65536, scope="host")
DOCKER = interface("docker0", "172.17.0.1/16", kind="bridge")


def lab(count: int) -> dict[str, dict[str, Any]]:
    """Hosts with one network card each, and what Docker adds."""
    return {
        f"lab{n}": host(LO, interface("eth0", f"10.77.0.{10 + n}/24", mtu=1500 - n), DOCKER, default="eth0")
        for n in range(1, count + 1)
    }


def test_the_one_subnet_of_a_lab() -> None:
    assert common_underlay(lab(3)) == Underlay(
        subnet="10.77.0.0/24",
        interfaces={"lab1": "eth0", "lab2": "eth0", "lab3": "eth0"},
        addresses={"lab1": "10.77.0.11", "lab2": "10.77.0.12", "lab3": "10.77.0.13"},
        mtu=1497,
        speed_mbps=None,
        reason="the only subnet that all hosts share",
    )


def two_nics(n: int, management: int | None, fast: int | None) -> dict[str, Any]:
    return host(
        interface("eno1", f"10.0.0.{n}/24", speed_mbps=management),
        interface(f"ens{n}", f"192.168.50.{n}/24", speed_mbps=fast, mtu=9000),
        default="eno1",
    )


SSH = {"a": "10.0.0.1", "b": "10.0.0.2"}


@pytest.mark.parametrize(
    ("hosts", "ssh", "subnet", "reason"),
    [
        (
            {"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, 25000)},
            SSH,
            "192.168.50.0/24",
            "the fastest of 2 subnets that all hosts share",
        ),
        (
            # One slow card in the fast network makes it the slower one for a collective.
            {"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, 100)},
            None,
            "10.0.0.0/24",
            "the fastest of 2 subnets that all hosts share",
        ),
        (
            {"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, None)},
            None,
            "10.0.0.0/24",
            "the fastest of 2 subnets that all hosts share",
        ),
        (
            {"a": two_nics(1, None, None), "b": two_nics(2, None, None)},
            {"a": "192.168.50.1", "b": "192.168.50.2"},
            "192.168.50.0/24",
            "of 2 equally fast subnets that all hosts share, the one that Ansible reaches them by",
        ),
        (
            {"a": two_nics(1, 10000, 10000), "b": two_nics(2, 10000, 10000)},
            {"a": "a.example", "b": "b.example"},
            "10.0.0.0/24",
            "the lowest of 2 subnets that all hosts share, which are equal otherwise",
        ),
    ],
    ids=["fastest", "slowest-card-counts", "unknown-speed-counts-as-none", "ssh", "lowest"],
)
def test_the_best_of_several(
    hosts: dict[str, dict[str, Any]], ssh: dict[str, str] | None, subnet: str, reason: str
) -> None:
    found = common_underlay(hosts, ssh=ssh)
    assert (found.subnet, found.reason) == (subnet, reason)


def test_names_of_interfaces_may_differ_and_the_slowest_speed_is_told() -> None:
    found = common_underlay({"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, 25000)})
    assert found.interfaces == {"a": "ens1", "b": "ens2"}
    assert (found.mtu, found.speed_mbps) == (9000, 25000)


def test_one_host_takes_its_default_route() -> None:
    found = common_underlay({"a": two_nics(1, 1000, 100000)})
    assert (found.subnet, found.interfaces) == ("10.0.0.0/24", {"a": "eno1"})
    assert found.reason == "this host's default route leaves there"


def test_one_host_without_a_default_route() -> None:
    found = common_underlay({"a": host(LO, interface("eth5", "10.9.0.1/24"))})
    assert (found.interfaces, found.reason) == ({"a": "eth5"}, "the best of this one host's subnets")


@pytest.mark.parametrize(
    "unfit",
    [
        interface("lo", "10.5.0.1/24"),
        interface("docker0", "10.5.0.1/24"),
        interface("docker_gwbridge", "10.5.0.1/24"),
        interface("br-0a1b2c", "10.5.0.1/24"),
        interface("veth12ab", "10.5.0.1/24"),
        interface("virbr0", "10.5.0.1/24"),
        interface("vx-001001", "10.5.0.1/24", kind="vxlan"),
        interface("eth9", "10.5.0.1/24", state="down"),
        interface("eth9", "169.254.7.7/16", scope="link"),
        interface("eth9", "2001:db8::1/64"),
    ],
    ids=lambda entry: f"{entry['name']}-{entry['kind']}-{entry['state']}-{entry['addresses'][0]['address']}",
)
def test_what_is_no_underlay(unfit: dict[str, Any]) -> None:
    # Different addresses on each host, so that only name, kind, state or scope can be the reason.
    other = {**unfit, "addresses": [{**unfit["addresses"][0], "address": "10.5.0.2"}]}
    with pytest.raises(UnderlayError, match="has no IPv4 address on any interface that is up"):
        common_underlay({"a": host(unfit), "b": host(other)})


def test_a_bridge_of_the_users_own_is_an_underlay() -> None:
    hosts = {f"h{n}": host(interface("br0", f"10.5.0.{n}/24", kind="bridge")) for n in (1, 2)}
    assert common_underlay(hosts).interfaces == {"h1": "br0", "h2": "br0"}


def test_a_lab_node_whose_card_is_a_veth_is_not_left_out() -> None:
    hosts = {f"h{n}": host(interface("eth0", f"10.5.0.{n}/24", kind="veth")) for n in (1, 2)}
    assert common_underlay(hosts).subnet == "10.5.0.0/24"


def test_the_same_address_everywhere_is_not_shared() -> None:
    bridge = interface("lxdbr0", "10.1.0.1/24", kind="bridge", speed_mbps=400000)
    hosts = {name: host(bridge, *fabric["interfaces"]) for name, fabric in lab(2).items()}
    assert common_underlay(hosts).subnet == "10.77.0.0/24"


def test_of_two_interfaces_in_one_subnet_the_faster_then_the_default_one() -> None:
    slow, fast = interface("eth0", "10.5.0.1/24", speed_mbps=100), interface("eth1", "10.5.0.2/24", speed_mbps=1000)
    assert common_underlay({"a": host(slow, fast, default="eth0")}).interfaces == {"a": "eth1"}
    equal = interface("eth1", "10.5.0.2/24", speed_mbps=100)
    assert common_underlay({"a": host(slow, equal, default="eth1")}).interfaces == {"a": "eth1"}
    assert common_underlay({"a": host(slow, equal)}).interfaces == {"a": "eth0"}


REMEDY = "Put all hosts on one subnet, or set cluster_underlay_subnet to a network in which each has an address."


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (
            {**lab(2), "lab3": host(LO, interface("eth0", "10.99.0.3/24"), DOCKER)},
            "The hosts share no subnet: lab1, lab2 are on 10.77.0.0/24, but not: lab3 (has eth0 10.99.0.3/24). "
            + REMEDY,
        ),
        (
            {"a": host(interface("eth0", "10.1.0.1/24")), "b": host(interface("eth0", "10.2.0.1/24"))},
            "The hosts share no subnet: a (has eth0 10.1.0.1/24); b (has eth0 10.2.0.1/24). " + REMEDY,
        ),
        (
            {**lab(2), "lab3": host(problems=["The command ip is not installed. Install iproute2."])},
            "The hosts share no subnet: lab1, lab2 are on 10.77.0.0/24, but not: "
            "lab3 (The command ip is not installed. Install iproute2.). " + REMEDY,
        ),
        (
            {"a": host(interface("lxdbr0", "10.1.0.1/24")), "b": host(interface("lxdbr0", "10.1.0.1/24"))},
            "The hosts share no subnet: a (has lxdbr0 10.1.0.1/24); b (has lxdbr0 10.1.0.1/24). "
            "10.1.0.0/24 does not count, as a and b both have 10.1.0.1 there. " + REMEDY,
        ),
    ],
    ids=["one-apart", "all-apart", "nothing-read", "same-bridge"],
)
def test_no_common_subnet_names_the_hosts_and_the_way_out(hosts: dict[str, dict[str, Any]], text: str) -> None:
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts)
    assert str(error.value) == text


def test_no_hosts() -> None:
    with pytest.raises(UnderlayError, match=r"^There is no host to find a common subnet for\.$"):
        common_underlay({})


def test_the_wanted_subnet_wins_over_a_faster_one_and_counts_by_containment() -> None:
    hosts = {"a": two_nics(1, 1000, 100000), "b": host(interface("eth0", "10.0.0.2/32"))}
    found = common_underlay(hosts, wanted="10.0.0.0/24")
    assert (found.subnet, found.interfaces) == ("10.0.0.0/24", {"a": "eno1", "b": "eth0"})
    assert found.reason == "asked for by cluster_underlay_subnet"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            "10.0.0.0/24",
            "cluster_underlay_subnet is 10.0.0.0/24, but no interface that is up has an address in it on: "
            "b (has eth0 10.99.0.3/24); c (has no IPv4 address on any interface that is up). "
            "Correct the variable, or give those hosts such an address.",
        ),
        ("10.0.0.1/24", "cluster_underlay_subnet: '10.0.0.1/24' has bits set right of its prefix; write 10.0.0.0/24."),
        ("fast", "cluster_underlay_subnet: 'fast' is not an IPv4 network such as 10.20.0.0/24."),
        ("fd00::/64", "cluster_underlay_subnet: 'fd00::/64' is not an IPv4 network such as 10.20.0.0/24."),
    ],
)
def test_a_wanted_subnet_that_cannot_be(wanted: str, text: str) -> None:
    hosts = {
        "a": two_nics(1, 1000, 100000),
        "b": host(interface("eth0", "10.99.0.3/24")),
        "c": host(interface("eth0", "10.0.0.3/24", state="down")),
    }
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts, wanted=wanted)
    assert str(error.value) == text


def test_a_wanted_subnet_in_which_hosts_have_one_address() -> None:
    hosts = {"a": host(DOCKER), "b": host(DOCKER)}
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts, wanted="172.17.0.0/16")
    assert str(error.value) == (
        "cluster_underlay_subnet is 172.17.0.0/16, but a and b both have 172.17.0.1 there. "
        "Give each host an address of its own, or name another subnet."
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**24 - 1), st.integers(16, 28), st.randoms(use_true_random=False))
def test_hosts_on_one_subnet_always_find_it(count: int, bits: int, prefix: int, random: Any) -> None:
    network = ipaddress.IPv4Network(((11 << 24) + bits, prefix), strict=False)
    addresses = random.sample(range(1, network.num_addresses - 1), count)
    hosts = {
        f"h{n}": host(
            interface("eth0", f"192.168.{n}.1/24"),  # a network of each host's own
            interface("eth1", f"{network[offset]}/{prefix}", mtu=1400 + n),
            default="eth1",
        )
        for n, offset in enumerate(addresses)
    }
    found = common_underlay(hosts)
    assert found.subnet == str(network)
    assert found.addresses == {f"h{n}": str(network[offset]) for n, offset in enumerate(addresses)}
    assert found.mtu == 1400
    # What hosts are asked about first must not matter.
    assert common_underlay(dict(reversed(hosts.items()))).subnet == found.subnet


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
        ([], 24, [], "No address pool is given to pick a subnet from."),
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


@settings(max_examples=100, deadline=None)
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
