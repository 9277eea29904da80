# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pieces in which files travel from the controller to the first node: archives of parts of files, written and read.

Many small files share a piece and large ones are divided, so that a transfer resumes within a file. An entry is named
by the SHA-256 of its file and where in it its bytes begin.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from ..receive import TransferError, write_all

PIECE = 128 << 20
"""Bytes of a piece. It lies on both disks for a moment."""
MOST_FILES = 4096
"""Entries of a piece."""
CHUNK = 1 << 20
_ENTRY = re.compile(r"([0-9a-f]{64})\.([0-9]{1,19})")

Slice = tuple[str, int, int]
"""SHA-256 of a file, where its bytes begin, and how many there are."""


def pieces(files: Iterable[tuple[str, int, int]], size: int = PIECE) -> Iterator[list[Slice]]:
    """Yield which bytes go into each piece. Of a file SHA-256, size and how much of it has arrived are given."""
    piece: list[Slice] = []
    room = size
    for sha256, whole, came in files:
        offset = min(came, whole)
        while offset < whole or (whole == 0 and came == 0):
            count = min(room, whole - offset)
            piece.append((sha256, offset, count))
            offset, room = offset + count, room - count
            if room == 0 or len(piece) >= MOST_FILES:
                yield piece
                piece, room = [], size
            if whole == 0:
                break
    if piece:
        yield piece


def write_piece(out: IO[bytes], piece: Iterable[Slice], paths: Mapping[str, Path]) -> None:
    """Write a piece. Raises ``OSError`` where a file has become shorter."""
    with tarfile.open(fileobj=out, mode="w") as archive:
        for sha256, offset, count in piece:
            entry = tarfile.TarInfo(f"{sha256}.{offset}")
            entry.size = count
            with paths[sha256].open("rb") as file:
                file.seek(offset)
                archive.addfile(entry, file)


def append_piece(archive: Path, folder: Path, sizes: Mapping[str, int]) -> None:
    """Append what is in a piece to the files of the spool. What it begins elsewhere than they end is refused."""
    try:
        with tarfile.open(archive, "r:") as piece:
            for entry in piece:
                named = _ENTRY.fullmatch(entry.name)
                content = piece.extractfile(entry) if named and entry.isreg() else None
                if named is None or content is None or named[1] not in sizes:
                    raise TransferError(f"a piece holds {entry.name[:80]!r}, which was not requested. {AGAIN}")
                if (folder / named[1]).exists():
                    continue
                _append(folder / f"{named[1]}.part", int(named[2]), entry.size, sizes[named[1]], content)
    except (tarfile.TarError, EOFError) as error:
        raise TransferError(f"a piece did not arrive whole ({error}). {AGAIN}") from error


AGAIN = "Remedy: run again; the transfer resumes."


def _append(path: Path, offset: int, count: int, whole: int, content: IO[bytes]) -> None:
    with path.open("ab", buffering=0) as file:
        if file.tell() != offset or offset + count > whole:
            raise TransferError(f"a piece does not continue {path.name[:12]} where it ends. {AGAIN}")
        while True:
            data = content.read(CHUNK)
            if not data:
                return
            write_all(file, data)
