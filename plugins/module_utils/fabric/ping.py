# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pings that may not be fragmented, of any size: no program for it is in every image. Python 3.8, no other package.

Sources: RFC 792 (echo), RFC 1071 (checksum); ip(7), IP_MTU_DISCOVER: with IP_PMTUDISC_PROBE packets are marked
"don't fragment", and what the kernel remembers of the path is left out, so that the answer is of this moment.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
ECHO, REPLY = 8, 0
HEADERS = 28
"""Bytes of the IP header and of ICMP's."""
SMALL = 128
"""A packet of this many bytes passes every network."""


def checksum(data: bytes) -> int:
    """The Internet checksum of an even or odd number of bytes."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def echo(size: int, mark: bytes) -> bytes:
    """An echo request that makes an IP packet of ``size`` bytes; ``mark`` (8 bytes) identifies its reply."""
    body = mark + bytes(max(0, size - HEADERS - len(mark)))
    number = os.getpid() & 0xFFFF
    unsigned = struct.pack("!BBHHH", ECHO, 0, 0, number, 1) + body
    return struct.pack("!BBHHH", ECHO, 0, checksum(unsigned), number, 1) + body


def open_socket() -> tuple[socket.socket, bool]:
    """A socket for ICMP, and whether what it receives begins with the IP header."""
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), True
    except PermissionError:  # a container without NET_RAW; icmp(7), ping_group_range
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), False


def passes(address: str, size: int, seconds: float, tries: int = 2) -> bool:
    """Whether a packet of ``size`` bytes goes to ``address`` and back unfragmented."""
    opened, raw = open_socket()
    with opened:
        opened.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        for _turn in range(tries):
            mark = secrets.token_bytes(8)
            try:
                opened.sendto(echo(size, mark), (address, 0))
            except OSError:  # EMSGSIZE: not even this end's interface takes it
                return False
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                opened.settimeout(max(0.001, until - time.monotonic()))
                try:
                    packet = opened.recv(65535)
                except OSError:
                    break
                start = (packet[0] & 0xF) * 4 if raw else 0
                if packet[start : start + 1] == bytes([REPLY]) and packet[start + 8 : start + 16] == mark:
                    return True
    return False


def largest(address: str, wanted: int, seconds: float = 0.5) -> int | str:
    """Bytes of the largest packet up to ``wanted`` that passes unfragmented; 0 where nothing is answered.

    Words where it cannot be measured.
    """
    try:
        if passes(address, wanted, 2 * seconds):
            return wanted
        if not passes(address, SMALL, 2 * seconds):
            return 0
        low, high = SMALL, wanted
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if passes(address, middle, seconds, 1) else (low, middle)
        return low
    except OSError as error:
        return f"not measured: {error.strerror}"
