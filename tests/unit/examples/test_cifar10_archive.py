# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""CIFAR-10's binary version, as examples/cifar10/archive.py reads and writes it."""

from __future__ import annotations

import importlib.util
import tarfile
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parents[3] / "examples/cifar10/archive.py"
NAMES = [f"name{number}" for number in range(10)]


@pytest.fixture(scope="module")
def archive() -> Any:
    spec = importlib.util.spec_from_file_location("cifar10_archive", PLACE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records(labels: list[int]) -> bytes:
    return b"".join(bytes([label]) + bytes([label]) * 3072 for label in labels)


@pytest.fixture
def path(tmp_path: Path, archive: Any) -> Path:
    made = tmp_path / "data" / "cifar-10-binary.tar.gz"
    archive.write(made, records([0, 1, 2, 3, 4, 5, 6]), records([7, 8, 9]), NAMES)
    return made


def test_what_is_written_is_read_packed_and_unpacked(archive: Any, path: Path, tmp_path: Path) -> None:
    files = archive.read(path)
    assert b"".join(files[name] for name in archive.TRAIN) == records([0, 1, 2, 3, 4, 5, 6])
    assert files[archive.TEST] == records([7, 8, 9]) and archive.names(files) == NAMES
    with tarfile.open(path) as packed:
        assert sorted(packed.getnames()) == sorted(f"cifar-10-batches-bin/{name}" for name in archive.FILES)
        packed.extractall(tmp_path, filter="data")
    assert archive.read(tmp_path) == archive.read(tmp_path / "cifar-10-batches-bin") == files
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        (
            "test_batch.bin",
            b"\0" * 3000,
            "test_batch.bin in {} is not of CIFAR-10's binary version: 3000 bytes are no whole",
        ),
        ("data_batch_3.bin", b"", "data_batch_3.bin in {} is not of CIFAR-10's binary version: 0 bytes are no whole"),
        (
            "data_batch_1.bin",
            b"\x0a" + b"\0" * 3072,
            "data_batch_1.bin in {} has a label above 9. Remedy: fetch it again",
        ),
        (
            "data_batch_2.bin",
            None,
            "{} has no data_batch_2.bin. Remedy: give --data the folder cifar-10-batches-bin or",
        ),
    ],
)
def test_what_is_damaged_is_named(archive: Any, path: Path, name: str, content: bytes | None, text: str) -> None:
    tmp_path = path.parent
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path, filter="data")
    file = tmp_path / "cifar-10-batches-bin" / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(SystemExit) as error:
        archive.read(tmp_path)
    assert str(error.value).startswith(f"cifar10: {text.format(tmp_path)}")


def test_what_is_no_archive_is_named(archive: Any, path: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.tar.gz"
    half.write_bytes(path.read_bytes()[:200])
    for wrong in (half, tmp_path / "gone.tar.gz"):
        with pytest.raises(SystemExit, match=f"cifar10: {wrong} cannot be read: .*Remedy: give --data the archive"):
            archive.read(wrong)
