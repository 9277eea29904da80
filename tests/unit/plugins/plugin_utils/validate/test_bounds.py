# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Each bound of what nodes return: one more than the most of any field is refused, and the most is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError, UnfitError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.readings import KEYS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate import (
    assets,
    bundle,
    docker,
    fabric,
    gpu,
    image,
    job,
    logs,
    node,
    probe,
)

from tests.adversary import hostile
from tests.adversary.hostile import KEY, Path, at, planted

HEX = "ab" * 32
FEW = 20_000
"""So many entries are made to see that the most is taken; of larger bounds only the refusal is tried."""


class Long(str):
    """A STAND-IN for a text of so many characters, which would take its memory."""

    characters = 0

    def __len__(self) -> int:
        return self.characters


def text(_honest: Any, most: int) -> Any:
    if most < 1 << 20:
        return "x" * most
    made = Long("x")
    made.characters = most
    return made


def entries(honest: Any, most: int) -> Any:
    return [honest[0]] * most


def named(honest: Any, most: int) -> Any:
    (value,) = list(honest.values())[:1]
    return {f"x{number}": value for number in range(most)}


def name(honest: Any, most: int) -> Any:
    return {"x" * most: next(iter(honest.values()))}


def number(_honest: Any, most: int) -> Any:
    return most


Bounds = dict[Path, tuple[Callable[[Any, int], Any], int]]

FACTS: dict[str, Any] = hostile.facts()
FACTS["jobs_succeeded"] = {"digits": {"spec": HEX, "finished_at": "now"}}
FACTS["trees_missing"] = FACTS["trees"]
FACTS["docker"]["image_clusters"] = {"swarmspeed:1": "lab"}
TREE, FOUND = "/srv/workspace", ("assets", "found", "net")
OF_FACTS: Bounds = {
    ("packages",): (name, 255),
    ("packages", "docker.io"): (text, 200),
    ("files",): (name, 4096),
    ("listening", "tcp", 0): (number, 65535),
    ("listening", "udp", 0): (number, 65535),
    ("trees", TREE, 0): (text, 4096),
    ("trees_missing", TREE, 0): (text, 4096),
    ("sysctls", "net.core.rmem_max"): (text, 4096),
    ("jobs",): (name, 4096),
    ("jobs_succeeded",): (name, 4096),
    (*FOUND, "changed", 0): (text, 4096),
    (*FOUND, "missing", 0): (text, 4096),
    (*FOUND, "files"): (name, 4096),
    ("code", "left", 0): (text, 4096),
    ("code", "copied"): (name, 4096),
    ("code", "kept"): (name, 4096),
    ("code", "running", "other", 0): (text, 4096),
    ("services", "addresses"): (name, 4096),
    ("services", "addresses", "10.70.0.5"): (text, 4096),
    ("services", "resolved"): (name, 4096),
    ("services", "resolved", "proxy.example.com"): (entries, 10_000),
    ("engine", "config"): (name, 4096),
    ("firewall", "ephemeral_ports"): (entries, 2),
    ("firewall", "ephemeral_ports", 0): (number, 65535),
    ("firewall", "open", "ipv4", "tcp"): (entries, 64),
    ("firewall", "open", "ipv4", "tcp", 0): (entries, 2),
    ("firewall", "open", "ipv4", "tcp", 0, 0): (number, 65535),
    ("gpu", "problems"): (lambda _honest, most: ["x"] * most, 1000),
}
OF_DOCKER: Bounds = {
    ("swarm", "nodes"): (entries, 100_000),
    ("swarm", "labels", "swarmspeed.cluster"): (text, 4096),
    ("swarm", "default_addr_pool"): (entries, 1000),
    ("networks", "lab", "subnets"): (entries, 1000),
    ("containers", "lab-gpu1", "labels"): (name, 4096),
    ("containers", "lab-gpu1", "labels", "swarmspeed.address"): (text, 1 << 16),
    ("containers", "lab-gpu1", "image"): (text, 4096),
    ("images",): (name, 4096),
    ("image_contents",): (name, 4096),
    ("image_clusters",): (name, 4096),
    ("image_clusters", "swarmspeed:1"): (text, 4096),
}
OF_FABRIC: Bounds = {
    ("interfaces",): (entries, 100_000),
    ("interfaces", 0, "mtu"): (number, 1 << 32),
    ("interfaces", 0, "addresses"): (entries, 100_000),
    ("interfaces", 0, "addresses", 0, "prefix"): (number, 128),
    ("interfaces", 0, "members"): (entries, 100_000),
    ("interfaces", 0, "numa_node"): (number, 4096),
    ("infiniband",): (entries, 1024),
    ("infiniband", 0, "ports"): (entries, 1024),
    ("infiniband", 0, "ports", 0, "port"): (number, 65535),
    ("infiniband", 0, "ports", 0, "gids"): (entries, 100_000),
    ("infiniband", 0, "interfaces"): (entries, 1024),
    ("infiniband", 0, "numa_node"): (number, 4096),
}
OF_GPU: Bounds = {
    ("slots",): (number, 1024),
    ("gpus",): (entries, 1024),
    ("gpus", 0, "numa_node"): (number, 4096),
    ("gpus", 0, "mig", "instances"): (entries, 1000),
    ("pci_devices",): (entries, 4096),
    ("pci_devices", 0, "numa_node"): (number, 4096),
    ("nvswitches",): (entries, 4096),
}

REQUESTED = {"asked": {"slots": [0]}}
ANSWER = {
    "addresses": ["10.0.0.1"],
    "names": {"gpu2": {"addresses": ["10.0.0.2"]}},
    "exports": {"/srv": ["nfs"]},
    "locks": ["x"],
    "chdir": "/workspace",
}
OF_PROBE: Bounds = {
    ("asked", "slots"): (entries, 4096),
    ("asked", "slots", 0): (number, 1 << 20),
    ("answer", "addresses"): (entries, 10_000),
    ("answer", "names", "gpu2", "addresses"): (entries, 1000),
    ("answer", "exports", "/srv"): (entries, 16),
    ("answer", "locks"): (entries, 10_000),
    ("answer", "chdir"): (text, 1 << 16),
}

DIGEST = f"sha256:{HEX}"
IMAGE = {
    "architecture": "x86_64",
    "store": "graph",
    "image": {"content": DIGEST, "layers": [DIGEST], "os": "linux", "architecture": "amd64", "history": [7]},
    "images": [{"id": DIGEST, "layers": ["x"]}],
    "free": {"engine": 1 << 40, "spool": 1 << 40, "same": False},
    "places": {"engine": "/var/lib/docker", "spool": "/srv"},
    "spooled": {"ab": 3},
    "account": "root",
    "host_key": KEY,
    "public_key": KEY,
}
OF_IMAGE: Bounds = {
    ("image", "layers"): (entries, 10_000),
    ("image", "history"): (entries, 10_000),
    ("images",): (entries, 100_000),
    ("images", 0, "layers"): (entries, 10_000),
    ("spooled",): (named, 100_000),
}
TRANSFER = {"running": {"pid": 7}, "received": {"gpu1": 1}, "notes": ["x"]}
OF_TRANSFER: Bounds = {
    ("running",): (named, 100),
    ("received",): (named, 10_000),
    ("notes",): (entries, 100),
}

LOGS = {"files": [{"path": "a", "mtime_ns": 1, "data": "x"}], "more": False, "problems": ["x"]}
OF_LOGS: Bounds = {
    ("files",): (entries, 100_000),
    ("files", 0, "mtime_ns"): (number, 1 << 62),
    ("files", 0, "data"): (text, 1 << 30),
    ("problems",): (entries, 10_000),
}

ROW = [0] * len(KEYS)
REPLY: dict[str, Any] = {
    "job": {
        "name": "digits",
        "state": "running",
        "exit_code": 0,
        "log": ["x"],
        "members": [{"name": "gpu1", "slots": [0], "first_rank": 0}],
        "shrunk_from": {"left_out": ["gpu2"]},
        "channel_port": 1,
        "master_port": 1,
        "gpus": {"gpu1": [ROW]},
        "nccl": {"nodes": {"gpu1": {"devices": ["mlx5_0"]}}},
        "hosts": ["gpu1"],
    },
    "log": "",
    "log_offset": 0,
    "log_size": 0,
    "log_path": "/srv/jobs/digits/launcher.log",
}
OF_REPLY: Bounds = {
    ("log",): (text, 64 << 20),
    ("job", "name"): (text, 63),
    ("job", "exit_code"): (number, 1 << 31),
    ("job", "log"): (entries, 100_000),
    ("job", "log", 0): (text, 1 << 16),
    ("job", "members"): (entries, 10_000),
    ("job", "members", 0, "slots"): (entries, 1024),
    ("job", "members", 0, "first_rank"): (number, 1 << 24),
    ("job", "shrunk_from", "left_out"): (entries, 10_000),
    ("job", "channel_port"): (number, 65535),
    ("job", "master_port"): (number, 65535),
    ("job", "gpus"): (named, 10_000),
    ("job", "gpus", "gpu1"): (entries, 1024),
    ("job", "nccl", "nodes"): (named, 10_000),
    ("job", "nccl", "nodes", "gpu1", "devices"): (entries, 64),
    ("job", "hosts"): (entries, 10_000),
}

STANZA = f"Package: one\nVersion: 1\nArchitecture: amd64\nFilename: ./one.deb\nSize: 3\nSHA256: {HEX}"
DEBS = [{"stanza": STANZA}]


def described(_honest: Any, most: int) -> str:
    begun = f"{STANZA}\nDescription: "
    return begun + "x" * (most - len(begun))


OF_DEBS: Bounds = {
    ("debs",): (entries, 100_000),
    ("debs", 0, "stanza"): (described, 1 << 18),
}

ANSWERS: dict[str, tuple[Callable[[Any], Any], Mapping[str, Any], Bounds]] = {
    "node_facts": (node.FACTS, FACTS, OF_FACTS),
    "docker": (docker.DOCKER, FACTS["docker"], OF_DOCKER),
    "fabric_info": (fabric.FABRIC_INFO, FACTS["fabric"], OF_FABRIC),
    "gpu_info": (gpu.GPU_INFO, FACTS["gpu"], OF_GPU),
    "job_precheck": (lambda value: probe.probes({"gpu1": value}), {**REQUESTED, "answer": ANSWER}, OF_PROBE),
    "image_transfer's start": (lambda value: image.gathered({"gpu1": value}), IMAGE, OF_IMAGE),
    "image_transfer": (lambda value: image.reply("gpu1", value), TRANSFER, OF_TRANSFER),
    "asset_transfer": (lambda value: assets.reply("gpu1", value), TRANSFER, OF_TRANSFER),
    "job_logs": (lambda value: logs.reply("gpu1", value), LOGS, OF_LOGS),
    "training_job": (lambda value: job.reply("gpu1", value), REPLY, OF_REPLY),
    "bundle_collect": (lambda value: bundle.reported("gpu1", value["debs"]), {"debs": DEBS}, OF_DEBS),
}
CASES = [(answer, path) for answer, (_parser, _honest, bounds) in ANSWERS.items() for path in bounds]


@pytest.mark.parametrize(("answer", "path"), CASES, ids=[f"{answer} {path}" for answer, path in CASES])
def test_the_most_is_taken_and_one_more_is_refused(answer: str, path: Path) -> None:
    parser, honest, bounds = ANSWERS[answer]
    make, most = bounds[path]
    if most <= FEW or make in (number, text, described):
        parser(planted(honest, path, make(at(honest, path), most)))
    with pytest.raises((UnfitError, ReportedError), match=rf", not (?:.*\b{most}\b|the name of a job)"):
        parser(planted(honest, path, make(at(honest, path), most + 1)))
