# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_container_toolkit alone in a play of the user's own, by ansible-playbook itself.

The hosts are stand-ins with invented GPUs, whose facts are others each time that they are gathered. Nothing is changed
anywhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import engine_settings
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    GATHERED,
    PACKAGES,
    RECORD_PATH,
    STAMP_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT

from tests.adversary.hostile import facts as honest
from tests.stand_ins import StandIns, changed
from tests.toolkit_hosts import done, node

ENGINE = "26.1.5+dfsg1-9"
PREVIEW = {
    "changed": False,
    "packages": [f"{name}=1.18.2-1" for name in PACKAGES],
    "problems": [],
    "cannot_fetch": False,
}
SEEN = {"command": {"rc": 0, "stdout": "GPU 0: H100", "stderr": ""}}
GATHER = "node_facts"


def whole(found: dict[str, Any]) -> dict[str, Any]:
    """Return invented facts of a toolkit with those of everything else."""
    base = honest()
    return {
        **base,
        **found,
        "system": {**base["system"], **found["system"]},
        "gpu": {**base["gpu"], **found["gpu"], "driver": {**base["gpu"]["driver"], **found["gpu"]["driver"]}},
        "docker": {**base["docker"], **found["docker"]},
        "files": {**{entry["path"]: ABSENT for entry in GATHERED.files}, **found["files"]},
    }


def ready() -> dict[str, Any]:
    return whole(done())


def untested() -> dict[str, Any]:
    return whole(done(held=[], files={STAMP_PATH: ABSENT, RECORD_PATH: ABSENT}))


def plain() -> dict[str, Any]:
    """A host without a GPU."""
    return whole(node()) | {"gpu": {**honest()["gpu"], "present": False, "pci_devices": []}}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path, "nvidia_container_toolkit")
    configured = {"docker_daemon_config": {"restarted": True}}
    made.add("empty", whole(node()), untested(), ready(), replies={"package_preview": PREVIEW, **SEEN, **configured})
    made.add("plain", plain())
    made.add("ready", ready())
    return made


def sent(hosts: StandIns, name: str) -> list[str]:
    """Return what a host was sent, without what copying a file needs beside."""
    return [module for module in hosts.modules(name) if module not in ("stat", "file")]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_it_gathers_plans_and_acts_where_something_is_to_be_done(hosts: StandIns) -> None:
    output = hosts.play()
    assert set(changed(output)) == {"empty", "ready", "plain"}, output
    assert (changed(output)["ready"], changed(output)["plain"]) == (0, 0)
    assert sent(hosts, "empty") == [
        *(GATHER, "package_preview", "copy", "copy", "apt", "docker_daemon_config", "systemd_service", GATHER),
        # The test makes an image, sees the GPUs and the device file, and removes it; its record, four holds and theirs.
        *("command", "command", "command", "command", "copy", *["dpkg_selections"] * 4, "copy", GATHER),
    ]
    assert (sent(hosts, "ready"), sent(hosts, "plain")) == ([GATHER], [GATHER])
    # A second run gathers and plans, and not one task follows.
    output = hosts.play()
    assert changed(output) == {"empty": 0, "ready": 0, "plain": 0}, output
    assert sent(hosts, "empty") == [GATHER]
    tasks = re.findall(r"^TASK \[(?:swarmspeed.cluster.)?(.*?)\]", output, re.M)
    assert [name for name in tasks if not name.startswith("preflight : ")] == [
        "nvidia_container_toolkit : Validating arguments against arg spec 'main' - Give containers access to the GPUs "
        "of a node",
        "Gather facts and plan, unless this run already has",
        "Afterwards",
    ]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_asks_apt_and_reports_the_plan_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff")
    assert changed(output) == {"empty": 1, "ready": 0, "plain": 0}, output
    assert sent(hosts, "empty") == [GATHER, "package_preview"]
    assert (
        "+ package nvidia-container-toolkit: (known after apply)  # nvidia_container_toolkit_version: 1.18.2" in output
    )


def test_a_toolkit_that_does_not_work_gives_way_to_the_former_one_where_it_failed(tmp_path: Path) -> None:
    """With any_errors_fatal, as in site.yml: what failed on one host brings all that are in its block to the rescue."""
    hosts = StandIns(tmp_path, "nvidia_container_toolkit")
    former = whole(done(packages=dict.fromkeys(PACKAGES, "1.17.8-1")))
    unseen = {"command": {"rc": 1, "stdout": "", "stderr": "could not select device driver"}}
    hosts.add("old", former, untested(), replies={"package_preview": PREVIEW, **unseen})
    works = {"command": [SEEN["command"], {"rc": 127}, {"rc": 0}]}  # an image without Python
    hosts.add("other", former, untested(), replies={"package_preview": PREVIEW, **works})
    of_play = {"any_errors_fatal": True}
    output = " ".join(hosts.play(of_play=of_play, nvidia_container_toolkit_smoke_image="cuda:1").split())
    assert (
        "old: the container toolkit does not work. Assert that the container has CUDA on all GPUs of the node: "
        in output
    )
    assert "nvidia-smi in a container of cuda:1 ended with 1 and printed: could not select device driver" in output
    assert "The version that was there before (1.17.8-1) is back." in output
    assert 'Remedy: try "docker run --rm --device nvidia.com/gpu=all IMAGE nvidia-smi" on the node' in output
    modules = sent(hosts, "old")
    assert modules[-6:] == ["apt", "systemd_service", *["dpkg_selections"] * 4]
    assert "other: the container toolkit does not work" not in output and "other goes on" not in output
    assert sent(hosts, "other").count("apt") == 1


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_running_containers_need_consent(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "nvidia_container_toolkit")
    busy = whole(node())
    container = next(iter(honest()["docker"]["containers"].values()))
    busy["docker"]["containers"] = {"job": {**container, "state": "running"}}
    hosts.add("busy", busy, replies={"package_preview": {**PREVIEW, "problems": ["apt stops here."]}})
    output = " ".join(hosts.play().split())
    assert "busy: the container toolkit changes, and the engine must be restarted for features in" in output
    assert (
        "In the way: job. Remedy: set docker_allow_restart: true to allow it, or stop the containers first." in output
    )
    assert sent(hosts, "busy") == [GATHER]
    output = " ".join(hosts.play(docker_allow_restart="yes").split())
    assert "busy: nothing was changed. apt stops here." in output
    assert sent(hosts, "busy") == [GATHER, "package_preview"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_an_engine_that_gives_no_gpus_fails_role_and_verify_and_is_no_change(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "nvidia_container_toolkit")
    stale = ready()
    stale["docker"]["settings"] = engine_settings({"CgroupDriver": "systemd"})
    hosts.add("stale", stale)
    for entry in ("", "verify"):
        output = hosts.play(entry=entry)
        assert "stale: the Docker engine does not support CDI devices. Remedy: ansible-playbook" in " ".join(
            output.split()
        )
        assert sent(hosts, "stale") == [GATHER]
    output = hosts.play("--check")
    assert changed(output) == {"stale": 0}, output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_passes_on_what_is_done_and_says_what_is_not(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", nvidia_container_toolkit_hold=False).split())
    assert "ready: role nvidia_container_toolkit: hold on libnvidia-container-tools exists, but should not" in output
    assert "empty: the Docker engine does not support CDI devices; there is no /var/run/cdi/nvidia.yaml" in output
    hosts.modules("ready")
    output = hosts.play("--limit", "ready,plain", entry="verify")
    assert changed(output) == {"ready": 0, "plain": 0} and sent(hosts, "ready") == [GATHER], output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_teardown_lifts_holds(hosts: StandIns) -> None:
    output = hosts.play("--limit", "ready,plain", entry="teardown")
    assert changed(output).get("plain") == 0, output
    modules = [module for module in hosts.modules("ready") if module != "stat"]
    assert modules == [GATHER, *["dpkg_selections"] * 4, "file"]
