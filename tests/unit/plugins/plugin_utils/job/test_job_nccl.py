# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Sentences on what NCCL has connected. All values are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.nccl import sentences, statement, warnings
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.table import table
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.fallback import REMEDY
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.job import infos

LOG = "/srv/jobs/chat/launcher.log"


def node(network: str = "Socket", *devices: str, interface: str = "=eth0", hcas: str = "") -> dict[str, Any]:
    return {"network": network, "devices": list(devices), "interface": interface, "hcas": hcas}


def found(connected: int = 4, size: int = 4, rings: bool = True, **nodes: Any) -> dict[str, Any]:
    return {"size": size, "connected": connected, "rings": rings, "nodes": nodes}


ETH = node("Socket", "eth0")
IB = node("IB", "mlx5_0:1", "mlx5_1:1", hcas="=mlx5_0:1,mlx5_1:1")
FIRST = {
    "state": "NCCL has connected 4 of 4 ranks, all rings: sockets on eth0 (gpu1, gpu2)",
    "other": "NCCL has connected 3 of 4 ranks: IB on mlx5_0:1, mlx5_1:1 (gpu1); sockets on eth0 (gpu2)",
    "many": "NCCL has connected 4 of 4 ranks, all rings: sockets on eth0 (gpu1 to gpu9, 9 nodes)",
    "plug": "NCCL has connected 4 of 4 ranks, all rings: AWS Libfabric (gpu1)",
    "none": "NCCL has connected 4 of 4 ranks, all rings",
    "alone": "NCCL has connected 4 of 4 ranks, all rings: sockets on eth0",
}


@pytest.mark.parametrize(
    ("nccl", "text"),
    [
        (found(gpu1=ETH, gpu2=ETH), FIRST["state"]),
        (found(3, rings=False, gpu1=IB, gpu2=ETH), FIRST["other"]),
        ({**found(), "nodes": {f"gpu{number}": ETH for number in range(1, 10)}}, FIRST["many"]),
        (found(gpu1=node("AWS Libfabric")), FIRST["plug"]),
        (found(gpu1=node("")), FIRST["none"]),
        ({**found(), "nodes": {"": ETH}}, FIRST["alone"]),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_statement(nccl: dict[str, Any] | None, text: str) -> None:
    assert statement(nccl, 4) == text


@pytest.mark.parametrize(
    "nccl",
    [
        found(gpu1=ETH, gpu2=ETH),
        found(gpu1=IB, gpu2=IB),
        found(gpu1=node("Socket", "eth0", interface="eth")),
        found(gpu1=node("Socket", "eth0", "eth1", interface="=eth0,eth1")),
        found(gpu1=node("Socket", "eth0", interface="^docker0,lo")),
        found(gpu1=node("Socket", "eth0", interface="")),
        found(gpu1=node("IB", "mlx5_0:1", "mlx5_0:2", hcas="=mlx5_0")),
        found(gpu1=node("IB", "mlx5_3:1", hcas="mlx5")),
        found(gpu1=node("AWS Libfabric")),
        None,
    ],
)
def test_nothing_is_wrong_with(nccl: dict[str, Any] | None) -> None:
    assert list(warnings(nccl, 4, LOG)) == []


@pytest.mark.parametrize(
    ("nccl", "text"),
    [
        (
            found(gpu1=ETH, gpu2=node("Socket", "docker_gwbridge")),
            "on gpu2 NCCL uses docker_gwbridge, but nccl_env chose eth0. Remedy: take NCCL_SOCKET_IFNAME out of the"
            " script, deepspeed_launch_environment and nccl_env_environment, and launch again",
        ),
        (
            found(gpu1=node("Socket", "eth0", "eth10")),
            "on gpu1 NCCL uses eth10, but nccl_env chose eth0. Remedy: take NCCL_SOCKET_IFNAME out of the"
            " script, deepspeed_launch_environment and nccl_env_environment, and launch again",
        ),
        (
            found(gpu1=node("IB", "mlx5_0:1", "mlx5_9:1", hcas="=mlx5_0:1")),
            "on gpu1 NCCL uses the HCAs mlx5_9:1, but nccl_env chose mlx5_0:1. Remedy: take NCCL_IB_HCA out of the"
            " script, deepspeed_launch_environment and nccl_env_environment, and launch again",
        ),
        (
            found(gpu1=IB, gpu2=node("Socket", "eth0", hcas="=mlx5_0:1")),
            "on gpu2 NCCL fell back to sockets (eth0), but nccl_env chose the HCAs mlx5_0:1. Remedy: see the lines"
            f" NET/IB in gpu2:/srv/jobs/chat/ranks; {REMEDY}",
        ),
        (
            found(2, 2, gpu1=ETH, gpu2=ETH),
            "the largest communicator of NCCL has 2 ranks, but the job has 4. If the script creates no groups of its "
            "own, its parts train separately. Remedy: have it call init_process_group with the WORLD_SIZE and RANK that"
            " its launcher sets",
        ),
        (
            found(3, gpu1=ETH, gpu2=ETH),
            "NCCL has connected 3 of 4 ranks so far. If this does not change, the others did not start or cannot "
            "reach it."
            " Remedy: see the last lines of each rank below /srv/jobs/chat/ranks on its node, and run verify.yml",
        ),
    ],
)
def test_what_is_not_as_it_should_be(nccl: dict[str, Any], text: str) -> None:
    assert list(warnings(nccl, 4, LOG)) == [text]


def test_status_says_it_of_a_job_that_runs() -> None:
    job = {"name": "chat", "state": "running", "log_path": LOG, "world_size_expected": 4, "nccl": found(gpu1=ETH)}
    lines = table(infos({"gpu1": {"jobs": [job]}}))
    assert (
        lines[2:]
        == sentences("chat", job)
        == ["chat: NCCL has connected 4 of 4 ranks, all rings: sockets on eth0 (gpu1)."]
    )
    assert len(table(infos({"gpu1": {"jobs": [{**job, "state": "succeeded"}]}}))) == 2
    assert len(table(infos({"gpu1": {"jobs": [{**job, "nccl": {}}]}}))) == 2


@pytest.mark.parametrize(
    "forged", ["x", {"size": "4"}, {"nodes": ["gpu1"]}, {"nodes": {"a b": {}}}, {"nodes": {"gpu1": {"devices": [7]}}}]
)
def test_what_a_node_forged_is_named_and_not_used(forged: Any) -> None:
    job = {"name": "chat", "state": "running", "log_path": LOG, "nccl": forged}
    read = infos({"gpu1": {"jobs": [job]}})["gpu1"]["jobs"][0]
    assert "nccl" not in read
    assert "what is recorded of it is not what a job writes: nccl" in read["reason"]


def test_what_a_device_is_called_stays_on_its_line() -> None:
    job = {"name": "chat", "state": "running", "log_path": LOG, "nccl": found(gpu1=node("Socket", "e\n\x1b[2J"))}
    text = "".join(table(infos({"gpu1": {"jobs": [job]}}))[2:])
    assert "\x1b" not in text and "\n" not in text and "\\x1b[2J" in text
