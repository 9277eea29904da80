# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is sent with a program of this collection, and that it runs from that alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from types import ModuleType

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.own_sources import sent_name, sources
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.source_runner import command_for, request_for
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import peer, reach
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import probe
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import main

PROGRAMS = [peer, reach, probe, main]


@pytest.mark.parametrize("program", PROGRAMS, ids=sent_name)
def test_each_source_stands_after_those_that_it_imports(program: ModuleType) -> None:
    found = list(sources(program))
    assert found[-1] == sent_name(program) and len(set(found)) == len(found)
    for place, (name, source) in enumerate(sources(program).items()):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.level and node.module:
                parent = ".".join([*name.split(".")[: -node.level], node.module])
                assert any(other == parent or other.startswith(f"{parent}.") for other in found[:place]), name


@pytest.mark.parametrize("program", PROGRAMS, ids=sent_name)
def test_nothing_else_of_this_collection_is_needed(program: ModuleType) -> None:
    for name, source in sources(program).items():
        for node in ast.walk(ast.parse(source, name, feature_version=(3, 8))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not str(node.module).startswith("ansible"), f"{name} imports {node.module}"


def test_a_program_runs_in_a_python_that_does_not_have_the_collection() -> None:
    command = command_for(None, [], sys.executable)
    command.insert(1, "-I")
    requested = {"seconds": 5, "port": 1, "hosts": {"here": "127.0.0.1"}}
    answer = subprocess.run(
        command, input=request_for(reach, requested), capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.strip() == f'{reach.MARK}{{"here": {{"stage": "done", "error": ""}}}}' and not answer.stderr


def test_what_is_asked_is_not_on_the_command_line() -> None:
    assert json.loads(request_for(reach, {"a": "secret"}))["requested"] == {"a": "secret"}
    assert "secret" not in " ".join(command_for("c", [], "python3"))
