# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nvidia_driver: what it plans, refuses and needs consent for, over invented hosts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import OPEN
from ansible_collections.swarmspeed.cluster.plugins.modules import driver_preview
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.changes import NOUVEAU
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    FILES,
    GATHERED,
    NOUVEAU_FILE,
    PREFERENCES_FILE,
    SOURCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.planner import (
    NOTHING,
    NvidiaDriverPlanner,
    requested,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import (
    FABRIC_MANAGER,
    PERSISTENCED,
    Request,
    exclusion,
    parse_request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import Requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts

from tests.driver_hosts import (
    KEY,
    NO_DRIVER,
    WISHES,
    act,
    facts,
    installed,
    kept,
    ours,
    planned,
    running,
    shown,
)
from tests.role_values import ROLES

SWITCHED: dict[str, Any] = {"gpu__nvswitches": [{"address": "0000:05:00.0"}]}

# What is gathered


def test_whatever_the_plan_reads_is_gathered() -> None:
    assert {entry["path"] for entry in GATHERED.files} == set(FILES)
    assert all(entry["content"] is True for entry in GATHERED.files)


def test_each_wish_is_read_and_the_defaults_are_those_of_the_role() -> None:
    defaults = yaml.safe_load((ROLES / "nvidia_driver/defaults/main.yml").read_text(encoding="utf-8"))
    read = {
        f"nvidia_driver_{name}" for name in vars(Request()) if name not in ("offers", "builds", "reason", "instead")
    }
    of_role = {name for name in WISHES if name.startswith("nvidia_driver_")}
    assert of_role - read == {"nvidia_driver_reboot_timeout"}  # which the task alone reads
    for name, value in vars(Request()).items():
        if f"nvidia_driver_{name}" in read and name != "repository_url":
            assert defaults[f"nvidia_driver_{name}"] == value, name
    request = parse_request(requested({"nvidia_driver_branch": 580, "docker_version": "27"}))
    assert (request.branch, request.offers["debian 12"][0].branch) == ("580", 535)


# Where it applies


@pytest.mark.parametrize(
    ("cluster", "wished", "gpu", "there"),
    [
        ({"accelerator": "cuda"}, "auto", True, True),
        ({"accelerator": "cpu"}, "auto", True, False),
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({}, "cpu", True, False),
        ({}, "cuda", True, True),
        ({}, None, False, False),
    ],
)
def test_where_no_gpu_is_to_compute_nothing_is_planned(cluster: Any, wished: Any, gpu: bool, there: bool) -> None:
    found = facts() if gpu else facts(gpu={"present": False, "pci_devices": []}, driver=None)
    wishes = {**WISHES, **({} if wished is None else {"cluster_accelerator": wished})}
    made = fold([NvidiaDriverPlanner()], {"gpu1": found}, {"gpu1": wishes}, Inputs(cluster))
    assert made.pending("nvidia_driver", "gpu1") is there
    if not there:
        assert {**act(made), "undo": NOTHING["undo"]} == NOTHING
        assert made.facts["gpu1"] is found


def test_a_host_without_a_gpu_in_a_cluster_of_gpus_is_refused() -> None:
    (refusal,) = planned(facts(gpu__pci_devices=[])).refusals
    assert refusal.text.startswith("this cluster computes on GPUs, and this host has none of NVIDIA's")


# Installation


def test_a_host_without_a_driver() -> None:
    made = planned(facts("debian13"))
    assert shown(made) == [
        ("+", SOURCES_FILE),
        ("+", "driver"),
        ("+", PREFERENCES_FILE),
        ("+", NOUVEAU_FILE),
        ("+", EXCLUSION_FILE),
        ("+", f"service {PERSISTENCED}"),
    ]
    by_name = {change.what: change for change in made.changes}
    assert by_name["driver"].after == (
        "branch 550 (proprietary), from distribution, the module built on this host by DKMS"
    )
    assert by_name["driver"].why == "no driver is loaded"
    assert by_name[PREFERENCES_FILE].after == Unknown("the version of the driver that apt has")
    assert by_name[NOUVEAU_FILE].after == NOUVEAU
    assert by_name[EXCLUSION_FILE].after == Unknown("the packages that apt chooses")
    assert not made.refusals and not made.missing_consents


@pytest.mark.parametrize(
    ("kernel", "requested", "where"),
    [
        (
            "6.8.0-151-generic",
            {},
            "the module built by Ubuntu, or on this host by DKMS where Ubuntu has none for this kernel",
        ),
        ("7.0.0-31-generic", {"branch": 590}, "the module built by Ubuntu"),
        ("6.8.0-151-generic", {"source": "cuda_repository"}, "the module built on this host by DKMS"),
    ],
)
def test_the_plan_says_where_the_module_is_built(kernel: str, requested: dict[str, Any], where: str) -> None:
    node = facts("noble", driver__kernel=kernel)
    (change,) = [one for one in planned(node, repository_key=KEY, **requested).changes if one.what == "driver"]
    assert str(change.after).endswith(f", {where}")


def test_what_depends_on_the_version_is_asked_of_apt() -> None:
    stale = {"file": "/etc/apt/sources.list.d/cuda.list", "suite": "/", "components": [], "options": []}
    node = facts("noble", **SWITCHED)
    node["driver"]["sources"].append({**stale, "uri": "https://nv.example/compute/cuda/repos/ubuntu2404/x86_64"})
    made = planned(
        node,
        source="cuda_repository",
        repository_url="https://nv.example/compute/cuda/repos",
        repository_key=KEY,
        allow_purge_conflicting=True,
        min_version="580.82",
    )
    preview = act(made)["preview"]
    options = yaml.safe_load(driver_preview.DOCUMENTATION)["options"]
    assert set(preview) == set(options)
    assert set(preview["choices"][0]) == set(options["choices"]["suboptions"])
    queried_image = dict(preview)
    assert [choice["kind"] for choice in queried_image.pop("choices")] == ["dkms"]
    assert f"URIs: {queried_image['address']}\n" in queried_image.pop("sources")
    assert queried_image == {
        "branch": 580,
        "fabric": ["nvidia-fabricmanager", "nvidia-fabricmanager-580"],
        "exact": "",
        "minimum": "580.82",
        "address": "https://nv.example/compute/cuda/repos/ubuntu2404/x86_64/",
        "without": [stale["file"], SOURCES_FILE],
        "holds": [],
        "purge_conflicting": True,
        "kernel": "6.8.0-151-generic",
        "builds_from": "",
    }
    assert ("-", f"source file {stale['file']}") in shown(made)
    assert ("+", "fabric manager") in shown(made) and ("+", f"service {FABRIC_MANAGER}") in shown(made)
    assert act(made)["install"]["stale_sources"] == [stale["file"]]


def test_nothing_in_what_tasks_read_is_no_json() -> None:
    for node in (facts(), installed(), ours(held=False), facts("noble", **SWITCHED)):
        made = act(planned(node))
        assert json.loads(json.dumps(made)) == made
        assert set(made) == set(NOTHING)


def test_what_was_there_before_is_kept_for_the_way_back() -> None:
    made = planned(ours(held=True), min_version="550.200")
    install = act(made)["install"]
    assert ("~", "driver") in shown(made) and made.changes[0].what == SOURCES_FILE
    assert install["packages"] == ["libcuda1=550.163.01-2", "nvidia-smi=550.163.01-2", "nvidia-modprobe=570.1-1"]
    assert install["held"] == ["libcuda1", "nvidia-smi"] and install["running"] == [PERSISTENCED]
    assert install["files"] == list(FILES) and install["driver"] is True
    assert act(made)["preview"]["holds"] == ["libcuda1", "nvidia-smi"]


def test_an_upgrade_is_another_version_and_its_holds_are_known() -> None:
    node = ours(held=True)
    locked = act(planned(node, min_version="550.200"))["preview"]["choices"][0]["locked"]
    node["files"][EXCLUSION_FILE] = kept(EXCLUSION_FILE, exclusion(sorted(locked)))
    made = planned(node, min_version="550.200")
    (change,) = [change for change in made.changes if change.what == "driver"]
    assert change.before == "550.163.01 (proprietary), loaded"
    assert change.why == "driver 550.163.01 is older than nvidia_driver_min_version (550.200)"
    assert EXCLUSION_FILE not in [what for dummy, what in shown(made)]
    (pin,) = [change for change in made.changes if change.what == PREFERENCES_FILE]
    assert pin.before == preferences("550.163.01")


def test_without_holding_nothing_is_recorded() -> None:
    made = planned(facts("debian13"), hold=False)
    assert EXCLUSION_FILE not in [what for dummy, what in shown(made)]
    assert act(made)["install"]["hold"] is False


def test_a_fabric_manager_beside_a_driver_that_works() -> None:
    node = facts("noble", gpu__driver=running("580.95.05", OPEN), gpu__fabric={"manager_version": None}, **SWITCHED)
    made = planned(node)
    assert shown(made) == [
        ("+", SOURCES_FILE),
        ("+", "fabric manager"),
        ("+", EXCLUSION_FILE),
        ("+", f"service {FABRIC_MANAGER}"),
    ]
    assert made.changes[1].after == "580.95.05" and made.changes[1].why == "the fabric manager is missing"
    assert act(made)["install"]["driver"] is False and act(made)["preview"]["exact"] == "580.95.05"
    assert act(made)["load"] == {}


# An installed driver that does not run, and reboots


def test_an_installed_driver_is_loaded() -> None:
    made = planned(installed())
    assert [(change.what, change.before, change.after) for change in made.changes] == [
        ("driver", "none loaded", "550.163.01 (proprietary), loaded")
    ]
    assert act(made)["preview"] == act(made)["install"] == {}
    assert act(made)["load"] == {"stop": [], "unload": [], "modprobe": True, "start": []}


def test_a_module_of_another_version_is_unloaded_first() -> None:
    services = {PERSISTENCED: {"active": True, "state": "static"}, FABRIC_MANAGER: {"active": False, "state": None}}
    node = installed(
        loaded=running("550.90.07", matches=False, library_version="550.163.01"), driver__services=services
    )
    load = act(planned(node))["load"]
    assert load["stop"] == [FABRIC_MANAGER, PERSISTENCED] and load["start"] == [PERSISTENCED]
    assert [one["name"] for one in load["unload"]][-1] == "nvidia"
    assert load["unload"][0]["path"] == "/sys/module/nvidia_peermem" and load["modprobe"] is True


def in_use(**changes: Any) -> dict[str, Any]:
    loaded = running("550.90.07", matches=False, library_version="550.163.01")
    return installed(loaded=loaded, driver__users=["python (99)"], **changes)


def test_a_reboot_alone_needs_consent_before_anything_is_done() -> None:
    made = planned(in_use())
    (change,) = made.missing_consents
    assert (change.what, change.after, change.why) == ("reboot", "by this role", "python (99) uses it")
    (sentence,) = outcome(made, "", ["nvidia_driver"])["stops"]["gpu1"]["nvidia_driver"]
    assert sentence == (
        "the loaded module is 550.90.07 but the libraries are 550.163.01. It runs after a reboot of this host "
        "(python (99) uses it). Remedy: set nvidia_driver_reboot: if_needed to allow it, or reboot it and run again"
    )
    allowed = planned(in_use(jobs={"train": "running"}), reboot="if_needed")
    assert not allowed.missing_consents and ("+", "reboot") in shown(allowed)
    assert act(allowed)["reboot"]["allowed"] is True and act(allowed)["reboot"]["jobs"] == ["train"]
    assert act(allowed)["load"]["modprobe"] is False and act(allowed)["load"]["unload"] == []


@pytest.mark.parametrize(("reboot", "who"), [("never", "by you"), ("if_needed", "by this role")])
def test_an_installation_that_ends_in_a_reboot_is_made_without_consent_to_it(reboot: str, who: str) -> None:
    """With nouveau loaded nothing breaks until the reboot, which can be the owner's."""
    made = planned(facts("debian13", gpu__driver={**NO_DRIVER, "nouveau_loaded": True}), reboot=reboot)
    (change,) = [change for change in made.changes if change.what == "reboot"]
    assert change.after == who and "nouveau is loaded" in change.why
    assert not made.missing_consents and not made.refusals
    assert act(made)["reboot"]["allowed"] is (reboot == "if_needed")
    assert act(made)["reboot"]["why"].startswith("no driver is loaded. It runs after a reboot of this host (nouveau ")


# A driver that works


def test_what_this_role_installed_is_kept_as_it_is() -> None:
    assert not planned(ours(held=True)).pending("nvidia_driver", "gpu1")
    loose = planned(ours(held=False))
    assert shown(loose) == [("+", "hold on libcuda1"), ("+", "hold on nvidia-smi")]
    assert act(loose)["hold"] == ["libcuda1", "nvidia-smi"] and act(loose)["record"] == []
    idle = planned(ours(held=True, active=False))
    assert [drift_text(change) for change in idle.changes] == [f"service {PERSISTENCED} is stopped, wanted is running"]
    assert act(idle)["services"] == [{"name": PERSISTENCED, "enable": True}]
    assert not planned(ours(held=True, active=False), persistence=False).changes


def test_a_service_that_udev_starts_is_not_enabled() -> None:
    node = ours(held=True, active=False)
    node["driver"]["services"][PERSISTENCED]["state"] = "static"
    assert act(planned(node))["services"] == [{"name": PERSISTENCED, "enable": False}]


def test_a_driver_of_somebody_elses_is_left_alone() -> None:
    services = {PERSISTENCED: {"active": False, "state": "disabled"}}
    made = planned(facts("debian13", gpu__driver=running("550.163.01"), driver__services=services))
    assert not made.pending("nvidia_driver", "gpu1") and act(made)["services"] == []


def test_holding_can_be_given_up_and_taken_up_again() -> None:
    off = planned(ours(held=True), hold=False)
    assert shown(off) == [("-", "hold on libcuda1"), ("-", "hold on nvidia-smi"), ("-", EXCLUSION_FILE)]
    assert act(off)["release"] == ["libcuda1", "nvidia-smi"] and act(off)["record"][0]["state"] == "absent"
    again = planned(ours(held=False, record=False))
    assert shown(again) == [("+", "hold on libcuda1"), ("+", "hold on nvidia-smi"), ("+", EXCLUSION_FILE)]
    assert act(again)["record"][0]["content"] == exclusion(["libcuda1", "nvidia-smi"])
    assert not planned(ours(held=False, record=False), hold=False).changes


def test_a_held_package_that_is_gone_is_no_difference() -> None:
    node = ours(held=True)
    del node["driver"]["packages"]["libcuda1"]
    assert not planned(node).changes


def test_an_exclusion_that_was_edited_is_named() -> None:
    node = ours(held=True)
    text = exclusion(["libcuda1", "nvidia-smi"]).replace('  "libcuda1$";\n', "")
    node["files"][EXCLUSION_FILE] = kept(EXCLUSION_FILE, text)
    assert [drift_text(change) for change in planned(node).changes] == [f"{EXCLUSION_FILE} has other content"]


def test_a_fabric_manager_that_is_stopped_is_started() -> None:
    node = facts(
        "noble",
        gpu__driver=running("580.95.05", OPEN),
        gpu__fabric={"manager_version": "580.95.05"},
        driver__services={FABRIC_MANAGER: {"active": False, "state": "enabled"}},
        **SWITCHED,
    )
    assert shown(planned(node)) == [("~", f"service {FABRIC_MANAGER}")]
    node["driver"]["services"] = {}  # nothing to start: verify says so
    made = planned(node)
    assert shown(made) == [("+", f"service {FABRIC_MANAGER}")] and act(made)["services"] == []


def test_a_fault_of_a_gpu_is_no_change_and_no_refusal() -> None:
    made = planned(facts("debian13", gpu__driver=running("550.163.01"), gpu__problems=["GPU 3 fell off."]))
    assert not made.pending("nvidia_driver", "gpu1") and act(made)["faults"] == ["GPU 3 fell off."]


# Refusals


def test_where_something_is_refused_nothing_is_begun() -> None:
    node = facts("debian13", "Blackwell")
    made = planned(node)
    assert made.changes == () and made.pending("nvidia_driver", "gpu1")
    assert {name: value for name, value in act(made).items() if value and name != "undo"} == {
        "why": "no driver is loaded"
    }
    assert made.facts["gpu1"] is node


def test_preflight_reports_what_is_refused_by_host_with_cause_and_remedy() -> None:
    made = planned(facts("debian13", "Blackwell"))
    refused = outcome(made, "", ["nvidia_driver"])["refused"]
    (problem,) = FACT_CHECKS["nvidia_driver"](
        Facts({"gpu1": {"x": 1}, "gpu2": {"x": 1}}, Requested("c", refused=refused))
    )
    assert (problem.subject, problem.text) == (
        "gpu1",
        "branch 550 does not drive this host's GPUs yet (Blackwell); the first that does is 570",
    )
    assert problem.remedy == "take branch 580 of nvidia_driver_source: cuda_repository"


def test_a_request_that_makes_no_sense_is_refused_beside_a_driver_that_works() -> None:
    made = planned(ours(held=False), branch="newest")
    assert made.changes == () and "neither a branch nor recommended" in made.refusals[0].text


# Teardown


@pytest.mark.parametrize("inputs", [Inputs({"accelerator": "cuda"}), Inputs({"accelerator": "cpu"})])
def test_teardown_lifts_holds_and_leaves_what_keeps_nouveau_away(inputs: Inputs) -> None:
    undo = act(planned(ours(held=True), inputs))["undo"]
    assert undo["release"] == ["libcuda1", "nvidia-smi"]
    assert {entry["path"] for entry in undo["files"]} == set(FILES) - {NOUVEAU_FILE}
    assert {entry["state"] for entry in undo["files"]} == {"absent"}
