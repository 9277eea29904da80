# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The logs of a job on their way from its nodes to the controller: which files, how much of each, and where they go.

Why not rsync (ansible.posix.synchronize): it must be installed on the controller too, takes a sudo of its own on the
node, and leaves a file out whole that is too long. Why not an archive and fetch: with become fetch reads a file through
slurp, one task and one more file on the node. So job_logs answers with the files themselves, packed, in one round trip.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass
from typing import Any, Callable

from .record import RUNS

WANTED = re.compile(
    r"launcher\.log|node\.log|summary\.json|state\.json|supervisor\.log|ranks/rank-\d+\.log"
    r"|hangs/\d{4}/(?:examination|finding)\.json",
    re.ASCII,
)
"""What leaves a node. Never spec.json: it holds the values of the job's environment."""
REPLY_BYTES = 16 << 20
"""Bytes of files after which a reply ends, so that neither end holds more than this and one file."""

LONGEST_VALUE = 16384
"""Bytes of the longest value that a mask takes as one (secret_names)."""

IDENTITY = ("run", "run_id", "started_at")
"""What in state.json distinguishes one run from another."""

_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class LogsError(Exception):
    """Logs cannot be gathered. The text says what, where and what to do."""


@dataclass(frozen=True)
class Piece:
    """A file as it is delivered. Of a long one ``data`` is a note and the end."""

    path: str
    mtime_ns: int
    data: bytes
    shortened: bool = False

    @property
    def mark(self) -> list[int]:
        """By which it is known whether the controller has just this."""
        return [len(self.data), self.mtime_ns]

    def pack(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "mtime_ns": self.mtime_ns,
            "shortened": self.shortened,
            "data": base64.b64encode(zlib.compress(self.data, 1)).decode("ascii"),
        }


def unpack(sent: dict[str, Any], limit: int) -> Piece:
    """A file that a node has sent. A node may not choose where it goes, or fill the controller's memory."""
    path = str(sent.get("path"))
    if not WANTED.fullmatch(path):
        raise LogsError(f"the node sent a file {path!r}, which is none of a job's logs. Nothing of it was written.")
    engine = zlib.decompressobj()
    try:
        data = engine.decompress(base64.b64decode(str(sent["data"]), validate=True), limit + 4096)
        whole = engine.eof
        mtime = int(sent["mtime_ns"])
    except (KeyError, ValueError, TypeError, zlib.error) as error:
        raise LogsError(f"the node sent {path} damaged: {error}. Run it again.") from error
    if not whole:
        raise LogsError(f"the node sent more of {path} than max_mib allows. Nothing of it was written.")
    return Piece(path, mtime, data, bool(sent.get("shortened")))


def line_begin(tail: bytes) -> int:
    """Where, in the end of a file, the first whole line begins; 0 where none does."""
    ends = [end for end in (tail.find(mark, 0, len(tail) - 1) for mark in (b"\n", b"\r")) if end >= 0]
    return min(ends) + 1 if ends else 0


def shorten(node: str, file: str, size: int, tail: bytes, hide: Callable[[bytes], bytes] = lambda data: data) -> bytes:
    """A note, and the end of a long file from the first whole line in ``tail`` on.

    Secrets are hidden first: of one that ``tail`` begins in the middle of, the rest stands before that line.
    """
    hidden = hide(tail)
    begin = line_begin(hidden) or min(len(hidden), LONGEST_VALUE)
    kept, left_out = hidden[begin:], size - len(tail) + begin
    note = f"(The first {left_out} of {size} bytes are left out here. The whole file: {node}:{file})\n"
    return note.encode() + kept


def check_node(node: str) -> None:
    """Refuse what cannot be the name of a folder."""
    if not _NODE.fullmatch(node):
        raise LogsError(
            f"node: {node!r} cannot be the name of a folder. Use letters, digits, '.', '_' and '-' in the inventory."
        )


def identity(state: dict[str, Any]) -> dict[str, Any]:
    """What of a state identifies its run. The number becomes the name of a folder, so it is one or nothing."""
    run = state.get("run")
    number = run if isinstance(run, int) and not isinstance(run, bool) and 0 <= run <= RUNS else None
    texts = {key: state[key] if isinstance(state.get(key), str) else None for key in ("run_id", "started_at")}
    return {"run": number, **texts}


def same_run(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether two states, as far as they are known, are of the same run."""
    return all(one.get(key) == two.get(key) for key in IDENTITY)
