# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The public half of a private key of OpenSSH, which stands in it unencrypted. Pure.

Source: PROTOCOL.key of OpenSSH.
"""

from __future__ import annotations

import base64
import binascii
import struct

_BEGIN, _END = b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"


def public_half(data: bytes) -> str | None:
    """Return type and key as they begin a line of a ``.pub`` file, or None where the data is not such a private key."""
    begin, end = data.find(_BEGIN), data.find(_END)
    if begin < 0 or end < begin:
        return None
    try:
        blob = base64.b64decode(b"".join(data[begin + len(_BEGIN) : end].split()), validate=True)
        if not blob.startswith(_MAGIC):
            return None
        rest = blob[len(_MAGIC) :]
        for dummy in ("cipher", "key derivation", "its options"):
            rest = _string(rest)[1]
        if struct.unpack(">I", rest[:4])[0] != 1:
            return None
        key = _string(rest[4:])[0]
        return f"{_string(key)[0].decode('ascii')} {base64.b64encode(key).decode('ascii')}"
    except (binascii.Error, struct.error, UnicodeDecodeError):
        return None


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return the string that the data begins with, and what follows it. Raises ``struct.error`` where it is cut off."""
    (length,) = struct.unpack(">I", data[:4])
    if length > len(data) - 4:
        raise struct.error("cut off")
    return data[4 : 4 + length], data[4 + length :]
