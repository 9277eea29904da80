# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is reported of a variable's value before any connection, and where it stands. Files and hosts are invented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import judge, read_constraints
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import parse_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight import origins
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

from tests.role_values import ROLES, load

ROLE = "ssh_trust"
NAMES = ("ssh_trust", "swarm", "training_container", "deepspeed_launch", "preflight", "host", "docker")
SPECS = parse_specs({role: load(f"{role}/meta/argument_specs.yml") for role in NAMES})
RULES = read_constraints({role: load(f"{role}/meta/constraints.yml") for role in NAMES})

knows_origins = pytest.mark.skipif(
    not vars(origins)["Origin"], reason="this ansible-core keeps no file and line of values"
)


def lines(hosts: dict[str, dict[str, Any]], **defaults: Any) -> list[str]:
    inventory = Inventory(
        groups={"cluster": list(hosts), "managers": list(hosts)[:1], "workers": list(hosts)[1:]},
        hosts=hosts,
        names={host: list(values) for host, values in hosts.items()},
        defaults=defaults,
        specs=SPECS,
        rules=RULES,
        judge=lambda name, value: judge(name, RULES[name], SPECS.options[name], value) if name in RULES else None,
        origin=origins.origin,
    )
    return [problem.line() for problem in INVENTORY_CHECKS["values"](inventory)]


def test_the_same_value_of_all_hosts_is_one_problem() -> None:
    wrong = {"swarm_data_path_port": 80}
    text = "swarm_data_path_port: 80 is not a port from 1024 to 49151 other than 7946"
    assert lines({"a": wrong, "b": wrong}) == [f"{text}. Remedy: write a value such as 4789."]
    assert lines({"a": wrong, "b": {}}) == [f"{text} (set for a). Remedy: write a value such as 4789."]


def test_the_part_that_is_wrong_is_named() -> None:
    (line,) = lines({"a": {"training_container_ulimits": ["memlock:-1:-1", "nofile"]}})
    assert line.startswith("training_container_ulimits[1]: 'nofile' is not NAME:SOFT[:HARD]")


def test_two_variables_that_must_differ_are_compared_on_each_host() -> None:
    same = {"ssh_trust_port": 2222, "deepspeed_launch_master_port": 2222}
    assert lines({"a": same, "b": {}}, ssh_trust_port=2222, deepspeed_launch_master_port=0) == [
        "ssh_trust_port: 2222 is also the value of deepspeed_launch_master_port (set for a). Remedy: give one of them "
        "another value."
    ]


def test_a_wrong_proxy_is_reported_once_and_not_for_each_variable_that_follows_it() -> None:
    wrong = "me:hunter2@proxy:3128"
    followed = {"cluster_proxy": wrong, "host_apt_proxy": wrong, "docker_proxy": {"http": wrong, "https": wrong}}
    (line,) = lines({"a": followed})
    assert line.startswith("cluster_proxy: ") and "hunter2" not in line
    assert len(lines({"a": {**followed, "host_apt_proxy": "other:1"}})) == 2
    assert len(lines({"a": {"host_apt_proxy": wrong}})) == 1


def test_a_variable_of_nobody_is_not_judged() -> None:
    assert lines({"a": {"somebodys_port": 99999}}) == []


@knows_origins
def test_file_and_line_of_a_value_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "group_vars").mkdir()
    file = tmp_path / "group_vars" / "cluster.yml"
    file.write_text("---\nswarm_data_path_port: 80\ntraining_container_ulimits:\n  - memlock:-1:-1\n  - nofile\n")
    values = DataLoader().load_from_file(str(file))
    found = lines({"a": values, "b": values})
    assert [re.findall(r"\((group_vars/[^)]*)\)", line) for line in found] == [
        ["group_vars/cluster.yml:2"],
        ["group_vars/cluster.yml:5"],
    ]


@knows_origins
def test_a_value_in_two_files_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yml").write_text("swarm_data_path_port: 80\n")
    hosts = {name: DataLoader().load_from_file(str(tmp_path / f"{name}.yml")) for name in ("a", "b")}
    (line,) = lines(hosts)
    assert "(a.yml:1, b.yml:1)" in line


def test_without_origins_hosts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "Origin", None)
    assert origins.origin({"x": 1}, ("x",)) == ""
    assert "(set for a)" in lines({"a": {"swarm_data_path_port": 80}, "b": {}})[0]


def test_the_constraints_are_those_that_roles_have() -> None:
    assert (ROLES / ROLE / "meta" / "constraints.yml").is_file() and "ssh_trust_port" in RULES
