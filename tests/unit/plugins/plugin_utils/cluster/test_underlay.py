# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The common underlay: which subnet is taken, and what is said where none is. All hosts are invented."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import (
    Underlay,
    UnderlayError,
    common_underlay,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


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
            "the fastest of 2 subnets that all hosts share (25 Gbit/s; 10.0.0.0/24 has 1 Gbit/s)",
        ),
        (
            # One slow card in the fast network makes it the slower one for a collective.
            {"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, 100)},
            None,
            "10.0.0.0/24",
            "the fastest of 2 subnets that all hosts share (1 Gbit/s; 192.168.50.0/24 has 0.1 Gbit/s)",
        ),
        (
            {"a": two_nics(1, 1000, 100000), "b": two_nics(2, 1000, None)},
            None,
            "10.0.0.0/24",
            "the fastest of 2 subnets that all hosts share (1 Gbit/s; 192.168.50.0/24 has an unknown speed)",
        ),
        (
            {"a": two_nics(1, None, None), "b": two_nics(2, None, None)},
            {"a": "192.168.50.1", "b": "192.168.50.2"},
            "192.168.50.0/24",
            "of 2 equally fast subnets that all hosts share, the one that Ansible reaches them by",
        ),
        (
            {"a": two_nics(1, 10000, 10000), "b": two_nics(2, 10000, 10000)},
            SSH,
            "10.0.0.0/24",
            "of 2 equally fast subnets that all hosts share, the one that Ansible reaches them by",
        ),
        (
            # A cloud's machines tell no speed, and inventories name them by DNS.
            {"a": two_nics(1, None, None), "b": two_nics(2, None, None)},
            {"a": "a.example", "b": "b.example"},
            "10.0.0.0/24",
            "of 2 subnets of unknown speed that all hosts share, the one of their default routes",
        ),
    ],
    ids=["fastest", "slowest-card-counts", "unknown-speed-counts-as-none", "ssh", "ssh-of-fast-ones", "default-routes"],
)
def test_the_best_of_several(
    hosts: dict[str, dict[str, Any]], ssh: dict[str, str] | None, subnet: str, reason: str
) -> None:
    found = common_underlay(hosts, ssh=ssh)
    assert (found.subnet, found.reason) == (subnet, reason)


def test_names_of_interfaces_may_differ_and_the_slowest_speed_is_reported() -> None:
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


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (
            {"a": two_nics(1, 10000, 10000), "b": two_nics(2, 10000, 10000)},
            "The hosts share 2 subnets with equal claims: 10.0.0.0/24 (eno1: 10 Gbit/s) and "
            "192.168.50.0/24 (ens1, ens2: 10 Gbit/s). "
            "Set cluster_underlay_subnet to the one that is to carry the training.",
        ),
        (
            {
                name: host(*(interface(f"eth{nic}", f"10.{nic}.0.{n}/24") for nic in range(3)))
                for n, name in enumerate(("a", "b"), 1)
            },
            "The hosts share 3 subnets with equal claims: 10.0.0.0/24 (eth0: an unknown speed), "
            "10.1.0.0/24 (eth1: an unknown speed) and 10.2.0.0/24 (eth2: an unknown speed). "
            "Set cluster_underlay_subnet to the one that is to carry the training.",
        ),
    ],
    ids=["equally-fast-although-one-has-the-default-route", "nothing-known"],
)
def test_of_equal_subnets_none_is_guessed(hosts: dict[str, dict[str, Any]], text: str) -> None:
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts, ssh={"a": "a.example"})
    assert str(error.value) == text
    subnet = next(iter(hosts.values()))["interfaces"][-1]["addresses"][0]["subnet"]
    assert common_underlay(hosts, wanted=subnet).subnet == subnet


def rivals(number: int, **changes: Any) -> dict[str, Any]:
    nics = (interface(f"eth{nic}", f"10.5.0.{number + 100 * nic}/24", speed_mbps=1000) for nic in range(2))
    return host(*nics, **changes)


def test_two_interfaces_in_one_subnet_with_equal_claims_are_asked_about() -> None:
    hosts = {"a": rivals(1), "b": host(interface("eth0", "10.5.0.2/24")), "c": rivals(3)}
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts)
    assert str(error.value) == (
        "Two interfaces have equal claims to 10.5.0.0/24 on a (eth0 and eth1) and c (eth0 and eth1). Set "
        "cluster_underlay_subnet to a part of it that holds one address of each host, or take the second interface "
        "out of the subnet."
    )
    assert common_underlay(hosts, wanted="10.5.0.0/26").interfaces == {"a": "eth0", "b": "eth0", "c": "eth0"}


def test_ssh_the_default_route_and_the_routes_metric_decide_between_two_interfaces_in_one_subnet() -> None:
    other = host(interface("eth0", "10.5.0.2/24"))
    assert common_underlay({"a": rivals(1), "b": other}, ssh={"a": "10.5.0.101"}).interfaces["a"] == "eth1"
    assert common_underlay({"a": rivals(1, default="eth1"), "b": other}).interfaces["a"] == "eth1"
    routes = [
        {"dst": "10.5.0.0/24", "dev": f"eth{nic}", "gateway": None, "metric": 200 - nic, "table": "main"}
        for nic in range(2)
    ]
    assert common_underlay({"a": rivals(1, routes=routes), "b": other}).interfaces["a"] == "eth1"


def test_a_second_address_of_the_same_interface_is_no_rival() -> None:
    one = interface("eth0", "10.5.0.1/24")
    one["addresses"] += interface("eth0", "10.5.0.200/24")["addresses"]
    found = common_underlay({"a": host(one), "b": host(interface("eth0", "10.5.0.2/24"))})
    assert found.addresses == {"a": "10.5.0.1", "b": "10.5.0.2"}


def test_a_wanted_network_that_holds_dockers_too_is_not_taken_for_dockers() -> None:
    hosts = {f"h{n}": host(DOCKER, interface("eth0", f"172.20.{n}.1/24")) for n in (1, 2)}
    found = common_underlay(hosts, wanted="172.16.0.0/12")
    assert found.interfaces == {"h1": "eth0", "h2": "eth0"}


def test_three_hosts_with_one_address() -> None:
    hosts = {name: host(interface("lxdbr0", "10.1.0.1/24")) for name in "abc"}
    with pytest.raises(UnderlayError, match=r"10\.1\.0\.0/24 does not count, as a, b and c all have 10\.1\.0\.1 there"):
        common_underlay(hosts)


REMEDY = (
    "Do one of these: connect all hosts to one subnet; set cluster_underlay_subnet to a network in which each has an "
    "address; or, for routed networks, set cluster_address on every host."
)
OVERLAY = (
    "Connect all hosts to one subnet. Or, for routed networks, use an overlay: "
    "cluster_network_mode: overlay, and cluster_underlay_subnet: {}, which holds an address of each."
)


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (
            {**lab(2), "lab3": host(LO, interface("eth0", "10.99.0.3/24"), DOCKER)},
            "The hosts share no subnet: lab1, lab2 are on 10.77.0.0/24, but not: lab3 (has eth0 10.99.0.3/24). "
            + OVERLAY.format("10.64.0.0/10"),
        ),
        (
            {"a": host(interface("eth0", "10.1.0.1/24")), "b": host(interface("eth0", "10.2.0.1/24"))},
            "The hosts share no subnet: a (has eth0 10.1.0.1/24); b (has eth0 10.2.0.1/24). "
            + OVERLAY.format("10.0.0.0/14"),
        ),
        (
            {"a": host(interface("eth0", "10.1.0.1/24")), "b": host(interface("eth0", "192.168.1.1/24"))},
            "The hosts share no subnet: a (has eth0 10.1.0.1/24); b (has eth0 192.168.1.1/24). " + REMEDY,
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
    ids=["one-apart", "all-apart", "worlds-apart", "nothing-read", "same-bridge"],
)
def test_no_common_subnet_names_the_hosts_and_the_way_out(hosts: dict[str, dict[str, Any]], text: str) -> None:
    with pytest.raises(UnderlayError) as error:
        common_underlay(hosts)
    assert str(error.value) == text


def test_the_proposed_network_is_accepted() -> None:
    hosts = {"a": host(interface("eth0", "10.1.0.1/24")), "b": host(interface("eth0", "10.2.0.1/24"))}
    found = common_underlay(hosts, wanted="10.0.0.0/14")
    assert found.addresses == {"a": "10.1.0.1", "b": "10.2.0.1"}


def test_no_hosts() -> None:
    with pytest.raises(UnderlayError, match=r"^There is no host to find a common subnet for\.$"):
        common_underlay({})


def test_the_wanted_subnet_wins_over_a_faster_one_and_counts_by_containment() -> None:
    hosts = {"a": two_nics(1, 1000, 100000), "b": host(interface("eth0", "10.0.0.2/32"))}
    found = common_underlay(hosts, wanted="10.0.0.0/24")
    assert (found.subnet, found.interfaces) == ("10.0.0.0/24", {"a": "eno1", "b": "eth0"})
    assert found.reason == "requested by cluster_underlay_subnet"


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


@settings(max_examples=examples(60), deadline=None)
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
