# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a play has all hosts of the cluster together, as roles need that concern the cluster as a whole. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem, listing
from ..core.roles import HOST_BY_HOST

OUT_OF_STEP = ("free", "host_pinned")
"""Strategies by which a host begins a task while others are still at an earlier one."""


@dataclass(frozen=True)
class PlayHosts:
    """The hosts of a play: ``targeted`` are all, ``reached`` those without failure, ``batch`` those of this turn.

    ``tags`` are those of the run, ``all`` where none was given.
    """

    batch: Sequence[str]
    reached: Sequence[str]
    targeted: Sequence[str]
    limited: bool
    strategy: str
    tags: Sequence[str] = ("all",)


def play_of(task: Any) -> Any:
    """Return the play that a task is part of, or None."""
    part = task
    while part is not None and not hasattr(part, "_play"):
        part = getattr(part, "_parent", None)
    return None if part is None else part._play


def play_hosts(variables: Mapping[str, Any], task: Any) -> PlayHosts:
    """Return the hosts of a task's play, from the variables that Ansible sets and the play that the task is part of."""
    names = ("ansible_play_batch", "ansible_play_hosts", "ansible_play_hosts_all")
    batch, reached, targeted = ([str(host) for host in variables.get(name) or []] for name in names)
    play = play_of(task)
    return PlayHosts(
        batch=batch,
        reached=reached,
        targeted=targeted,
        limited=bool(variables.get("ansible_limit")),
        # No variable has it.
        strategy=str(play.strategy) if play is not None else "linear",
        tags=[str(tag) for tag in variables.get("ansible_run_tags") or ["all"]],
    )


def own_roles(hosts: Sequence[str], play: PlayHosts) -> list[str]:
    """Return the roles to be planned for the hosts of the play alone; none where the cluster is planned as a whole."""
    if not any(_divided(hosts, play)) or not set(play.tags) <= set(HOST_BY_HOST):
        return []
    return [role for role in HOST_BY_HOST if role in play.tags]


def divided(hosts: Sequence[str], play: PlayHosts) -> Iterator[tuple[str, str, str]]:
    """Yield subject, text and remedy of what keeps the hosts of the cluster apart in a run that needs all of them."""
    if own_roles(hosts, play):
        return
    named = ", ".join(HOST_BY_HOST)
    for subject, reason, remedy in _divided(hosts, play):
        yield (
            subject,
            f"{reason}, but addresses, ranks and the swarm are planned for all hosts of the cluster together",
            f"{remedy}; or run site.yml, verify.yml or teardown.yml with the tags of roles that plan each host for "
            f"itself ({named}) and no others, such as --tags docker",
        )


def _divided(hosts: Sequence[str], play: PlayHosts) -> Iterator[tuple[str, str, str]]:
    if not set(hosts) & set(play.targeted):
        return  # a play on the controller
    if _strategy(play).endswith(OUT_OF_STEP):
        yield (
            "strategy",
            f"is {_strategy(play)}, under which hosts do not wait for one another",
            "run with ANSIBLE_STRATEGY=linear",
        )
    absent = _without(hosts, play.targeted)
    if absent and play.limited:
        yield "--limit", f"leaves out {listing(absent)}", "run without --limit"


def _strategy(play: PlayHosts) -> str:
    return play.strategy.removeprefix("ansible.builtin.")


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


def unknown_hosts(role: str, hosts: Sequence[str], known: Sequence[str]) -> Iterator[Problem]:
    """Refuse on the hosts that are ``known`` what is planned for all ``hosts`` of the cluster or for none."""
    missing = _without(hosts, known)
    for host in known:
        yield Problem(
            host,
            (
                "the role concerns all hosts of the groups managers and workers, but there are no facts of "
                f"{listing(missing) if missing else 'the others'}"
            ),
            "start these hosts, or take them out of the inventory",
            role=role,
        )


def _reasons(hosts: Sequence[str], play: PlayHosts) -> Iterator[tuple[str, str]]:
    strategy = _strategy(play)
    if not hosts:
        yield "the inventory has no host in them", "list the hosts there, the first manager first"
    if strategy.endswith(OUT_OF_STEP):
        yield (
            f"the play has strategy: {strategy}, under which hosts do not wait for one another",
            "use strategy: linear",
        )
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
