# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The parsers of a node. Engine answers and /proc tables are shortened by hand; ids and addresses are invented."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import parsers as node
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nID=debian\n',
            ("debian", "12", "bookworm"),
        ),
        ("# ID=no\nID='Ubuntu'\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble", ("ubuntu", "24.04", "noble")),
        ("  ID = spaced\nID=debian\n\nnonsense\nID_LIKE=x", ("debian", "", "")),
        ("", ("unknown", "", "")),
    ],
)
def test_os_release(text: str, expected: tuple[str, str, str]) -> None:
    assert tuple(node.parse_os_release(text).values()) == expected
    assert list(node.parse_os_release(text)) == ["distribution", "release", "codename"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MemTotal:       16384 kB\nMemFree: 1 kB\n", 16384 * 1024),
        ("MemFree: 1 kB\nMemTotal: 2 kB", 2048),
        ("MemTotal: many kB", 0),
        ("MemTotal:", 0),
        ("", 0),
    ],
)
def test_meminfo(text: str, expected: int) -> None:
    assert node.parse_meminfo(text) == expected


def test_dpkg_counts_only_what_is_installed() -> None:
    text = (
        "rsync\tii \t3.2.7-1\n"
        "docker.io\thi \t20.10.24+dfsg1-1\n"  # held, and installed
        "nginx\trc \t1.22\n"  # removed, its configuration is left
        "broken\tiU \t1.0\n"  # unpacked only
        "other\tii \t9\n"
        "libc6\tii \t2.36\nlibc6\trc \t2.36-old\n"  # of a second architecture
        "nonsense\n"
    )
    wanted = ["rsync", "docker.io", "nginx", "broken", "libc6", "never-heard-of", "nonsense"]
    assert node.parse_dpkg(text, wanted) == {
        "rsync": "3.2.7-1",
        "docker.io": "20.10.24+dfsg1-1",
        "nginx": None,
        "broken": None,
        "libc6": "2.36",
        "never-heard-of": None,
        "nonsense": None,
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("libc6", "2.36-9+deb12u10"),
        ("libc6:amd64", "2.36-9+deb12u10"),
        ("libc6:i386", None),
        ("libc6=2.36-*", "2.36-9+deb12u10"),
        ("libc6:amd64=2.36-9+deb12u10", "2.36-9+deb12u10"),
        ("libc6=2.3", None),
        ("tzdata:amd64", "2025b"),  # one for all
        ("libc6=", "2.36-9+deb12u10"),
        ("libc", None),
    ],
)
def test_a_package_is_there_with_the_architecture_and_the_version_that_are_asked(wanted: str, expected: str) -> None:
    text = "libc6\tii \t2.36-9+deb12u10\tamd64\nlibc6\trc \t2.36\ti386\ntzdata\tii \t2025b\tall\n"
    assert node.parse_dpkg(text, [wanted]) == {wanted: expected}


SOCKETS = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0100007F:0051 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0
   3: 00000000:12B5 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4 2 0
   4: 00000000000000000000000000000000:08AE 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 5
   5: cut
   6: 00000000:ZZZZ 00000000:0000 0A
"""


def test_sockets() -> None:
    assert node.parse_sockets(SOCKETS, "tcp") == {"1": 8080, "2": 22, "5": 2222}
    assert node.parse_sockets(SOCKETS, "udp") == {"4": 4789}
    assert node.parse_sockets("", "tcp") == {}


def blockinfile(text: str, name: str, block: str) -> str:
    """Do what ansible.builtin.blockinfile does at the end of a file that has no such block (ansible-core 2.19)."""
    lines = text.encode().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    ended = block if block.endswith("\n") else block + "\n"
    return b"".join([*lines, f"# BEGIN {name}\n".encode(), ended.encode(), f"# END {name}\n".encode()]).decode()


# With what Python, but not blockinfile, takes for the end of a line.
TEXT = st.text(st.sampled_from("ab# \n\r\t\x0b\x0c\x1c\x85\u2028ü"), max_size=20)


@settings(max_examples=examples(200), deadline=None)
@given(TEXT, TEXT.filter(bool), TEXT)
def test_a_block_is_read_as_it_was_written(around: str, block: str, after: str) -> None:
    ended = block if block.endswith("\n") else block + "\n"
    assert node.managed_block(blockinfile(around, "swarmspeed x", block) + after, "swarmspeed x") == ended
    assert node.managed_block(around + after, "swarmspeed x") is None


@settings(max_examples=50, deadline=None)
@given(TEXT.filter(bool), TEXT.filter(bool))
def test_blocks_of_two_names_do_not_mix(one: str, two: str) -> None:
    text = blockinfile(blockinfile("", "one", one), "two", two)
    assert node.managed_block(text, "one") == (one if one.endswith("\n") else one + "\n")
    assert node.managed_block(text, "two") == (two if two.endswith("\n") else two + "\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("# BEGIN x\na\n", None),
        ("a\n# END x\n", None),
        ("# END x\na\n# BEGIN x\n", None),
        ("# BEGIN x\na\n# END x", None),  # blockinfile does not see such a mark either, and would add a block
        ("# BEGIN x \na\n# END x\n", None),
        ("# BEGIN xy\na\n# END xy\n", None),
        ("# BEGIN x\n# END x\n", ""),
        ("# BEGIN x\na\n# BEGIN x\nb\n# END x\n", "b\n"),  # it replaces from the last mark on
    ],
)
def test_marks_that_are_not_a_pair_are_no_block(text: str, expected: str | None) -> None:
    assert node.managed_block(text, "x") == expected


def test_sha256() -> None:
    assert node.sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2


INFO: dict[str, Any] = {
    "Swarm": {
        "NodeID": "n1",
        "NodeAddr": "10.0.0.1",
        "LocalNodeState": "active",
        "ControlAvailable": True,
        "Error": "",
        "RemoteManagers": [{"NodeID": "n1", "Addr": "10.0.0.1:2377"}],
    }
}
SWARM: dict[str, Any] = {
    "ID": "c1",
    "Spec": {"Name": "default", "Labels": {"swarmspeed.cluster": "lab"}},
    "DataPathPort": 4789,
    "DefaultAddrPool": ["10.0.0.0/8"],
    "JoinTokens": {"Worker": TOKEN, "Manager": TOKEN},
    "TLSInfo": {"TrustRoot": "PEM"},
}
NODES: list[dict[str, Any]] = [
    {
        "ID": "n1",
        "Spec": {"Role": "manager", "Availability": "active", "Labels": {}},
        "Description": {"Hostname": "lab1", "TLSInfo": {"TrustRoot": "PEM"}},
        "Status": {"State": "ready", "Addr": "10.0.0.1"},
        "ManagerStatus": {"Leader": True, "Reachability": "reachable", "Addr": "10.0.0.1:2377"},
    },
    {"ID": "n2"},
]


def test_swarm_of_a_manager() -> None:
    assert node.swarm_facts(INFO, SWARM, NODES) == {
        "state": "active",
        "error": None,
        "node_id": "n1",
        "node_addr": "10.0.0.1",
        "manager": True,
        "cluster_id": "c1",
        "labels": {"swarmspeed.cluster": "lab"},
        "data_path_port": 4789,
        "default_addr_pool": ["10.0.0.0/8"],
        "nodes": [
            {
                "id": "n1",
                "hostname": "lab1",
                "role": "manager",
                "availability": "active",
                "state": "ready",
                "addr": "10.0.0.1",
                "leader": True,
                "reachability": "reachable",
            },
            {
                "id": "n2",
                "hostname": None,
                "role": None,
                "availability": None,
                "state": None,
                "addr": None,
                "leader": False,
                "reachability": None,
            },
        ],
        "attached": [],
    }


@pytest.mark.parametrize(
    ("task", "attached"),
    [
        (
            {"DesiredState": "running", "Status": {"State": "running"}},
            [{"container": None, "node": None, "networks": []}],
        ),
        ({"DesiredState": "shutdown", "Status": {"State": "running"}}, []),
        ({"DesiredState": "running", "Status": {"State": "preparing"}}, []),
        ({}, []),
    ],
)
def test_of_what_is_attached_to_networks_only_what_has_its_place(task: dict[str, Any], attached: list[Any]) -> None:
    assert node.swarm_facts(INFO, SWARM, NODES, [task])["attached"] == attached


def test_swarm_of_a_host_that_is_in_none() -> None:
    nothing: dict[str, Any] = {
        "state": "inactive",
        "error": None,
        "node_id": None,
        "node_addr": None,
        "manager": False,
        "cluster_id": None,
        "labels": {},
        "data_path_port": None,
        "default_addr_pool": [],
        "nodes": [],
        "attached": [],
    }
    assert node.swarm_facts({}, None, None) == nothing
    assert node.swarm_facts({"Swarm": {"LocalNodeState": "inactive", "NodeID": ""}}, None, None) == nothing
    pending = node.swarm_facts({"Swarm": {"LocalNodeState": "error", "Error": "certificate expired"}}, None, None)
    assert (pending["state"], pending["error"]) == ("error", "certificate expired")


def test_join_tokens_are_left_behind() -> None:
    assert TOKEN in json.dumps(SWARM)
    shaped = json.dumps(node.swarm_facts(INFO, SWARM, NODES))
    assert "SWMTKN" not in shaped and "PEM" not in shaped


def test_networks() -> None:
    shaped = node.network_facts(
        [
            {
                "Name": "lab",
                "Id": "net1",
                "Driver": "overlay",
                "Scope": "swarm",
                "Attachable": True,
                "IPAM": {"Config": [{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.1"}, {"Gateway": "x"}]},
                "Options": {"com.docker.network.driver.mtu": "1450"},
                "Labels": {"swarmspeed.cluster": "lab"},
            },
            {"Name": "host", "IPAM": {"Config": None}, "Options": None},
        ]
    )
    assert shaped["lab"] == {
        "id": "net1",
        "driver": "overlay",
        "scope": "swarm",
        "attachable": True,
        "subnets": ["10.9.0.0/24"],
        "options": {"com.docker.network.driver.mtu": "1450"},
        "labels": {"swarmspeed.cluster": "lab"},
    }
    assert (shaped["host"]["subnets"], shaped["host"]["options"], shaped["host"]["attachable"]) == ([], {}, False)


def test_containers() -> None:
    shaped = node.container_facts(
        [
            {
                "Id": "c1",
                "Names": ["/lab-lab1"],
                "State": "running",
                "Image": "swarmspeed/training:1",
                "ImageID": "sha256:1",
                "Labels": {"swarmspeed.spec": "h"},
                "NetworkSettings": {"Networks": {"lab": {"IPAddress": "10.9.0.2"}, "b": {"IPAddress": ""}, "n": None}},
            },
            {"Id": "c2", "Names": ["/web/db", "/db"]},
            {"Id": "c3", "Names": []},
        ]
    )
    assert set(shaped) == {"lab-lab1", "db", "c3"}
    assert shaped["lab-lab1"] == {
        "id": "c1",
        "state": "running",
        "image": "swarmspeed/training:1",
        "image_id": "sha256:1",
        "labels": {"swarmspeed.spec": "h"},
        "addresses": {"lab": "10.9.0.2", "b": None, "n": None},
    }
    assert (shaped["db"]["labels"], shaped["db"]["addresses"]) == ({}, {})


def test_images_are_found_by_every_tag() -> None:
    images: list[dict[str, Any]] = [
        {"Id": "sha256:1", "RepoTags": ["a:1", "b:2"]},
        {"Id": "sha256:2", "RepoTags": None},
        {"RepoTags": ["c:3"]},
    ]
    assert node.image_facts(images) == {"a:1": "sha256:1", "b:2": "sha256:1"}


def test_the_cluster_of_an_image_is_that_of_its_label() -> None:
    images: list[dict[str, Any]] = [
        {"Id": "sha256:1", "RepoTags": ["a:1", "b:2"], "Labels": {"swarmspeed.cluster": "lab"}},
        {"Id": "sha256:2", "RepoTags": ["c:3"], "Labels": {"x": "y"}},
        {"Id": "sha256:3", "RepoTags": ["d:4"], "Labels": None},
        {"Id": "sha256:4", "RepoTags": None, "Labels": {"swarmspeed.cluster": "lab"}},
        {"Id": "sha256:5", "RepoTags": ["e:5"]},
    ]
    assert node.image_clusters(images) == {"a:1": "lab", "b:2": "lab"}


@settings(max_examples=examples(30), deadline=None)
@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["x", None]), max_size=4))
def test_missing_files(found: dict[str, str | None]) -> None:
    missing = node.missing_files(found)
    assert missing == sorted(missing) and set(missing) == {path for path in found if found[path] is None}


DIGESTS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(DIGESTS, DIGESTS)
def test_changed_files(wanted: dict[str, str], found: dict[str, str | None]) -> None:
    changed = node.changed_files(wanted, found)
    assert changed == sorted(changed)
    assert set(changed) == {path for path in wanted if (path, wanted[path]) not in found.items()}
    assert node.changed_files(wanted, {**found, **wanted}) == []
    assert node.changed_files({}, found) == []


@settings(max_examples=30, deadline=None)
@given(TEXT)
def test_lines_are_those_of_blockinfile(text: str) -> None:
    """The reader takes its lines from io, blockinfile from bytes.splitlines: they agree."""
    assert [line.encode() for line in io.StringIO(text, newline="")] == text.encode().splitlines(keepends=True)
