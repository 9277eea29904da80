# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a play has all hosts of the cluster together."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import HOST_BY_HOST
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.play_hosts import (
    PlayHosts,
    apart,
    divided,
    own_roles,
)

ALL = ["gpu1", "gpu2", "gpu3"]
MANY = [f"gpu{number}" for number in range(1, 10)]


def play(**changed: Any) -> PlayHosts:
    return PlayHosts(
        **{"batch": ALL, "reached": ALL, "targeted": ALL, "limited": False, "strategy": "linear", **changed}
    )


@pytest.mark.parametrize("strategy", ["linear", "ansible.builtin.linear", "debug", "mitogen_linear"])
def test_all_hosts_in_one_batch_are_together(strategy: str) -> None:
    assert apart("swarm", ALL, play(strategy=strategy)) == ""
    assert apart("swarm", ALL, play(strategy=strategy, limited=True)) == ""  # a limit that leaves out none


@pytest.mark.parametrize(
    ("hosts", "changed", "reason"),
    [
        ([], {}, "the inventory has no host in them. Remedy: list the hosts there, the first manager first."),
        (ALL, {"strategy": "ansible.builtin.free"}, "the play has strategy: free, under which hosts do not wait"),
        (ALL, {"strategy": "host_pinned"}, "the play has strategy: host_pinned, "),
        (
            ALL,
            {"targeted": ALL[:1], "reached": ALL[:1], "batch": ALL[:1]},
            "the play leaves out gpu2, gpu3. Remedy: set hosts",
        ),
        (
            ALL,
            {"targeted": ALL[1:], "reached": ALL[1:], "batch": ALL[1:], "limited": True},
            "--limit leaves out gpu1. ",
        ),
        (ALL, {"reached": ALL[:2], "batch": ALL[:2]}, "gpu3 failed before, or cannot be reached. Remedy: see "),
        (ALL, {"batch": ALL[:2]}, "serial leaves gpu3 to another batch. Remedy: take serial out of the play."),
        (ALL[:2], {}, "the play also has gpu3, in neither of them. Remedy: set hosts: managers:workers in the play."),
        (MANY, {}, "the play leaves out gpu4, gpu5, gpu6, gpu7, gpu8 and 1 more. "),
    ],
)
def test_why_they_are_not_is_one_sentence(hosts: list[str], changed: dict[str, Any], reason: str) -> None:
    begin = "The role swarm concerns all hosts of the groups managers and workers, and needs them together: "
    assert apart("swarm", hosts, play(**changed)).startswith(begin + reason)


@pytest.mark.parametrize(
    ("changed", "subject", "text"),
    [
        (
            {"targeted": ALL[2:], "limited": True},
            "--limit",
            "leaves out gpu1, gpu2, but addresses, ranks and the swarm",
        ),
        (
            {"strategy": "ansible.builtin.free"},
            "strategy",
            "is free, under which hosts do not wait for one another, but ",
        ),
        ({"targeted": ALL[2:], "limited": True, "tags": ["docker", "swarm"]}, "--limit", "leaves out gpu1, gpu2, but "),
        (
            {"targeted": ALL[2:], "limited": True, "tags": ["docker", "verify"]},
            "--limit",
            "leaves out gpu1, gpu2, but ",
        ),
    ],
)
def test_what_divides_the_hosts_of_a_run_that_needs_them_together(
    changed: dict[str, Any], subject: str, text: str
) -> None:
    ((found, reason, remedy),) = divided(ALL, play(**changed))
    assert (found, reason.startswith(text)) == (subject, True), reason
    assert remedy.endswith(
        f" with the tags of roles that plan each host for itself ({', '.join(HOST_BY_HOST)}) and no others, such as "
        "--tags docker"
    )
    assert own_roles(ALL, play(**changed)) == []


@pytest.mark.parametrize("changed", [{"targeted": ALL[2:], "limited": True}, {"strategy": "host_pinned"}])
def test_roles_that_plan_each_host_for_itself_need_no_others(changed: dict[str, Any]) -> None:
    tagged = play(**changed, tags=["docker", "host"])
    assert (list(divided(ALL, tagged)), own_roles(ALL, tagged)) == ([], ["host", "docker"])


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"limited": True},
        {"tags": ["docker"]},
        {"targeted": ["localhost"]},
        {"targeted": ["localhost"], "limited": True, "tags": ["docker"]},
        {"targeted": ALL[1:]},  # a play of the user's own says what it needs by apart
    ],
)
def test_otherwise_the_cluster_is_planned_as_a_whole(changed: dict[str, Any]) -> None:
    assert (list(divided(ALL, play(**changed))), own_roles(ALL, play(**changed))) == ([], [])
