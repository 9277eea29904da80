# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters over directories and specs: what they pass on, and the error that Ansible shows without a traceback."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import cluster

FILTERS = cluster.FilterModule().filters()


def test_the_files_of_a_tree(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("mine")
    (tmp_path / "train.py").write_text("x")
    digest = hashlib.sha256(b"x").hexdigest()
    assert FILTERS["tree_manifest"](str(tmp_path), [".git"]) == {"train.py": digest}
    assert set(FILTERS["tree_manifest"](str(tmp_path))) == {"train.py", ".git/config"}
    assert set(FILTERS["tree_manifest"](str(tmp_path), None)) == {"train.py", ".git/config"}


@pytest.mark.parametrize("name", ["none", "a_file"])
def test_a_tree_that_is_no_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "a_file").write_text("x")
    with pytest.raises(AnsibleFilterError) as caught:
        FILTERS["tree_manifest"](str(tmp_path / name))
    assert str(caught.value) == (
        f"swarmspeed.cluster.tree_manifest: {tmp_path / name} is not a directory on the controller"
    )


def test_the_plan_of_a_launch() -> None:
    assert FILTERS["launch_plan"]({"a": 2, "b": 4, "c": 0}, "b:1,3@a") == {
        "hosts": [{"name": "a", "slots": 2}, {"name": "b", "slots": 4}],
        "include": "a:0,1@b:1,3",
        "nodes": ["a", "b"],
        "members": [{"name": "a", "slots": [0, 1]}, {"name": "b", "slots": [1, 3]}],
        "world_size": 4,
    }
    assert FILTERS["launch_plan"]({"a": 2}, "", "")["include"] == ""


def test_a_launch_that_cannot_be() -> None:
    with pytest.raises(
        AnsibleFilterError, match=r"^swarmspeed\.cluster\.launch_plan: .*: include: 'x' is not one of the hosts"
    ):
        FILTERS["launch_plan"]({"a": 2}, "x")


def test_every_filter_is_documented() -> None:
    for name in FILTERS:
        page = Path(cluster.__file__).with_name(f"{name}.yml")
        assert from_yaml(page.read_text(encoding="utf-8"))["DOCUMENTATION"]["name"] == name
