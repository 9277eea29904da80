"""An installation that fails half way leaves the host as it was: packages, holds, files, and the driver that runs.

The kernel module's package is a stand-in whose post-installation script fails on demand, as DKMS does on a kernel that
the driver does not know; that dpkg is left with a half-configured package, and what apt makes of it, is real.
"""

from __future__ import annotations

import sys
from pathlib import Path

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import (
    PAIR,
    STAND_IN,
    be,
    begin_with_the_first,
    condition,
    driver,
    gpu,
    publish,
    purge,
    sound,
    state_of,
    versions,
)
from tests.playbook_run import on

FIRST, SECOND = "580.95.05", "580.105.08"
FAILS = (f"echo >{STAND_IN}/fail-build", f"rm -f {STAND_IN}/fail-build")


def test_a_first_installation_that_fails_leaves_nothing() -> None:
    purge("lab2")
    be("lab2")
    before = state_of("lab2")
    with condition("lab2", *FAILS):
        driver("lab2").refused(
            "lab2: the driver could not be installed. Install the packages: ",
            "DKMS wrote: stand-in: error: implicit declaration of function 'follow_pfn'.",
            "What was new is removed again.",
            "Remedy: fix the first problem named above, and run again.",
        )
    sound("lab2")
    # What is no part of a driver may stay: dkms and the kernel's headers.
    left = {line.split()[2] for line in state_of("lab2") - before if line.startswith("lab2: ii")}
    assert left <= {"dkms"} | {line for line in left if line.startswith("linux-headers-")}
    assert not {name for name in versions("lab2") if "container" not in name and not name.startswith("linux-")}
    assert not {line for line in state_of("lab2") - before if "/etc/apt/" in line or "/etc/modprobe.d/" in line}
    driver("lab2").done(change=True, nodes=("lab2",))


def test_a_way_back_that_fails_too_is_reported() -> None:
    """The package of the former version builds its module again when it comes back, and fails here as the new one."""
    begin_with_the_first()
    publish("second")
    with condition("lab1", *FAILS):
        driver("lab1", nvidia_driver_min_version=SECOND).refused(
            "lab1: the driver could not be installed. Install the packages: ",
            "The versions that were there before could not be put back: ",
        )
        driver("lab1", nvidia_driver_min_version=SECOND).refused(
            "lab1: an earlier run of dpkg or apt was interrupted (nvidia-"
        )
    on("lab1", "dpkg --configure -a && apt-get -qq -f install -y")
    driver("lab1").done(nodes=("lab1",))
    sound("lab1")


def test_what_fails_on_one_of_two_hosts_goes_back_there_and_is_reported_there() -> None:
    """No task follows on the other, whose packages were installed: the next run goes on from there."""
    begin_with_the_first()
    publish("second")
    with condition("lab1", f"echo {SECOND} >{STAND_IN}/fail-build", FAILS[1]):
        run = gpu("site", tags="nvidia_driver", nvidia_driver_min_version=SECOND).refused(
            "lab1: the driver could not be installed. Install the packages: ",
            "The versions that were there before are back.",
        )
    assert "lab2: the driver could not be installed" not in run.text
    assert versions("lab1")["nvidia-driver-cuda"] == f"{FIRST}-1"
    assert versions("lab2")["nvidia-driver-cuda"] == f"{SECOND}-1"
    for host in PAIR:
        sound(host)
    begin_with_the_first()


def test_an_upgrade_whose_module_alone_fails_goes_back_whole() -> None:
    begin_with_the_first()
    publish("second")
    before = state_of(*PAIR)
    # Only the new version fails to build.
    with condition("lab1", f"echo {SECOND} >{STAND_IN}/fail-build", FAILS[1]):
        driver("lab1", nvidia_driver_min_version=SECOND).refused(
            "lab1: the driver could not be installed. Install the packages: ",
            "DKMS wrote: stand-in: error: implicit declaration of function 'follow_pfn'.",
            "The versions that were there before are back.",
            "Remedy: fix the first problem named above, and run again.",
        )
    # What the packages stopped runs again, so that its start and its process are others.
    differ = state_of(*PAIR) ^ before
    assert [line for line in differ if "/comm " not in line and "ActiveEnterTimestamp" not in line] == []
    assert on("lab1", "systemctl is-active nvidia-persistenced nvidia-fabricmanager").split() == ["active", "active"]
    sound("lab1")
    assert "NVIDIA H100" in on("lab1", "nvidia-smi -L")
    driver("lab1").done(change=False, nodes=("lab1",))
