# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which nodes are at fault where containers do not reach one another over the overlay network.

Pure. Seen with engine 20.10: after "docker network rm" beside attached containers a node kept a dead VXLAN interface;
a restart of its engine repaired it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..plan.jobs import active_jobs


def cut_pairs(reached: Mapping[str, Mapping[str, Mapping[str, str]]]) -> dict[tuple[str, str], str]:
    """Return (from, to) of each pair that failed, with the words of the error."""
    return {
        (source, target): f"{how.get('stage')}: {how.get('error')}"
        for source, targets in reached.items()
        for target, how in targets.items()
        if how.get("stage") != "done"
    }


def at_fault(pairs: Iterable[tuple[str, str]], managers: Sequence[str], busy: Iterable[str] = ()) -> list[str]:
    """Return the fewest nodes, chosen one by one, that have a part in every pair.

    Of several that would do, one that is idle and no manager is taken: restarting its engine disturbs least.
    """
    left, chosen, held = list(dict.fromkeys(pairs)), [], set(busy)
    while left:
        count = Counter(node for pair in left for node in pair)
        most = max(count.values())
        ties = [node for node, number in count.items() if number == most]
        best = min(ties, key=lambda node: (node in held, node in managers, ties.index(node)))
        chosen.append(best)
        left = [pair for pair in left if best not in pair]
    return chosen


def occupied(facts: Mapping[str, Mapping[str, Any]], containers: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what runs on each node beside its own container, in words: jobs, and containers of others."""
    found: dict[str, list[str]] = {}
    for node, fact in facts.items():
        jobs = [f"job {name}" for name in active_jobs(fact)]
        engine = (fact.get("docker") or {}).get("containers") or {}
        others = [
            f"container {name}"
            for name, seen in engine.items()
            if name != containers.get(node) and seen.get("state") == "running"
        ]
        if jobs or others:
            found[node] = jobs + others
    return found


def verdict(
    reached: Mapping[str, Any], facts: Mapping[str, Any], containers: Mapping[str, str], managers: Sequence[str]
) -> dict[str, Any]:
    """Return ``cut`` in words, the nodes whose engine to ``restart``, and ``refused``: what that would disturb."""
    pairs = cut_pairs(reached)
    held = occupied(facts, containers)
    nodes = at_fault(pairs, managers, held)
    # A job goes over all nodes of the network: none is disturbed while one runs anywhere.
    jobs = sorted({what for words in held.values() for what in words if what.startswith("job ")})
    on_them = [f"{what} on {node}" for node in nodes for what in held.get(node, []) if not what.startswith("job ")]
    both = {frozenset(pair): words for pair, words in pairs.items()}
    cut = [f"{' and '.join(sorted(pair))} ({words})" for pair, words in both.items()]
    reasons = jobs + on_them
    listed = ", ".join(nodes)
    message = ""
    if cut:
        message = (
            f"{listed}: the overlay network is cut between the containers of {'; '.join(cut)}. Remedy: restart the "
            f"engine there (systemctl restart docker on {listed}) when nothing runs on it, then ansible-playbook "
            "site.yml --tags training_container; verify.yml reports more."
        )
        if reasons:
            message = message.replace(
                " Remedy:", f" The engine was not restarted, as {', '.join(reasons)} would be disturbed. Remedy:", 1
            )
    return {"cut": cut, "restart": [] if reasons else nodes, "refused": reasons, "message": message}
