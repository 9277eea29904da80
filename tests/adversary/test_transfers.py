# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node of the chain along which images and models travel sends the next node what it likes."""

from __future__ import annotations

import hashlib
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import spool_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import (
    LinkLost,
    Receiver,
    TransferError,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.spool_io import SshLink

DATA = b"of the model" * 1000
NAME = hashlib.sha256(DATA).hexdigest()


def link(program: str) -> SshLink:
    """A STAND-IN for ssh: a process that writes what the other node would send."""
    return SshLink([sys.executable, "-c", f"import sys, struct\nout = sys.stdout.buffer\n{program}"], Path())


FRAMES = {
    "four gigabytes of data": "out.write(struct.pack('>cI', b'D', 2**32 - 1)); out.write(b'x' * (64 << 20))",
    "a reason without an end": "out.write(struct.pack('>cI', b'X', 2**32 - 1)); out.write(b'x' * (64 << 20))",
    "an end that goes on": "out.write(struct.pack('>cI', b'E', 5000) + b'x' * 5000)",
    "a sign of life that goes on": "out.write(struct.pack('>cI', b'W', 1) + b'x')",
    "a kind that there is not": "out.write(struct.pack('>cI', b'Z', 0))",
    "no frames": "out.write(b'Welcome to node 2!\\n' * 10)",
}


@pytest.mark.parametrize("program", FRAMES)
def test_a_frame_that_is_none_ends_the_connection(program: str) -> None:
    opened = link(FRAMES[program])
    try:
        with pytest.raises(LinkLost, match="not of the form of a transfer"):
            list(opened.frames(NAME, 0))
    finally:
        opened.close()


def test_what_is_honest_passes() -> None:
    opened = link("out.write(struct.pack('>cI', b'D', 2) + b'ab' + struct.pack('>cI', b'E', 0))")
    try:
        assert list(opened.frames(NAME, 0)) == [(b"D", b"ab"), (b"E", b"")]
    finally:
        opened.close()


def test_a_frame_costs_no_more_than_it_may() -> None:
    """Measured in a process of its own: 400 MiB in one frame."""
    sends = "import struct, sys; sys.stdout.buffer.write(struct.pack('>cI', b'D', 400 << 20) + b'x' * (400 << 20))"
    program = (
        "import resource, sys\n"
        "from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import spool_io\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"link = spool_io.SshLink([sys.executable, '-c', {sends!r}], '.')\n"
        "try:\n    list(link.frames('x', 0))\nexcept spool_io.LinkLost:\n    pass\n"
        "link.close()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert int(done.stdout) < 30_000  # KiB


@pytest.mark.parametrize("program", ["sys.stderr.write('\\x1b]0;OWNED\\x07\\n')", "sys.stderr.write('x' * (64 << 20))"])
def test_words_of_the_other_node_are_short_and_plain(program: str) -> None:
    opened = link(program)
    try:
        with pytest.raises(LinkLost) as caught:
            list(opened.frames(NAME, 0))
        assert str(caught.value).isprintable() and len(str(caught.value)) < 300
    finally:
        opened.close()


def test_a_node_that_asks_for_nothing_and_stays_is_given_up_at_once() -> None:
    """It has closed what the request goes into, and holds the connection."""
    opened = link("import os, time; os.close(0); time.sleep(50)")
    try:
        gone = select.poll()
        gone.register(opened._process.stdin, 0)  # type: ignore[arg-type]  # a PIPE
        assert gone.poll(10_000)
        began = time.monotonic()
        with pytest.raises(LinkLost, match="the connection broke"):
            list(opened.frames(NAME, 0))
        assert time.monotonic() - began < 10
    finally:
        opened.close()


def test_a_node_that_sends_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_io, "STILL", 0.2)
    opened = link("import time; time.sleep(50)")
    try:
        with pytest.raises(LinkLost, match="nothing came for 0 s"):
            list(opened.frames(NAME, 0))
    finally:
        opened.close()


class Giver:
    """A node that sends frames."""

    def __init__(self, frames: Callable[[], Iterator[tuple[bytes, bytes]]]) -> None:
        self._frames = frames

    def frames(self, _name: str, _offset: int) -> Iterator[tuple[bytes, bytes]]:
        return self._frames()

    def close(self) -> None:
        pass


def without_end() -> Iterator[tuple[bytes, bytes]]:
    while True:
        yield b"D", b"x" * 65536


def one_more() -> Iterator[tuple[bytes, bytes]]:
    yield b"D", DATA
    yield b"D", b"x"
    yield b"E", b""


def honest() -> Iterator[tuple[bytes, bytes]]:
    yield b"D", DATA
    yield b"E", b""


@pytest.mark.parametrize("hostile", [without_end, one_more])
def test_a_file_that_is_larger_than_it_may_be_is_not_kept(
    tmp_path: Path, hostile: Callable[[], Iterator[tuple[bytes, bytes]]]
) -> None:
    givers = {"gpu2": Giver(hostile), "gpu1": Giver(honest)}
    receiver = Receiver(tmp_path, list(givers), givers.__getitem__, alive=lambda: largest(tmp_path))
    assert receiver.fetch(NAME, most=len(DATA)).read_bytes() == DATA
    assert receiver.notes == [f"layer {NAME[:12]} from gpu2 was damaged"]
    (tmp_path / NAME).unlink()
    alone = Receiver(tmp_path, ["gpu2"], {"gpu2": Giver(hostile)}.__getitem__, alive=lambda: largest(tmp_path))
    with pytest.raises(TransferError, match="does not have its digest"):
        alone.fetch(NAME, most=len(DATA))
    assert list(tmp_path.iterdir()) == []


def largest(folder: Path) -> None:
    assert all(path.stat().st_size <= len(DATA) for path in folder.iterdir())


def test_a_reason_is_shown_without_control_codes(tmp_path: Path) -> None:
    def refuses() -> Iterator[tuple[bytes, bytes]]:
        yield b"X", b"\x1b]0;OWNED\x07\x1b[2J"

    now = [0.0]
    receiver = Receiver(
        tmp_path,
        ["gpu2"],
        {"gpu2": Giver(refuses)}.__getitem__,
        alive=lambda: None,
        clock=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + 10 * seconds),
    )
    with pytest.raises(TransferError) as caught:
        receiver.fetch(NAME)
    assert str(caught.value).isprintable() and all(note.isprintable() for note in receiver.notes)


def test_the_header_is_that_of_the_sender() -> None:
    assert struct.calcsize(">cI") == 5
