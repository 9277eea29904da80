# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action workspace_fetch: what it takes from Ansible, what it returns, and its errors."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.action import workspace_fetch
from ansible_collections.swarmspeed.cluster.plugins.modules import workspace_fetch as documented


def run(**args: Any) -> dict[str, Any]:
    action = workspace_fetch.ActionModule(
        task=SimpleNamespace(args=args, check_mode=True, async_val=0, diff=False, action="workspace_fetch"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars={})
    return result


@pytest.fixture
def url(tmp_path: Path) -> str:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "train.py").write_text("print()\n", encoding="utf-8")
    own = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "."], [*own, "commit", "--quiet", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return f"file://{folder}"


def test_the_files_are_in_the_folder_that_is_returned(url: str, tmp_path: Path) -> None:
    # In check mode too: without the files, nothing could be predicted.
    result = run(source=url, reference="main", cache=str(tmp_path / "cache"))
    assert Path(result["folder"], "train.py").read_text(encoding="utf-8") == "print()\n"
    assert result["changed"] is False and result["problems"] == [] and len(result["commit"]) == 40
    assert result["name"] == f"{url} at main (commit {result['commit'][:12]})"
    pinned = run(source=url, reference=result["commit"], cache=str(tmp_path / "cache"))
    assert pinned["name"] == f"{url} at commit {result['commit'][:12]}" and pinned["folder"] == result["folder"]


def test_a_folder_of_the_controller_is_returned_as_it_is() -> None:
    result = run(source="/home/me/src")
    assert (result["folder"], result["name"], result["commit"]) == ("/home/me/src", "/home/me/src", "")


def test_a_relative_folder_starts_where_the_playbook_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/me")
    result = run(source="src")
    assert (result["folder"], result["name"]) == ("/home/me/src", "src")


def test_a_problem_is_an_error_or_left_to_preflight(url: str, tmp_path: Path) -> None:
    args = {"source": url, "reference": "v9", "cache": str(tmp_path / "cache")}
    with pytest.raises(AnsibleActionFail) as error:
        run(**args)
    text, remedy = f"{url} has no tag or branch v9", "correct it; git ls-remote lists the tags and branches"
    assert str(error.value) == f"workspace_source_ref: {text}. Remedy: {remedy}."
    result = run(**args, collect=True)
    assert result["problems"] == [{"subject": "workspace_source_ref", "text": text, "remedy": remedy}]
    assert (result["folder"], result["name"], result.get("failed")) == ("", "", None)


def test_the_documented_options_are_those_of_the_action() -> None:
    options = from_yaml(documented.DOCUMENTATION)["options"]
    assert options.keys() == workspace_fetch.SPEC.keys()
    for name, option in options.items():
        assert option["type"] == workspace_fetch.SPEC[name]["type"]
        assert option.get("default") == workspace_fetch.SPEC[name].get("default")
