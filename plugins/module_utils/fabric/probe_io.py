# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starts the ends of all pairs on a host, one in its container and one on the host itself, and talks to them.

They outlive the module, so that no number of Ansible's forks decides how many nodes try one another at a time. Each has
a folder in /run for as long as it runs, of root only: a pipe for commands, files for answers. A second process
on the host is between, and ends it when its time is over or it prints too much, whatever runs in the container by then.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..common import bounded_run
from ..common.command_io import find_program
from ..common.marked_answer import ANSWER_BYTES, answer_of
from ..common.source_runner import request_for
from ..common.untrusted_text import on_one_line
from . import collective, peer

RUN = "/run/swarmspeed-fabric"
WRITE = 20.0
"""Seconds for a command to be read."""
STALE = 900
"""Seconds after which a folder is left from a host that went down, or a killed shell."""


SLACK = 30.0
"""Seconds that an end may take to end itself."""
_MARKED = re.compile(rb"^%b(.*)$" % re.escape(peer.MARK.encode()), re.MULTILINE)
LAST = 4096
"""Bytes of its errors that are read."""


class Gone(Exception):
    """The end does not run (any more). The text is its last output."""


class PeerIO(Protocol):
    """What the module needs; tests hand in a fake."""

    def start(self, name: str, command: Sequence[str], requested: Mapping[str, Any]) -> None:
        """Start an end."""

    def send(self, name: str, command: Mapping[str, Any]) -> None:
        """Give it a command."""

    def wait(self, name: str, kind: str, seconds: float) -> dict[str, Any]:
        """Its answer of this kind. Raises ``Gone``."""


class SystemPeerIO:
    """Ends on this host, of the run ``run``."""

    def __init__(self, run: str, root: str = RUN) -> None:
        self._root, self._folder = Path(root), Path(root, run)
        self._files: dict[str, tuple[Any, Any]] = {}
        self._read: dict[str, tuple[dict[str, dict[str, Any]], bytearray]] = {}

    def start(self, name: str, command: Sequence[str], requested: Mapping[str, Any]) -> None:
        place = self._folder / name
        for left in (2, 1, 0):  # the end of another run may just be clearing up
            try:
                self._root.mkdir(mode=0o700, exist_ok=True)
                self._clear()
                self._folder.mkdir(mode=0o700, exist_ok=True)
                place.mkdir(mode=0o700)
                break
            except FileNotFoundError:
                if not left:
                    raise
        os.mkfifo(place / "in", 0o600)
        # Open for both: the pipe must not end between two commands.
        pipe = os.open(place / "in", os.O_RDWR)
        try:
            for answers in ("out", "err"):
                (place / answers).touch(0o600)
            self._open(name)  # now: one that cannot run at all is gone, with its folder, at once
            program = find_program(command[0]) or command[0]
            limits = [str(float(requested["life"]) + SLACK), str(ANSWER_BYTES)]
            subprocess.Popen(
                [
                    sys.executable,
                    "-B",
                    "-c",
                    inspect.getsource(bounded_run),
                    str(place),
                    *limits,
                    program,
                    *command[1:],
                ],
                stdin=pipe,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
            )
            # Through the pipe that is open, as one that ends at once takes its folder away.
            self._write(name, request_for(peer, requested).encode(), pipe)
        finally:
            os.close(pipe)

    def _clear(self) -> None:
        for left in self._root.iterdir():
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)

    def _open(self, name: str) -> tuple[Any, Any]:
        if name not in self._files:
            place = self._folder / name
            try:
                # Kept: the folder goes when the end goes, and its last output is still to be read.
                self._files[name] = ((place / "out").open("rb"), (place / "err").open("rb"))
            except OSError as error:
                raise Gone("it ended earlier: its time limit was reached, or the container was restarted") from error
        return self._files[name]

    def _write(self, name: str, data: bytes, opened: int | None = None) -> None:
        """A pipe takes 64 KiB until somebody reads it, so not to wait for ever it is opened again, and not blocking."""
        place = self._folder / name / "in" if opened is None else f"/proc/self/fd/{opened}"
        try:
            pipe = os.open(place, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise Gone(self._last_words(name)) from error
        until = time.monotonic() + WRITE
        try:
            while data:
                try:
                    data = data[os.write(pipe, data) :]
                except BlockingIOError:
                    if time.monotonic() > until or not (self._folder / name).exists():
                        return  # that it does not answer will be seen
                    time.sleep(0.02)
        finally:
            os.close(pipe)

    def send(self, name: str, command: Mapping[str, Any]) -> None:
        self._open(name)
        self._write(name, json.dumps(dict(command)).encode() + b"\n")

    def wait(self, name: str, kind: str, seconds: float) -> dict[str, Any]:
        self._open(name)
        until = time.monotonic() + seconds
        while True:
            here = (self._folder / name).exists()
            answers = self._answers(name)
            if kind in answers:
                return answers[kind]
            if not here:
                raise Gone(self._last_words(name))
            if time.monotonic() > until:
                raise Gone(f"no answer within {seconds:g} s")
            time.sleep(0.05)

    def _answers(self, name: str) -> dict[str, dict[str, Any]]:
        """What it has answered so far, by kind. Each byte is read once, and of each kind the first answer counts."""
        found, begun = self._read.setdefault(name, ({}, bytearray()))
        out = self._open(name)[0]
        begun += out.read(max(0, ANSWER_BYTES - out.tell()))
        whole = bytes(begun[: begun.rfind(b"\n") + 1])
        del begun[: len(whole)]
        for line in _MARKED.finditer(whole):  # not line by line: there may be millions
            answer = answer_of(line[1])
            if answer is not None and isinstance(answer.get("kind"), str):
                found.setdefault(answer["kind"], answer)
        return found

    def _last_words(self, name: str) -> str:
        err = self._open(name)[1]
        err.seek(max(0, os.fstat(err.fileno()).st_size - LAST))
        lines = [line.strip() for line in err.read(LAST).decode("utf-8", "replace").splitlines() if line.strip()]
        return on_one_line(lines[-1]) if lines else "it ended without a word"


def collective_source() -> str:
    """The program of the collective, as text for ``python -c``."""
    return inspect.getsource(collective)
