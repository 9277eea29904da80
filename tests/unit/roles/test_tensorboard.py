# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tensorboard.yml does on the first manager, by ansible-playbook on stand-ins. Scenario examples serves it.

One invented container answers for that of the node and for that of TensorBoard: a stand-in replies by module alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.tensorboard import board

from tests.role_values import ROLES, load
from tests.stand_ins import StandIns, changed, tasks

ROLE = "deepspeed_launch"
TRAINING: dict[str, Any] = {
    "Image": f"sha256:{'ab' * 32}",
    "Mounts": [{"Type": "bind", "Source": "/srv/lab/workspace", "Destination": "/workspace"}],
}
VARIABLES: dict[str, Any] = {"cluster_name": "lab", "cluster_root": "/srv/lab"}
REQUESTED = {
    "host": "gpu1",
    "cluster": "lab",
    "runtime": "container",
    "state": "present",
    "port": 6006,
    "logdir": "/workspace",
}
ANSWERS = {
    "wait_for": {"changed": False},
    "uri": {"changed": False, "status": 200, "json": {"data_location": "/workspace"}},
}
READ = ["docker_container_info", "docker_container_info"]


class Cluster:
    """Two nodes, the first of which answers for the container."""

    def __init__(self, folder: Path) -> None:
        self.hosts = StandIns(folder, ROLE, replies={"rc": 0})

    def play(self, *arguments: str, running: bool, replies: dict[str, Any] | None = None, **given: Any) -> str:
        labels = board(REQUESTED, TRAINING, {})["settings"]["labels"]
        container = {**TRAINING, "Config": {"Labels": labels, "Cmd": []}, "State": {"Running": running}}
        found = {"docker_container_info": {"changed": False, "container": container}, **ANSWERS, **(replies or {})}
        self.hosts.add("gpu1", {}, replies=found)
        self.hosts.add("gpu2", {})
        # The tasks of the playbook, on these hosts.
        dummy, play = DataLoader().load_from_file(str(ROLES.parent / "playbooks/tensorboard.yml"))
        of_play = {"tasks": play["tasks"], "any_errors_fatal": play["any_errors_fatal"]}
        return self.hosts.play(*arguments, entry="tensorboard", of_play=of_play, **VARIABLES, **given)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_it_is_started_on_the_first_manager_alone(cluster: Cluster) -> None:
    reported = cluster.play(running=False)
    assert changed(reported) == {"gpu1": 1, "gpu2": 0}, reported
    assert cluster.hosts.modules("gpu1") == [*READ, "command", "wait_for", "docker_container", "uri"]
    assert cluster.hosts.modules("gpu2") == []
    assert "Open http://127.0.0.1:6006 on gpu1." in reported  # the connection of a stand-in is local


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_second_run_only_reads_and_prints(cluster: Cluster) -> None:
    reported = cluster.play(running=True)
    assert changed(reported) == {"gpu1": 0, "gpu2": 0}, reported
    assert cluster.hosts.modules("gpu1") == [*READ, "uri"]
    assert "Open http://127.0.0.1:6006 on gpu1." in reported


def test_an_image_without_it_is_refused_before_anything_is_changed(cluster: Cluster) -> None:
    lacks = {"rc": 1, "stderr": "/usr/bin/python3: No module named tensorboard\n"}
    reported = cluster.play(running=False, replies={"command": lacks})
    words = " ".join(reported.split())
    assert (
        "gpu1: TensorBoard does not run in the training image: /usr/bin/python3: No module named tensorboard. Remedy:"
        " training_image_python_packages: [tensorboard], and site.yml." in words
    ), reported
    assert cluster.hosts.modules("gpu1") == [*READ, "command"]


def test_absent_removes_it(cluster: Cluster) -> None:
    reported = cluster.play(running=True, tensorboard_state="absent")
    assert changed(reported) == {"gpu1": 1, "gpu2": 0}, reported
    assert cluster.hosts.modules("gpu1") == [*READ, "docker_container"]


def test_a_limit_without_the_first_manager_is_an_error(cluster: Cluster) -> None:
    reported = " ".join(cluster.play("--limit", "gpu2", running=True).split())
    assert "TensorBoard is served from gpu1, the first manager, which --limit leaves out. Remedy: leave" in reported


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_says_what_would_be_changed(cluster: Cluster) -> None:
    reported = cluster.play("--check", running=False)
    assert changed(reported) == {"gpu1": 1, "gpu2": 0}, reported
    assert not {"Wait until TensorBoard answers", "Print how to open TensorBoard"} & {
        name.rpartition(" : ")[2] for name in tasks(reported)
    }


def test_the_container_may_read_and_nothing_else() -> None:
    (start,) = [task for task in load(f"{ROLE}/tasks/tensorboard_here.yml") if task["name"] == "Start TensorBoard"]
    made = start["block"][-1]["community.docker.docker_container"]
    assert (made["read_only"], made["cap_drop"], made["security_opts"]) == (True, ["all"], ["no-new-privileges"])
    # On the host's network nothing is published: the command binds 127.0.0.1 there.
    assert made["network_mode"] == "host" and "published_ports" not in made and "privileged" not in made
