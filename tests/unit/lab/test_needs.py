# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What scenarios need of the lab: each says so, the document lists it, and a lab that will not do is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.tests.needs import Needs, needs_of, refusal

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml") if path.parent.name != "default")
SOUND = {"locked": False, "interrupted": False, "trains": False, "bare": True, "disk_gib": 50.0}


def reported(needs: Needs, *gathered: dict[str, Any], **change: Any) -> str:
    nodes = {f"lab{number}": {**SOUND, **seen} for number, seen in enumerate(gathered, 1)}
    return refusal("faults", needs, nodes, **{"memory_gib": 8.0, "root": True, "lab": "mine", **change})


def test_a_lab_that_will_do_is_not_refused() -> None:
    assert reported(Needs(3), {}, {"bare": False}, {}) == ""
    assert reported(Needs(2, more_nodes=True, root=True), {}, {}, {}) == ""
    assert reported(Needs(3, state="bare"), {}, {}, {}) == ""


@pytest.mark.parametrize(
    ("needs", "gathered", "why"),
    [
        (Needs(3), [{}, {"interrupted": True}, {}], "on lab2 dpkg was interrupted"),
        (Needs(3), [{}, {}, {"trains": True}], "on lab3 a job is running"),
        (Needs(3), [{"locked": True}, {}, {}], "on lab1 packages have been installed for more than a minute"),
        (Needs(3, state="bare"), [{}, {}, {"bare": False}], "lab3 is not bare"),
        (Needs(3), [{"problem": "No route to host"}, {}, {}], "lab1 does not answer (No route to host)"),
        (Needs(3), [{}, {}, {}, {}], "it needs 3 nodes, and the lab has 4"),
    ],
)
def test_what_new_nodes_put_right(needs: Needs, gathered: list[dict[str, Any]], why: str) -> None:
    assert reported(needs, *gathered) == (
        f"Scenario faults cannot run here: {why}. Nothing was changed. Remedy: make fresh-lab LAB_NAME=mine."
    )


def test_of_the_lab_without_a_name_none_is_reported() -> None:
    text = reported(Needs(2, more_nodes=True), {}, lab="swarmspeed")
    assert text.endswith("it needs 2 or more nodes, and the lab has 1. Nothing was changed. Remedy: make fresh-lab.")


def test_what_the_machine_lacks_is_reported_together() -> None:
    text = reported(Needs(3, disk_gib=60, memory_gib=9, root=True), {}, {}, {}, root=False)
    for part in (
        "60 GiB of free disk, and there are 50.0;",
        "9 GiB of free memory, and there are 8.0;",
        "needs root on",
    ):
        assert part in text
    assert "fresh-lab" not in text and text.endswith("run it as root.")


def test_nodes_that_the_scenario_re_creates_may_be_in_any_state() -> None:
    assert reported(Needs(3, state="replaced"), {"interrupted": True, "bare": False}, {"trains": True}, {}) == ""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_compares_its_needs_first(scenario: str) -> None:
    folder = ROOT / "molecule" / scenario
    needs_of(scenario)
    sequence = yaml.safe_load((folder / "molecule.yml").read_text())["scenario"]["test_sequence"]
    first = next(step for step in sequence if step != "syntax")
    plays = yaml.safe_load((folder / f"{first}.yml").read_text())
    assert plays[0]["ansible.builtin.import_playbook"] == "../shared/needs.yml"


def test_the_document_lists_them() -> None:
    section = (
        (ROOT / "docs/lab.md")
        .read_text(encoding="utf-8")
        .partition("## What scenarios need\n")[2]
        .partition("\n## ")[0]
    )
    rows = {
        row[0]: row[1:]
        for row in re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|", section, re.M)
    }
    wanted = {}
    for scenario in SCENARIOS:
        needs = needs_of(scenario)
        nodes = f"{needs.nodes}{' or more' if needs.more_nodes else ''}"
        wanted[scenario] = (
            nodes,
            needs.state,
            f"{needs.disk_gib} GiB, {needs.memory_gib} GiB",
            "yes" if needs.root else "",
        )
    assert rows == wanted
