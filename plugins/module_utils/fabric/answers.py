# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What two ends of a pair say to one another, over TCP and in single datagrams; each proves that it is of the same run.

Runs where peer.py runs, and under the same rules.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
import time
from typing import Any

CONNECT = 4.0
"""Seconds for a connection."""
MAGIC = b"swarmspd"
"""In each of our datagrams, behind 8 zero bytes: VXLAN drops a packet whose first byte lacks its flag 8."""
SO_ATTACH_FILTER = 26


def mac(token: str, *words: str) -> str:
    """What only a process of the same run can say."""
    return hmac.new(token.encode(), "\n".join(words).encode(), hashlib.sha256).hexdigest()


def listen(address: str, ports: list[int]) -> socket.socket:
    """Listen on the highest free port of a range: jobs look for theirs from below. On any where none is free."""
    for port in [*range(ports[1], ports[0] - 1, -1), 0]:
        with contextlib.suppress(OSError):
            return socket.create_server((address, port), backlog=128)
    raise OSError(f"no port can be listened on at {address}")


class Responder:
    """Answers those who know the token, with this node's name and time."""

    def __init__(self, node: str, token: str, address: str, ports: list[int]) -> None:
        self._node, self._token = node, token
        self._server = listen(address, ports)
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection = self._server.accept()[0]
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError), connection:
            connection.settimeout(CONNECT)
            with connection.makefile("rb") as lines:
                while True:
                    requested = json.loads(lines.readline(1024))
                    if not hmac.compare_digest(requested["mac"], mac(self._token, "ask", requested["nonce"])):
                        return
                    proof = mac(self._token, "answer", requested["nonce"], self._node)
                    answer = {"node": self._node, "mac": proof, "time": time.time()}
                    connection.sendall(json.dumps(answer).encode() + b"\n")


def ask(address: str, port: int, node: str, token: str, seconds: float) -> dict[str, Any]:
    """Connect and have the other end prove who it is: best round trip in ms of three, and how its clock is apart."""
    best: dict[str, Any] = {}
    with socket.create_connection((address, port), timeout=seconds) as connection, connection.makefile("rb") as lines:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _turn in range(3):
            nonce = secrets.token_hex(16)
            question = json.dumps({"nonce": nonce, "mac": mac(token, "ask", nonce)}).encode() + b"\n"
            began, before = time.monotonic(), time.time()
            connection.sendall(question)
            line = lines.readline(4096)
            trip = time.monotonic() - began
            try:
                answer = json.loads(line)
                known = hmac.compare_digest(answer["mac"], mac(token, "answer", nonce, node))
            except (ValueError, KeyError, TypeError):
                known = False
            if not known:
                raise ConnectionError(f"something else than {node} answers at {address} port {port}")
            if not best or trip * 1000 < best["ms"]:
                best = {"ms": round(trip * 1000, 3), "offset": round(answer["time"] - before - trip / 2, 4)}
    return best


def magic_filter() -> bytes:
    """A filter for the kernel (bpf(4)) that lets only our datagrams through: VXLAN's of a running job are many."""
    word = int.from_bytes(MAGIC[:4], "big")
    program = [
        (0xB1, 0, 0, 0),  # ldxb 4*([0]&0xf): X is the length of the IP header
        (0x40, 0, 0, 16),  # ld [x+16]: behind the UDP header and 8 zero bytes
        (0x15, 0, 1, word),  # jeq
        (0x06, 0, 0, 0xFFFF),  # ret: all of it
        (0x06, 0, 0, 0),  # ret: nothing
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)


def datagram(token: str, source: str, target: str, port: int) -> bytes:
    return bytes(8) + MAGIC + json.dumps([source, mac(token, "udp", source, target, str(port))]).encode()


class Listener:
    """Sees our datagrams to ports that the kernel or the engine own, behind the host's firewall (raw(7))."""

    def __init__(self, node: str, token: str, ports: list[int]) -> None:
        self._node, self._token, self._ports = node, token, ports
        self.seen: dict[str, list[int]] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        steps = ctypes.create_string_buffer(magic_filter())
        program = struct.pack("HP", len(magic_filter()) // 8, ctypes.addressof(steps))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError, TypeError, IndexError):
                packet = self._socket.recv(4096)
                header = (packet[0] & 0xF) * 4
                port = struct.unpack("!H", packet[header + 2 : header + 4])[0]
                source, proof = json.loads(packet[header + 24 :])
                good = hmac.compare_digest(proof, mac(self._token, "udp", source, self._node, str(port)))
                if good and port in self._ports and port not in self.seen.setdefault(source, []):
                    self.seen[source].append(port)
