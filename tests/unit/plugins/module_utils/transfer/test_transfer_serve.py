# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A spool is read out as it grows, until its end, its writer's end, or another beginning; nothing else is."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import serve as image_serve
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.serve import (
    CHUNK,
    HEADER,
    serve,
    serve_one,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.spool_io import LENGTHS

NAME = "ab" * 32


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "lock").write_text(json.dumps({"pid": os.getpid()}))
    (tmp_path / "pulse").touch()
    return tmp_path


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_serve, "BEAT", 0.0)


def frames(data: bytes) -> list[tuple[bytes, bytes]]:
    found = []
    while data:
        kind, length = HEADER.unpack(data[: HEADER.size])
        found.append((kind, data[HEADER.size : HEADER.size + length]))
        data = data[HEADER.size + length :]
    return found


def served(spool: Path, offset: int = 0, *steps: Callable[[], object]) -> list[tuple[bytes, bytes]]:
    """Serve a part; between two looks the steps are done, one each."""
    out = bytearray()
    left = list(steps)

    def sleep(_seconds: float) -> None:
        if not left:
            raise AssertionError(f"waits for ever after {frames(bytes(out))}")
        left.pop(0)()

    serve_one(spool, NAME, offset, out.extend, sleep)
    assert left == []
    return [entry for entry in frames(bytes(out)) if entry[0] != b"W"]


def test_a_whole_part_is_sent_from_the_offset(spool: Path) -> None:
    (spool / "blobs" / NAME).write_bytes(b"0123456789")
    assert served(spool) == [(b"D", b"0123456789"), (b"E", b"")]
    assert served(spool, 4) == [(b"D", b"456789"), (b"E", b"")]
    assert served(spool, 10) == [(b"E", b"")]


def test_a_part_is_followed_while_it_grows(spool: Path) -> None:
    part = spool / "blobs" / f"{NAME}.part"

    def grow() -> None:
        with part.open("ab") as file:
            file.write(b"56789")

    steps = [lambda: part.write_bytes(b"01234"), grow, lambda: part.rename(spool / "blobs" / NAME)]
    assert served(spool, 0, *steps) == [(b"D", b"01234"), (b"D", b"56789"), (b"E", b"")]


def test_a_large_part_is_sent_in_frames_that_are_taken(spool: Path) -> None:
    (spool / "blobs" / NAME).write_bytes(bytes(2 * CHUNK + 5))
    assert [len(data) for _kind, data in served(spool)] == [CHUNK, CHUNK, 5, 0]
    assert LENGTHS[b"D"] >= CHUNK


def test_a_sign_of_life_is_sent_while_nothing_comes(spool: Path) -> None:
    out = bytearray()

    def come(_seconds: float) -> None:
        (spool / "blobs" / NAME).write_bytes(b"")

    serve_one(spool, NAME, 0, out.extend, come)
    assert frames(bytes(out)) == [(b"W", b""), (b"E", b"")]


def test_a_part_that_was_begun_again_is_reported(spool: Path) -> None:
    part = spool / "blobs" / f"{NAME}.part"
    part.write_bytes(b"wrong")
    again = served(spool, 0, lambda: part.rename(spool / "gone"))
    assert again == [(b"D", b"wrong"), (b"X", b"it has restarted this part")]
    (spool / "blobs" / NAME).write_bytes(b"01")
    assert served(spool, 5) == [(b"X", b"what it has is shorter")]


@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize(("former", "latter"), [(f"{NAME}.part", NAME), (NAME, f"{NAME}.part")])
def test_a_part_that_gets_its_name_meanwhile_is_not_begun_again(
    spool: Path, monkeypatch: pytest.MonkeyPatch, former: str, latter: str, before: int
) -> None:
    """Its writer renames it before one of the system calls that find out what it is: it is whole, or it is not yet."""
    blobs = spool / "blobs"
    (blobs / former).write_bytes(b"0123")
    stat, calls = Path.stat, iter(range(100))

    def stat_of(path: Path, **arguments: bool) -> os.stat_result:
        if path.parent == blobs and next(calls) == before:
            (blobs / former).rename(blobs / latter)
        return stat(path, **arguments)

    monkeypatch.setattr(Path, "stat", stat_of)
    with (blobs / former).open("rb") as file:
        assert image_serve.finished(spool, NAME, file) is (before == 0 if latter == NAME else before >= 2)


def test_a_writer_that_is_gone_or_stands_still_is_reported(spool: Path) -> None:
    os.utime(spool / "pulse", (0, 0))
    ((kind, text),) = served(spool)
    assert kind == b"X" and text.startswith(b"its own transfer has stood still for ")
    (spool / "pulse").unlink()
    assert served(spool) == [(b"X", b"its own transfer has ended")]
    (spool / "pulse").touch()
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (spool / "lock").write_text(json.dumps({"pid": child.pid}))
    assert served(spool) == [(b"X", b"its own transfer has ended")]


@pytest.mark.parametrize(
    "line", [b"../../etc/shadow 0\n", b"key 0\n", f"{NAME}\n".encode(), f"{NAME} -1\n".encode(), b"\n", b"\xff 0\n"]
)
def test_nothing_but_parts_can_be_asked_for(spool: Path, line: bytes) -> None:
    (spool / "key").write_text("secret")
    out = bytearray()
    serve(spool, io.BytesIO(line).readline, out.extend)
    assert frames(bytes(out)) == [(b"X", b"it was asked for something that is not part of an image")]


def test_it_runs_alone_from_the_folder_of_the_spool(spool: Path) -> None:
    program = spool / "serve.py"
    program.write_text(Path(image_serve.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (spool / "blobs" / NAME).write_bytes(b"x" * 70000)
    requested = f"{NAME} 69999\n{NAME} 70000\n".encode()
    words = [sys.executable, "-I", "-B", str(program)]
    done = subprocess.run(words, input=requested, capture_output=True, check=True, timeout=30)
    assert frames(done.stdout) == [(b"D", b"x"), (b"E", b""), (b"E", b"")]


def test_a_reader_that_takes_nothing_is_given_up(spool: Path) -> None:
    program = spool / "serve.py"
    text = Path(image_serve.__file__).read_text(encoding="utf-8")
    assert "STUCK = 60" in text
    program.write_text(text.replace("STUCK = 60", "STUCK = 1"), encoding="utf-8")
    (spool / "blobs" / NAME).write_bytes(b"x" * (8 << 20))
    words = [sys.executable, "-I", "-B", str(program)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(f"{NAME} 0\n".encode())
        process.stdin.flush()
        assert process.wait(timeout=30) == -signal.SIGALRM
