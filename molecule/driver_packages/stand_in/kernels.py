#!/usr/bin/env python3
"""STAND-IN for Ubuntu's archive: kernels, and the modules that Ubuntu builds for them, with its names and dependencies.

Usage: kernels.py FOLDER

Builds packages with dpkg-deb and three states of an archive, FOLDER/first to FOLDER/third; FOLDER/www points at the
one that apt reads, the first. In the second a kernel has come out, with its module for the same driver; in the third
another one, whose module needs a newer driver. A kernel is a file in /boot, and a module an ELF file that modinfo reads
and no kernel loads. Dependencies are like those in the indices of Ubuntu 24.04 in November 2026: a package that follows
new kernels (linux-image-generic, linux-modules-nvidia-580-server-open-generic) names one kernel, and a module is tied
to a version of nvidia-kernel-common.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable
from email.utils import formatdate
from pathlib import Path

from repository import (  # type: ignore[import-not-found]  # it lies beside this file on the node
    ARCHITECTURE,
    command,
    module_file,
    package,
)

ORIGIN = "stand-in of the scenario driver_packages"
PREFIX = "linux-modules-nvidia-580-server-open"
DRIVERS = ("580.95.05", "580.105.08")
KERNELS = (("6.8.0-149", DRIVERS[0]), ("6.8.0-151", DRIVERS[0]), ("6.8.0-152", DRIVERS[1]))


def kernel(folder: Path, abi: str, driver: str) -> None:
    """Build a kernel, its module, and the packages that follow both."""
    release, version = f"{abi}-generic", f"{abi}.{abi.rpartition('-')[2]}"
    depmod = {"postinst": f"depmod {release}\n", "postrm": f"depmod {release} || true\n"}
    boot = {f"boot/vmlinuz-{release}": "a stand-in\n", f"lib/modules/{release}/modules.order": ""}
    package(folder, f"linux-image-{release}", version, files=boot, scripts=depmod)
    package(folder, "linux-image-generic", version, depends=f"linux-image-{release}")
    common = f"nvidia-kernel-common-580-server (= {driver}-0ubuntu0)"
    package(
        folder,
        f"{PREFIX}-{release}",
        version,
        depends=f"linux-image-{release}, {common}",
        files={f"lib/modules/{release}/kernel/nvidia-580-server-open/nvidia.ko": module_file(driver, "Dual MIT/GPL")},
        scripts=depmod,
    )
    package(folder, f"{PREFIX}-generic", version, depends=f"{PREFIX}-{release} (= {version}), {common}")


def driver(folder: Path, version: str) -> None:
    """Build what of a driver is not for one kernel."""
    full = f"{version}-0ubuntu0"
    package(folder, "nvidia-kernel-common-580-server", full)
    common = f"nvidia-kernel-common-580-server (= {full})"
    package(folder, "nvidia-headless-no-dkms-580-server-open", full, depends=common)
    package(folder, "nvidia-utils-580-server", full)


def archive(folder: Path, files: Iterable[Path]) -> None:
    """Write one state: a flat repository with an index and an origin, which unattended-upgrades goes by."""
    folder.mkdir(parents=True)
    stanzas = []
    for file in files:
        shutil.copy(file, folder)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        fields = command("dpkg-deb", "--field", file)
        stanzas.append(f"{fields}Filename: ./{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n")
    text = "\n".join(stanzas)
    folder.joinpath("Packages").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    folder.joinpath("Release").write_text(
        f"Origin: {ORIGIN}\nLabel: {ORIGIN}\nDate: {formatdate(usegmt=True)}\nArchitectures: {ARCHITECTURE}\n"
        f"SHA256:\n {digest} {len(text.encode())} Packages\n"
    )


def main() -> None:
    """Rebuild everything."""
    root = Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    known: list[Path] = []
    newest = ""
    for state, (abi, version) in zip(("first", "second", "third"), KERNELS):
        built = root / "built" / state
        built.mkdir(parents=True)
        kernel(built, abi, version)
        if version != newest:
            driver(built, version)
        newest = version
        known += sorted(built.glob("*.deb"))
        archive(root / state, known)
    shutil.rmtree(root / "built")
    (root / "www").symlink_to("first")


if __name__ == "__main__":
    main()
