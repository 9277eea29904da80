# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action: what it reads from Ansible's variables, and how it answers. Roles, hosts and facts are invented."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import (
    AnsibleActionFail,
    AnsibleError,
    AnsibleTemplateError,
    AnsibleUndefinedVariable,
    AnsibleValueOmittedError,
)
from ansible.parsing.dataloader import DataLoader
from ansible.release import __version__ as ansible_version
from ansible_collections.swarmspeed.cluster.plugins.action import preflight
from ansible_collections.swarmspeed.cluster.plugins.modules import preflight as documented
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core import variables as core
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import Controller
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller_io import kind, text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

from tests.role_values import defaults

OPTIONS: dict[str, Any] = {
    "swarm_data_path_port": {"type": "int", "required": True, "description": "x"},
    "swarm_secret": {"type": "int", "no_log": True},
    "swarm_pools": {"type": "list", "elements": "str", "default": ["x"]},
    "swarm_more": {"type": "dict", "options": {"size": {"type": "int"}}},
    "swarm_kind": {"type": "str", "choices": ["a", "b"]},
    "cluster_name": {"type": "str"},
    "gpu_slots": {"type": "int"},
}


VALUES = "variable_values"


class Raises:
    """Stands for a template that fails in this way when it is evaluated."""

    def __init__(self, error: AnsibleError) -> None:
        self.error = error


class Lazy(Mapping[str, Any]):
    """Variables that are evaluated when asked for, as hostvars are."""

    def __init__(self, **variables: Any) -> None:
        self.variables = variables

    def __getitem__(self, name: str) -> Any:
        value = self.variables[name]
        if isinstance(value, Raises):
            raise value.error
        return value

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


class Task:
    check_mode = False
    async_val = 0
    diff = False

    def __init__(self, args: dict[str, Any], play: dict[str, Any]) -> None:
        self.args = args
        self._play = SimpleNamespace(strategy="linear", vars=play)


class Templar:
    """Templates nothing, but fails where a value stands for a failing template."""

    def template(self, value: Any) -> Any:
        if isinstance(value, Raises):
            raise value.error
        return value

    def is_template(self, value: Any) -> bool:
        return isinstance(value, str) and "{{" in value


class HostVars(dict[str, Any]):
    """Has the variables as they stand in the files, too, as Ansible's own does."""

    def raw_get(self, host: str) -> Any:
        return self[host].variables


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "roles"
    (folder / "swarm" / "meta").mkdir(parents=True)
    (folder / "swarm" / "meta" / "argument_specs.yml").write_text(
        json.dumps({"argument_specs": {"main": {"options": OPTIONS}}})  # JSON is YAML
    )
    (folder / "swarm" / "meta" / "constraints.yml").write_text(
        json.dumps({"swarm_data_path_port": {"kind": "port", "min": 1024}, "swarm_secret": "port"})
    )
    (folder / "unfinished").mkdir()
    monkeypatch.setattr(core, "ROLES", folder)
    # Not those of this run, one of which is worth a warning.
    monkeypatch.setattr(preflight, "CONTROLLER", Controller("2.21.5", "3.13.0"))
    for read in (core.role_specs, core.constraints, core.text_as_words):
        read.cache_clear()
    yield folder
    for read in (core.role_specs, core.constraints, core.text_as_words):
        read.cache_clear()


def run(
    args: dict[str, Any], task_vars: dict[str, Any], base: Path | None = None, play: dict[str, Any] | None = None
) -> dict[str, Any]:
    loader = DataLoader()
    if base:
        loader.set_basedir(str(base))
    # A connection that does nothing but say that it has a temporary folder: the base class asks for that.
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="unused"))
    action = preflight.ActionModule(
        task=Task(args, play or {}),
        connection=connection,
        play_context=None,
        loader=loader,
        templar=Templar(),
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars=task_vars)
    return result


def variables(hostvars: dict[str, Any], **current: Any) -> dict[str, Any]:
    hosts = list(hostvars)
    return {
        "groups": {"all": hosts, "cluster": hosts, "managers": hosts[:1], "workers": hosts[1:]},
        "hostvars": HostVars(hostvars),
        "inventory_hostname": "localhost",
        **current,
    }


def problems(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return check and subject of each problem: the sentences are tested where they are made."""
    return [(problem["check"], problem["subject"]) for problem in result["problems"]]


def complaints(result: dict[str, Any]) -> dict[str, str]:
    """Return by variable the problem of its value, which comes from Ansible."""
    return {subject: text for subject, text, _remedy, check in sentences(result) if check == VALUES}


def sentences(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return subject, text, remedy and check of each line of the message."""
    found = [re.fullmatch(r"\d+\. (.*?): (.*)\. Remedy: (.*)\. \(check: (\w+)\)", line) for line in lines_of(result)]
    assert all(found), result["msg"]
    return [one.groups() for one in found if one]


def lines_of(result: dict[str, Any]) -> list[str]:
    return str(result["msg"]).splitlines()[1:]


@pytest.mark.usefixtures("roles")
def test_a_good_inventory_passes() -> None:
    result = run(
        {"stage": "inventory"}, variables({"lab1": Lazy(swarm_data_path_port="4789"), "lab2": Lazy(gpu_slots=8)})
    )
    assert result["failed"] is False
    assert result["changed"] is False
    assert result["problems"] == []
    assert result["warnings"] == []
    assert result["checked"] == list(INVENTORY_CHECKS)
    assert result["msg"] == f"Preflight: {len(INVENTORY_CHECKS)} checks passed."


def test_the_controller_is_the_one_that_runs_this() -> None:
    assert Controller(ansible_version, platform.python_version()) == preflight.CONTROLLER


@pytest.mark.usefixtures("roles")
def test_an_ansible_that_is_too_old_is_refused_and_one_at_its_end_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    task_vars = variables({"lab1": Lazy()})
    monkeypatch.setattr(preflight, "CONTROLLER", Controller("2.18.19", "3.12.1"))
    result = run({"stage": "inventory"}, task_vars)
    assert (result["failed"], problems(result)) == (True, [("ansible_version", "ansible-core 2.18.19")])
    monkeypatch.setattr(preflight, "CONTROLLER", Controller("2.19.14", "3.11.7"))
    result = run({"stage": "inventory"}, task_vars)
    assert (result["failed"], result["problems"], len(result["warnings"])) == (False, [], 1)
    assert result["warnings"][0].startswith("ansible-core 2.19.14: reached its end of life in November 2026")
    result = run({"stage": "inventory", "skip": ["ansible_version"]}, task_vars)
    assert result["warnings"] == ["Preflight check ansible_version is skipped, as requested."]


@pytest.mark.usefixtures("roles")
def test_all_problems_are_reported_at_once() -> None:
    hostvars = {
        "lab1": Lazy(swarm_data_path_port="many", swarm_dta_path_port=1, swarm_kind="c"),
        "lab2": Lazy(swarm_more={"size": "x", "sise": 1}, swarm_pools=None, swarm_secret="hunter2"),
    }
    result = run({"stage": "inventory", "skip": ["managers", "disk"]}, variables(hostvars, cluster_name="Demo"))
    assert result["failed"] is True
    assert result["changed"] is False
    assert complaints(result) == {
        "swarm_data_path_port": "argument 'swarm_data_path_port' is of type str and we were unable to convert to int: "
        "\"'many'\" cannot be converted to an int (set for lab1)",
        "swarm_kind": "value of swarm_kind must be one of: a, b, got: c (set for lab1)",
        "swarm_more": "argument 'size' is of type str found in 'swarm_more'. and we were unable to convert to int: "
        "\"'x'\" cannot be converted to an int; no such key: swarm_more.sise. Supported parameters include: size "
        "(set for lab2)",
        "swarm_secret": "its value is not of type int, or not among the choices (set for lab2)",
    }
    assert problems(result) == [
        ("variable_names", "swarm_dta_path_port"),
        *((VALUES, name) for name in complaints(result)),
    ]
    assert result["msg"].startswith("Preflight found 5 problems. Nothing was changed.\n")
    assert [line.partition(".")[0] for line in lines_of(result)] == list("12345")
    assert [(check, subject) for subject, _text, _remedy, check in sentences(result)] == problems(result)
    # A result that failed is printed whole.
    assert sorted(result) == ["changed", "failed", "msg", "problems", "warnings"]
    assert result["warnings"] == ["Preflight check managers is skipped, as requested."]
    assert "hunter2" not in str(result)


@pytest.mark.usefixtures("roles")
def test_templates_that_cannot_be_evaluated() -> None:
    hostvars = {
        "lab1": Lazy(
            swarm_data_path_port=Raises(AnsibleUndefinedVariable("'absent' is undefined")),
            swarm_pools=Raises(AnsibleValueOmittedError()),
            swarm_kind=Raises(AnsibleTemplateError("no filter\nnamed 'x'.")),
        )
    }
    task_vars = variables(hostvars, swarm_secret=Raises(AnsibleTemplateError("no test named 'y'")))
    result = run({"stage": "inventory"}, task_vars)
    assert problems(result) == [(VALUES, "swarm_kind"), (VALUES, "swarm_secret")]
    assert complaints(result)["swarm_kind"].endswith("no filter named 'x'")
    assert complaints(result)["swarm_secret"].endswith("no test named 'y' (set for localhost)")


@pytest.mark.parametrize("play", [{"cluster_name": "mine", "swarm_kind": "{{ kind }}"}, {}])
@pytest.mark.usefixtures("roles")
def test_what_the_play_sets_holds_on_all_hosts_whatever_the_inventory_has(play: dict[str, Any]) -> None:
    """Those of its ``vars``, and those of its ``vars_files``, which Ansible's play does not name."""
    hostvars = {"lab1": Lazy(cluster_name="lab", swarm_kind="a"), "lab2": Lazy(cluster_name="lab", swarm_kind="c")}
    task_vars = {**variables(hostvars), **hostvars["lab1"], "cluster_name": "mine", "swarm_kind": "{{ kind }}"}
    result = run({"stage": "inventory"}, {**task_vars, "inventory_hostname": "lab1"}, play=play)
    assert "cluster_name" not in [subject for _check, subject in problems(result)]
    assert [text for text in complaints(result).values() if "lab2" in text] == []
    without = run({"stage": "inventory"}, {**variables(hostvars), **hostvars["lab1"], "inventory_hostname": "lab1"})
    assert complaints(without)["swarm_kind"].endswith("(set for lab2)")


@pytest.mark.usefixtures("roles")
def test_variables_of_the_play_are_seen() -> None:
    result = run({"stage": "inventory"}, variables({"lab1": Lazy()}, swarm_dta_path_port=1, swarm_kind="c", mine=1))
    assert problems(result) == [("variable_names", "swarm_dta_path_port"), (VALUES, "swarm_kind")]
    assert all(text.endswith(" (set for localhost)") for text in complaints(result).values())


@pytest.mark.usefixtures("roles")
def test_missing_groups_do_not_stop_it() -> None:
    result = run({"stage": "inventory"}, {"groups": {"all": [], "ungrouped": []}, "hostvars": {}})
    assert problems(result) == [("groups", "group cluster, group managers, group workers")]


@pytest.mark.usefixtures("roles")
def test_relative_paths_start_at_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").touch()
    files = {
        "workspace_source": "code",
        "deepspeed_launch_script": "code/train.py",
        "training_image_archive": "gone.tar",
        "training_image_base_archive": None,
        "training_image_wheelhouse": str(tmp_path / "code" / "train.py"),
        "odd": "a\0b",
    }
    result = run({"stage": "inventory", "files": files}, variables({"lab1": Lazy()}), tmp_path)
    names = ("training_image_archive", "training_image_wheelhouse", "odd")
    assert problems(result) == [("files", name) for name in names]
    assert f" {tmp_path}/gone.tar " in sentences(result)[0][1]
    # What is only removed needs none of them, and variables as ever.
    undoing = run({"stage": "inventory", "files": files, "undo": True}, variables({"lab1": Lazy()}), tmp_path)
    assert problems(undoing) == []
    found = [{"subject": "workspace_source_ref", "text": "gone", "remedy": "correct it"}]
    result = run({"stage": "inventory", "found": found}, variables({"lab1": Lazy()}), tmp_path)
    assert problems(result) == [("files", "workspace_source_ref")]


def test_kind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kind(str(tmp_path)) == "directory"
    assert kind(str(tmp_path / "file")) == "file"
    assert kind(str(tmp_path / "file" / "below")) is None
    assert kind("x" * 5000) is None
    assert kind("a\0b") is None


def test_a_damaged_role_is_one_clear_error(roles: Path) -> None:
    (roles / "swarm" / "meta" / "argument_specs.yml").write_text("argument_specs:\n")
    with pytest.raises(AnsibleActionFail) as error:
        run({"stage": "inventory"}, variables({"lab1": Lazy()}))
    assert error.value.message.startswith("role swarm: meta/argument_specs.yml ")


FACTS = {"system": {"distribution": "debian", "release": "13", "python": "3.13.5", "systemd": True}}


def test_facts_are_judged() -> None:
    args = {
        "stage": "facts",
        "skip": ["clock", "foreign_swarm"],
        "hosts_facts": {"lab1": FACTS, "lab2": None},
        "unreachable": {"lab1": "", "lab2": "no route to host"},
    }
    given = {**variables({"lab1": Lazy(), "lab2": Lazy()}), **defaults()}
    result = run(args, given)
    assert result["failed"] is True
    assert result["changed"] is False
    assert problems(result) == [("reachable", "lab2")]
    assert sentences(result)[0][1].endswith(": no route to host")
    assert result["warnings"] == [
        "Preflight check clock is skipped, as requested.",
        "Preflight check foreign_swarm is skipped, as requested.",
    ]
    undoing = run({**args, "skip": [], "undo": True}, given)
    assert problems(undoing) == [("reachable", "lab2")]
    assert undoing["warnings"] == []
    passed = run({**args, "hosts_facts": {"lab1": FACTS}, "unreachable": {}}, given)
    assert passed["failed"] is False
    assert passed["msg"] == f"Preflight: {len(FACT_CHECKS) - 2} checks passed."
    assert passed["checked"] == [name for name in FACT_CHECKS if name not in ("clock", "foreign_swarm")]
    undone = run({**args, "skip": [], "undo": True, "hosts_facts": {"lab1": FACTS}, "unreachable": {}}, given)
    assert undone["checked"] == ["reachable", "systemd", "python"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "missing required arguments: stage"),
        ({"stage": "later"}, "value of stage must be one of: inventory, facts, got: later"),
        ({"stage": "facts"}, "stage is facts but all of the following are missing: hosts_facts"),
        (
            {"stage": "facts", "hosts_facts": {}},
            "hosts_facts: no host is listed, so nothing would be checked. Remedy: list every host.",
        ),
        (
            {"stage": "inventory", "skip": ["play_hosts"]},
            "skip: play_hosts cannot be left out, as the plan would lack hosts. Remedy: run without --limit.",
        ),
        (
            {"stage": "inventory", "skip": ["disc"]},
            "skip: unknown check disc. Remedy: did you mean disk? Otherwise see the tables of checks in "
            "docs/troubleshooting.md.",
        ),
        (
            {"stage": "inventory", "skip": ["accelerator"]},
            "skip: accelerator is a check of an earlier release and is now part of values. Remedy: take accelerator "
            "out of preflight_skip.",
        ),
        (
            {"stage": "inventory", "skip": ["everything"]},
            "skip: unknown check everything. Remedy: see the tables of checks in docs/troubleshooting.md.",
        ),
    ],
)
@pytest.mark.usefixtures("roles")
def test_wrong_arguments_are_one_clear_error(args: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleActionFail) as error:
        run(args, variables({"lab1": Lazy()}))
    assert error.value.message == text


def test_it_needs_no_connection() -> None:
    assert preflight.ActionModule.TRANSFERS_FILES is False
    assert preflight.ActionModule._requires_connection is False


def test_the_documentation_names_every_check() -> None:
    text = DataLoader().load(documented.DOCUMENTATION)
    description = " ".join(text["description"])
    assert all(f"C({name})" in description for name in [*INVENTORY_CHECKS, *FACT_CHECKS])


def test_settings_of_the_image_are_judged_with_the_file_that_one_of_them_names(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("-r other.txt\n")
    inventory = Inventory(
        groups={"cluster": ["a", "b"]},
        hosts={"a": {}, "b": {}},
        defaults={"training_image_source": "build"},
        files={"training_image_requirements": str(tmp_path / "r.txt")},
        kind=kind,
        text=text,
        image=preflight.image_problems,
    )
    found = list(INVENTORY_CHECKS["image_settings"](inventory))
    assert [problem.subject for problem in found] == ["training_image_requirements"]
    assert all(problem.fatal and problem.remedy for problem in found)
