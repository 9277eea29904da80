"""What the lab learns of the machine it is made on; the texts of /proc are recorded where they say so, else made up."""

from __future__ import annotations

import importlib.util
import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

_SPEC = importlib.util.spec_from_file_location(
    "machine", Path(__file__).parents[3] / "molecule" / "default" / "machine.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
machine = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(machine)

# Recorded on a machine with one uplink and Docker's default bridge.
ROUTES = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
"""
# Made-up fields of the engine's list of networks: a bridge, one with IPv6 too, and the networks `host` and `none`.
NETWORKS = [
    {"Name": "bridge", "IPAM": {"Config": [{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}]}},
    {"Name": "both", "IPAM": {"Config": [{"Subnet": "fd00:1::/64"}, {"Subnet": "10.231.1.0/24"}]}},
    {"Name": "host", "IPAM": {"Config": []}},
    {"Name": "none", "IPAM": {"Config": None}},
]


@pytest.mark.parametrize(
    ("bounding", "missing"),
    [
        ("000001ffffffffff", set()),
        ("0000003fffffffff", set()),
        ("000001fffeffffff", {"SYS_RESOURCE"}),
        ("000001fffffffffe", {"CHOWN"}),
        ("000001dfffdfffff", {"SYS_ADMIN", "AUDIT_READ"}),
    ],
)
def test_capabilities_are_what_the_bounding_set_has(bounding: str, missing: set[str]) -> None:
    found = machine.capabilities(f"Name:\tbash\nCapBnd:\t{bounding}\nCapAmb:\t0\n")
    assert found == [name for name in machine.CAPABILITIES.split() if name not in missing]


def test_no_capability_is_given_or_all_where_none_or_nothing_is_configured() -> None:
    assert machine.capabilities("CapBnd:\t0000000000000000\n") == []
    assert machine.capabilities("") == machine.CAPABILITIES.split()


def test_capabilities_are_in_the_order_of_their_bits() -> None:
    names = machine.CAPABILITIES.split()
    assert len(names) == len(set(names)) == 38
    assert [names[bit] for bit in (0, 12, 21, 24, 37)] == [
        "CHOWN",
        "NET_ADMIN",
        "SYS_ADMIN",
        "SYS_RESOURCE",
        "AUDIT_READ",
    ]


def test_routes() -> None:
    assert machine.routes(ROUTES) == [
        ("eth0", ipaddress.IPv4Network("0.0.0.0/0")),
        ("docker0", ipaddress.IPv4Network("172.17.0.0/16")),
        ("eth0", ipaddress.IPv4Network("192.0.2.0/24")),
    ]
    assert machine.routes("") == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["nameserver 192.0.2.53\nsearch example\nnameserver 192.0.2.54\n"], ["192.0.2.53", "192.0.2.54"]),
        (["nameserver 127.0.0.53\n", "nameserver 192.0.2.53\n"], ["192.0.2.53"]),
        (["nameserver 127.0.0.1\nnameserver 192.0.2.1\n", "nameserver 192.0.2.53\n"], ["192.0.2.1"]),
        (["# nameserver 192.0.2.1\n", ""], []),
    ],
)
def test_nameservers(texts: list[str], expected: list[str]) -> None:
    assert machine.nameservers(*texts) == expected


def test_docker_subnets() -> None:
    expected = [ipaddress.IPv4Network("172.17.0.0/16"), ipaddress.IPv4Network("10.231.1.0/24")]
    assert machine.docker_subnets(NETWORKS) == expected
    assert machine.docker_subnets([]) == []


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], "10.231.0.0/24"),
        (["10.231.0.0/24", "10.231.2.0/24"], "10.231.1.0/24"),
        (["10.231.0.0/17"], "10.231.128.0/24"),
        (["10.231.0.77/32"], "10.231.1.0/24"),
    ],
)
def test_free_subnet(taken: list[str], expected: str) -> None:
    assert str(machine.free_subnet([ipaddress.IPv4Network(one) for one in taken])) == expected


def test_there_is_no_free_subnet_where_all_are_taken() -> None:
    assert machine.free_subnet([ipaddress.IPv4Network("10.0.0.0/8")]) is None


@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(18, 32)), max_size=8))
def test_a_free_subnet_overlaps_nothing(taken: list[tuple[int, int]]) -> None:
    base = int(ipaddress.IPv4Address("10.231.0.0"))
    networks = [ipaddress.IPv4Network((base + offset, prefix), strict=False) for offset, prefix in taken]
    found = machine.free_subnet(networks)
    assert found is None or (found.prefixlen == 24 and not any(found.overlaps(network) for network in networks))
