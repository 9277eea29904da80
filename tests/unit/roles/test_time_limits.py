# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Tasks that can hang on a host that answers pings have a time limit, several times what they were seen to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

ROOT = Path(__file__).parents[3]
FILES = sorted(
    [*ROOT.glob("roles/*/tasks/**/*.yml"), *ROOT.glob("roles/*/handlers/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
)
LIMITS = {
    # By what they wait for: the engine, systemd, dpkg's lock and downloads, a file system.
    "ansible.builtin.apt": (1800, 7200),
    "ansible.builtin.dpkg_selections": (60, 600),
    "ansible.builtin.systemd_service": (120, 600),
    "community.docker.docker_container": (120, 600),
    "community.docker.docker_container_exec": (60, 600),
    "community.docker.docker_image_info": (60, 600),
    "community.docker.docker_image_load": (3600, 14400),
    "community.docker.docker_image_pull": (3600, 21600),
    "community.docker.docker_image_remove": (120, 1800),
    "community.docker.docker_image_tag": (60, 600),
    "community.docker.docker_network": (60, 600),
    "swarmspeed.cluster.container_swap": (120, 600),
    "swarmspeed.cluster.docker_daemon_config": (120, 1200),
    "swarmspeed.cluster.driver_preview": (600, 3600),
    "swarmspeed.cluster.ds_config": (60, 600),
    "swarmspeed.cluster.network_mesh_test": (120, 1800),
    "swarmspeed.cluster.hostfile": (60, 600),
    "swarmspeed.cluster.job_precheck": (200, 900),
    "swarmspeed.cluster.node_facts": (120, 600),
    "swarmspeed.cluster.overlay_reach": (120, 600),
    "swarmspeed.cluster.package_preview": (600, 3600),
    "swarmspeed.cluster.swarm_membership": (120, 1200),
    "swarmspeed.cluster.training_job": (120, 1200),
    "swarmspeed.cluster.training_job_info": (60, 600),
}
ANY = (30, 86400)
"""Seconds for what is not in the table."""
NONE = {
    "ansible.builtin": (
        # Nothing runs on a node.
        *("assert", "debug", "fail", "meta", "set_fact", "group_by", "add_host", "import_playbook"),
        *("import_role", "import_tasks", "include_role", "include_tasks"),
        # They have limits of their own, which end the wait.
        *("reboot", "uri", "wait_for", "wait_for_connection"),
        # A person answers.
        "pause",
        # One file of the system, or one on the controller.
        *("blockinfile", "copy", "fetch", "file", "find", "slurp", "stat", "tempfile", "template", "lineinfile"),
    ),
    "community.crypto": ("openssh_keypair",),
    "swarmspeed.cluster": (
        # On the controller.
        *("asset_sources", "cluster_facts", "cluster_report", "network_test_result", "plan", "preflight", "ssh_close"),
        "workspace_fetch",
        # Files of the system's, as copy.
        "managed_files",
    ),
}
"""Actions that need no limit of the task. What is neither here nor in FOLLOWED needs one, also a new module."""
KEYWORDS = ("ansible.builtin.", "community.", "swarmspeed.cluster.")
FOLLOWED = ("swarmspeed.cluster.image_build", "swarmspeed.cluster.image_transfer", "swarmspeed.cluster.job_logs")
"""They last as long as they last, with a limit for each look (following) or for the whole (patience)."""


def tasks(entries: list[dict[str, Any]], inherited: int | None = None) -> list[tuple[dict[str, Any], int | None]]:
    """Return each task with its limit, which it may have of its block."""
    found = []
    for entry in entries:
        limit = entry.get("timeout", inherited)
        inner = [part for name in ("block", "rescue", "always") for part in entry.get(name) or []]
        found += tasks(inner, limit) if "block" in entry else tasks(entry.get("tasks") or [], limit)
        found.append((entry, limit))
    return found


def check(path: Path) -> list[str]:
    wrong = []
    for task, limit in tasks(DataLoader().load_from_file(str(path)) or []):
        action = next((name for name in task if name.startswith(KEYWORDS)), "")
        space, dummy, short = action.rpartition(".")
        if not action or short in NONE.get(space, ()) or action in FOLLOWED:
            continue
        if action == "swarmspeed.cluster.training_job" and (task[action] or {}).get("follow") is True:
            continue
        low, high = LIMITS.get(action, ANY)
        if not (isinstance(limit, int) and low <= limit <= high):
            wrong.append(f"{task.get('name')}: {action} has timeout {limit}")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tasks_that_can_hang_have_a_limit(path: Path) -> None:
    assert check(path) == []


def test_what_is_followed_has_no_limit_of_the_task_that_would_end_it() -> None:
    for path in FILES:
        for task, limit in tasks(DataLoader().load_from_file(str(path)) or []):
            if FOLLOWED[0] in task or (task.get("swarmspeed.cluster.training_job") or {}).get("follow") is True:
                assert limit is None, (path, task["name"])


@pytest.mark.parametrize(
    ("action", "limit"),
    [
        ("ansible.builtin.systemd_service", None),
        ("ansible.builtin.command", None),
        ("ansible.builtin.shell", None),
        ("swarmspeed.cluster.a_new_module", None),
        ("community.docker.a_new_module", None),
        ("swarmspeed.cluster.a_new_module", 5),
        ("swarmspeed.cluster.node_facts", 86400),
    ],
)
def test_a_task_without_a_limit_is_found(action: str, limit: int | None, tmp_path: Path) -> None:
    path = tmp_path / "main.yml"
    words = f"  timeout: {limit}\n" if limit else ""
    path.write_text(f"- name: Start\n  {action}: {{name: docker}}\n{words}")
    assert check(path) == [f"Start: {action} has timeout {limit}"]


def test_what_needs_no_limit_is_used() -> None:
    used = {
        name for path in FILES for task, dummy in tasks(DataLoader().load_from_file(str(path)) or []) for name in task
    }
    ours = {f"swarmspeed.cluster.{name}" for name in NONE["swarmspeed.cluster"]}
    assert ours <= used and set(FOLLOWED) <= used
