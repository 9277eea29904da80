"""Debian 13's own driver: real packages, real DKMS, real headers of Debian's kernel.

A stand-in is the GPU alone (a PCI device in a recorded tree). The lab's kernel is not Debian's, so the module is built
for Debian's newest one (nvidia_driver_kernel) and cannot be loaded here, which the role has to say.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import STAND_IN, held, sound, state_of, versions
from tests.playbook_run import Run, on, playbook, variables, write_inventory

HOST = "lab2"
PACKAGES = (
    "nvidia-open-kernel-dkms",
    "nvidia-kernel-dkms",
    "libcuda1",
    "libnvidia-ml1",
    "libnvidia-cfg1",
    "nvidia-smi",
)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inventory(tmp_path_factory.mktemp("driver_packages") / "hosts.json", [HOST], [])


@pytest.fixture(scope="module")
def kernel() -> str:
    """Return Debian's newest kernel, with the folder for modules that a kernel brings and its headers do not."""
    text = on(HOST, "apt-cache depends linux-headers-amd64")
    (release,) = re.findall(r"Depends: linux-headers-(\S+)", text)
    on(HOST, f"mkdir -p /lib/modules/{release}")
    return str(release)


def site(inventory: Path, kernel: str, *arguments: str, name: str = "site") -> Run:
    values = variables(
        preflight_sysfs_root=f"{STAND_IN}/sys",
        preflight_proc_root=f"{STAND_IN}/proc",
        preflight_min_free_gib=1,
        nvidia_driver_kernel=kernel,
        # auto takes NVIDIA's repository, as Debian's branch is past its end of life. Here Debian's packages are tried.
        nvidia_driver_source="distribution",
    )
    # DKMS compiles the module on the node, for minutes on a loaded machine.
    return playbook(name, "--tags", "nvidia_driver", *arguments, *values, inventory=inventory, timeout=1800)


@pytest.fixture(scope="module")
def done(inventory: Path, kernel: str) -> Run:
    """The run, after check mode. It installs, and says that a reboot is due."""
    before = state_of(HOST)
    checked = site(inventory, kernel, "--check").done(change=True, nodes=(HOST,))
    assert re.search(r"lab2: driver 550\.[\d.]+ \(dkms\): nvidia-kernel-dkms=550\.", checked.text), checked.output
    assert f"linux-headers-{kernel}=" in checked.text
    assert state_of(HOST) ^ before == set()
    return site(inventory, kernel)


def test_the_module_cannot_be_loaded_here_and_that_is_reported(done: Run, kernel: str) -> None:
    running = on(HOST, "uname -r")
    done.refused(
        "lab2: driver 550.",
        f" is installed, but not loaded. It runs after a reboot of this host (the module is for kernel {kernel}, and "
        f"{running} runs). Remedy: ",
    )


def test_dkms_built_the_module_for_debians_kernel(done: Run, kernel: str) -> None:
    (version,) = re.findall(r"^nvidia-current/([\d.]+), ", on(HOST, "dkms status"), re.MULTILINE)
    assert f"nvidia-current/{version}, {kernel}, x86_64: installed" in on(HOST, "dkms status")
    found = on(HOST, f"modinfo -k {kernel} nvidia-current")
    assert re.search(rf"^version:\s+{re.escape(version)}$", found, re.MULTILINE)
    assert re.search(rf"^vermagic:\s+{re.escape(kernel)} ", found, re.MULTILINE)


def test_all_packages_are_of_one_version_held_and_pinned(done: Run) -> None:
    found = {**versions(HOST), **versions(HOST, "libcuda1")}
    taken = {name: found[name].partition("-")[0] for name in PACKAGES if name in found}
    assert {"nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1", "nvidia-smi"} <= set(taken)
    (version,) = set(taken.values())
    assert set(taken) <= held(HOST)
    assert f"Pin: version {version}-*" in on(HOST, "cat /etc/apt/preferences.d/swarmspeed-nvidia.pref")
    sound(HOST)


def test_the_components_come_in_a_file_of_our_own(done: Run) -> None:
    source = on(HOST, "cat /etc/apt/sources.list.d/swarmspeed-nvidia.sources")
    assert "Components: contrib non-free non-free-firmware" in source
    assert "non-free" not in on(HOST, "cat /etc/apt/sources.list")


def test_nouveau_is_kept_away(done: Run) -> None:
    assert "blacklist nouveau" in on(HOST, "cat /etc/modprobe.d/swarmspeed-nvidia.conf").splitlines()


def test_nvidia_smi_reaches_no_driver(done: Run) -> None:
    # nvidia-smi is the real one.
    assert "couldn't communicate with the NVIDIA driver" in on(HOST, "nvidia-smi; test $? = 9")


def test_a_second_run_changes_nothing_and_says_the_same(done: Run, inventory: Path, kernel: str) -> None:
    before = state_of(HOST)
    again = site(inventory, kernel).refused("It runs after a reboot of this host (the module is for kernel ")
    assert not any(again.changed.values()), again.output[-4000:]
    assert state_of(HOST) ^ before == set()


def test_verify_says_it_too(done: Run, inventory: Path, kernel: str) -> None:
    site(inventory, kernel, name="verify").refused(
        "is installed, but not loaded", "NVIDIA's kernel module is not loaded, but this host has NVIDIA GPUs at "
    )
