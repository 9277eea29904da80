# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is read from NCCL's lines.

Those of one rank on one H100 are recorded (fixtures/job); the others are made up from the format strings of the
releases named.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.messages import (
    LONGEST_SETTING,
    MOST_DEVICES,
    from_follower,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.nccl_log import (
    NcclLog,
    chosen,
    merged,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.nccl import statement, warnings
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.growth import assert_growth

FIXTURES = Path(__file__).parents[2] / "fixtures" / "job"
HEAD = "gpu1:4711:4788 [0] NCCL INFO "
OLD = f"{HEAD}comm 0x55d8c0a3f0 rank 1 nranks 4 cudaDev 1 busId 3b000 - Init COMPLETE"  # 2.10.3
NEW = (  # 2.30.7
    f"{HEAD}ncclCommInitRankConfig comm 0x55d8c0a3f0 rank 1 nranks 4 cudaDev 1 nvmlDev 1 busId 3b000"
    " commId 0x8a6df0e1b2c3d4e5 - Init COMPLETE"
)
SPLIT = (  # 2.26.2
    f"{HEAD}ncclCommSplit comm 0x55d8 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3b000 parent 0x55d9 splitCount 1"
    " color 7 key 0 - Init COMPLETE"
)
RINGS = f"{HEAD}Connected all rings"


def read(*lines: str, world: int = 4) -> dict[str, Any]:
    log = NcclLog(world)
    for line in lines:
        log.feed(line)
    return log.found()


@pytest.mark.parametrize("line", [OLD, NEW, f"gpu2: rank 1: {NEW}", f"[1,1]<stdout>:{OLD}\r"])
def test_a_rank_that_is_connected(line: str) -> None:
    assert read(line) == {"size": 4, "ranks": [1], "rings": False, "network": "", "devices": []}


def test_the_log_of_one_rank_on_an_h100() -> None:
    """For a single rank NCCL 2.28.9 does not print ``Connected all rings``, although the script calls collectives."""
    lines = (FIXTURES / "nccl_h100_x1.txt").read_text(encoding="utf-8").splitlines()
    found = read(*lines, world=1)
    assert found == {"size": 1, "ranks": [0], "rings": False, "network": "Socket", "devices": ["lo"]}
    together = merged({"gpu": {**found, "interface": "=lo", "hcas": ""}}, ["gpu"])
    assert statement(together, 1) == "NCCL has connected 1 of 1 ranks: sockets on lo (gpu)"
    assert list(warnings(together, 1, "/jobs/computing/launcher.log")) == []
    before = [line for line in lines if "Init COMPLETE" not in line]
    assert read(*before, world=1) == {}


@pytest.mark.parametrize("words", ["", ", use ring PXN 0 GDR 1", ", use ring PXN 0 GDR 1\n"])
def test_its_rings(words: str) -> None:
    assert read(OLD, RINGS + words)["rings"] is True


@pytest.mark.parametrize(
    ("lines", "network", "devices"),
    [
        (["NET/Socket : Using [0]eth0:10.0.1.3<0>", "Using network Socket"], "Socket", ["eth0"]),
        (["NET/Socket : Using [0]bond0.12:10.0.1.3<0> [1]eth1:fe80::1%eth1<0>"], "Socket", ["bond0.12", "eth1"]),
        (["NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.4<0>"], "IB", ["mlx5_0:1", "mlx5_1:1"]),
        (["NET/IB : Using [0]mlx5_0:1:2:3/IB ; OOB eth0:10.1.0.4<0>", "Using network IB"], "IB", ["mlx5_0:1"]),
        (
            ["NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB eth0:1.2.3.4<0>"],
            "IB",
            ["mlx5_0:1", "mlx5_1:1"],
        ),
        (
            ["NET/IB : No device found.", "NET/Socket : Using [0]eth0:10.0.1.3<0>", "Using network Socket"],
            "Socket",
            ["eth0"],
        ),
        (["NET/IB : Using [RO]; OOB lo:127.0.0.1<0>", "NET/Socket : Using [0]lo:127.0.0.1<0>"], "Socket", ["lo"]),
        (["NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:1.2.3.4<0>", "Using network AWS Libfabric"], "AWS Libfabric", []),
        (["NET/Socket: Using 2 threads and 8 sockets per thread"], "", []),
        (["Bootstrap : Using docker_gwbridge:172.18.0.3<0>"], "", []),
    ],
)
def test_network_and_devices(lines: list[str], network: str, devices: list[str]) -> None:
    found = read(OLD, *(HEAD + line for line in lines))
    assert (found["network"], found["devices"]) == (network, devices)


def test_the_widest_communicator_counts() -> None:
    assert read(SPLIT, OLD, SPLIT)["ranks"] == [1]
    assert read(SPLIT)["size"] == 2


@pytest.mark.parametrize(
    "line",
    [
        OLD.replace("NCCL INFO", "said"),
        OLD.replace("rank 1", "rank 4"),
        OLD.replace("nranks 4", "nranks 5"),
        OLD.replace("nranks 4", f"nranks {'9' * 4000}"),
        OLD.replace("COMPLETE", "START"),
        RINGS,
    ],
)
def test_nothing_is_found_in(line: str) -> None:
    assert read(line) == {}


def test_a_rank_may_print_what_it_likes() -> None:
    forged = [f"{HEAD}NET/Socket : Using " + "".join(f"[{n}]e{k}x{n}:1 " for n in range(90)) for k in range(90)]
    kinds = [f"{HEAD}NET/{'abcdefghij'[n % 10] * (n % 19 + 1)} : Using [0]x:1" for n in range(200)]
    found = read(OLD, *forged, *kinds)
    assert len(found["devices"]) == MOST_DEVICES


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.text(max_size=80) | st.sampled_from([OLD, NEW, SPLIT, RINGS, HEAD + "NET/IB : Using [0]"]), max_size=6)
)
def test_what_is_found_can_be_sent(pieces: list[str]) -> None:
    found = read("".join(pieces).replace("\n", ""), *pieces, world=4)
    if found:
        message = {"t": "nccl", **found, **chosen({})}
        assert from_follower(json.dumps(message).encode()) == message


@pytest.mark.parametrize("part", ["[0]x:1 ", "comm 0x1 rank 1 nranks 2 ", "NCCL INFO ", "0", " "])
def test_no_line_takes_long(part: str) -> None:
    for head in (HEAD, f"{HEAD}NET/IB : Using [0]", f"{HEAD}Using network ", OLD[: -len("COMPLETE")]):
        small, large = head + part * 500, head + part * 50_000
        assert_growth(partial(read, small), partial(read, large), less_than=30)


def test_what_nccl_env_chose(tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("# a = b\nNCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n# why\nNCCL_SOCKET_IFNAME==eth0\nNCCL_DEBUG=INFO\n")
    named = {"NCCL_CONF_FILE": str(conf)}
    assert chosen(named) == {"interface": "=eth0", "hcas": "=mlx5_0:1,mlx5_1:1"}
    conf.write_text(f"NCCL_SOCKET_IFNAME={'x' * (LONGEST_SETTING + 1)}\nNCCL_IB_DISABLE=1\nNCCL_IB_HCA=mlx5_0\n")
    assert chosen(named) == {"interface": "", "hcas": ""}
    conf.write_bytes(b"\xff\xfe")
    assert chosen(named) == chosen({"NCCL_CONF_FILE": str(tmp_path)}) == {"interface": "", "hcas": ""}


def test_what_the_nodes_of_a_job_report_together() -> None:
    about = {"rings": True, "network": "Socket", "devices": ["eth0"], "interface": "=eth0", "hcas": ""}
    one, two = {"size": 4, "ranks": [0, 1], **about}, {"size": 4, "ranks": [2], **about, "rings": False}
    kept = {key: about[key] for key in ("network", "devices", "interface", "hcas")}
    assert merged({"gpu2": two, "gpu1": one}, ["gpu1", "gpu2"]) == {
        "size": 4,
        "connected": 3,
        "rings": False,
        "nodes": {"gpu1": kept, "gpu2": kept},
    }
    assert list(merged({"gpu2": two, "gpu1": one}, ["gpu1", "gpu2"])["nodes"]) == ["gpu1", "gpu2"]
    alone = {**one, "size": 2, "ranks": [0, 1]}
    assert merged({"gpu1": alone, "gpu2": alone}, ["gpu1", "gpu2"])["connected"] == 2
    assert merged({}, ["gpu1"]) == {}
