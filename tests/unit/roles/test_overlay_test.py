# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""training_container's test of the overlay network, run by Ansible: hosts and docker are stand-ins on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stand_ins import ANSIBLE, newcomer

NODES = ("gpu1", "gpu2", "gpu3")
DOCKER = """\
#!{python}
import json, os, sys
given = json.loads(sys.stdin.readline())["requested"]
here = sys.argv[3].removeprefix("ai-")  # docker exec -i CONTAINER
with open(os.path.join(os.path.dirname(__file__), "cut.json")) as file:
    cut = json.load(file)
done, lost = {"stage": "done", "error": ""}, {"stage": "connect", "error": "No route to host"}
print("SWARMSPEED_REACH " + json.dumps({name: lost if [here, name] in cut else done for name in given["hosts"]}))
"""
REACH = {"containers": {name: f"ai-{name}" for name in NODES}, "port": 2222}
PLAYBOOK = """\
- name: Test
  hosts: cluster
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Give the facts
      ansible.builtin.set_fact:
        swarmspeed: "{{ found }}"
        cacheable: true
    - name: Test the network
      ansible.builtin.import_role:
        name: swarmspeed.cluster.training_container
        tasks_from: network
"""


def run(place: Path, *cut: tuple[str, str], **facts: Any) -> subprocess.CompletedProcess[str]:
    """Run the test with these pairs cut, and facts of gpu2's."""
    docker = place / "docker"
    docker.write_text(DOCKER.replace("{python}", sys.executable))
    docker.chmod(0o755)
    (place / "cut.json").write_text(json.dumps(cut))
    (place / "play.yml").write_text(PLAYBOOK)
    own = {name: {"docker": {"containers": {f"ai-{name}": {"state": "running"}}}, "jobs": {}} for name in NODES}
    own["gpu2"].update(facts)
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "swarmspeed_plan": {
            "task_inputs": {name: {"training_container": {"name": f"ai-{name}", "reach": REACH}} for name in NODES}
        },
    }
    managers = {"hosts": {"gpu1": {"found": own["gpu1"]}}}
    workers = {"hosts": {name: {"found": own[name]} for name in NODES[1:]}}
    inventory = {"cluster": {"vars": common, "children": {"managers": managers, "workers": workers}}}
    (place / "hosts.json").write_text(json.dumps(inventory))
    return subprocess.run(
        # Nothing here converges, so nothing is waited for.
        [
            ANSIBLE,
            *("-i", "hosts.json", "play.yml", "-e", '{"_training_container_patience": 0}'),
        ],
        cwd=place,
        env={**newcomer(place), "PATH": f"{place}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_network_that_is_whole_changes_nothing(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0 ") == 3
    assert "Restart" not in done.stdout


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ({"jobs": {"digits": "running"}}, "job digits"),
        (
            {"docker": {"containers": {"ai-gpu2": {"state": "running"}, "database": {"state": "running"}}}},
            "container database on gpu2",
        ),
    ],
)
def test_a_network_that_is_cut_where_something_runs_fails_and_reports_it(
    tmp_path: Path, facts: dict[str, Any], what: str
) -> None:
    # In one direction only: gpu2 itself finds nothing wrong.
    done = run(tmp_path, ("gpu1", "gpu2"), ("gpu3", "gpu2"), **facts)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2, done.stdout + done.stderr
    assert (
        "gpu2: the overlay network is cut between the containers of gpu1 and gpu2 (connect: No route to host)" in text
    )
    assert f"The engine was not restarted, as {what} would be disturbed. Remedy: restart the engine there" in text
    assert "TASK [swarmspeed.cluster.training_container : Restart the engine" not in text
