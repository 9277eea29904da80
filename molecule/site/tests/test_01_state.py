"""What the deployment leaves on each node, read from the nodes themselves and not from the collection."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from itertools import permutations
from typing import Any

import pytest

from tests.engines import info, inspect, swarm_nodes
from tests.image_runs import FABRIC
from tests.playbook_run import CLUSTER_ROOT, ETC, JOBS, LABEL, NODES, container, inside, job, on

SSH = f"{ETC}/ssh"


@pytest.fixture(scope="module")
def overlay() -> dict[str, Any]:
    return inspect("lab1", "network", "swarmspeed")


@pytest.fixture(scope="module")
def subnet(overlay: dict[str, Any]) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(overlay["IPAM"]["Config"][0]["Subnet"])


@pytest.fixture(scope="module")
def containers() -> dict[str, dict[str, Any]]:
    return {name: inspect(name, "container", container(name)) for name in NODES}


def interface(name: str, subnet: ipaddress.IPv4Network) -> tuple[str, str]:
    """Return the container's interface in the overlay, and its address there."""
    route = inside(name, f"ip -4 route show {subnet}").split()
    return route[route.index("dev") + 1], route[route.index("src") + 1]


@pytest.mark.parametrize("name", NODES)
def test_the_engine_runs_and_starts_at_boot(name: str) -> None:
    assert on(name, "systemctl is-active docker && systemctl is-enabled docker").split() == ["active", "enabled"]


@pytest.mark.parametrize("name", NODES)
def test_daemon_json_has_the_users_keys_and_the_promised_ones(name: str) -> None:
    users = {} if name == "lab3" else {"labels": ["owner=somebody-else"], "max-concurrent-downloads": 2}
    mtu = int(on(name, "cat /sys/class/net/eth0/mtu"))
    ours: dict[str, Any] = {"log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3"}}
    ours.update({"mtu": mtu} if mtu < 1500 else {})
    assert json.loads(on(name, "cat /etc/docker/daemon.json")) == {**users, **ours}


def test_daemon_json_keeps_the_users_mode() -> None:
    assert [on(name, "stat -c %a /etc/docker/daemon.json") for name in NODES] == ["640", "640", "644"]


@pytest.mark.parametrize("name", NODES)
def test_the_image_has_what_nccl_opens_for_hcas_and_what_examines_ranks(name: str) -> None:
    """Although the lab has neither: the image is the same for all fabrics."""
    found = json.loads(inside(name, f"python3 -c {shlex.quote(FABRIC)}"))
    assert (found["missing"], found["py-spy"]) == ([], ["0.4.3"])
    assert {"mlx5", "efa", "bnxt_re", "irdma"} <= set(found["drivers"])


def test_one_swarm_with_its_roles() -> None:
    nodes = swarm_nodes("lab1")
    assert [(found.host, found.status, found.availability, found.manager) for found in nodes] == [
        ("lab1", "ready", "active", "leader"),
        ("lab2", "ready", "active", ""),
        ("lab3", "ready", "active", ""),
    ]
    assert [info(name)["Swarm"]["NodeID"] for name in NODES] == [found.id for found in nodes]
    swarm = info("lab1")["Swarm"]["Cluster"]
    assert swarm["ID"] and swarm["Spec"]["Labels"] == {LABEL: "swarmspeed"}


def test_the_overlay_is_attachable_and_fits_the_underlay(overlay: dict[str, Any]) -> None:
    underlay = on("lab1", "cat /sys/class/net/eth0/mtu")
    assert (overlay["Driver"], overlay["Scope"], overlay["Attachable"]) == ("overlay", "swarm", True)
    assert overlay["Options"]["com.docker.network.driver.mtu"] == underlay
    assert overlay["Labels"][LABEL] == "swarmspeed"


@pytest.mark.parametrize("name", NODES)
def test_the_overlays_mtu_is_fifty_less_inside(name: str, subnet: ipaddress.IPv4Network) -> None:
    device, dummy = interface(name, subnet)
    underlay = int(on(name, "cat /sys/class/net/eth0/mtu"))
    assert int(inside(name, f"cat /sys/class/net/{device}/mtu")) == underlay - 50


@pytest.mark.parametrize("name", NODES)
def test_the_overlays_subnet_collides_with_no_route(name: str, subnet: ipaddress.IPv4Network) -> None:
    routes = [route["dst"] for route in json.loads(on(name, "ip -json -4 route")) if route["dst"] != "default"]
    assert routes
    assert [route for route in routes if subnet.overlaps(ipaddress.IPv4Network(route))] == []


def test_the_same_image_is_everywhere(containers: dict[str, dict[str, Any]]) -> None:
    references = {found["Config"]["Image"] for found in containers.values()}
    assert len(references) == 1
    (reference,) = references
    assert re.fullmatch(r"swarmspeed/swarmspeed:[0-9a-f]{16}", reference)
    identities = {inspect(name, "image", reference)["Id"] for name in NODES}
    assert len(identities) == 1
    assert {found["Image"] for found in containers.values()} == identities


@pytest.mark.parametrize("name", NODES)
def test_the_container_is_as_asked(name: str, containers: dict[str, dict[str, Any]]) -> None:
    found = containers[name]
    mounts = {mount["Destination"]: (mount["Source"], mount["RW"]) for mount in found["Mounts"]}
    assert found["State"]["Status"] == "running"
    assert found["Config"]["Hostname"] == container(name)
    assert found["Config"]["Labels"][LABEL] == "swarmspeed"
    assert found["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    assert found["HostConfig"]["ShmSize"] == 1024**3
    assert found["HostConfig"]["Privileged"] is False
    assert set(found["NetworkSettings"]["Networks"]) == {"swarmspeed"}
    assert mounts == {
        "/etc/swarmspeed": (ETC, False),
        "/jobs": (JOBS, True),
        "/workspace": (f"{CLUSTER_ROOT}/workspace", True),
    }


@pytest.mark.parametrize("name", NODES)
def test_keys_are_private(name: str) -> None:
    listed = on(name, f"find {ETC} -printf '%p %m\\n'").splitlines()
    modes = dict(line.split(maxsplit=1) for line in listed)
    assert modes[ETC] == modes[SSH] == "700"
    assert modes[f"{SSH}/id_ed25519"] == modes[f"{SSH}/ssh_host_ed25519_key"] == modes[f"{ETC}/env"] == "600"
    assert on(name, f"stat -c '%a %U:%G' {CLUSTER_ROOT} {JOBS}").splitlines() == ["700 root:root"] * 2


@pytest.mark.parametrize("name", NODES)
def test_another_user_of_the_host_reads_nothing_of_this_collection(name: str) -> None:
    assert (
        on(
            name,
            f"su nobody -s /bin/sh -c 'find {CLUSTER_ROOT} 2>/dev/null | tail -n +2; cat {ETC}/env 2>/dev/null; true'",
        )
        == ""
    )


def test_one_cluster_key_and_a_host_key_each() -> None:
    def digests(file: str) -> list[str]:
        return [on(name, f"sha256sum < {SSH}/{file}") for name in NODES]

    assert len(set(digests("id_ed25519"))) == 1
    assert len(set(digests("ssh_host_ed25519_key"))) == len(NODES)
    assert set(digests("id_ed25519")).isdisjoint(digests("ssh_host_ed25519_key"))


def test_known_hosts_names_every_container_truly_on_every_node() -> None:
    keys = {name: on(name, f"cut -d ' ' -f 1,2 {SSH}/ssh_host_ed25519_key.pub") for name in NODES}
    expected = "".join(f"{name} {key}\n" for name, key in keys.items()).strip()
    for name in NODES:
        assert on(name, f"cat {SSH}/known_hosts") == expected


@pytest.mark.parametrize("name", NODES)
def test_sshd_listens_in_the_overlay_only_and_takes_no_passwords(name: str, subnet: ipaddress.IPv4Network) -> None:
    dummy, address = interface(name, subnet)
    listening = re.findall(r"^LISTEN\s+\d+\s+\d+\s+(\S+):2222\s", inside(name, "ss -lnt"), re.M)
    assert listening == [address]
    others = [a for a in inside(name, "hostname -I").split() if a != address]
    assert others  # docker_gwbridge
    for other in others:
        assert on(name, f"bash -c 'exec 3<>/dev/tcp/{other}/2222' 2>&1; true").endswith("Connection refused")
    offered = inside(
        name,
        f"ssh -F /dev/null -v -p 2222 -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/dev/null "
        f"-o BatchMode=yes -o IdentityFile=/dev/null root@{address} true 2>&1; true",
    )
    assert re.findall(r"Authentications that can continue: (\S+)", offered)[:1] == ["publickey"]
    assert "Permission denied (publickey)" in offered


@pytest.mark.parametrize("source", NODES)
def test_every_node_reaches_every_other_by_its_name(source: str) -> None:
    targets = [other for one, other in permutations(NODES, 2) if one == source] + [source]
    answers = inside(source, "; ".join(f"ssh {target} hostname" for target in targets)).split()
    assert answers == [container(target) for target in targets]


@pytest.mark.parametrize("name", NODES)
def test_nccl_and_gloo_are_bound_to_the_overlays_interface(name: str, subnet: ipaddress.IPv4Network) -> None:
    device, dummy = interface(name, subnet)
    conf = inside(name, "cat /etc/nccl.conf").splitlines()
    assert f"NCCL_SOCKET_IFNAME=={device}" in conf
    assert "NCCL_IB_DISABLE=1" in conf
    login = inside(name, f"ssh {name} env").splitlines()
    assert f"GLOO_SOCKET_IFNAME={device}" in login
    assert "DS_ACCELERATOR=cpu" in login


@pytest.mark.parametrize("name", NODES)
def test_hostfile_and_ds_config_are_on_every_node(name: str) -> None:
    assert on(name, f"cat {ETC}/hostfile") == "lab1 slots=1\nlab2 slots=1\nlab3 slots=1"
    config = json.loads(on(name, f"cat {ETC}/ds_config.json"))
    assert config["train_micro_batch_size_per_gpu"] == 16
    assert config["zero_optimization"]["stage"] == 2


@pytest.mark.parametrize("name", NODES)
def test_the_code_is_at_the_same_path_everywhere(name: str) -> None:
    assert inside(name, "sha256sum < /workspace/train.py") == inside("lab1", "sha256sum < /workspace/train.py")


def test_the_job_trained_on_three_nodes() -> None:
    state = job()
    assert state["state"] == "succeeded"
    assert (state["world_size_seen"], state["nodes_seen"], state["exit_code"]) == (3, 3, 0)
    log = on("lab1", f"cat {JOBS}/digits/launcher.log")
    assert "digits: 3 ranks, backend gloo" in log
    accuracy = re.findall(r"digits: accuracy on held-out digits (\S+), target 0.95 reached", log)
    assert len(accuracy) == 1 and float(accuracy[0]) >= 0.95


def test_the_job_left_a_checkpoint_for_each_epoch() -> None:
    folders = on("lab1", f"ls -1d {CLUSTER_ROOT}/workspace/checkpoints/digits/epoch*/").split()
    assert [folder.rstrip("/")[-7:] for folder in folders] == [f"epoch{number:02d}" for number in range(1, 13)]


def test_specification_and_log_of_the_job_are_private() -> None:
    modes = on("lab1", f"find {JOBS}/digits -name '*.json' -printf '%m\\n' -o -name '*.log' -printf '%m\\n'").split()
    assert len(modes) >= 3 and set(modes) == {"600"}


@pytest.mark.parametrize("name", NODES)
def test_nothing_is_left_of_the_images_transfer(name: str) -> None:
    assert (
        on(name, "ls -A /root | grep swarmspeed; cat /root/.ssh/authorized_keys | grep swarmspeed-transfer; true") == ""
    )
    assert on(name, f"ls -d {CLUSTER_ROOT}/image* 2>/dev/null; true") == ""
