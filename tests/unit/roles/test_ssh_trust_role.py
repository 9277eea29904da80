# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role ssh_trust acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.gathered import (
    AUTHORIZED,
    block_name,
    configuration_path,
)

from tests.planned_roles import GATHER, REPORT, PlannedRole
from tests.role_values import templar
from tests.ssh_nodes import FIRST, plan, task_input, virgin

ROLE = PlannedRole("ssh_trust")
PROVIDE = {"generate_host": False, "generate_cluster": False, "copy_cluster": False, "copied_from": "gpu1"}


def test_keys_come_before_what_holds_them_and_neither_in_check_mode() -> None:
    assert ROLE.runs("main", ROLE.plan(True, provide=PROVIDE)) == [REPORT, "keys.yml", "converge.yml"]
    assert ROLE.runs("main", ROLE.plan(True, provide=PROVIDE), ansible_check_mode=True) == [REPORT]


@pytest.mark.parametrize(
    ("provide", "ran"),
    [
        ({"generate_host": True}, ["Generate the host key of this node's container"]),
        ({"generate_cluster": True}, ["Generate the cluster's key pair, once"]),
        ({"copy_cluster": True}, ["Copy the cluster's key to the node"]),
    ],
)
def test_each_key_has_its_task(provide: dict[str, Any], ran: list[str]) -> None:
    found = ROLE.runs("keys", ROLE.plan(True, provide={**PROVIDE, **provide}))
    assert [name for name in found if name != "Read the cluster's key"] == [*ran, GATHER]
    found = ROLE.runs("keys", ROLE.plan(True, provide={**PROVIDE, **provide}, folders=[{"path": "/x"}]))
    assert found[0] == "Create the folders of the keys"


def test_the_clusters_key_is_read_once_and_neither_shown_nor_logged() -> None:
    read, copied = ROLE.task("keys", "Read the cluster's key"), ROLE.task("keys", "Copy the cluster's key to the node")
    assert read["no_log"] is True and copied["no_log"] is True
    assert read["run_once"] is True and "when" not in read  # the first host's condition would count for all
    assert templar(ROLE.given(ROLE.plan(True, provide=PROVIDE))).template(read["delegate_to"]) == "gpu1"


@pytest.mark.parametrize(
    ("task_input", "ran"),
    [
        ({}, []),
        ({"files": [{"path": "/x"}]}, ["Write the SSH configuration"]),
        ({"reload": ["docker"]}, ["Reload the running sshd"]),
    ],
)
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], ran: list[str]) -> None:
    assert ROLE.runs("converge", ROLE.plan(True, **task_input)) == [*ran, GATHER]


def test_teardown_shreds_every_private_key_that_is_made() -> None:
    made = task_input(plan(virgin()), FIRST)["provide"]
    given = ROLE.given(None, cluster_root="/srv/swarmspeed/lab")
    shredded = [templar(given).template(path) for path in ROLE.task("teardown", "Shred")["loop"]]
    assert {made["path"], made["host_path"], "/srv/swarmspeed/lab/etc/job_key"} == set(shredded)


def test_teardown_leaves_the_keys_of_others_and_names_the_block_as_the_plan_does() -> None:
    given = ROLE.given(None, cluster_name="lab")
    block = ROLE.task("teardown", "Remove the cluster's key from those that root accepts")[
        "ansible.builtin.blockinfile"
    ]
    assert block["path"] == AUTHORIZED and block["state"] == "absent"
    assert templar(given).template(block["marker"]) == f"# {{mark}} {block_name('lab')}"
    file = ROLE.task("teardown", "Remove root's SSH configuration for the hosts")["ansible.builtin.file"]
    assert templar(given).template(file["path"]) == configuration_path("lab") and file["state"] == "absent"


@pytest.mark.parametrize(("fails", "reported"), [((), ""), (("gpu2",), "gpu2 (Permission denied (publickey).)\n")])
def test_verify_logs_in_to_every_host_and_names_those_that_refuse(
    tmp_path: Path, fails: tuple[str, ...], reported: str
) -> None:
    ssh = tmp_path / "ssh"
    refused = " ".join(fails) or "none"
    ssh.write_text(
        f"""#!/bin/sh
printf "%s\\n" "$*" >> {tmp_path}/calls
case " {refused} " in *" $4 "*) printf 'a banner\nPermission denied\033 (publickey).\r\n' >&2; exit 255 ;; esac
""",
        encoding="utf-8",
    )
    ssh.chmod(0o755)
    given = ROLE.given(ROLE.plan(False, reach=["gpu1", "gpu2"]))
    argv = templar(given).template(ROLE.task("verify", "Log in")["ansible.builtin.command"]["argv"])
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment, timeout=60)
    assert (found.stdout, found.stderr) == (reported, "")
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines() == [
        f"-n -o BatchMode=yes {name} true" for name in ("gpu1", "gpu2")
    ]
