# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The kernel that a host boots next, and which NVIDIA module it has. Reads two folders, one file and one ``modinfo``.

A boot loader takes the newest kernel in /boot (Debian's /etc/grub.d/10_linux sorts by version), unless GRUB_DEFAULT
names another entry (GRUB's manual, "Simple configuration handling"), whose title or id has the kernel's release in it.
``modules.dep`` lists the modules of a kernel (modules.dep(5)), so a kernel without one was never installed completely.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from ..common.command_io import CommandResult
from ..gpu.smi import parse_driver

_IMAGE = re.compile(r"vmlinu[xz]-(?P<release>\d[^/]*)")
_MODULE = re.compile(r"^\S*?(?P<name>nvidia(?:-current|-tesla-\d{3,4})?(?:-open)?)\.ko(?:\.\w+)?:", re.MULTILINE)
"""Debian's packages name the module after their branch; nvidia-uvm and others are parts of the driver beside it."""


class KernelIO(Protocol):
    """What is read of a host's kernels; tests hand in a fake."""

    def read(self, path: str) -> str: ...

    def names(self, directory: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def run(self, *command: str) -> CommandResult | None: ...


def parse_modinfo(text: str) -> dict[str, Any] | None:
    """Read ``modinfo``: the module's file, version, flavour by its licence, and who signed it."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields.setdefault(key.strip(), value.strip())
    if not fields.get("filename") or not fields.get("version"):
        return None
    return {
        "file": fields["filename"],
        "version": fields["version"],
        "flavour": "open" if "GPL" in fields.get("license", "") else "proprietary",
        "signer": fields.get("signer") or None,
    }


def next_kernel(io: KernelIO) -> str | None:
    """Return the kernel that boots next, None where that cannot be known, as in a container."""
    images = filter(None, map(_IMAGE.fullmatch, io.names("/boot")))
    there = [found["release"] for found in images if io.exists(f"/lib/modules/{found['release']}/modules.dep")]
    entry = _grub_entry(io)
    if entry not in ("", "0"):
        there = sorted((release for release in there if release in entry), key=len)[-1:]
    return max(there, key=lambda release: [int(part) for part in re.findall(r"\d+", release)], default=None)


def _grub_entry(io: KernelIO) -> str:
    """Return the entry that GRUB is configured to take, empty or 0 for the first."""
    folder = "/etc/default/grub.d"
    files = ["/etc/default/grub", *(f"{folder}/{name}" for name in io.names(folder) if name.endswith(".cfg"))]
    found = [value for path in files for value in re.findall(r"^GRUB_DEFAULT=(.*)$", io.read(path), re.MULTILINE)]
    entry = found[-1].strip().strip("\"'") if found else ""
    if entry != "saved":
        return str(entry)
    saved = re.search(r"^saved_entry=(.*)$", io.read("/boot/grub/grubenv"), re.MULTILINE)
    return saved[1].strip() if saved else ""


def gather_next_boot(io: KernelIO) -> dict[str, Any] | None:
    """Return ``kernel`` and its ``module`` (None: it has none), or None where it is not known which kernel boots."""
    kernel = next_kernel(io)
    if kernel is None:
        return None
    names = dict.fromkeys(_MODULE.findall(io.read(f"/lib/modules/{kernel}/modules.dep")))
    for name in sorted(names, key=lambda name: name != "nvidia"):
        answer = io.run("modinfo", "-k", kernel, name)
        module = parse_modinfo(answer.stdout) if answer is not None else None
        if module is not None:
            return {"kernel": kernel, "module": module}
    return {"kernel": kernel, "module": None}


def after_a_reboot(io: KernelIO) -> dict[str, Any] | None:
    """Return ``gather_next_boot`` with the version of the ``driver`` that is loaded, None where none is."""
    driver = parse_driver(io.read("/proc/driver/nvidia/version"))
    found = gather_next_boot(io) if driver["version"] else None
    return found and {**found, "driver": driver["version"]}
