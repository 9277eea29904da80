# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Each command of the pages for new users is listed with where it is run, and is run there (tests/scenario_runs.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import MINE, ROOT, commands, steps, text
from tests.scenario_runs import TARBALL, line, runs_of, written

CHECKOUT = ("docs/demo.md", "docs/installation.md")
INSTALLED = ("README.md", "docs/first_hour.md", "docs/huggingface.md", "docs/init.md")
INIT = "scenario init: ansible-playbook swarmspeed.cluster.init -e init_servers=… -e init_host_keys=… --private-key …"
COMMANDS = {
    # make test: one of its steps. scenario X: its very line, on the lab's inventory; after a colon, the line nearest to
    # it. no test: nothing runs it but people.
    "make demo": "no test",
    "git clone https://github.com/swarmspeed/cluster": "no test",
    "cd cluster": "no test",
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
OF_THE_INSTALLED = {
    # The same for the collection from its tarball, in the folder that init writes.
    "python3 -m venv ~/swarmspeed": "no test",
    ". ~/swarmspeed/bin/activate": "no test",
    "pip install ansible": "no test",
    f"ansible-galaxy collection install --offline {TARBALL}": "scenario site",
    "ansible-playbook swarmspeed.cluster.init -e init_servers=10.0.0.11,10.0.0.12": INIT,
    "ansible-playbook swarmspeed.cluster.init -e init_servers=ubuntu@10.0.0.11,ubuntu@10.0.0.12": INIT,
    "cd cluster": "no test",
    "ansible-playbook swarmspeed.cluster.plan": "scenario init",
    "ansible-playbook swarmspeed.cluster.site": "scenario init",
    "ansible-playbook swarmspeed.cluster.launch": "scenario upgrade: ansible-playbook swarmspeed.cluster.launch …",
    "ansible-playbook swarmspeed.cluster.status": "scenario upgrade",
    "ansible-playbook swarmspeed.cluster.teardown": "scenario upgrade: ansible-playbook swarmspeed.cluster.teardown …",
}


def in_scenarios(listed: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (where.partition(":")[0].removeprefix("scenario "), where.partition(": ")[2] or written(command))
        for command, where in listed.items()
        if where.startswith("scenario ")
    ]


IN_CI = in_scenarios(COMMANDS)
IN_SCENARIOS = [*IN_CI, *in_scenarios(OF_THE_INSTALLED)]


@pytest.mark.parametrize(("documents", "listed"), [(CHECKOUT, COMMANDS), (INSTALLED, OF_THE_INSTALLED)])
def test_every_command_for_new_users_says_where_it_is_run(documents: tuple[str, ...], listed: dict[str, str]) -> None:
    shown = {command for document in documents for command in commands(document)}
    assert sorted(shown ^ set(listed)) == []
    assert {where.split()[0] for where in listed.values()} <= {"make", "scenario", "no"}


def test_commands_of_make_test_are_its_steps() -> None:
    named = [command.removeprefix("make ") for command, where in COMMANDS.items() if where == "make test"]
    assert named and set(named) <= set(steps("test"))


@pytest.mark.parametrize("scenario", sorted({scenario for scenario, dummy in IN_SCENARIOS}))
def test_scenarios_run_the_very_commands_they_are_said_to_run(scenario: str) -> None:
    reported = {run for name, run in IN_SCENARIOS if name == scenario}
    assert sorted(reported - runs_of(ROOT / "molecule" / scenario)) == []


@pytest.mark.parametrize(("name", "runs"), [("CI_SCENARIOS", IN_CI), ("SHARDS", IN_SCENARIOS)])
def test_the_scenarios_that_the_pages_count_on_are_run(name: str, runs: list[tuple[str, str]]) -> None:
    makefile = text("Makefile")
    listed = dict(re.findall(r"^(CI_SCENARIOS|SHARDS) \?= (.*)$", makefile, re.MULTILINE))
    scenarios = listed[name].replace("$(CI_SCENARIOS)", listed["CI_SCENARIOS"]).split()
    assert sorted({scenario for scenario, dummy in runs} - set(scenarios)) == []


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
