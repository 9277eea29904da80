"""On hosts without a driver: what cannot be is refused with its cause before anything is changed.

The GPUs and the repository are stand-ins; apt, dpkg and the file systems are real.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import (
    PAIR,
    REPOSITORY,
    STAND_IN,
    address,
    be,
    condition,
    driver,
    key,
    publish,
    purge,
    state_of,
    versions,
)
from tests.playbook_run import on

KERNEL = "6.1.0-99-amd64"


@pytest.fixture(scope="module", autouse=True)
def without_a_driver() -> None:
    publish("first")
    for host in PAIR:
        purge(host)
        be(host)


@pytest.fixture
def unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Assert that a refused run has changed nothing on any node."""
    before = state_of(*PAIR)
    yield
    assert state_of(*PAIR) ^ before == set()


@dataclass(frozen=True)
class Wrong:
    """What is asked of which host, and the cause that is reported. ``begin`` and ``end`` make a condition there.

    By default preflight finds it, and nothing else; otherwise ``texts`` say who refuses it.
    """

    host: str
    texts: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    begin: str = "true"
    end: str = "true"
    by_preflight_alone: bool = True
    variable: str = ""
    """Its value is refused before any connection."""


# What apt says is known once the role has asked it.
NOTHING = "lab1: nothing was changed. "
NOT_ALONE = "(check: nvidia_driver)"
INSTALL = "apt-get -qq -o Dpkg::Use-Pty=0 install -y"
SOURCE = (
    f"echo 'deb [trusted=yes] file:{REPOSITORY}/first/compute/cuda/repos/debian12/x86_64 /' "
    ">/etc/apt/sources.list.d/by-hand.list && apt-get -qq update && "
)
NO_SOURCE = "; rm /etc/apt/sources.list.d/by-hand.list; apt-get -qq update"

WRONG = {
    "a branch that is none": Wrong(
        "lab1",
        ("nvidia_driver_branch: 'newest' is not the first number of a driver's version or recommended ",),
        {"nvidia_driver_branch": "newest"},
        variable="nvidia_driver_branch",
    ),
    "a branch that the distribution has not": Wrong(
        "lab1",
        ("lab1: Debian 12 has no driver of branch 999 (it has 470, 535). Remedy: ", NOT_ALONE),
        {"nvidia_driver_branch": "999", "nvidia_driver_source": "distribution"},
        by_preflight_alone=False,
    ),
    "a branch that the repository has not": Wrong(
        "lab1",
        (
            f"{NOTHING}no common version of branch 599 ",
            "nvidia-driver-cuda 580.95.05-1, 575.57.08-1",
            "Remedy: choose another nvidia_driver_branch ",
        ),
        {"nvidia_driver_branch": "599"},
        by_preflight_alone=False,
    ),
    "a branch too new for the GPU": Wrong(
        "lab2", ("branch 590 no longer drives ", " is 580. "), {"nvidia_driver_branch": "590"}
    ),
    "a flavour that the GPU cannot use": Wrong(
        "lab2", ("nvidia_driver_flavour is open, ",), {"nvidia_driver_flavour": "open"}
    ),
    "a flavour that the branch has no more": Wrong(
        "lab1",
        ("branch 620 of NVIDIA's repository has no proprietary ",),
        {"nvidia_driver_flavour": "proprietary", "nvidia_driver_branch": "620"},
    ),
    "a repository that cannot be reached": Wrong(
        "lab1",
        (f"{NOTHING}a repository cannot be read: ", "Could not connect", "Remedy: set host_apt_proxy "),
        {"nvidia_driver_repository_url": "http://127.0.0.1:9/compute/cuda/repos"},
        by_preflight_alone=False,
    ),
    "a repository that is not there": Wrong(
        "lab1",
        (
            f"{NOTHING}a repository cannot be read: The repository 'ADDRESS/elsewhere/debian12/x86_64 Release' ",
            "nvidia_driver_repository_url to a mirror",
        ),
        {"nvidia_driver_repository_url": "ADDRESS/elsewhere"},
        by_preflight_alone=False,
    ),
    "a key that does not match": Wrong(
        "lab1",
        (f"{NOTHING}apt does not trust a repository: ", "NO_PUBKEY", " in nvidia_driver_repository_key "),
        {"nvidia_driver_repository_key": "OTHER"},
        by_preflight_alone=False,
    ),
    "a key that does not match, Debian 13": Wrong(
        "lab2",
        ("lab2: nothing was changed. apt does not trust a repository: ", " in nvidia_driver_repository_key "),
        {"nvidia_driver_repository_key": "OTHER"},
        by_preflight_alone=False,
    ),
    "no key": Wrong("lab1", ("nvidia_driver_repository_key is empty. ",), {"nvidia_driver_repository_key": ""}),
    "the address of a key": Wrong(
        "lab1",
        ("nvidia_driver_repository_key: its value is not a public key in text form ",),
        {"nvidia_driver_repository_key": "https://example.invalid/key.asc"},
        variable="nvidia_driver_repository_key",
    ),
    "a disk too small": Wrong(
        "lab1",
        ("64 MiB are free at /boot; ",),
        begin="mount -t tmpfs -o size=64m small /boot",
        end="umount /boot",
    ),
    "a kernel that is not there": Wrong(
        "lab1", (f"kernel {KERNEL} has no modules on this host ",), {"nvidia_driver_kernel": KERNEL}
    ),
    "a kernel without headers": Wrong(
        "lab1",
        (f"apt has no package linux-headers-{KERNEL}, ",),
        {"nvidia_driver_kernel": KERNEL},
        begin=f"mkdir /lib/modules/{KERNEL}",
        end=f"rmdir /lib/modules/{KERNEL}",
    ),
    "a package on hold": Wrong(
        "lab1",
        (f"{NOTHING}libnvidia-ml1 is on hold, ", "Remedy: apt-mark unhold libnvidia-ml1 "),
        begin=f"{SOURCE}{INSTALL} libnvidia-ml1=575.57.08-1; apt-mark hold libnvidia-ml1{NO_SOURCE}",
        end="apt-get -qq purge -y --allow-change-held-packages libnvidia-ml1",
        by_preflight_alone=False,
    ),
    "another kernel module": Wrong(
        "lab1",
        (
            f"{NOTHING}other packages of the driver are in the way: nvidia-kernel-dkms. ",
            "Remedy: set nvidia_driver_allow_purge_conflicting: true ",
        ),
        begin=f"{SOURCE}{INSTALL} nvidia-kernel-dkms=575.57.08-1{NO_SOURCE}",
        end="apt-get -qq purge -y nvidia-kernel-dkms dkms",
        by_preflight_alone=False,
    ),
    "an interrupted dpkg": Wrong(
        "lab1",
        ("an earlier run of dpkg or apt was interrupted (half-done). ",),
        begin=(
            "mkdir -p /tmp/half/DEBIAN && cd /tmp/half && printf 'Package: half-done\\nVersion: "
            "1\\nArchitecture: all\\n"
            "Maintainer: nobody\\nDescription: fails\\n' >DEBIAN/control && printf '#!/bin/sh\\nexit "
            "1\\n' >DEBIAN/postinst "
            "&& chmod 755 DEBIAN/postinst && dpkg-deb -b . /tmp/half.deb >/dev/null && ! dpkg -i /tmp/half.deb"
        ),
        end="dpkg --purge half-done && rm -r /tmp/half /tmp/half.deb",
    ),
    "Secure Boot": Wrong(
        "lab1",
        ("Secure Boot is on, ",),
        begin=f"{STAND_IN}/bin/machine.py h100 --secure-boot",
        end=f"{STAND_IN}/bin/machine.py h100",
    ),
    "NVIDIA's own installer": Wrong(
        "lab1",
        ("(/usr/bin/nvidia-uninstall exists)",),
        begin="touch /usr/bin/nvidia-uninstall",
        end="rm /usr/bin/nvidia-uninstall",
    ),
    "NVSwitches and Debian's packages": Wrong(
        "lab1",
        ("lab1: this host has NVSwitches, ", "Remedy: set nvidia_driver_source: cuda_repository. ", NOT_ALONE),
        {"nvidia_driver_source": "distribution"},
        by_preflight_alone=False,
    ),
    "nothing may be installed": Wrong(
        "lab1", ("no driver is loaded, but nvidia_driver_source is keep. ",), {"nvidia_driver_source": "keep"}
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("unchanged")
def test_refused_before_any_change(wrong: Wrong) -> None:
    values = {
        name: key("other") if value == "OTHER" else value.replace("ADDRESS", address())
        for name, value in wrong.values.items()
    }
    with condition(wrong.host, wrong.begin, wrong.end):
        before = state_of(wrong.host)
        run = driver(wrong.host, **values)
        if wrong.by_preflight_alone:
            run.refused_by(("values", wrong.variable) if wrong.variable else ("nvidia_driver", wrong.host))
        run.refused(*(text.replace("ADDRESS", address()) for text in wrong.texts))
        assert state_of(wrong.host) ^ before == set()


def test_a_proxy_that_does_not_answer() -> None:
    # The role host keeps the proxy that is asked for; the driver is refused with it all the same.
    proxy = "/etc/apt/apt.conf.d/80swarmspeed-proxy"
    run = driver("lab1", "--tags", "host", host_apt_proxy="http://127.0.0.1:9")
    try:
        run.refused(
            f"{NOTHING}a repository cannot be read: ",
            "127.0.0.1:9",
            "Remedy: set host_apt_proxy where this host needs a proxy",
        )
        assert on("lab1", f"cat {proxy}").count("http://127.0.0.1:9") == 2
        assert versions("lab1") == {}
    finally:
        on("lab1", f"rm -f {proxy}")


def test_a_host_without_a_gpu_in_a_cluster_of_gpus() -> None:
    with condition("lab1", f"mv {STAND_IN}/sys/bus {STAND_IN}/away", f"mv {STAND_IN}/away {STAND_IN}/sys/bus"):
        driver("lab1", cluster_accelerator="cuda").refused("lab1: ", "cluster_accelerator: cpu")
