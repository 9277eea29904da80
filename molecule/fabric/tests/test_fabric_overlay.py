"""The overlay and the swarm on a lab that is up: what is refused or warned of, and what is repaired.

Each test leaves the cluster whole again. The subnets named are outside the pool that the role chooses from.
"""

from __future__ import annotations

import ipaddress
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect, ready, swarm_nodes, swarm_state
from tests.fault_runs import wait
from tests.playbook_run import (
    NODES,
    condition,
    container,
    inside,
    leave_swarm,
    on,
    playbook,
    site,
    snapshot,
    variables,
    write_inventory,
)

NETWORK = "swarmspeed"
ALL = ", ".join(NODES)
WALKS = ("--tags", "preflight")
"""Refusals come before any role, so the roles need not be walked to see them."""
ROLES = ("--tags", "swarm,overlay_network,ssh_trust,nccl_env,training_container")


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Assert that a refused run has changed nothing on any node."""
    before = snapshot()
    yield
    assert snapshot() == before


@pytest.fixture
def repaired() -> Iterator[None]:
    """Assert that nothing of these roles is left to repair after a test that broke something."""
    yield
    site(*ROLES).done(change=False)


def overlay(name: str = "lab1") -> dict[str, str]:
    """Return the overlay's subnet and MTU as a node's engine has them."""
    found = inspect(name, "network", NETWORK)
    return {
        "subnet": found["IPAM"]["Config"][0]["Subnet"],
        "mtu": found["Options"]["com.docker.network.driver.mtu"],
    }


def bridge(name: str = "lab1") -> str:
    """Return the subnet of docker_gwbridge, which every engine makes for its own host alone."""
    return str(inspect(name, "network", "docker_gwbridge")["IPAM"]["Config"][0]["Subnet"])


def addresses() -> dict[str, str]:
    return {
        name: inspect(name, "container", container(name))["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]
        for name in NODES
    }


# a subnet that collides


@pytest.mark.usefixtures("unchanged")
def test_a_subnet_with_the_name_server_of_every_host() -> None:
    server = on("lab1", "awk '$1 == \"nameserver\" { print $2; exit }' /etc/resolv.conf").strip()
    subnet = ipaddress.IPv4Network(f"{server}/24", strict=False)
    site(*WALKS, *variables(overlay_network_subnet=str(subnet))).refused(
        f"{ALL}: name server {server} overlaps ", "(check: overlay_subnet)"
    )


def test_a_subnet_with_a_proxy_or_mirror_or_a_route_of_one_host() -> None:
    # An address in a file, one of a name that this host alone knows, and a route that it alone has.
    begin = (
        "printf 'Acquire::http::Proxy::packages.invalid \"http://me:s3cret@10.50.0.9:3128\";\\n' "
        "> /etc/apt/apt.conf.d/90fabric && cp /etc/hosts /etc/hosts.kept && echo 10.50.1.9 mirror.invalid >> "
        "/etc/hosts "
        "&& ip route add 10.50.2.0/24 via $(ip -4 route show default | awk '{ print $3 }')"
    )
    end = "rm /etc/apt/apt.conf.d/90fabric; mv /etc/hosts.kept /etc/hosts; ip route del 10.50.2.0/24"
    mirror = {"host_git_proxy": "http://me:s3cret@mirror.invalid:8080"}
    new = {**mirror, "overlay_network_name": "another"}
    before = snapshot()
    with condition("lab2", begin, end):
        run = site(*WALKS, "-vv", *variables(overlay_network_subnet="10.50.0.0/16", **mirror))
        run.refused(
            "lab2: route 10.50.2.0/24 via device eth0 overlaps ",
            "lab2: address 10.50.0.9 (named in /etc/apt/apt.conf.d/90fabric) overlaps ",
            "lab2: address 10.50.1.9 of mirror.invalid (a proxy or mirror) overlaps ",
        )
        assert "s3cret" not in run.output
        # One that is chosen keeps clear of them all.
        run = site(*WALKS, "-v", *variables(overlay_network_pool="10.50.0.0/16", **new)).done(change=False)
        assert re.search(r"\bsubnet: 10\.50\.3\.0/24", run.output), run.output[-3000:]
        site(*WALKS, *variables(overlay_network_pool="10.50.0.0/23", **new)).refused(
            "overlay_network_pool: No /24 is free in 10.50.0.0/23. In use: lab2: address 10.50.0.9 (",
            ", lab2: address 10.50.1.9 of mirror.invalid (",
            "Remedy: ",
        )
    assert snapshot() == before


@pytest.mark.usefixtures("unchanged")
def test_a_gateway_bridge_with_the_same_address_on_every_host() -> None:
    assert len({bridge(name) for name in NODES}) == 1
    subnet = bridge()
    address = inspect("lab1", "network", "docker_gwbridge")["IPAM"]["Config"][0]["Gateway"]
    refused = site(*WALKS, *variables(overlay_network_subnet=subnet)).refused_by(("overlay_subnet", ALL))
    refused.refused(f"network {subnet} of device docker_gwbridge overlaps ")
    # Nor is it ever the network under the overlay.
    site(*WALKS, *variables(cluster_underlay_subnet=subnet)).refused(
        f"cluster_underlay_subnet is {subnet}, but lab1, lab2 and lab3 all have {address} there."
    )


# a network that exists


@pytest.mark.usefixtures("unchanged")
def test_a_network_that_exists_with_other_settings_is_explained() -> None:
    found = overlay()
    requested = variables(overlay_network_subnet="10.77.1.0/24", overlay_network_mtu=1300)
    for run in (site(*WALKS, *requested), site("--check", *ROLES, *requested)):
        run.refused_by(("overlay_network", f"network {NETWORK}"))
        run.refused(f"subnet is {found['subnet']}, not 10.77.1.0/24", f"MTU is {found['mtu']}, not 1300")


@pytest.mark.usefixtures("unchanged")
def test_an_mtu_that_the_interfaces_do_not_take() -> None:
    size = on("lab1", "cat /sys/class/net/eth0/mtu").strip()
    run = site(*WALKS, *variables(overlay_network_mtu=9000)).refused_by(("overlay_mtu", ALL))
    run.refused(f"eth0 takes at most {size} bytes", f"Remedy: set overlay_network_mtu to {size}, ")


@pytest.mark.usefixtures("unchanged")
def test_encryption_on_a_kernel_that_cannot() -> None:
    if on("lab1", "zcat /proc/config.gz 2>/dev/null | grep -c '^# CONFIG_INET_ESP is not set$' || true").strip() != "1":
        pytest.skip("this kernel may do ESP: what is refused here is one that cannot")
    site(*WALKS, *variables(overlay_network_encrypted=True)).refused_by(("overlay_encryption", ALL))


@pytest.mark.usefixtures("repaired")
def test_a_network_is_re_created_by_consent_and_a_strangers_container_stops_that() -> None:
    kept = overlay()
    requested: dict[str, object] = {"overlay_network_subnet": "10.77.1.0/24", "overlay_network_allow_recreate": True}
    image = inspect("lab2", "container", container("lab2"))["Config"]["Image"]
    start = f"docker run --detach --name stranger --network {NETWORK} --entrypoint sleep {image} infinity"
    with condition("lab2", start, "docker rm -f stranger"):
        before = snapshot()
        run = site(*WALKS, *variables(**requested)).refused_by(("overlay_network", "lab2"))
        run.refused(
            "container stranger, which this collection did not create, is attached",
            f"docker network disconnect {NETWORK} stranger",
        )
        assert snapshot() == before
    try:
        # What nccl_env wrote into the container's entrypoint is the subnet before.
        without = ("--tags", "overlay_network,training_container", *variables(**requested))
        site(*without).refused(
            f"container {container('lab1')} cannot be reached by ssh from itself: it does not stay up, and the last "
            "line",
            f"swarmspeed: no interface of this container is in {kept['subnet']}; its networks are: ",
            "Remedy: ansible-playbook site.yml --tags nccl_env,ssh_trust,training_container",
        )
        site(*ROLES, *variables(**requested)).done(change=True)
        assert overlay() == {**kept, "subnet": "10.77.1.0/24"}
        assert inside("lab1", "ssh lab3 ssh lab2 hostname") == container("lab2")
        # What exists is kept by those who ask for nothing.
        site(*ROLES).done(change=False)
    finally:
        site(*ROLES, *variables(overlay_network_subnet=kept["subnet"], overlay_network_allow_recreate=True)).done()
    assert overlay() == kept


# containers' names and addresses


@pytest.mark.usefixtures("repaired")
def test_a_container_elsewhere_on_the_overlay_with_the_name_of_this_collection() -> None:
    image = inspect("lab1", "container", container("lab1"))["Config"]["Image"]
    start = f"docker run --detach --name {container('lab2')} --network {NETWORK} --entrypoint sleep {image} infinity"
    with condition("lab1", start, f"docker rm -f {container('lab2')}"):
        # The name leads to both; that is the trap.
        assert len(inside("lab3", f"getent ahostsv4 {container('lab2')} | awk '{{ print $1 }}' | sort -u").split()) == 2
        before = snapshot()
        for run in (site(*WALKS), playbook("verify", *WALKS)):
            run.refused_by(("overlay_names", "lab1")).refused(f"docker rename {container('lab2')} ")
        assert snapshot() == before


@pytest.mark.usefixtures("repaired")
def test_addresses_that_are_given_stay_over_restarts_and_others_do_not() -> None:
    def restart() -> dict[str, str]:
        for name in NODES:
            # Engine 20.10 at times forgets a network that none of its containers runs on before it learns of it again.
            on(name, f"docker restart -t 1 {container(name)} || {{ sleep 5; docker start {container(name)}; }}")
        return addresses()

    before = addresses()
    assert before != restart(), "the swarm gave the same addresses again: then a fixed one would prove nothing"
    fixed = variables(training_container_address="auto")
    site(*ROLES, *fixed).done(change=True)
    subnet = ipaddress.IPv4Network(overlay()["subnet"])
    highest = {name: str(subnet.broadcast_address - 1 - rank) for rank, name in enumerate(NODES)}
    assert addresses() == highest
    assert restart() == highest
    site(*ROLES, *fixed).done(change=False)
    # A container that is lost gets its old address, and the others keep theirs.
    on("lab2", f"docker rm -f {container('lab2')}")
    run = site(*ROLES, *fixed).done(change=True)
    assert (run.changed["lab1"], run.changed["lab3"]) == (0, 0)
    assert addresses() == highest
    assert inside("lab1", "ssh lab2 ssh lab3 hostname") == container("lab3")
    # One that somebody else has, and one outside.
    image = inspect("lab1", "container", container("lab1"))["Config"]["Image"]
    place = f"--network {NETWORK} --ip {subnet[200]}"
    start = f"docker run --detach --name stranger {place} --entrypoint sleep {image} infinity"
    with condition("lab3", start, "docker rm -f stranger"):
        unchanged = snapshot()
        run = site(*WALKS, *variables(training_container_address=str(subnet[200])))
        run.refused_by(("overlay_values", "training_container_address")).refused(f"is {subnet[200]} for {ALL};")
        refused_for("lab2", str(subnet[200]), "is used by container stranger on lab3.")
        refused_for("lab2", "192.0.2.9", f"is not in the overlay's subnet {subnet}.")
        assert snapshot() == unchanged
    # Without the variable the swarm gives addresses again.
    site(*ROLES).done(change=True)


def refused_for(host: str, address: str, text: str) -> None:
    """Assert that a run with this address for one host's container is refused with this text."""
    inventory = {"all": {"hosts": {host: {"training_container_address": address}}}}
    with tempfile.TemporaryDirectory() as folder:
        extra = Path(folder, "extra.json")
        extra.write_text(json.dumps(inventory), encoding="utf-8")
        site(*WALKS, "--inventory", extra).refused(f"{host}: training_container_address {address} {text}")


# the swarm's hosts


def test_hosts_of_one_name() -> None:
    with condition("lab3", "hostname lab2", "hostname lab3"):
        before = snapshot()
        site(*WALKS).refused_by(("host_names", "lab2, lab3")).refused("all have the host name lab2")
        assert snapshot() == before


@pytest.mark.usefixtures("unchanged")
def test_what_is_fixed_for_the_swarms_life_and_a_node_that_has_not_departed() -> None:
    pool = ["10.32.0.0/12"]
    requested = variables(swarm_data_path_port=4790, swarm_default_address_pool=pool, swarm_removed_nodes=["lab2"])
    run = site(*WALKS, *requested).refused_by(
        ("swarm_fixed", "swarm_data_path_port"),
        ("swarm_fixed", "swarm_default_address_pool"),
        ("swarm_managers", "swarm_removed_nodes"),
    )
    run.refused("Remedy: set it to 4789, or ", "Remedy: set it to 10.0.0.0/8, or ", "names lab2, which is lab2 ")


@pytest.mark.usefixtures("unchanged")
def test_the_swarm_itself_gives_no_subnet_twice() -> None:
    """Why its default pool, most of 10.0.0.0/8, need not be kept clear of: one allocator gives all subnets out."""
    made = []
    try:
        for name in ("pool1", "pool2", "pool3"):
            on("lab1", f"docker network create --driver overlay --attachable {name}")
            made.append(name)
            subnet = ipaddress.IPv4Network(inspect("lab1", "network", name)["IPAM"]["Config"][0]["Subnet"])
            if name == "pool1":
                # The next one that it would give, asked for by address: it is passed over afterwards.
                following = ipaddress.IPv4Network((int(subnet.broadcast_address) + 1, subnet.prefixlen))
                on("lab1", f"docker network create --driver overlay --attachable --subnet {following} asked")
                made.append("asked")
            else:
                assert not subnet.overlaps(following)
    finally:
        for name in made:
            on("lab1", f"docker network rm {name}")


@pytest.mark.usefixtures("repaired")
def test_a_node_that_left_the_swarm() -> None:
    leave_swarm("lab3")
    playbook("verify", "--tags", "swarm").refused(
        f"lab3: role swarm: membership of swarm {NETWORK} is missing",
        "Remedy: ansible-playbook site.yml --tags swarm",
    )
    site("--tags", "swarm,training_container").done(change=True)
    assert ready("lab1").count("lab3") == 1
    assert inside("lab1", "ssh lab3 hostname") == container("lab3")


@pytest.mark.usefixtures("repaired")
def test_a_node_of_another_swarm() -> None:
    leave_swarm("lab3")
    on("lab3", "docker swarm init --advertise-addr eth0")
    before = snapshot()
    site(*WALKS).refused_by(("foreign_swarm", "lab3"))
    assert snapshot() == before
    site(*ROLES, *variables(swarm_allow_leave_foreign=True)).done(change=True)
    assert {swarm_state(name) for name in NODES} == {"active"}


def managers() -> dict[str, str]:
    """Return host name and reachability of the swarm's managers, as lab1 has them."""
    return {found.host: found.manager for found in swarm_nodes("lab1") if found.manager}


@pytest.mark.usefixtures("repaired")
def test_three_managers_of_which_one_is_lost(tmp_path: Path) -> None:
    # The lab's own variables stand beside its inventory.
    three = write_inventory(tmp_path / "three.json", list(NODES), [])
    group = tmp_path / "group_vars"
    group.mkdir()
    (group / "cluster.yml").write_text(
        (Path(__file__).parents[3] / "inventories/lab/group_vars/cluster.yml")
        .read_text(encoding="utf-8")
        .replace("{{ inventory_dir }}/../..", str(Path(__file__).parents[3])),
        encoding="utf-8",
    )
    try:
        playbook("site", *ROLES, inventory=three).done(change=True)
        assert managers() == {"lab1": "leader", "lab2": "reachable", "lab3": "reachable"}
        playbook("site", *ROLES, inventory=three).done(change=False)
        playbook("verify", "--tags", "swarm", inventory=three).done(change=False)
        # lab3 is lost. Two of three decide: the swarm goes on, and says that no more must be lost.
        on("lab3", "systemctl stop docker.socket docker.service")
        wait(lambda: "unreachable" in managers().values(), 60)
        on("lab1", "docker network create --driver overlay --attachable decided && docker network rm decided")
        two = write_inventory(tmp_path / "one.json", ["lab1"], ["lab2"])
        run = playbook("site", *WALKS, inventory=two)
        run.done(nodes=("lab1", "lab2"))
        for text in (
            "2 of the swarm's 3 managers answer, but not lab3; ",
            "swarm_removed_nodes: [lab3]",
            "(check: swarm_managers)",
        ):
            assert text in run.text, run.output[-3000:]
        # Demoting lab2 beside the lost one would leave one of two, which is no majority: refused, and nothing lost.
        playbook("site", "--tags", "swarm", inventory=two).refused("without it 1 of 2 managers answer")
        assert managers() == {"lab1": "leader", "lab2": "reachable", "lab3": "unreachable"}
        # Once it is said to be gone it is taken off the list, and then lab2 can go back to being a worker.
        removed_nodes = variables(swarm_removed_nodes=["lab3"])
        playbook("site", "--tags", "swarm", *removed_nodes, inventory=two).done(change=True, nodes=("lab1", "lab2"))
        assert managers() == {"lab1": "leader"}
        assert "lab3" not in [found.host for found in swarm_nodes("lab1")]
        playbook("site", "--tags", "swarm", *removed_nodes, inventory=two).done(change=False, nodes=("lab1", "lab2"))
    finally:
        # lab3 comes back with the memory of a swarm that does not know it any more.
        on(
            "lab3",
            "systemctl start docker.service && timeout 60 docker swarm leave --force || systemctl restart docker",
        )
        site(*ROLES).done()
    assert managers() == {"lab1": "leader"}


@pytest.mark.usefixtures("repaired")
def test_ports_that_somebody_else_listens_on() -> None:
    leave_swarm("lab3")
    listens = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 4789)); "
        "time.sleep(600)"
    )
    begin = (
        f'systemd-run --quiet --unit=taker python3 -c "{listens}"; '
        "for try in 1 2 3 4 5; do ss -lnu | grep -q :4789 && exit; sleep 1; done; exit 1"
    )
    with condition("lab3", begin, "systemctl stop taker"):
        site(*WALKS).refused_by(("swarm_ports", "lab3")).refused("UDP port 4789 is in use")
    site(*ROLES).done(change=True)


def test_all_is_whole_in_the_end() -> None:
    site(*variables(deepspeed_launch_script="")).done(change=False)
