# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files in group_vars and host_vars that apply to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import parse_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight import controller_io
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.unused_files import check_unused_files

from tests.documents import ROOT

SPECS = parse_specs(
    {
        path.parents[1].name: DataLoader().load_from_file(str(path))
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    }
)
GROUPS = {name: ["gpu1", "gpu2"] for name in ("all", "cluster")} | {"managers": ["gpu1"], "workers": ["gpu2"]}


def found(folder: Path) -> list[Problem]:
    inventory = Inventory(
        groups={**GROUPS, "ungrouped": []},
        specs=SPECS,
        kind=controller_io.kind,
        text=controller_io.text,
        listed=controller_io.names,
        folders=[str(folder), str(folder / "gone")],
    )
    return list(check_unused_files(inventory))


def write(folder: Path, name: str, content: str = "deepspeed_launch_script: train.py\n") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["gpus.yml", "gpus.yaml", "gpus.json", "gpus", "worker.yml"])
@pytest.mark.parametrize("kind", ["group", "host"])
def test_a_file_of_nothing_is_a_warning_that_names_it(kind: str, name: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"{kind}_vars/{name}")
    (problem,) = found(tmp_path)
    assert (problem.subject, problem.fatal) == (path, False)
    assert problem.text == f"applies to nothing, as there is no {kind} {Path(name).stem} in the inventory"
    assert ("did you mean the group workers?" in problem.remedy) is (kind == "group" and name == "worker.yml")


@pytest.mark.parametrize(
    "content",
    [
        '{"cluster_name": "x"}',
        "---\nmine: 1\nswarm_no_such: 2\n",
        "workspace_source: x\n",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
    ],
)
def test_what_may_set_our_variables_counts(content: str, tmp_path: Path) -> None:
    write(tmp_path, "group_vars/gpus/more/vars.yml", content)
    assert [problem.subject for problem in found(tmp_path)] == [str(tmp_path / "group_vars/gpus")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(
            (f"group_vars/{name}.yml", "cluster_name: x\n")
            for name in ("all", "cluster", "managers", "ungrouped", "bundle")
        ),
        ("group_vars/workers/vars.yml", "cluster_name: x\n"),
        *((f"host_vars/{name}.yml", "cluster_name: x\n") for name in ("gpu1", "localhost")),
        ("group_vars/webservers.yml", "nginx_port: 80\ndocker_users: [me]\n".replace("docker_users", "docker_own")),
        ("group_vars/README.md", "cluster_name: x\n"),
        ("group_vars/gpus.yml~", "cluster_name: x\n"),
        ("group_vars/.gpus.yml", "cluster_name: x\n"),
        ("group_vars/gpus.bak", "cluster_name: x\n"),
        ("group_vars/gpus.yml", "# cluster_name: x\n"),
    ],
)
def test_what_applies_or_is_none_of_our_business(name: str, content: str, tmp_path: Path) -> None:
    write(tmp_path, name, content)
    assert found(tmp_path) == []


def test_odd_folders_do_not_stop_it(tmp_path: Path) -> None:
    deep = tmp_path / "group_vars" / "gpus"
    deep.mkdir(parents=True)
    (deep / "loop").symlink_to(deep)
    (tmp_path / "host_vars").write_text("cluster_name: x\n")
    assert found(tmp_path) == []
