# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What needs somebody's attention: where, what, and what to do. What many nodes have in common is reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.values import mapping, number
from ..job import hangs
from ..job.table import merge
from .inputs import Check, Inputs
from .nodes import UNKNOWN, container_of, swarm_entries
from .text import age, briefly, counted, names, sentence, sequence

CHECKS = {"name": "Looking up names", "ssh": "ssh", "mtu": "A packet of full size", "clock": "Agreement of clocks"}
"""Kinds of checks in verify.json as a sentence begins with them; the others are ports."""


@dataclass(frozen=True)
class Finding:
    """``nodes`` is empty where it concerns the cluster as a whole; ``rank`` sorts causes before consequences."""

    level: str
    nodes: tuple[str, ...]
    what: str
    remedy: str = ""
    rank: int = 5
    subject: str = ""


def findings(inputs: Inputs, view_problem: str, differing: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """All of them, the worst first, alike ones of several nodes as one."""
    found = [
        *_nodes(inputs),
        *_cluster(inputs, view_problem),
        *_verify(inputs),
        *_bench(inputs),
        *_job(inputs),
        *_differences(differing),
    ]
    joined: dict[tuple[str, str, str, int, str], list[str]] = {}
    for one in found:
        joined.setdefault((one.level, one.what, one.remedy, one.rank, one.subject), []).extend(one.nodes)
    merged = [
        Finding(level, tuple(dict.fromkeys(nodes)), what, remedy, rank, subject)
        for (level, what, remedy, rank, subject), nodes in joined.items()
    ]
    return sorted(merged, key=lambda one: (one.level != "bad", one.rank, -len(one.nodes)))


def levels(found: Iterable[Finding]) -> dict[str, str]:
    """``bad`` or ``warn`` by node."""
    result: dict[str, str] = {}
    for one in found:
        for name in one.nodes:
            if result.get(name) != "bad":
                result[name] = one.level
    return result


def shown(found: Iterable[Finding], hosts: Sequence[str]) -> list[dict[str, str]]:
    """As the page has them; remedies keep the whole names, as they are commands."""
    return [
        {
            "level": one.level,
            "where": briefly(one.subject or _who(one.nodes, len(hosts)), hosts),
            "what": briefly(sentence(one.what), hosts),
            "remedy": " ".join(one.remedy.split()),
        }
        for one in found
    ]


def _who(nodes: Sequence[str], everyone: int) -> str:
    return "every node" if len(nodes) == everyone > 1 else names(nodes, 8) if nodes else "cluster"


def _site(tag: str) -> str:
    return f"ansible-playbook site.yml --tags {tag}"


def _nodes(inputs: Inputs) -> Iterator[Finding]:
    entries = swarm_entries(inputs)
    reasons: dict[str, list[str]] = {}
    for name in inputs.hosts:
        if name in inputs.silent:
            reasons.setdefault(" ".join(inputs.silent[name].split())[:300], []).append(name)
    for why, those in reasons.items():
        one = len(those) == 1
        reported = f"{'Does' if one else 'Do'} not answer, so nothing is known of {'it' if one else 'them'}: {why}"
        yield Finding("bad", tuple(those), reported, f"Look: ansible {','.join(those[:8])} -m ping", 0)
    for name in inputs.hosts:
        if name in inputs.silent:
            continue
        facts = mapping(inputs.facts.get(name))
        for problem in sequence(mapping(facts.get("gpu")).get("problems")):
            yield Finding("bad", (name,), str(problem), _site("nvidia_driver"), 2)
        for note in sequence(mapping(facts.get("gpu")).get("notes")):
            yield Finding("warn", (name,), str(note), "", 2)
        for problem in sequence(mapping(facts.get("fabric")).get("problems")):
            yield Finding("warn", (name,), str(problem), "", 2)
        clock = mapping(facts.get("clock"))
        offset, doubt = number(clock.get("offset")), number(clock.get("uncertainty")) or 0.0
        if offset is not None and abs(offset) - doubt > inputs.max_clock_offset:
            yield Finding("bad", (name,), f"Its clock is {offset:+.0f} s away from the controller's",
                          "timedatectl set-ntp true, or install chrony", 2)  # fmt: skip
        if inputs.runtime == "container":
            yield from _containers(inputs, name, facts, entries)


def _containers(
    inputs: Inputs, name: str, facts: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Engine, swarm, container and network of a node; of what builds on something broken nothing is said."""
    docker = mapping(facts.get("docker"))
    if not docker.get("running"):
        why = str(docker.get("error") or "not installed")
        yield Finding("bad", (name,), f"The Docker engine does not answer: {why}", _site("docker"), 1)
        return
    swarm = mapping(docker.get("swarm"))
    entry = mapping(entries.get(str(swarm.get("node_id"))))
    if inputs.network_mode == "overlay" and swarm.get("state") != "active":
        yield Finding("bad", (name,), f"Not in the swarm (its own state: {swarm.get('state')})", _site("swarm"), 2)
        return
    if entries and swarm.get("state") == "active":
        if not entry:
            yield Finding("bad", (name,), "In a swarm that the managers do not know of", _site("swarm"), 2)
            return
        if entry.get("state") != "ready" or entry.get("availability") != "active":
            reported = f"The swarm has it as {entry.get('state')}, {entry.get('availability')}"
            yield Finding("bad", (name,), reported, _site("swarm"), 2)
    container = container_of(inputs, name)
    state = container.get("state") or "absent"
    if state != "running":
        yield Finding("bad", (name,), f"Its training container is {state}", _site("training_container"), 3)
    elif inputs.network_mode == "overlay" and not mapping(container.get("addresses")).get(inputs.network_name):
        reported = f"Its training container is not attached to the overlay {inputs.network_name}"
        yield Finding("bad", (name,), reported, _site("training_container"), 3)


def _cluster(inputs: Inputs, view_problem: str) -> Iterator[Finding]:
    if view_problem:
        yield Finding("bad", (), view_problem, rank=2)
    ours = {str(mapping(mapping(facts.get("docker")).get("swarm")).get("node_id")) for facts in inputs.facts.values()}
    if inputs.silent:  # one that does not answer may be any of them
        return
    stale = [str(entry.get("hostname")) for key, entry in swarm_entries(inputs).items() if key not in ours]
    if stale:
        reported = f"The swarm has {counted(len(stale), 'member')} that the inventory does not: {names(stale)}"
        yield Finding("warn", (), reported, _site("swarm"), 3)


def _verify(inputs: Inputs) -> Iterator[Finding]:
    verify = inputs.verify
    when = age(verify.time, inputs.now)
    then = f" (So it was {when['text']}.)" if when and when["old"] else ""
    for role, (good, reported) in verify.roles.items():
        if not good:
            what, dummy, remedy = reported.partition(" Remedy: ")
            yield Finding("bad", (), what + then, remedy.rstrip("."), 4, role)
    below = {frozenset((one.source, one.target)) for one in verify.checks if one.network == "host" and not one.ok}
    # Where two hosts cannot reach one another, their containers cannot either.
    causes = [one for one in verify.checks if one.network == "host" or frozenset((one.source, one.target)) not in below]
    for key, those in grouped(causes).items():
        network, check, reason, remedy = key
        pairs = sorted({(one.source, one.target) for one in those})
        who = common(pairs)
        where = f"{counted(len(pairs), 'pair')} with {who}" if who and len(pairs) > 1 else counted(len(pairs), "pair")
        examples = ", ".join(f"{one} → {other}" for one, other in pairs[:3])
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        kind = CHECKS.get(check, check.upper())
        what = f"{kind} between {network}s fails for {where} ({examples}{more}). {reason or those[0].reported}{then}"
        yield Finding("bad", (who,) if who else (), what, remedy, 3)
    if verify.collective and verify.collective.get("ok") is not True:
        reported = sentence(verify.collective.get("said")) or "It said nothing."
        yield Finding("bad", (), f"The collective over all nodes failed: {reported}", rank=4)


def grouped(checks: Iterable[Check]) -> dict[tuple[str, str, str, str], list[Check]]:
    """Failed checks that have network, kind, reason and remedy in common."""
    found: dict[tuple[str, str, str, str], list[Check]] = {}
    for check in checks:
        if not check.ok:
            found.setdefault((check.network, check.check, check.reason, check.remedy), []).append(check)
    return found


def common(pairs: Sequence[tuple[str, str]]) -> str:
    """The node that all these pairs have in common, empty where there is none or where it could be either."""
    seen = Counter(name for pair in pairs for name in set(pair))
    whole = [name for name, count in seen.items() if count == len(pairs)]
    return whole[0] if len(whole) == 1 else ""


def _bench(inputs: Inputs) -> Iterator[Finding]:
    for reported in inputs.bench.failed:
        yield Finding("bad", (), reported, rank=4, subject="network")
    for name, reported in inputs.bench.slow_nodes:
        yield Finding("warn", (name,), _without(reported, name), rank=4)
    blamed = {name for name, dummy in inputs.bench.slow_nodes}
    others = [
        reported for reported, pair in zip(inputs.bench.slow, inputs.bench.slow_pairs) if not blamed.intersection(pair)
    ]
    if others:
        more = f"{len(others)} pairs are slow, such as this one: " if len(others) > 1 else ""
        yield Finding("warn", (), more + others[0], rank=4, subject="network")


def _without(reported: str, name: str) -> str:
    """A sentence without the name that stands before it already."""
    rest = reported.removeprefix(f"{name} ").removeprefix(f"{name}: ")
    return rest[:1].upper() + rest[1:]


def _job(inputs: Inputs) -> Iterator[Finding]:
    """Jobs that failed or were lost, and nodes that answered but reported nothing of their jobs."""
    for name in inputs.facts:
        reply = mapping(inputs.jobs.get(name))
        if "jobs" not in reply:
            why = " ".join(str(reply.get("msg") or "no reason was given").removeprefix("Task failed: ").split())[:300]
            yield Finding("bad", (name,), f"Which jobs it has could not be read: {why}",
                          "ansible-playbook status.yml", 1)  # fmt: skip
    for known in merge({name: dict(result) for name, result in inputs.jobs.items()}):
        job = known.job
        first = mapping(mapping(job.get("summary")).get("first_failure"))
        if job.get("state") == "failed" and first.get("cause"):
            reported = f"Failed. {sentence(first['cause'])}"
            if first.get("rank") is not None:
                place = f" on {first['node']}" if first.get("node") else ""
                reported = f"Failed: rank {first['rank']}{place} was first. {sentence(first['cause'])}"
            yield Finding("bad", (), reported, str(first.get("remedy") or ""), 4, f"job {known.name}")
        elif job.get("state") in ("failed", "lost", "unreadable"):
            reported = f"Is {job['state']}: {sentence(job.get('reason')) or 'no reason is known.'}"
            yield Finding("bad", (), reported, "", 4, f"job {known.name}")
        hang = hangs.view(job)
        if job.get("state") == "running" and hang and hang["woke"] is None:
            reported = f"Made no progress for {hang['silent']} at {hang['at']}. {hang['sentence']}"
            yield Finding("bad", (), reported, hang["remedy"], 4, f"job {known.name}")


def _differences(differing: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    for item in differing:
        known = [group for group in item["groups"] if group["value"] != UNKNOWN]
        if item["matters"] and len(known) > 1:  # what is not known has been reported with its cause
            parts = [f"{group['value']} on {'most' if group['majority'] else group['who']}" for group in known[:3]]
            more = "; and others" if len(known) > 3 else ""
            others = [name for group in known[1:] for name in group["nodes"]] if known[0]["majority"] else []
            reported = f"{item['what']} differs: {'; '.join(parts)}{more}"
            yield Finding("warn", tuple(others), reported, rank=6, subject="nodes")
