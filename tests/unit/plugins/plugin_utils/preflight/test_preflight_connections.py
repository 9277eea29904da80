# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How hosts are reached, as inventories say it: two that are one machine, and misspelt variables."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.connection_names import (
    given_by_ansible,
    known_names,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.connections import check_connections
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory

KNOWN = known_names([{}])
JUMP = {"ansible_ssh_common_args": "-J gate1"}


def found(facts: dict[str, Any] | None = None, **hosts: dict[str, Any]) -> list[Problem]:
    inventory = Inventory(
        groups={"cluster": list(hosts)},
        hosts=hosts,
        names={host: [*values, *given_by_ansible({})] for host, values in hosts.items()},
        connections=KNOWN,
        from_ansible={host: given_by_ansible({"ansible_facts": facts or {}}) for host in hosts},
    )
    return list(check_connections(inventory))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"ansible_host": "10.0.0.1"}, {"ansible_host": "10.0.0.1"}),
        ({"ansible_host": "10.0.0.1"}, {"ansible_ssh_host": " 10.0.0.1", "ansible_port": 22}),
        ({"ansible_host": "10.0.0.1", "ansible_port": "22"}, {"ansible_host": "10.0.0.1", "ansible_user": "me"}),
        ({"ansible_host": "fd00::1"}, {"ansible_host": "FD00:0::1"}),
        ({"ansible_host": "gpu.example"}, {"ansible_host": "GPU.example"}),
        ({}, {"ansible_host": "gpu1"}),
        ({"ansible_host": "10.0.0.1", **JUMP}, {"ansible_host": "10.0.0.1", **JUMP}),
    ],
)
def test_two_hosts_that_are_one_machine(one: dict[str, Any], other: dict[str, Any]) -> None:
    (problem,) = found(gpu1=one, gpu2=other, gpu3={"ansible_host": "10.0.0.3"})
    assert problem.subject == "gpu1, gpu2"
    assert problem.text.startswith("are one machine: each has the address ")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"ansible_host": "10.0.0.1"}, {"ansible_host": "10.0.0.2"}),
        ({"ansible_host": "127.0.0.1", "ansible_port": 2201}, {"ansible_host": "127.0.0.1", "ansible_port": 2202}),
        ({"ansible_host": "10.0.0.1", **JUMP}, {"ansible_host": "10.0.0.1"}),
        ({"ansible_connection": "local"}, {"ansible_connection": "local"}),
        *(
            ({"ansible_host": "x", "ansible_connection": name}, {"ansible_host": "x", "ansible_connection": name})
            for name in ("local", "ansible.builtin.local", "community.docker.docker")
        ),
    ],
)
def test_hosts_that_are_or_may_be_two_machines(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert found(gpu1=one, gpu2=other) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ansible_usr", "ansible_user"),
        ("ansible_prot", "ansible_port"),
        ("ansible_ssh_usr", "ansible_ssh_user"),
        ("ansible_pasword", "ansible_password"),
        ("ansible_ssh_key_file", "ansible_ssh_private_key_file"),
        ("ansible_become_passwd", "ansible_become_password"),
        ("ansible_python_interpeter", "ansible_python_interpreter"),
    ],
)
def test_a_misspelt_variable_of_the_connection_is_refused_with_the_name_that_was_meant(name: str, meant: str) -> None:
    (problem,) = found(gpu1={name: "x"}, gpu2={})
    assert (problem.subject, problem.fatal) == (name, True)
    assert problem.text == "is not a variable of Ansible, but looks like one (set for gpu1)"
    assert problem.remedy.startswith(f"did you mean {meant}? Rename it")


FACTS = (
    *("hostname", "user_id", "user_dir", "user_gid", "user_uid", "python", "python_version", "domain", "fqdn", "env"),
    *("distribution", "default_ipv4", "all_ipv4_addresses", "interfaces", "ssh_host_key_rsa_public", "system", "local"),
)


@pytest.mark.parametrize("name", [*sorted(KNOWN), *(f"ansible_{fact}" for fact in FACTS), "ansible_managed", "my_usr"])
def test_what_ansible_or_others_use_is_none_of_our_business(name: str) -> None:
    assert found(gpu1={name: "x"}) == []


def test_what_a_host_has_as_a_fact_is_not_misspelt() -> None:
    assert found(gpu1={"ansible_hosts": "x"}) != [] == found({"hosts": "x"}, gpu1={"ansible_hosts": "x"})


def test_what_the_plugins_of_a_host_know_is_known() -> None:
    assert "ansible_winrm_path" in known_names([{"ansible_connection": "winrm"}])
    assert known_names([{"ansible_connection": "no.such.plugin"}]) == KNOWN
