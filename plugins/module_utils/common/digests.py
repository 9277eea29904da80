# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keyed digests of secrets: they can be compared with the key of the run, and are useless without it.

A plain SHA-256 of a file that holds a short password gives the password away by brute force.
"""

from __future__ import annotations

import hashlib
import hmac


def keyed_digest(data: bytes, key: str) -> str:
    """Return the HMAC-SHA256 of data in hexadecimal."""
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest()
