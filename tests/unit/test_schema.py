# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The schema for editors: it is up to date, takes every file of variables here, and finds what an editor can find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.documents import ROOT
from tests.write_schema import FILE, plain, text

VALIDATOR = jsonschema.Draft7Validator(json.loads(FILE.read_text(encoding="utf-8")))
FILES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("inventories/*/group_vars/*.yml", "examples/*/vars*.yml", "molecule/*/vars/*.yml")
    for path in ROOT.glob(pattern)
)


def faults(document: Any) -> list[str]:
    return [".".join(map(str, error.absolute_path)) for error in VALIDATOR.iter_errors(document)]


def test_it_is_what_specs_and_constraints_say() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run: python -m tests.write_schema"
    jsonschema.Draft7Validator.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize("path", FILES)
def test_it_takes_the_files_of_variables(path: str) -> None:
    assert faults(yaml.safe_load(Path(ROOT / path).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "variables",
    [
        {"swarm_data_path_port": 80},
        {"swarm_data_path_port": 7946},
        {"cluster_name": "My Cluster"},
        {"cluster_network_mode": "bridge"},
        {"docker_hold": "maybe"},
        {"docker_proxy": {"htpp": "proxy.example.com:3128"}},
        {"overlay_network_subnet": "10.0.0.0"},
        {"training_container_ulimits": {"nofile": 1}},
        {"deepspeed_launch_results": ["/etc/passwd"]},
        {"assets_sources": [{"huggingface": {"repository": "a/b"}}]},
        {"nccl_env_environment": {"MY-TOKEN": "x"}},
    ],
)
def test_it_finds_what_is_wrong(variables: dict[str, Any]) -> None:
    assert faults(variables) == list(variables)


@pytest.mark.parametrize(
    "variables",
    [
        {"swarm_data_path_port": "{{ port }}", "docker_proxy": "{{ proxies }}", "docker_users": ["{{ me }}"]},
        {"swarm_data_path_port": None, "cluster_name": None},
        {"docker_hold": "yes", "docker_users": "alice,bob", "docker_version": 27.5},
        {"overlay_network_mtu": 0, "training_container_address": "", "somebodys_variable": [1]},
        None,
    ],
)
def test_it_takes_what_ansible_takes(variables: Any) -> None:
    assert faults(variables) == []


def test_descriptions_are_without_markup() -> None:
    assert plain(["Of O(docker_version), as V(27.5).", "See U(https://x.example) or L(this, https://y.example)."]) == (
        "Of docker_version, as 27.5. See https://x.example or this."
    )
    described = [entry["description"] for entry in VALIDATOR.schema["properties"].values()]
    assert len(described) > 200 and not [words for words in described if "O(" in words or "V(" in words]


def test_the_example_inventory_names_it() -> None:
    """A path from the file itself, so that it works in a copy of the folder beside a checkout, too."""
    first = (ROOT / "inventories/example/group_vars/cluster.yml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../../schemas/cluster.schema.json"
