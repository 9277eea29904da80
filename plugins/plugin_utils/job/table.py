# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The jobs of all nodes: who leads, what still runs elsewhere; as lines for a person, and as a list of what to stop.

Input everywhere: what training_job_info returned, by node. One without ``jobs`` did not answer; its ``msg`` says why.
One with ``left_out`` was not asked, as the run leaves it out. What is not known is never said to be none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.common.untrusted_text import on_one_line, printable
from ...module_utils.job.resource import ACTIVE, explain
from ..core.problems import listing
from ..launch.command import given_words
from . import gpu_table, hangs, nccl

MAY_RUN = (*ACTIVE, "lost")
"""States in which something of a job may be alive. A lost one may have left processes behind."""
COLUMNS = ("JOB", "STATE", "RUN", "SINCE", "RAN FOR", "NODES", "STEP", "LOSS")
RIGHT = ("RUN", "STEP", "LOSS", "BUSY", "MEMORY", "POWER", "TEMP")
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))

Results = dict[str, dict[str, Any]]


@dataclass
class Known:
    """One job. ``node`` is the one whose word counts; ``others`` are the jobs of that name on other nodes."""

    name: str
    node: str
    job: dict[str, Any]
    others: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def led(self) -> bool:
        """Whether the node that judges the job has answered."""
        return bool(self.job.get("leader", True))


def merge(results: Results) -> list[Known]:
    """All jobs by name. Where two nodes say that they lead, as rank 0 has moved between runs, the later run counts."""
    by_name: dict[str, dict[str, dict[str, Any]]] = {}
    for node, result in results.items():
        for job in result.get("jobs") or []:
            by_name.setdefault(str(job["name"]), {})[node] = job
    found = []
    for name in sorted(by_name):
        seen = by_name[name]
        # The first of equals: the order of the inventory.
        node = max(seen, key=lambda one: (bool(seen[one].get("leader", True)), str(seen[one].get("started_at") or "")))
        found.append(Known(name, node, seen[node], {one: seen[one] for one in seen if one != node}))
    return found


def _why(result: dict[str, Any]) -> str:
    """What a node that gave no answer said instead, on one line."""
    reported = " ".join(str(result.get("msg") or "it gave no answer").split())
    return (reported[len("Task failed: ") :] if reported.startswith("Task failed: ") else reported).rstrip(" .")[:300]


def silent(results: Results) -> list[str]:
    """One line for each node that did not answer, or not for all of its jobs."""
    lines = []
    for node, result in results.items():
        if result.get("left_out"):
            continue
        if "jobs" in result:
            if result.get("whole") is False:
                lines.append(
                    f"{node}: its folder of jobs contains more folders than are read, so it may have other jobs than "
                    "those reported. Name the job, or remove the folders that do not belong to jobs"
                )
            continue
        why = _why(result)
        if result.get("unreachable"):
            lines.append(
                f"{node} cannot be reached, so the state of its jobs is unknown: {why}. Check: ansible {node} -m ping"
            )
        else:
            lines.append(f"{node}: its jobs cannot be read: {why}")
    return lines


def unknown(results: Results) -> list[str]:
    """One line on the nodes whose jobs are not known, empty where all are."""
    mute = [node for node, result in results.items() if "jobs" not in result]
    queried, skipped = ([node for node in mute if bool(results[node].get("left_out")) is out] for out in (False, True))
    whys = [f"{listing(queried)} did not answer"] if queried else []
    whys += [f"{listing(skipped)} {'were' if skipped[1:] else 'was'} not queried (--limit)"] if skipped else []
    return [f"{' and '.join(whys)}, so the state of jobs there is unknown"] if whys else []


def duration(seconds: float | None) -> str:
    """``2 h 5 min``: the two largest units, the second one only where it is not 0."""
    if seconds is None:
        return "-"
    rest = round(seconds)
    for number, (size, unit) in enumerate(UNITS):
        if rest >= size:
            reported = f"{rest // size} {unit}"
            if number + 1 < len(UNITS):
                smaller, name = UNITS[number + 1]
                part = rest % size // smaller
                reported += f" {part} {name}" if part else ""
            return reported
    return "0 s"


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


def _nodes(known: Known) -> str:
    members = [str(member.get("name")) for member in known.job.get("summary", {}).get("members") or []]
    names = members or [known.node, *known.others]
    return ",".join(names) if len(names) <= 3 else f"{names[0]}..{names[-1]} ({len(names)})"


def _row(known: Known) -> tuple[str, ...]:
    job = known.job
    figures = job.get("summary", {}).get("figures") or {}
    step, total = figures.get("step"), figures.get("total")
    return (
        known.name,
        str(job["state"]) if known.led else f"{job['state']}?",
        _number(job.get("run")),
        str(job.get("since") or "-"),
        duration(job.get("seconds")),
        _nodes(known),
        _number(step) if total is None else f"{_number(step)}/{_number(total)}",
        _number(figures.get("loss")),
    )


def _trouble(known: Known) -> list[str]:
    """What needs somebody's attention about a job."""
    job, lines = known.job, []
    first = (job.get("summary") or {}).get("first_failure")
    if job["state"] == "failed" and first and first.get("cause"):
        where = f" on {first['node']}" if first.get("node") else ""
        who = f"rank {first['rank']}{where}" if first.get("rank") is not None else (first.get("node") or known.node)
        lines.append(
            f"{known.name} failed, {who} first: {_sentence(first['cause'])}"
            + (f" Remedy: {_sentence(first['remedy'])}" if first.get("remedy") else "")
            + f" Log: {known.node}:{job['log_path']}"
        )
    elif job["state"] in ("failed", "lost", "unreadable"):
        reason = on_one_line(str(job.get("reason") or ""), 2000)
        reported = explain({**job, "name": known.name, "reason": reason}, known.node, str(job["log_path"]))
        lines.append(reported if job["state"] != "unreadable" else reported.replace(" failed", " cannot be read", 1))
    if not known.led:
        members = (job.get("summary") or {}).get("members") or []
        leader = f" ({members[0]['name']})" if members else ""
        lines.append(
            f"{known.name}: only the part on {known.node} is known, because the node of rank 0{leader} did not "
            "report the job."
            + (" ansible-playbook stop.yml ends what is left of it." if job["state"] in MAY_RUN else "")
        )
    for node, other in known.others.items():
        left = other["state"] in ACTIVE or (other["state"] == "lost" and job["state"] != "lost")
        if left and job["state"] not in ACTIVE and known.led:
            lines.append(
                f"{known.name}: its part on {node} is {other['state']}, while the job is {job['state']}. "
                "ansible-playbook stop.yml ends what is left of it."
            )
        elif other["state"] in ("lost", "unreadable") and job["state"] in ACTIVE:
            lines.append(f"{known.name}: its part on {node} is {other['state']}: {_sentence(other.get('reason'))}")
    return lines


def _started(known: Known) -> list[str]:
    """Return what a job runs, as a list in which one sees where an argument ends."""
    words = ((known.job.get("summary") or {}).get("spec") or {}).get("command")
    if not isinstance(words, list) or not words:
        return []
    given = json.dumps(given_words([str(word) for word in words]), ensure_ascii=False)
    return [f"{known.name} runs {printable(given, 2000)}"]


def _sentence(text: Any) -> str:
    reported = on_one_line(str(text or "no reason is known"), 2000)
    return reported if reported.endswith((".", "!", "?")) else f"{reported}."


def table(results: Results) -> list[str]:
    """A line a job, a line a GPU of those that run, and below them one line for whatever needs attention."""
    jobs = merge(results)
    troubles = [line for known in jobs for line in _trouble(known)] + silent(results) + gpu_table.next_boots(results)
    if any(result.get("left_out") for result in results.values()):
        troubles += [f"{line}." for line in unknown(results)]
    if not jobs:
        answered = [node for node, result in results.items() if "jobs" in result]
        return [f"No jobs on {', '.join(answered)}.", *troubles] if answered else troubles
    lines = _aligned([COLUMNS, *(_row(known) for known in jobs)])
    runs = {known.name: gpu_table.used(known.job, results) for known in jobs if known.job["state"] in ACTIVE}
    lines += _aligned(gpu_table.rows([gpu for gpus in runs.values() for gpu in gpus]))
    for known in jobs:
        if known.job["state"] in ACTIVE:
            lines += [*_started(known), *hangs.bound(known.name, known.job)]
            troubles += nccl.sentences(known.name, known.job)
        if known.led:
            troubles += hangs.sentences(known.name, known.job, known.node)
        troubles += gpu_table.idle(known.name, runs.get(known.name, []), str(known.job["log_path"])).values()
    return lines + troubles


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table whose first row is its head."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if name in RIGHT else cell.ljust(width) for name, cell, width in zip(rows[0], row, widths)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def to_stop(results: Results, wanted: str | None) -> dict[str, Any]:
    """What stop.yml has to end: the job ``wanted``, or every job.

    ``leaders`` come first, and their followers end by their word. ``followers`` are stopped in a second step;
    an ``orphan`` has no one who leads it, or damaged files, which are put aside. ``lines`` describes it to a person,
    ``unknown`` are the nodes of which nothing is known.
    """
    leaders: list[dict[str, Any]] = []
    followers: list[dict[str, Any]] = []
    lines = []
    jobs = merge(results)
    for known in jobs:
        if wanted not in (None, known.name):
            continue
        damaged = {
            node: job for node, job in {known.node: known.job, **known.others}.items() if job["state"] == "unreadable"
        }
        leads = known.led and known.job["state"] in MAY_RUN
        parts = {**({} if known.led else {known.node: known.job}), **known.others}
        parts = {node: job for node, job in parts.items() if job["state"] in MAY_RUN}
        if leads:
            leaders.append({"node": known.node, "name": known.name})
        for node, job in parts.items():
            # One that leads an earlier run ends no followers either.
            followers.append({"node": node, "name": known.name, "orphan": not leads or job.get("leader", True)})
        places = ([f"{known.node} (rank 0)"] if leads else []) + list(parts)
        # Nothing that is recorded of it counts: whatever runs is ended, and its files are put aside.
        followers += [{"node": node, "name": known.name, "orphan": True} for node in damaged]
        if damaged:
            reasons = {node: str(job.get("reason")).partition(" Remedy: ")[0] for node, job in damaged.items()}
            whys = "; ".join(f"{node}: {_sentence(reason).rstrip('.')}" for node, reason in reasons.items())
            lines.append(f"{known.name}: its files are damaged and were put aside ({whys})")
        if places:
            lines.append(f"{known.name}, {known.job['state']} on {', '.join(places)}")
        elif wanted is not None and not damaged:
            lines.append(f"{known.name} is not running: {known.job['state']} since {known.job.get('since')}")
    answered = [node for node, result in results.items() if "jobs" in result]
    dark = unknown(results)
    # Only where all answered is the cluster spoken of as a whole.
    where = f" on {listing(answered)}" if dark else ""
    if wanted is not None and answered and wanted not in [known.name for known in jobs]:
        others = ", ".join(f"{known.name} ({known.job['state']})" for known in jobs)
        none = f"There are no jobs{where}" if where else "There are no jobs at all"
        lines.append(f"There is no job {wanted}{where}. " + (f"Jobs here: {others}" if others else none))
    if not lines and answered:
        lines.append(f"No job runs{where}")
    return {
        "leaders": leaders,
        "followers": followers,
        "anything": bool(leaders or followers),
        "lines": lines + dark,
        "silent": silent(results),
        "unknown": [node for node, result in results.items() if "jobs" not in result],
    }


def stopped(stops: dict[str, Any], results: dict[str, list[dict[str, Any]]], previewed: bool) -> dict[str, list[str]]:
    """What became of it. ``results``: what stopping returned on each node, with the ``item`` that was to be stopped.

    ``lines`` are the jobs that were stopped wherever they ran; ``problems`` says of all others what is in the way.
    """
    by_part = {
        (node, str((one.get("item") or {}).get("name"))): one
        for node, answers in results.items()
        for one in answers
        if isinstance(one, dict)
    }
    problems, failed = [], set()
    for part in [*stops["leaders"], *stops["followers"]]:
        answer = by_part.get((part["node"], part["name"]))
        if answer is None and previewed:  # a leader would end it
            continue
        if answer is None or answer.get("failed") or answer.get("unreachable"):
            failed.add(part["name"])
            problems.append(f"{part['node']}: job {part['name']} was not stopped: {_why(answer or {})}.")
    lines = [line for line in stops["lines"] if line.split(",", 1)[0] not in failed]
    return {"lines": lines, "problems": problems}


def gathered(results: Results) -> list[str]:
    """What became of gathering logs, by what job_logs returned for each node; empty where nothing is worth a word."""
    lines, fresh, dest = [], [], ""
    for node, result in results.items():
        if result.get("gathered"):
            fresh.append(node)
            dest = str(result["dest"])
        elif "gathered" not in result and not result.get("skipped"):
            why = _why(result)
            lines.append(f"The logs of {node} were not gathered and remain there: {why}")
        lines += [
            f"{node}: only the end of {path} was gathered, because the file is long"
            for path in result.get("shortened") or []
        ]
        lines += [f"{node}: {problem}" for problem in result.get("problems") or []]
    return ([f"Logs of {', '.join(fresh)} are in {dest}"] if fresh else []) + lines
