# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Names of the overlay are waited for before a job only where all containers of the job are known to run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.role_values import NODES, load, templar, variables


def names_timeout(states: dict[str, str], check: bool = False, **changed: Any) -> int:
    (task,) = (task for task in load("deepspeed_launch/tasks/check.yml") if "swarmspeed.cluster.launch_probe" in task)
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
    return int(templar(given).template(task["swarmspeed.cluster.launch_probe"]["names_timeout"]))


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
