# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of hostfile, over real files, and that it returns what it documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.modules import hostfile

HOSTS = [{"name": "gpu1", "slots": 8}, {"name": "gpu2", "slots": 4}]
TEXT = "gpu1 slots=8\ngpu2 slots=4\n"


class Run:
    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capsys = capsys

    def __call__(self, **args: Any) -> dict[str, Any]:
        with patch_module_args({"path": str(self.path), **args}), pytest.raises(SystemExit) as ended:
            hostfile.main()
        result: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        assert (ended.value.code == 0) is not result.get("failed", False)
        return result


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path / "hostfile", capsys)


def test_check_run_and_run_again(run: Run) -> None:
    predicted = run(hosts=HOSTS, _ansible_check_mode=True, _ansible_diff=True)
    assert not run.path.exists()
    first = run(hosts=HOSTS, _ansible_diff=True)
    assert run.path.read_text() == TEXT
    assert run.path.stat().st_mode & 0o777 == 0o644
    second = run(hosts=HOSTS, _ansible_diff=True)
    assert [result["changed"] for result in (predicted, first, second)] == [True, True, False]
    assert predicted["diff"][0] == first["diff"][0]
    assert first["diff"][0]["after"] == TEXT
    assert second["diff"] == []
    for result in (predicted, first, second):
        assert (result["hosts"], result["world_size"], result["first_host"]) == (HOSTS, 12, "gpu1")
    documented = from_yaml(hostfile.RETURN)
    assert set(documented) - {"errors", "backup_file"} <= set(first)


def test_order_is_kept_and_comments_go(run: Run) -> None:
    run.path.write_text("# ours\n" + TEXT)
    result = run(hosts=HOSTS[::-1])
    assert result["changed"] is True
    assert run.path.read_text() == "gpu2 slots=4\ngpu1 slots=8\n"
    assert "backup_file" not in result


def test_a_mode_alone_is_a_change(run: Run) -> None:
    run(hosts=HOSTS)
    assert run(hosts=HOSTS, mode="0600")["changed"] is True
    assert run.path.stat().st_mode & 0o777 == 0o600


def test_problems_are_one_message_and_nothing_is_written(run: Run) -> None:
    run.path.write_text(TEXT)
    result = run(hosts=[{"name": "a", "slots": True}, {"name": "A", "slots": 1}, {"slots": 2}])
    assert result["msg"] == (
        f"The hostfile {run.path} was not written: 3 problems\n"
        "- hosts[0].slots: must be a whole number from 1 to 1024, the processes on that host, one a GPU, not true;"
        " leave out a host that takes no part\n"
        "- hosts[1].name: 'A' is already hosts[0] (letter case does not count); name each host once\n"
        "- hosts[2].name: is missing; give the host's name"
    )
    assert [error["path"] for error in result["errors"]] == ["hosts[0].slots", "hosts[1].name", "hosts[2].name"]
    assert run.path.read_text() == TEXT


@pytest.mark.parametrize("state", ["present", "absent"])
def test_another_file_is_left_alone_without_force(run: Run, state: str) -> None:
    run.path.write_text("127.0.0.1 localhost\n")
    result = run(hosts=HOSTS, state=state)
    assert result["msg"] == (
        f"{run.path} is not a DeepSpeed hostfile: line 1 is not 'name slots=N': '127.0.0.1 localhost'. It was left as"
        " it is; mend or remove it, name another path, or set force: true to replace it, which keeps a copy beside it"
    )
    assert run.path.read_text() == "127.0.0.1 localhost\n"
    forced = run(hosts=HOSTS, state=state, force=True)
    assert Path(forced["backup_file"]).read_text() == "127.0.0.1 localhost\n"
    assert run.path.exists() is (state == "present")


def test_bytes_are_no_hostfile_but_an_empty_file_holds_nothing_to_lose(run: Run) -> None:
    run.path.write_bytes(b"\xff\xfe")
    assert "it is not UTF-8 text" in run(hosts=HOSTS)["msg"]
    run.path.write_bytes(b"\n")
    assert run(hosts=HOSTS)["changed"] is True
    assert run.path.read_text() == TEXT


def test_absent(run: Run) -> None:
    run(hosts=HOSTS)
    assert run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert run.path.exists()
    assert run(state="absent")["changed"] is True
    assert not run.path.exists()
    assert run(state="absent")["changed"] is False


def test_hosts_are_required_and_the_folder_must_be_there(run: Run) -> None:
    assert run()["msg"] == "state is present but all of the following are missing: hosts"
    assert run(hosts=[])["msg"].endswith("hosts: must be a list of at least one {name, slots}")
    run.path = run.path.parent / "none" / "hostfile"
    assert run(hosts=HOSTS)["msg"] == f"{run.path.parent} does not exist; create it before writing {run.path}"
