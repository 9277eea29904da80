# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nvidia_driver, searched: against the plan that it wraps, and against itself afterwards."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import GENERATIONS, OPEN
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.driver import WORKS, make_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    PREFERENCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import (
    FABRIC_MANAGER,
    PERSISTENCED,
    exclusion,
    parse_request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import offers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver_hosts import BASE, HOSTS, KEY, MODULE, NO_DRIVER, facts, kept, planned, running, task_input
from tests.effort import examples

NAMES = ["libcuda1", "nvidia-smi", "nvidia-modprobe", "nvidia-fabricmanager-550"]
FILE_TEXTS = {
    PREFERENCES_FILE: ["", preferences("550.163.01")],
    EXCLUSION_FILE: ["", exclusion(["libcuda1", "nvidia-smi"]), exclusion(["gone"]), "// edited\n"],
}


def host(place: str, generations: list[str], driver: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    files = {path: kept(path, text) for path, text in rest.pop("texts").items() if text}
    return facts(place, *generations, gpu__driver=dict(driver), **rest, files=files)


SERVICE = st.fixed_dictionaries(
    {"active": st.booleans(), "state": st.sampled_from(["enabled", "disabled", "static", None])}
)
NODES = st.builds(
    host,
    st.sampled_from(sorted(HOSTS)),
    st.lists(st.sampled_from(sorted(GENERATIONS)), min_size=1, max_size=2),
    st.sampled_from(
        [
            NO_DRIVER,
            {**NO_DRIVER, "nouveau_loaded": True},
            {**NO_DRIVER, "library_version": "550.163.01"},
            running("550.163.01"),
            running("580.95.05", OPEN),
            running("550.90.07", library_version="550.163.01", matches=False),
        ]
    ),
    st.fixed_dictionaries(
        {
            "texts": st.fixed_dictionaries({path: st.sampled_from(texts) for path, texts in FILE_TEXTS.items()}),
            "gpu__nvswitches": st.sampled_from([[], [{"address": "x"}]]),
            "gpu__fabric": st.sampled_from(
                [{"state": None, "manager_version": None}, {"manager_version": "550.163.01"}]
            ),
            "driver__module": st.sampled_from([None, MODULE]),
            "driver__packages": st.dictionaries(
                st.sampled_from(NAMES),
                st.fixed_dictionaries(
                    {
                        "version": st.sampled_from(["550.163.01-2", "570.1-1"]),
                        "held": st.booleans(),
                        "finished": st.booleans(),
                    }
                ),
            ),
            "driver__services": st.dictionaries(st.sampled_from([PERSISTENCED, FABRIC_MANAGER]), SERVICE),
            "driver__users": st.sampled_from([[], ["python (7)"], None]),
            "jobs": st.sampled_from([{}, {"train": "running"}]),
        }
    ),
)
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "branch": st.sampled_from(["recommended", "550", "580", "590"]),
        "flavour": st.sampled_from(["auto", "open", "proprietary"]),
        "source": st.sampled_from(["auto", "distribution", "cuda_repository", "keep"]),
        "min_version": st.sampled_from(["", "550", "550.200.1", "580.95.05"]),
        "repository_key": st.sampled_from(["", KEY]),
        "kernel": st.sampled_from(["", "1.2.3"]),
        "reboot": st.sampled_from(["never", "if_needed"]),
        "allow_purge_conflicting": st.booleans(),
        "hold": st.booleans(),
        "persistence": st.booleans(),
    },
)


def of(node: dict[str, Any], desired: dict[str, Any]) -> Any:
    given_ = {"repository_url": BASE, "source": "distribution", "offers": offers(), **desired}
    return make_plan(node, parse_request(given_))


@settings(deadline=None, derandomize=True, max_examples=examples(600))
@given(NODES, REQUESTED)
def test_a_driver_is_planned_where_none_does(node: dict[str, Any], desired: Any) -> None:
    found, made = of(node, desired), planned(node, **desired)
    assert [one.text for one in made.refusals] == [one.text for one in found.refusals]
    names = [change.what for change in made.changes]
    if found.refusals:
        assert names == [] and task_input(made)["why"] == found.why
        return
    assert ("driver" in names or "fabric manager" in names) is (found.state != WORKS)
    assert (
        bool(task_input(made)["preview"]) is bool(task_input(made)["install"]) is (found.state in ("install", "fabric"))
    )
    assert bool(task_input(made)["load"]) is (found.state == "load")


@settings(deadline=None, derandomize=True, max_examples=examples(600))
@given(NODES, REQUESTED)
def test_once_all_is_done_nothing_is_left_to_do(node: dict[str, Any], desired: Any) -> None:
    before = copy.deepcopy(node)
    made = planned(node, **desired)
    assert node == before
    if made.refusals:
        assert made.facts["gpu1"] is node
        return
    last = made.facts["gpu1"]
    after = planned(last, **desired)
    if task_input(made)["load"] and node["gpu"]["nvswitches"]:
        # Whether the fabric manager is missing, and can be had, is judged once the driver runs (docs/gpu_hosts.md).
        if after.refusals:
            assert all("fabric manager" in problem.text for problem in after.refusals)
            return
        if task_input(after)["install"]:
            last = after.facts["gpu1"]
            after = planned(last, **desired)
    assert [change.what for change in after.changes] == [] and after.refusals == ()
    done = task_input(after)
    assert not any(done[name] for name in ("preview", "install", "load", "reboot", "hold", "release", "record"))
    assert of(dict(last), desired).state == WORKS


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(NODES, REQUESTED)
def test_beside_a_driver_that_works_the_role_has_something_to_act_on_for_each_change(
    node: dict[str, Any], desired: Any
) -> None:
    made = planned(node, **desired)
    if made.refusals or of(node, desired).state != WORKS:
        return
    todo = task_input(made)
    for change in made.changes:
        kind, dummy, name = change.what.rpartition(" ")
        if kind == "hold on":
            assert name in todo["hold" if change.action == "+" else "release"]
        elif kind == "service":
            there = name in node["driver"]["services"]
            assert (name in [entry["name"] for entry in todo["services"]]) is there
        else:
            assert [change.what] == [entry["path"] for entry in todo["record"]]
    held = [change for change in made.changes if change.what.startswith("hold on ")]
    assert len(held) == len(todo["hold"]) + len(todo["release"])


@pytest.mark.parametrize("section", ["gpu", "driver", "system", "files", "jobs"])
def test_a_fact_that_is_missing_is_no_exception(section: str) -> None:
    for node in ({**facts(), section: None}, {}):
        json.dumps(outcome(planned(node), "", ["nvidia_driver"]), default=str)
