"""From hosts without a driver to containers that see GPUs: what check mode predicts, what a run does, and verify.

Stand-ins are the GPUs, the packages' contents and the repository's owner; apt, dpkg, systemd and both engines are real.
Debian 12's engine (20.10) is asked by NVIDIA's hook, Debian 13's (26.1) by CDI.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import image_names, info
from tests.gpu_runs import (
    PAIR,
    STAND_IN,
    be,
    driver,
    gpu,
    held,
    module,
    publish,
    purge,
    roles_changed,
    sound,
    state_of,
    versions,
)
from tests.playbook_run import Run, on

FIRST = "580.95.05"
TOOLKIT = "1.18.2-1"


@pytest.fixture(scope="module")
def checked() -> Run:
    """Check mode on hosts that have no driver and no toolkit."""
    publish("first")
    for host in PAIR:
        purge(host)
        be(host)
    before = state_of(*PAIR)
    run = gpu("site", "--check")
    assert state_of(*PAIR) ^ before == set()
    return run


@pytest.fixture(scope="module")
def done(checked: Run) -> Run:
    return gpu("site")


def test_check_mode_says_what_apt_would_install(checked: Run) -> None:
    checked.done(change=True, nodes=PAIR)
    assert (
        f"lab1: driver {FIRST} (dkms): nvidia-kernel-open-dkms={FIRST}-1, nvidia-driver-cuda={FIRST}-1" in checked.text
    )
    assert f"lab2: driver {FIRST} (dkms): nvidia-kernel-dkms={FIRST}-1, nvidia-driver-cuda={FIRST}-1" in checked.text


def test_the_run_changes_what_was_predicted(checked: Run, done: Run) -> None:
    done.done(change=True, nodes=PAIR)
    assert roles_changed(done) == roles_changed(checked)
    assert {(host, role) for host in PAIR for role in ("nvidia_driver", "nvidia_container_toolkit")} <= roles_changed(
        done
    )


def test_a_second_run_changes_nothing(done: Run) -> None:
    gpu("site").done(change=False, nodes=PAIR)


def test_verify_finds_every_promise_kept(done: Run) -> None:
    gpu("verify").done(change=False, nodes=PAIR)


@pytest.mark.parametrize(
    ("host", "flavour", "other"),
    [
        ("lab1", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms"),
        ("lab2", "nvidia-kernel-dkms", "nvidia-kernel-open-dkms"),
    ],
)
def test_the_flavour_is_the_one_that_the_gpu_needs(host: str, flavour: str, other: str, done: Run) -> None:
    found = versions(host)
    assert found[flavour] == found["nvidia-driver-cuda"] == found["libnvidia-ml1"] == f"{FIRST}-1"
    assert other not in found
    sound(host)


def test_the_fabric_manager_is_of_the_drivers_version_where_there_are_nvswitches(done: Run) -> None:
    assert versions("lab1")["nvidia-fabricmanager"] == f"{FIRST}-1"
    assert "nvidia-fabricmanager" not in versions("lab2")
    unit = "nvidia-fabricmanager.service"
    assert on("lab1", f"systemctl is-active {unit} && systemctl is-enabled {unit}").split() == ["active", "enabled"]


@pytest.mark.parametrize("host", PAIR)
def test_the_persistence_daemon_runs(host: str, done: Run) -> None:
    unit = "nvidia-persistenced.service"
    assert on(host, f"systemctl is-active {unit} && systemctl is-enabled {unit}").split() == ["active", "enabled"]


@pytest.mark.parametrize("host", PAIR)
def test_what_was_installed_is_held_and_recorded(host: str, done: Run) -> None:
    for file in ("52swarmspeed-nvidia", "52swarmspeed-nvidia-container-toolkit"):
        recorded = on(host, f"grep '^// Held: ' /etc/apt/apt.conf.d/{file}").partition(": ")[2].split()
        assert recorded and set(recorded) <= held(host)
    # apt reads the files as its own configuration: what unattended-upgrades may not touch.
    listed = on(host, "apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert '"nvidia-(?!container)"' in listed and '"^nvidia\\-container\\-toolkit$"' in listed


@pytest.mark.parametrize("host", PAIR)
def test_nouveau_is_kept_away(host: str, done: Run) -> None:
    assert "blacklist nouveau" in on(host, "modprobe --showconfig").splitlines()


@pytest.mark.parametrize("host", PAIR)
def test_the_repository_is_trusted_by_its_own_key_alone(host: str, done: Run) -> None:
    source = on(host, "cat /etc/apt/sources.list.d/swarmspeed-nvidia.sources")
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----" in source
    assert on(host, "ls /etc/apt/trusted.gpg.d | grep -v debian-archive; true") == ""


@pytest.mark.parametrize(
    ("host", "names", "flavour", "switches"),
    [("lab1", ["NVIDIA H100 80GB HBM3"] * 8, "open", 4), ("lab2", ["Tesla V100-SXM2-16GB"], "proprietary", 0)],
)
def test_gpu_info_tells_what_was_recorded(host: str, names: list[str], flavour: str, switches: int, done: Run) -> None:
    found = module(host, "gpu_info", sysfs_root=f"{STAND_IN}/sys", proc_root=f"{STAND_IN}/proc")
    assert (found["failed"], found["problems"]) == (False, [])
    assert [one["name"] for one in found["gpus"]] == names
    assert len(found["nvswitches"]) == switches
    assert found["driver"] == {
        "loaded": True,
        "version": FIRST,
        "flavour": flavour,
        "library_version": FIRST,
        "matches": True,
        "nouveau_loaded": False,
    }


@pytest.mark.parametrize("host", PAIR)
def test_the_toolkit_is_the_tested_version_although_others_are_there(host: str, done: Run) -> None:
    found = {name: version for name, version in versions(host).items() if "container" in name}
    assert found == dict.fromkeys(
        (
            "libnvidia-container-tools",
            "libnvidia-container1",
            "nvidia-container-toolkit",
            "nvidia-container-toolkit-base",
        ),
        TOOLKIT,
    )


def test_the_engines_are_configured_in_the_way_they_know(done: Run) -> None:
    old, new = (json.loads(on(host, "cat /etc/docker/daemon.json")) for host in PAIR)
    assert old["runtimes"] == {"nvidia": {"path": "nvidia-container-runtime"}}
    assert (new["features"], "runtimes" in new) == ({"cdi": True}, False)
    assert "nvidia" in info("lab1")["Runtimes"]
    assert info("lab2")["CDISpecDirs"]  # empty where the engine takes no CDI devices


@pytest.mark.parametrize("host", PAIR)
def test_a_smoke_test_passed_and_left_no_image(host: str, done: Run) -> None:
    tested = json.loads(on(host, "cat /var/lib/swarmspeed/nvidia-container-toolkit.tested"))
    assert (tested["toolkit"], tested["driver"]) == (TOOLKIT, FIRST)
    assert [found for found in image_names(host) if "gpu-smoke" in found] == []


def test_a_driver_that_works_is_left_alone_whatever_installed_it(done: Run) -> None:
    """Nothing is held, pinned or restarted that this role did not install."""
    files = "/etc/apt/preferences.d/swarmspeed-nvidia.pref /etc/apt/apt.conf.d/52swarmspeed-nvidia"
    source = "/etc/apt/sources.list.d/swarmspeed-nvidia.sources"
    on("lab2", f"mkdir /root/kept && cp --parents {files} {source} /root/kept && rm {files} {source}")
    on("lab2", "apt-mark unhold nvidia-driver-cuda nvidia-kernel-dkms && systemctl stop nvidia-persistenced")
    try:
        before = state_of("lab2")
        driver("lab2").done(change=False, nodes=("lab2",))
        driver("lab2", nvidia_driver_source="keep").done(change=False, nodes=("lab2",))
        assert state_of("lab2") ^ before == set()
    finally:
        on("lab2", "cp -r /root/kept/etc / && rm -r /root/kept && systemctl start nvidia-persistenced")
        on("lab2", "apt-mark hold nvidia-driver-cuda nvidia-kernel-dkms")
    gpu("site").done(change=False, nodes=PAIR)


def test_a_divided_gpu_is_one_slot(done: Run) -> None:
    be("lab1", "a100-mig")
    try:
        on("lab1", "modprobe nvidia")
        found = module("lab1", "gpu_info", sysfs_root=f"{STAND_IN}/sys", proc_root=f"{STAND_IN}/proc")
        assert (found["slots"], found["problems"]) == (1, [])
        assert found["gpus"][0]["mig"]["enabled"] is True
        assert len(found["gpus"][0]["mig"]["instances"]) == 7
        assert any("is in MIG mode (instances: 7)" in note for note in found["notes"])
    finally:
        be("lab1")
        on("lab1", "modprobe nvidia && systemctl restart nvidia-fabricmanager")
