"""Debian's real unattended-upgrades beside what this role keeps: does the next kernel come with the driver's module?

Kernels, modules and driver are stand-ins with Ubuntu's names and dependencies (stand_in/kernels.py), in an archive on
the node that stands for Ubuntu's; apt, dpkg, depmod, modinfo and unattended-upgrades are real. The role itself does not
run: what it writes is taken from the code that writes it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    PREFERENCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import exclusion

from tests.playbook_run import on

HOST = "lab1"
ARCHIVE = "/srv/swarmspeed-stand-in-archive"
SOURCE = "/etc/apt/sources.list.d/swarmspeed-stand-in-archive.list"
ORIGIN = "/etc/apt/apt.conf.d/51swarmspeed-stand-in"
HELD = ["nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server"]
DRIVER, MODULES = "580.95.05", "linux-modules-nvidia-580-server-open"
KERNELS = ("6.8.0-149", "6.8.0-151", "6.8.0-152")
OURS = "'linux-image-6.8.0-1*' linux-image-generic 'linux-modules-nvidia-*' 'nvidia-*-580-server*'"


def write(path: str, text: str) -> None:
    on(HOST, f"mkdir -p {Path(path).parent} && echo {base64.b64encode(text.encode()).decode()} | base64 -d >{path}")


def apt(*arguments: str) -> str:
    """Run apt with the stand-in alone: nothing of the node's own distribution changes."""
    only = f"-o Dir::Etc::SourceList={SOURCE} -o Dir::Etc::SourceParts=/dev/null"
    return str(on(HOST, f"DEBIAN_FRONTEND=noninteractive apt-get -qq {only} {' '.join(arguments)} 2>&1"))


def upgrade(state: str) -> str:
    """Let the archive go on to a state, and run unattended-upgrades."""
    on(HOST, f"ln -sfn {state} {ARCHIVE}/www")
    apt("update")
    return str(on(HOST, f"APT_CONFIG={ARCHIVE}/apt.conf unattended-upgrade -v 2>&1"))


def module_of(kernel: str) -> str:
    """Return the version of the nvidia module of a kernel that is installed, as modinfo reads it."""
    on(HOST, f"test -e /boot/vmlinuz-{kernel}-generic")
    return str(on(HOST, f"modinfo -k {kernel}-generic -F version nvidia 2>/dev/null || echo none")).strip()


@pytest.fixture(scope="module", autouse=True)
def archive() -> Iterator[None]:
    """Build the archive beside unattended-upgrades, and take everything away again."""
    on(HOST, "DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends unattended-upgrades kmod")
    for file in ("driver_packages/stand_in/kernels.py", "gpu_host/stand_in/repository.py"):
        source = Path(__file__).parents[2] / file
        write(f"{ARCHIVE}.bin/{source.name}", source.read_text(encoding="utf-8"))
    on(HOST, f"python3 {ARCHIVE}.bin/kernels.py {ARCHIVE}")
    write(SOURCE, f"deb [trusted=yes] file://{ARCHIVE}/www ./\n")
    write(f"{ARCHIVE}/apt.conf", f'Dir::Etc::SourceList "{SOURCE}";\nDir::Etc::SourceParts "/dev/null";\n')
    write(ORIGIN, 'Unattended-Upgrade::Origins-Pattern { "origin=stand-in of the scenario driver_packages"; };\n')
    yield
    remove()
    on(HOST, f"rm -rf {ARCHIVE} {ARCHIVE}.bin {SOURCE} {ORIGIN} && apt-get -qq update")


def remove() -> None:
    on(HOST, f"rm -f {EXCLUSION_FILE} {PREFERENCES_FILE}")
    names = on(HOST, f"dpkg-query -W -f '${{Package}} ' {OURS} 2>/dev/null || true")
    if names.strip():
        apt("purge", "-y", "--allow-change-held-packages", names)
    on(HOST, "rm -rf /lib/modules/6.8.0-149-generic /lib/modules/6.8.0-151-generic /lib/modules/6.8.0-152-generic")


@pytest.fixture(autouse=True)
def installed() -> None:
    """Begin with the first kernel, its module and the driver, as this role leaves a host."""
    remove()
    on(HOST, f"ln -sfn first {ARCHIVE}/www")
    apt("update")
    modules = f"{MODULES}-{KERNELS[0]}-generic {MODULES}-generic"
    apt("install", "-y", "linux-image-generic", *HELD, modules)
    on(HOST, f"apt-mark hold {' '.join(HELD)}")
    write(PREFERENCES_FILE, preferences(DRIVER))
    write(EXCLUSION_FILE, exclusion(HELD))
    assert module_of(KERNELS[0]) == DRIVER


def test_the_next_kernel_comes_with_its_module() -> None:
    upgrade("second")
    assert module_of(KERNELS[1]) == DRIVER


def test_with_the_line_that_the_exclusion_had_it_came_without() -> None:
    """This is what a host loses at the next run; were it harmless, the test above would prove nothing."""
    write(EXCLUSION_FILE, exclusion(HELD).replace('  "cuda', '  "linux-modules-nvidia-";\n  "cuda'))
    assert f"Package {MODULES}-generic is blacklisted" in upgrade("second")
    assert module_of(KERNELS[1]) == "none"


def test_a_kernel_whose_module_needs_a_newer_driver_comes_without_it_while_the_driver_is_held() -> None:
    """What verify, status and the task before a reboot look for, and docs/gpu_hosts.md says."""
    upgrade("third")
    assert module_of(KERNELS[2]) == "none"
    assert on(HOST, "dpkg-query -W -f '${Version}' nvidia-kernel-common-580-server") == f"{DRIVER}-0ubuntu0"


def test_a_kernel_that_is_held_waits_for_its_module() -> None:
    """The case in which the role holds it: no package is installed that brings the next kernel's module."""
    apt("purge", "-y", f"{MODULES}-generic")
    on(HOST, "apt-mark hold linux-image-generic")
    upgrade("second")
    assert on(HOST, f"ls /boot/vmlinuz-{KERNELS[1]}-generic 2>/dev/null || echo none") == "none"
    packages = "linux-image-generic linux-modules-nvidia-580-server-open-generic"
    apt("install", "-y", "--allow-change-held-packages", packages)  # the remedy that the role names
    assert module_of(KERNELS[1]) == DRIVER
