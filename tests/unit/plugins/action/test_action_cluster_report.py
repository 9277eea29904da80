# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action cluster_report: what it takes from Ansible, what it writes, and its errors."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.action import cluster_report
from ansible_collections.swarmspeed.cluster.plugins.modules import cluster_report as documented
from ansible_collections.swarmspeed.cluster.tests import report_clusters


def run(folder: Path | str, check: bool = False, **change: Any) -> dict[str, Any]:
    inputs = report_clusters.three()
    args = {
        "cluster": "swarmspeed",
        "hosts": list(inputs.hosts),
        "managers": ["lab1"],
        "gathered": {name: {"ansible_facts": {"swarmspeed": facts}} for name, facts in inputs.facts.items()},
        "jobs": dict(inputs.jobs),
        "folder": str(folder),
        "network_name": "swarmspeed",
        **change,
    }
    action = cluster_report.ActionModule(
        task=SimpleNamespace(args=args, check_mode=check, async_val=0, diff=False, action="cluster_report"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars={"hostvars": {"lab1": {"ansible_host": "10.1.0.10"}}})
    return result


def test_the_page_is_written_where_the_files_are(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "swarmspeed"
    result = run(folder)
    path = folder / "report.html"
    assert (result["changed"], result["path"], result["level"]) == (False, str(path), "ok")
    assert result["msg"] == (
        f"The report is in {path}. All 3 nodes answer, and what was seen of them is right. Not verified yet."
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    wrong = {"version": 1, "roles": {"swarm": {"ok": False, "sentence": "lab2 left"}}}
    (folder / "verify.json").write_text(json.dumps(wrong), encoding="utf-8")
    (folder / "bench_network.json").write_bytes(b"\xff\xfe{")
    result = run(folder)
    assert result["level"] == "bad"
    assert result["findings"] == [{"level": "bad", "where": "swarm", "what": "lab2 left.", "remedy": ""}]
    assert "bench_network.json is not JSON, perhaps cut short." in path.read_text(encoding="utf-8")


def test_nodes_that_did_not_answer(tmp_path: Path) -> None:
    gathered = {"lab1": {"unreachable": True, "msg": "Task failed: no route to host"}, "lab2": {"failed": True}}
    result = run(tmp_path, gathered=gathered, jobs={"lab1": {"skipped": True}})
    assert result["msg"].endswith("0 of 3 nodes answer; 2 things are wrong.")
    assert [(item["where"], item["what"]) for item in result["findings"]] == [
        ("lab2, lab3", "Do not answer, so nothing is known of them: no reason was given."),
        ("lab1", "Does not answer, so nothing is known of it: no route to host."),
    ]


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    result = run(tmp_path / "new", check=True)
    assert result["msg"].startswith(f"{tmp_path}/new/report.html would be written. All 3 nodes answer")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match=r"on the controller cannot be used: .* Set cluster_reports_dir to"):
        run(tmp_path / "file")


def test_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        AnsibleActionFail,
        match=r"cluster_reports_dir is empty, so the report cannot be written\. Set cluster_reports_dir",
    ):
        run("")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_page_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def full(*dummy: Any) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "report.html"))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(AnsibleActionFail, match="No space left on device"):
        run(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_documentation_has_the_arguments() -> None:
    options = from_yaml(documented.DOCUMENTATION)["options"]
    assert set(options) == set(cluster_report.SPEC)
    for name, spec in cluster_report.SPEC.items():
        for part in ("type", "default", "choices", "required", "elements"):
            assert options[name].get(part) == spec.get(part), (name, part)
