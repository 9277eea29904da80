"""On hosts without a driver: what cannot be is refused with its words before anything is changed.

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

from tests.gpu_journey import (
    ONE,
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
from tests.journey import on

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
    """What is asked of which host, and what is said. ``begin`` and ``end`` make a condition there."""

    host: str
    texts: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    begin: str = "true"
    end: str = "true"


NOTHING = "lab1: nothing was changed. "
INSTALL = "apt-get -qq -o Dpkg::Use-Pty=0 install -y"
SOURCE = (
    f"echo 'deb [trusted=yes] file:{REPOSITORY}/first/compute/cuda/repos/debian12/x86_64 /' "
    ">/etc/apt/sources.list.d/by-hand.list && apt-get -qq update && "
)
NO_SOURCE = "; rm /etc/apt/sources.list.d/by-hand.list; apt-get -qq update"

WRONG = {
    "a branch that is none": Wrong(
        "lab1",
        (
            f"{ONE}lab1: nvidia_driver_branch is 'newest', which is neither a branch nor recommended. "
            "Remedy: write the "
            "first number of a driver's version, such as 580, or recommended.",
        ),
        {"nvidia_driver_branch": "newest"},
    ),
    "a branch that the distribution has not": Wrong(
        "lab1",
        (
            "lab1: Debian 12 has no driver of branch 999 (it has 470, 535). Remedy: set "
            "nvidia_driver_branch to one of 470, "
            "535, or nvidia_driver_source: cuda_repository.",
        ),
        {"nvidia_driver_branch": "999", "nvidia_driver_source": "distribution"},
    ),
    "a branch that the repository has not": Wrong(
        "lab1",
        (
            f"{NOTHING}no version of branch 599 is to be had of all packages that must be of one version",
            "nvidia-driver-cuda 580.95.05-1, 575.57.08-1",
            "Remedy: choose another nvidia_driver_branch or nvidia_driver_source.",
        ),
        {"nvidia_driver_branch": "599"},
    ),
    "a branch too new for the GPU": Wrong(
        "lab2",
        (
            f"{ONE}lab2: branch 590 no longer drives this host's GPUs (Volta); the last that does is 580. Remedy: set "
            "nvidia_driver_branch: 580, or recommended.",
        ),
        {"nvidia_driver_branch": "590"},
    ),
    "a flavour that the GPU cannot use": Wrong(
        "lab2",
        (
            f"{ONE}lab2: nvidia_driver_flavour is open, and this host's GPUs (Volta) work with the proprietary kernel "
            "module only. Remedy: set nvidia_driver_flavour: auto, or proprietary.",
        ),
        {"nvidia_driver_flavour": "open"},
    ),
    "a flavour that the branch has no more": Wrong(
        "lab1",
        (
            f"{ONE}lab1: branch 620 of NVIDIA's repository has no proprietary kernel module, which is what "
            "is asked for. "
            "Remedy: choose another nvidia_driver_branch or nvidia_driver_source, or nvidia_driver_flavour: auto.",
        ),
        {"nvidia_driver_flavour": "proprietary", "nvidia_driver_branch": "620"},
    ),
    "a repository that cannot be reached": Wrong(
        "lab1",
        (
            f"{NOTHING}a repository cannot be read: ",
            "Could not connect",
            "Remedy: set host_apt_proxy where this host has no way out but a proxy, or "
            "nvidia_driver_repository_url to a "
            "mirror",
        ),
        {"nvidia_driver_repository_url": "http://127.0.0.1:9/compute/cuda/repos"},
    ),
    "a repository that is not there": Wrong(
        "lab1",
        (
            f"{NOTHING}a repository cannot be read: The repository 'ADDRESS/elsewhere/debian12/x86_64 "
            "Release' does not have a "
            "Release file. ",
            "or nvidia_driver_repository_url to a mirror",
        ),
        {"nvidia_driver_repository_url": "ADDRESS/elsewhere"},
    ),
    "a key that does not match": Wrong(
        "lab1",
        (
            f"{NOTHING}apt does not trust a repository: ",
            "NO_PUBKEY",
            "Remedy: give the key that signs it in nvidia_driver_repository_key (its owner publishes it), or mend the "
            "source that is named.",
        ),
        {"nvidia_driver_repository_key": "OTHER"},
    ),
    "a key that does not match, Debian 13": Wrong(
        "lab2",
        (
            "lab2: nothing was changed. apt does not trust a repository: ",
            "Remedy: give the key that signs it in nvidia_driver_repository_key",
        ),
        {"nvidia_driver_repository_key": "OTHER"},
    ),
    "no key": Wrong(
        "lab1",
        (
            f"{ONE}lab1: nvidia_driver_source is cuda_repository, and nvidia_driver_repository_key is "
            "empty. Remedy: give "
            "the repository's public key there as text",
        ),
        {"nvidia_driver_repository_key": ""},
    ),
    "the address of a key": Wrong(
        "lab1",
        (f"{ONE}lab1: nvidia_driver_repository_key is no armoured public key. Remedy: give its text",),
        {"nvidia_driver_repository_key": "https://example.invalid/key.asc"},
    ),
    "a disk too small": Wrong(
        "lab1",
        (f"{ONE}lab1: 64 MiB are free at /boot; the driver needs about 150 MiB. Remedy: free space there",),
        begin="mount -t tmpfs -o size=64m small /boot",
        end="umount /boot",
    ),
    "a kernel that is not there": Wrong(
        "lab1",
        (
            f"{ONE}lab1: kernel {KERNEL} has no modules on this host (/lib/modules/{KERNEL}). Remedy: "
            "reboot into a kernel "
            "that is installed, or correct nvidia_driver_kernel.",
        ),
        {"nvidia_driver_kernel": KERNEL},
    ),
    "a kernel without headers": Wrong(
        "lab1",
        (
            f"{ONE}lab1: apt has no package linux-headers-{KERNEL}, without which no module can be built "
            "for this kernel. "
            "Remedy: install the newest kernel of the distribution with its headers, reboot into it, and run again.",
        ),
        {"nvidia_driver_kernel": KERNEL},
        begin=f"mkdir /lib/modules/{KERNEL}",
        end=f"rmdir /lib/modules/{KERNEL}",
    ),
    "a package on hold": Wrong(
        "lab1",
        (
            f"{NOTHING}libnvidia-ml1 is on hold, and would have to change. Remedy: apt-mark unhold "
            "libnvidia-ml1 if that may "
            "be, or set nvidia_driver_source: keep.",
        ),
        begin=f"{SOURCE}{INSTALL} libnvidia-ml1=575.57.08-1; apt-mark hold libnvidia-ml1{NO_SOURCE}",
        end="apt-get -qq purge -y --allow-change-held-packages libnvidia-ml1",
    ),
    "another kernel module": Wrong(
        "lab1",
        (
            f"{NOTHING}other packages of the driver are in the way: nvidia-kernel-dkms. Remedy: set "
            "nvidia_driver_purge_conflicting: true to have them purged, or ask for the driver that they hold.",
        ),
        begin=f"{SOURCE}{INSTALL} nvidia-kernel-dkms=575.57.08-1{NO_SOURCE}",
        end="apt-get -qq purge -y nvidia-kernel-dkms dkms",
    ),
    "an interrupted dpkg": Wrong(
        "lab1",
        (
            f"{ONE}lab1: an earlier run of dpkg or apt was interrupted (half-done). Remedy: run `dpkg "
            "--configure -a`, then "
            "`apt-get -f install`, on this host and mend what they name.",
        ),
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
        (
            f"{ONE}lab1: Secure Boot is on, and the firmware does not trust the key with which DKMS signs "
            "modules on this "
            "host, so the module would be built and never loaded. Remedy: enrol the key (mokutil --import "
            "/var/lib/dkms/mok.pub, on Ubuntu /var/lib/shim-signed/mok/MOK.der; then reboot and confirm "
            "at the console), or "
            "switch Secure Boot off in the firmware.",
        ),
        begin=f"{STAND_IN}/bin/machine.py h100 --secure-boot",
        end=f"{STAND_IN}/bin/machine.py h100",
    ),
    "NVIDIA's own installer": Wrong(
        "lab1",
        (
            f"{ONE}lab1: NVIDIA's own installer installed a driver (/usr/bin/nvidia-uninstall is there), "
            "which packages "
            "would damage.",
        ),
        begin="touch /usr/bin/nvidia-uninstall",
        end="rm /usr/bin/nvidia-uninstall",
    ),
    "NVSwitches and Debian's packages": Wrong(
        "lab1",
        (
            "lab1: this host has NVSwitches, and Debian has no fabric manager, without which CUDA fails "
            "with error 802. "
            "Remedy: set nvidia_driver_source: cuda_repository.",
        ),
        {"nvidia_driver_source": "distribution"},
    ),
    "nothing may be installed": Wrong(
        "lab1",
        (
            f"{ONE}lab1: no driver is loaded, and nvidia_driver_source is keep. Remedy: mend the driver "
            "yourself, or let it "
            "be installed (nvidia_driver_source: distribution or cuda_repository).",
        ),
        {"nvidia_driver_source": "keep"},
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
        driver(wrong.host, **values).refused(*(text.replace("ADDRESS", address()) for text in wrong.texts))
        assert state_of(wrong.host) ^ before == set()


def test_a_proxy_that_does_not_answer() -> None:
    # The role host keeps the proxy that is asked for; the driver is refused with it all the same.
    proxy = "/etc/apt/apt.conf.d/80swarmspeed-proxy"
    run = driver("lab1", "--tags", "host", host_apt_proxy="http://127.0.0.1:9")
    try:
        run.refused(
            f"{NOTHING}a repository cannot be read: ",
            "127.0.0.1:9",
            "Remedy: set host_apt_proxy where this host has no",
        )
        assert on("lab1", f"cat {proxy}").count("http://127.0.0.1:9") == 2
        assert versions("lab1") == {}
    finally:
        on("lab1", f"rm -f {proxy}")


def test_a_host_without_a_gpu_in_a_cluster_of_gpus() -> None:
    with condition("lab1", f"mv {STAND_IN}/sys/bus {STAND_IN}/away", f"mv {STAND_IN}/away {STAND_IN}/sys/bus"):
        driver("lab1", cluster_accelerator="cuda").refused("lab1: ", "cluster_accelerator: cpu")
