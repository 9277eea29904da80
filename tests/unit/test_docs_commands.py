# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Each command of the README is in COMMANDS with where it is run, and is run there: tests/scenario_runs.py looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import MINE, ROOT, commands, steps, text
from tests.scenario_runs import TARBALL, line, runs_of, written

COMMANDS = {
    # make test: one of its steps. scenario X: its very line, on the lab's inventory; after a colon, the line nearest to
    # it. no test: nothing runs it but people.
    "make demo": "no test",
    ". .venv/bin/activate": "no test",
    "ansible-playbook site.yml -i inventories/lab": "scenario site",
    "ansible-playbook verify.yml -i inventories/lab": "scenario site",
    "ansible-playbook teardown.yml -i inventories/lab": "scenario site",
    "make lab-down": "make test",
    "python3 -m venv .venv": "no test",
    "pip install -r requirements.txt": "no test",
    f"cp -r inventories/example {MINE}": "no test",
    f"ansible all -i {MINE} -m ping": "no test",
    f"ansible-playbook site.yml -i {MINE} --check --diff": "scenario site: ansible-playbook site.yml --check",
    f"ansible-playbook plan.yml -i {MINE}": "scenario site: ansible-playbook plan.yml --extra-vars …",
    f"ansible-playbook site.yml -i {MINE}": "scenario site",
    f"ansible-playbook launch.yml -i {MINE}": "scenario site: ansible-playbook launch.yml --extra-vars …",
    f"ansible-playbook verify.yml -i {MINE}": "scenario site",
    f"ansible-playbook teardown.yml -i {MINE}": "scenario site",
    "pip install distlib": "no test",
    "ansible-galaxy collection build": "scenario site",
    f"ansible-galaxy collection install --offline {TARBALL}": "scenario site",
    f"ansible-playbook swarmspeed.cluster.site -i {MINE}": "scenario site",
}
IN_SCENARIOS = [
    (where.partition(":")[0].removeprefix("scenario "), where.partition(": ")[2] or written(command))
    for command, where in COMMANDS.items()
    if where.startswith("scenario ")
]


def test_every_command_of_the_readme_says_where_it_is_run() -> None:
    assert sorted(set(commands("README.md")) ^ set(COMMANDS)) == []
    assert {where.split()[0] for where in COMMANDS.values()} == {"make", "scenario", "no"}


def test_commands_of_make_test_are_its_steps() -> None:
    named = [command.removeprefix("make ") for command, where in COMMANDS.items() if where == "make test"]
    assert named and set(named) <= set(steps("test"))


@pytest.mark.parametrize("scenario", sorted({scenario for scenario, dummy in IN_SCENARIOS}))
def test_scenarios_run_the_very_commands_they_are_said_to_run(scenario: str) -> None:
    reported = {run for name, run in IN_SCENARIOS if name == scenario}
    assert sorted(reported - runs_of(ROOT / "molecule" / scenario)) == []


def test_ci_runs_the_scenarios_that_the_readme_counts_on() -> None:
    listed = re.search(r"^CI_SCENARIOS \?= (.*)$", text("Makefile"), re.MULTILINE)
    assert listed is not None
    assert sorted({scenario for scenario, dummy in IN_SCENARIOS} - set(listed[1].split())) == []


CALLS = """
import pytest
from tests.playbook_run import playbook, site, variables  # site.yml --flush-cache

EXTRA = ("-v",)

@pytest.fixture
def again():
    return site("--tags", "docker")

def ran(**values):
    return playbook("launch", *variables(**values))

def never():
    return playbook("stop")

def test_it(installed, again):
    ran(a=1)
    site("--check", *EXTRA)
    playbook("verify", inventory=None)
    installed.play("report", "--diff")
    again.start("teardown")
"""


@pytest.mark.parametrize(
    ("sequence", "imported", "more"),
    [
        (
            "[check, converge]",
            "swarmspeed.cluster.site",
            {"ansible-playbook site.yml", "ansible-playbook site.yml --check"},
        ),
        ("[prepare, converge]", "swarmspeed.cluster.site", {"ansible-playbook site.yml"}),
        ("[converge]", "../shared/site.yml", set()),
        ("[verify]", "swarmspeed.cluster.site", set()),
    ],
)
def test_only_what_is_run_is_found(tmp_path: Path, sequence: str, imported: str, more: set[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(CALLS, encoding="utf-8")
    (tmp_path / "molecule.yml").write_text(f"ansible: {{}}\nscenario:\n  test_sequence: {sequence}\n", encoding="utf-8")
    (tmp_path / "converge.yml").write_text(f"- ansible.builtin.import_playbook: {imported}\n", encoding="utf-8")
    assert runs_of(tmp_path) == more | {
        "ansible-playbook launch.yml --extra-vars …",
        "ansible-playbook site.yml --check …",
        "ansible-playbook site.yml --tags docker",
        "ansible-playbook swarmspeed.cluster.report --diff",
    }


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (
            ["/x/bin/ansible-playbook", "site.yml", "--inventory", "/x/lab", "--diff"],
            "ansible-playbook site.yml --diff",
        ),
        (["ansible-playbook", "site.yml", "--inventory=/x/lab", "-e", "a=1"], "ansible-playbook site.yml -e a=1"),
        (["ansible-galaxy", "collection", "build", "--output-path", "/x", "/y"], "ansible-galaxy collection build"),
    ],
)
def test_a_line_has_no_inventory_and_no_paths(words: list[str], left: str) -> None:
    assert line(words) == left
