# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filter diagnose: what it returns, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter import diagnose

ROOT = Path(__file__).parents[4]
FIXTURES = ROOT / "tests/unit/plugins/module_utils/fixtures"
FILTER = diagnose.FilterModule().filters()["diagnose"]


def test_a_recorded_job() -> None:
    found = FILTER((FIXTURES / "failures/port_taken.txt").read_text(encoding="utf-8"))
    assert found["known"] is True
    assert {key: found[key] for key in ("id", "kind", "cause", "remedy", "setting", "node", "rank", "others")} == {
        "id": "port-taken",
        "kind": "cluster",
        "cause": "Another process holds the master port.",
        "remedy": "End the job that is left over, or set deepspeed_launch_master_port to 0 or to a free port.",
        "setting": "deepspeed_launch_master_port",
        "node": "lab1",
        "rank": 0,
        "others": [],
    }
    assert "EADDRINUSE" in found["line"]


def test_the_others_have_the_same_keys() -> None:
    found = FILTER((FIXTURES / "failures/torchrun_killed.txt").read_text(encoding="utf-8"))
    assert [(other["id"], other["node"], other["rank"]) for other in found["others"]] == [("peer-gone", "lab1", 0)]
    assert set(found) == {*found["others"][0], "known", "others"}


@pytest.mark.parametrize("log", ["", "all is well\n", []])
def test_what_explains_nothing_is_not_known(log: Any) -> None:
    found = FILTER(log)
    assert (found["known"], found["kind"], found["cause"]) == (
        False,
        "unknown",
        "Not known; the log has no error line.",
    )


def test_lines_and_names_of_nodes_are_taken() -> None:
    found = FILTER(
        ["gpu1: starting", "no prefix", "gpu2: rank 4: MemoryError", "gpu1: OSError: [Errno 24] x"], ["gpu1"]
    )
    assert (found["id"], found["node"], found["rank"]) == ("host-memory", "gpu2", 4)


@pytest.mark.parametrize(
    ("log", "nodes", "says"),
    [
        ({"stdout": ""}, [], "expected a log's text or its lines, got dict"),
        (None, [], "expected a log's text or its lines, got NoneType"),
        ("x", "gpu1", "nodes must be a list of names, got str"),
        ("x", 3, "nodes must be a list of names, got int"),
    ],
)
def test_what_is_no_log_is_refused(log: Any, nodes: Any, says: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"^swarmspeed.cluster.diagnose: {says}$"):
        FILTER(log, nodes)


def test_what_is_returned_is_documented() -> None:
    documented = yaml.safe_load((ROOT / "plugins/filter/diagnose.yml").read_text(encoding="utf-8"))
    words = str(documented["RETURN"]["_value"]["description"])
    assert [key for key in FILTER("") if f"C({key})" not in words] == []
