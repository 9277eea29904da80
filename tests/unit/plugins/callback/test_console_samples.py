# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How many lines whole runs take, recorded on a lab or made here; docs/console.md shows them."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.console_runs import RECORDED, rows, shown
from tests.documents import ROOT, text
from tests.stand_ins import StandIns
from tests.unit.plugins.callback.test_console_runs import ANSIBLE, environment, without_times
from tests.unit.roles.test_docker_alone import ENGINE, after, facts

SOCKET = {"exists": True, "woth": False, "roth": False, "mode": "0660"}
"""The engine's, as the role checks it."""


def recorded_lines(name: str) -> list[str]:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("columns", "most"), [(80, 25), (200, 25)])
def test_a_second_run_takes_few_rows(columns: int, most: int) -> None:
    lines = shown("second_run", columns)
    assert rows(lines, columns) <= most
    assert len(recorded_lines("second_run")) > 2 * len(lines)


def test_nothing_that_changed_is_hidden() -> None:
    """Each task that changed something, each message and each line that an action printed is on the screen."""
    screen = " ".join(" ".join(shown("first_run")).split())
    task = ""
    for line in recorded_lines("first_run"):
        if found := re.fullmatch(r"TASK \[(?:swarmspeed\.cluster\.\w+ : )?(.*)\] \*+", line):
            task = found[1]
        elif line.startswith("changed: "):
            assert f"~ {task}: " in screen
        elif re.match(r"[a-z0-9]+ \| |Job |digits: ", line):
            assert line in shown("first_run")
    assert len(shown("first_run")) < len(recorded_lines("first_run")) / 6


@pytest.fixture(scope="module")
def mistake(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return what site.yml shows of the example with a misspelt variable, and without our console."""
    folder = tmp_path_factory.mktemp("mistake")
    outputs = []
    for callback in ("swarmspeed.cluster.console", "ansible.builtin.default"):
        done = subprocess.run(
            [ANSIBLE, "site.yml", "-i", "inventories/example", "-e", "workspace_sorce=x"],
            cwd=ROOT,
            env=environment(folder, {"ANSIBLE_STDOUT_CALLBACK": callback}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 2, done.stdout
        outputs.append(done.stdout)
    return outputs[0], outputs[1]


def test_a_mistake_takes_few_rows(mistake: tuple[str, str]) -> None:
    ours, default = mistake
    assert rows(ours.splitlines(), 80) <= 12
    assert ours.count("did you mean workspace_source?") == 1
    # Ansible prints its own line, and the task's result; no more.
    assert default.count("did you mean workspace_source?") == 2
    assert "overlay_values" not in default  # a check that is not concerned


@pytest.mark.parametrize("sample", ["first_run", "second_run", "mistake"])
def test_the_document_shows_it(sample: str, mistake: tuple[str, str]) -> None:
    lines = without_times(mistake[0]) if sample == "mistake" else shown(sample)
    lines = [*lines[:20], "…"] if sample == "first_run" else lines
    wrapped = [part for line in lines for part in textwrap.wrap(line, 140, subsequent_indent="  ")]
    found = dict(re.findall(r"<!-- run: (\w+) -->\n```text\n(.*?)```", text("docs/console.md"), re.S))
    assert found[sample] == "\n".join(wrapped) + "\n"


@pytest.mark.slow
def test_a_role_of_this_collection_on_stand_ins(tmp_path: Path) -> None:
    """Tasks that a role includes, and those of preflight within it, are the role's."""
    hosts = StandIns(tmp_path, "docker", ["systemd_service"], {"stat": SOCKET}, grouped=False, tags=["engine"])
    for name, found in (("empty", facts()), ("ready", facts("job", **ENGINE))):
        hosts.add(name, found, after(found))
    given = environment(tmp_path, {})
    assert without_times(hosts.play(environment=given).partition("\n[")[0]) == [
        "all: empty, ready",
        "  ~ Merge the engine's configuration, keeping the user's own keys: empty",
        "  ~ Install the engine and what community.docker needs: empty",
        "  ~ Start the engine: empty",
        "✓ docker: 3 changes",
        "  empty goes on (the same for ready)",
        "✓ Done in 1 s: 3 changes (3 on empty).",
    ]
