# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role ssh_trust acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.gathered import (
    AUTHORIZED,
    block_name,
    configuration_path,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.servers import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, load, templar, variables
from tests.ssh_nodes import FIRST, SECOND, act, plan, virgin

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "swarmspeed.cluster.managed_files": "files",
}
PROVIDE = {"generate_host": False, "generate_cluster": False, "copy_cluster": False, "copied_from": "gpu1"}


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return plan_of("ssh_trust", NOTHING, pending, drift, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    return shown(tasks_that_run("ssh_trust", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or (str(task[key]) if key == "ansible.builtin.include_tasks" else task["name"])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("ssh_trust/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {"gpu2": {"docker": False}}}])
@pytest.mark.parametrize("file", ["main", "verify"])
def test_what_this_run_has_not_planned_it_plans(file: str, plan: dict[str, Any] | None) -> None:
    assert runs(file, plan) == ["gather and plan"]


def test_keys_come_before_what_holds_them_and_neither_in_check_mode() -> None:
    assert runs("main", planned(True)) == ["report", "converge.yml"]
    assert runs("main", planned(True, provide=PROVIDE)) == ["report", "keys.yml", "converge.yml"]
    assert runs("main", planned(True, provide=PROVIDE), ansible_check_mode=True) == ["report"]


@pytest.mark.parametrize(
    ("provide", "ran"),
    [
        ({"generate_host": True}, ["Generate the host key of this node's container"]),
        ({"generate_cluster": True}, ["Generate the cluster's key pair, once"]),
        ({"copy_cluster": True}, ["Copy the cluster's key to the node"]),
    ],
)
def test_each_key_has_its_task(provide: dict[str, Any], ran: list[str]) -> None:
    found = runs("keys", planned(True, provide={**PROVIDE, **provide}))
    assert [name for name in found if name != "Read the cluster's key"] == [*ran, "gather and plan"]
    found = runs("keys", planned(True, provide={**PROVIDE, **provide}, folders=[{"path": "/x"}]))
    assert found[0] == "files"


def test_the_clusters_key_is_read_once_and_neither_shown_nor_logged() -> None:
    named = {task["name"]: task for task in load("ssh_trust/tasks/keys.yml")}
    read, copied = named["Read the cluster's key"], named["Copy the cluster's key to the node"]
    assert read["no_log"] is True and copied["no_log"] is True
    assert read["run_once"] is True and "when" not in read  # the first host's condition would count for all
    given = variables("ssh_trust", swarmspeed_plan=planned(True, provide=PROVIDE))
    assert templar(given).template(read["delegate_to"]) == "gpu1"


@pytest.mark.parametrize(
    ("act", "ran"),
    [({}, []), ({"files": [{"path": "/x"}]}, ["files"]), ({"reload": ["docker"]}, ["Reload the running sshd"])],
)
def test_each_part_of_the_plan_has_its_task_and_all_is_planned_again(act: dict[str, Any], ran: list[str]) -> None:
    assert runs("converge", planned(True, **act)) == [*ran, "gather and plan"]
    for file in ("keys", "converge"):
        *dummy, last = load(f"ssh_trust/tasks/{file}.yml")
        assert last["ansible.builtin.include_role"]["tasks_from"] == "again" and "when" not in last
        assert last["vars"] == {"_preflight_roles": ["ssh_trust"]}


def test_verify_fails_at_what_is_left_to_change() -> None:
    (last,) = (task for task in load("ssh_trust/tasks/verify.yml") if task["name"].startswith("Assert that nothing"))
    for drift, right in (("", True), ("id_ed25519 is missing", False)):
        given = variables("ssh_trust", swarmspeed_plan=planned(bool(drift), drift))
        assert templar(given).evaluate_conditional(last["ansible.builtin.assert"]["that"]) is right


def test_teardown_shreds_every_private_key_that_is_made() -> None:
    made = act(plan(virgin()), FIRST)["provide"]
    (task,) = (task for task in load("ssh_trust/tasks/teardown.yml") if task["name"].startswith("Shred"))
    given = variables("ssh_trust", cluster_root="/srv/swarmspeed/lab")
    shredded = [templar(given).template(path) for path in task["loop"]]
    assert {made["path"], made["host_path"], "/srv/swarmspeed/lab/etc/job_key"} == set(shredded)


def test_teardown_leaves_the_keys_of_others_and_names_the_block_as_the_plan_does() -> None:
    named = {task["name"]: task for task in load("ssh_trust/tasks/teardown.yml")}
    block = named["Remove the cluster's key from those that root accepts"]["ansible.builtin.blockinfile"]
    given = variables("ssh_trust", cluster_name="lab")
    assert block["path"] == AUTHORIZED and block["state"] == "absent"
    assert templar(given).template(block["marker"]) == f"# {{mark}} {block_name('lab')}"
    file = named["Remove root's SSH configuration for the hosts"]["ansible.builtin.file"]
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
    given = variables("ssh_trust", swarmspeed_plan=planned(False, reach=["gpu1", "gpu2"]))
    (task,) = (task for task in load("ssh_trust/tasks/verify.yml") if task["name"].startswith("Log in"))
    argv = templar(given).template(task["ansible.builtin.command"]["argv"])
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment, timeout=60)
    assert (found.stdout, found.stderr) == (reported, "")
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines() == [
        f"-n -o BatchMode=yes {name} true" for name in ("gpu1", "gpu2")
    ]


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for path in (ROLES / "ssh_trust/tasks").glob("*.yml"):
        assert [task for task in load(f"ssh_trust/tasks/{path.name}") if "tags" in task] == []


def test_every_name_of_the_plan_that_is_read_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "ssh_trust/tasks").glob("*.yml")))
    assert set(re.findall(r"_ssh_trust_act\.(\w+)", text)) == set(NOTHING)
    provide = act(plan(virgin()), SECOND)["provide"]
    assert set(re.findall(r"_ssh_trust_act\.provide\.(\w+)", text)) == set(provide)
    # Jinja would find the methods of a mapping before its keys.
    assert not {*NOTHING, *provide} & set(dir(dict))
