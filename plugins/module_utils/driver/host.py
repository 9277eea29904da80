# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host reports of its NVIDIA driver beyond the GPUs: packages, kernel modules, what is unfinished or in use.

Pure parsers of ``dpkg-query``, ``dkms status``, ``modinfo``, ``systemctl show`` and ``mokutil``, and the order in which
they are asked. Formats: dpkg-query(1), dkms(8), modinfo(8), systemctl(1), mokutil(1).
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from ..common.command_io import CommandResult
from .next_boot import gather_next_boot, parse_modinfo
from .sources import as_dicts, parse_sources

SERVICES = ("nvidia-persistenced.service", "nvidia-fabricmanager.service")
DISKS = ("/usr", "/var", "/boot")
MOK_KEYS = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")
"""The certificates of the keys with which DKMS signs: dkms(8), MODULE SIGNING; Ubuntu's dkms takes that of its shim."""

_UNITS = ("/usr/lib/systemd/system", "/lib/systemd/system")

_DRIVER = re.compile(
    r"(nvidia-(?!container|docker|ctk|cuda-toolkit|cuda-dev|cudnn|openjdk|texture)"
    r"|libnvidia-(?!container)"
    r"|firmware-nvidia-|cuda-drivers|xserver-xorg-video-nvidia|linux-(modules|objects|signatures)-nvidia-"
    r"|(libcuda1|libcudadebugger1|libnvcuvid1|libnvoptix1)$)"
)
_IMAGE = re.compile(r"linux-image-(?!unsigned|extra)(?P<flavour>[a-z].*)$")
_UNFINISHED = "UFHWt"
"""dpkg's states: unpacked, half-configured, half-installed, triggers awaited or pending."""


class DriverIO(Protocol):
    """What may be read from a host; tests hand in a fake."""

    def read(self, path: str) -> str:
        """Return a file's text, empty where it cannot be read."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted; none where it cannot be read."""

    def exists(self, path: str) -> bool:
        """Return whether something is there, symbolic links followed."""

    def free(self, path: str) -> int | None:
        """Return the free bytes at a path, or None."""

    def filesystem(self, path: str) -> int | None:
        """Return a number that is the same for all paths of one file system, or None."""

    def users(self) -> list[str] | None:
        """Return ``name (pid)`` of each process that has an NVIDIA device open, or None where not all can be seen."""

    def run(self, *command: str) -> CommandResult | None:
        """Run a reading command, or return None where it is not installed."""


def is_driver_package(name: str) -> bool:
    """Return whether a package is part of the driver: neither CUDA's toolkit nor the container toolkit is."""
    return _DRIVER.match(name) is not None


def parse_packages(text: str) -> dict[str, dict[str, Any]]:
    """Read lines ``name<TAB>status<TAB>version``: every package whose files are there."""
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        name, dummy, rest = line.partition("\t")
        status, dummy, version = rest.partition("\t")
        flags = f"{status.strip()}   "
        if flags[1] in " nc":  # not installed; or only its configuration is left
            continue
        found[name] = {
            "version": version.strip() or None,
            "held": flags[0] == "h",
            "finished": flags[1] not in _UNFINISHED and flags[2] == " ",
        }
    return found


def parse_dkms(text: str) -> list[dict[str, str]]:
    """Read ``dkms status`` of version 3 (``nvidia/580.1, 6.1.0, x86_64: installed``) and 2 (``nvidia, 470.1, …``)."""
    found = []
    for line in text.splitlines():
        left, dummy, reported = line.rpartition(":")
        parts = [part.strip() for part in left.replace("/", ",", 1).split(",")]
        state = reported.strip().split(" ")[0]
        if len(parts) >= 2 and parts[0] and parts[1] and state:
            kernel = parts[2] if len(parts) > 2 else ""  # one that is only added is for none yet
            found.append({"module": parts[0], "version": parts[1], "kernel": kernel, "state": state})
    return found


def parse_services(text: str) -> dict[str, dict[str, Any]]:
    """Read the blocks of ``systemctl show``; a unit that is not installed is left out."""
    found: dict[str, dict[str, Any]] = {}
    for block in text.split("\n\n"):
        fields = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if fields.get("Id") and fields.get("LoadState") == "loaded":
            found[fields["Id"]] = {
                "active": fields.get("ActiveState") == "active",
                "state": fields.get("UnitFileState") or None,
            }
    return found


def gather_driver(io: DriverIO, kernel: str, *, secure_boot: bool | None) -> dict[str, Any]:
    """Return what ``node_facts`` keeps as ``driver``, for the kernel that the module is wanted for."""
    listed = io.run("dpkg-query", "-W", "-f", "${Package}\t${db:Status-Abbrev}\t${Version}\n")
    packages = parse_packages(listed.stdout) if listed is not None else {}
    dkms = parse_dkms(_printed(io.run("dkms", "status")))
    return {
        "kernel": kernel,
        "kernel_there": io.exists(f"/lib/modules/{kernel}"),
        "machine_id": io.read("/etc/machine-id").strip() or None,
        "boot_id": io.read("/proc/sys/kernel/random/boot_id").strip() or None,
        "packages": {name: found for name, found in packages.items() if is_driver_package(name)},
        "image_flavours": sorted(match["flavour"] for match in map(_IMAGE.match, packages) if match),
        "kernel_packages": {name: found for name, found in packages.items() if _IMAGE.match(name)},
        "unfinished": sorted(name for name, found in packages.items() if not found["finished"]),
        "interrupted": bool(io.names("/var/lib/dpkg/updates")),
        "headers": _headers(io, kernel),
        "module": _module(io, kernel, dkms),
        "next_boot": gather_next_boot(io),
        "dkms": [entry for entry in dkms if entry["module"].startswith("nvidia")],
        "mok_enrolled": _mok_enrolled(io) if secure_boot else None,
        "mok_keys": [key for key in MOK_KEYS if io.exists(key)] if secure_boot else [],
        "umad": io.exists("/sys/module/ib_umad"),
        "persistence_off": _persistence_off(io),
        "installer": _installer(io, packages),
        "users": io.users(),
        "services": parse_services(
            _printed(io.run("systemctl", "show", "-p", "Id,LoadState,ActiveState,UnitFileState", *SERVICES))
        ),
        "sources": as_dicts(parse_sources(_source_files(io))),
        "disk": {
            path: {"free_bytes": io.free(path), "filesystem": io.filesystem(path)} for path in DISKS if io.exists(path)
        },
    }


def _printed(answer: CommandResult | None) -> str:
    return answer.stdout if answer is not None else ""


def _headers(io: DriverIO, kernel: str) -> dict[str, Any]:
    """``available`` is None where apt has no lists, and so does not know."""
    package = f"linux-headers-{kernel}"
    if io.exists(f"/lib/modules/{kernel}/build/Makefile"):
        return {"package": package, "installed": True, "available": None}
    known = any(name.endswith(("_Packages", "_Packages.lz4")) for name in io.names("/var/lib/apt/lists"))
    answer = io.run("apt-cache", "show", "--no-all-versions", package) if known else None
    return {
        "package": package,
        "installed": False,
        "available": None if answer is None else f"Package: {package}" in answer.stdout.splitlines(),
    }


def _module(io: DriverIO, kernel: str, dkms: list[dict[str, str]]) -> dict[str, Any] | None:
    # Debian names its modules nvidia-current and the like; an alias for nvidia comes with another package.
    names = dict.fromkeys(["nvidia", *(entry["module"] for entry in dkms if entry["module"].startswith("nvidia"))])
    for name in names:
        found = parse_modinfo(_printed(io.run("modinfo", "-k", kernel, name)))
        if found is not None:
            return found
    return None


def _mok_enrolled(io: DriverIO) -> bool | None:
    """Return whether the firmware trusts the key with which DKMS signs here; None where that cannot be queried."""
    for key in MOK_KEYS:
        if not io.exists(key):
            continue
        answer = io.run("mokutil", "--test-key", key)
        if answer is None:
            return None
        if "is already enrolled" in answer.text:
            return True
    return False


def _persistence_off(io: DriverIO) -> bool:
    """Return whether the packaged unit starts the persistence daemon with persistence mode off, as Ubuntu's does."""
    units = (io.read(f"{folder}/{SERVICES[0]}") for folder in ("/etc/systemd/system", *_UNITS))
    starts = re.findall(r"^ExecStart=(.+)$", next(filter(None, units), ""), re.MULTILINE)
    return any("--no-persistence-mode" in start.split() for start in starts)


def _installer(io: DriverIO, packages: dict[str, dict[str, Any]]) -> str | None:
    """Return the uninstaller that NVIDIA's own installer (the .run file) left behind."""
    path = "/usr/bin/nvidia-uninstall"
    return path if io.exists(path) and "nvidia-installer" not in packages else None


def _source_files(io: DriverIO) -> dict[str, str]:
    directory = "/etc/apt/sources.list.d"
    named = [f"{directory}/{name}" for name in io.names(directory) if name.endswith((".list", ".sources"))]
    return {path: io.read(path) for path in ["/etc/apt/sources.list", *named]}
