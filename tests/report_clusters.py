# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Clusters to make reports of: three nodes, 64 nodes with 8 GPUs each, and a broken one. By seed.

They are CONSTRUCTED, NOT RECORDINGS. Every measurement in them is made up, with a slow
switch, a slow node and noise as such clusters have them. The forms are real: swarm, networks and containers go through
the parsers of node_facts, and the measurements have the format of verify.json and bench_network.json.

As a program it writes their pages: ``python tests/report_clusters.py FOLDER``.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.parsers import (
    container_facts,
    network_facts,
    swarm_facts,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import NAMES, ROLES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.document import document
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.inputs import Inputs, parse_bench, parse_verify
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.page import page

NOW = 1_795_330_800.0  # 2026-11-22 07:00 UTC
IMAGE = "swarmspeed/swarmspeed:4f2c91d08a7e"
DIGEST = "sha256:" + "9c1d04e7ab52" * 5
H100 = {"name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "compute_capability": "9.0"}
CHECKS = (("name", None, None), ("ssh", None, None), ("mtu", 8950, "bytes"), ("tcp", 0.4, "ms"))
SENTENCES = {role.name: f"{role.promise[0].upper()}{role.promise[1:]}." for role in ROLES}


def facts(
    name: str, number: int, *, gpus: int, cluster: str, managers: list[str], nodes: list[str], **other: Any
) -> Any:
    """What node_facts would say of a node of this cluster."""
    ids = {node: f"id-of-{node}" for node in nodes}
    jumbo = gpus > 0
    link = {
        "name": other.get("interface", "ens1f0np0" if jumbo else "eth0"),
        "mtu": other.get("mtu", 9000 if jumbo else 1400),
    }
    members = [
        {
            "ID": ids[node],
            "Description": {"Hostname": node},
            "Spec": {"Role": "manager" if node in managers else "worker", "Availability": "active"},
            "Status": {"State": "down" if node in other.get("down", ()) else "ready", "Addr": f"10.1.0.{index + 10}"},
            "ManagerStatus": {"Leader": node == managers[0]} if node in managers else {},
        }
        for index, node in enumerate(nodes)
    ]
    manager = name in managers
    info = {"Swarm": {"LocalNodeState": other.get("swarm", "active"), "NodeID": ids[name], "ControlAvailable": manager}}
    address = f"10.64.0.{number + 10}"
    running = other.get("running", True)
    if not running:
        info = {}
    return {
        "system": {
            "distribution": other.get("distribution", "debian"),
            "release": other.get("release", "13"),
            "kernel": other.get("kernel", "6.12.48+deb13-amd64"),
            "architecture": "x86_64",
            "cpus": 192 if gpus else 8,
            "memory_bytes": (2048 if gpus else 32) * 1024**3 - number * 4096,
            "python": "3.13.5",
        },
        "clock": {"offset": other.get("offset", round(0.01 * (number % 5), 3)), "uncertainty": 0.05},
        "packages": {"nvidia-container-toolkit": "1.18.1-1" if gpus else None},
        "gpu": {
            "present": gpus > 0,
            "slots": gpus,
            "gpus": [dict(H100, index=index) for index in range(gpus)],
            "pci_devices": [{}] * gpus,
            "driver": {"version": other.get("driver", "580.105.08" if gpus else None)},
            "cuda_version": "13.0" if gpus else None,
            "problems": other.get("gpu_problems", []),
        },
        "fabric": {
            "interfaces": [
                {
                    **link,
                    "kind": "physical",
                    "state": "up",
                    "speed_mbps": 100000 if gpus else 10000,
                    "addresses": [
                        {
                            "address": f"10.1.0.{number + 10}",
                            "prefix": 24,
                            "subnet": "10.1.0.0/24",
                            "family": "inet",
                            "scope": "global",
                        }
                    ],
                }
            ],
            "routes": [{"dst": "default", "dev": link["name"], "gateway": "10.1.0.1", "metric": 0, "table": "main"}],
            "default_interface": link["name"],
            "infiniband": [],
            "problems": [],
        },
        "docker": {
            "running": running,
            "error": other.get("error"),
            "version": other.get("engine", "26.1.5+dfsg1") if running else None,
            "swarm": swarm_facts(info, {"ID": "cluster"} if manager else None, members if manager else None),
            "networks": network_facts(
                [
                    {
                        "Name": cluster,
                        "Driver": "overlay",
                        "Scope": "swarm",
                        "Attachable": True,
                        "IPAM": {"Config": [{"Subnet": "10.64.0.0/24"}]},
                        "Options": {},
                    }
                ]
                if running
                else []
            ),
            "containers": container_facts(
                [
                    {
                        "Id": f"c{number}",
                        "Names": [f"/{cluster}-{name}"],
                        "State": other.get("container", "running"),
                        "Image": IMAGE,
                        "ImageID": other.get("image", DIGEST),
                        "NetworkSettings": {"Networks": {cluster: {"IPAddress": address}}},
                    }
                ]
                if running
                else []
            ),
        },
        "files": {},
    }


def history(
    seed: random.Random, steps: int, stop: int | None = None, nan_at: int | None = None
) -> list[dict[str, Any]]:
    """A loss that falls, and a speed with a dip where a checkpoint is written."""
    points = []
    for step in range(1, (stop or steps) + 1, max(1, steps // 200)):
        loss = 1.9 + 8.4 * math.exp(-step / (steps / 7)) + seed.gauss(0, 0.05)
        rate = 0.84 * (0.55 if step % (steps // 4) < steps // 80 else 1) + seed.gauss(0, 0.012)
        points.append(
            {"t": step / 0.84, "step": step, "loss": "nan" if nan_at and step >= nan_at else loss, "rate": rate}
        )
    return points


def job(name: str, nodes: list[str], slots: int, points: list[dict[str, Any]], **change: Any) -> dict[str, Any]:
    """One job as training_job_info tells it on the node that leads it."""
    world = len(nodes) * slots
    members = [
        {"name": node, "slots": list(range(slots)), "first_rank": index * slots} for index, node in enumerate(nodes)
    ]
    codes = change.pop("codes", {})
    summary = {
        "versions": {"deepspeed": "0.19.8", "torch": "2.13.0", "python": "3.13.5", "image": IMAGE},
        "launcher": "deepspeed",
        "world_size": {"expected": world, "seen": world},
        "nodes": {"expected": len(nodes), "seen": len(nodes)},
        "members": members,
        "ranks": {
            str(rank): {"node": nodes[rank // slots], "exit_code": codes.get(rank, codes.get("all", 0))}
            for rank in range(world)
        },
        "figures": {
            "step": points[-1]["step"] if points else None,
            "total": change.pop("total", points[-1]["step"] if points else None),
            "loss": points[-1]["loss"] if points else None,
            "samples_per_second": 431.2,
            "tokens_per_second": change.pop("tokens", None),
        },
        "history": points,
        "first_failure": change.pop("first_failure", None),
        "restarts": change.pop("restarts", []),
    }
    return {
        "name": name,
        "state": "succeeded",
        "reason": "",
        "run": 3,
        "leader": True,
        "since": "2026-11-22T06:31:40Z",
        "started_at": "2026-11-22T05:12:09Z",
        "seconds": 4771.0,
        "log_path": f"/srv/swarmspeed/swarmspeed/jobs/{name}/launcher.log",
        "summary": summary,
        **change,
    }


def verify(
    cluster: str, nodes: list[str], seed: random.Random, backend: str, interface: str, **change: Any
) -> dict[str, Any]:
    """verify.json of a cluster on which all is well, but for the pairs in ``failing`` and the roles in ``wrong``."""
    failing, wrong = change.get("failing", {}), change.get("wrong", {})
    pairs = []
    for source in nodes:
        for target in nodes:
            if source == target:
                continue
            for check, value, unit in CHECKS:
                entry = {"from": source, "to": target, "network": "container", "check": check, "ok": True}
                measured = value if unit != "ms" else round(abs(seed.gauss(0.42, 0.05)), 3)
                entry.update(value=measured, unit=unit, said="", reason="", remedy="")
                pairs.append({**entry, **failing.get((source, target, check), {})})
            for port in ("udp 4789", "udp 7946"):
                entry = {"from": source, "to": target, "network": "host", "check": port, "ok": True}
                entry.update(value=None, unit=None, said="", reason="", remedy="")
                pairs.append({**entry, **failing.get((source, target, port), {})})
    return {
        "version": 1,
        "cluster": cluster,
        "time": change.get("time", "2026-11-22T06:48:12Z"),
        "seconds": 11.4,
        "nodes": nodes,
        "roles": {role: {"ok": role not in wrong, "sentence": wrong.get(role, SENTENCES[role])} for role in NAMES},
        "pairs": pairs,
        "collective": {
            "backend": backend,
            "interfaces": dict.fromkeys(nodes, interface),
            "seconds": 2.1,
            "ok": True,
            "said": "",
        },
        "versions": {node: {"torch": "2.13.0", "deepspeed": "0.19.8", "nccl": "2.29.3"} for node in nodes},
    }


def links(
    nodes: list[str], seed: random.Random, rate: float, delay: float, *, slow: Iterable[str], rack: int
) -> list[dict[str, Any]]:
    """All pairs: noise, a longer way between racks, and nodes in ``slow`` whose link runs at a quarter of its rate."""
    found = []
    for one, source in enumerate(nodes):
        for other, target in enumerate(nodes):
            if source == target:
                continue
            far = rack and one // rack != other // rack
            bad = source in slow or target in slow
            found.append(
                {
                    "from": source,
                    "to": target,
                    "gigabits_per_second": round(
                        rate * (0.26 if bad else 0.93 if far else 1) * seed.uniform(0.97, 1.01), 3
                    ),
                    "latency_ms": round(delay * (3.1 if bad else 1.4 if far else 1) * seed.uniform(0.95, 1.08), 4),
                }
            )
    return found


def collectives(seed: random.Random, top: float, half: float) -> list[dict[str, Any]]:
    """Bus bandwidth that rises with the message: ``top`` GB/s at the end, half of it at ``half`` bytes."""
    found = []
    for op, share in (("all_reduce", 1.0), ("all_gather", 0.94), ("reduce_scatter", 0.91)):
        for power in range(12, 31, 2):
            count = 2**power
            rate = top * share * count / (count + half) * seed.uniform(0.97, 1.02)
            found.append({"op": op, "bytes": count, "seconds": count / rate / 1e9, "busbw_gigabytes_per_second": rate})
    return found


def bench(cluster: str, nodes: list[str], seed: random.Random, gpus: int, slow: tuple[str, ...] = ()) -> dict[str, Any]:
    """bench_network.json: an overlay that costs bandwidth, and nodes in ``slow``."""
    rate, delay, top = (97.0, 0.021, 11.4) if gpus else (15.6, 0.061, 1.31)
    rack = 16 if len(nodes) > 16 else 0
    return {
        "version": 1,
        "cluster": cluster,
        "time": "2026-11-20T17:20:00Z",
        "seconds": 84.0,
        "backend": "nccl" if gpus else "gloo",
        "nodes": nodes,
        "world_size": len(nodes) * max(gpus, 1),
        "networks": {
            "host": {
                "pairs": links(nodes, seed, rate, delay, slow=slow, rack=rack),
                "collectives": collectives(seed, top, 3e6),
            },
            "overlay": {
                "pairs": links(nodes, seed, rate * 0.34, delay * 1.9, slow=slow, rack=rack),
                "collectives": collectives(seed, top * 0.32, 2e6),
            },
            "overlay_encrypted": {"error": "The kernel has no ESP, so an encrypted overlay carries no traffic here."}
            if not gpus
            else {"pairs": [], "collectives": collectives(seed, top * 0.09, 1e6)},
        },
        "floor": {
            "tool": "iperf3 3.18",
            "pairs": [
                {k: v for k, v in link.items() if k != "latency_ms"}
                for link in links(nodes, seed, rate, delay, slow=slow, rack=rack)
            ],
        },
        "recommendation": {
            "text": "host network: 3.1 × the bus bandwidth here; set cluster_network_mode: host.",
            "ratio": 3.1,
            "set": {"cluster_network_mode": "host"},
        },
        "slow_nodes": [
            {
                "node": name,
                "network": "host",
                "text": f"{name} sends at most 25.4 Gbit/s in host, whatever the other node, where the best quarter "
                "of the pairs has 97: check its link, cable and switch port (ethtool).",
            }
            for name in slow
        ],
        "slow_pairs": [
            {
                "from": name,
                "to": other,
                "network": "host",
                "text": f"{name} → {other} in host: 25.2 Gbit/s, where the best quarter of the pairs has 97.",
            }
            for name in slow
            for other in nodes[:3]
        ],
        "asymmetric": [],
        "thresholds": {},
        "failed": [],
    }


def three() -> Inputs:
    """Three small nodes without a GPU, all well."""
    seed, nodes, cluster = random.Random(3), ["lab1", "lab2", "lab3"], "swarmspeed"
    found = {
        name: facts(
            name,
            number,
            gpus=0,
            cluster=cluster,
            managers=nodes[:1],
            nodes=nodes,
            interface="eth0",
            release="13" if number == 1 else "12",
            engine="26.1.5+dfsg1" if number == 1 else "20.10.24+dfsg1",
            kernel="6.12.48",
        )
        for number, name in enumerate(nodes)
    }
    digits = job("digits", nodes, 1, history(seed, 900), seconds=58.0, since="2026-11-22T06:52:40Z")
    return Inputs(
        cluster=cluster,
        now=NOW,
        hosts=tuple(nodes),
        managers=("lab1",),
        facts=found,
        silent={},
        jobs={"lab1": {"jobs": [digits]}, **{name: {"jobs": []} for name in nodes[1:]}},
        verify=parse_verify(json.dumps(verify(cluster, nodes, seed, "gloo", "eth0"))),
        bench=parse_bench(json.dumps(bench(cluster, nodes, seed, 0))),
        network_name=cluster,
        addresses={name: f"10.1.0.{number + 10}" for number, name in enumerate(nodes)},
    )


def sixty_four() -> Inputs:
    """64 servers with 8 GPUs each in four racks; gpu23 has a link at a quarter of its rate, gpu40 another driver."""
    seed, nodes, cluster = random.Random(64), [f"gpu{number:02d}" for number in range(1, 65)], "swarmspeed"
    found = {
        name: facts(
            name,
            number,
            gpus=8,
            cluster=cluster,
            managers=nodes[:3],
            nodes=nodes,
            driver="570.195.03" if name == "gpu40" else "580.105.08",
            kernel="6.12.43+deb13-amd64" if number in (7, 8, 9, 30) else "6.12.48+deb13-amd64",
        )
        for number, name in enumerate(nodes)
    }
    jobs = [
        job(
            "llama-70b",
            nodes,
            8,
            history(seed, 24000),
            tokens=1_182_000.0,
            restarts=[
                {
                    "attempt": 2,
                    "reason": "gpu17 lost a GPU (Xid 79)",
                    "at": "2026-11-21T11:02:00Z",
                    "resumed_from": "global_step9000",
                }
            ],
        ),
        job(
            "warmup",
            nodes[:4],
            8,
            history(seed, 400),
            started_at="2026-11-20T09:00:00Z",
            since="2026-11-20T09:20:00Z",
            run=1,
        ),
    ]
    return Inputs(
        cluster=cluster,
        now=NOW,
        hosts=tuple(nodes),
        managers=tuple(nodes[:3]),
        facts=found,
        silent={},
        jobs={"gpu01": {"jobs": jobs}, **{name: {"jobs": []} for name in nodes[1:]}},
        verify=parse_verify(json.dumps(verify(cluster, nodes, seed, "nccl", "ens1f0np0"))),
        bench=parse_bench(json.dumps(bench(cluster, nodes, seed, 8, ("gpu23",)))),
        network_name=cluster,
        addresses={name: f"10.1.0.{number + 10}" for number, name in enumerate(nodes)},
    )


def broken() -> Inputs:
    """Six nodes on which much is wrong, with long names; nothing was benchmarked."""
    seed, cluster = random.Random(6), "research-east"
    nodes = [f"train-node-{number}.east.example.org" for number in range(1, 7)]
    changes: dict[int, dict[str, Any]] = {
        1: {
            "driver": None,
            "gpu_problems": [
                "The driver does not answer: nvidia-smi cannot talk to the kernel module. Reboot, or see dkms status."
            ],
        },
        2: {"running": False, "error": "no answer from the Docker engine at /var/run/docker.sock"},
        4: {"container": "exited", "offset": 121.4, "mtu": 1500},
    }
    found = {
        name: facts(
            name,
            number,
            gpus=8,
            cluster=cluster,
            managers=nodes[:1],
            nodes=nodes,
            down=(nodes[3],),
            **changes.get(number, {}),
        )
        for number, name in enumerate(nodes)
        if number != 3
    }
    lost = {
        "ok": False,
        "said": "no answer",
        "reason": "UDP 4789 does not pass between their hosts.",
        "remedy": "",
    }
    cut = {
        "ok": False,
        "said": "no answer within 2 s",
        "reason": "UDP 4789 is closed between them: the overlay carries nothing.",
        "remedy": "Open 4789/udp between the nodes, or set swarm_data_path_port.",
    }
    pairs = [(one, other) for one in nodes for other in nodes if nodes[5] in (one, other)]
    failing = {(*pair, "udp 4789"): cut for pair in pairs} | {(*pair, "tcp"): lost for pair in pairs}
    failure = {
        "node": nodes[4],
        "rank": 35,
        "exit_code": -7,
        "cause": "The rank was killed by a bus error: /dev/shm of its container is full",
        "remedy": "Raise training_container_shm_size; 64 MiB is too little for NCCL between GPUs",
        "line": "RuntimeError: DataLoader worker (pid 4182) is killed by signal: Bus error.",
    }
    failed = job(
        "chat",
        nodes,
        8,
        history(seed, 2000, 700, nan_at=640),
        state="failed",
        total=2000,
        first_failure=failure,
        reason="rank 35 ended",
        codes={35: -7, "all": -15},
        since="2026-11-21T22:10:00Z",
    )
    wrong = {
        "swarm": f"{nodes[3]}: not in the swarm {cluster}. Remedy: ansible-playbook site.yml --tags swarm",
        "nvidia_driver": f"{nodes[1]}: the driver does not answer.",
    }
    return Inputs(
        cluster=cluster,
        now=NOW,
        hosts=tuple(nodes),
        managers=(nodes[0],),
        facts=found,
        silent={nodes[3]: "Failed to connect to the host via ssh: connect to host 10.1.0.13 port 22: No route to host"},
        jobs={nodes[0]: {"jobs": [failed]}, **{name: {"jobs": []} for name in nodes[1:] if name in found}},
        verify=parse_verify(
            json.dumps(
                verify(cluster, nodes, seed, "nccl", "eth0", failing=failing, wrong=wrong, time="2026-11-20T08:00:00Z")
            )
        ),
        bench=parse_bench(None),
        network_name=cluster,
        addresses={name: f"10.1.0.{number + 10}" for number, name in enumerate(nodes)},
    )


CASES = {"three": three, "sixty_four": sixty_four, "broken": broken}


def write(folder: Path) -> None:
    """Write the page of each case as FOLDER/NAME.html."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in CASES.items():
        (folder / f"{name}.html").write_text(page(document(make())), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
