# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is kept beside a driver that works: holds of kernels, the exclusion's old line, persistence mode, the fabric.

The hosts are invented.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import Kernel, Place, choices
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import OPEN
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    PERSISTENCE_FILE,
    PREFERENCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.kept import PERSISTENCE_ON
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import (
    FABRIC_MANAGER,
    PERSISTENCED,
    exclusion,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text

from tests.driver_hosts import facts, kept, planned, running, shown, task_input

VERSION, KERNEL = "580.95.05", "6.8.0-151-generic"
MODULES = "linux-modules-nvidia-580-server-open"
DRIVER = ["nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server"]
OLD_LINE = '  "linux-modules-nvidia-";\n'


def ubuntu(*modules: str, held: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    """A host on which this role installed Ubuntu's driver; ``modules`` are the ends of its packages' names."""
    on_hold = DRIVER if held is None else held
    packages = {name: {"version": f"{VERSION}-0ubuntu0", "held": True, "finished": True} for name in DRIVER}
    packages |= {f"{MODULES}-{end}": {"version": "6.8.0-151.151", "held": False, "finished": True} for end in modules}
    found = facts(
        "noble",
        gpu__driver=running(VERSION, OPEN),
        driver__packages=packages,
        driver__services={PERSISTENCED: {"active": True, "state": "static"}},
        files={
            PREFERENCES_FILE: kept(PREFERENCES_FILE, preferences(VERSION)),
            EXCLUSION_FILE: kept(EXCLUSION_FILE, exclusion(sorted(on_hold))),
        },
    )
    for name in on_hold:
        for part in ("packages", "kernel_packages"):
            if name in found["driver"][part]:
                found["driver"][part][name]["held"] = True
    for name, value in changes.items():
        section, dummy, key = name.partition("__")
        found[section][key] = value
    return found


# unattended-upgrades


def test_the_module_of_the_next_kernel_is_not_kept_from_unattended_upgrades() -> None:
    assert "linux-modules-nvidia" not in exclusion(DRIVER)
    assert not planned(ubuntu(KERNEL, "generic")).changes


def with_old_line(node: dict[str, Any]) -> dict[str, Any]:
    text = node["files"][EXCLUSION_FILE]["content"].replace('  "cuda-drivers";\n', f'{OLD_LINE}  "cuda-drivers";\n')
    assert OLD_LINE in text
    node["files"][EXCLUSION_FILE] = kept(EXCLUSION_FILE, text)
    return node


@pytest.mark.parametrize("held", [None, []])
def test_a_host_that_has_the_old_line_loses_it_and_verify_names_the_file(held: list[str] | None) -> None:
    made = planned(with_old_line(ubuntu(KERNEL, "generic", held=held)))
    (change,) = [change for change in made.changes if change.what == EXCLUSION_FILE]
    assert drift_text(change) == f"{EXCLUSION_FILE} has other content"
    assert OLD_LINE in str(change.before) and "linux-modules-nvidia" not in str(change.after)
    (entry,) = task_input(made)["record"]
    assert entry["path"] == EXCLUSION_FILE and "linux-modules-nvidia" not in entry["content"]
    assert not planned(made.facts["gpu1"]).changes


# Kernels without their module


def test_a_kernel_that_would_come_without_its_module_is_put_on_hold() -> None:
    made = planned(ubuntu(KERNEL))
    assert shown(made) == [("+", "hold on linux-image-generic"), ("~", EXCLUSION_FILE)]
    assert made.changes[0].why == "no package brings its module"
    assert task_input(made)["hold"] == ["linux-image-generic"]
    assert (
        "linux-image-generic" in task_input(made)["record"][0]["content"].partition("// Held: ")[2].partition("\n")[0]
    )
    assert not planned(made.facts["gpu1"]).changes
    # It is the record alone that names it: unattended-upgrades goes by the hold.
    assert "linux-image" not in task_input(made)["record"][0]["content"].partition("Package-Blacklist")[2]


def test_its_hold_ends_once_the_module_follows() -> None:
    held = [*DRIVER, "linux-image-generic"]
    assert not planned(ubuntu(KERNEL, held=held)).changes
    made = planned(ubuntu(KERNEL, "generic", held=held))
    assert shown(made) == [("-", "hold on linux-image-generic"), ("~", EXCLUSION_FILE)]
    assert task_input(made)["release"] == ["linux-image-generic"] and task_input(made)["hold"] == []
    assert not planned(made.facts["gpu1"]).changes


@pytest.mark.parametrize(
    ("node", "requested"),
    [
        (ubuntu(KERNEL, held=[]), {"hold": False}),
        (ubuntu("6.8.0-139-generic"), {}),  # the running kernel has a module that DKMS built
        (ubuntu(), {}),
        (ubuntu(KERNEL, driver__kernel_packages={}), {}),
    ],
)
def test_no_other_kernel_is_held(node: dict[str, Any], requested: dict[str, Any]) -> None:
    assert "linux-image-generic" not in task_input(planned(node, **requested))["hold"]


def test_without_holds_the_kernel_is_released_too() -> None:
    made = planned(ubuntu(KERNEL, held=[*DRIVER, "linux-image-generic"]), hold=False)
    assert task_input(made)["release"] == ["linux-image-generic", *DRIVER]
    assert not planned(made.facts["gpu1"], hold=False).changes


@pytest.mark.parametrize(
    ("flavour", "package"),
    [
        ("generic", f"{MODULES}-generic"),
        ("virtual", f"{MODULES}-generic"),
        ("virtual-hwe-24.04", f"{MODULES}-generic-hwe-24.04"),
        ("lowlatency", f"{MODULES}-lowlatency"),
    ],
)
def test_the_module_follows_the_kernel_of_each_flavour(flavour: str, package: str) -> None:
    (signed, dummy) = choices(Place("distribution", "ubuntu", "24.04"), 580, OPEN, Kernel(KERNEL, (flavour,)))
    assert signed.optional == (package,)
    node = ubuntu(KERNEL, package.removeprefix(f"{MODULES}-"), driver__image_flavours=[flavour])
    node["driver"]["kernel_packages"] = {f"linux-image-{flavour}": {"version": "1", "held": False}}
    assert not planned(node).changes


# Persistence mode


def test_ubuntus_persistence_daemon_is_started_with_the_mode_on() -> None:
    node = ubuntu(KERNEL, "generic", driver__persistence_off=True, gpu__gpus=[{"index": 0, "persistence": False}])
    made = planned(node)
    assert shown(made) == [("+", PERSISTENCE_FILE), ("~", "persistence mode of GPU 0")]
    folder, file = task_input(made)["units"]
    assert (folder["path"], "content" in folder) == (PERSISTENCE_FILE.rpartition("/")[0], False)
    assert "ExecStart=\nExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced" in file["content"]
    assert "--no-persistence-mode" not in file["content"].partition("\nExecStart=")[2]
    assert task_input(made)["restart"] == [PERSISTENCED]
    after = planned(made.facts["gpu1"])
    assert not after.changes and task_input(after)["restart"] == []
    assert not planned(node, persistence=False).changes


def test_a_job_keeps_its_gpus_as_systemd_is_reloaded_after_it() -> None:
    node = ubuntu(KERNEL, "generic", driver__persistence_off=True, gpu__gpus=[{"index": 0, "persistence": False}])
    made = planned({**node, "jobs": {"digits": "running"}})
    assert not made.changes and task_input(made)["units"] == task_input(made)["restart"] == []
    assert len(planned({**node, "jobs": {"digits": "succeeded"}}).changes) == 2


def test_persistence_is_what_the_gpus_say() -> None:
    gpus = [{"index": number, "persistence": on} for number, on in enumerate((True, False, None))]
    made = planned(ubuntu(KERNEL, "generic", gpu__gpus=gpus))
    assert [drift_text(change) for change in made.changes] == ["persistence mode of GPU 1 is off, but should be on"]
    assert task_input(made)["restart"] == [PERSISTENCED] and task_input(made)["units"] == []
    theirs = facts("noble", gpu__driver=running(VERSION, OPEN), gpu__gpus=gpus)
    assert not planned(theirs).changes


def test_the_drop_in_goes_with_the_unit_that_needs_it() -> None:
    node = ubuntu(KERNEL, "generic", driver__persistence_off=True)
    node["files"][PERSISTENCE_FILE] = kept(PERSISTENCE_FILE, str(PERSISTENCE_ON.text))
    assert not planned(node).changes
    node["driver"]["persistence_off"] = False
    made = planned(node)
    assert shown(made) == [("-", PERSISTENCE_FILE)] and task_input(made)["units"][1]["state"] == "absent"
    assert not planned(made.facts["gpu1"]).changes


def test_a_first_run_knows_that_ubuntus_unit_needs_it() -> None:
    made = planned(facts("noble"))
    assert ("+", PERSISTENCE_FILE) in shown(made)
    assert ("+", PERSISTENCE_FILE) not in shown(planned(facts("debian13")))
    assert not planned(made.facts["gpu1"]).changes


# The fabric


@pytest.mark.parametrize(
    ("fabric", "waits"),
    [
        ({"state": "In Progress", "manager_running": True}, {"wait": 120}),
        ({"state": "Not Started", "manager_running": True}, {"wait": 120}),
        ({"state": "In Progress", "manager_running": False}, {}),
        ({"state": "In Progress", "manager_running": None}, {}),
        ({"state": "Completed", "manager_running": True}, {}),
    ],
)
def test_the_fabric_is_waited_for_where_its_manager_runs(fabric: dict[str, Any], waits: dict[str, int]) -> None:
    services = {PERSISTENCED: {"active": True}, FABRIC_MANAGER: {"active": True, "state": "enabled"}}
    node = ubuntu(
        KERNEL,
        "generic",
        gpu__nvswitches=[{"address": "x"}],
        gpu__fabric={**fabric, "manager_version": VERSION},
        driver__services=services,
    )
    assert task_input(planned(node))["fabric"] == waits
