# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The kernel that boots next, and which module it has: hosts from texts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.next_boot import (
    after_a_reboot,
    gather_next_boot,
    next_kernel,
)

OLD, NEW = "6.8.0-149-generic", "6.8.0-151-generic"
UBUNTU = "kernel/nvidia-580-server-open/nvidia.ko.zst: \nkernel/nvidia-580-server-open/nvidia-uvm.ko.zst: kernel/x.ko\n"
DEBIAN = "updates/dkms/nvidia-current-open.ko.xz:\nupdates/dkms/nvidia-current-open-uvm.ko.xz: updates/dkms/x.ko.xz\n"


class Kernels:
    """What is in /boot and /lib/modules; ``modinfo`` says the version that is given."""

    def __init__(
        self,
        modules: Mapping[str, str | None],
        images: list[str],
        version: str | None = "580.95.05",
        grub: Mapping[str, str] | None = None,
    ) -> None:
        self._modules, self._images, self._version, self._grub = modules, images, version, grub or {}
        self.calls: list[tuple[str, ...]] = []

    def read(self, path: str) -> str:
        return self._grub.get(path) or self._modules.get(path.split("/")[3]) or ""

    def names(self, directory: str) -> list[str]:
        if directory == "/boot":
            return self._images
        return [path.rpartition("/")[2] for path in self._grub if path.rpartition("/")[0] == directory]

    def exists(self, path: str) -> bool:
        return path.split("/")[3] in self._modules

    def run(self, *command: str) -> CommandResult | None:
        self.calls.append(command)
        text = f"filename: /x.ko\nversion: {self._version}\nlicense: Dual MIT/GPL\n" if self._version else ""
        return CommandResult(0 if text else 1, text)


@pytest.mark.parametrize(
    ("images", "newest"),
    [
        (["vmlinuz-6.8.0-99-generic", f"vmlinuz-{OLD}"], OLD),
        ([f"vmlinuz-{OLD}", f"vmlinuz-{NEW}", f"initrd.img-{NEW}", "vmlinuz", "grub"], NEW),
        (["vmlinuz-6.8.0-200-generic", f"vmlinuz-{OLD}"], OLD),  # removed, its image was left
        (["vmlinux-6.8.0-99-generic"], "6.8.0-99-generic"),
        ([], None),
    ],
)
def test_the_next_kernel_that_is_installed_boots_next(images: list[str], newest: str | None) -> None:
    io = Kernels({OLD: "", NEW: "", "6.8.0-99-generic": ""}, images)
    assert next_kernel(io) == newest


DEFAULT, ENVIRONMENT = "/etc/default/grub", "/boot/grub/grubenv"
ADVANCED = "Advanced options for Ubuntu>Ubuntu, with Linux"


@pytest.mark.parametrize(
    ("grub", "kernel"),
    [
        ({DEFAULT: "GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\n"}, NEW),
        ({DEFAULT: f'GRUB_DEFAULT="{ADVANCED} {OLD}"\n'}, OLD),
        ({DEFAULT: f"GRUB_DEFAULT=gnulinux-advanced-1f>gnulinux-{OLD}-advanced-1f\n"}, OLD),
        ({DEFAULT: "GRUB_DEFAULT=saved\n", ENVIRONMENT: f"# GRUB\nsaved_entry={ADVANCED} {OLD}\n####"}, OLD),
        ({DEFAULT: "GRUB_DEFAULT=saved\n", ENVIRONMENT: "# GRUB\n"}, NEW),
        ({DEFAULT: "GRUB_DEFAULT=0\n", "/etc/default/grub.d/50-x.cfg": f'GRUB_DEFAULT="{ADVANCED} {OLD}"\n'}, OLD),
        ({DEFAULT: 'GRUB_DEFAULT="1>2"\n'}, None),  # a number of an entry says no release
        ({DEFAULT: f'GRUB_DEFAULT="{ADVANCED} 6.8.0-1-generic"\n'}, None),
        ({DEFAULT: f'#GRUB_DEFAULT="{ADVANCED} {OLD}"\n'}, NEW),
    ],
)
def test_what_grub_is_configured_to_boot_counts(grub: dict[str, str], kernel: str | None) -> None:
    assert next_kernel(Kernels({OLD: "", NEW: ""}, [f"vmlinuz-{OLD}", f"vmlinuz-{NEW}"], grub=grub)) == kernel


@pytest.mark.parametrize(("text", "name"), [(UBUNTU, "nvidia"), (DEBIAN, "nvidia-current-open")])
def test_its_module_is_read(text: str, name: str) -> None:
    io = Kernels({OLD: "", NEW: text}, [f"vmlinuz-{OLD}", f"vmlinuz-{NEW}"])
    found = gather_next_boot(io)
    assert found is not None and (found["kernel"], found["module"]["version"]) == (NEW, "580.95.05")
    assert io.calls == [("modinfo", "-k", NEW, name)]


@pytest.mark.parametrize("text", ["", "kernel/drivers/nvidiafb.ko:\nkernel/x/nvidia-uvm.ko: kernel/x/nvidia.ko\n"])
def test_a_kernel_without_the_module_costs_no_process(text: str) -> None:
    io = Kernels({NEW: text}, [f"vmlinuz-{NEW}"])
    assert gather_next_boot(io) == {"kernel": NEW, "module": None} and io.calls == []


def test_a_module_that_modinfo_cannot_read_is_none() -> None:
    assert gather_next_boot(Kernels({NEW: UBUNTU}, [f"vmlinuz-{NEW}"], None)) == {"kernel": NEW, "module": None}


def test_a_container_has_no_kernel_that_boots_next() -> None:
    assert gather_next_boot(Kernels({NEW: UBUNTU}, [])) is None


LOADED = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (b@h)"


class Running(Kernels):
    """The same with a driver that is loaded."""

    def read(self, path: str) -> str:
        return LOADED if path == "/proc/driver/nvidia/version" else super().read(path)


def test_what_is_loaded_is_told_beside_it() -> None:
    found = after_a_reboot(Running({NEW: ""}, [f"vmlinuz-{NEW}"]))
    assert found == {"kernel": NEW, "module": None, "driver": "580.95.05"}
    assert after_a_reboot(Running({}, [])) is None


def test_without_a_driver_nothing_is_looked_for() -> None:
    io = Kernels({NEW: UBUNTU, "driver": ""}, [f"vmlinuz-{NEW}"])
    assert after_a_reboot(io) is None and io.calls == []
