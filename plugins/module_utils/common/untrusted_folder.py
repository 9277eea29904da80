# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that opens files below a folder that a container can write (jobs, workspace).

Root in the container may put links, pipes and devices there, and change them at any moment. So each component is opened
by the handle of the folder before it and without following links, only plain files are read or written, no more than
a stated number of bytes is read, and a file is replaced by renaming a new one with an unpredictable name.
Also part of the supervisor's archive: standard library, Python 3.8 or later.

The folder itself is the operator's: a link may lead to it, and no container can replace what it has mounted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Callable

from .digests import Hashed
from .empty_folder import empty_folder
from .untrusted_text import parse_json, printable

JSON_BYTES = 8 << 20
"""Most bytes of a JSON file: a state with 1,000 ranks has about 200 KiB."""
TEXT_BYTES = 16 << 20
"""Most bytes of any other file that is read whole."""
MOST_ENTRIES = 100_000
"""Most names in a folder that is listed."""
MOST_READ = 1_000_000
"""Most names that are read to find folders among them."""
REMEDY = "Remedy: remove it on this node, and run again."

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""``O_NONBLOCK``: who holds a lease on a file (fcntl(2)) would keep us waiting for 45 seconds."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SPARSE_FROM, _SPARSE_SHARE = 16 << 20, 64
"""A file larger than the first that has less than this share of its size on the disk is not read: 8 EiB cost nothing
to plant and years to read. What a file system compresses that much is rare, and is sent again."""


class FolderError(Exception):
    """Something that was planted, or is damaged. The text says where, what was found and what to do."""


def kind_of(mode: int) -> str:
    """What a file is, in words."""
    kinds = (
        (stat.S_ISREG, "a plain file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((words for matches, words in kinds if matches(mode)), "a device")


def _is_name(part: str) -> bool:
    try:
        return part not in ("", ".", "..") and "\0" not in part and len(os.fsencode(part)) <= 255
    except UnicodeEncodeError:
        return False


class UntrustedFolder:
    """``root``, and what lies below it by relative path. Each call opens what it needs and closes it again."""

    def __init__(
        self,
        root: str | Path,
        error: type[Exception] = FolderError,
        remedy: str = REMEDY,
        writers: str = "containers",
    ) -> None:
        """``writers`` says in an error who else can write here."""
        self.root, self._error, self._remedy, self._writers = Path(root), error, remedy, writers

    # --- errors and paths

    def where(self, name: str) -> str:
        """The path on this node, for a person."""
        return printable(f"{self.root}/{name}" if name else str(self.root), 1024).replace("\n", "\\n")

    def _refused(self, name: str, what: str) -> Exception:
        return self._error(f"{self.where(name)} {what}. {self._remedy}")

    def _failed(self, name: str, error: OSError) -> Exception:
        """An error that names what lies there."""
        found = self.kind(name)
        if found in (None, "a plain file", "a folder"):
            return self._refused(name, f"cannot be used: {error.strerror}")
        return self._refused(name, f"is {found}, and {self._writers} can write here: it is not followed")

    def _split(self, name: str) -> list[str]:
        parts = name.split("/") if name else []
        if not all(_is_name(part) for part in parts):
            raise self._error(f"{printable(name, 300)!r} is not a path below {self.root}. {self._remedy}")
        return parts

    def _below(self, name: str) -> tuple[list[str], str]:
        """The folders on the way, and the last name."""
        parts = self._split(name)
        if not parts:
            raise self._error(f"{self.root} itself is not to be read or replaced. {self._remedy}")
        return parts[:-1], parts[-1]

    def _open_folder(self, parts: list[str], make: int | None = None) -> int:
        """A handle of a folder; with ``make``, those that are missing are made with this mode."""
        try:
            handle = os.open(self.root, _FOLDER)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._error(
                f"{self.where('')} cannot be opened: {error.strerror}. Remedy: correct the path, or use become."
            ) from error
        for number, part in enumerate(parts):
            try:
                if make is not None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, make, dir_fd=handle)
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise self._failed("/".join(parts[: number + 1]), error) from error
            finally:
                os.close(handle)
            handle = inner
        return handle

    @contextlib.contextmanager
    def _opened(self, parts: list[str], make: int | None = None) -> Iterator[int]:
        """The same, closed at the end."""
        handle = self._open_folder(parts, make)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _at(self, name: str, *, needed: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a name, and the name in it. What fails in there becomes an error that says what lies there.

        What is missing is a ``FileNotFoundError``, unless it is ``needed``.
        """
        parents, last = self._below(name)
        try:
            folder = self._open_folder(parents)
        except FileNotFoundError as error:
            if needed:
                raise self._refused(name, "has no folder to lie in") from error
            raise
        try:
            yield folder, last
        except OSError as error:
            if isinstance(error, self._error) or (isinstance(error, FileNotFoundError) and not needed):
                raise
            raise self._failed(name, error) from error
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _replaced(self, name: str, *, durable: bool = False) -> Iterator[tuple[int, str]]:
        """A folder, and a new name in it that no one can foresee; what gets that name takes the place of ``name``."""
        with self._at(name, needed=True) as (folder, last):
            new = f".{secrets.token_hex(16)}.new"
            try:
                yield folder, new
                os.rename(new, last, src_dir_fd=folder, dst_dir_fd=folder)
                if durable:
                    os.fsync(folder)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(new, dir_fd=folder)  # also where both were names of one file: rename() leaves them

    # --- looking

    def kind(self, name: str) -> str | None:
        """What lies there, as ``kind_of`` names it; ``None`` where nothing does or the way to it is not a folder."""
        status = self.status(name)
        return None if status is None else kind_of(status.st_mode)

    def status(self, name: str) -> os.stat_result | None:
        """Its status, as it is without following a link."""
        parts = self._split(name)
        try:
            if not parts:
                return self.root.stat()
            if len(parts) > 1 and self.kind("/".join(parts[:-1])) != "a folder":
                return None
            with self._opened(parts[:-1]) as folder:
                return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def entries(self, name: str = "") -> dict[str, str]:
        """What lies in a folder: names, in order, and their kinds. Empty where there is no such folder."""
        kinds: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError), self._opened(self._split(name)) as handle:
            with os.scandir(handle) as found:
                names = sorted(entry.name for entry in itertools.islice(found, MOST_ENTRIES + 1))
            if len(names) > MOST_ENTRIES:
                raise self._refused(name, f"holds more than {MOST_ENTRIES} names")
            for one in names:
                with contextlib.suppress(FileNotFoundError):  # gone since
                    kinds[one] = kind_of(os.stat(one, dir_fd=handle, follow_symlinks=False).st_mode)
        return kinds

    def folders(self, most: int, fits: Callable[[str], Any]) -> tuple[list[str], bool]:
        """Names of folders in it that ``fits`` takes, in order, and whether these are all: ``most`` at most, and of any
        number of names only so many are read. None where there is no such folder."""
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError), self._opened([]) as handle, os.scandir(handle) as found:
            for number, entry in enumerate(found):
                if number >= MOST_READ or len(names) > most:
                    return sorted(names[:most]), False
                if entry.is_dir(follow_symlinks=False) and fits(entry.name):
                    names.append(entry.name)
        return sorted(names[:most]), len(names) <= most

    # --- reading

    def open(self, name: str) -> BinaryIO | None:
        """A plain file to read, by handle; ``None`` where there is none."""
        try:
            with self._at(name) as (folder, last):
                # A handle of whatever lies there: with O_PATH no driver of a device is called, and no pipe waits.
                found = os.open(last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        try:
            mode = os.fstat(found).st_mode
            # What the handle is of, whatever has the name by now: opening a device alone may have an effect.
            handle = os.open(f"/proc/self/fd/{found}", _FILE) if stat.S_ISREG(mode) else None
        except OSError as error:
            raise self._failed(name, error) from error
        finally:
            os.close(found)
        if handle is None:
            raise self._refused(name, f"is {kind_of(mode)}, not a plain file")
        return os.fdopen(handle, "rb")

    def read(self, name: str, limit: int = TEXT_BYTES) -> bytes | None:
        """All of a file that has ``limit`` bytes at most; ``None`` where there is none."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            data = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else b""
            if len(data) > limit or os.fstat(file.fileno()).st_size > limit:
                raise self._refused(name, f"is larger than {limit} bytes")
            return data

    def read_json(self, name: str) -> dict[str, Any] | None:
        """A mapping from a JSON file. One with a second name (a hard link) is none that we wrote."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            links = os.fstat(file.fileno()).st_nlink
        if links > 1:
            raise self._refused(name, f"has {links} names (hard links)")
        data = self.read(name, JSON_BYTES)
        if data is None:
            return None
        try:
            found = parse_json(data)
        except ValueError as error:
            raise self._refused(name, f"cannot be read: {printable(str(error), 300)}") from error
        if not isinstance(found, dict):
            raise self._refused(name, "does not hold a mapping")
        return found

    def digest(self, name: str, size: int | None = None) -> str | None:
        """SHA-256 of a file in hexadecimal; empty where it has not this ``size``, as then it is not worth reading.

        ``None`` where there is none, or one that is little but holes, or that has a second name: we write none such.
        """
        file = self.open(name)
        if file is None:
            return None
        with file:
            status = os.fstat(file.fileno())
            if size is not None and status.st_size != size:
                return ""
            if status.st_nlink > 1 or (
                status.st_size > _SPARSE_FROM and status.st_blocks * 512 < status.st_size // _SPARSE_SHARE
            ):
                return None
            return Hashed(file).read_all(status.st_size).sha256  # it may grow as fast as it is read

    # --- writing

    def write(
        self,
        name: str,
        content: bytes | IO[bytes],
        mode: int = 0o600,
        mtime: float | None = None,
        *,
        owner: tuple[int, int] | None = None,
        durable: bool = False,
    ) -> None:
        """Put a file there, at once; whatever had the name, a link too, is replaced. Its folder must exist.

        ``durable``: also after a loss of power it is the one before, or this one.
        """
        with self._replaced(name, durable=durable) as (folder, new):  # noqa: SIM117 - Python 3.8 would want one long line
            with os.fdopen(os.open(new, _NEW, 0o600, dir_fd=folder), "wb") as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    shutil.copyfileobj(content, file, 1 << 20)
                file.flush()
                os.fchmod(file.fileno(), mode)
                if owner is not None:
                    os.fchown(file.fileno(), *owner)
                if mtime is not None:
                    os.utime(file.fileno(), (mtime, mtime))
                if durable:
                    os.fsync(file.fileno())

    def link(self, name: str, file: BinaryIO) -> None:
        """Give an open file this name too, at once, whatever had it. It is on the same disk, and its folder exists."""
        with self._replaced(name) as (folder, new):
            # By its handle, as another file may have its former name by now.
            os.link(f"/proc/self/fd/{file.fileno()}", new, dst_dir_fd=folder, follow_symlinks=True)

    def make_folder(
        self, name: str, mode: int = 0o700, exact: bool = False, *, owner: tuple[int, int] | None = None
    ) -> None:
        """A folder and those above it; with ``exact`` it gets this mode where it was there before, too.

        ``owner`` gets it where it is ours and empty, as one that was made just now is: no other is given away.
        """
        try:
            with self._opened(self._split(name), mode) as handle:
                if exact:
                    os.fchmod(handle, mode)
                if owner is not None and os.fstat(handle).st_uid == os.geteuid():
                    with os.scandir(handle) as found:
                        empty = next(found, None) is None
                    if empty:
                        os.fchown(handle, *owner)
        except FileNotFoundError as error:
            raise self._refused("", "does not exist") from error

    def rename(self, old: str, new: str) -> None:
        """Move what lies at ``old``, a link as a link. The folder of ``new`` must exist."""
        with self._at(new, needed=True) as (target, new_last), self._at(old, needed=True) as (source, last):
            os.rename(last, new_last, src_dir_fd=source, dst_dir_fd=target)

    # --- removing

    def remove(self, name: str) -> None:
        """A file, a link, or a folder with all that lies in it, however deep. Nothing where there is nothing."""
        with contextlib.suppress(FileNotFoundError), self._at(name) as (folder, last):
            if stat.S_ISDIR(os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode):
                top = os.open(last, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    if not empty_folder(top):
                        raise self._refused(name, "is written while it is removed; stop the container first")
                finally:
                    os.close(top)
                os.rmdir(last, dir_fd=folder)
            else:
                os.unlink(last, dir_fd=folder)

    def remove_if_empty(self, name: str) -> bool:
        """A folder, if nothing is in it; whether it was removed."""
        with contextlib.suppress(FileNotFoundError), self._at(name) as (folder, last), contextlib.suppress(OSError):
            os.rmdir(last, dir_fd=folder)
            return True
        return False
