# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action plan: what it plans from, what it writes and shows, and what a role reports of it. Hosts are invented."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.action import plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import SECRET
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.gathered import GATHERED

from tests.requested import entries
from tests.role_values import ROLES, defaults

SECRET_PROXY = "http://u:hunter2@proxy.example.com:3128"
RUN = "abc"


def gathered(run: str = RUN, running: tuple[str, ...] = (), **desired: Any) -> dict[str, Any]:
    """What node_facts returned of a host with an engine that is as desired."""
    role_vars = defaults(docker_hold="no", **desired)
    packages = {"docker.io": "20.10.24", "python3-docker": "5", "python3-requests": "2"}
    docker = {
        "installed": True,
        "running": True,
        "version": "20.10.24",
        "containers": {name: {"state": "running"} for name in running},
    }
    facts = {
        "system": {"distribution": "debian", "codename": "bookworm"},
        "packages": packages,
        "docker": docker,
        "engine": {"config": {}},
        "groups": {"docker": []},
        "accounts": {"ada": True, "bob": True},
        "files": {},
        "held": [],
        "run": run,
    }
    return {"ansible_facts": {"swarmspeed": facts}, "role_vars": role_vars}


class HostVars(dict[str, dict[str, Any]]):
    """What a task finds as hostvars: raw_get gives a host's variables as they are."""

    def raw_get(self, host: str) -> Any:
        return self.get(host)


def run(args: dict[str, Any], hosts: dict[str, Any] | None = None, check: bool = False, **more: Any) -> dict[str, Any]:
    action = plan.ActionModule(
        task=SimpleNamespace(args=args, check_mode=check, async_val=0, diff=True, action="plan"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=DataLoader(),
        templar=None,
        shared_loader_obj=None,
    )
    variables = {
        "inventory_hostname": "gpu1",
        "hostvars": HostVars({host: {"_gathered": found} for host, found in (hosts or {}).items()}),
        "_preflight_digest_key": "k" * 40,
        "ansible_run_tags": ["all"],
        "ansible_skip_tags": [],
        **more,
    }
    result: dict[str, Any] = action.run(task_vars=variables)
    return result


def make(hosts: dict[str, Any], args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    given = {"roles": ["docker"], "hosts": list(hosts), "gathered": "_gathered", "run": RUN}
    return run({**given, **(args or {})}, hosts, **more)


def test_each_host_is_planned_by_its_own_variables() -> None:
    made = make({"gpu1": gathered(), "gpu2": gathered(docker_users="ada,bob")})
    assert made["hosts"] == ["gpu1", "gpu2"] and made["roles"] == ["docker"] and made["changed"] is False
    assert made["pending"] == {"gpu1": {"docker": False}, "gpu2": {"docker": True}}
    assert made["drift"]["gpu2"]["docker"] == [
        "user ada in group docker is missing",
        "user bob in group docker is missing",
    ]
    assert made["task_inputs"]["gpu2"]["docker"]["users"] == [
        "ada",
        "bob",
    ]  # a text, which the argument spec makes a list
    assert made["text"].endswith("\nPlan: 2 to add, 0 to change, 0 to remove.")


@pytest.mark.parametrize("of_the_play", [True, False])
def test_a_role_applied_alone_refuses_the_former_name_of_a_consent(of_the_play: bool) -> None:
    former = {"docker_restart": True}
    hosts = {"gpu1": gathered(), "gpu2": gathered()}
    where: dict[str, Any] = former if of_the_play else {"hostvars": HostVars({"gpu1": {}, "gpu2": former})}
    with pytest.raises(AnsibleActionFail) as caught:
        make(hosts, swarmspeed_alone=True, **where)
    assert str(caught.value) == (
        f"{'gpu1' if of_the_play else 'gpu2'}: docker_restart is the name that an earlier release had for "
        "docker_allow_restart. Remedy: rename it to docker_allow_restart"
    )


def test_a_role_applied_alone_judges_its_variables_as_preflight_does() -> None:
    wrong = gathered(docker_users=["ada", "a:b"], docker_proxy={"http": "ftp://me:hunter2@p"})
    with pytest.raises(AnsibleActionFail) as caught:
        make({"gpu1": wrong, "gpu2": wrong}, swarmspeed_alone=True)
    assert str(caught.value) == (
        "gpu1, gpu2: docker_proxy.http: its value is not the address of a proxy. Remedy: write a value such as "
        "http://proxy.example.com:3128. gpu1, gpu2: docker_users[1]: 'a:b' is not the name of an account. "
        "Remedy: write a value such as alice."
    )
    assert make({"gpu1": gathered()}, swarmspeed_alone=True)["hosts"] == ["gpu1"]


@pytest.mark.parametrize(
    "other",
    [
        None,
        {"msg": "no route to host", "unreachable": True},
        gathered(run="of yesterday, from a fact cache"),
        gathered(run=""),
        {"ansible_facts": {}},
    ],
)
def test_what_was_not_gathered_in_this_run_is_not_planned(other: Any) -> None:
    made = make({"gpu1": gathered(), "gpu2": other})
    assert made["hosts"] == ["gpu1"] and "gpu2" not in made["pending"]


def test_a_host_that_is_not_in_the_inventory_is_left_out() -> None:
    assert run({"hosts": ["gone"], "gathered": "_gathered"})["hosts"] == []


def test_the_underlays_mtu_is_that_of_the_cluster() -> None:
    fresh = gathered()
    fresh["ansible_facts"]["swarmspeed"].update(packages={}, docker={})
    made = make({"gpu1": fresh}, {"cluster": {"underlay": {"mtu": 1450}}})
    assert made["task_inputs"]["gpu1"]["docker"]["config"]["mtu"] == 1450


def test_secrets_are_in_what_the_role_acts_on_and_the_result_is_not_shown() -> None:
    made = make({"gpu1": gathered(docker_proxy={"http": SECRET_PROXY}, running=("job",))})
    assert made["_ansible_no_log"] is True
    assert SECRET_PROXY.split("://")[1] in json.dumps(made.pop("task_inputs"))
    assert "hunter2" not in json.dumps(made) and SECRET in made["text"]


def test_the_certificate_is_read_here(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\n", encoding="utf-8")
    made = make({"gpu1": gathered(host_ca_certificate=str(path))})
    assert "/etc/systemd/system/docker.service.d/swarmspeed-ca.conf is missing" in made["drift"]["gpu1"]["docker"]
    digest = made["task_inputs"]["gpu1"]["docker"]["files"]
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\r\n")
    made = make({"gpu1": gathered(host_ca_certificate=str(path))})
    assert made["task_inputs"]["gpu1"]["docker"]["files"] != digest  # another text, as the host gets it byte by byte
    path.unlink()
    with pytest.raises(AnsibleActionFail, match=rf"^{path}: cannot be read\. Remedy: name a file that this"):
        make({"gpu1": gathered(host_ca_certificate=str(path))})


def test_a_variable_of_another_type_is_named_without_its_value() -> None:
    with pytest.raises(AnsibleActionFail, match=r"^gpu1: .*docker_proxy") as reported:
        make({"gpu1": gathered(docker_proxy=SECRET_PROXY)})
    assert "hunter2" not in str(reported.value)


@pytest.mark.parametrize("facts", [{"files": 5}, {"packages": [1]}, {"docker": {"containers": [5]}}])
def test_odd_facts_are_no_traceback(facts: dict[str, Any]) -> None:
    odd = gathered()
    odd["ansible_facts"]["swarmspeed"].update(facts)
    make({"gpu1": odd})


def test_facts_of_another_form_are_one_line() -> None:
    with pytest.raises(AnsibleActionFail, match="this is not what node_facts returned") as reported:
        make({"gpu1": {"ansible_facts": 5, "role_vars": {}}})
    assert "\n" not in str(reported.value)


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    """Wheels of an environment count by their names."""
    role_vars = defaults(
        workspace_python_compiler=False,
        workspace_python_environment="/opt/train",
        workspace_python_wheelhouse=str(tmp_path),
    )
    found = {**gathered(), "role_vars": role_vars}
    args = {"roles": ["workspace"], "cluster": {"accelerator": "cpu", "slots": {"gpu1": 1}, "versions": {}}}
    first = make({"gpu1": found}, args)["task_inputs"]["gpu1"]["workspace"]["wanted"]
    (tmp_path / "a-1.whl").write_bytes(b"\xff")
    assert make({"gpu1": found}, args)["task_inputs"]["gpu1"]["workspace"]["wanted"] != first
    gone = {**found, "role_vars": {**role_vars, "workspace_python_wheelhouse": str(tmp_path / "gone")}}
    with pytest.raises(AnsibleActionFail, match=rf"^{tmp_path}/gone: cannot be read\. Remedy: "):
        make({"gpu1": gone}, args)


# What is written and shown


def test_the_plan_is_written_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = make({"gpu1": gathered(docker_users=["ada"])}, {"file": "plan.json"})
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == made["document"]
    assert made["document"]["counts"] == {"add": 1, "change": 0, "remove": 0}


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match=r"^cluster_plan_file: .*/a/plan.json cannot be written \(.*Remedy: "):
        make({"gpu1": gathered()}, {"file": str(tmp_path / "a" / "plan.json")})


def test_tags_show_their_roles_and_all_is_planned() -> None:
    hosts = {"gpu1": gathered(docker_users=["ada"])}
    made = make(hosts, ansible_run_tags=["workspace"])
    assert made["text"] == "No changes."
    assert made["pending"] == {"gpu1": {"docker": True}}
    alone = make(hosts, ansible_run_tags=["docker"])
    assert "user ada" in alone["text"]


def test_the_plan_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    monkeypatch.setattr(plan, "Display", lambda: SimpleNamespace(display=printed.append))
    make({"gpu1": gathered()})
    assert printed == []
    made = make({"gpu1": gathered()}, {"print": True})
    assert run({"stage": "print"}, swarmspeed_plan=made) == {"changed": False}
    assert printed == ["\nNo changes.\n"] * 2


# What a role reports


def report(made: dict[str, Any], check: bool, host: str = "gpu1") -> dict[str, Any]:
    return run({"stage": "report", "roles": ["docker"]}, check=check, swarmspeed_plan=made, inventory_hostname=host)


@pytest.mark.parametrize("check", [False, True])
def test_planned_changes_are_changed_in_check_mode(check: bool) -> None:
    made = make({"gpu1": gathered(docker_users=["ada"]), "gpu2": gathered(docker_users=["bob"])})
    found = report(made, check, "gpu2")
    assert found["changed"] is check
    assert found["diff"] == [
        {"before": "user bob in group docker: absent\n", "after": "user bob in group docker: true\n"}
    ]
    assert [(change["action"], change["what"]) for change in found["changes"]] == [("+", "user bob in group docker")]


def test_nothing_planned_is_nothing_changed() -> None:
    assert report(make({"gpu1": gathered()}), check=True) == {"changed": False, "changes": []}


@pytest.mark.parametrize("check", [False, True])
def test_a_missing_consent_stops_the_role_before_it_begins(check: bool) -> None:
    requested: dict[str, Any] = {"docker_daemon_config": {"data-root": "/data"}}
    with pytest.raises(AnsibleActionFail) as reported:
        report(make({"gpu1": gathered(running=("job",), **requested)}), check)
    assert str(reported.value) == (
        "gpu1: the engine must be restarted for data-root in /etc/docker/daemon.json (docker_daemon_config), which "
        "stops these running containers: job. Remedy: set docker_allow_restart: true to allow it, or stop the "
        "containers first."
    )
    report(make({"gpu1": gathered(running=("job",), docker_allow_restart="yes", **requested)}), check)
    report(make({"gpu1": gathered(**requested)}), check)


@pytest.mark.parametrize(("tags", "selected"), [(["all"], True), (["docker"], True), (["preflight"], False)])
def test_missing_consents_of_the_selected_roles_are_listed(tags: list[str], selected: bool) -> None:
    requested: dict[str, Any] = {"docker_daemon_config": {"data-root": "/data"}}
    hosts = {
        "gpu1": gathered(running=("job",), **requested),
        "gpu2": gathered(docker_version="28", docker_source="keep"),
    }
    made = make(hosts, ansible_run_tags=tags)
    (sentence,) = made["stops"]["gpu1"]["docker"]
    assert made["consents"] == ({"docker_allow_restart": {"gpu1": entries(sentence)}} if selected else {})
    assert list(made["refused"]["docker"]) == ["gpu2"]
    assert make(hosts | {"gpu1": gathered(running=("job",), docker_allow_restart=True, **requested)})["consents"] == {}


@pytest.mark.parametrize(("tags", "roles"), [(["all"], ["docker"]), (["docker"], ["docker"]), (["swarm"], [])])
def test_verify_lists_what_the_selected_roles_would_change(tags: list[str], roles: list[str]) -> None:
    made = make({"gpu1": gathered(docker_users=["ada"]), "gpu2": gathered()})
    for host, found in (("gpu1", roles), ("gpu2", [])):
        listed = run({"stage": "drift"}, swarmspeed_plan=made, inventory_hostname=host, ansible_run_tags=tags)
        assert listed["changed"] is False and [one["role"] for one in listed["by_role"]] == found
        words = (
            f"{host}: role docker: user ada in group docker is missing. Remedy: ansible-playbook site.yml --tags docker"
        )
        assert listed["msg"] == (words if found else "")


def test_what_is_refused_stops_the_role_too() -> None:
    with pytest.raises(AnsibleActionFail, match=r"^gpu1: docker_version is 28 and .*leave docker_version out\.$"):
        report(make({"gpu1": gathered(docker_version="28", docker_source="keep")}), check=False)


def test_a_host_that_was_not_planned_is_no_success() -> None:
    for made in ({}, make({"gpu2": gathered()})):
        with pytest.raises(AnsibleActionFail, match=r"^gpu1: nothing was planned for it in this run\.$"):
            report(made, check=False)
        with pytest.raises(AnsibleActionFail, match=r"^gpu1: nothing was planned for it in this run\.$"):
            run({"stage": "drift"}, swarmspeed_plan=made, inventory_hostname="gpu1")


def test_what_is_planned_is_gathered() -> None:
    assert tuple(GATHERED) == PLANNED
    tasks = DataLoader().load_from_file(str(ROLES / "preflight/tasks/gather.yml"))
    assert tasks[0]["swarmspeed.cluster.node_facts"]["plan"] == "all"


def test_planned_again_what_was_not_foreseen_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    monkeypatch.setattr(plan, "Display", lambda: SimpleNamespace(display=printed.append))
    path = tmp_path / "plan.json"
    first = make({"gpu1": gathered(docker_users=["ada"])})
    for users, found in ((["ada"], []), ([], []), (["ada", "bob"], ["user bob in group docker"])):
        again = {"gpu1": gathered(docker_users=users)}
        made = make(again, {"file": str(path)}, swarmspeed_plan=first)
        written = json.loads(path.read_text(encoding="utf-8"))
        assert written == made["report"] and written["counts"]["add"] == 1
        assert [change["what"] for change in written["found_after_apply"]] == found
    assert printed == ["\nFound after apply:\ngpu1\n  docker\n    + user bob in group docker  # docker_users\n"]
    other = make({"gpu1": gathered("another", docker_users=["bob"])}, {"run": "another"}, swarmspeed_plan=first)
    assert other["report"] == other["document"] and len(printed) == 1
