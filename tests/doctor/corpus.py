# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs cases of HangBench with the hang doctor, on the torch that ``make oracle`` installs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import inside

ROOT = Path(__file__).resolve().parents[2]
TORCH = Path(os.environ.get("ORACLE_FOLDER", ROOT / ".cache/oracle")) / "venv/bin/python"
HERE = f"{ROOT / 'collections'}{os.pathsep}{ROOT}"


def run(folder: Path, *cases: str, doctor: str = "answer", when: str = "hang") -> list[dict[str, Any]]:
    """Return the results of the cases that these arguments of ``tests.hangbench run`` choose.

    ``doctor``: the command of tests.doctor.hangbench, with its arguments behind the folder.
    """
    own = folder / "inside"
    variables = [f"{name}={value}" for name, value in inside.environment(own, {}).items()]
    what, *more = doctor.split()
    words = ["env", f"PYTHONPATH={HERE}", sys.executable, "-m", "tests.doctor.hangbench", what, str(own), *more]
    given = ["--doctor", " ".join(words), "--when", when, "--env", *variables, "--python", str(TORCH)]
    subprocess.run(
        [sys.executable, "-m", "tests.hangbench", "run", "--out", str(folder), *given, *cases],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": HERE},
        stdin=subprocess.DEVNULL,
        check=False,  # what a case did not do is in its result
    )
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
