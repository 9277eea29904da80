# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The hang doctor examines real ranks on a real torch: two cases of HangBench. The scenario ``hangs`` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.corpus import run

CASES = ("skip-bad-loss", "code-spins")


@pytest.mark.xdist_group("hangs")
@pytest.mark.parametrize("case", CASES)
def test_the_rank_the_collective_and_the_function_are_named(case: str, tmp_path: Path) -> None:
    (result,) = run(tmp_path, "--case", case)
    scores = {name: right for name, right in result["scores"].items() if right is not None}
    assert scores == dict.fromkeys(("rank", "kind", "collective", "does"), True), result
    assert result["answer"]["works"] is (case == "code-spins"), result["answer"]
