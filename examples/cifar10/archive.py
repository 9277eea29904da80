# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""CIFAR-10's binary version, read and written: cifar-10-binary.tar.gz as it is published, or its folder unpacked.

Six files of records, each a byte of label and then 1,024 bytes of red, green and blue, and batches.meta.txt with the
names of the classes (https://www.cs.toronto.edu/~kriz/cifar.html).
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

RECORD = 1 + 3 * 32 * 32
CLASSES = 10
FOLDER = "cifar-10-batches-bin"
TRAIN = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST = "test_batch.bin"
NAMES = "batches.meta.txt"
FILES = [*TRAIN, TEST, NAMES]


def read(path: Path) -> dict[str, bytes]:
    """Return the files by name, of the archive or of the folder."""
    try:
        found = _unpacked(path) if path.is_dir() else _packed(path)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise SystemExit(
            f"cifar10: {path} cannot be read: {error}. Remedy: give --data the archive or its folder"
        ) from None
    lacking = [name for name in FILES if name not in found]
    if lacking:
        raise SystemExit(
            f"cifar10: {path} has no {', '.join(lacking)}. Remedy: give --data the folder {FOLDER} or the archive that "
            "holds it, cifar-10-binary.tar.gz"
        )
    for name in (*TRAIN, TEST):
        if not found[name] or len(found[name]) % RECORD:
            raise SystemExit(
                f"cifar10: {name} in {path} is not of CIFAR-10's binary version: {len(found[name])} bytes are no whole "
                f"number of records of {RECORD}. Remedy: fetch it again"
            )
        if max(found[name][::RECORD]) >= CLASSES:
            raise SystemExit(f"cifar10: {name} in {path} has a label above {CLASSES - 1}. Remedy: fetch it again")
    return found


def names(files: Mapping[str, bytes]) -> list[str]:
    """Return the names of the classes, in the order of their labels."""
    found = files[NAMES].decode("utf-8", "replace").split()
    return [*found, *(f"class{number}" for number in range(len(found), CLASSES))][:CLASSES]


def write(path: Path, train: bytes, test: bytes, classes: list[str]) -> None:
    """Write an archive of records in that form, beside its place and then there: no one sees half of one."""
    count = len(train) // RECORD
    edges = [number * count // len(TRAIN) * RECORD for number in range(len(TRAIN) + 1)]
    files = {name: train[start:end] for name, start, end in zip(TRAIN, edges, edges[1:])}
    files = {**files, TEST: test, NAMES: ("\n".join(classes) + "\n\n").encode()}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with tarfile.open(part, "w:gz", compresslevel=1) as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    part.replace(path)


def _unpacked(folder: Path) -> dict[str, bytes]:
    if (folder / FOLDER).is_dir():
        folder = folder / FOLDER
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}


def _packed(path: Path) -> dict[str, bytes]:
    with tarfile.open(path, "r:*") as packed:
        members = {Path(member.name).name: member for member in packed if member.isfile()}
        return {name: packed.extractfile(members[name]).read() for name in FILES if name in members}  # type: ignore[union-attr]  # regular files
