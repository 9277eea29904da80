# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong between the nodes, by what network_mesh_test found on all: both ends, most likely reason, remedy.

Pure. What follows from another fault between the same two nodes is kept, and not reported again: where VXLAN
does not pass, nothing within the overlay can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..core.problems import listing
from ..core.values import mapping
from ..launch.cross_node_checks import group
from .failure_messages import explain

CONTAINER, HOST = "container", "host"
UNITS = {"name": "s", "ssh": "ms", "tcp": "ms", "mtu": "bytes", "clock": "s"}
LABELS = {"name": "name", "ssh": "ssh", "tcp": "TCP", "mtu": "packet size", "clock": "clock"}
CAUSES_FIRST = (HOST, CONTAINER)
SLOW_NAMES = 3.0
"""Seconds after which it is worth saying that a name was waited for."""


@dataclass(frozen=True)
class Wanted:
    """What was requested. ``network`` is where ranks meet; ``data_port`` is VXLAN's, None without an overlay."""

    hosts: tuple[str, ...]
    network: str = CONTAINER
    data_port: int | None = 4789
    clock: float = 30.0
    encrypted: bool = False
    rendezvous: str = "29500-29599"
    ssh_port: int = 2222


@dataclass(frozen=True)
class Finding:
    """One check from one node to another, as it goes into the report."""

    source: str
    target: str
    network: str
    check: str
    ok: bool
    value: float | None
    reported: str
    reason: str = ""
    remedy: str = ""
    follows: bool = False

    def entry(self) -> dict[str, Any]:
        """The form of the report."""
        found = {"from": self.source, "to": self.target}
        rest = asdict(self)
        kept = {key: rest[key] for key in ("network", "check", "ok", "value")}
        unit = UNITS.get(self.check) if self.value is not None else None
        return {**found, **kept, "unit": unit, "said": self.reported, "reason": self.reason, "remedy": self.remedy}


@dataclass(frozen=True)
class Verdict:
    """``problems`` and ``notes`` are sentences; ``findings`` hold all that was tried."""

    findings: list[Finding]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Records = Mapping[str, Mapping[str, Any]]
"""By node: ``start`` and ``end``, what network_mesh_test answered to these steps; either may be missing."""


def judge(records: Records, wanted: Wanted) -> Verdict:
    """The verdict over all pairs."""
    problems = []
    silent = []
    for name in wanted.hosts:
        trouble = trouble_of(mapping(records.get(name)))
        if trouble:
            silent.append(name)
            problems.append(f"{name}: {trouble['text']}. Remedy: {trouble['remedy']}.")
    found = list(_findings(records, wanted, silent))
    failed = {(one.source, one.target, one.network, one.check): one for one in found if not one.ok}
    judged = [one if one.ok else replace(one, **explain(one, failed, wanted)) for one in found]
    problems += list(_sentences([one for one in judged if not one.ok and not one.follows]))
    return Verdict(judged, problems, list(_notes(judged)))


def trouble_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Why nothing was tried from a node; empty where it was."""
    for step in ("start", "end"):
        answer = mapping(record.get(step))
        if not answer or "trouble" not in answer:
            words = "it did not answer when the network was tested"
            return {"text": words, "remedy": "check the error of this node above"}
        if answer["trouble"]:
            return dict(answer["trouble"])
    return {}


def _findings(records: Records, wanted: Wanted, silent: Sequence[str]) -> Iterator[Finding]:
    for source in wanted.hosts:
        if source in silent:
            continue
        for raw in records[source]["end"]["pairs"]:
            target = raw["to"]
            network = HOST if raw["end"] == "outer" else wanted.network
            one = Finding(
                source, target, network, raw["check"], bool(raw["ok"]), raw["value"], raw["said"],
                follows=bool(raw.get("follows")),
            )  # fmt: skip
            if target in silent:
                continue
            if raw["check"].startswith("udp "):
                one = _arrived(one, records[target])
            elif raw["check"] == "clock":
                one = _apart(one, wanted)
            yield one


def _arrived(one: Finding, receiver: Mapping[str, Any]) -> Finding:
    """Whether datagrams came in is known at their end."""
    deaf = mapping(mapping(receiver["start"]["ready"]).get("outer")).get("deaf")
    if deaf:
        return replace(one, reported=f"not measured: {one.target} cannot see datagrams ({deaf})")
    port = int(one.check.split()[1])
    if port in receiver["end"]["seen"].get(one.source, []):
        return replace(one, ok=True, reported="")
    return replace(one, ok=False, reported=one.reported or "sent, but did not arrive")


def _apart(one: Finding, wanted: Wanted) -> Finding:
    offset = float(one.value or 0.0)
    reported = f"its clock is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}"
    return replace(one, ok=abs(offset) <= wanted.clock, reported=reported if abs(offset) > wanted.clock else "")


def label(check: str) -> str:
    return LABELS.get(check) or check.upper()


def _sentences(failed: Sequence[Finding]) -> Iterator[str]:
    """Problems between nodes, grouped by what they have in common; those between the hosts first."""
    for network in CAUSES_FIRST:
        for check in dict.fromkeys(one.check for one in failed):
            here = [one for one in failed if (one.network, one.check) == (network, check)]
            if check == "clock":
                here = _one_side(here)
            reasons = {(one.source, one.target): (one.reason, one.remedy) for one in here}
            for sources, targets, words in group({(one.source, one.target): one.reported for one in here}):
                reason, remedy = reasons[(sources[0], next((name for name in targets if name != sources[0]), ""))]
                where = "between the hosts, " if network == HOST else ""
                yield (
                    f"{listing(sources)} -> {listing(targets)}: {where}{label(check)}: {words}. "
                    f"Most likely: {reason}. Remedy: {remedy}."
                )


def _one_side(found: list[Finding]) -> list[Finding]:
    """Two clocks that are apart are seen from both ends; reported is what most others see of one."""
    seen = {name: sum(one.target == name for one in found) for name in {one.target for one in found}}
    most = max(seen.values(), default=0)
    worst = {name for name, count in seen.items() if count == most}
    kept = [one for one in found if one.target in worst]
    return kept if len(worst) < len(seen) else [one for one in found if float(one.value or 0.0) > 0]


def _notes(found: Sequence[Finding]) -> Iterator[str]:
    late = [one for one in found if one.check == "name" and one.ok and float(one.value or 0.0) > SLOW_NAMES]
    if late:
        slowest = max(late, key=lambda one: float(one.value or 0.0))
        yield (
            f"{slowest.source} found the name of {slowest.target} only after {slowest.value:.0f} s: the overlay's DNS "
            "was still converging, as it does for up to a minute after a restart of the engine's daemon."
        )
    unmeasured = [one for one in found if one.ok and one.reported.startswith("not measured")]
    for reported in dict.fromkeys((one.network, one.check, one.reported.split(" (")[0]) for one in unmeasured):
        ends = [f"{one.source} -> {one.target}" for one in unmeasured
                if (one.network, one.check, one.reported.split(" (")[0]) == reported]  # fmt: skip
        where = "between the hosts " if reported[0] == HOST else ""
        yield f"{listing(ends)}: {label(reported[1])} {where}{reported[2]}."
