# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The file on its disk, and the host with its systemd and its engine: what ``daemon_config_apply`` works with."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from ..common.command_io import CommandResult, find_program, run_program
from ..common.text_file import TextFileError, read
from .api_io import SocketEngine

PUBLIC, PRIVATE = 0o644, 0o600
"""Modes of a new file: without a credential in it, and with one."""


class ForeignEditError(Exception):
    """Somebody else wrote the file in the meantime."""


class Host(Protocol):
    """What is read from the host; tests hand in a fake."""

    def run(self, command: Sequence[str], timeout: float) -> CommandResult: ...

    def program(self, name: str) -> str | None: ...

    def systemd(self) -> bool:
        """Whether systemd runs this host."""

    def text(self, path: str) -> str:
        """The text of a file, empty where it cannot be read."""

    def ask(self, path: str, timeout: float) -> Any:
        """``GET`` of the engine's API; raises ``EngineError``."""

    def now(self) -> float:
        """Seconds since 1970, the engine's clock."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class File(Protocol):
    """The configuration file; tests hand in a real one in a folder of their own."""

    path: str

    def read(self) -> bytes | None: ...

    def stage(self, content: bytes, folder: str | None = None, mode: int = PUBLIC) -> str: ...

    def keep(self) -> str | None: ...

    def commit(self, candidate: str, expected: bytes | None) -> None: ...

    def remove(self, expected: bytes | None) -> None: ...

    def discard(self, candidate: str) -> None: ...


class LocalHost:
    """This host."""

    def run(self, command: Sequence[str], timeout: float) -> CommandResult:
        return run_program(command, timeout)

    def program(self, name: str) -> str | None:
        return find_program(name)

    def systemd(self) -> bool:
        return Path("/run/systemd/system").is_dir()

    def text(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return ""

    def ask(self, path: str, timeout: float) -> Any:
        return SocketEngine(timeout=timeout).call("GET", path)

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ConfigFile:
    """A file that is replaced as a whole, and only while it holds what its reader saw.

    ``prepare`` gets the path of each new candidate for the target, to set its owner and mode before it is in place.
    """

    def __init__(self, path: str, prepare: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._prepare = prepare

    def read(self) -> bytes | None:
        """The content, or ``None`` where there is no file; raises ``TextFileError``."""
        return read(self.path).content

    def stage(self, content: bytes, folder: str | None = None, mode: int = PUBLIC) -> str:
        """Write a candidate: into ``folder``, or beside the target, like it or (no target) of this mode."""
        target = Path(os.path.realpath(self.path))
        try:
            if folder is None:
                target.parent.mkdir(mode=0o755, exist_ok=True)
            descriptor, candidate = tempfile.mkstemp(dir=folder or target.parent, prefix=f".{target.name}.")
        except OSError as error:
            raise TextFileError(f"{self.path}: cannot be written: {error.strerror or error}") from error
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if folder is None:
                _like(candidate, target, mode)
                if self._prepare is not None:
                    self._prepare(candidate)
        except OSError as error:
            self.discard(candidate)
            raise TextFileError(f"{self.path}: cannot be written: {error.strerror or error}") from error
        except BaseException:  # the module ends itself where owner or mode cannot be set
            self.discard(candidate)
            raise
        return candidate

    def keep(self) -> str | None:
        """A second name of the file as it is, to put back by ``commit``; ``None`` where there is no file."""
        target = Path(os.path.realpath(self.path))
        if not target.exists():
            return None
        try:
            descriptor, kept = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            os.close(descriptor)
            shutil.copyfile(target, kept)
            _like(kept, target, PRIVATE)
        except OSError as error:
            raise TextFileError(f"{self.path}: cannot be copied: {error.strerror or error}") from error
        return kept

    def commit(self, candidate: str, expected: bytes | None) -> None:
        """Put the candidate in place, if the file still holds ``expected``; else raise ``ForeignEditError``."""
        self._unchanged(expected)
        target = Path(os.path.realpath(self.path))
        try:
            Path(candidate).replace(target)
        except OSError as error:
            raise TextFileError(f"{self.path}: cannot be replaced: {error.strerror or error}") from error
        _sync(target.parent)

    def remove(self, expected: bytes | None) -> None:
        """Remove the file, if it still holds ``expected``; else raise ``ForeignEditError``."""
        self._unchanged(expected)
        target = Path(os.path.realpath(self.path))
        try:
            target.unlink()
        except OSError as error:
            raise TextFileError(f"{self.path}: cannot be removed: {error.strerror or error}") from error
        _sync(target.parent)

    def discard(self, candidate: str) -> None:
        """Remove a candidate, which may have been put in place already."""
        with suppress(FileNotFoundError):
            Path(candidate).unlink()

    def _unchanged(self, expected: bytes | None) -> None:
        if self.read() != expected:
            raise ForeignEditError(self.path)


def readable_by_all(path: str) -> bool:
    """Whether everybody on this host can read the file; false where there is none."""
    try:
        return bool(Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


@contextmanager
def unbroken() -> Iterator[None]:
    """Go on when the controller goes away: a configuration is not left half applied by a broken connection."""
    signals = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    former = [signal.signal(number, signal.SIG_IGN) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, former):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _like(candidate: str, target: Path, mode: int) -> None:
    """Give the candidate the target's owner, mode and SELinux label; where there is no target, this mode."""
    try:
        there = target.stat()
    except FileNotFoundError:
        Path(candidate).chmod(mode)
        return
    shutil.copystat(target, candidate)
    os.utime(candidate)
    os.chown(candidate, there.st_uid, there.st_gid)
    Path(candidate).chmod(stat.S_IMODE(there.st_mode))  # chown takes the set-id bits away


def _sync(folder: Path) -> None:
    """Have the rename survive a power cut; a file system that cannot is not a reason to fail."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
