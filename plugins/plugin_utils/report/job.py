# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The jobs of a report: the last one with its curves, and the others in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.job.resource import ACTIVE
from ..core.values import mapping, number
from ..job import hangs, nccl
from ..job.table import Known, duration, merge
from .curves import Series, line_chart, whole
from .lanes import lanes
from .text import age, moment, names, sentence, sequence, short

WIDE = 480
"""Pixels of a curve over the steps; two stand side by side."""

LEVELS = {"succeeded": "ok", "running": "ok", "starting": "ok", "stopped": "warn"}


def jobs_of(results: Mapping[str, Mapping[str, Any]]) -> list[Known]:
    """All jobs, the last one first: one that runs, else the one that began last."""
    found = merge({name: dict(result) for name, result in results.items()})
    return sorted(
        found,
        key=lambda known: (known.job.get("state") in ACTIVE, moment(known.job.get("started_at")) or 0.0, known.name),
        reverse=True,
    )


def members_of(known: Known | None) -> list[Any]:
    """Nodes and ranks of a job, as its summary has them."""
    return sequence(mapping(known.job.get("summary")).get("members")) if known else []


def job_view(known: Known, now: float) -> dict[str, Any]:
    """Everything that the page says of the last job."""
    job, summary = known.job, mapping(known.job.get("summary"))
    figures, first = mapping(summary.get("figures")), mapping(summary.get("first_failure"))
    state = str(job.get("state"))
    return {
        "name": known.name,
        "node": known.node,
        "state": state if known.led else f"{state}?",
        "level": LEVELS.get(state, "bad"),
        "active": state in ACTIVE,
        "since": age(moment(job.get("since")), now),
        "facts": _facts(job, summary, figures),
        "reason": sentence(job.get("reason")),
        "failure": _failure(first) if first and state not in ("succeeded", "running", "starting") else None,
        "nccl": _nccl(known, summary),
        "hang": _hang(job),
        "exits": _exits(mapping(summary.get("ranks"))),
        "restarts": [
            {"attempt": one.get("attempt"), "reason": sentence(one.get("reason")), "from": one.get("resumed_from")}
            for one in map(mapping, sequence(summary.get("restarts")))
        ],
        "charts": charts(sequence(summary.get("history"))),
        "log": f"{known.node}:{job.get('log_path')}" if job.get("log_path") else "",
    }


def job_rows(jobs: Sequence[Known], now: float) -> list[dict[str, Any]]:
    """A line for each of the other jobs, ten at most."""
    rows = []
    for known in jobs[:10]:
        job = known.job
        figures = mapping(mapping(job.get("summary")).get("figures"))
        since = age(moment(job.get("since")), now)
        rows.append(
            {
                "name": known.name,
                "state": str(job.get("state")) + ("" if known.led else "?"),
                "level": LEVELS.get(str(job.get("state")), "bad"),
                "run": job.get("run"),
                "since": since["text"] if since else "",
                "time": since["time"] if since else "",
                "seconds": duration(number(job.get("seconds"))),
                "loss": _loss(figures),
                "reason": sentence(job.get("reason")),
            }
        )
    return rows


def _loss(figures: Mapping[str, Any]) -> str:
    loss = number(figures.get("loss"))
    return short(loss) if loss is not None else str(figures.get("loss") or figures.get("bad_loss") or "")


def _facts(job: Mapping[str, Any], summary: Mapping[str, Any], figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """Short figures, in the order a reader asks for them."""
    step, total = figures.get("step"), figures.get("total")
    ranks, nodes = mapping(summary.get("world_size")), mapping(summary.get("nodes"))
    versions = mapping(summary.get("versions"))
    samples, tokens = number(figures.get("samples_per_second")), number(figures.get("tokens_per_second"))
    found = {
        "Run": job.get("run"),
        "Took": duration(number(job.get("seconds"))),
        "Nodes": _of(nodes),
        "Ranks": _of(ranks),
        "Step": f"{step} of {total}" if step is not None and total is not None else step,
        "Loss": _loss(figures),
        "Samples per second": whole(samples) if samples else None,
        "Tokens per second": whole(tokens) if tokens else None,
        "Slowest rank": figures.get("slowest_rank"),
        "DeepSpeed": versions.get("deepspeed"),
        "torch": versions.get("torch"),
        "Launcher": summary.get("launcher"),
    }
    return [{"what": what, "value": str(value)} for what, value in found.items() if value not in (None, "", "-")]


def _of(counts: Mapping[str, Any]) -> str | None:
    expected, seen = counts.get("expected"), counts.get("seen")
    if seen is None or seen == expected:
        return None if expected is None else str(expected)
    return f"{seen} of {expected}" if expected is not None else str(seen)


def _failure(first: Mapping[str, Any]) -> dict[str, Any]:
    return {
        # Without a rank the cause names its node itself.
        "node": str(first.get("node") or "") if first.get("rank") is not None else "",
        "rank": first.get("rank"),
        "cause": sentence(first.get("cause")),
        "remedy": sentence(first.get("remedy")),
        "line": str(first.get("line") or "")[:400],
    }


def _nccl(known: Known, summary: Mapping[str, Any]) -> list[str]:
    """What NCCL connected, and what of it is not as it should be."""
    found = mapping(known.job.get("nccl")) or mapping(summary.get("nccl"))
    return nccl.sentences(known.name, {**known.job, "nccl": found})


def _hang(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who waits for whom, and when each rank entered its last collectives."""
    found = hangs.view(job)
    return found and {**found, "lanes": lanes(found["timeline"], found["ranks"], found["nodes"])}


def _exits(ranks: Mapping[str, Any]) -> list[dict[str, str]]:
    """Ranks that did not end with 0, by exit code: how many, and on which nodes."""
    found: dict[str, list[tuple[str, str]]] = {}
    for rank, found_of in ranks.items():
        code = mapping(found_of).get("exit_code")
        if code not in (0, None):
            found.setdefault(str(code), []).append((str(rank), str(mapping(found_of).get("node") or "")))
    return [
        {
            "code": code,
            "ranks": names((rank for rank, dummy in those), 8),
            "nodes": names((node for dummy, node in those if node), 8),
        }
        for code, those in sorted(found.items())
    ]


def charts(history: Sequence[Any]) -> list[dict[str, Any]]:
    """Loss and speed over the steps, as far as there are points. A loss that is not a number breaks its line."""
    points = [mapping(point) for point in history]
    points = [point for point in points if number(point.get("step")) is not None]
    found = []
    for title, key, unit, from_zero in (
        ("Loss", "loss", "", False),
        ("Speed", "rate", "steps per second", True),
    ):
        line = [(float(point["step"]), number(point.get(key))) for point in points]
        if sum(y is not None for dummy, y in line) < 2:
            continue
        chart = line_chart(
            title, [Series("", "job", line)], x_title="step", y_title=unit, from_zero=from_zero, width=WIDE
        )
        if chart:
            found.append(chart)
    return found
