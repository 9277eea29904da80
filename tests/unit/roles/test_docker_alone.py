# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role docker alone in a play of the user's own, by ansible-playbook itself.

The facts of its stand-ins become those of a host where everything is done once the engine was started.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import KEY_FILE, DockerPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold

from tests.adversary.hostile import facts as honest
from tests.role_values import defaults
from tests.stand_ins import StandIns, changed, tasks

ENGINE = {"docker.io": "20.10.24+dfsg1-1", "python3-docker": "5.0", "python3-requests": "2.28"}
DEFAULTS = defaults()
CHANGING = ["docker_daemon_config", "apt", "systemd_service"]
"""What a host without an engine is sent between the two times that its facts are gathered."""


def facts(*running: str, **packages: str) -> dict[str, Any]:
    """Facts of a host with an engine where there are packages, on which these containers run."""
    there = bool(packages)
    return {
        **honest(),
        "packages": {**dict.fromkeys(GATHERED.packages), **packages},
        "held": [],
        "files": {},
        "groups": {"docker": []},
        "accounts": {"ada": True},
        "engine": {"config_exists": False, "config": {}, "problem": None, "unit": None},
        "docker": {
            **honest()["docker"],
            "installed": there,
            "running": there,
            "version": "20.10.24" if there else None,
            "containers": {
                name: {**honest()["docker"]["containers"]["lab-gpu1"], "state": "running"} for name in running
            },
        },
    }


def after(before: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of the host once the role has done what it plans with its defaults."""
    inputs = Inputs(files={KEY_FILE: ""})
    made = dict(fold([DockerPlanner()], {"h": before}, {"h": DEFAULTS}, inputs).facts["h"])
    packages = {
        name: "1" if version == "(known after apply)" else version for name, version in made["packages"].items()
    }
    return {**made, "packages": packages, "docker": {**made["docker"], "version": "20.10.24"}}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    socket = {"stat": {"exists": True, "woth": False, "roth": False, "mode": "0660"}}
    made = StandIns(tmp_path, "docker", ["systemd_service"], socket, grouped=False, tags=["engine"])
    for name, found in (("empty", facts()), ("ready", facts("job", **ENGINE))):
        made.add(name, found, after(found))
    return made


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_it_gathers_plans_and_acts_where_something_is_to_be_done(hosts: StandIns) -> None:
    output = hosts.play()
    assert changed(output) == {"empty": 3, "ready": 0}, output
    assert hosts.modules("empty") == ["node_facts", *CHANGING, "node_facts"]
    assert hosts.modules("ready") == ["node_facts"]
    # A host that has ended the role waits for the others, and goes on with what follows it.
    acted, went_on = (
        output.index("TASK [swarmspeed.cluster.docker : Start the engine]"),
        output.index("TASK [Afterwards]"),
    )
    assert acted < went_on < min(output.index("empty goes on"), output.index("ready goes on"))
    # A second run gathers and plans, and not one task follows.
    output = hosts.play("--tags", "engine")
    assert changed(output) == {"empty": 0, "ready": 0}, output
    assert (hosts.modules("empty"), hosts.modules("ready")) == (["node_facts"], ["node_facts"])
    assert tasks(output) == [
        "docker : Validating arguments against arg spec 'main' - Install and configure the Docker engine",
        "Gather facts and plan, unless this run already has",
        "preflight : Determine which hosts the role is planned for",
        "preflight : Mark a standalone run",
        "preflight : Generate the run's id and the key for digests of secrets",
        "preflight : Gather facts",
        "preflight : Plan what the role would change",
        "Afterwards",
    ]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_after_a_task_with_run_once_no_host_is_planned_by_the_facts_of_another(hosts: StandIns) -> None:
    """With ansible-core 2.21 hosts share their facts after such a task of the user's own, ansible/ansible#87148."""
    output = hosts.play(of_play={"pre_tasks": [{"debug": {"msg": "hello"}, "run_once": True}]})
    if "has the facts of" in output:
        assert "Remedy: add the task ansible.builtin.meta: clear_facts" in " ".join(output.split())
        assert [hosts.modules(host) for host in ("empty", "ready")] == [["node_facts"]] * 2
        cleared = [{"debug": {"msg": "hello"}, "run_once": True}, {"meta": "clear_facts"}]
        output = hosts.play(of_play={"pre_tasks": cleared})
    assert changed(output) == {"empty": 3, "ready": 0}, output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", "-e", f"cluster_plan_file={hosts.folder}/plan.json")
    assert changed(output) == {"empty": 1, "ready": 0}, output
    assert (hosts.modules("empty"), hosts.modules("ready")) == (["node_facts"], ["node_facts"])
    assert "\nempty\n  docker\n    + /etc/docker/daemon.json log-driver: json-file  # a new engine\n" in output
    assert "\nPlan: 7 to add, 0 to change, 0 to remove.\n" in output and "Not part of the plan" not in output
    assert "+package docker.io: (known after apply)\n" in output
    document = json.loads((hosts.folder / "plan.json").read_text(encoding="utf-8"))
    assert [change["host"] for change in document["changes"]] == ["empty"] * 7


def test_without_consent_nothing_is_sent_to_the_host(hosts: StandIns) -> None:
    requested: dict[str, Any] = {"docker_daemon_config": {"data-root": "/data"}}
    output = hosts.play(**requested)
    assert "ready: the engine must be restarted for data-root" in " ".join(output.split())
    assert hosts.modules("ready") == ["node_facts"]
    output = hosts.play(**requested, docker_allow_restart=True)
    assert hosts.modules("ready") == ["node_facts", "docker_daemon_config", "systemd_service", "node_facts"], output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_facts_of_an_earlier_run_are_gathered_again_and_no_secret_is_shown_or_kept(hosts: StandIns) -> None:
    cache = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(hosts.folder / "cache")}
    password = "never-to-be-seen-81"
    for again in (False, True):
        output = hosts.play(
            "--check", "--diff", "-vvv", environment=cache, docker_proxy={"http": f"http://u:{password}@p"}
        )
        assert hosts.modules("empty") == ["node_facts"], again
        kept = "".join(path.read_text(encoding="utf-8") for path in (hosts.folder / "cache").iterdir())
        assert "docker.io" in kept and password not in kept and password not in output
        assert "swarmspeed-proxy.env: (a secret)" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_passes_on_what_is_done_and_lists_what_is_not(hosts: StandIns) -> None:
    output = hosts.play(entry="verify", docker_users=["ada"])
    assert "ready: role docker: user ada in group docker is missing. Remedy: " in " ".join(output.split())
    assert "empty: the Docker engine does not answer" in " ".join(output.split())
    hosts.modules("ready")
    output = hosts.play("--limit", "ready", entry="verify")
    # The stand-in says changed of whatever it is sent.
    assert changed(output) == {"ready": 1} and hosts.modules("ready") == ["node_facts", "stat"], output
