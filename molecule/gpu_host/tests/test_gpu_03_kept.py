"""A driver stays as it is when a newer one is out, until it is asked for; a module that does not match is reloaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import (
    PAIR,
    STAND_IN,
    begin_with_the_first,
    condition,
    driver,
    gpu,
    held,
    publish,
    roles_changed,
    sound,
    state_of,
    versions,
)
from tests.playbook_run import on

FIRST, SECOND, OLD = "580.95.05", "580.105.08", "575.57.08"
LOADED = f"{STAND_IN}/proc/driver/nvidia/version"
DRIVER = ("nvidia-driver-cuda", "libnvidia-ml1")
BECAUSE = "the loaded module is 575.57.08 but the libraries are 580.105.08"
REBOOT = f"lab2: {BECAUSE}. It runs after a reboot of this host"


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """Begin with the first version everywhere, while a newer one is out."""
    begin_with_the_first()
    assert all(versions(host)["nvidia-driver-cuda"] == f"{FIRST}-1" for host in PAIR)
    publish("second")


def test_a_version_that_is_not_out_is_refused() -> None:
    before = state_of("lab1")
    driver("lab1", nvidia_driver_min_version="580.999.99").refused(
        f"lab1: nothing was changed. the newest available driver of branch 580 is {SECOND}, ",
        "Remedy: choose another nvidia_driver_branch",
    )
    assert state_of("lab1") ^ before == set()


@pytest.mark.parametrize("host", PAIR)
def test_a_newer_version_does_not_come_by_itself(host: str) -> None:
    on(host, "apt-get -qq update")
    assert f"Candidate: {FIRST}-1" in on(host, "apt-cache policy libnvidia-ml1")  # by the pin; it is not held
    listed = on(host, "apt-get -s dist-upgrade")
    assert [line for line in listed.splitlines() if line.startswith("Inst ") and "nvidia" in line] == []
    assert f"{SECOND}-1" in on(host, "apt-cache madison nvidia-driver-cuda")  # it is out


def test_nor_by_another_run() -> None:
    gpu("site").done(change=False, nodes=PAIR)


def test_check_mode_predicts_the_upgrade_that_is_asked_for() -> None:
    before = state_of(*PAIR)
    run = gpu("site", "--check", tags="nvidia_driver", nvidia_driver_min_version=SECOND).done(change=True, nodes=PAIR)
    assert f"lab1: driver {SECOND} (dkms): nvidia-kernel-open-dkms={SECOND}-1" in run.text
    assert state_of(*PAIR) ^ before == set()


def test_the_upgrade_that_is_asked_for() -> None:
    gpu("site", tags="nvidia_driver", nvidia_driver_min_version=SECOND).done(change=True, nodes=PAIR)
    for host, names in (("lab1", (*DRIVER, "nvidia-fabricmanager")), ("lab2", DRIVER)):
        assert {versions(host)[name] for name in names} == {f"{SECOND}-1"}
        assert f"  {SECOND}  " in on(host, f"cat {LOADED}")
        assert {"nvidia-driver-cuda"} <= held(host)
        assert f"Pin: version {SECOND}-*" in on(host, "cat /etc/apt/preferences.d/swarmspeed-nvidia.pref")
        assert on(host, "systemctl is-active nvidia-persistenced") == "active"
        sound(host)
    assert on("lab1", "systemctl is-active nvidia-fabricmanager") == "active"
    assert SECOND in on("lab1", "nv-fabricmanager --version")
    # The toolkit was tried with the former driver, and is tried again, and nothing else is done.
    again = gpu("site").done(change=True, nodes=PAIR)
    assert roles_changed(again) == {(host, "nvidia_container_toolkit") for host in PAIR}
    gpu("site", nvidia_driver_min_version=SECOND).done(change=False, nodes=PAIR)
    gpu("verify").done(change=False, nodes=PAIR)


def old_module(host: str) -> None:
    """Have the stand-in kernel run an older module than the libraries, as after an upgrade by hand without a reboot."""
    on(host, f"sed -i 's/{SECOND}/{OLD}/' {LOADED}")
    assert "Driver/library version mismatch" in on(host, "nvidia-smi -L; test $? = 18")


def test_verify_names_a_module_that_does_not_match_its_libraries() -> None:
    old_module("lab2")
    gpu("verify", tags="nvidia_driver").refused(
        f"lab2: {BECAUSE}.",
        "nvidia-smi says 'Failed to initialize NVML: Driver/library version mismatch'",
        "Remedy: ansible-playbook site.yml --tags nvidia_driver installs a driver or reports what prevents that",
    )


def test_it_is_repaired_by_loading_the_module_again() -> None:
    driver("lab2").done(change=True, nodes=("lab2",))
    assert f"  {SECOND}  " in on("lab2", f"cat {LOADED}")
    assert on("lab2", "systemctl is-active nvidia-persistenced") == "active"
    driver("lab2").done(change=False, nodes=("lab2",))


def test_a_module_in_use_waits_for_a_reboot_that_no_one_allowed() -> None:
    old_module("lab2")
    with condition("lab2", f"touch {STAND_IN}/in-use", f"rm {STAND_IN}/in-use"):
        driver("lab2").refused(
            REBOOT, "Remedy: reboot it and run again, or set nvidia_driver_reboot: if_needed to have it done."
        )
        # What was stopped for it runs again.
        assert on("lab2", "systemctl is-active nvidia-persistenced") == "active"


def test_the_controllers_own_machine_is_never_rebooted() -> None:
    # Nodes of the lab run on the controller's kernel, so a reboot of theirs would be its own.
    on("lab2", f"grep -q {OLD} {LOADED}")
    with condition("lab2", f"touch {STAND_IN}/in-use", f"rm {STAND_IN}/in-use"):
        started = on("lab2", "stat -c %Y /proc/1")
        driver("lab2", nvidia_driver_reboot="if_needed").refused(
            REBOOT,
            "and this host is the controller of this run, or runs on its kernel. Remedy: reboot it "
            "yourself and run again.",
        )
        assert on("lab2", "stat -c %Y /proc/1") == started
    driver("lab2").done(change=True, nodes=("lab2",))


def test_a_driver_that_is_in_use_is_not_replaced() -> None:
    """New libraries beside an old module that stays loaded would break every program that starts from then on."""
    # A process that has a device of NVIDIA's open: the device is a plain file, and reading /proc is real.
    user = "systemd-run --quiet --unit=trainer --property=Type=exec sh -c 'exec sleep 600 </dev/nvidia0'"
    with condition("lab2", f"touch /dev/nvidia0 && {user}", "systemctl stop trainer; rm /dev/nvidia0"):
        before = state_of("lab2")
        driver("lab2", nvidia_driver_branch="575").refused(
            f"lab2: driver {SECOND} is in use (sleep (",
            "Remedy: set nvidia_driver_reboot: if_needed, ",
            "(check: nvidia_driver)",
        )
        assert state_of("lab2") ^ before == set()


def test_another_branch_that_is_asked_for() -> None:
    driver("lab1", nvidia_driver_branch="575").done(change=True, nodes=("lab1",))
    assert {versions("lab1")[name] for name in (*DRIVER, "nvidia-fabricmanager")} == {f"{OLD}-1"}
    assert f"  {OLD}  " in on("lab1", f"cat {LOADED}")
    assert OLD in on("lab1", "nv-fabricmanager --version")
    driver("lab1", nvidia_driver_branch="575").done(change=False, nodes=("lab1",))
    sound("lab1")


def test_another_flavour_needs_consent_and_is_held_too() -> None:
    before = state_of("lab1")
    driver("lab1", nvidia_driver_branch="580", nvidia_driver_flavour="proprietary").refused(
        "lab1: nothing was changed. other packages of the driver are in the way: nvidia-kernel-open-dkms. ",
        "Remedy: set nvidia_driver_allow_purge_conflicting: true ",
    )
    assert state_of("lab1") ^ before == set()
    options = {
        "nvidia_driver_branch": "580",
        "nvidia_driver_flavour": "proprietary",
        "nvidia_driver_allow_purge_conflicting": True,
    }
    driver("lab1", **options).done(change=True, nodes=("lab1",))
    found = versions("lab1")
    assert found["nvidia-kernel-dkms"] == found["nvidia-driver-cuda"] == found["nvidia-fabricmanager"] == f"{SECOND}-1"
    assert "nvidia-kernel-open-dkms" not in found
    assert "NVIDIA UNIX x86_64 Kernel Module" in on("lab1", f"cat {LOADED}").replace("aarch64", "x86_64")
    assert "nvidia-kernel-dkms" in held("lab1")
    driver("lab1", **options).done(change=False, nodes=("lab1",))
    sound("lab1")


def test_holding_can_be_given_up() -> None:
    driver("lab2", nvidia_driver_hold=False).done(change=True, nodes=("lab2",))
    assert not {"nvidia-driver-cuda", "nvidia-kernel-dkms"} & held("lab2")
    driver("lab2", nvidia_driver_hold=False).done(change=False, nodes=("lab2",))
    driver("lab2").done(change=True, nodes=("lab2",))
    assert {"nvidia-driver-cuda", "nvidia-kernel-dkms"} <= held("lab2")
