# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders of the operating system, in which this collection has no folder."""

from __future__ import annotations

import os.path

_SHARED = (
    *("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/snap", "/srv", "/tmp", "/var", "/usr/local"),
    *(f"/var/{name}" for name in ("backups", "cache", "lib", "local", "log", "mail", "opt", "spool", "tmp")),
    *("/etc/ssh", "/etc/docker", "/etc/systemd", "/etc/apt", "/root/.ssh", "/var/lib/swarmspeed"),
)
"""What lies below them may be a user's; they themselves, and what is above them, are the system's."""
_WHOLE = (
    *("/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/run", "/sbin", "/sys"),
    *(f"/usr/{name}" for name in ("bin", "games", "include", "lib", "lib64", "libexec", "sbin", "share", "src")),
    *(f"/var/{name}" for name in ("lock", "run")),
    *(f"/var/lib/{name}" for name in ("apt", "containerd", "docker", "dpkg", "swarmspeed", "systemd")),
)
"""They and all that lies below them are the system's."""


def normal(path: str) -> str:
    """Return an absolute path without ``.``, ``..`` and needless slashes."""
    return "/" + os.path.normpath(path).lstrip("/")


def is_below(path: str, folder: str) -> bool:
    """Whether a path, in its normal form, is a folder or lies in it."""
    return path == folder or path.startswith("/" if folder == "/" else f"{folder}/")


def system_folder(path: str) -> str:
    """Return which folder of the system a path is, contains or lies in; empty where it is a place for ours."""
    place = normal(path)
    for folder in _WHOLE:
        if is_below(place, folder):
            return folder
    return place if any(is_below(folder, place) for folder in (*_SHARED, *_WHOLE)) else ""
