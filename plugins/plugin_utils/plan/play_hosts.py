# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a play has all hosts of the cluster together, as roles need that concern the cluster as a whole. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Refusal
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import listing

OUT_OF_STEP = ("free", "host_pinned")
"""Strategies by which a host begins a task while others are still at an earlier one."""


@dataclass(frozen=True)
class PlayHosts:
    """The hosts of a play: ``targeted`` are all, ``reached`` those without failure, ``batch`` those of this turn."""

    batch: Sequence[str]
    reached: Sequence[str]
    targeted: Sequence[str]
    limited: bool
    strategy: str


def apart(role: str, hosts: Sequence[str], play: PlayHosts) -> str:
    """Return why the role cannot be applied in this play, with the remedy; empty where it can be."""
    found = next(_reasons(hosts, play), None)
    if not found:
        return ""
    reason, remedy = found
    return (
        f"The role {role} concerns all hosts of the groups managers and workers, and needs them together: {reason}. "
        f"Remedy: {remedy}."
    )


def unknown_hosts(role: str, hosts: Sequence[str], known: Sequence[str]) -> Iterator[Refusal]:
    """Refuse on the hosts that are ``known`` what is planned for all ``hosts`` of the cluster or for none."""
    missing = _without(hosts, known)
    for host in known:
        yield Refusal(
            role,
            host,
            "the role concerns all hosts of the groups managers and workers, and nothing is known of "
            f"{listing(missing) if missing else 'the others'}",
            "start these hosts, or take them out of the inventory",
        )


def _reasons(hosts: Sequence[str], play: PlayHosts) -> Iterator[tuple[str, str]]:
    strategy = play.strategy.removeprefix("ansible.builtin.")
    if not hosts:
        yield "the inventory has no host in them", "list the hosts there, the first manager first"
    if strategy.endswith(OUT_OF_STEP):
        yield f"the play has strategy: {strategy}, by which hosts do not wait for one another", "use strategy: linear"
    absent, all_hosts = _without(hosts, play.targeted), "set hosts: managers:workers in the play"
    if absent and play.limited:
        yield f"--limit leaves out {listing(absent)}", "run without --limit"
    elif absent:
        yield f"the play leaves out {listing(absent)}", all_hosts
    failed = _without(hosts, [*play.reached, *absent])
    if failed:
        yield f"{listing(failed)} failed before, or cannot be reached", "see the messages above, and run again"
    later = _without(hosts, [*play.batch, *absent, *failed])
    if later:
        yield f"serial leaves {listing(later)} to another batch", "take serial out of the play"
    others = _without(play.batch, hosts)
    if others:
        yield f"the play also has {listing(others)}, in neither of them", all_hosts


def _without(hosts: Iterable[str], others: Sequence[str]) -> list[str]:
    return [host for host in hosts if host not in others]
