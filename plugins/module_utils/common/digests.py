# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""SHA-256 of files, worked out in pieces while they are read; keyed digests of secrets.

A plain SHA-256 of a file that holds a short password gives the password away by brute force. A keyed one can be
compared with the key of the run, and is useless without it. Also part of the supervisor's archive: Python 3.8 or later.
"""

from __future__ import annotations

import hashlib
import hmac
import sys
from typing import IO, Any, Callable

CHUNK = 1 << 20


def keyed_digest(data: bytes, key: str) -> str:
    """Return the HMAC-SHA256 of data in hexadecimal."""
    return hmac.new(key.encode(), data, hashlib.sha256).hexdigest()


class Hashed:
    """A file whose bytes pass through a digest as they are read, so that it is of the very bytes that are used."""

    def __init__(self, file: IO[bytes], alive: Callable[[], Any] = lambda: None) -> None:
        """``alive`` is called after each piece."""
        self._file, self._alive, self._worked = file, alive, hashlib.sha256()
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self.add(chunk)
        self._alive()
        return chunk

    def add(self, chunk: bytes) -> None:
        """Count bytes that were read elsewhere."""
        self._worked.update(chunk)
        self.size += len(chunk)

    def read_all(self, most: int = sys.maxsize) -> Hashed:
        """Read to the end, or so many bytes: a file may grow as fast as it is read."""
        while self.size < most and self.read(min(CHUNK, most - self.size)):
            pass
        return self

    @property
    def sha256(self) -> str:
        """That of all bytes so far, in hexadecimal."""
        return self._worked.hexdigest()
