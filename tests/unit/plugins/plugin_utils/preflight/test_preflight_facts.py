# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The second stage of preflight. The facts are invented, in the shape that node_facts gives them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.versions import (
    VERSION_CHECKS,
    check_versions,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.requested import entries, requested

GIB = 2**30

GOOD: dict[str, Any] = {
    "system": {"distribution": "debian", "release": "12", "python": "3.11.2", "systemd": True},
    "clock": {"offset": 0.02, "uncertainty": 0.3},
    "disk": {"/var/lib/docker": {"free_bytes": 50 * GIB, "total_bytes": 100 * GIB}},
    "listening": {"tcp": [22], "udp": []},
    "fabric": {
        "interfaces": [
            {"name": "lo", "addresses": [{"subnet": "127.0.0.0/8"}]},
            {"name": "eth0", "addresses": [{"subnet": "192.168.7.0/24"}, {"subnet": "fe80::/64"}]},
        ],
        "routes": [{"dst": "default", "dev": "eth0"}, {"dst": "10.9.0.0/16", "dev": "eth1"}, {"dst": "fe80::/64"}],
    },
    "docker": {
        "running": True,
        "error": None,
        "swarm": {"state": "inactive"},
        "networks": {"bridge": {"subnets": ["172.17.0.0/16"]}, "demo-net": {"subnets": ["10.20.0.0/24"]}},
        "containers": {},
        "images": {"demo:1": "sha256:1"},
    },
}


def host(**sections: Any) -> dict[str, Any]:
    """Return good facts with some sections' keys replaced, or a whole section by what is not a mapping."""
    facts = copy.deepcopy(GOOD)
    for name, change in sections.items():
        facts[name] = {**facts.get(name, {}), **change} if isinstance(change, dict) else change
    return facts


def lines(hosts: dict[str, Any], *, unreachable: dict[str, Any] | None = None, **wanted: Any) -> list[str]:
    facts = Facts(hosts, requested(**wanted), unreachable or {})
    return [problem.line() for problem in collect(FACT_CHECKS, facts).problems]


MISSING = (
    "Remedy: run the playbook again; if the problem persists, check the output of swarmspeed.cluster.node_facts for "
    "this host."
)
SUPPORTED = "Remedy: install one of: Debian 12 and 13, Ubuntu 22.04 and 24.04."


def test_a_users_files_are_not_replaced() -> None:
    etc = {"real": "/opt/team/etc", "state": "in_use"}
    assert lines({"gpu1": host(folders={"/opt/team/etc": {**etc, "replaced": []}}), "gpu2": host(folders={})}) == []
    assert lines({"gpu1": host(folders={"/opt/team/etc": {**etc, "replaced": ["env", "hostfile"]}})}) == [
        "gpu1: /opt/team/etc contains files that this collection did not create and would replace: env, hostfile. "
        "Remedy: move them, or set another cluster_root."
    ]


def test_good_hosts_pass() -> None:
    wanted: dict[str, Any] = {"managers": ["a"], "overlay_subnet": "10.20.0.0/24", "overlay_network": "demo-net"}
    assert lines({"a": GOOD, "b": GOOD}, space={"/var/lib/docker": 25 * GIB}, **wanted) == []
    assert lines({"a": GOOD, "b": GOOD}, network_mode="host", **wanted) == []


def test_reachable() -> None:
    ping = "succeed with this inventory (address, user, key, known_hosts, sudo)."
    assert lines(
        {"a": None, "b": None, "c": GOOD, "d": {}},
        unreachable={
            "a": "Task failed: Failed to connect to the host via ssh: ssh: connect to host a\tport 22: timed out.\r\n",
            "b": "",
            "c": "a note of a host that answered",
        },
    ) == [
        f"a: cannot be reached: ssh: connect to host a port 22: timed out. Remedy: make `ansible a -m ping` {ping}",
        "b, d: gave no facts. Remedy: see the error of the task that gathers facts of the hosts, further up, and run "
        "again.",
    ]


def test_a_host_whose_sudo_gives_no_prompt_is_named_with_the_remedy_for_sudo_rs() -> None:
    (line,) = lines(
        {"a": None, "b": GOOD}, unreachable={"a": "Timeout (12s) waiting for privilege escalation prompt: "}
    )
    assert line.startswith(
        "a: cannot be reached: Timeout (12s) waiting for privilege escalation prompt:. Remedy: check "
    )
    assert line.endswith("(ansible/ansible#87423): set ansible_become_exe: sudo.ws.")


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ({"distribution": "debian", "release": "13"}, []),
        ({"distribution": "ubuntu", "release": "22.04"}, []),
        ({"distribution": "ubuntu", "release": "24.04"}, []),
        ({"release": "11"}, [f"a: Debian 11 is not supported. {SUPPORTED}"]),
        ({"release": ""}, [f"a: Debian without a release number is not supported. {SUPPORTED}"]),
        (
            {"distribution": "rocky", "release": "9.4"},
            [f"a: Rocky 9.4 is not supported. {SUPPORTED}"],
        ),
        (
            {"systemd": False},
            [
                "a: systemd is not running (no /run/systemd/system); it starts and watches Docker. Remedy: use a "
                "physical or virtual machine, not a container."
            ],
        ),
        ({"python": "3.9.0"}, []),
        ({"python": "4.0"}, []),
        (
            {"python": "3.8.20"},
            [
                "a: Ansible uses Python 3.8.20 there; at least 3.9 is needed. "
                "Remedy: install python3 >= 3.9 and name it in ansible_python_interpreter."
            ],
        ),
        ({"python": "three"}, [f"a: the facts gathered there do not say which Python is installed. {MISSING}"]),
        (
            None,
            [
                f"a: the facts gathered there do not say {what}. {MISSING}"
                for what in ("which distribution is installed", "whether systemd runs", "which Python is installed")
            ],
        ),
    ],
)
def test_system(system: Any, expected: list[str]) -> None:
    assert lines({"a": host(system=system)}) == expected


CLOCK_REMEDY = (
    "Remedy: switch on time synchronisation there (timedatectl set-ntp true), "
    "or on the controller where every host is named here."
)


@pytest.mark.parametrize(
    ("clocks", "expected"),
    [
        ([(29.9, 0.1), (0.0, 0.1)], []),
        ([(30.2, 0.3), (0.2, 0.1)], []),  # may be within 30 s, given how well it could be measured
        (
            [(95.04, 0.3), (0.0, 0.1)],
            [f"a: its clock is 95.0 s ahead of the controller's (±0.3 s); 30 s are allowed. {CLOCK_REMEDY}"],
        ),
        (
            [(0.0, 0.1), (-31.0, 0.5)],
            [f"b: its clock is 31.0 s behind the controller's (±0.5 s); 30 s are allowed. {CLOCK_REMEDY}"],
        ),
        (
            [(20.0, 0.5), (-20.0, 0.5), (0.0, 0.1)],
            [
                "b, a: their clocks are at least 39.0 s apart (a is ahead); 30 s are allowed. "
                "Remedy: switch on time synchronisation on both (timedatectl set-ntp true)."
            ],
        ),
        ([(15.2, 0.3), (-15.2, 0.3)], []),  # 30.4 s apart as measured, surely 29.8 s
        ([(None, 0.1)], [f"a: the facts gathered there do not say what time it is. {MISSING}"]),
        ([(float("nan"), 0.1)], [f"a: the facts gathered there do not say what time it is. {MISSING}"]),
    ],
)
def test_clock(clocks: list[tuple[Any, Any]], expected: list[str]) -> None:
    hosts = {
        name: host(clock={"offset": offset, "uncertainty": uncertainty})
        for name, (offset, uncertainty) in zip("abc", clocks)
    }
    assert lines(hosts) == expected


def test_the_allowed_offset_is_the_users() -> None:
    hosts = {"a": host(clock={"offset": 40.0})}
    assert lines(hosts, max_clock_offset=60) == []
    assert lines(hosts, max_clock_offset=5)[0].startswith("a: its clock is 40.0 s ahead of the controller's")


TOO_LITTLE = "a: 8.0 GiB are free at /var/lib/docker; 25.0 GiB are needed. Remedy: free space there, or lower {}."


@pytest.mark.parametrize(
    ("free", "need", "expected"),
    [
        (25 * GIB, 25 * GIB, []),
        (0, 0, []),
        (8 * GIB, 25 * GIB, [TOO_LITTLE.format("preflight_min_free_gib")]),
        (8 * GIB, {"bytes": 25 * GIB, "variable": "my_space"}, [TOO_LITTLE.format("my_space")]),
        (8 * GIB, {"bytes": 25 * GIB, "unless_image": "demo:1"}, []),
        (8 * GIB, {"bytes": 25 * GIB, "unless_image": "demo:2"}, [TOO_LITTLE.format("preflight_min_free_gib")]),
        (
            200 << 10,
            {"bytes": 4 << 20, "variable": ""},
            ["a: 0.2 MiB are free at /var/lib/docker; 4.0 MiB are needed. Remedy: free space there."],
        ),
        (None, 1, [f"a: the facts gathered there do not say how much space is free at /var/lib/docker. {MISSING}"]),
    ],
)
def test_disk(free: Any, need: Any, expected: list[str]) -> None:
    hosts = {"a": host(disk={"/var/lib/docker": {"free_bytes": free}})}
    assert lines(hosts, space={"/var/lib/docker": need}) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, []),
        ("demo:1", []),
        (
            "demo:2",
            [
                "a: the image demo:2 is missing, and training_image_source: present does not fetch it. Remedy: load "
                "it on this host (docker load), or set training_image_source to pull, archive or build."
            ],
        ),
    ],
)
def test_image(wanted: Any, expected: list[str]) -> None:
    assert lines({"a": host()}, image_present=wanted) == expected


OTHER = "Remedy: choose another overlay_network_subnet, or remove the variable to have a free one chosen."


@pytest.mark.parametrize(
    ("subnet", "expected"),
    [
        (None, []),
        ("10.20.0.0/24", []),  # the overlay itself, from an earlier run
        (
            "10.9.3.0/24",
            [f"a, b: route 10.9.0.0/16 via device eth1 overlaps the overlay's subnet 10.9.3.0/24. {OTHER}"],
        ),
        (
            "192.168.0.0/16",
            [f"a, b: network 192.168.7.0/24 of device eth0 overlaps the overlay's subnet 192.168.0.0/16. {OTHER}"],
        ),
        (
            "172.17.5.0/24",
            [f"a, b: network 172.17.0.0/16 of Docker's bridge overlaps the overlay's subnet 172.17.5.0/24. {OTHER}"],
        ),
    ],
)
def test_overlay_subnet(subnet: str | None, expected: list[str]) -> None:
    assert lines({"a": GOOD, "b": GOOD}, overlay_subnet=subnet, overlay_network="demo-net") == expected
    assert lines({"a": GOOD, "b": GOOD}, overlay_subnet=subnet, network_mode="host") == []


def test_one_line_for_each_device_in_the_way() -> None:
    fabric = {
        "interfaces": [{"name": "br", "addresses": [{"subnet": "172.17.0.0/16"}]}, {"name": "odd", "addresses": None}],
        "routes": [
            {"dst": "172.17.0.0/16", "dev": "br"},
            {"dst": "172.16.0.0/12", "dev": None},
            {"dst": "172.0.0.0/8", "dev": None},
        ],
    }
    found = lines({"a": host(fabric=fabric)}, overlay_subnet="172.17.0.0/24")
    assert [line.split(" overlaps")[0] for line in found] == [
        "a: network 172.17.0.0/16 of device br",
        "a: route 172.16.0.0/12 via device none",
    ]


@pytest.mark.parametrize(
    ("subnet", "words"),
    [
        ("10.0.0.1/24", "the subnet: '10.0.0.1/24' has bits set right of its prefix; write 10.0.0.0/24"),
        ("ten", "the subnet: 'ten' is not an IPv4 network such as 10.20.0.0/24"),
    ],
)
def test_a_subnet_that_is_none(subnet: str, words: str) -> None:
    assert lines({"a": GOOD}, overlay_subnet=subnet) == [f"overlay_network_subnet: {words}. {OTHER}"]


def test_missing_routes_are_reported() -> None:
    assert lines({"a": host(fabric=None)}, overlay_subnet="10.20.0.0/24") == [
        f"a: the facts gathered there do not say which routes and interfaces it has. {MISSING}"
    ]


def test_port() -> None:
    taken = host(listening={"tcp": [22, 2222]})

    def with_container(name: str, state: str, network: str) -> dict[str, Any]:
        found = {"state": state, "addresses": {network: None}}
        return {**taken, "docker": {**GOOD["docker"], "containers": {name: found}}}

    ours, stopped = with_container("demo-b", "running", "host"), with_container("demo-c", "exited", "host")
    in_overlay = with_container("demo-e", "running", "demo")  # listens there, not on the host
    hosts = {"a": taken, "b": ours, "c": stopped, "d": GOOD, "e": in_overlay}
    assert lines(hosts) == []
    assert lines(hosts, network_mode="host", ssh_port=2223) == []
    assert lines(hosts, network_mode="host") == [
        "a, c, e: TCP port 2222 is in use, but the training container's sshd needs it with cluster_network_mode: host. "
        "Remedy: find the process that listens there (ss -ltnp 'sport = :2222') and stop it, or use "
        "cluster_network_mode: overlay."
    ]
    assert len(lines(hosts, network_mode="host", containers={"b": "another"})) == 1
    assert lines({"a": host(listening=None)}, network_mode="host") == [
        f"a: the facts gathered there do not say which ports are in use. {MISSING}"
    ]


def test_missing_docker_facts_are_reported() -> None:
    assert lines({"a": host(docker=None)}) == [
        f"a: the facts gathered there do not say whether Docker is installed. {MISSING}"
    ]


REFUSED = entries("it cannot be. Remedy: ask for another")


@pytest.mark.parametrize("check", ["nccl_settings", "docker", "ssh_trust", "workspace", "assets", "deepspeed_launch"])
def test_what_the_plan_refuses_is_listed_by_host(check: str) -> None:
    role = "nccl_env" if check == "nccl_settings" else check
    refused = {role: {"a": REFUSED, "gone": REFUSED}, "swarm": {"a": REFUSED}}
    assert lines({"a": host(), "b": host()}, refused=refused) == ["a: it cannot be. Remedy: ask for another."]


def test_a_mistake_in_the_hostfile_is_listed_once_and_not_again_for_each_host() -> None:
    refused = {"deepspeed_launch": {"a": REFUSED, "b": REFUSED}}
    launch = {"hosts": {"a": 1, "b": 1}, "include": "gone"}
    [line] = lines({"a": host(), "b": host()}, refused=refused, launch=launch)
    assert "gone" in line and "correct deepspeed_launch_include" in line


def test_missing_consents_are_listed_but_for_those_that_other_checks_ask_for() -> None:
    sentence = "the engine must be restarted. Remedy: set docker_allow_restart: true to allow it"
    consents = {
        "docker_allow_restart": {"a": entries(sentence), "gone": entries(sentence)},
        "swarm_allow_leave_foreign": {"a": entries(sentence)},
    }
    consents["overlay_network_allow_recreate"] = {"a": entries(sentence)}
    assert lines({"a": host(), "b": host()}, consents=consents) == [f"a: {sentence}."]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)
KEYS = ["system", "clock", "disk", "listening", "fabric", "docker"]
INNER = sorted({key for section in KEYS for key in GOOD[section]})
SECTION = JSON | st.dictionaries(
    st.sampled_from(INNER), JSON | st.lists(st.dictionaries(st.just("dst"), JSON)), max_size=4
)


@settings(max_examples=examples(150), deadline=None)
@given(
    hosts=st.dictionaries(
        st.sampled_from(["a", "b"]), JSON | st.dictionaries(st.sampled_from(KEYS), SECTION), min_size=1
    ),
    unreachable=st.dictionaries(st.sampled_from(["a", "c"]), JSON),
    mode=st.sampled_from(["overlay", "host", "odd"]),
    subnet=st.text(max_size=12) | st.just("10.0.0.0/24"),
)
def test_any_facts_pass_or_get_words(
    hosts: dict[str, Any], unreachable: dict[str, Any], mode: str, subnet: str
) -> None:
    given = requested(managers=["a"], network_mode=mode, overlay_subnet=subnet, space={"/": 1})
    report = collect(FACT_CHECKS, Facts(hosts, given, unreachable))
    assert all(problem.text and problem.remedy and problem.check in FACT_CHECKS for problem in report.problems)
    # The Python of none of these hosts is known, so no host passes unchecked.
    named = {name for problem in report.problems for name in problem.subject.split(", ")}
    assert set(hosts) <= named


# Versions of the training image


def test_each_problem_of_the_versions_is_reported_under_its_own_check() -> None:
    problems = [
        {"check": "driver_too_old_for_cuda", "subjects": ["a"], "text": "driver 1 does not do", "remedy": "take 2"},
        {"check": "torch_index", "subjects": ["x", "y"], "text": "no wheel", "remedy": "take another"},
    ]
    wanted = requested(versions={"problems": problems})
    report = collect({name: FACT_CHECKS[name] for name in VERSION_CHECKS}, Facts(hosts={}, requested=wanted))
    assert [problem.reported() for problem in report.problems] == [
        "a: driver 1 does not do. Remedy: take 2. (check: driver_too_old_for_cuda)",
        "x, y: no wheel. Remedy: take another. (check: torch_index)",
    ]


@pytest.mark.parametrize("versions", [{}, {"problems": None}, {"problems": ["junk", {"check": "torch_index"}]}])
def test_versions_that_are_not_of_their_form_are_no_exception(versions: dict[str, Any]) -> None:
    assert all(isinstance(list(check_versions(name, versions)), list) for name in VERSION_CHECKS)


def warned(hosts: dict[str, Any], **wanted: Any) -> list[str]:
    facts = Facts(hosts, requested(**wanted), {})
    return [problem.line() for problem in collect(FACT_CHECKS, facts).warnings if problem.check == "end_of_life"]


def test_what_gets_no_updates_is_a_warning_with_the_date() -> None:
    held = {"nvidia-container-toolkit": "1.18.2-1", "docker-ce": "5:28.5.2-1~debian.13~trixie"}
    trixie = {"release": "13", "time": 1_795_000_000}  # November 2026
    hosts = {"a": host(), "b": host(system=trixie, packages=held), "c": host(system=trixie, packages={})}
    a, engine, hole = warned(hosts)
    assert a.startswith("a: regular security updates of Debian 12 ended on 2026-07-11; Debian LTS, ")
    assert a.endswith("Remedy: upgrade to Debian 13.")
    assert engine.startswith(
        "b: Docker Engine 28.5.2 is installed, but 28 has had no updates since 2025-11-05. Remedy: "
    )
    assert hole.startswith("b: nvidia-container-toolkit 1.18.2-1 is affected by CVE-2026-24260 ")
    assert len(warned(hosts, runtime="host")) == 1  # without Docker neither matters
    assert lines(hosts) == []
    # A clock that is behind hides nothing.
    assert len(warned({"a": host(system={"time": 0})})) == 1
    assert "has had no security updates since 2028-06-30" in warned({"a": host(system={"time": 2_000_000_000})})[0]


def test_hosts_of_two_kinds_of_processor() -> None:
    arm, intel = {"architecture": "aarch64"}, {"architecture": "x86_64"}
    hosts = {"a": host(system=intel), "b": host(system=arm), "c": host(system=intel)}
    assert lines(hosts) == [
        "b: the processor is aarch64, but that of a is x86_64; a training image runs on only one of them. Remedy: "
        "make a cluster of each kind, each with its own inventory and cluster_name."
    ]
    assert lines(hosts, runtime="host") == []
    assert lines({"a": host(system=arm), "b": host(system=arm)}) == []


def test_a_release_that_was_never_tried_says_how_to_try_it() -> None:
    assert lines({"a": host(system={"distribution": "ubuntu", "release": "26.04"})}) == [
        "a: Ubuntu 26.04 is untested. Remedy: install one of: Debian 12 and 13, Ubuntu 22.04 and 24.04; or try it "
        "with preflight_skip: [distribution] (docs/versions.md)."
    ]
