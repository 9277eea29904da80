# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which processes of a node hold what: locks of torch's extension cache, which are removed when no one does, and ports.

torch.utils.file_baton makes the lock with O_EXCL, keeps it open while it compiles, and removes it at the end; every
other rank waits as long as it exists. So a lock that no process has open is dead, and all ranks would wait for ever.

Runs beside probe.py inside the container or on the host: standard library, Python 3.8.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

LOCK_AGE = 60.0
"""Seconds after which a lock that no process holds is dead: there is no time at all between making and holding it."""
LOCK_AGE_MOUNT = 1800.0
"""The same in a container for a folder of its host's, where processes of other containers can hold it unseen."""
NETWORK_FILE_SYSTEMS = re.compile(r"(nfs|cifs|smb|9p|ceph|lustre|gpfs|beegfs|glusterfs|afs|ocfs2|gfs2|fuse\.)")
BUILDERS = re.compile(r"(python|pt_main|deepspeed|torchrun|ninja|nvcc|cicc|ptxas|c\+\+|g\+\+|cc1|clang|ld$|hipcc)")
"""Names of processes that may hold a lock; only the first fifteen characters of a name are known."""


class Process(NamedTuple):
    """A process: its number and command, the paths it has to do with, and whether all of them could be seen."""

    number: str
    command: str
    paths: list[str]
    whole: bool

    def __str__(self) -> str:
        return f"{self.number} ({self.command[:80]})"


@dataclass(frozen=True)
class View:
    """What is known beside the lock itself. ``sees_all``: no process of this machine is hidden from this one."""

    processes: list[Process]
    mounts: str
    sees_all: bool
    now: float


def read_text(path: Path) -> str:
    """The text of a file of procfs, empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def processes(proc: Path) -> Iterator[Process]:
    """Every process but this one."""
    for entry in proc.glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            name = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue  # ended meanwhile
        paths, whole = list(words), True
        try:
            for link in (entry / "cwd", *(entry / "fd").iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    paths.append(os.readlink(str(link)))  # noqa: PTH115 - Path.readlink came with Python 3.9
        except FileNotFoundError:
            continue
        except OSError:
            whole = not BUILDERS.match(name)
        yield Process(entry.name, " ".join(words).strip() or name, paths, whole)


def mount_of(path: str, mounts: str) -> tuple[str, str]:
    """Mount point and file system type that hold a path, by the text of /proc/self/mounts."""
    best, kind = "/", ""
    for fields in (line.split() for line in mounts.splitlines()):
        if len(fields) > 2:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), fields[1])
            if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, fields[2]
    return best, kind


def extension_roots(given: str, environment: Mapping[str, str]) -> list[Path]:
    """Where torch keeps what it compiles (torch.utils.cpp_extension)."""
    root = given or environment.get("TORCH_EXTENSIONS_DIR")
    if root:
        return [Path(root).expanduser()]
    return [Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "torch_extensions"]


def locks(roots: list[Path], remove: bool, sees_all: bool, proc: Path = Path("/proc")) -> list[dict[str, Any]]:
    """The locks below the roots, and what became of them."""
    found: list[tuple[Path, os.stat_result]] = []
    for root in roots:
        # ROOT/NAME/lock where TORCH_EXTENSIONS_DIR is set, else ROOT/PYTHON_CUDA/NAME/lock. Never deeper.
        for path in sorted([*root.glob("*/lock"), *root.glob("*/*/lock")]):
            with contextlib.suppress(OSError):
                seen = path.lstat()
                if stat.S_ISREG(seen.st_mode) and seen.st_size == 0:
                    found.append((path.parent.resolve() / "lock", seen))
    if not found:
        return []
    view = View(list(processes(proc)), read_text(proc / "self/mounts"), sees_all, time.time())
    answers = []
    for path, seen in found:
        state, holder = judge(path, seen.st_mtime, view)
        error = ""
        if state == "dead" and remove:
            state, error = _remove(path, seen)
        age = int(view.now - seen.st_mtime)
        answers.append({"path": str(path), "age": age, "state": state, "holder": holder, "error": error})
    return answers


def judge(lock: Path, made_at: float, view: View) -> tuple[str, str]:
    """State of a lock: held, unknown, shared, young or dead. And who holds it, or may."""
    folder = str(lock.parent)
    point, kind = mount_of(folder, view.mounts)
    wait = LOCK_AGE if view.sees_all or point == "/" else LOCK_AGE_MOUNT
    busy = [one for one in view.processes if any(text == folder or folder + "/" in text for text in one.paths)]
    hidden = [one for one in view.processes if not one.whole]
    if busy or hidden:
        return ("held", str(busy[0])) if busy else ("unknown", str(hidden[0]))
    if NETWORK_FILE_SYSTEMS.match(kind):
        return "shared", ""  # other machines' processes cannot be seen
    # Where its holder may be hidden, a build shows by the files that it writes.
    newest = max([made_at, *_times(lock.parent)]) if wait == LOCK_AGE_MOUNT else made_at
    return ("young" if view.now - newest <= wait else "dead"), ""


def _remove(path: Path, seen: os.stat_result) -> tuple[str, str]:
    """Remove a lock, unless it is another one by now."""
    try:
        again = path.lstat()
        if (again.st_ino, again.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
            return "held", ""
        path.unlink()
    except FileNotFoundError:
        return "gone", ""  # let go meanwhile
    except OSError as error:
        return "dead", str(error.strerror)
    return "removed", ""


def _times(folder: Path) -> Iterator[float]:
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):
                yield entry.lstat().st_mtime


def port_holder(port: int, proc: Path = Path("/proc")) -> str:
    """Number and command of the process that listens on a port, where it can be seen."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for fields in (line.split() for line in read_text(proc / "net" / table).splitlines()[1:]):
            if len(fields) > 9 and fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    for one in processes(proc) if sockets else ():
        if sockets.intersection(one.paths):
            return str(one)
    return ""
