# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of hostfile, over real files, and that it returns what it documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.filters import plan
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
        assert (result["left_out"], result["include"]) == ([], "")
        assert result["chosen"] == [
            {"name": "gpu1", "slots": [0, 1, 2, 3, 4, 5, 6, 7]},
            {"name": "gpu2", "slots": [0, 1, 2, 3]},
        ]
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
    assert [error["path"] for error in result["errors"]] == ["hosts[0].slots", "hosts[1].name", "hosts[2].name"]
    assert result["msg"].splitlines() == [
        f"The hostfile {run.path} was not written: 3 problems",
        *(f"- {error['path']}: {error['message']}" for error in result["errors"]),
    ]
    assert run.path.read_text() == TEXT


@pytest.mark.parametrize("state", ["present", "absent"])
def test_another_file_is_left_alone_without_force(run: Run, state: str) -> None:
    run.path.write_text("127.0.0.1 localhost\n")
    result = run(hosts=HOSTS, state=state)
    assert result["msg"].startswith(
        f"{run.path} is not a DeepSpeed hostfile: line 1 is not 'name slots=N': '127.0.0.1 localhost'. It was left as"
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
    assert run(hosts=[])["msg"] == (
        f"The hostfile {run.path} was not written: hosts: must be a list of {{name, slots}} or a mapping of name to"
        " slots, with at least one host; it is empty"
    )
    run.path = run.path.parent / "none" / "hostfile"
    assert run(hosts=HOSTS)["msg"] == f"{run.path.parent} does not exist; create it before writing {run.path}"


def test_a_mapping_writes_the_same_file(run: Run) -> None:
    run(hosts=HOSTS)
    again = run(hosts={"gpu1": 8, "gpu2": 4})
    assert (again["changed"], again["hosts"]) == (False, HOSTS)
    assert run(hosts={"gpu2": 4, "gpu1": 8})["changed"] is True
    assert run.path.read_text() == "gpu2 slots=4\ngpu1 slots=8\n"


@pytest.mark.parametrize("hosts", ["gpu1", '{"gpu1": 8}', 8, True, ["gpu1"], [[]], [5], [None]])
def test_another_type_is_one_clear_text(run: Run, hosts: Any) -> None:
    result = run(hosts=hosts)
    assert result["msg"].startswith(f"The hostfile {run.path} was not written: hosts")
    (error,) = result["errors"]
    assert error["message"].startswith(("must be a list of {name, slots} or a mapping", "must be a mapping with name"))
    assert not run.path.exists()


def test_hosts_without_slots_are_left_out_with_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda dummy, text: warned.append(text))
    run(hosts=HOSTS)
    assert warned == []
    result = run(hosts={"head": 0, **{host["name"]: host["slots"] for host in HOSTS}, "spare": "0"})
    assert run.path.read_text() == TEXT
    assert (result["left_out"], result["hosts"]) == (["head", "spare"], HOSTS)
    assert warned == [f"Left out of the hostfile {run.path}, having 0 slots: head, spare"]
    nothing = run(hosts={"head": 0})
    assert nothing["msg"].startswith(f"The hostfile {run.path} was not written: hosts: every host has 0 slots")
    assert run.path.read_text() == TEXT


def test_a_filter_chooses_for_the_launch_and_the_file_lists_all(run: Run) -> None:
    result = run(hosts=HOSTS, include="gpu2@gpu1:1,0", first_host="gpu1")
    assert run.path.read_text() == TEXT
    assert result["hosts"] == HOSTS
    assert result["chosen"] == [{"name": "gpu1", "slots": [0, 1]}, {"name": "gpu2", "slots": [0, 1, 2, 3]}]
    assert (result["include"], result["world_size"]) == ("gpu1:0,1@gpu2:0,1,2,3", 6)
    without = run(hosts=HOSTS, exclude="gpu1", include="")
    assert (without["changed"], without["include"]) == (False, "gpu2:0,1,2,3")
    assert (without["first_host"], without["world_size"]) == ("gpu2", 4)


def test_problems_of_all_options_are_one_message(run: Run) -> None:
    result = run(hosts=HOSTS, include="gpu1:9@gpu3", exclude="gpu2:", first_host="gpu2")
    assert [error["path"] for error in result["errors"]] == ["exclude", "include", "include", "exclude"]
    assert result["msg"].splitlines() == [
        f"The hostfile {run.path} was not written: 4 problems",
        *(f"- {error['path']}: {error['message']}" for error in result["errors"]),
    ]
    assert not run.path.exists()


def test_rank_0_elsewhere_is_refused_before_the_file_is_looked_at(run: Run) -> None:
    run.path.write_text("127.0.0.1 localhost\n")
    assert run(hosts=HOSTS, first_host="gpu2")["msg"] == (
        f"The hostfile {run.path} was not written: first_host: 'gpu2' does not come first among the hosts that take"
        " part; rank 0 would be on 'gpu1': name 'gpu1', whose address is then the --master_addr, or put 'gpu2' first in"
        " hosts"
    )


def test_a_wrong_template_on_thousands_of_hosts_is_a_short_message(run: Run) -> None:
    result = run(hosts=[{"name": f"gpu{number}", "slots": ""} for number in range(3000)])
    assert len(result["msg"].splitlines()) == 22
    assert result["msg"].endswith("\n- and 2980 more")
    assert len(result["errors"]) == 3000


def test_what_deepspeed_reads_is_replaced_without_force(run: Run) -> None:
    run.path.write_bytes(b"gpu1 slots=8 max_slots=9 # ours\r\n\tu@gpu2\tslots=4abc\n")
    assert run(hosts=HOSTS)["changed"] is True
    assert run.path.read_bytes() == TEXT.encode()


def test_the_documentation_names_what_is_there() -> None:
    options = from_yaml(hostfile.DOCUMENTATION)["options"]
    assert {name: option["type"] for name, option in options.items()} == {
        name: option["type"] for name, option in hostfile.ARGUMENTS.items()
    }
    documented = from_yaml(hostfile.RETURN)
    planned = hostfile.facts(plan(HOSTS))
    assert set(planned) == set(documented) - {"errors", "backup_file"}
