# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action node_facts: the clock it adds, and what it leaves alone. The module behind it is a fake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.swarmspeed.cluster.plugins.action import node_facts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import Gathered, requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import VariableError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.gathered import GATHERED

from tests.adversary.hostile import facts
from tests.role_values import defaults


def run(
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    before: float = 1000.0,
    after: float = 1003.0,
    *,
    args: dict[str, Any] | None = None,
    discovered: str = "",
    **variables: Any,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the action on a controller whose clock shows these two times."""
    clock: Iterator[float] = iter([before, after])
    monkeypatch.setattr(node_facts, "time", SimpleNamespace(time=lambda: next(clock)))
    action = node_facts.ActionModule(
        task=SimpleNamespace(
            args={"packages": ["rsync"], **(args or {})},
            check_mode=True,
            async_val=0,
            diff=False,
            action="node_facts",
        ),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),
        play_context=None,
        loader=None,
        templar=Templar(loader=DataLoader(), variables=variables),
        shared_loader_obj=None,
    )
    calls: list[dict[str, Any]] = []

    def execute(**requested: Any) -> dict[str, Any]:
        calls.append(requested)
        if discovered:
            action._discovered_interpreter_key, action._discovered_interpreter = (
                "discovered_interpreter_python",
                discovered,
            )
        return answer

    action._execute_module = execute  # type: ignore[method-assign]
    return action.run(task_vars={"a": 1, **variables}), calls


@pytest.mark.parametrize(
    ("node", "after", "clock"),
    [
        (1001.5, 1003.0, {"offset": 0.0, "uncertainty": 1.5}),
        (1061.5, 1003.0, {"offset": 60.0, "uncertainty": 1.5}),
        (940.0, 1000.0, {"offset": -60.0, "uncertainty": 0.0}),
        (1000.12345, 1000.2469, {"offset": 0.0, "uncertainty": 0.123}),
    ],
)
def test_the_clock_is_compared_with_the_middle_of_the_run(
    monkeypatch: pytest.MonkeyPatch, node: float, after: float, clock: dict[str, float]
) -> None:
    found = facts()
    del found["clock"]
    found["system"]["time"] = node
    answer = {"changed": False, "ansible_facts": {"swarmspeed": copy.deepcopy(found), "other": "dropped"}}
    result, calls = run(monkeypatch, answer, after=after)
    assert result == {
        "_ansible_verbose_override": True,  # -v does not print what it has read
        "changed": False,
        "ansible_facts": {"swarmspeed": {**found, "clock": clock, "host": "this host"}},
    }
    assert calls == [
        {
            "module_name": "swarmspeed.cluster.node_facts",
            "module_args": {"packages": ["rsync"]},
            "task_vars": {"a": 1},
        }
    ]


def test_the_interpreter_is_ansibles_finding_and_stays_that_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = {"discovered_interpreter_python": "/tmp/evil"}
    answer = {"changed": False, "ansible_facts": {"swarmspeed": facts(), **forged}}
    assert set(run(monkeypatch, copy.deepcopy(answer))[0]["ansible_facts"]) == {"swarmspeed"}
    found = run(monkeypatch, answer, discovered="/usr/bin/python3.13")[0]["ansible_facts"]
    assert found["discovered_interpreter_python"] == "/usr/bin/python3.13"


@pytest.mark.parametrize(
    "answer", [{"failed": True, "msg": "no python"}, {"failed": True, "msg": "x", "ansible_facts": {}}]
)
def test_a_failure_is_passed_on_as_it_is(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> None:
    result, calls = run(monkeypatch, dict(answer))
    assert result == {key: value for key, value in answer.items() if key != "ansible_facts"} and len(calls) == 1


DEFAULTS = {name: value for name, value in defaults().items() if name.startswith("docker_")}


def planned(monkeypatch: pytest.MonkeyPatch, **variables: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather for the plan of docker; return the result, and what the module on the node was asked."""
    answer = {"changed": False, "ansible_facts": {"swarmspeed": facts()}, "role_vars": "of a node", "run": "of a node"}
    result, (call,) = run(
        monkeypatch, answer, args={"plan": ["docker"], "run": "abc", "groups": ["games"]}, **{**DEFAULTS, **variables}
    )
    return result, call["module_args"]


def test_role_variables_are_rendered_for_their_host(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = {"http": trust_as_template("http://u:{{ password }}@p"), "no_proxy": "{{ a node said this }}"}
    result, requested = planned(monkeypatch, docker_proxy=proxy, password="hunter2", cluster_network_mode="host")
    assert result["role_vars"] == {
        **DEFAULTS,
        "docker_proxy": {"http": "http://u:hunter2@p", "no_proxy": "{{ a node said this }}"},
        "cluster_network_mode": "host",
    }
    assert result["_ansible_no_log"] is True  # there is a password in it
    assert result["ansible_facts"]["swarmspeed"]["run"] == "abc"
    assert "hunter2" not in str(requested) and not {"plan", "run"} & set(requested)


def test_what_the_plan_compares_is_gathered_beside_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    part = GATHERED["docker"]
    dummy, requested = planned(monkeypatch)
    assert requested["packages"] == ["rsync", *part.packages]
    assert requested["groups"] == ["games", "docker"] and requested["files"] == list(part.files)


@pytest.mark.parametrize(
    ("users", "expected"),
    [(["ada", "bob"], ["ada", "bob"]), ("ada,bob", ["ada", "bob"]), (["a\nb", "x" * 300, "eve"], ["eve"])],
)
def test_the_node_reports_which_of_the_users_exist(monkeypatch: pytest.MonkeyPatch, users: Any, expected: Any) -> None:
    dummy, requested = planned(monkeypatch, docker_users=users)
    assert requested["accounts"] == expected


def test_what_follows_from_a_hosts_variables_is_gathered_too() -> None:
    part = Gathered(
        packages=("a",), by_role_vars=lambda role_vars: {"packages": role_vars["mine"], "sysctls": ["vm.swappiness"]}
    )
    role_vars = {"mine": ["a", "b", "rsync"]}
    assert requested({"packages": ["rsync"], "disks": ["/"]}, [part, Gathered(sysctls=("x",))], role_vars) == {
        "packages": ["rsync", "a", "b"],
        "sysctls": ["vm.swappiness", "x"],
        "disks": ["/"],
    }


def test_trees_and_jobs_follow_from_a_hosts_variables() -> None:
    part = Gathered(
        by_role_vars=lambda role_vars: {"trees": {"/b": {"c": "d"}}, "jobs": "/jobs", "repositories": ["x"]}
    )
    wanted = {"trees": {"/b": {"c": "d"}}, "jobs": "/jobs", "repositories": ["x"]}
    assert requested({}, [part, part], {}) == wanted
    assert requested({"trees": {"/a": {}}, "repositories": ["y"], "jobs": None}, [part], {}) == {
        "trees": {"/a": {}, "/b": {"c": "d"}},
        "jobs": "/jobs",
        "repositories": ["y", "x"],
    }


def test_what_is_not_there_on_the_controller_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(dummy: Any) -> Any:
        raise VariableError("mine: /gone is not a directory on the controller")

    monkeypatch.setitem(GATHERED, "docker", Gathered(by_role_vars=gone))
    with pytest.raises(AnsibleActionFail, match=r"^gpu1: mine: /gone is not .*\. Remedy: correct this"):
        run(monkeypatch, {}, args={"plan": ["docker"]}, inventory_hostname="gpu1")


def test_what_cannot_be_rendered_matters_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    undefined = trust_as_template("{{ nowhere }}")
    result = planned(monkeypatch, docker_proxy=undefined)[0]
    assert (
        "docker_proxy" not in result["role_vars"] and "'nowhere' is undefined" in result["unrendered"]["docker_proxy"]
    )
    read = r"^gpu1: docker_users: .*'nowhere' is undefined.* Remedy: correct this variable$"
    with pytest.raises(AnsibleActionFail, match=read):
        planned(monkeypatch, docker_users=undefined, inventory_hostname="gpu1")
    with pytest.raises(AnsibleActionFail, match=r"^this host: docker_users is not defined\. Remedy: "):
        run(monkeypatch, {}, args={"plan": ["docker"]})


def test_a_role_that_is_not_planned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnsibleActionFail, match=r"^plan: the role swarn is not planned\. Planned are: .*docker.*\.$"):
        run(monkeypatch, {}, args={"plan": ["swarn"]})


def test_a_failure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "no python"}
    assert run(monkeypatch, dict(failed), args={"plan": ["docker"]}, **DEFAULTS)[0] == failed
