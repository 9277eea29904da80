# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the overlay is to be, and what its subnet must not overlap. Facts are invented, in node_facts' shape."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.addressing import (
    OverlayError,
    OverlayRequest,
    choose_addresses,
    choose_mtu,
    choose_subnet,
    differences,
    plan_overlay,
    room,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.subnet_conflicts import (
    conflicts,
    in_the_way,
    overlaps,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def node(  # every kind of thing that can be in the way
    networks: dict[str, Any] | None = None,
    containers: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    **services: Any,
) -> dict[str, Any]:
    return {
        "fabric": {
            "interfaces": [
                {"name": "eth0", "addresses": [{"subnet": "192.168.7.0/24"}, {"subnet": "fe80::/64"}]},
                {"name": "docker_gwbridge", "addresses": [{"subnet": "172.18.0.0/16"}]},
            ],
            "routes": [{"dst": "default", "dev": "eth0"}, {"dst": "10.8.0.0/16", "dev": "tun0"}, {"dst": "10.9.0.9"}],
        },
        "services": services,
        "engine": {"config": config or {}},
        "docker": {"networks": networks or {}, "containers": containers or {}},
    }


NET = {
    "driver": "overlay",
    "attachable": True,
    "subnets": ["10.64.0.0/24"],
    "options": {"com.docker.network.driver.mtu": "1500"},
}
FULL = node(
    {"lab": NET, "other": {"subnets": ["10.65.0.1/24", "fd00::/64"]}, "host": {"subnets": []}},
    config={"default-address-pools": [{"base": "10.200.0.0/16", "size": 24}, "odd"], "dns": ["10.66.0.53"]},
    nameservers=["10.67.0.53"],
    addresses={"10.68.0.5": "/etc/apt/apt.conf.d/80proxy"},
    resolved={"proxy.example": ["10.69.0.5"], "10.70.0.6": ["10.70.0.6"], "lost.example": []},
)


@pytest.mark.parametrize(
    ("subnet", "words"),
    [
        ("10.64.0.0/24", []),  # the overlay's own
        ("10.8.3.0/24", ["route 10.8.0.0/16 via device tun0"]),
        ("10.9.0.0/24", ["route 10.9.0.9 via device none"]),
        ("192.168.0.0/16", ["network 192.168.7.0/24 of device eth0"]),
        ("192.168.9.0/24", []),  # its engine has other pools
        ("10.65.0.0/24", ["network 10.65.0.1/24 of Docker's other"]),
        ("10.66.0.0/24", ["name server 10.66.0.53 of the engine (dns in /etc/docker/daemon.json)"]),
        ("10.67.0.0/24", ["name server 10.67.0.53"]),
        ("10.68.0.0/24", ["address 10.68.0.5 (named in /etc/apt/apt.conf.d/80proxy)"]),
        ("10.69.0.0/24", ["address 10.69.0.5 of proxy.example (a proxy or mirror)"]),
        ("10.70.0.0/24", ["address 10.70.0.6 (a proxy or mirror)"]),
        (
            "10.200.4.0/24",
            ["address pool 10.200.0.0/16 of the engine (default-address-pools in /etc/docker/daemon.json)"],
        ),
        ("10.42.0.0/24", ["address pool 10.42.0.0/16 of the swarm (swarm_default_address_pool)"]),
        (
            "10.66.0.0/15",
            ["name server 10.67.0.53", "name server 10.66.0.53 of the engine (dns in /etc/docker/daemon.json)"],
        ),
    ],
)
def test_what_is_in_the_way(subnet: str, words: list[str]) -> None:
    assert [item.words for item in in_the_way(subnet, conflicts(FULL, "lab", ["10.42.0.0/16"]))] == words


def test_an_engine_without_configured_pools_has_dockers() -> None:
    known = conflicts(node(), "lab")
    assert [item.words for item in in_the_way("192.168.9.0/24", known)] == [
        "address pool 192.168.0.0/16 of the engine (Docker's own default)"
    ]
    # the bridge that was made from the pool says it already
    assert [item.words for item in in_the_way("172.18.4.0/24", known)] == [
        "network 172.18.0.0/16 of device docker_gwbridge"
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.just("10.64.0.0/24"),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)
INSIDE = st.dictionaries(
    st.sampled_from(["interfaces", "routes", "networks", "config", "nameservers", "addresses", "resolved", "dst"]), JSON
)


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["fabric", "docker", "engine", "services"]), JSON | INSIDE))
def test_odd_facts_are_passed_over(facts: dict[str, Any]) -> None:
    for item in conflicts(facts, "lab"):
        assert ipaddress.IPv4Network(item.network).prefixlen > 0


def test_the_first_free_subnet_is_taken_and_one_that_exists_kept() -> None:
    requested = OverlayRequest("lab")
    hosts = {"a": FULL, "b": node({"x": {"subnets": ["10.64.1.0/24"]}})}
    assert choose_subnet(requested, {}, {"a": node(), "b": node()}) == "10.64.0.0/24"
    assert choose_subnet(OverlayRequest("new"), {}, hosts) == "10.64.2.0/24"
    assert choose_subnet(requested, NET, hosts) == "10.64.0.0/24"
    assert choose_subnet(OverlayRequest("lab", subnet="10.99.0.0/24"), NET, hosts) == "10.99.0.0/24"
    assert choose_subnet(OverlayRequest("lab", swarm_pools=["10.64.0.0/16"]), {}, {"a": node()}) == "10.65.0.0/24"


@pytest.mark.parametrize(("recreate", "expected"), [(False, "10.64.0.0/24"), (True, "10.64.1.0/24")])
def test_one_that_exists_and_collides_is_given_up_by_consent_alone(recreate: bool, expected: str) -> None:
    hosts = {"a": node({"lab": NET}), "b": node(nameservers=["10.64.0.53"])}
    assert choose_subnet(OverlayRequest("lab", recreate=recreate), NET, hosts) == expected


def test_consent_alone_gives_up_nothing_that_fits() -> None:
    assert choose_subnet(OverlayRequest("lab", recreate=True), NET, {"a": node({"lab": NET})}) == "10.64.0.0/24"


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (
            "10.8.0.0/16",
            "overlay_network_pool: No /24 is free in 10.8.0.0/16. In use: a: route 10.8.0.0/16 via device tun0. "
            "Remedy: set overlay_network_pool to a network in which a /24 is free.",
        ),
        (
            "10.0.0.1/8",
            "overlay_network_pool: the address pool: '10.0.0.1/8' has bits set right of its prefix; write 10.0.0.0/8. "
            "Remedy: set overlay_network_pool to a network in which a /24 is free.",
        ),
    ],
)
def test_a_pool_without_a_free_subnet(pool: str, text: str) -> None:
    with pytest.raises(OverlayError) as error:
        choose_subnet(OverlayRequest("new", pool=pool), {}, {"a": node()})
    assert str(error.value) == text


@settings(max_examples=examples(80), deadline=None)
@given(
    servers=st.lists(st.integers(0, 3).map(lambda number: f"10.64.{number}.53"), max_size=3),
    bridges=st.lists(st.integers(0, 5).map(lambda number: f"10.64.{number}.0/24"), max_size=4),
    routes=st.lists(st.sampled_from(["10.64.2.0/23", "10.64.0.0/22", "10.0.0.0/24"]), max_size=2),
)
def test_what_is_chosen_collides_with_nothing(servers: list[str], bridges: list[str], routes: list[str]) -> None:
    one = node({f"n{number}": {"subnets": [text]} for number, text in enumerate(bridges)}, nameservers=servers)
    two = node()
    two["fabric"]["routes"] += [{"dst": text, "dev": "wg0"} for text in routes]
    chosen = choose_subnet(OverlayRequest("new"), {}, {"a": one, "b": two})
    assert not any(overlaps(chosen, taken) for taken in [*servers, *bridges, *routes])
    assert not list(in_the_way(chosen, [*conflicts(one, "new"), *conflicts(two, "new")]))


def network(mtu: str | None) -> dict[str, Any]:
    return {**NET, "options": {} if mtu is None else {"com.docker.network.driver.mtu": mtu}}


@pytest.mark.parametrize(
    ("requested", "recreate", "found", "underlay", "expected"),
    [
        (0, False, {}, 9000, 9000),  # all hosts have jumbo frames
        (0, False, {}, 1400, 1400),
        (1450, False, {}, 9000, 1450),
        (0, False, network("1500"), 9000, 1500),  # works, and stays until it may be re-created
        (0, True, network("1500"), 9000, 9000),
        (0, False, network(None), 9000, 1500),
        (0, False, network("9000"), 1500, 1500),  # does not work
        (0, False, network("many"), 1500, 1500),
        (9000, False, network("1500"), 9000, 9000),
    ],
)
def test_mtu(requested: int, recreate: bool, found: dict[str, Any], underlay: int, expected: int) -> None:
    assert choose_mtu(OverlayRequest("lab", mtu=requested, recreate=recreate), found, underlay) == expected


WANTED = {"subnet": "10.64.0.0/24", "mtu": 1500, "encrypted": False}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (NET, []),
        (network(None), []),
        ({**NET, "driver": "bridge"}, ["its driver is bridge, not overlay, so it does not reach other hosts"]),
        (
            {**NET, "attachable": False},
            ["it is not attachable, so only services can join it, not a training container"],
        ),
        (
            {**NET, "subnets": ["10.0.1.0/24"], "options": {"encrypted": ""}},
            [
                "its subnet is 10.0.1.0/24, not 10.64.0.0/24",
                "its traffic is encrypted, not plain",
            ],
        ),
        (
            {**network("9000"), "subnets": []},
            ["its subnet is none, not 10.64.0.0/24", "its MTU is 9000, not 1500"],
        ),
    ],
)
def test_differences(found: dict[str, Any], expected: list[str]) -> None:
    assert list(differences(found, WANTED).values()) == expected


def test_an_unset_mtu_is_said_to_be_so() -> None:
    assert differences(network(None), {**WANTED, "mtu": 9000, "encrypted": True}) == {
        "mtu": "its MTU is 1500 (not set), not 9000",
        "encrypted": "its traffic is plain, not encrypted",
    }


SUBNET = "10.64.0.0/24"


def requested(**addresses: str) -> OverlayRequest:
    return OverlayRequest("lab", addresses=addresses, containers={host: f"demo-{host}" for host in "abcdef"})


def running(host: str, address: str, fixed: str | None = None, name: str = "") -> dict[str, Any]:
    labels = {"swarmspeed.address": fixed} if fixed else {}
    return {name or f"demo-{host}": {"addresses": {"lab": address}, "labels": labels}}


def test_addresses_are_chosen_from_the_upper_end_in_rank_order() -> None:
    hosts = {"a": node(), "b": node(), "c": node()}
    assert choose_addresses(requested(), SUBNET, hosts) == {}
    assert choose_addresses(requested(a="auto", c="auto"), SUBNET, hosts) == {"a": "10.64.0.254", "c": "10.64.0.253"}
    assert choose_addresses(requested(a="auto", b="10.64.0.254", c="auto"), SUBNET, hosts) == {
        "a": "10.64.0.253",
        "b": "10.64.0.254",
        "c": "10.64.0.252",
    }


def test_an_address_that_was_given_stays_when_hosts_come_and_go() -> None:
    had = {
        "b": node(containers=running("b", "10.64.0.253", "10.64.0.253")),
        "c": node(containers=running("c", "10.64.0.7")),
    }
    assert choose_addresses(requested(b="auto", c="auto"), SUBNET, had) == {"b": "10.64.0.253", "c": "10.64.0.254"}
    # a stopped container has no address, but its label
    had["b"]["docker"]["containers"]["demo-b"]["addresses"] = {"lab": None}
    assert choose_addresses(requested(b="auto"), SUBNET, had) == {"b": "10.64.0.253"}
    # in another subnet it means nothing
    assert choose_addresses(requested(b="auto"), "10.65.0.0/24", had) == {"b": "10.65.0.254"}


def test_what_others_have_is_not_given_out() -> None:
    hosts = {"a": node(containers=running("a", "10.64.0.254", name="bystander")), "b": node()}
    assert choose_addresses(requested(a="auto"), SUBNET, hosts) == {"a": "10.64.0.253"}
    hosts["a"]["docker"]["containers"].update(running("a", "10.64.0.9", "10.64.0.254"))
    assert choose_addresses(requested(a="auto"), SUBNET, hosts) == {"a": "10.64.0.253"}


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        ({"a": "ten"}, "a: training_container_address ten is not an IPv4 address"),
        ({"a": "10.65.0.9"}, "a: training_container_address 10.65.0.9 is not in the overlay's subnet 10.64.0.0/24"),
        (
            {"a": "10.64.0.1"},
            "a: training_container_address 10.64.0.1 is reserved in 10.64.0.0/24 for the network itself",
        ),
        (
            {"a": "10.64.0.255"},
            "a: training_container_address 10.64.0.255 is reserved in 10.64.0.0/24 for the network itself",
        ),
        (
            {"a": "10.64.0.9", "b": "10.64.0.9"},
            "b: training_container_address 10.64.0.9 is used by the container of a",
        ),
        ({"b": "10.64.0.200"}, "b: training_container_address 10.64.0.200 is used by container bystander on a"),
        (
            {"a": "x", "b": "10.64.0.200"},
            "a: training_container_address x is not an IPv4 address. b: training_container_address 10.64.0.200 is "
            "used by container bystander on a",
        ),
    ],
)
def test_addresses_that_do_not_fit(addresses: dict[str, str], words: str) -> None:
    hosts = {"a": node(containers=running("a", "10.64.0.200", name="bystander")), "b": node()}
    with pytest.raises(OverlayError) as error:
        choose_addresses(requested(**addresses), SUBNET, hosts)
    assert str(error.value) == (
        f"{words}. Remedy: give addresses that are free in 10.64.0.0/24, or auto to have them chosen."
    )


def test_a_subnet_that_is_full() -> None:
    hosts = {host: node() for host in "abcdef"}
    with pytest.raises(
        OverlayError, match=r"^f: no address is free in the overlay's subnet 10\.64\.0\.0/29\. Remedy: "
    ):
        choose_addresses(requested(**dict.fromkeys("abcdef", "auto")), "10.64.0.0/29", hosts)


HOSTS = "abcdef"
ADDRESS = st.sampled_from(["", "auto", "auto", "10.64.0.20", "10.64.0.21"])


@settings(max_examples=examples(150), deadline=None)
@given(
    addresses=st.dictionaries(st.sampled_from(HOSTS), ADDRESS),
    held=st.dictionaries(st.sampled_from(HOSTS), st.integers(240, 254).map(lambda number: f"10.64.0.{number}")),
    gone=st.sampled_from(HOSTS),
)
def test_addresses_are_distinct_inside_and_stay(addresses: dict[str, str], held: dict[str, str], gone: str) -> None:
    hosts = {host: node(containers=running(host, "", held.get(host))) for host in HOSTS}
    try:
        given_out = choose_addresses(requested(**addresses), SUBNET, hosts)
    except OverlayError as error:
        assert "is used by the container of" in str(error)
        return
    assert set(given_out) == {host for host, address in addresses.items() if address}
    assert len(set(given_out.values())) == len(given_out)
    assert all(ipaddress.IPv4Address(text) in ipaddress.IPv4Network(SUBNET) for text in given_out.values())
    # What was given once is given again, with any host taken out of the inventory and in any order.
    again = {host: node(containers=running(host, "", given_out.get(host))) for host in reversed(HOSTS) if host != gone}
    assert choose_addresses(requested(**addresses), SUBNET, again) == {
        host: text for host, text in given_out.items() if host != gone
    }


def test_the_plan() -> None:
    hosts = {"a": node({"lab": network("1400")}), "b": node()}
    assert plan_overlay(requested(b="auto"), hosts, "a", 1500) == {
        "subnet": SUBNET,
        "mtu": 1400,
        "addresses": {"b": "10.64.0.254"},
    }
    assert plan_overlay(OverlayRequest("lab", subnet="ten"), hosts, "a", 1500)["subnet"] == "ten"  # preflight's to say


@pytest.mark.parametrize(("subnet", "nodes"), [("10.0.0.0/24", 126), ("10.0.0.0/29", 2), ("10.0.0.0/30", 0)])
def test_room(subnet: str, nodes: int) -> None:
    assert room(subnet) == nodes
