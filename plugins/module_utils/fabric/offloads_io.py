# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a network card does instead of the processor, as ``ethtool -k`` shows it, read from the kernel itself.

ethtool need not be installed, and no process is started for each interface. The structures are those of
include/uapi/linux/ethtool.h; these requests need no privilege (net/ethtool/ioctl.c).
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

WANTED = (
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "rx-udp_tunnel-port-offload",
    "tx-tcp-segmentation",
    "rx-gro",
)
"""The features that decide how fast a VXLAN overlay is: without the first, the processor cuts every packet itself."""

_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSSET_INFO, _GFEATURES = 0x1B, 0x37, 0x3A
_SET_FEATURES = 4
_NAME = 32
"""Bytes of a feature's name."""


class Features:
    """Features of interfaces. Their names are the same for all, so they are queried once."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def of(self, interface: str) -> dict[str, bool] | None:
        """Return which of the wanted features are on, or None where the kernel does not say."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                self._names = self._names or _names(asking, interface)
                on = _active(asking, interface, len(self._names))
        except (OSError, ValueError):  # no such interface, or a name that is none
            return None
        return {name: on[number] for number, name in enumerate(self._names) if name in WANTED}


def _ask(asking: socket.socket, interface: str, request: bytes) -> bytes:
    buffer = ctypes.create_string_buffer(request, len(request))
    name = interface.encode()
    if len(name) > 15:
        raise ValueError(interface)
    fcntl.ioctl(asking, _SIOCETHTOOL, struct.pack("16sP16x", name, ctypes.addressof(buffer)))
    return buffer.raw


def _names(asking: socket.socket, interface: str) -> list[str]:
    answer = _ask(asking, interface, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _SET_FEATURES, 0))
    (count,) = struct.unpack_from("=I", answer, 16)
    answer = _ask(asking, interface, struct.pack("=III", _GSTRINGS, _SET_FEATURES, count) + bytes(count * _NAME))
    raw = [answer[12 + number * _NAME : 12 + (number + 1) * _NAME] for number in range(count)]
    return [name.split(b"\0", 1)[0].decode("ascii", "replace") for name in raw]


def _active(asking: socket.socket, interface: str, count: int) -> list[bool]:
    blocks = -(-count // 32)
    answer = _ask(asking, interface, struct.pack("=II", _GFEATURES, blocks) + bytes(blocks * 16))
    # Of each block of 32: available, requested, active, never changed.
    words = [struct.unpack_from("=I", answer, 8 + block * 16 + 8)[0] for block in range(blocks)]
    return [bool(words[number // 32] >> (number % 32) & 1) for number in range(count)]
