# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that looks at a host's network: two calls of ``ip`` at most, the rest from sysfs. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ansible_collections.swarmspeed.cluster.plugins.module_utils._command_io import (
    CommandResult,
    find_program,
    run_program,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._gpu_io import link_name

IP_TIMEOUT = 20.0
"""Seconds."""


class FabricIO(Protocol):
    """What gathering may ask of a host; tests hand in a fake."""

    def ip(self, *arguments: str) -> CommandResult | None:
        """Run ``ip`` (iproute2), or return None where it is not installed."""

    def interface(self, name: str) -> dict[str, Any]:
        """Return what sysfs says of an interface: ``speed`` and ``driver`` as text, ``hardware`` as bool."""

    def infiniband(self) -> list[dict[str, Any]]:
        """Return RDMA devices: ``name``, ``interfaces``, ``numa_node``, and ``ports`` with sysfs' own texts."""


class SystemFabricIO:
    """This host. ``root`` stands before every path read and exists for tests."""

    def __init__(self, root: str = "/") -> None:
        self._class = Path(root) / "sys/class"

    def ip(self, *arguments: str) -> CommandResult | None:
        program = find_program("ip")
        return run_program([program, *arguments], IP_TIMEOUT) if program else None

    def interface(self, name: str) -> dict[str, Any]:
        directory = self._class / "net" / name
        return {
            "speed": _read(directory / "speed"),
            "driver": link_name(directory / "device/driver"),
            "hardware": (directory / "device").exists(),
        }

    def infiniband(self) -> list[dict[str, Any]]:
        return [
            {
                "name": device.name,
                "interfaces": [entry.name for entry in _entries(device / "device/net")],
                "numa_node": _read(device / "device/numa_node"),
                "ports": [
                    {
                        "port": port.name,
                        **{key: _read(port / key) for key in ("state", "phys_state", "rate", "link_layer")},
                    }
                    for port in _entries(device / "ports")
                ],
            }
            for device in _entries(self._class / "infiniband")
        ]


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    # sysfs answers EINVAL for the speed of an interface that is down or has none.
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
