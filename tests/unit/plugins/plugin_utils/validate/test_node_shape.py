# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Honest nodes pass: what the modules make of constructed machines is taken as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.interfaces import gather_fabric
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.parsers import (
    container_facts,
    network_facts,
    swarm_facts,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.node import node_facts

from tests.adversary.hostile import facts
from tests.unit.plugins.module_utils.fabric.fabric_machines import Machine, cloud_vm, dgx_hdr, ipoib, roce_bond


@pytest.mark.parametrize("machine", [dgx_hdr, roce_bond, cloud_vm, ipoib])
def test_fabrics_of_machines_pass(machine: Callable[[], Machine]) -> None:
    one = machine()
    fabric = gather_fabric(one, one.gpu)
    assert node_facts("gpu1", {**facts(), "fabric": fabric})["fabric"] == fabric


def docker(**changed: Any) -> dict[str, Any]:
    return {**facts(), "docker": {**facts()["docker"], **changed}}


def test_an_engine_that_is_not_there_passes() -> None:
    nothing: dict[str, Any] = {
        "running": False,
        "installed": False,
        "version": None,
        "networks": {},
        "containers": {},
        "images": {},
    }
    found = docker(**nothing, swarm=swarm_facts({}, None, None), error="no socket")
    assert node_facts("gpu1", found) == found


def test_what_engines_say_of_their_odder_things_passes() -> None:
    node = {"ID": "x1", "Description": {"Hostname": "gpu1"}, "Status": {"State": "down", "Addr": ""}}
    info = {
        "Swarm": {"LocalNodeState": "error", "NodeID": "", "NodeAddr": "", "Error": "x\ny", "ControlAvailable": True}
    }
    containers = [
        {"Id": "ab", "Names": ["/a"], "State": "exited", "Image": "sha256:0", "ImageID": "", "Labels": {"a": "b\nc"}},
        {"Id": "cd", "Names": ["/b"], "NetworkSettings": {"Networks": {"host": {"IPAddress": ""}}}},
    ]
    networks: list[dict[str, Any]] = [{"Name": "none", "Driver": "null", "IPAM": {"Config": None}}, {"Name": "my net"}]
    found = docker(
        swarm=swarm_facts(info, {"ID": "c"}, [node]),
        containers=container_facts(containers),
        networks=network_facts(networks),
    )
    passed = node_facts("gpu1", found)
    assert passed["docker"]["swarm"]["error"] == "x y"
    assert passed["docker"]["containers"] == found["docker"]["containers"]


def test_the_error_leads_to_the_field() -> None:
    found = docker(containers={"a": {"state": "up", "labels": {}, "addresses": {"net": "10.0.0.1\nx"}}})
    with pytest.raises(ReportedError) as caught:
        node_facts("gpu1", found)
    assert str(caught.value).startswith(
        "gpu1: node_facts.docker.containers[a].addresses[net] is '10.0.0.1\\nx', not an IP address. Remedy: "
    )
