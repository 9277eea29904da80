# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""stop.yml, by ansible-playbook itself, of a cluster that does not answer: what is not known is not said to be none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.playbook_run import playbook


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Return one whose hosts refuse every connection, at once."""
    hosts = {name: {"ansible_host": f"127.0.0.{number}", "ansible_port": 1} for number, name in enumerate("abc", 1)}
    groups = {"managers": {"hosts": {"a": hosts["a"]}}, "workers": {"hosts": {name: hosts[name] for name in "bc"}}}
    path = tmp_path / "inventory.json"
    path.write_text(json.dumps({"cluster": {"children": groups}}), encoding="utf-8")
    return path


@pytest.mark.parametrize("limit", [(), pytest.param(("--limit", "c"), marks=pytest.mark.slow)])
def test_a_cluster_that_does_not_answer_is_not_said_to_have_no_jobs(limit: tuple[str, ...], inventory: Path) -> None:
    run = playbook("stop", *limit, inventory=inventory)
    reason = "c did not answer and a, b were not asked (--limit)" if limit else "a, b, c did not answer"
    run.refused(f"Nothing was stopped: {reason}, so what runs there is not known.", "Check: ansible c -m ping")
    assert not any(text in run.text for text in ("Nothing to stop", "There is no job", "There are no jobs"))
