# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Digests of secrets: to be compared by who has the key of the run, and of no use to who has not.

A plain SHA-256 of a file with a short password in it gives the password away to whoever can try them all.
"""

from __future__ import annotations

import hashlib
import hmac


def keyed_digest(data: bytes, key: str) -> str:
    """Return the HMAC-SHA256 of data in hexadecimal."""
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest()
