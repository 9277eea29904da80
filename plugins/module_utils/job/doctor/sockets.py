# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Readers of TCP sockets: the kernel's answers over netlink (sock_diag(7)), and /proc/PID/net/tcp.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from typing import Any

STATES = (
    *("", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT"),
    *("LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV"),
)
DUMP, DONE, ERROR = 20, 3, 2
"""SOCK_DIAG_BY_FAMILY, NLMSG_DONE, NLMSG_ERROR."""
_INFO = 2
_MESSAGE = struct.Struct("=BBBB")
_COUNTS = struct.Struct("=IIIII")
_RETRANS, _SINCE_ACK, _ACKED, _SEGMENTS = 2, 56, 120, 136
"""Where struct tcp_info has them (linux/tcp.h)."""


def request(family: int) -> bytes:
    """Return the request for all TCP sockets of a family, with tcp_info."""
    body = struct.pack("=BBBBI", family, 6, 1 << (_INFO - 1), 0, 0xFFFFFFFF) + bytes(48)
    return struct.pack("=IHHII", 16 + len(body), DUMP, 0x301, 1, 0) + body


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each message of netlink."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("=IH", data)
        if length < 16 or length > len(data):
            return
        yield kind, data[16:length]
        data = data[(length + 3) & ~3 :]


def socket_of(body: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return inode and description of a socket in a message."""
    if len(body) < 72:
        return None
    family, state, _timer, retransmits = _MESSAGE.unpack_from(body)
    source, target = struct.unpack_from("!HH", body, 4)
    _expires, receive, send, _uid, inode = _COUNTS.unpack_from(body, 52)
    size = 4 if family == 2 else 16
    found = {
        "local": [plain(body[8 : 8 + size]), source],
        "remote": [plain(body[24 : 24 + size]), target],
        "state": STATES[state] if state < len(STATES) else "",
        "send": send,
        "receive": receive,
        "retransmits": retransmits,
    }
    rest = body[72:]
    while len(rest) >= 4:
        length, kind = struct.unpack_from("=HH", rest)
        if length < 4 or length > len(rest):
            break
        if kind == _INFO:
            found.update(_information(rest[4:length]))
        rest = rest[(length + 3) & ~3 :]
    return inode, found


def _information(info: bytes) -> dict[str, int]:
    if len(info) < _SEGMENTS + 8:  # before Linux 4.2
        return {}
    acknowledged, received = struct.unpack_from("=QQ", info, _ACKED)
    out, into = struct.unpack_from("=II", info, _SEGMENTS)
    return {
        "retransmits": info[_RETRANS],
        "since_ack": struct.unpack_from("=I", info, _SINCE_ACK)[0],
        "acknowledged": acknowledged,
        "received": received,
        "segments_out": out,
        "segments_in": into,
    }


def plain(packed: bytes) -> str:
    """Return an address; one of IPv4 within IPv6 as that of IPv4."""
    address = ipaddress.ip_address(packed)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def listed(content: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield inode and description of each socket in the content of /proc/PID/net/tcp or tcp6."""
    for line in content.splitlines()[1:]:
        words = line.split()
        try:
            state = int(words[3], 16)
            send, _colon, receive = words[4].partition(":")
            yield (
                int(words[9]),
                {
                    "local": _place(words[1]),
                    "remote": _place(words[2]),
                    "state": STATES[state] if state < len(STATES) else "",
                    "send": int(send, 16),
                    "receive": int(receive, 16),
                    "retransmits": int(words[6], 16),
                },
            )
        except (IndexError, ValueError):
            continue


def _place(word: str) -> list[str | int]:
    digits, _colon, port = word.partition(":")
    packed = bytes.fromhex(digits)
    # Each 32 bits in the order of the machine; all that Linux runs GPUs on is little-endian.
    turned = b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
    return [plain(turned), int(port, 16)]
