# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role workspace alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.gathered import apt_packages

from tests.adversary.hostile import facts as honest
from tests.stand_ins import StandIns, changed

ROOT = "/srv/swarmspeed/swarmspeed"
PATH = f"{ROOT}/workspace"
PYTHON = "/opt/train"
WITH: dict[str, Any] = {"workspace_python_environment": PYTHON, "workspace_python_torch": "torch==2.12.1"}


def facts(number: int, *, code: bool, record: str | None = None) -> dict[str, Any]:
    found = copy.deepcopy(honest(number))
    there = {**ABSENT, "exists": True, "content": record} if record else dict(ABSENT)
    found["files"] = {PYTHON: dict(ABSENT), f"{PYTHON}/.swarmspeed": there}
    found["packages"] = dict.fromkeys(apt_packages("python3", []), "1")
    found["jobs"] = {}
    found["trees"] = {PATH: [] if code else ["train.py"]}
    found["trees_missing"] = found["trees"]
    found["code"] = {}
    return found


@pytest.fixture
def source(tmp_path: Path) -> str:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "train.py").write_text("print()\n", encoding="utf-8")
    return str(folder)


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    """The first host has the code, the second one has none."""
    place = tmp_path / "hosts"
    place.mkdir()
    made = StandIns(place, "workspace")
    made.add("gpu1", facts(1, code=True))
    made.add("gpu2", facts(2, code=False), facts(2, code=True))
    return made


def test_the_code_is_copied_where_it_differs_and_planned_again(hosts: StandIns, source: str) -> None:
    output = hosts.play(workspace_source=source)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    assert hosts.modules("gpu1") == ["node_facts"]
    second = hosts.modules("gpu2")
    assert second[0] == second[-1] == "node_facts" and "mounted_files" in second and "apt" not in second
    assert "gpu1 goes on" in output and "gpu2 goes on" in output
    # A second run gathers and plans, and nothing else is sent.
    output = hosts.play(workspace_source=source)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns, source: str) -> None:
    output = hosts.play("--check", "--diff", workspace_source=source)
    assert changed(output) == {"gpu1": 0, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    assert f"\n    + {PATH}/train.py: as in {source}\n" in output
    assert "Plan: 1 to add, 0 to change, 0 to remove." in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(("arguments", "of_play"), [(["--limit", "gpu2"], {}), ([], {"serial": 1})])
def test_code_is_an_affair_of_each_host(hosts: StandIns, source: str, arguments: list[str], of_play: Any) -> None:
    output = hosts.play(*arguments, of_play=of_play, workspace_source=source)
    assert "gpu2" in changed(output), output
    assert "mounted_files" in hosts.modules("gpu2")


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(("arguments", "of_play"), [(["--limit", "gpu2"], {}), ([], {"serial": 1})])
def test_an_environment_follows_from_the_whole_cluster(hosts: StandIns, arguments: list[str], of_play: Any) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play, **WITH).split())
    assert "role workspace concerns all hosts of the groups managers and workers, and needs them together" in output
    assert hosts.modules("gpu1") == [] and hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_an_environment_is_planned_without_the_variables_of_the_image(hosts: StandIns) -> None:
    output = hosts.play("--check", cluster_accelerator="cpu", **WITH)
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert output.count(f"\n    + Python environment {PYTHON}: torch==2.12.1, deepspeed==0.19.8\n") == 2


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_source_that_is_not_there_is_named(hosts: StandIns, source: str) -> None:
    output = " ".join(hosts.play(workspace_source=f"{source}/gone").split())
    assert f"workspace_source: {source}/gone is not a directory on the controller. Remedy: correct this" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_repository_is_fetched_once_and_copied_as_a_folder(hosts: StandIns, source: str, tmp_path: Path) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "."], [*own, "commit", "--quiet", "-m", "x"]):
        subprocess.run(["git", "-C", source, *words], check=True)
    wanted: dict[str, Any] = {"workspace_source": f"file://{source}", "workspace_source_ref": "main"}
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    output = hosts.play("--check", environment=cache, **wanted)
    commit = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert f"+ {PATH}/train.py: as in file://{source} at main (commit {commit.stdout[:12]})\n" in output
    assert output.count("TASK [swarmspeed.cluster.preflight : Fetch the source of the workspace") == 1
    hosts.modules("gpu2")
    hosts.add("gpu2", facts(2, code=False), facts(2, code=True))
    output = hosts.play(environment=cache, **wanted)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    assert "mounted_files" in hosts.modules("gpu2")
    wanted["workspace_source_ref"] = "gone"
    output = " ".join(hosts.play(environment=cache, **wanted).split())
    assert f"workspace_source_ref: file://{source} has no tag or branch gone. Remedy: correct it" in output
    assert hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_lists_what_is_not_done(hosts: StandIns, source: str) -> None:
    output = " ".join(hosts.play(entry="verify", workspace_source=source).split())
    assert f"gpu2: role workspace: {PATH}/train.py is missing. Remedy: ansible-playbook site.yml" in output
    assert "gpu1: role workspace" not in output
