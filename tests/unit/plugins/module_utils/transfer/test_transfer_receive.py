# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A spool is filled whatever happens to those who give; a damaged part is fetched once more; what came stays."""

from __future__ import annotations

import errno
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import (
    PATIENCE,
    LinkLost,
    Receiver,
    TransferError,
    write_all,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import peak_memory

DATA = bytes(range(256)) * 8
NAME = hashlib.sha256(DATA).hexdigest()


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Giver:
    """A node that gives, and after some bytes of each connection does something else."""

    def __init__(self, data: bytes = DATA, breaks: list[int | None] | None = None, refuse: str = "") -> None:
        self.data, self.breaks, self.refuse = data, list(breaks or []), refuse
        self.requested: list[int] = []

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        self.requested.append(offset)
        if self.refuse:
            yield b"X", self.refuse.encode()
            return
        until = self.breaks.pop(0) if self.breaks else None
        yield b"W", b""
        end = len(self.data) if until is None else min(len(self.data), offset + until)
        for place in range(offset, end, 100):
            yield b"D", self.data[place : min(place + 100, end)]
        if until is not None:
            raise LinkLost("the connection broke")
        yield b"E", b""

    def close(self) -> None:
        pass


def receiver(folder: Path, time: Time | None = None, **givers: Giver) -> Receiver:
    time = time or Time()
    return Receiver(folder, list(givers), givers.__getitem__, alive=lambda: None, clock=time, sleep=time.sleep)


def test_a_part_comes_from_the_nearest(tmp_path: Path) -> None:
    near, holder = Giver(), Giver()
    working = receiver(tmp_path, near=near, holder=holder)
    assert working.fetch(NAME).read_bytes() == DATA
    assert (working.received, working.resumed, working.notes) == ({"near": len(DATA)}, 0, [])
    assert (near.requested, holder.requested) == ([0], [])
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_it_goes_on_from_the_next_at_the_offset_it_has(tmp_path: Path) -> None:
    near, holder = Giver(breaks=[500]), Giver()
    working = receiver(tmp_path, near=near, holder=holder)
    assert working.fetch(NAME).read_bytes() == DATA
    assert working.received == {"near": 500, "holder": len(DATA) - 500}
    assert holder.requested == [500]
    assert working.notes == ["near: the connection broke"]


def test_an_earlier_transfer_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:700])
    giver = Giver()
    working = receiver(tmp_path, holder=giver)
    assert working.fetch(NAME).read_bytes() == DATA
    assert (giver.requested, working.resumed, working.received) == ([700], 700, {"holder": len(DATA) - 700})
    # What is whole does not travel at all; nor does it when an image has a layer twice.
    giver = Giver()
    again = receiver(tmp_path, holder=giver)
    for dummy in range(2):
        assert again.fetch(NAME).read_bytes() == DATA
    assert (giver.requested, again.resumed, again.received) == ([len(DATA)], len(DATA), {})


def test_what_an_earlier_transfer_left_is_read_in_pieces(tmp_path: Path) -> None:
    with (tmp_path / f"{NAME}.part").open("wb") as file:
        file.truncate(64 << 20)
    with peak_memory() as peak:
        assert receiver(tmp_path, holder=Giver()).fetch(NAME, most=64 << 20).read_bytes() == DATA
    assert peak() < 16 << 20


def test_what_was_whole_and_is_damaged_since_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"x" * len(DATA))
    working = receiver(tmp_path, holder=Giver())
    assert working.fetch(NAME).read_bytes() == DATA
    assert working.received == {"holder": len(DATA)}


def test_a_damaged_part_is_fetched_once_more_from_the_holder(tmp_path: Path) -> None:
    near, holder = Giver(DATA[:-1] + b"x"), Giver()
    working = receiver(tmp_path, near=near, holder=holder)
    assert working.fetch(NAME).read_bytes() == DATA
    assert (near.requested, holder.requested) == ([0], [0])
    assert working.notes == [f"layer {NAME[:12]} from near was damaged"]


def test_one_that_is_damaged_there_too_is_refused_by_name(tmp_path: Path) -> None:
    holder = Giver(DATA + b"x")
    with pytest.raises(TransferError) as caught:
        receiver(tmp_path, holder=holder).fetch(NAME)
    assert str(caught.value) == (
        f"layer {NAME[:12]} does not have its digest, and did not when it was fetched once more from holder. "
        "Remedy: check the disk of holder, remove the image there (docker rmi), and build or load it again."
    )
    assert holder.requested == [0, 0]
    assert list(tmp_path.iterdir()) == []


def test_when_no_one_gives_any_more_it_says_who_and_why_and_keeps_what_came(tmp_path: Path) -> None:
    time = Time()
    near, holder = Giver(breaks=[300], refuse=""), Giver(refuse="its own transfer has ended")
    near.breaks += [0] * 100
    with pytest.raises(TransferError) as caught:
        receiver(tmp_path, time, near=near, holder=holder).fetch(NAME)
    assert str(caught.value) == (
        "no node offers the image any longer (near: the connection broke; holder: its own transfer has ended). "
        "0 MiB of it are kept. Remedy: restore the first node named and run again; the transfer resumes."
    )
    assert time.now > PATIENCE
    assert (tmp_path / f"{NAME}.part").read_bytes() == DATA[:300]


def test_one_that_ends_without_a_reason_is_named(tmp_path: Path) -> None:
    class Silent(Giver):
        def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
            if self.data:
                yield b"D", self.data[:300]

    working = receiver(tmp_path, near=Silent(), holder=Giver())
    assert working.fetch(NAME).read_bytes() == DATA
    assert working.notes == ["near: the connection ended"]
    with pytest.raises(TransferError, match=r"any longer \(near: the connection ended\)"):
        receiver(tmp_path, near=Silent(b"")).fetch("0" * 64)


def test_the_configuration_has_no_digest_for_a_name_and_is_checked_by_who_asks(tmp_path: Path) -> None:
    near, holder = Giver(b"{}"), Giver()
    working = receiver(tmp_path, near=near, holder=holder)
    assert working.fetch("config", lambda path: path.read_bytes() == DATA).read_bytes() == DATA
    assert working.notes == ["the image's configuration from near was damaged"]
    with pytest.raises(TransferError, match=r"^the image's configuration does not have its digest, and did not when"):
        receiver(tmp_path, holder=Giver()).fetch("config", lambda path: False)


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    (tmp_path / f"{NAME}.part").symlink_to("/dev/full")
    with pytest.raises(TransferError) as caught, Path("/dev/full").open("wb", buffering=0) as file:
        write_all(file, b"x")
    assert str(caught.value) == (
        "the disk of /dev/full is full. Remedy: make room there, and run again; the transfer resumes."
    )


def test_a_disk_that_fails_is_an_error_of_the_system() -> None:
    class Failing(io.RawIOBase):
        def write(self, _data: object) -> int:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        write_all(Failing(), b"x")  # type: ignore[arg-type]  # a file


faults = st.lists(st.integers(0, 900), max_size=6)


@given(faults, faults, st.integers(0, len(DATA)))
def test_whatever_breaks_the_part_is_right(near: list[int], middle: list[int], before: int) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / f"{NAME}.part").write_bytes(DATA[:before])
        givers = {"near": Giver(breaks=[*near]), "middle": Giver(breaks=[*middle]), "holder": Giver()}
        working = receiver(folder, None, **givers)
        assert working.fetch(NAME).read_bytes() == DATA
        assert sum(working.received.values()) == len(DATA) - before
