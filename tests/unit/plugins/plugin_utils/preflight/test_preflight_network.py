# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Preflight on swarm and overlay, with what was found on the hosts. Facts are invented, in node_facts' shape."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network import checks as overlay
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm import checks as members
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.requested import requested

CHECKS = {
    "host_names": members.check_host_names,
    "swarm_fixed": members.check_swarm_fixed,
    "swarm_managers": members.check_swarm_managers,
    "swarm_left": members.check_swarm_left,
    "swarm_attached": members.check_attached,
    "swarm_ports": members.check_swarm_ports,
    "overlay_subnet": overlay.check_overlay_subnet,
    "overlay_network": overlay.check_overlay_network,
    "overlay_mtu": overlay.check_overlay_mtu,
    "overlay_encryption": overlay.check_overlay_encryption,
    "overlay_names": overlay.check_overlay_names,
}
NET = {
    "driver": "overlay",
    "attachable": True,
    "subnets": ["10.64.0.0/24"],
    "options": {"com.docker.network.driver.mtu": "1500"},
}


def node(number: int = 1, mtu: int = 1500, esp: bool | None = True, **docker: Any) -> dict[str, Any]:
    interfaces = [{"name": "eth0", "mtu": mtu, "addresses": [{"subnet": "192.168.7.0/24"}]}]
    return {
        "system": {"hostname": f"gpu{number}", "esp": esp},
        "fabric": {"interfaces": interfaces, "routes": []},
        "listening": {"tcp": [22], "udp": []},
        "docker": {"swarm": {"state": "inactive"}, "networks": {}, "containers": {}, **docker},
    }


def reported(hosts: dict[str, Any], **wanted: Any) -> tuple[list[str], list[str]]:
    """Return problems and warnings; what is asked is what the roles' defaults ask."""
    given: dict[str, Any] = {
        "managers": ["a"],
        "overlay_network": "demo",
        "overlay": {
            "mtu": 0,
            "encrypted": False,
            "recreate": False,
            "planned": {"subnet": "10.64.0.0/24", "mtu": 1500},
        },
        "underlay": {"mtu": 1500, "interfaces": dict.fromkeys(hosts, "eth0")},
        "swarm": {"data_path_port": 4789, "default_address_pool": [], "removed_nodes": [], "addresses": {}},
    }
    for name, value in wanted.items():
        given[name] = {**given[name], **value} if isinstance(given.get(name), dict) else value
    parsed = requested(**given)
    checks = {name: (lambda hosts, check=check: check(hosts, parsed)) for name, check in CHECKS.items()}
    report = collect(checks, hosts)
    return [problem.line() for problem in report.problems], [problem.line() for problem in report.warnings]


RECREATE = (
    "set overlay_network_allow_recreate: true to have the network re-created, for which its containers are stopped and "
    "restarted"
)


def test_good_hosts_pass() -> None:
    hosts = {"a": node(1, networks={"demo": NET}), "b": node(2)}
    assert reported(hosts) == reported(hosts, overlay={"encrypted": False, "recreate": True}) == ([], [])


# the subnet


def test_a_subnet_that_was_asked_for_must_be_free_everywhere() -> None:
    hosts = {"a": node(1), "b": {**node(2), "services": {"nameservers": ["10.64.0.53"]}}}
    (line,), warnings = reported(hosts, overlay_subnet="10.64.0.0/24")
    assert line.startswith("b: name server 10.64.0.53 overlaps ") and warnings == []
    pool = {"default_address_pool": ["10.64.0.0/16"]}
    assert (
        "address pool 10.64.0.0/16 of the swarm"
        in reported({"a": node()}, overlay_subnet="10.64.0.0/24", swarm=pool)[0][0]
    )


def test_a_network_that_exists_and_collides_works_on_with_a_warning() -> None:
    hosts = {"a": node(1, networks={"demo": NET}), "b": node(2)}
    hosts["b"]["fabric"]["routes"] = [{"dst": "10.0.0.0/8", "dev": "wg0"}]
    assert reported(hosts) == (
        [],
        [
            "b: route 10.0.0.0/8 via device wg0 overlaps the overlay's subnet 10.64.0.0/24. Remedy: the network "
            "works, but "
            f"its containers cannot reach that; {RECREATE}, on a free subnet."
        ],
    )
    assert reported(hosts, overlay={"recreate": True}) == ([], [])


# a network that exists


def test_other_settings_are_explained() -> None:
    found = {**NET, "attachable": False, "options": {"com.docker.network.driver.mtu": "9000", "encrypted": ""}}
    hosts = {"a": node(1, networks={"demo": found})}
    assert reported(hosts) == (
        [
            "network demo: exists with other settings: it is not attachable, so only services may join it, and no "
            "training container; its MTU is 9000, wanted is 1500; its traffic is encrypted, wanted is plain. "
            f"Remedy: {RECREATE}; or set the overlay_network_* variables to what exists, or choose another "
            "overlay_network_name."
        ],
        [],
    )
    assert reported(hosts, overlay={"recreate": True}) == reported(hosts, network_mode="host") == ([], [])
    assert reported(hosts, overlay={"planned": {}}) == ([], [])  # hosts gave no facts, which is reported


def test_what_no_network_could_be_is_reported_once() -> None:
    hosts = {"a": node(1, esp=False, networks={"demo": NET})}
    requested = {"mtu": 9000, "encrypted": True, "planned": {"subnet": "192.168.7.0/24", "mtu": 9000}}
    problems, _warnings = reported(hosts, overlay_subnet="192.168.7.0/24", overlay=requested)
    assert [
        line.partition(" overlap")[0].partition(", and its")[0].partition(" has no ESP")[0] for line in problems
    ] == [
        "a: network 192.168.7.0/24 of device eth0",
        "a: overlay_network_mtu is 9000",
        "a: its kernel",
    ]


def test_a_bridge_with_the_overlays_name_would_be_joined_instead() -> None:
    hosts = {"a": node(1, networks={"demo": NET}), "b": node(2, networks={"demo": {"driver": "bridge", "subnets": []}})}
    expected = [
        "b: has a network demo of driver bridge, which containers there would join, not the overlay. Remedy: remove it "
        "(docker network rm demo), or choose another overlay_network_name."
    ]
    assert reported(hosts) == reported(hosts, overlay={"recreate": True}) == (expected, [])


def test_containers_of_others_hold_a_network_that_is_to_be_replaced() -> None:
    containers = {
        "demo-b": {"addresses": {"demo": "10.64.0.9"}},
        "web": {"addresses": {"demo": "10.64.0.8", "x": None}},
    }
    hosts = {"a": node(1, networks={"demo": NET}), "b": node(2, containers=containers)}
    requested = {"recreate": True, "planned": {"subnet": "10.65.0.0/24", "mtu": 1500}}
    assert reported(hosts, overlay=requested) == (
        [
            "b: container web is not ours and is on network demo, which is to be re-created. Remedy: take it off "
            "(docker "
            "network disconnect demo web), or remove it."
        ],
        [],
    )


# MTU


def test_an_mtu_that_an_interface_does_not_take() -> None:
    hosts = {"a": node(1, 9000), "b": node(2, 1400)}
    assert reported(hosts, overlay={"mtu": 9000}, underlay={"mtu": 1400}) == (
        [
            "b: overlay_network_mtu is 9000, and its interface eth0 takes at most 1400 bytes: larger packets would be "
            "lost, "
            "and transfers hang. Remedy: set overlay_network_mtu to 1400, or to 0 to have the smallest of all hosts "
            "taken."
        ],
        [],
    )
    assert reported(hosts, overlay={"mtu": 1400}) == ([], [])


def test_jumbo_frames_that_one_host_keeps_from_all() -> None:
    hosts = {"a": node(1, 9000), "b": node(2), "c": node(3, 9000)}
    assert reported(hosts) == (
        [],
        [
            "b: its interface eth0 has an MTU of 1500, others have up to 9000: the overlay takes 1500, which is 1450 "
            "in the "
            "containers. Remedy: give all hosts' interfaces the larger one, where switches let it through."
        ],
    )


def test_jumbo_frames_that_a_network_does_not_use_yet() -> None:
    hosts = {"a": node(1, 9000, networks={"demo": NET})}
    assert reported(hosts, underlay={"mtu": 9000}) == (
        [],
        [
            "network demo: was made for an MTU of 1500, and all hosts have 9000 now: larger packets would be faster. "
            f"Remedy: {RECREATE}."
        ],
    )
    assert reported(hosts, underlay={"mtu": 9000}, overlay={"mtu": 1500}) == ([], [])  # as asked


# encryption


def test_a_kernel_without_esp() -> None:
    hosts = {"a": node(1), "b": node(2, esp=False), "c": node(3, esp=None)}
    assert reported(hosts) == ([], [])
    assert reported(hosts, overlay={"encrypted": True}) == (
        [
            "b: its kernel has no ESP (CONFIG_INET_ESP), which overlay_network_encrypted needs: containers would not "
            "reach "
            "one another. Remedy: run a kernel that has it, or set overlay_network_encrypted: false."
        ],
        [
            "c: it is unknown whether its kernel has ESP, which overlay_network_encrypted needs. Remedy: see that "
            "`modprobe esp4` succeeds there."
        ],
    )
    assert reported(hosts, overlay={"encrypted": True}, network_mode="host") == ([], [])


# names


def test_a_container_elsewhere_with_the_name_of_this_collection() -> None:
    strange = {"demo-b": {"addresses": {"demo": "10.64.0.9"}}, "demo-c": {"addresses": {"bridge": "172.17.0.2"}}}
    hosts = {"a": node(1, containers=strange), "b": node(2, containers=dict(strange)), "c": node(3)}
    expected = [
        "a: container demo-b on network demo has the name of b's training container, so that the name leads to either "
        "of "
        "them. Remedy: rename it (docker rename demo-b …) and restart it, or remove it."
    ]
    assert reported(hosts) == (expected, [])
    assert reported(hosts, network_mode="host") == ([], [])


def test_hosts_of_one_name() -> None:
    hosts = {"a": node(1), "b": node(7), "c": node(1), "d": {"system": {}}}
    assert reported(hosts) == (
        [
            "a, c: all have the host name gpu1, by which the swarm lists its nodes: no one could distinguish them. "
            "Remedy: "
            "give each a name of its own (hostnamectl set-hostname …) and restart its engine."
        ],
        [],
    )
    assert reported(hosts, runtime="host") == ([], [])


# the swarm


def swarm(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "state": "active",
        "manager": True,
        "node_id": "gpu1",
        "node_addr": "192.168.7.1",
        "labels": {"swarmspeed.cluster": "demo"},
        "data_path_port": 4789,
        "default_addr_pool": ["10.0.0.0/8"],
        "nodes": list(nodes),
        **more,
    }


def listed(name: str, role: str = "manager", reachable: str | None = "reachable") -> dict[str, Any]:
    return {"id": name, "hostname": name, "role": role, "reachability": reachable if role == "manager" else None}


def test_what_is_fixed_for_a_swarms_life() -> None:
    hosts = {"a": node(1, swarm=swarm(listed("gpu1")))}
    requested = {"data_path_port": 4790, "default_address_pool": ["10.32.0.0/12", "10.48.0.0/12"]}
    assert reported(hosts, swarm=requested) == (
        [
            "swarm_data_path_port: is 4790, and the swarm was formed with 4789, which is fixed for its life. Remedy: "
            "set it "
            "to 4789, or rebuild the swarm: teardown.yml, then site.yml.",
            "swarm_default_address_pool: is 10.32.0.0/12, 10.48.0.0/12, and the swarm was formed with 10.0.0.0/8, "
            "which is "
            "fixed for its life. Remedy: set it to 10.0.0.0/8, or rebuild the swarm: teardown.yml, then site.yml.",
        ],
        [],
    )
    other = {"a": node(1, swarm=swarm(listed("gpu1"), labels={}))}  # not ours, which is another check's to say
    assert reported(other, swarm=requested) == reported(hosts, swarm=requested, runtime="host") == ([], [])
    assert reported(other, swarm=requested, swarm_allow_adopt=True) == reported(hosts, swarm=requested)
    silent = {"a": node(1, swarm=swarm(listed("gpu1"), data_path_port=None, default_addr_pool=[]))}
    assert reported(silent, swarm={"default_address_pool": ["10.32.0.0/12"]}) == ([], [])


def test_a_node_that_tells_the_others_another_address() -> None:
    joined = {"state": "active", "manager": False, "node_id": "gpu2", "node_addr": "10.0.0.2"}
    hosts = {
        "a": node(1, swarm=swarm(listed("gpu1"), listed("gpu2", "worker"))),
        "b": node(2, swarm=joined),
        "c": node(3, swarm={**joined, "node_id": "elsewhere"}),
    }
    requested = {"addresses": {"a": "192.168.7.1", "b": "192.168.7.2", "c": "192.168.7.3"}}
    assert reported(hosts, swarm=requested) == (
        [],
        [
            "b: advertises 10.0.0.2 to the other nodes, not 192.168.7.2, and that is fixed when a node joins. "
            "Remedy: "
            "run `docker swarm leave` there and site.yml again, or set swarm_advertise_address to that address."
        ],
    )
    assert reported(hosts, swarm={"addresses": {"b": "eth1"}}) == ([], [])  # an interface's name


def test_a_manager_that_no_longer_has_the_address_that_it_advertises() -> None:
    """A worker joins again by itself, and a host that has neither address is one behind a translation of addresses."""
    has = {"interfaces": [{"name": "eth1", "addresses": [{"address": "192.168.7.2", "subnet": "192.168.7.0/24"}]}]}
    nodes = [listed("gpu1"), listed("gpu2")]
    hosts = {name: node(number, swarm=swarm(*nodes)) for number, name in enumerate("ab", 1)}
    own = {"state": "active", "manager": True, "node_id": "gpu2", "node_addr": "10.0.0.2"}
    hosts["b"] = {**node(2, swarm=own), "fabric": has}
    text = (
        "is a manager of the swarm at the address 10.0.0.2, which it no longer has, and that is fixed when a node joins"
    )
    again = "run `docker swarm leave --force` there and site.yml again, or give the host that address again"
    for address in ("192.168.7.2", "eth1"):
        assert reported(hosts, swarm={"addresses": {"b": address}})[0] == [f"b: {text}. Remedy: {again}."]
    hosts["b"] = {**node(2, swarm={**own, "manager": False}), "fabric": has}
    assert reported(hosts, swarm={"addresses": {"b": "192.168.7.2"}}) == ([], [])
    assert reported(hosts, swarm={"addresses": {"b": "192.168.7.9"}})[0] == []
    assert len(reported(hosts, swarm={"addresses": {"b": "192.168.7.9"}})[1]) == 1


MORE = "; were one more lost, no node could join and no container be put on the overlay"


@pytest.mark.parametrize(
    ("nodes", "removed", "expected"),
    [
        ([listed("gpu1"), listed("gpu2"), listed("gpu3")], [], []),
        (
            [listed("gpu1"), listed("gpu2"), listed("gpu3", reachable="unreachable")],
            [],
            [
                f"group managers: 2 of the swarm's 3 managers answer, gpu3 not{MORE}. Remedy: start the engines of "
                "those "
                "that do not answer."
            ],
        ),
        (
            [listed("gpu1"), listed("gpu2"), listed("old", reachable="unreachable"), listed("gpu4", "worker")],
            [],
            [
                f"group managers: 2 of the swarm's 3 managers answer, old not{MORE}. Remedy: start the engines of "
                "those "
                "that do not answer, or set swarm_removed_nodes: [old] where they are gone for good."
            ],
        ),
        (
            [*(listed(f"gpu{number}") for number in range(1, 5)), listed("old", reachable="unreachable")],
            [],
            [
                "group managers: 4 of the swarm's 5 managers answer, old not. Remedy: start the engines of those that "
                "do "
                "not answer, or set swarm_removed_nodes: [old] where they are gone for good."
            ],
        ),
    ],
)
def test_managers_that_do_not_answer(nodes: list[dict[str, Any]], removed: list[str], expected: list[str]) -> None:
    hosts = {name: node(number) for number, name in enumerate("abcd", 1)}
    hosts["a"] = node(1, swarm=swarm(*nodes))
    assert reported(hosts, swarm={"removed_nodes": removed}) == ([], expected)
    assert reported(hosts, runtime="host") == ([], [])


def test_who_is_in_the_inventory_has_not_departed() -> None:
    hosts = {"a": node(1, swarm=swarm(listed("gpu1"), listed("gpu2", "worker"))), "b": node(2)}
    assert reported(hosts, swarm={"removed_nodes": ["gone", "gpu2"]}) == (
        [
            "swarm_removed_nodes: names gpu2, which is b of the inventory. Remedy: take the host out of the inventory, "
            "or its name "
            "out of swarm_removed_nodes."
        ],
        [],
    )


def test_ports_that_somebody_else_listens_on() -> None:
    taken = {"tcp": [2377, 7946], "udp": [7946, 4789]}
    hosts = {"a": {**node(1), "listening": taken}, "b": {**node(2), "listening": taken}}

    def lines(who: str, protocol: str, port: int, what: str, more: str = "") -> str:
        return (
            f"{who}: {protocol.upper()} port {port} is taken, which the swarm needs for the {what}. Remedy: see who "
            "listens "
            f"(ss -lnp{protocol[0]} 'sport = :{port}') and stop it{more}."
        )

    assert reported(hosts)[0] == [
        lines("a, b", "tcp", 7946, "nodes' gossip"),
        lines("a, b", "udp", 7946, "nodes' gossip"),
        lines("a", "tcp", 2377, "managers"),
        lines("a, b", "udp", 4789, "overlay's traffic", ", or set another swarm_data_path_port"),
    ]
    assert len(reported(hosts, swarm={"data_path_port": 4800})[0]) == 3
    kept = {
        name: {**facts, "docker": {**facts["docker"], "stale_swarm_ports": [7946]}} for name, facts in hosts.items()
    }
    assert [line for line in reported(kept)[0] if "7946" in line] == []  # the role docker restarts that engine
    assert len(reported(kept)[0]) == 2
    joined = {name: {**facts, "docker": {"swarm": swarm(listed("gpu1"))}} for name, facts in hosts.items()}
    assert reported(joined) == reported(hosts, runtime="host") == ([], [])  # there the listener is the swarm


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)
KEYS = [
    "attached",
    "hostname",
    "esp",
    "interfaces",
    "routes",
    "tcp",
    "swarm",
    "networks",
    "containers",
    "nodes",
    "demo",
    "driver",
]
SECTION = JSON | st.dictionaries(st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3))


@settings(max_examples=examples(150), deadline=None)
@given(
    hosts=st.dictionaries(
        st.sampled_from(["a", "b"]),
        st.dictionaries(st.sampled_from(["system", "fabric", "listening", "docker", "services", "engine"]), SECTION),
    ),
    recreate=st.booleans(),
)
def test_any_facts_pass_or_get_words(hosts: dict[str, Any], recreate: bool) -> None:
    problems, warnings = reported(
        hosts, overlay={"encrypted": True, "recreate": recreate}, overlay_subnet="10.64.0.0/24"
    )
    assert all(": " in line and "Remedy: " in line for line in [*problems, *warnings])


# Containers that are gone, and their places in the swarm's networks


def kept(attached: list[Any], **docker: Any) -> list[str]:
    own = {"state": "active", "node_id": "n1", "manager": True, "labels": {"swarmspeed.cluster": "demo"}}
    other = {"state": "active", "node_id": "n2", "manager": False}
    hosts = {"a": node(1, swarm={**own, "attached": attached}), "b": node(2, swarm=other, **docker)}
    problems, warnings = reported(hosts)
    assert problems == []
    return [line for line in warnings if "keeps the place" in line]


GONE = {"container": "d61e0123456789abcd", "node": "n2", "networks": ["demo"]}


def test_the_place_of_a_container_that_is_gone_is_named_with_what_frees_it() -> None:
    containers = {"demo-b": {"id": "0002", "state": "running"}, "old": {"id": "0003", "state": "exited"}}
    assert kept([GONE]) == [
        "b: its engine keeps the place of container d61e01234567, which is gone, in network demo: an address that no "
        "one else gets, and teardown.yml cannot remove the network. Remedy: systemctl restart docker there."
    ]
    (line,) = kept([GONE], containers=containers)
    assert line.endswith("Remedy: systemctl restart docker there, when demo-b may be interrupted.")
    assert kept([{**GONE, "container": "0002"}, {**GONE, "container": "0003"}], containers=containers) == []


def test_what_is_attached_on_other_nodes_is_not_known_to_be_gone() -> None:
    assert kept([{**GONE, "node": "n9"}, {**GONE, "container": None}]) == []
    assert kept([GONE], error="no answer") == []


# Hosts that were taken out of the inventory


def left(*nodes: dict[str, Any], **wanted: Any) -> list[str]:
    swarm = {
        "state": "active",
        "node_id": "n1",
        "manager": True,
        "labels": {"swarmspeed.cluster": "demo"},
        "nodes": [
            {"id": "n1", "hostname": "gpu1", "role": "manager", "state": "ready", "reachability": "reachable"},
            *nodes,
        ],
    }
    problems, warnings = reported({"a": node(1, swarm=swarm)}, **wanted)
    assert problems == []
    return [line for line in warnings if "inventory" in line]


OUT_OF_IT = {"id": "n9", "hostname": "gpu9", "role": "worker", "state": "ready", "addr": "10.0.0.9"}


def test_a_node_of_the_swarm_that_is_no_host_is_named_with_the_command_that_removes_it() -> None:
    (line,) = left(OUT_OF_IT)
    text, dummy, remedy = line.partition(" Remedy: ")
    assert text == (
        "gpu9: is still a node of the swarm (at 10.0.0.9), though it is no host of the inventory, and its container "
        "may still run."
    )
    assert "docker ps --all --quiet --filter label=swarmspeed.cluster=demo --filter label=swarmspeed.spec" in remedy
    assert 'site.yml -e \'{"swarm_removed_nodes": ["gpu9"]}\'' in remedy and "demote" not in remedy
    (line,) = left({**OUT_OF_IT, "role": "manager", "reachability": "reachable"})
    assert "docker node demote gpu9" in line
    (line,) = left({**OUT_OF_IT, "state": "down"})
    assert "; it is down. Remedy: " in line and "docker rm" not in line


def test_stale_entries_removed_nodes_and_members_are_no_such_nodes() -> None:
    assert left() == []
    assert left({**OUT_OF_IT, "hostname": "gpu1", "state": "down"}) == []
    assert left(OUT_OF_IT, swarm={"removed_nodes": ["gpu9"]}) == []
    assert left(OUT_OF_IT, runtime="host") == []


@pytest.mark.parametrize(("missing", "named"), [([], True), (["b"], False)])
def test_while_a_host_gives_no_facts_any_node_may_be_it(missing: list[str], named: bool) -> None:
    """``unreachable`` names every host, with an empty reason for those that answered."""
    nodes = [{"id": "n1", "hostname": "gpu1", "role": "manager", "reachability": "reachable"}, OUT_OF_IT]
    own = {"state": "active", "node_id": "n1", "manager": True, "labels": {"swarmspeed.cluster": "demo"}}
    hosts = {"a": node(1, swarm={**own, "nodes": nodes}), **dict.fromkeys(missing)}
    wanted = requested(managers=["a"])
    facts = Facts(hosts=hosts, requested=wanted, unreachable=dict.fromkeys(hosts, ""))
    assert [problem.subject for problem in FACT_CHECKS["swarm_left"](facts)] == ["gpu9"] * named
