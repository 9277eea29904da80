"""The lab's inventory script: groups, how nodes are reached, and what it says when no lab is up."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("lab", Path(__file__).parents[3] / "inventories" / "lab" / "lab.py")
assert _SPEC is not None
assert _SPEC.loader is not None
lab = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(lab)

NODES = [{"name": f"lab{number}", "address": f"10.231.0.1{number}"} for number in (1, 2, 3)]


def test_first_node_manages_and_the_others_work() -> None:
    found = lab.inventory(NODES, Path("/state"))
    assert found["cluster"] == {"children": ["managers", "workers"]}
    assert found["managers"] == {"hosts": ["lab1"]}
    assert found["workers"] == {"hosts": ["lab2", "lab3"]}
    assert list(found["_meta"]["hostvars"]) == ["lab1", "lab2", "lab3"]


def test_one_node_is_a_cluster_too() -> None:
    found = lab.inventory(NODES[:1], Path("/state"))
    assert found["managers"] == {"hosts": ["lab1"]}
    assert found["workers"] == {"hosts": []}


def test_a_node_is_reached_with_the_labs_key_and_pinned_host_keys_only() -> None:
    variables = lab.inventory(NODES, Path("/the state"))["_meta"]["hostvars"]["lab2"]
    assert variables == {
        "ansible_host": "10.231.0.12",
        "ansible_user": "root",
        "ansible_ssh_private_key_file": "/the state/id_ed25519",
        "ansible_ssh_common_args": '-o UserKnownHostsFile="/the state/known_hosts" -o GlobalKnownHostsFile=/dev/null'
        " -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes",
    }


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout's folder of labs, empty."""
    monkeypatch.setattr(lab, "LABS", tmp_path)
    monkeypatch.delenv("LAB_NAME", raising=False)
    return tmp_path


def test_the_lab_that_lab_name_says_is_printed(
    labs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, nodes in (("swarmspeed", NODES), ("mine", NODES[:1])):
        (labs / name).mkdir()
        (labs / name / "inventory.json").write_text(json.dumps({"nodes": nodes}), encoding="utf-8")
    assert lab.main() == 0
    assert json.loads(capsys.readouterr().out) == lab.inventory(NODES, labs / "swarmspeed")
    monkeypatch.setenv("LAB_NAME", "mine")
    assert lab.main() == 0
    assert json.loads(capsys.readouterr().out) == lab.inventory(NODES[:1], labs / "mine")


@pytest.mark.parametrize(("name", "command"), [(None, "make lab"), ("mine", "make lab LAB_NAME=mine")])
def test_a_lab_that_is_not_up_is_one_line_with_the_remedy(
    labs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str | None,
    command: str,
) -> None:
    if name:
        monkeypatch.setenv("LAB_NAME", name)
    shown = name or "swarmspeed"
    assert lab.main() == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (f"the lab '{shown}' is not up ({labs}/{shown}/inventory.json is missing): run {command}\n")
