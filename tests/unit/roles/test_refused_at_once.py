# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Playbooks by ansible-playbook itself: wrong values and inventories, and hosts that refuse every connection."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.playbook_run import playbook, variables
from tests.stand_ins import StandIns
from tests.unit.roles.test_docker_alone import ENGINE, after
from tests.unit.roles.test_docker_alone import facts as engine_facts

NAMES = ("a", "b", "c")


def write(path: Path, **by_host: dict[str, Any]) -> Path:
    """Write an inventory whose hosts refuse connections; ``by_host`` are variables beside their addresses."""
    hosts = {
        name: {"ansible_host": f"127.0.0.{number}", "ansible_port": 1, **by_host.get(name, {})}
        for number, name in enumerate(NAMES, 1)
    }
    groups = {"managers": {"hosts": {"a": hosts["a"]}}, "workers": {"hosts": {name: hosts[name] for name in "bc"}}}
    path.write_text(json.dumps({"cluster": {"children": groups}}), encoding="utf-8")
    return path


def test_wrong_values_of_the_job_are_refused_together(tmp_path: Path) -> None:
    wrong = {
        "deepspeed_launch_results": ["../../etc"],
        "deepspeed_launch_name": "My Job",
        "deepspeed_launch_master_port": 99999,
        "deepspeed_launch_stall_timeout": -5,
    }
    run = playbook("plan", *variables(**wrong), inventory=write(tmp_path / "inventory.json"))
    run.refused_by(*(("values", f"{name}[0]" if isinstance(value, list) else name) for name, value in wrong.items()))
    assert "UNREACHABLE" not in run.output


@pytest.mark.slow  # it runs ansible-playbook
def test_a_folder_for_logs_that_cannot_be_written_is_refused_where_a_job_follows(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = variables(deepspeed_launch_script="-m x", deepspeed_launch_logs_dir=str(tmp_path / "file" / "jobs"))
    inventory = write(tmp_path / "inventory.json")
    playbook("launch", *given, inventory=inventory).refused_by(("launch_values", "deepspeed_launch_logs_dir"))
    playbook("plan", *given, inventory=inventory).refused_by(("reachable", "a, b, c"))


def test_two_hosts_that_are_one_machine_and_a_misspelt_variable_are_refused(tmp_path: Path) -> None:
    inventory = write(tmp_path / "inventory.json", b={"ansible_host": "127.0.0.1", "ansible_usr": "me"})
    run = playbook("plan", inventory=inventory).refused_by(("connections", "a, b"), ("connections", "ansible_usr"))
    assert "UNREACHABLE" not in run.output


def test_a_list_of_hosts_without_groups_is_refused_with_a_command_that_writes_an_inventory(tmp_path: Path) -> None:
    run = playbook("site", "--inventory", "a,b,", inventory=None).refused("a, b: in no group")
    command = re.search(r"printf '.*? > hosts\.ini", run.text)
    assert command, run.output
    subprocess.run(["sh", "-c", command[0]], cwd=tmp_path, check=True)
    text = (tmp_path / "hosts.ini").read_text(encoding="utf-8")
    assert text.split() == ["[cluster:children]", "managers", "workers", "[managers]", "a", "[workers]", "b"]


@pytest.mark.parametrize("limit", [(), pytest.param(("--limit", "c"), marks=pytest.mark.slow)])
def test_a_cluster_that_does_not_answer_is_not_said_to_have_no_jobs(limit: tuple[str, ...], tmp_path: Path) -> None:
    run = playbook("stop", *limit, inventory=write(tmp_path / "inventory.json"))
    reason = "c did not answer and a, b were not queried (--limit)" if limit else "a, b, c did not answer"
    run.refused(f"Nothing was stopped: {reason}, so the state of jobs there is unknown.", "Check: ansible c -m ping")
    assert not any(text in run.text for text in ("Nothing to stop", "There is no job", "There are no jobs"))


@pytest.mark.slow  # it runs ansible-playbook three times
def test_variables_of_a_group_that_is_not_there_are_a_warning_at_the_beginning_and_at_the_end(tmp_path: Path) -> None:
    found = engine_facts("job", **ENGINE)
    hosts = StandIns(tmp_path, "docker")
    hosts.add("gpu1", found, after(found))
    hosts.add("gpu2", found, after(found))
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"cluster": {"children": hosts.inventory()}}), encoding="utf-8")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "gpus.yml").write_text("deepspeed_launch_script: train.py\n", encoding="utf-8")
    reported = f"{tmp_path}/group_vars/gpus.yml: applies to nothing, as there is no group gpus in the inventory."
    # Of a run that needs less of its invented hosts than a whole one.
    part = ("--limit", "gpu1", "--tags", "docker")
    for name in ("plan", "site"):
        run = playbook(name, *part, inventory=inventory).done(nodes=("gpu1",))
        assert run.text.count(reported) == 2, run.output
        assert run.text.index(reported) < run.text.index("Gather facts") < run.text.rindex(reported)
    assert (
        "unused_files is skipped"
        in playbook("plan", "--tags", "docker", *variables(preflight_skip=["unused_files"]), inventory=inventory).text
    )
