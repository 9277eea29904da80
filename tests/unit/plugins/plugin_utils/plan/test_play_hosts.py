# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a play has all hosts of the cluster together."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.play_hosts import PlayHosts, apart

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
        (ALL, {"strategy": "ansible.builtin.free"}, "the play has strategy: free, by which hosts do not wait"),
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
