# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a run ended: converged, refused in one sentence that names node, cause and remedy, or failed. Pure.

``events`` are the lines of callback/chaos_events.py, ``output`` what the user saw.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.playbook_run import Run
from tests.preflight_report import reported

Event = Mapping[str, Any]
Kind = Literal["converged", "refused", "failed"]

# Ansible puts it before the text of an action or module.
_PREFIX = re.compile(r"^(?:Task failed: )?(?:(?:Action|Module) failed: )?")
_SENTENCE = re.compile(r"(?P<where>[^:\n]+): (?P<cause>[^\n]*\S)[.?!)] Remedy: (?P<remedy>[^\n]*\S)")
_VARIABLE = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_WAIT = re.compile(r"\bwaiting up to (\d+(?:\.\d+)?) s\b")
_CRASHES = ("Traceback (most recent call last)", "Module result deserialization failed", "MODULE FAILURE")


@dataclass(frozen=True)
class Refusal:
    """One sentence of a refusal, in its three parts."""

    where: str
    cause: str
    remedy: str

    @property
    def text(self) -> str:
        return f"{self.where}: {self.cause}. Remedy: {self.remedy}"


@dataclass(frozen=True)
class Verdict:
    """What a run came to; ``why`` says what is wrong with one that failed."""

    kind: Kind
    why: str = ""
    refusals: tuple[Refusal, ...] = ()


def judge(rc: int | None, output: str, events: Sequence[Event], nodes: Sequence[str]) -> Verdict:
    """Judge a run that nothing disturbed. ``rc`` is None for one that did not end in time."""
    if rc is None:
        return Verdict("failed", "it did not end in time")
    if crash := crashed(output, events):
        return Verdict("failed", crash)
    hosts = recap(events)
    if rc == 0:
        lacking = sorted(set(nodes) - {name for name in nodes if name in hosts and name in changes(output)})
        return Verdict("failed", f"no recap of {', '.join(lacking)}") if lacking else Verdict("converged")
    texts = final_lines(events)
    if not texts:
        last = (output.strip().splitlines() or ["nothing was printed"])[-1]
        return Verdict("failed", f"it ended with {rc} and no failed task: {last[:300]}")
    refusals: list[Refusal] = []
    for host, text in texts:
        try:
            refusals += sentences(text, nodes)
        except ValueError as error:
            return Verdict("failed", f"{host}: {error}: {text[:500]}")
    return Verdict("refused", "", tuple(dict.fromkeys(refusals)))


def sentences(text: str, nodes: Sequence[str]) -> list[Refusal]:
    """Return a message as refusals. Raises ``ValueError`` for one without node or variable, cause and remedy."""
    if "Preflight found " in text:
        try:
            return [Refusal(line.subject, line.text, line.remedy) for line in reported(text)]
        except AssertionError as error:
            raise ValueError(f"a report that is not as preflight writes it ({str(error).splitlines()[0]})") from None
    text = text.strip()
    if "\n" in text:
        raise ValueError("an error of more than one line")
    found = _SENTENCE.fullmatch(text)
    if not found:
        raise ValueError("an error without the form 'where: cause. Remedy: …'")
    before = text.partition(" Remedy: ")[0]
    named = any(re.search(rf"\b{re.escape(name)}\b", before) for name in nodes)
    if not named and not _VARIABLE.search(found["where"]):
        raise ValueError("an error that names neither a node nor a variable")
    return [Refusal(found["where"], found["cause"], found["remedy"].rstrip("."))]


def disturbed(rc: int | None, output: str, events: Sequence[Event], hit: Sequence[str]) -> str:
    """Return what is wrong with how a run ended in whose middle these nodes went away; empty where nothing is.

    It may fail, with Ansible's own words, too, but it must end, without a traceback, and name one of the nodes.
    """
    if rc is None:
        return "the run in the middle of which it happened did not end in time"
    if crash := crashed(output, events):
        return f"the run in the middle of which it happened: {crash}"
    if rc == 0:
        return ""
    failures = [event for event in events if event["event"] in {"failed", "unreachable"}]
    reported = " ".join(f"{event['host']} {' '.join(event['texts'])}" for event in failures)
    if not any(re.search(rf"\b{re.escape(name)}\b", reported) for name in hit):
        return f"the run in the middle of which it happened failed without naming {' or '.join(hit)}"
    return ""


def announced_wait(output: str) -> float:
    """Return the longest wait, in seconds, that a run has announced on the screen; 0 where it has announced none."""
    return max((float(seconds) for seconds in _WAIT.findall(output)), default=0.0)


def crashed(output: str, events: Sequence[Event]) -> str:
    """Return what no user should see, with the line around it; empty where there is nothing of the kind."""
    # What a job's script prints stands behind the name of its node, and is its own affair.
    ours = [line for line in output.splitlines() if not re.search(r"\blab\d+(?: rank \d+)?(?: \||:) ", line)]
    texts = [str(text).splitlines() for event in events for text in event.get("texts", [])]
    for lines in (ours, *texts):
        for number, line in enumerate(lines):
            if any(crash in line for crash in _CRASHES):
                end = next((after for after in lines[number + 1 :] if after[:1].strip()), "")
                return f"{line.strip()[:300]} {end.strip()[:300]}".strip()
    return ""


def final_lines(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return host and text of what failed in the end: the last failure of each host that the recap counts as failed.

    What was ignored or rescued is no end. Without a recap (the run was cut off) every host's last failure counts.
    """
    hosts = recap(events)
    last: dict[str, list[str]] = {}
    for event in events:
        if event["event"] in {"failed", "unreachable"} and not event["ignored"]:
            last[event["host"]] = event["texts"]
    return [
        (host, _PREFIX.sub("", text))
        for host, texts in last.items()
        if not hosts or hosts.get(host, {}).get("failures") or hosts.get(host, {}).get("unreachable")
        for text in texts
    ]


def recap(events: Sequence[Event]) -> dict[str, dict[str, int]]:
    """Return what the recap counts, by host; empty for a run that was killed."""
    found = [event["hosts"] for event in events if event["event"] == "recap"]
    return dict(found[-1]) if found else {}


def changes(output: str) -> dict[str, int]:
    """Return changed tasks by host, as the recap on the console has them."""
    return Run(0, output).changed


def changed_tasks(events: Sequence[Event]) -> list[str]:
    """Return what a run changed, as ``host: task``."""
    return [f"{event['host']}: {event['task']}" for event in events if event["event"] == "changed"]


def current_task(events: Sequence[Event]) -> str:
    """Return the task that began last; empty before the first."""
    return next((str(event["task"]) for event in reversed(events) if event["event"] == "task"), "")
