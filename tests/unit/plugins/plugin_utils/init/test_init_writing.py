# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is written into a new folder, and into one that is there: nothing that a hand has edited changes."""

from __future__ import annotations

import configparser
import json
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import jsonschema
import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.inventory import hosts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.texts import Setup, vault
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.writing import Given, written

from tests.init_servers import ROOT, facts, given, host_key, server

FILES = {
    "ansible.cfg",
    ".gitignore",
    "hosts.yml",
    "known_hosts",
    "cluster.schema.json",
    "group_vars/cluster.yml",
    "group_vars/all/job.yml",
    "code/train.py",
}
PROXY = "http://proxy.example.com:3128"


def two(**more: Any) -> Given:
    return given(server(11), server(12), **more)


def texts(made: Given) -> dict[str, str]:
    return written(made)[0].outcome.write


def test_a_new_folder_has_all_files() -> None:
    made, problems = written(two())
    assert problems == []
    assert set(made.outcome.write) == FILES
    assert made.outcome.write["known_hosts"].splitlines() == [host_key("10.0.0.11").line, host_key("10.0.0.12").line]
    message = made.message("cluster")
    assert "Next: cd cluster && ansible-playbook swarmspeed.cluster.plan" in message
    assert "srv11: 10.0.0.11, no GPU" in message and "cluster_network_mode overlay: " in message


def test_variables_are_those_of_the_roles() -> None:
    made = texts(two(cluster="My cluster", environment={"https_proxy": PROXY, "no_proxy": "a.example.com"}))
    values = yaml.safe_load(made["group_vars/cluster.yml"])
    assert values == {
        "cluster_name": "train",  # the folder's is no name for containers
        "cluster_network_mode": "overlay",
        "cluster_underlay_subnet": "10.0.0.0/24",
        "cluster_proxy": PROXY,
        "cluster_no_proxy": ["a.example.com"],
    }
    job = yaml.safe_load(made["group_vars/all/job.yml"])
    assert job["workspace_source"] == "{{ inventory_dir }}/code" and job["deepspeed_launch_script"] == "train.py"
    commented = re.findall(r"^# ([a-z]+_\w+):", made["group_vars/cluster.yml"], re.M)
    assert commented and {*values, *job, *commented} <= set(role_specs().options)


def test_the_variables_pass_the_schema_that_is_copied() -> None:
    schema = json.loads((ROOT / "schemas/cluster.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    made = texts(two(environment={"https_proxy": PROXY, "no_proxy": "a.example.com"}))
    for name in ("group_vars/cluster.yml", "group_vars/all/job.yml"):
        assert [error.message for error in validator.iter_errors(yaml.safe_load(made[name]))] == []


@pytest.mark.parametrize("name", ["group_vars/cluster.yml", "group_vars/all/job.yml"])
def test_the_modeline_leads_to_the_copied_schema(name: str) -> None:
    made = texts(two())
    relative = made[name].splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / relative).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    assert "/".join(parts) in made


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        (Setup(), {"stdout_callback": "swarmspeed.cluster.console", "log_path": "ansible.log"}),
        (Setup("/x", vault_files=["/v"]), {"vault_password_file": "/v"}),
        (Setup(ask_vault=True), {"ask_vault_pass": "true"}),
    ],
)
def test_the_configuration(setup: Setup, expected: dict[str, str]) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(texts(two(setup=setup))["ansible.cfg"])
    defaults = dict(parser["defaults"])
    assert expected.items() <= defaults.items()
    assert defaults["inventory"] == "hosts.yml" and defaults["host_key_checking"] == "true"
    assert defaults.get("collections_path", "").startswith("/x:") is (setup.collections == "/x")
    assert ("collections_path" in defaults) is bool(setup.collections)


def test_the_vault_is_not_ignored_by_git_and_its_password_is() -> None:
    patterns = texts(two())[".gitignore"].splitlines()[1:]
    assert any(PurePosixPath("vault_password.txt").match(pattern) for pattern in patterns)
    assert not any(PurePosixPath("vault.yml").match(pattern) for pattern in patterns)


SECRET = "geheim:#'\""


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"sudo_password": SECRET}, {"vault_become_password": SECRET}),
        (
            {"environment": {"https_proxy": "http://u:geheim@proxy:1"}},
            {"vault_cluster_proxy": "http://u:geheim@proxy:1"},
        ),
    ],
)
def test_secrets_are_in_the_vault_alone(more: dict[str, Any], names: dict[str, str]) -> None:
    made, problems = written(two(vault=True, **more))
    assert problems == []
    write = dict(made.outcome.write)
    assert yaml.safe_load(write.pop("group_vars/all/vault.yml")) == names
    assert "geheim" not in "".join(write.values()) + made.message("x")
    (name,) = names
    assert f"{{{{ {name} }}}}" in write["hosts.yml"] + write["group_vars/cluster.yml"]
    (problem,) = written(two(vault=False, **more))[1]
    assert "--ask-vault-pass" in problem.remedy and "geheim" not in problem.line()


def test_a_password_is_no_template() -> None:
    lines = vault({"vault_become_password": "{{ 7 * 7 }}", "vault_cluster_proxy": "http://u:p@proxy:1"}).splitlines()
    assert 'vault_become_password: !unsafe "{{ 7 * 7 }}"' in lines
    assert 'vault_cluster_proxy: "http://u:p@proxy:1"' in lines


def test_an_empty_vault_is_yaml() -> None:
    assert yaml.safe_load(vault({})) is None


def test_one_machine_at_two_addresses_is_refused() -> None:
    same = {11: facts(11, machine="1" * 32), 12: facts(12, machine="1" * 32)}
    (problem,) = written(two(of=same))[1]
    assert problem.subject == "10.0.0.11, 10.0.0.12"


def test_mounts_of_all_servers_are_a_comment() -> None:
    nfs = "10.0.0.5:/export /mnt/train nfs4 rw 0 0\n"
    text = texts(two(of={11: facts(11, mounts=nfs), 12: facts(12, mounts=nfs)}))["group_vars/cluster.yml"]
    assert "# training_container_volumes:\n#   - /mnt/train:/mnt/train\n" in text


def test_run_again_nothing_is_written() -> None:
    first = texts(two())
    made = written(two(there=first))[0]
    assert made.outcome.write == {} and made.outcome.notes == [] and made.outcome.diffs == []
    assert "nothing to write" in made.message("cluster")


def test_what_a_hand_has_edited_stays_and_is_named() -> None:
    first = texts(two())
    first["group_vars/cluster.yml"] = first["group_vars/cluster.yml"].replace("mode: overlay", "mode: host")
    first["code/train.py"] = "mine\n"
    del first[".gitignore"]
    made = written(two(there=first))[0]
    assert set(made.outcome.write) == {".gitignore"}
    lines = ["-cluster_network_mode: host", "+cluster_network_mode: overlay", "-mine", "+print('train')"]
    assert [line for line in made.message("x", diff=True).splitlines() if line in lines] == lines
    assert not set(lines) & set(made.message("x").splitlines())
    listed, decision = made.outcome.notes
    assert listed.endswith("group_vars/cluster.yml, code/train.py.")
    assert decision.endswith("cluster_network_mode is host; from these servers init would write overlay.")


def test_a_new_server_is_added_with_its_key() -> None:
    first = {**texts(two()), "known_hosts": "# mine\n" + texts(two())["known_hosts"].rstrip("\n")}
    made, problems = written(given(server(12), server(13, user="root"), there=first))
    assert problems == []
    assert set(made.outcome.write) == {"hosts.yml", "known_hosts"}
    assert made.new == ["srv13"]
    there = hosts(made.outcome.write["hosts.yml"])
    assert there["srv13"] == {"ansible_host": "10.0.0.13", "ansible_user": "root"}
    assert made.outcome.write["known_hosts"] == f"{first['known_hosts']}\n{host_key('10.0.0.13').line}\n"


def test_names_that_a_hand_has_changed_are_used() -> None:
    first = texts(two())
    first["hosts.yml"] = first["hosts.yml"].replace("srv11:", "front:")
    made = written(two(there=first))[0]
    assert made.outcome.write == {} and made.names["10.0.0.11"] == "front"


def test_a_port_for_all_is_not_taken_over_by_a_server_without_one() -> None:
    first = texts(given(server(11, port=2222), server(12, port=2222)))
    made = written(given(server(13), there=first))[0]
    assert hosts(made.outcome.write["hosts.yml"])["srv13"]["ansible_port"] == "22"


def test_a_vault_that_is_there_is_not_replaced() -> None:
    first = texts(two(vault=True))
    made, problems = written(replace(two(vault=True, sudo_password="x"), servers=[server(13)], there=first,
                                     facts={"10.0.0.13": facts(13)}))  # fmt: skip
    assert problems == []
    assert "group_vars/all/vault.yml" not in made.outcome.write
    assert any("ansible-vault edit" in note and "vault_become_password" in note for note in made.outcome.notes)
    assert "vault_become_password" in made.outcome.write["hosts.yml"]
