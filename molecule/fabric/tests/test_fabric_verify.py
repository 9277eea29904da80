"""verify.yml on the network between the nodes: what works is measured, what is broken is reported with its reason."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect, is_running
from tests.fault_runs import STEPS, forget, log, state, training, wait
from tests.playbook_run import NODES, ROOT, Run, condition, container, inside, node, on, playbook, site, variables

# In brackets, lest the shell that looks finds itself.
LEFT = "find /run/[s]warmspeed-fabric -type f -o -type p; pgrep -f '[s]warmspeed-fabric'; true"
PAIRS = len(NODES) * (len(NODES) - 1)


def verify(folder: Path, **values: Any) -> Run:
    return playbook("verify", *variables(cluster_reports_dir=str(folder), **values))


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "verify.json").read_text(encoding="utf-8"))
    return found


def failed(folder: Path) -> set[tuple[str, str, str, str]]:
    """From, to, network and check of the pairs that failed."""
    return {(one["from"], one["to"], one["network"], one["check"]) for one in report(folder)["pairs"] if not one["ok"]}


def nothing_left() -> None:
    until = time.monotonic() + 20
    while any(on(name, LEFT).split() for name in NODES):
        assert time.monotonic() < until, {name: on(name, LEFT) for name in NODES}
        time.sleep(1)


def test_every_pair_is_measured(tmp_path: Path) -> None:
    run = verify(tmp_path).done(change=False)
    assert f"Fabric: {PAIRS // 2} pairs of {len(NODES)} nodes in" in run.text
    found = report(tmp_path)
    assert (found["version"], found["nodes"]) == (1, list(NODES))
    verified = {path.parts[-3] for path in ROOT.glob("roles/*/tasks/verify.yml")}
    assert {name: role["ok"] for name, role in found["roles"].items()} == dict.fromkeys(verified, True)
    assert failed(tmp_path) == set()
    by_check = {(one["network"], one["check"]): one for one in found["pairs"]}
    assert set(by_check) == {
        *(("container", check) for check in ("name", "tcp", "clock", "mtu", "ssh")),
        *(("host", check) for check in ("tcp", "mtu", "udp 4789", "udp 7946")),
    }
    assert len(found["pairs"]) == PAIRS * len(by_check)
    # As the interfaces have it, less 50 bytes for VXLAN inside.
    underlay = int(on("lab1", "cat /sys/class/net/eth0/mtu"))
    assert by_check["host", "mtu"]["value"] == underlay
    assert by_check["container", "mtu"]["value"] == underlay - 50
    assert found["versions"]["lab1"]["torch"] and found["versions"]["lab1"]["deepspeed"]
    nothing_left()


def test_the_interface_is_the_one_that_gloo_has_connections_on(tmp_path: Path) -> None:
    verify(tmp_path).done(change=False)
    collective = report(tmp_path)["collective"]
    assert collective["ok"] and collective["backend"] == "gloo" and collective["seconds"] >= 2
    subnet = inspect("lab1", "network", "swarmspeed")["IPAM"]["Config"][0]["Subnet"]
    for name in NODES:
        device = inside(name, f"ip -4 route show {subnet}").split(" dev ")[1].split()[0]
        assert collective["interfaces"][name] == device


def test_as_many_forks_as_there_are_do_not_decide(tmp_path: Path) -> None:
    playbook("verify", "--forks", "1", *variables(cluster_reports_dir=str(tmp_path))).done(change=False)
    assert failed(tmp_path) == set()


def test_in_check_mode_nothing_is_written(tmp_path: Path) -> None:
    playbook("verify", "--check", "--tags", "fabric", *variables(cluster_reports_dir=str(tmp_path))).done(change=False)
    assert not list(tmp_path.iterdir())


def test_a_role_that_fails_is_kept_with_its_words(tmp_path: Path) -> None:
    with condition("lab3", f"docker stop {container('lab3')}", f"docker start {container('lab3')}"):
        run = verify(tmp_path)
    run.refused("lab3: the container swarmspeed-lab3 is exited", "Verify ended at the role nccl_env: see above.")
    roles = report(tmp_path)["roles"]
    assert list(roles)[-1] == "nccl_env" and not roles["nccl_env"]["ok"]
    assert roles["nccl_env"]["sentence"].startswith("lab3: the container swarmspeed-lab3 is exited")
    assert all(role["ok"] for name, role in roles.items() if name != "nccl_env")
    assert report(tmp_path)["pairs"] == []


def test_beside_a_job_that_runs(tmp_path: Path) -> None:
    """Its steps continue meanwhile, and no process takes its ports."""
    training()
    try:
        before, port = log().count("rank 0: step "), state()["master_port"]
        verify(tmp_path, **STEPS).done(change=False)
        assert state()["state"] == "running" and log().count("rank 0: step ") > before + 10
    finally:
        forget()
        playbook("site", "--tags", "workspace").done(change=True)  # instead of the job's own
    assert not any(f"port {port}" in one["said"] for one in report(tmp_path)["pairs"])
    nothing_left()


def test_a_rule_of_the_node_itself_that_drops_vxlan_is_named_at_once(tmp_path: Path) -> None:
    rule = "INPUT -p udp --dport 4789 -j DROP"
    with condition("lab3", f"iptables -I {rule}", f"iptables -D {rule}"):
        verify(tmp_path).refused(
            "lab3: role host: ",
            "opening for the other nodes in iptables is missing. Remedy: ansible-playbook site.yml --tags host",
        )


def test_the_port_of_vxlan_is_cut_before_one_node(tmp_path: Path) -> None:
    """In table raw, where role host does not look: to the node it is as if a switch between them dropped it."""
    rule = "PREROUTING -p udp --dport 4789 -j DROP"
    with condition("lab3", f"iptables -t raw -I {rule}", f"iptables -t raw -D {rule}"):
        run = verify(tmp_path)
    run.refused(
        "The network between the nodes has 1 problem.",
        "lab1, lab2 -> lab3: between the hosts, UDP 4789: ",
        "Remedy: open 4789/udp there",
    )
    found = failed(tmp_path)
    assert {("lab1", "lab3", "host", "udp 4789"), ("lab2", "lab3", "host", "udp 4789")} <= found
    assert not any({one[0], one[1]} == {"lab1", "lab2"} for one in found)
    assert {one["reason"] for one in report(tmp_path)["pairs"] if one["check"] == "tcp" and not one["ok"]} <= {
        f"follows from udp 4789 from {name} to lab3" for name in ("lab1", "lab2")
    }
    assert report(tmp_path)["collective"]["said"] == "not tried, as not all nodes reach one another"
    nothing_left()


def test_a_packet_size_that_the_link_does_not_carry(tmp_path: Path) -> None:
    carried = int(on("lab1", "cat /sys/class/net/eth0/mtu"))
    for name in NODES:
        on(name, "ip link set eth0 mtu 9000")
    try:
        # The overlay stays as it was made, for the smaller size.
        run = verify(tmp_path, overlay_network_mtu=carried)
    finally:
        for name in NODES:
            on(name, f"ip link set eth0 mtu {carried}")
    # The kernel's virtual links let 4 bytes more pass, for a VLAN.
    (found,) = set(re.findall(r"do not arrive unfragmented, those of (\d+) do", run.text))
    assert carried <= int(found) <= carried + 4
    run.refused(
        "between the hosts, packet size: packets of 9000 bytes ",
        f"Remedy: set the MTU of the interfaces to at most {found} on all hosts",
    )
    assert {one[3] for one in failed(tmp_path)} == {"mtu"}


def test_an_interface_that_no_container_has(tmp_path: Path) -> None:
    site("--tags", "nccl_env", *variables(nccl_env_environment={"GLOO_SOCKET_IFNAME": "nic7"})).refused_by(
        ("nccl_env", "nccl_env_environment.GLOO_SOCKET_IFNAME")
    )


def test_an_interface_that_leads_to_no_other_node(tmp_path: Path) -> None:
    """The gateway's bridge has an address on every host."""
    gateway = inside("lab1", "ip -4 route show default").split(" dev ")[1].split()[0]
    wrong = {"nccl_env_environment": {"GLOO_SOCKET_IFNAME": gateway}}
    try:
        site("--tags", "nccl_env", *variables(**wrong)).done(change=True)
        run = verify(tmp_path, **wrong)
    finally:
        site("--tags", "nccl_env").done(change=True)
    run.refused(
        "a collective of two seconds over all nodes (gloo):",
        "Most likely: wrong interface",
        "remove GLOO_SOCKET_IFNAME from nccl_env_environment",
    )
    assert failed(tmp_path) == set()
    assert report(tmp_path)["collective"]["ok"] is False


GOSSIP = [
    f"{chain} {rule} -j DROP"
    for chain in ("PREROUTING", "OUTPUT")
    for rule in (
        # Not the datagrams of verify, which would name the port; of TCP only what is said, as verify only connects.
        "-p udp --dport 7946 -m string --algo bm ! --string swarmspd",
        "-p tcp --dport 7946 --tcp-flags PSH PSH",
        "-p tcp --sport 7946 --tcp-flags PSH PSH",
    )
]


def test_names_that_are_not_there_yet_are_waited_for(tmp_path: Path) -> None:
    """One node's engine starts and receives no gossip until verify has tried to resolve its name for a while."""
    silent, restored = ("; ".join(f"iptables -t raw {do} {rule}" for rule in GOSSIP) for do in ("-I", "-D"))
    known = f"docker exec {container('lab1')} timeout 5 getent hosts {container('lab3')}"
    # The container's end has said that it is ready; next it looks for names.
    waits = "until grep -qs ready /run/swarmspeed-fabric/*/inner/out; do sleep 0.2; done; sleep 12"
    with condition("lab3", silent, f"iptables -t raw -S | grep -q swarmspd && {{ {restored}; }}; true"):
        on("lab3", "systemctl restart docker")
        wait(lambda: is_running("lab3", container("lab3")), 60)
        # The others give up a member that does not answer, and with it its names.
        wait(lambda: node("lab1").run(known).rc != 0, 90)
        on("lab3", f"nohup sh -c '{waits}; {restored}' > /dev/null 2>&1 &")
        run = verify(tmp_path).done(change=False)
    waited = max(one["value"] for one in report(tmp_path)["pairs"] if one["check"] == "name")
    assert 3 < waited < 75
    assert "the overlay's DNS was still converging" in run.text


FAKE_CLOCK = """\
#!/bin/sh
LD_PRELOAD=/tmp/libfaketime.so FAKETIME=+120s FAKETIME_DONT_FAKE_MONOTONIC=1 exec {python} "$@"
"""


def test_a_clock_that_is_two_minutes_off(tmp_path: Path) -> None:
    """A node that is a container has its machine's clock: libfaketime under its Python stands in for another."""
    name = "lab3"
    on(name, "command -v faketime || { apt-get update -qq && apt-get install -qq -y faketime; }")
    library = on(name, "find /usr/lib -name libfaketime.so.1").split()[0]
    place = inside(name, "command -v python3").strip()
    on(name, f"docker cp {library} {container(name)}:/tmp/libfaketime.so")
    wrapper = FAKE_CLOCK.format(python=f"{place}.real")
    inside(name, f"mv {place} {place}.real")
    node(name).check_output(
        "docker exec %s sh -c %s", container(name), f"printf %s '{wrapper}' > {place} && chmod 755 {place}"
    )
    try:
        run = verify(tmp_path)
    finally:
        inside(name, f"mv {place}.real {place}")
    run.refused("lab1, lab2 -> lab3: clock: its clock is 120.0 s ahead. ", "Remedy: timedatectl set-ntp true on lab3")


def test_all_is_well_again(tmp_path: Path) -> None:
    verify(tmp_path).done(change=False)
