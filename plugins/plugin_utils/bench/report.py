# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From what the nodes of a network benchmark printed to a verdict: figures, slow pairs, recommendation, thresholds.

Input everywhere: ``results`` by kind of network, each with ``network`` (its name), ``nodes`` (what each node's
container printed, by node) and, where it was not measured at all, ``error``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.common.marked_answer import marked_answer
from ...module_utils.network_bench.collectives import factor
from ...module_utils.network_bench.rank import MARK
from ..fabric.all_reduce import without_hcas
from ..nccl_env.settings import uses_rdma
from .plan import KINDS, checked
from .verdict import asymmetric, failures, recommend, slow

VERSION = 1
REMEDIES = {
    "host": (
        "A firewall on the hosts is the usual reason: it must let all TCP of the other hosts in, as with "
        "cluster_network_mode: host"
    ),
    "overlay": "ansible-playbook verify.yml says which pair of nodes it is",
    "overlay_encrypted": (
        "It needs ESP in the kernel of every host (module esp4) and IP protocol 50 between them; where a kernel lacks "
        "it, an encrypted overlay carries no traffic"
    ),
}


def by_kind(reported: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return ``results`` from what is kept of each node: by kind its ``network``, ``log`` and ``error``.

    ``rdma`` of a node is what its NCCL was configured with.
    """
    results: dict[str, dict[str, Any]] = {}
    for node, kinds in reported.items():
        for kind, entry in kinds.items():
            result = results.setdefault(kind, {"network": entry["network"], "nodes": {}})
            result["nodes"][node] = str(entry.get("log") or "")
            if entry.get("rdma"):
                result.setdefault("rdma", {})[node] = entry["rdma"]
            if entry.get("error") and not result.get("error"):
                result["error"] = f"{node}: {entry['error']}"
    return results


def spoken(text: str) -> dict[str, Any] | None:
    """What a node's container printed for us; None where it printed nothing."""
    return marked_answer(text, MARK)


def _silence(nodes: Sequence[str], logs: Mapping[str, str]) -> str:
    """Why there is no answer: the first node that says something, in the order of ranks."""
    for node in nodes:
        answer = spoken(str(logs.get(node) or ""))
        if answer and answer.get("error"):
            return f"{node}: {answer['error']}"
    for node in nodes:
        last = str(logs.get(node) or "").strip().splitlines()
        if last and not spoken("\n".join(last)):
            return f"{node}: {last[-1][:300]}"
    return "no container printed anything"


def _pairs(
    nodes: Sequence[str], parts: Sequence[Mapping[str, Any]], key: str, wanted: set[tuple[int, int]]
) -> list[Any]:
    """Join what both ends of each pair know. A pair without a throughput has an error."""
    joined: dict[tuple[int, int], dict[str, Any]] = {pair: {} for pair in wanted}
    # What the caller says of a failure is reported last, and so counts: it knows more than the one who waited.
    entries = [(number == entry["from"], entry) for number, part in enumerate(parts) for entry in part.get(key) or []]
    for dummy, entry in sorted(entries, key=lambda one: one[0]):
        pair = joined.setdefault((int(entry["from"]), int(entry["to"])), {})
        pair.update({name: value for name, value in entry.items() if name not in ("from", "to")})
    found = []
    for (one, other), values in sorted(joined.items()):
        line: dict[str, Any] = {"from": nodes[one], "to": nodes[other]}
        rate, latency = values.get("gigabits_per_second"), values.get("latency_ms")
        line["gigabits_per_second"] = None if rate is None else round(float(rate), 4)
        if key == "pairs":
            line["latency_ms"] = None if latency is None else round(float(latency), 3)
        if rate is None:
            line["error"] = str(values.get("error") or "not measured")
        found.append(line)
    return found


def _wanted(rounds: Sequence[Sequence[Sequence[int]]]) -> set[tuple[int, int]]:
    pairs = [(int(one), int(other)) for pairing in rounds for one, other in pairing]
    return {*pairs, *((other, one) for one, other in pairs)}


def _collectives(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    world = int(answer.get("world_size") or 0)
    return [
        {
            "op": case["op"],
            "bytes": int(case["bytes"]),
            "seconds": float(case["seconds"]),
            "busbw_gigabytes_per_second": round(case["bytes"] / case["seconds"] * factor(case["op"], world) / 1e9, 6),
        }
        for case in answer.get("measured") or []
    ]


def _without_hcas(
    kind: str, nodes: Sequence[str], parts: Sequence[Mapping[str, Any]], rdma: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """What was measured over sockets although HCAs are chosen: the figures are not those of the HCAs."""
    lines = {node: part.get("nccl") for node, part in zip(nodes, parts)}
    logs = {node: [str(line) for line in found] for node, found in lines.items() if isinstance(found, list)}
    hcas = {node: chosen["NCCL_IB_HCA"] for node, chosen in rdma.items() if uses_rdma(chosen)}
    found = without_hcas(logs, hcas) if kind == "host" else ()
    return [f"{words}: these are the figures of sockets. {remedy}" for words, remedy in found]


def network(kind: str, plan: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was measured in one network, and the floor of iperf3 that was measured along with it."""
    if result.get("error"):
        # An engine may refuse to attach a container at all where the kernel cannot encrypt.
        remedy = f" {REMEDIES[kind]}." if kind == "overlay_encrypted" else ""
        return {"error": f"{_sentence(str(result['error']))}{remedy}"}, {}
    nodes: list[str] = list(plan["nodes"])
    logs = result.get("nodes") or {}
    answer = spoken(str(logs.get(nodes[0]) or "")) or {}
    parts = answer.get("nodes") or []
    if answer.get("error") or len(parts) != len(nodes):
        return {"error": f"{_sentence(_silence(nodes, logs))} {REMEDIES[kind]}."}, {}
    measured = answer.get("collectives") or {}
    found: dict[str, Any] = {
        "network": str(result.get("network") or kind),
        "interfaces": {node: str(part.get("interface", "")) for node, part in zip(nodes, parts)},
        "seconds": round(float(answer.get("seconds") or 0), 1),
        "pairs": _pairs(nodes, parts, "pairs", _wanted(plan["rounds"])),
        "collectives": _collectives(measured),
    }
    notes = _without_hcas(kind, nodes, parts, result.get("rdma") or {})
    notes += [f"{op}: {reported}" for op, reported in (measured.get("unsupported") or {}).items()]
    notes += [str(measured["stopped"])] if measured.get("stopped") else []
    if len(plan["rounds"]) < plan["rounds_of_all"]:
        notes.append(f"{len(plan['rounds'])} of {plan['rounds_of_all']} rounds of pairs fitted into the time")
    if notes:
        found["notes"] = notes
    if measured.get("error"):
        found["error"] = f"{_sentence('collectives: ' + str(measured['error']))} {REMEDIES[kind]}."
    floor: dict[str, Any] = {}
    if kind == "host":
        pairs = _pairs(nodes, parts, "floor", _wanted(plan["floor_rounds"]))
        floor = {"tool": str(parts[0].get("iperf3") or "iperf3"), "pairs": pairs}
        reasons = {str(pair.get("error") or "") for pair in pairs}
        if len(reasons) == 1 and "" not in reasons:  # once is enough
            floor = {**floor, "error": _sentence(reasons.pop())}
    return found, floor


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words if words.endswith(".") else f"{words}."


def report(
    plan: Mapping[str, Any],
    results: Mapping[str, Mapping[str, Any]],
    *,
    cluster: str,
    time: str,
    seconds: float,
    in_use: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the whole report.

    ``time``: when it began, ISO 8601, UTC. ``seconds``: how long all took. ``in_use``: the kind of network that the
    cluster trains over; the thresholds are for this one.
    """
    networks: dict[str, Any] = {}
    floor: dict[str, Any] = {}
    for kind in KINDS:
        if kind in results:
            networks[kind], beside = network(kind, plan, results[kind])
            floor = beside or floor
    thresholds = {name: checked(settings)[name] for name in ("min_ratio", "min_gigabits", "min_busbw")}
    recommendation = recommend(networks, in_use)
    slow_nodes, slow_pairs = slow(networks, floor)
    return {
        "version": VERSION,
        "cluster": cluster,
        "time": time,
        "seconds": round(seconds, 1),
        "backend": plan["backend"],
        "nodes": plan["nodes"],
        "world_size": sum(plan["slots"]),
        "in_use": in_use,
        "networks": networks,
        "floor": floor or {"error": "not measured: it runs in the hosts' network, which was not measured."},
        "recommendation": recommendation,
        "slow_nodes": slow_nodes,
        "slow_pairs": slow_pairs,
        "asymmetric": asymmetric(networks),
        "thresholds": {name: value for name, value in thresholds.items() if value},
        "failed": failures(networks, in_use, thresholds),
    }
