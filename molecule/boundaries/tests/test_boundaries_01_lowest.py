"""The least that each constraint accepts, on a whole cluster: converge.yml and its second run have taken it."""

from __future__ import annotations

import pytest

from tests.boundaries.runs import arguments, seen
from tests.engines import info, inspect
from tests.playbook_run import NODES, on, playbook

AT = "/a/jobs/0"


def test_verify_finds_everything_as_configured() -> None:
    playbook("verify", *arguments("lowest")).done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_the_engine_has_taken_the_containers_options(name: str) -> None:
    found = inspect(name, "container", f"a-{name}")
    host = found["HostConfig"]
    assert (host["ShmSize"], host["IpcMode"], host["PidMode"]) == (64 * 2**20 + 1, "private", "")
    assert {(limit["Name"].lower(), limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]} == {
        ("nofile", 64, 64),
        ("core", 0, -1),
        ("nice", 0, 0),
    }
    assert host["PortBindings"] == {"1/udp": [{"HostIp": "127.0.0.1", "HostPort": "1"}]}
    assert "/dev/null" in [device["PathOnHost"] for device in host["Devices"]]
    assert host["GroupAdd"] == ["0"]
    assert host["RestartPolicy"]["Name"] == {"lab1": "no", "lab2": "on-failure", "lab3": "always"}[name]
    assert "e=" in found["Config"]["Env"]
    assert not [option for option in host["SecurityOpt"] or () if "no-new-privileges" in option]


@pytest.mark.parametrize("name", NODES)
def test_the_kernel_and_sshd_have_taken_the_networks_numbers(name: str) -> None:
    inside = f"docker exec a-{name}"
    assert "mtu 1230" in on(name, f"{inside} ip -o link show to 198.19.7.0/24 || {inside} ip -o link")
    assert on(name, f"{inside} ss -Hlnt 'sport = :1'").strip()
    assert inspect(name, "network", "z")["IPAM"]["Config"][0]["Subnet"] == "198.19.7.0/24"


def test_the_swarm_has_taken_its_numbers() -> None:
    cluster = info("lab1")["Swarm"]["Cluster"]
    assert (cluster["DataPathPort"], cluster["DefaultAddrPool"]) == (1024, ["198.18.0.0/24"])


@pytest.mark.parametrize("name", NODES)
def test_what_is_not_wanted_on_a_host_is_not_there(name: str) -> None:
    assert on(name, "ls /etc/security/limits.d /etc/sysctl.d | grep swarmspeed || echo none").strip() == "none"
    assert on(name, "grep -c 'BEGIN swarmspeed a' /etc/hosts || true").strip() == "0"


def test_the_job_has_trained_on_the_nodes_with_slots() -> None:
    assert on("lab1", "cat /a/etc/hostfile").split() == ["lab1", "slots=1", "lab2", "slots=1"]
    for name, rank in (("lab1", 0), ("lab2", 1)):
        found = seen(name, "/w", rank)
        assert (found["world_size"], found["words"]) == (2, ["0"])
        environment = found["environment"]
        assert {key: environment.get(key) for key in ("a", "_Z9", "x", "e")} == {"a": "", "_Z9": "0", "x": "", "e": ""}
        assert environment["MASTER_PORT"] == "65535"
