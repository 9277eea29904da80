# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""``tests/steps`` with a stand-in for make: what it runs, when it stops, and what it says of the time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).parents[2] / "steps"
# A stand-in for make: "make --no-print-directory TARGET LAB_NAME=… [VARIABLE=…]".
MAKE = r"""#!/bin/sh
echo "$2 has $3 and ${4:-nothing}" | tee -a ran
case $2 in
bad) echo "the reason"; exit 3 ;;
endless) exec sleep 60 ;;
molecule)
    printf 'INFO  \033[32msite\033[0m ➜ \033[33mconverge\033[0m: \033[36mExecuting\033[0m\n'
    sleep 2.5
    printf 'INFO  site ➜ converge: Executed: Successful\n' ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the script where it looks for a checkout, and the stand-in."""
    (tmp_path / "tests").mkdir()
    shutil.copy(STEPS, tmp_path / "tests")
    (tmp_path / "make").write_text(MAKE, encoding="utf-8")
    (tmp_path / "make").chmod(0o755)
    return tmp_path


def run(checkout: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PATH": f"{checkout}:{os.environ['PATH']}", "TEST_LAB_NAME": "trial"}
    answer = subprocess.run(
        [sys.executable, checkout / "tests" / "steps", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return answer.returncode, answer.stdout + answer.stderr


def ran(checkout: Path) -> list[str]:
    return (checkout / "ran").read_text(encoding="utf-8").splitlines()


def test_every_step_runs_in_its_order_in_the_lab_of_the_tests(checkout: Path) -> None:
    code, output = run(checkout, "venv", "lint & unit SLOW=1", "molecule SCENARIO=smoke site", "lab-down")
    assert code == 0, output
    first, *together, third, last = ran(checkout)
    assert first == "venv has LAB_NAME=trial and nothing"
    assert sorted(together) == ["lint has LAB_NAME=trial and nothing", "unit has LAB_NAME=trial and SLOW=1"]
    assert third == "molecule has LAB_NAME=trial and SCENARIO=smoke site"
    assert last == "lab-down has LAB_NAME=trial and nothing"
    assert output.endswith("make test: passed\n")
    # Each line is printed once, and kept.
    assert output.count("unit has LAB_NAME=trial") == 1
    assert "unit has" in (checkout / ".cache/steps/unit.log").read_text(encoding="utf-8")


def test_the_time_is_given_by_step_and_by_phase_of_a_scenario(checkout: Path) -> None:
    dummy, output = run(checkout, "molecule SCENARIO=site", "lint & unit")
    rows = re.findall(r"^ +(\d+) s +(\d+) s CPU  (.*)$", output, re.M)
    assert [row[2] for row in rows] == ["molecule SCENARIO=site", "lint", "unit"]
    # What is measured is when the lines were read, which a busy machine puts off.
    assert re.search(r"^ +[1-9]\d* s +site: converge$", output, re.M), output
    assert re.search(r"^ +\d+ s  in all$", output, re.M)


def test_the_first_step_that_fails_is_the_last(checkout: Path) -> None:
    code, output = run(checkout, "lint", "bad", "lab-down")
    assert code == 1
    assert [line.split()[0] for line in ran(checkout)] == ["lint", "bad"]
    assert "FAILED in 'bad'" in output and "make lab-down LAB_NAME=trial" in output
    assert "passed" not in output.splitlines()[-1]


def test_a_step_that_fails_ends_those_beside_it(checkout: Path) -> None:
    code, output = run(checkout, "endless & bad", "lab-down")
    assert code == 1
    assert "FAILED in 'bad'. " in output and "the reason" in output
    assert re.search(r"endless  stopped$", output, re.M)
    assert not any(line.startswith("lab-down") for line in ran(checkout))
