# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives to whom: everybody finds what it lacks with the one before it, and what stands against it is said."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.transfer import FilterModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.transfer.image import layer_sizes, plan, shared
from hypothesis import given
from hypothesis import strategies as st

from tests.adversary.hostile import KEY

GIB = 1 << 30
LAYERS = [f"sha256:{letter * 64}" for letter in "abc"]
OTHER = f"sha256:{'d' * 64}"
IMAGE = {
    "content": "sha256:i",
    "layers": LAYERS,
    "os": "linux",
    "architecture": "amd64",
    "history": [GIB, 0, 2 * GIB, GIB],
}


def gathered(chains: Any = (), **changed: Any) -> dict[str, Any]:
    return {
        "architecture": "x86_64",
        "store": "graph",
        "image": {},
        "images": [{"id": f"sha256:{number}", "layers": chain} for number, chain in enumerate(chains)],
        "free": {"engine": 100 * GIB, "spool": 100 * GIB, "same": False},
        "places": {"engine": "/var/lib/docker", "spool": "/srv"},
        "spooled": {},
        "account": "root",
        "host_key": "ssh-ed25519 HOST",
        "public_key": "ssh-ed25519 KEY",
        **changed,
    }


def planned(**nodes: dict[str, Any]) -> dict[str, Any]:
    addresses = {name: f"10.0.0.{number}" for number, name in enumerate(nodes, 1)}
    return plan(nodes, "h", "t/i:1", addresses, {"n1": 2222})


def test_each_reads_from_the_one_before_it_and_then_those_before_that() -> None:
    found = planned(h=gathered(image=IMAGE), n1=gathered(), n2=gathered(), n3=gathered())
    assert (found["problems"], found["order"]) == ([], ["n1", "n2", "n3"])
    sources = {name: [source["name"] for source in part["sources"]] for name, part in found["parts"].items()}
    assert sources == {"h": [], "n1": ["h"], "n2": ["n1", "h"], "n3": ["n2", "n1", "h"]}
    assert {name: list(part["readers"]) for name, part in found["parts"].items()} == {
        "h": ["n1", "n2", "n3"],
        "n1": ["n2", "n3"],
        "n2": ["n3"],
        "n3": [],
    }
    assert found["parts"]["n2"]["sources"][0] == {
        "name": "n1",
        "address": "10.0.0.2",
        "port": 2222,
        "account": "root",
        "host_key": "ssh-ed25519 HOST",
    }


def test_only_layers_that_are_lacked_travel_and_who_lacks_most_stands_first() -> None:
    found = planned(
        h=gathered(image=IMAGE),
        n1=gathered([LAYERS]),
        n2=gathered([LAYERS[:2]]),
        n3=gathered([[OTHER]]),
        n4=gathered([LAYERS[:1]]),
    )
    assert found["order"] == ["n3", "n4", "n2", "n1"]
    parts = found["parts"]
    assert {name: parts[name]["have"] for name in found["order"]} == {"n3": 0, "n4": 1, "n2": 2, "n1": 3}
    assert parts["h"]["have"] == 0
    assert [parts[name]["bytes"] // GIB for name in found["order"]] == [4, 3, 1, 0]
    assert planned(h=gathered(image=IMAGE), n1=gathered([LAYERS[:2]]))["parts"]["h"]["have"] == 2


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_everybody_finds_with_everyone_before_it_what_it_lacks(have: list[int]) -> None:
    found = planned(
        h=gathered(image=IMAGE), **{f"n{number}": gathered([LAYERS[:count]]) for number, count in enumerate(have)}
    )
    assert sorted(found["order"]) == sorted(f"n{number}" for number in range(len(have)))
    for name in found["order"]:
        part = found["parts"][name]
        assert part["sources"][-1]["name"] == "h"
        for source in part["sources"]:
            assert found["parts"][source["name"]]["have"] <= part["have"]
            assert name in found["parts"][source["name"]]["readers"]


@pytest.mark.parametrize(
    ("chains", "found"),
    [
        ([], (0, "")),
        ([[]], (0, "")),
        ([LAYERS[1:]], (0, "")),  # a layer counts only on top of the same ones
        ([LAYERS[:1], [*LAYERS[:2], OTHER]], (2, "sha256:1")),
        ([[*LAYERS, OTHER], LAYERS], (3, "sha256:0")),
    ],
)
def test_layers_count_on_top_of_the_same_ones_only(chains: list[list[str]], found: tuple[int, str]) -> None:
    assert shared(LAYERS, gathered(chains)["images"]) == found


@pytest.mark.parametrize(
    ("count", "history", "sizes"),
    [
        (2, [5, 0, 7], [5, 7]),
        (3, [5, 0, 7], [0, 5, 7]),  # one layer has no files: the upper ones are not taken for less than they are
        (1, [5, 7], [7]),
        (0, [5], []),
    ],
)
def test_sizes_of_layers(count: int, history: list[int], sizes: list[int]) -> None:
    assert layer_sizes(count, history) == sizes


def test_each_node_gets_to_know_its_store_and_the_image_that_has_its_layers() -> None:
    parts = planned(h=gathered(image=IMAGE), n1=gathered([[OTHER], LAYERS[:2]]), n2=gathered(store="containerd"))[
        "parts"
    ]
    assert {name: (part["store"], part["have"], part["base"]) for name, part in parts.items()} == {
        "h": ("graph", 0, ""),
        "n2": ("containerd", 0, ""),
        "n1": ("graph", 2, "sha256:1"),
    }


def test_containerd_keeps_what_came_beside_what_it_unpacked_and_saves_without_a_copy() -> None:
    def needs(of_h: dict[str, Any], of_n: dict[str, Any]) -> list[str]:
        return [text.partition("needs ")[2].partition(" MiB")[0] for text in planned(h=of_h, n=of_n)["problems"]]

    full = {"engine": 0, "spool": 100 * GIB, "same": False}
    graph, containerd = gathered(free=full), gathered(free=full, store="containerd")
    assert needs(gathered(image=IMAGE), graph) == ["6144"]
    assert needs(gathered(image=IMAGE), containerd) == ["8192"]
    assert needs({**graph, "image": IMAGE}, gathered()) == ["4096"]
    assert needs({**containerd, "image": IMAGE}, gathered()) == []


RUNNING = {"pid": 77, "host": "n1", "since": "11:40:12 UTC", "started_from": "desk"}


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        (
            {"h": gathered(image=IMAGE), "n1": {"running": RUNNING}},
            "n1: another transfer of an image has been running there since 11:40:12 UTC (process 77 on n1, started "
            "from desk). Remedy: wait until it ends, or stop it: kill 77 on n1.",
        ),
        (
            {"h": gathered(image=IMAGE), "n1": {"trouble": "no engine. Remedy: x"}},
            "n1: no engine. Remedy: x",
        ),
        (
            {"h": gathered(), "n1": gathered()},
            "h: the image t/i:1 is missing, so it cannot be sent to the others. Remedy: ansible-playbook site.yml "
            "--tags training_image",
        ),
        (
            {"h": gathered(image={**IMAGE, "layers": ["sha256:../../x"]}), "n1": gathered()},
            "h: the engine calls a layer of t/i:1 'sha256:../../x', which is not a digest. Remedy: check its engine.",
        ),
        (
            {"h": gathered(image=IMAGE), "n1": gathered(architecture="aarch64")},
            "n1: the image t/i:1 is built for amd64, but the machine is arm64 (aarch64). Remedy: build or name an "
            "image for arm64.",
        ),
        (
            {"h": gathered(image=IMAGE), "n1": gathered(free={"engine": 5 * GIB, "spool": 9 * GIB, "same": False})},
            "n1: 5120 MiB are free in /var/lib/docker, but the transfer of the image needs 6144 MiB there. Remedy: "
            "free space (docker image prune), or set cluster_root and the engine's data-root to a larger disk.",
        ),
        (
            {"h": gathered(image=IMAGE), "n1": gathered(free={"engine": 9 * GIB, "spool": 9 * GIB, "same": True})},
            "n1: 9216 MiB are free in /srv, but the transfer of the image needs 10240 MiB there. Remedy: free space "
            "(docker image prune), or set cluster_root and the engine's data-root to a larger disk.",
        ),
    ],
)
def test_what_stands_against_it_is_reported_before_anything_begins(nodes: dict[str, Any], problem: str) -> None:
    assert planned(**nodes)["problems"] == [problem]


def test_what_came_before_needs_no_room_again() -> None:
    free = {"engine": 50 * GIB, "spool": 2 * GIB, "same": False}
    assert len(planned(h=gathered(image=IMAGE), n1=gathered(free=free))["problems"]) == 1
    assert planned(h=gathered(image=IMAGE), n1=gathered(free=free, spooled={"a": 2 * GIB}))["problems"] == []


def test_the_filter() -> None:
    chain = FilterModule().filters()["image_chain"]
    real = {"host_key": KEY, "public_key": KEY}
    nodes = {"h": gathered(image={**IMAGE, "content": OTHER}, **real), "n": gathered(**real)}
    assert chain(nodes, "h", "t/i:1", {"h": "10.0.0.1", "n": "10.0.0.2"}, {"n": "22"})["order"] == ["n"]
    with pytest.raises(AnsibleFilterError, match="expected what every node reported, h among them"):
        chain([], "h", "t/i:1", {}, {})
    with pytest.raises(AnsibleFilterError, match=r"h: image_transfer\.gathered\.store is null, not left out"):
        chain({"h": {"image": IMAGE, "architecture": "x86_64"}}, "h", "t/i:1", {}, {})
