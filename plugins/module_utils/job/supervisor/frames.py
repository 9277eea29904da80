# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The bytes on a channel between two supervisors: a mutual proof of the shared secret, then authenticated frames.

Part of the supervisor's archive: standard library, Python 3.8 or later. No sockets here.

Handshake, each part of a fixed length, so that nothing a stranger sends is ever parsed:

    leader   → follower  challenge  magic (4), attempt (4), nonce (32)
    follower → leader    hello      SHA-256 of the node's name (32), nonce (32), proof (32)
    leader   → follower  proof (32)

Both proofs and both keys come from the secret by HKDF (RFC 5869, SHA-256) with both nonces as salt, and are bound to
the run, the attempt, the node's name and the direction. So a proof or a frame of another connection, run or node, or
one that is sent back to who made it, does not verify.

Frame: length of the payload (4), HMAC-SHA256 (32), payload. The HMAC covers the frame's number in its direction, which
is not sent, the length and the payload: a frame that was altered, repeated, left out, reordered, cut or inserted does
not verify. A frame costs 36 bytes more than its payload.

This gives integrity and authenticity. It gives no confidentiality, and no availability: an attacker on the path reads
everything and can cut the line.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import NamedTuple

MAGIC = b"SSC2"
NONCE = 32
MAC = 32
CHALLENGE = len(MAGIC) + 4 + NONCE
HELLO = 32 + NONCE + MAC
HEAD = 4 + MAC
"""Bytes that a frame adds to its payload."""
LONGEST = 1 << 20
"""Bytes of one payload; a longer one is refused before it is read."""


class FrameError(Exception):
    """What came is not the next frame of the other end."""


class Keys(NamedTuple):
    """What both ends derive for one connection. A proof is a key that serves nothing else."""

    follower_proof: bytes
    leader_proof: bytes
    to_leader: bytes
    to_follower: bytes


def read_secret(path: str) -> bytes:
    """A key made from a file that every node of the cluster has, and no one else."""
    return hashlib.sha256(b"swarmspeed job channel" + Path(path).read_bytes()).digest()


def derive(secret: bytes, leader_nonce: bytes, follower_nonce: bytes, *, run: str, attempt: int, node: str) -> Keys:
    """The keys of one connection: HKDF's extract over both nonces, then one expand a purpose."""
    extracted = hmac.digest(leader_nonce + follower_nonce, secret, "sha256")
    context = b"".join(
        len(part).to_bytes(4, "big") + part for part in (run.encode(), str(attempt).encode(), node.encode())
    )

    def expand(purpose: bytes) -> bytes:
        return hmac.digest(extracted, b"swarmspeed job channel 2|" + purpose + b"|" + context + b"\x01", "sha256")

    return Keys(
        follower_proof=expand(b"proof of follower"),
        leader_proof=expand(b"proof of leader"),
        to_leader=expand(b"frames to leader"),
        to_follower=expand(b"frames to follower"),
    )


def digest(node: str) -> bytes:
    """What stands for a node's name in a hello: of a fixed length, and never decoded."""
    return hashlib.sha256(node.encode()).digest()


def pack_challenge(nonce: bytes, attempt: int) -> bytes:
    return MAGIC + attempt.to_bytes(4, "big") + nonce


def unpack_challenge(data: bytes) -> tuple[bytes, int] | None:
    """Nonce and attempt; ``None`` where it is not the greeting of a leader."""
    if len(data) != CHALLENGE or not data.startswith(MAGIC):
        return None
    return data[-NONCE:], int.from_bytes(data[len(MAGIC) : -NONCE], "big")


def pack_hello(node: str, nonce: bytes, proof: bytes) -> bytes:
    return digest(node) + nonce + proof


def unpack_hello(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Digest of the name, nonce and proof."""
    return data[:32], data[32 : 32 + NONCE], data[32 + NONCE :]


def same(one: bytes, other: bytes) -> bool:
    """Whether two proofs agree, in a time that does not reveal where they differ."""
    return hmac.compare_digest(one, other)


def _mac(key: bytes, number: int, head: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + head + payload, "sha256")


class Sealer:
    """Makes the frames of one direction."""

    def __init__(self, key: bytes) -> None:
        self._key, self._number = key, 0

    def seal(self, payload: bytes) -> bytes:
        head = len(payload).to_bytes(4, "big")
        mac = _mac(self._key, self._number, head, payload)
        self._number += 1
        return head + mac + payload


class Opener:
    """Takes the frames of one direction apart. After a FrameError the connection is good for nothing."""

    def __init__(self, key: bytes) -> None:
        self._key, self._number = key, 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def begun(self) -> bool:
        """Whether a part of a frame has come and the rest has not, once ``next`` has returned ``None``."""
        return bool(self._buffer)

    def next(self) -> bytes | None:
        """The payload of the next frame; ``None`` where it has not come whole."""
        head = bytes(self._buffer[:4])
        size = int.from_bytes(head, "big")
        if len(head) < 4:
            return None
        if size > LONGEST:
            raise FrameError(f"a message of {size} bytes was announced, where {LONGEST} are the most")
        if len(self._buffer) < HEAD + size:
            return None
        mac, payload = bytes(self._buffer[4:HEAD]), bytes(self._buffer[HEAD : HEAD + size])
        if not hmac.compare_digest(mac, _mac(self._key, self._number, head, payload)):
            raise FrameError("a message was altered, repeated, left out, reordered or inserted on the way")
        self._number += 1
        del self._buffer[: HEAD + size]
        return payload
