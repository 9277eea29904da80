# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters of bench_network.yml: their glue, and that each is documented. The role's files are there, too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.network_bench import FilterModule

ROOT = Path(__file__).parents[4]
FILTERS = FilterModule().filters()
SETTINGS = {
    "seconds": 30,
    "message_mib": 64,
    "gib": 32,
    "port": 29717,
    "min_ratio": 0,
    "min_gigabits": 0,
    "min_busbw": 0,
}
GIVEN = {"cluster": "lab", "time": "2026-11-22T02:47:32Z", "seconds": 9, "in_use": "overlay", "settings": SETTINGS}


def planned() -> dict[str, Any]:
    found: dict[str, Any] = FILTERS["network_bench_plan"]({"gpu1": 1, "gpu2": 1}, "cpu", SETTINGS)
    return found


def test_they_are_all_documented() -> None:
    for name in FILTERS:
        described = yaml.safe_load((ROOT / "plugins/filter" / f"{name}.yml").read_text(encoding="utf-8"))
        assert described["DOCUMENTATION"]["name"] == name and described["RETURN"]


def test_from_plan_to_table() -> None:
    plan = planned()
    network = {"kind": "overlay", "master": "lab-bench-gpu1", "subnet": "10.64.0.0/24", "environment": {}}
    assert FILTERS["network_bench_part"](plan, "gpu2", network)["node"] == 1
    reported = {
        name: {"overlay": {"network": "lab", "log": "", "error": "no such network"}} for name in ("gpu1", "gpu2")
    }
    report = FILTERS["network_bench_report"](plan, reported, **GIVEN)
    assert report["failed"] == ["overlay, which the cluster trains over, could not be measured: gpu1: no such network."]
    lines = FILTERS["network_bench_table"](json.loads(json.dumps(report)))
    assert "overlay: gpu1: no such network." in lines


@pytest.mark.parametrize(
    ("name", "arguments", "reported"),
    [
        ("network_bench_plan", (None, "cpu", SETTINGS), "the input must be a mapping, not NoneType"),
        ("network_bench_plan", ({"a": "x", "b": 1}, "cpu", SETTINGS), "these are not slots by node"),
        ("network_bench_plan", ({"a": 1, "b": 1}, "cpu", []), "settings must be a mapping, not list"),
        (
            "network_bench_plan",
            ({"a": 1, "b": 1}, "cpu", {**SETTINGS, "gib": 0}),
            "overlay_network_bench_gib is 0; give 1",
        ),
        ("network_bench_part", (planned(), "gpu9", {"kind": "host"}), "the plan has no such node"),
        ("network_bench_part", (planned(), "gpu1", {}), "the network is not whole"),
        ("network_bench_part", ("x", "gpu1", {}), "the input must be a mapping, not str"),
        ("network_bench_table", ({},), "this is not a report of a benchmark"),
        ("network_bench_table", ([],), "the input must be a mapping, not list"),
    ],
)
def test_what_is_no_such_thing_is_refused(name: str, arguments: tuple[Any, ...], reported: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        FILTERS[name](*arguments)
    assert reported in str(caught.value)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (None, "printed must be a mapping, not NoneType"),
        ({"gpu1": []}, "what gpu1 returned must be a mapping, not list"),
        ({"gpu1": {"overlay": {}}}, "this is not what the nodes of that plan say"),
    ],
)
def test_what_no_node_says_is_refused(reported: Any, expected: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        FILTERS["network_bench_report"](planned(), reported, **GIVEN)
    assert expected in str(caught.value)


def test_what_runs_in_the_containers_is_brought_there_whole() -> None:
    """Each of these files imports others from the folder that they lie in."""
    names = yaml.safe_load((ROOT / "roles/overlay_network/vars/main.yml").read_text(encoding="utf-8"))[
        "_overlay_network_bench_files"
    ]
    for name in names:
        source = (ROOT / "plugins/module_utils/network_bench" / name).read_text(encoding="utf-8")
        wanted = {f"{module}.py" for module in re.findall(r"^from \.(\w+) import", source, re.M)}
        assert wanted <= set(names) and (wanted or name == names[0])
