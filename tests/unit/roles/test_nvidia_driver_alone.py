# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_driver alone in a play of the user's own, by ansible-playbook itself.

The hosts are stand-ins with invented GPUs, whose facts are others each time that they are gathered. Nothing is changed
anywhere.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    FILES,
    PREFERENCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import PERSISTENCED, exclusion
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT

from tests.adversary.hostile import facts as honest
from tests.driver_hosts import MODULE, facts, kept, running
from tests.stand_ins import StandIns, changed

VERSION = "550.163.01"
LOCKED = ["nvidia-kernel-dkms", "nvidia-smi"]
PREVIEW: dict[str, Any] = {
    "changed": False,
    "kind": "dkms",
    "version": VERSION,
    "packages": [f"nvidia-kernel-dkms={VERSION}-2", f"nvidia-smi={VERSION}-2"],
    "locked": LOCKED,
    "rivals": [],
    "new": LOCKED,
    "preferences": preferences(VERSION),
    "installs": {},
    "replaces": {},
    "removes": {},
    "problems": [],
    "cannot_fetch": False,
}
REQUESTED: dict[str, Any] = {"nvidia_driver_source": "distribution"}
GATHER = "node_facts"


def whole(found: dict[str, Any]) -> dict[str, Any]:
    """Return invented facts of a driver with those of everything else."""
    base = honest()
    gpu = {**base["gpu"], **found["gpu"]}
    return {
        **base,
        **found,
        "system": {**base["system"], **found["system"]},
        "gpu": gpu,
        "files": {**dict.fromkeys(FILES, ABSENT), **found["files"]},
    }


def without() -> dict[str, Any]:
    return whole(facts("debian13"))


def on_disk(*, held: bool) -> dict[str, Any]:
    """The packages are there, and the module is not loaded."""
    found = facts("debian13", driver__module=MODULE)
    found["gpu"]["driver"]["library_version"] = VERSION
    found["driver"]["packages"] = {name: {"version": f"{VERSION}-2", "held": held, "finished": True} for name in LOCKED}
    found["driver"]["services"] = {PERSISTENCED: {"active": False, "state": "disabled"}}
    found["files"] = {PREFERENCES_FILE: kept(PREFERENCES_FILE, preferences(VERSION))}
    if held:
        found["files"][EXCLUSION_FILE] = kept(EXCLUSION_FILE, exclusion(LOCKED))
    return whole(found)


def loaded(*, active: bool = True) -> dict[str, Any]:
    found = on_disk(held=True)
    found["gpu"]["driver"] = running(VERSION)
    found["driver"]["services"][PERSISTENCED]["active"] = active
    return found


def plain() -> dict[str, Any]:
    """A host without a GPU."""
    gpu = {**honest()["gpu"], "present": False, "pci_devices": []}
    return {**honest(), "gpu": gpu, "driver": None, "files": dict.fromkeys(FILES, ABSENT)}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path, "nvidia_driver")
    states = [without(), on_disk(held=False), on_disk(held=True), loaded(active=False), loaded()]
    made.add("empty", *states, replies={"driver_preview": PREVIEW, "command": {"rc": 0, "stdout": ""}})
    made.add("ready", loaded())
    made.add("plain", plain())
    return made


def sent(hosts: StandIns, name: str) -> list[str]:
    """Return what a host was sent, without what copying a file needs beside."""
    return [module for module in hosts.modules(name) if module not in ("stat", "file")]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_it_gathers_plans_and_acts_where_something_is_to_be_done(hosts: StandIns) -> None:
    output = hosts.play(**REQUESTED)
    assert set(changed(output)) == {"empty", "ready", "plain"}, output
    assert (changed(output)["ready"], changed(output)["plain"]) == (0, 0)
    assert sent(hosts, "empty") == [
        *(GATHER, "driver_preview", "copy", "copy", "apt", GATHER),
        # What keeps nouveau away, the initramfs, two holds and their record.
        *("copy", "command", "dpkg_selections", "dpkg_selections", "copy", GATHER),
        *("command", GATHER),
        *("systemd_service", GATHER),
    ]
    assert (sent(hosts, "ready"), sent(hosts, "plain")) == ([GATHER], [GATHER])
    # A second run gathers and plans, and not one task follows.
    output = hosts.play(**REQUESTED)
    assert changed(output) == {"empty": 0, "ready": 0, "plain": 0}, output
    assert sent(hosts, "empty") == [GATHER]
    tasks = re.findall(r"^TASK \[(?:swarmspeed.cluster.)?(.*?)\]", output, re.M)
    assert [name for name in tasks if not name.startswith("preflight : ")] == [
        "nvidia_driver : Validating arguments against arg spec 'main' - Install NVIDIA's driver where none works, and "
        "keep it unchanged",
        "Gather facts and plan, unless this run already has",
        "Afterwards",
    ]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_asks_apt_and_reports_the_plan_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", "-e", f"cluster_plan_file={hosts.folder}/plan.json", **REQUESTED)
    assert changed(output) == {"empty": 1, "ready": 0, "plain": 0}, output
    assert sent(hosts, "empty") == [GATHER, "driver_preview"]
    built = "the module built on this host by DKMS"
    assert f"    + driver: branch 550 (proprietary), from distribution, {built}  # no driver is loaded\n" in output
    assert f"empty: driver {VERSION} (dkms): nvidia-kernel-dkms={VERSION}-2" in " ".join(output.split())
    document = json.loads((hosts.folder / "plan.json").read_text(encoding="utf-8"))
    assert {change["host"] for change in document["changes"]} == {"empty"}


def test_what_apt_says_is_in_the_way_stops_it_before_anything_is_changed(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "nvidia_driver")
    problem = "nvidia-smi is on hold, and would change. Remedy: apt-mark unhold nvidia-smi."
    hosts.add("empty", without(), replies={"driver_preview": {**PREVIEW, "problems": [problem]}})
    output = hosts.play(**REQUESTED)
    assert f"empty: nothing was changed. {problem}" in " ".join(output.split())
    assert sent(hosts, "empty") == [GATHER, "driver_preview"]


def test_an_installation_that_fails_is_undone_where_it_failed(tmp_path: Path) -> None:
    """With any_errors_fatal, as in site.yml: what failed on one host brings all that are in its block to the rescue."""
    hosts = StandIns(tmp_path, "nvidia_driver")
    replies = {
        "driver_preview": PREVIEW,
        "find": {"files": [{"path": "/var/lib/dkms/nvidia/make.log", "mtime": 1}], "changed": False},
        "command": {"rc": 0, "stdout": "error: implicit declaration"},
    }
    # The module was not built: it is not there when the facts are gathered again.
    hosts.add("empty", without(), without(), replies=replies)
    hosts.add("other", without(), on_disk(held=False), replies=replies)
    output = " ".join(hosts.play(of_play={"any_errors_fatal": True}, **REQUESTED).split())
    assert "empty: the driver could not be installed. Assert that the kernel module exists" in output
    assert "DKMS wrote: error: implicit declaration." in output and "What was new is removed again." in output
    modules = sent(hosts, "empty")
    assert modules[: modules.index("find")] == [GATHER, "driver_preview", "copy", "copy", "apt", GATHER]
    assert modules.count("apt") == 2
    assert "other: the driver could not be installed" not in output and "other goes on" not in output
    assert sent(hosts, "other") == [GATHER, "driver_preview", "copy", "copy", "apt", GATHER]


def in_use() -> dict[str, Any]:
    found = copy.deepcopy(loaded())
    found["gpu"]["driver"].update(version="550.90.07", matches=False)
    found["driver"]["users"] = ["python (99)"]
    return found


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_reboot_needs_consent_and_the_controller_gets_none(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "nvidia_driver")
    hosts.add("used", in_use())
    output = " ".join(hosts.play(**REQUESTED).split())
    assert "used: the loaded module is 550.90.07 but the libraries are 550.163.01. It runs after a reboot of this" in (
        output
    )
    assert "Remedy: set nvidia_driver_reboot: if_needed to allow it, or reboot it and run again." in output
    assert sent(hosts, "used") == [GATHER]
    output = " ".join(hosts.play(nvidia_driver_reboot="if_needed", **REQUESTED).split())
    assert "(python (99) uses it), and this host is the controller of this run, or runs on its kernel." in output
    assert sent(hosts, "used") == [GATHER]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_module_that_is_in_use_after_all_waits_for_a_reboot(tmp_path: Path) -> None:
    """What uses it cannot always be seen: that the module stays shows it."""
    hosts = StandIns(tmp_path, "nvidia_driver")
    unseen = in_use()
    unseen["driver"]["users"] = []
    hosts.add("used", unseen, replies={"command": {"rc": 1}})
    output = " ".join(hosts.play(**REQUESTED).split())
    assert (
        "used: the loaded module is 550.90.07 but the libraries are 550.163.01. It runs after a reboot of this host. "
        "Remedy: reboot it and run again, or set nvidia_driver_reboot: if_needed to have it done."
    ) in output
    modules = sent(hosts, "used")
    assert modules[0] == modules[-1] == GATHER and modules.count("systemd_service") == 2  # stopped, and started again


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_fault_of_a_gpu_fails_role_and_verify_and_is_no_change(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "nvidia_driver")
    broken = loaded()
    broken["gpu"]["problems"] = ["GPU 3 has fallen off the bus. Remedy: reboot."]
    hosts.add("broken", broken)
    for entry in ("", "verify"):
        output = hosts.play(entry=entry, **REQUESTED)
        assert "broken: GPU 3 has fallen off the bus. Remedy: reboot. Remedy: ansible-playbook" in (
            " ".join(output.split())
        ), output
        assert sent(hosts, "broken") == [GATHER]
    output = hosts.play("--check", **REQUESTED)
    assert changed(output) == {"broken": 0}, output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_passes_on_what_is_done_and_says_what_is_not(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", **REQUESTED).split())
    assert "empty: no driver is loaded. " in output and "driver is missing." in output
    assert "ready: " not in output.partition("PLAY RECAP")[0].replace("ok: [ready]", "")
    hosts.modules("ready")
    output = hosts.play("--limit", "ready,plain", entry="verify", **REQUESTED)
    assert changed(output) == {"ready": 0, "plain": 0} and sent(hosts, "ready") == [GATHER], output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_teardown_lifts_holds_and_removes_files(hosts: StandIns) -> None:
    output = hosts.play("--limit", "ready,plain", entry="teardown", **REQUESTED)
    assert changed(output).get("plain") == 0, output
    modules = [module for module in hosts.modules("ready") if module != "stat"]
    assert modules == [GATHER, "dpkg_selections", "dpkg_selections", "file", "file", "systemd_service"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_the_computing_on_cpus_is_asked_for(hosts: StandIns) -> None:
    output = hosts.play(cluster_accelerator="cpu", **REQUESTED)
    assert changed(output) == {"empty": 0, "ready": 0, "plain": 0}, output
    assert sent(hosts, "empty") == [GATHER]
