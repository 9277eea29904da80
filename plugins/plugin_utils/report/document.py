# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The report as one document: everything that the page says, in its order. The page only writes it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.roles import NAMES
from ..core.values import mapping, sealed
from .findings import Finding, findings, grouped, levels, shown
from .inputs import Inputs
from .job import job_rows, job_view, jobs_of, members_of
from .network import network_view
from .nodes import differences, gpus_text, node_cells, properties, ranks_of, speed_text, view_of
from .text import age, briefly, clock, counted, domain, names, sequence

NO_SUBNET = "addresses given by hand"
SPACIOUS = 12
"""Nodes up to which each has a card with every rank; above, cells are small and say a range."""

BACKENDS = {"nccl": "NCCL", "gloo": "Gloo"}


def document(inputs: Inputs) -> dict[str, Any]:
    """Everything the page says, without a secret in it."""
    view, view_problem = view_of(inputs)
    jobs = jobs_of(inputs.jobs)
    last = jobs[0] if jobs else None
    ranks = ranks_of(inputs, view, members_of(last))
    found_by_node = {name: properties(inputs, view, name) for name in inputs.hosts}
    differing, alike = differences(found_by_node)
    found = findings(inputs, view_problem, differing)
    cells = node_cells(inputs, view, ranks, levels(found))
    result: dict[str, Any] = {
        "cluster": inputs.cluster,
        "made": clock(inputs.now),
        "verdict": _verdict(inputs, found),
        "figures": _figures(inputs, view, ranks),
        "findings": shown(found, inputs.hosts),
        "picture": {
            "cells": cells,
            "spacious": len(cells) <= SPACIOUS,
            "columns": _columns(len(cells)),
            "domain": domain(inputs.hosts),
            "rails": _rails(inputs, view, cells),
            "ranks_of": f"of job {last.name}" if last and members_of(last) else "as a job would have them",
        },
        "health": _health(inputs),
        "network": network_view(inputs),
        "job": job_view(last, inputs.now) if last else None,
        "jobs": job_rows(jobs[1:], inputs.now),
        "more_jobs": max(0, len(jobs) - 11),
        "without_job": _without_job(inputs),
        "differing": differing,
        "alike": alike,
        "table": _table(cells, found_by_node, alike),
    }
    for part in ("health", "network", "differing"):
        result[part] = briefly(result[part], inputs.hosts)
    if last:
        result["job"]["exits"] = briefly(result["job"]["exits"], inputs.hosts)
    clean: dict[str, Any] = sealed(result)
    return clean


def _without_job(inputs: Inputs) -> dict[str, Any]:
    """What is said in place of a job. Only where all nodes answered is there none; ``launch``: one may be started."""
    mute = [name for name in inputs.hosts if "jobs" not in inputs.jobs.get(name, {})]
    if len(mute) == len(inputs.hosts):
        return {"text": "Whether there are jobs is not known, as no node answered.", "launch": False}
    if mute:
        return {"text": f"No job on the nodes that answered; of {names(mute)} nothing is known.", "launch": False}
    return {"text": "There are no jobs.", "launch": True}


def _verdict(inputs: Inputs, found: Sequence[Finding]) -> dict[str, str]:
    bad, warn = (sum(one.level == level for one in found) for level in ("bad", "warn"))
    answered = len([name for name in inputs.hosts if inputs.facts.get(name)])
    everyone = len(inputs.hosts)
    who = (
        f"All {counted(everyone, 'node')} answer" if answered == everyone else f"{answered} of {everyone} nodes answer"
    )
    if everyone == 1 and answered:
        who = "The node answers"
    if bad:
        return {"level": "bad", "text": f"{who}; {counted(bad, 'thing is', 'things are')} wrong."}
    if warn:
        return {"level": "warn", "text": f"{who}; {counted(warn, 'thing is', 'things are')} worth checking."}
    if not inputs.verify.roles:
        return {"level": "ok", "text": f"{who}, and what was seen of them is right. Not verified yet."}
    return {"level": "ok", "text": f"{who}, and nothing needs attention."}


def _figures(inputs: Inputs, view: Mapping[str, Any], ranks: Mapping[str, Sequence[int]]) -> list[dict[str, str]]:
    """The cluster in a line: nodes, GPUs, ranks, network."""
    gpus = sum(len(sequence(mapping(facts.get("gpu")).get("gpus"))) for facts in inputs.facts.values())
    models = sorted({gpus_text(facts).partition(" × ")[2] for facts in inputs.facts.values() if facts} - {""})
    total = sum(map(len, ranks.values()))
    underlay = mapping(view.get("underlay"))
    found = [
        {"value": str(len(inputs.hosts)), "what": "nodes" if len(inputs.hosts) != 1 else "node", "more": ""},
        {"value": str(gpus), "what": "GPUs" if gpus != 1 else "GPU", "more": ", ".join(models[:2])}
        if gpus
        else {"value": "CPU", "what": "accelerator", "more": ""},
        {"value": str(total), "what": "ranks" if total != 1 else "rank", "more": ""},
    ]
    if underlay:
        over = f"over {underlay.get('subnet') or NO_SUBNET}, MTU {underlay.get('mtu')}"
        found.append({"value": inputs.network_mode, "what": "network", "more": over})
    return found


def _rails(inputs: Inputs, view: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The networks of the picture: what they are, and how many nodes are on them."""
    underlay = mapping(view.get("underlay"))
    rails = []
    links = [
        mapping(one)
        for facts in inputs.facts.values()
        for one in sequence(mapping(facts.get("fabric")).get("interfaces"))
    ]
    chosen = set(mapping(underlay.get("interfaces")).values())
    speeds = sorted(
        {int(link["speed_mbps"]) for link in links if link.get("name") in chosen and link.get("speed_mbps")}
    )
    if underlay:
        parts = [
            str(underlay.get("subnet") or NO_SUBNET),
            names(set(map(str, chosen)), 4),
            f"MTU {underlay.get('mtu')}",
        ]
        if speeds:
            parts.append(" to ".join(dict.fromkeys((speed_text(speeds[0]), speed_text(speeds[-1])))))
        rails.append({"key": "under", "name": "underlay", "text": " · ".join(filter(None, parts))})
    if inputs.network_mode == "overlay" and inputs.runtime == "container":
        networks = [
            mapping(mapping(mapping(facts.get("docker")).get("networks")).get(inputs.network_name))
            for facts in inputs.facts.values()
        ]
        network = next((one for one in networks if one), {})
        options = mapping(network.get("options"))
        parts = [inputs.network_name, ", ".join(map(str, sequence(network.get("subnets"))))]
        parts.append("encrypted" if "encrypted" in options else "" if network else "not there")
        rails.append({"key": "over", "name": "overlay", "text": " · ".join(filter(None, parts))})
    for rail in rails:
        attached = sum(bool(cell[f"on_{rail['key']}lay"]) for cell in cells)
        rail["attached"] = (
            f"{attached} of {len(cells)} nodes" if attached != len(cells) else f"all {counted(attached, 'node')}"
        )
    return rails


def _columns(count: int) -> int:
    """Cards in a row of a wide page, so that rows are as full as can be: 6 make 3 and 3, 7 make 4 and 3."""
    rows = -(-count // 5)
    return max(1, -(-count // max(1, rows)))


def _health(inputs: Inputs) -> dict[str, Any]:
    """What verify.yml found of each role, when, and of the collective."""
    verify = inputs.verify
    order = [role for role in NAMES if role in verify.roles] + sorted(set(verify.roles) - set(NAMES))
    used = mapping(verify.collective.get("interfaces"))
    interfaces: dict[str, list[str]] = {}
    for name, interface in used.items():
        interfaces.setdefault(str(interface), []).append(str(name))
    reported = ", ".join(f"{interface} on {names(those, 4)}" for interface, those in interfaces.items())
    failing = grouped(verify.checks)
    tried = len({(check.source, check.target) for check in verify.checks})
    broken = len({(check.source, check.target) for those in failing.values() for check in those})
    return {
        "problem": verify.problem,
        "age": age(verify.time, inputs.now),
        "roles": [
            {"name": role, "level": "ok" if verify.roles[role][0] else "bad", "sentence": verify.roles[role][1]}
            for role in order
        ],
        "unseen": [role for role in NAMES if role not in verify.roles] if verify.roles else [],
        "pairs": f"{counted(len(verify.checks), 'check')} over {counted(tried, 'pair')} of nodes: "
        + (f"{broken} of the pairs fail." if broken else "all pass.")
        if tried
        else "",
        "collective": f"{BACKENDS.get(str(verify.collective.get('backend')), 'The collective')} used {reported}."
        if reported
        else "",
    }


def _table(
    cells: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, str]], alike: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Every node in a row; columns are what differs, as what is alike stands above already."""
    same = {item["what"] for item in alike}
    columns = list(dict.fromkeys(what for those in found.values() for what in those if what not in same))
    return {
        "columns": columns,
        "rows": [
            {
                "name": cell["name"],
                "level": cell["level"],
                "role": cell["role"],
                "address": cell["address"],
                "overlay": cell["overlay_address"],
                "ranks": cell["ranks"],
                "offset": "" if cell["offset"] is None else f"{cell['offset']:+.2f}",
                "cells": [found[cell["name"]].get(what, "") for what in columns],
            }
            for cell in cells
        ],
    }
