# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Wrong values and inventories, by ansible-playbook itself: refused before any connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.playbook_run import playbook, variables

NAMES = ("a", "b", "c")


def write(path: Path, **by_host: dict[str, Any]) -> Path:
    """Write an inventory whose hosts answer nobody; ``by_host`` are variables beside their addresses."""
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
    run.refused_by(*(("launch_values", name) for name in wrong))
    assert "UNREACHABLE" not in run.output


@pytest.mark.slow  # it runs ansible-playbook
def test_a_folder_for_logs_that_cannot_be_written_is_refused_where_a_job_follows(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = variables(deepspeed_launch_script="-m x", deepspeed_launch_logs_dir=str(tmp_path / "file" / "jobs"))
    inventory = write(tmp_path / "inventory.json")
    playbook("launch", *given, inventory=inventory).refused_by(("launch_values", "deepspeed_launch_logs_dir"))
    playbook("plan", *given, inventory=inventory).refused_by(("reachable", "a, b, c"))
