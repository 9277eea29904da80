# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How long is waited for names before a job, and after it for the logs of a node that it has lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.role_values import NODES, load, templar, variables


def names_timeout(states: dict[str, str], check: bool = False, **changed: Any) -> int:
    (task,) = (task for task in load("deepspeed_launch/tasks/check.yml") if "swarmspeed.cluster.job_precheck" in task)
    hosts = {
        name: {
            "ansible_facts": {
                "swarmspeed": {
                    "docker": {"containers": {f"ai-{name}": {"state": states[name]}} if name in states else {}}
                }
            }
        }
        for name in NODES
    }
    plan = {"nodes": list(NODES), "members": [{"name": name, "slots": [0]} for name in NODES]}
    given = variables(cluster_name="ai", cluster_network_mode="overlay", ansible_check_mode=check, hostvars=hosts)
    given.update({**task["vars"], "_deepspeed_launch_plan": plan, "swarmspeed_bare": False, **changed})
    return int(templar(given).template(task["swarmspeed.cluster.job_precheck"]["names_timeout"]))


RUN = dict.fromkeys(NODES, "running")


@pytest.mark.parametrize(
    ("states", "changed", "seconds"),
    [
        (RUN, {}, 90),
        ({**RUN, "gpu3": "exited"}, {}, 0),
        ({"gpu1": "running", "gpu2": "running"}, {}, 0),
        (RUN, {"check": True}, 0),
        (RUN, {"cluster_network_mode": "host"}, 0),
        (RUN, {"swarmspeed_bare": True}, 0),
    ],
)
def test_how_long_names_are_waited_for(states: dict[str, str], changed: dict[str, Any], seconds: int) -> None:
    assert names_timeout(states, **changed) == seconds


@pytest.mark.parametrize(
    ("ended", "seconds"),
    [
        ({"job": {"reason": "gpu2 has gone: it has not answered for 11 s."}}, 25),
        ({"job": {"reason": "gpu3 has gone: it has not answered for 11 s."}}, 600),
        # The node whose rank has failed is up, and its logs are those that count.
        ({"job": {"reason": "rank 1 on gpu2 ended with exit code 1.", "failed_node": "gpu2"}}, 600),
        ({"job": {"reason": None}}, 600),
        ({"unreachable": True, "msg": "lost contact"}, 600),
        (None, 600),
    ],
)
def test_how_long_logs_are_waited_for(ended: dict[str, Any] | None, seconds: int) -> None:
    (task,) = (task for task in load("deepspeed_launch/tasks/gather.yml") if "swarmspeed.cluster.job_logs" in task)
    hosts: dict[str, Any] = {"gpu1": {} if ended is None else {"_deepspeed_launch_ended": ended}}
    given = variables(hostvars=hosts)
    given.update({**task["vars"], "_deepspeed_launch_rank0": "gpu1"})
    assert int(templar(given).template(task["swarmspeed.cluster.job_logs"]["patience"])) == seconds
