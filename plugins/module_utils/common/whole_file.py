# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files that are written whole or stay as they were. Where others can write, untrusted_folder.py does the same."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PART = ".part"
"""What the name of a file ends with until it is whole."""


@contextlib.contextmanager
def whole_file(path: Path, mode: int = 0o600, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Yield a new file beside ``path``, by a name that no one can foresee; it takes the place of what has the name.

    It is removed where something is raised. ``durable``: also after a loss of power it is the former one, or this one.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=PART, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def write_whole(path: Path, text: str) -> None:
    """Write a file for this account alone. Its folder exists."""
    with whole_file(path) as file:
        file.write(text.encode())
