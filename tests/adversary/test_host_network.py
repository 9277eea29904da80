# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the cluster's key, a process in a container and a sender on the network can do beyond what a job needs."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import typed

from tests import training_nodes
from tests.adversary.hostile import HOSTILE, MARK
from tests.role_values import NODES, variables
from tests.ssh_nodes import CLUSTER, SECOND, plan, texts, with_keys

OVERLAY = {"subnet": "10.64.0.0/24", "mtu": 1450, "addresses": {}}
MODES = {"overlay": "10.64.0.0/24", "host": "10.1.0.0/24"}


def given(mode: str, *roles: str, **changed: Any) -> dict[str, Any]:
    found = variables("overlay_network", "workspace", *roles, cluster_network_mode=mode, **changed)
    cluster = {**found["swarmspeed_cluster"], "overlay": OVERLAY, "host_keys": {}}
    files = {"/srv/swarmspeed/swarmspeed/etc/ssh/id_ed25519.pub": {"content": "ssh-ed25519 AAAA swarmspeed"}}
    facts = {"files": files, "packages": {}, "jobs": {}, "trees": {}, "fabric": {"infiniband": []}}
    facts.update(docker={"containers": {}}, system={"memory_bytes": 64 << 30})
    hostvars = {name: {"ansible_facts": {"swarmspeed": facts}} for name in NODES}
    return {**found, "swarmspeed_cluster": cluster, "ansible_facts": {"swarmspeed": facts}, "hostvars": hostvars}


def written(mode: str, **desired: Any) -> dict[str, str]:
    """The files of the containers' ssh, as they are planned for a node; variables have the types that the role says."""
    known = typed(SECOND, {"cluster_network_mode": mode, **desired}, {})
    found = texts(plan(with_keys(), {**CLUSTER, "overlay": OVERLAY}, **known), SECOND)
    return {name: f"\n{text}\n" for name, text in found.items()}


def key_options(mode: str, **desired: Any) -> list[str]:
    """The options of the one line in authorized_keys, as sshd splits them."""
    line = written(mode, **desired)["authorized_keys"].strip()
    options, dummy, rest = line.partition(" ")
    assert "\n" not in line and rest.startswith("ssh-ed25519 ")
    return re.findall(r'(?:[^,"]|"[^"]*")+', options)


@pytest.mark.parametrize("mode", MODES)
def test_a_stolen_key_is_used_from_elsewhere(mode: str) -> None:
    (source,) = [option for option in key_options(mode) if option.startswith("from=")]
    network = ipaddress.ip_network(source.removeprefix("from=").strip('"'))
    assert str(network) == MODES[mode]
    assert ipaddress.ip_address("203.0.113.7") not in network


@pytest.mark.parametrize("mode", MODES)
def test_the_key_forwards_ports_into_the_network_of_the_hosts(mode: str) -> None:
    options = key_options(mode)
    assert options[0] == "restrict" and "port-forwarding" not in options
    config = written(mode)["sshd_config"]
    for name in ("AllowTcpForwarding", "AllowStreamLocalForwarding", "AllowAgentForwarding", "X11Forwarding"):
        assert f"\n{name} no\n" in config
    for line in ("PermitTunnel no", "GatewayPorts no", "PermitUserRC no", "AuthenticationMethods publickey"):
        assert f"\n{line}\n" in config


@pytest.mark.parametrize("requested", [True, "true", "yes"])
def test_an_editor_gets_forwarding_only_where_it_is_asked_for(requested: Any) -> None:
    assert "port-forwarding" in key_options("overlay", ssh_trust_port_forwarding=requested)
    assert "\nAllowTcpForwarding yes\n" in written("overlay", ssh_trust_port_forwarding=requested)["sshd_config"]


def test_a_host_with_several_networks_still_comes_from_the_right_one() -> None:
    assert "\n  BindAddress 10.1.0.12\n" in written("host")["ssh_config"]
    assert "BindAddress" not in written("overlay")["ssh_config"]


def security(**changed: Any) -> tuple[list[str], str]:
    made = training_nodes.task_input(training_nodes.plan(training_nodes.facts(), **changed))
    return made["settings"]["security_opts"], made["make"]["labels"]["swarmspeed.spec"]


def test_a_process_of_a_container_gains_privileges_by_a_set_user_id_program() -> None:
    options, digest = security()
    assert options == ["no-new-privileges"]
    assert security(training_container_security_opts=["seccomp=unconfined"])[0] == [
        "seccomp=unconfined",
        "no-new-privileges",
    ]
    # Where an image needs sudo, it is said; and the container is made again, as its settings are others.
    assert security(training_container_no_new_privileges=False)[0] == []
    assert security(training_container_no_new_privileges=False)[1] != digest


def test_what_the_user_says_of_it_is_not_said_twice() -> None:
    assert security(training_container_security_opts=["no-new-privileges:true"])[0] == ["no-new-privileges:true"]


@pytest.mark.parametrize("kind", [kind for kind, value in HOSTILE.items() if isinstance(value, (str, type(None)))])
@pytest.mark.parametrize("field", ["state", "image", "image_id", "labels", "addresses"])
def test_no_command_has_what_a_node_says_of_its_container(field: str, kind: str) -> None:
    """Applied alone the role takes the image that the container has: one that a node named."""
    hostile = HOSTILE[kind]
    alone: dict[str, Any] = {"training_image_source": None, "training_container_shm_size": "8g"}
    container = training_nodes.running()
    reported = json.dumps({"image": hostile, "image_id": hostile})
    mappings = {
        "labels": {**container["labels"], "swarmspeed.settings": reported, str(hostile): hostile},
        "addresses": {hostile: hostile, "lab": hostile},
    }
    facts = training_nodes.facts({**container, field: mappings.get(field, hostile)})
    made = training_nodes.task_input(training_nodes.plan(facts, training_nodes.cluster(image=""), **alone))
    for name, part in made.items():
        text = json.dumps(part)
        assert MARK not in text and "{{" not in text and "{%" not in text and len(text) < 10_000, name
