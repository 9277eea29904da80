"""How measurements are chosen, shown and kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.tests.bench.playbooks import memory, profile, tree
from ansible_collections.swarmspeed.cluster.tests.bench.registry import Registry, Row, keep, table

ROOT = Path(__file__).parents[3]
ROWS = [
    Row("launch.yml", [14.0, 13.0, 18.0], floor="by hand"),
    Row("by hand", [12.0, 10.0, 11.0]),
    Row("size", [7.0], unit="MB", note="packed"),
]


def test_a_row_stands_beside_its_floor_which_was_measured_in_turn_with_it() -> None:
    assert table("launch", ROWS) == [
        "launch           min   median      max",
        "launch.yml     13.00    14.00    18.00 s   +3.00 s, 1.3 times by hand",
        "by hand        10.00    11.00    12.00 s",
        "size            7.00     7.00     7.00 MB   (packed)",
    ]


def test_a_floor_of_nothing_has_no_ratio() -> None:
    assert table("x", [Row("a", [1.0], floor="b"), Row("b", [0.0])])[1].endswith("1.00 s   +1.00 s b")


def test_what_is_not_asked_for_is_not_measured() -> None:
    registry = Registry()
    registry.add("site")(lambda dummy: ROWS)
    registry.add("launch")(lambda dummy: ROWS)
    assert list(registry.chosen([])) == ["site", "launch"]
    assert list(registry.chosen(["launch"])) == ["launch"]
    registry.add("first", on_request=True)(lambda dummy: ROWS)
    assert list(registry.chosen([])) == ["site", "launch"]
    assert list(registry.chosen(["first", "site"])) == ["site", "first"]
    with pytest.raises(ValueError, match=r"^lunch: no such measurement\. There are: site, launch, first\.$"):
        registry.chosen(["lunch", "site"])


def test_every_value_is_kept_beside_those_of_other_measurements(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bench.json"
    keep(path, 3, 3, {"launch": ROWS[:1], "site": ROWS[1:2]})
    keep(path, 5, 3, {"site": [Row("by hand", [1.0])]})
    keep(path, 5, 12, {"site": [Row("by hand", [2.0])]})
    kept = json.loads(path.read_text())
    assert kept["launch, 3 nodes"]["rows"] == [
        {
            "name": "launch.yml",
            "values": [14.0, 13.0, 18.0],
            "floor": "by hand",
            "unit": "s",
            "note": "",
            "median": 14.0,
        }
    ]
    assert (kept["site, 3 nodes"]["rounds"], kept["site, 3 nodes"]["rows"][0]["values"]) == (5, [1.0])
    assert kept["site, 12 nodes"]["rows"][0]["values"] == [2.0]
    assert [file.name for file in path.parent.iterdir()] == ["bench.json"]


HISTORY, PAGE = ROOT / "docs" / "bench", ROOT / "docs" / "performance.md"
SHOWN = re.compile(r"<!-- BENCH: (?P<version>\S+) (?P<key>.+?) -->\n```text\n.*?```", re.S)


def test_the_page_shows_the_history_as_it_is() -> None:
    """After new figures: ``WRITE_PERFORMANCE=1 pytest tests/unit/lab/test_bench.py``."""

    def block(found: re.Match[str]) -> str:
        kept = json.loads((HISTORY / f"{found['version']}.json").read_text(encoding="utf-8"))[found["key"]]
        rows = [Row(**{name: value for name, value in row.items() if name not in {"median"}}) for row in kept["rows"]]
        lines = "\n".join(table(found["key"], rows))
        return f"<!-- BENCH: {found['version']} {found['key']} -->\n```text\n{lines}\n```"

    page = PAGE.read_text(encoding="utf-8")
    wanted, blocks = SHOWN.subn(block, page)
    assert blocks >= 4
    if os.environ.get("WRITE_PERFORMANCE"):
        PAGE.write_text(wanted, encoding="utf-8")
        return
    assert wanted == page


def test_the_tasks_of_a_run_that_was_profiled() -> None:
    output = """TASK [x] ***
TASKS RECAP ********************************************************************
Sunday 22 November 2026  15:10:10 +0000 (0:00:00.133)       0:00:30.981 *******
===============================================================================
swarmspeed.cluster.training_image : Build the image, once --------- 209.88s
The inventory must have a cluster --------------------------------------- 0.22s
"""
    assert profile(output) == [
        ("training_image", "Build the image, once", 209.88),
        ("", "The inventory must have a cluster", 0.22),
    ]


def test_the_memory_of_a_process_and_of_what_it_has_started() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as shell:
        try:
            while len(pids := tree(shell.pid)) < 2:
                assert shell.poll() is None
            assert memory({os.getpid()} | pids) > memory({os.getpid()}) > 1
        finally:
            subprocess.run(["pkill", "-P", str(shell.pid)], check=True)
    assert memory({shell.pid}) == 0
