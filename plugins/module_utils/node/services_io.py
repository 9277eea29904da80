# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that reads a host's resolv.conf, the files that name proxies and mirrors, and its kernel's ESP."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Callable, Protocol

from .services import address, esp_support, named_addresses, nameservers

PATTERNS = (
    "etc/apt/apt.conf",
    "etc/apt/apt.conf.d/*",
    "etc/apt/sources.list",
    "etc/apt/sources.list.d/*",
    "etc/environment",
    "etc/docker/daemon.json",
    "etc/systemd/system/docker.service.d/*",
    "etc/pip.conf",
    "etc/xdg/pip/pip.conf",
    "etc/gitconfig",
    "etc/swarmspeed-git-proxy.conf",
)
"""Where proxies and mirrors of apt, Docker, pip and git are written, below the root."""

RESOLVE_TIMEOUT = 2.0
"""Seconds for all names together: a name server that is down must not hold up every run."""

_LARGEST = 1 << 20
"""Bytes; a file of this kind that is larger is something else."""


class ServicesIO(Protocol):
    """What is read from a host; tests hand in a fake."""

    def text(self, path: str) -> str:
        """Return a file's text (unpacked where its name ends in .gz), empty where it cannot be read."""

    def files(self, patterns: Iterable[str]) -> dict[str, str]:
        """Return the texts of the files that match, by path."""

    def resolve(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the IPv4 addresses of each name, none where the host cannot resolve it in time."""


class SystemServicesIO:
    """This host. ``root`` stands before every path read and exists for tests."""

    def __init__(
        self, root: str = "/", lookup: Callable[..., Any] = socket.getaddrinfo, timeout: float = RESOLVE_TIMEOUT
    ) -> None:
        self._root = Path(root)
        self._lookup = lookup
        self._timeout = timeout

    def text(self, path: str) -> str:
        try:
            data = (self._root / path.lstrip("/")).read_bytes()
            return (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8", "replace")
        except (OSError, EOFError):
            return ""

    def files(self, patterns: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for pattern in patterns:
            for path in sorted(self._root.glob(pattern)):
                if path.is_file() and path.stat().st_size <= _LARGEST:
                    name = "/" + str(path.relative_to(self._root))
                    found[name] = self.text(name)
        return found

    def resolve(self, names: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in names}
        # Threads that no one waits for at the end: a lookup cannot be cut short.
        threads = [threading.Thread(target=self._ask, args=(name, found), daemon=True) for name in found]
        for thread in threads:
            thread.start()
        end = time.monotonic() + self._timeout
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return {name: list(addresses) for name, addresses in found.items()}

    def _ask(self, name: str, found: dict[str, list[str]]) -> None:
        try:
            answers = self._lookup(name, None, socket.AF_INET, socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        addresses = {address(answer[4][0]) for answer in answers}
        found[name] = sorted(item for item in addresses if item)


def gather_services(io: ServicesIO, names: Iterable[str]) -> dict[str, Any]:
    """Return ``nameservers``, ``addresses`` (by address the file that names it) and ``resolved`` (by name)."""
    servers = nameservers(io.text("/etc/resolv.conf"))
    if not servers:
        # systemd-resolved's stub listens on the host itself; those that it asks are here.
        servers = nameservers(io.text("/run/systemd/resolve/resolv.conf"))
    return {
        "nameservers": servers,
        "addresses": named_addresses(io.files(PATTERNS)),
        "resolved": io.resolve(names),
    }


def gather_esp(io: ServicesIO, kernel: str) -> bool | None:
    """Return whether the running kernel can do ESP, None where that is not known."""
    config = io.text("/proc/config.gz") or io.text(f"/boot/config-{kernel}")
    folder = f"/lib/modules/{kernel}"
    return esp_support(
        io.text("/proc/modules"), io.text(f"{folder}/modules.builtin"), io.text(f"{folder}/modules.dep"), config
    )
