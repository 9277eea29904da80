# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part of a transfer from its beginning to its end: a process in the background that holds a lock.

It outlives the module, so that no number of Ansible's forks decides how many nodes take part at a time. The spool is
its place: the lock, this transfer's key, what may be read by others, the parts that have come, and its state. It ends
on request, and by itself when no one has read from it for a while after its work is done.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Callable

from ..common.command_io import find_program, run_program
from ..common.private_folder import make_private
from ..common.untrusted_folder import FolderError
from . import serve as image_serve
from .keys import HOSTS, KEY, key_line, known_hosts, rewrite, server_command, with_keys, without_keys
from .lock import held_by, holder
from .lock import take as take_lock
from .lock import write as write_lock
from .receive import TransferError
from .spool_io import SpoolIO, read_json, write_json

SLOWEST = 1 << 20
"""Bytes per second: what takes longer than at this rate, and half an hour, is given up."""
LINGER = 90.0
"""Seconds without a reader after which a node that has done its part ends the transfer by itself."""
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub"


class SpoolTransfer:
    """The transfer ``run`` on this node; subclasses define what is transferred."""

    system: SpoolIO

    def __init__(self, place: str, run: str, node: str, account: str) -> None:
        self.place, self.run, self.node, self.account = Path(place), run, node, account

    def access(self) -> dict[str, Any]:
        """Return by what other nodes reach this one, and by what they know it."""
        return {
            "account": self.account,
            "host_key": Path(HOST_KEY).read_text(encoding="utf-8"),
            "public_key": (self.place / "key.pub").read_text(encoding="utf-8"),
        }

    def keep_only(self, names: Container[str]) -> None:
        """Remove what came of other parts than these."""
        for path in self.system.folder.iterdir():
            if path.name.partition(".")[0] not in names:
                path.unlink()

    # -- what a class below this one provides ---------------------------------------------------------------------

    request_limit = 120.0
    """Seconds from one step of the controller to the next, until the process has its instructions. A run that finds a
    process whose controller was killed before that waits so long.
    """
    remedy = ""
    """What to do where the start failed for another reason than those that have a sentence of their own."""

    def prepare(self) -> None:
        """Make the folder of what is received, without what is worth nothing of an earlier transfer."""
        self.system.folder.mkdir(mode=0o700, exist_ok=True)

    def start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Begin, as the options of the module request it. What keeps this node from taking part is an answer."""
        raise NotImplementedError

    def feed(self, archive: str) -> dict[str, Any]:
        """Take something from the controller, and return what is still needed. Only for a chain that it begins."""
        raise NotImplementedError

    def work(self, part: dict[str, Any]) -> None:
        """Do this node's part, and report its state. Raises ``TransferError``."""
        raise NotImplementedError

    def remove_partial(self) -> None:
        """Remove what a transfer that ended has left outside of the spool."""

    # -- begin --------------------------------------------------------------------------------------------------

    def begin(self, started_from: str, gather: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Take the lock, gather, start the process. What keeps this node from taking part is an answer."""
        make_private(self.place)
        self.place.chmod(0o700)
        try:
            lock = take_lock(self.place)
        except BlockingIOError:
            return {"running": holder(self.place)}
        try:
            self.clear(keep=True)
            self.prepare()
            source = inspect.getsource(image_serve)
            (self.place / "serve.py").write_text(source, encoding="utf-8")
            self._make_key()
            found = {**gather(), **self.access()}
            self._fork(lock, started_from)
            return found
        except TransferError as error:
            return {"trouble": str(error)}
        except (OSError, subprocess.SubprocessError) as error:
            return {"trouble": f"{error}. Remedy: {self.remedy}"}
        finally:
            os.close(lock)

    def _make_key(self) -> None:
        program = find_program("ssh-keygen") or "ssh-keygen"
        made = run_program([program, "-q", "-t", "ed25519", "-N", "", "-f", str(self.place / KEY)], 30)
        if made.rc:
            raise OSError(f"ssh-keygen: {made.text}")

    def _fork(self, lock: int, started_from: str) -> None:
        """Leave a process behind that has the lock; return when it has reported its state."""
        reading, writing = os.pipe()
        first = os.fork()
        if first:
            os.close(writing)
            os.waitpid(first, 0)
            os.read(reading, 1)
            os.close(reading)
            return
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.chdir("/")
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            since = time.strftime("%H:%M:%S UTC", time.gmtime())
            reported = {"pid": os.getpid(), "host": self.node, "since": since}
            write_lock(lock, {**reported, "started_from": started_from, "run": self.run})
            os.write(writing, b".")
            os.close(writing)
            self._stay()
        finally:
            os._exit(0)

    # -- the process --------------------------------------------------------------------------------------------

    def _stay(self) -> None:
        """Do what is requested, then let others read until none does."""

        def ended(_number: int, _frame: Any) -> None:
            raise SystemExit

        signal.signal(signal.SIGTERM, ended)
        keep = True
        with contextlib.suppress(SystemExit):
            part = self._requested()
            if part:
                keep = not self._work(part)
                self._linger()
        self.clear(keep=keep and self._came())

    def _came(self) -> bool:
        """Whether there is anything to go on from."""
        return any(spooled(self.system.folder).values())

    def _requested(self) -> dict[str, Any]:
        until, allowed = time.monotonic() + self.request_limit, False
        while time.monotonic() < until:
            part = read_json(self.place / "part")
            if part:
                return part
            if not allowed and (self.place / HOSTS).exists():
                until, allowed = time.monotonic() + self.request_limit, True
            self.system.alive()
            time.sleep(0.05)
        return {}

    def _work(self, part: dict[str, Any]) -> bool:
        """Return whether this node has done what it was to do."""
        signal.signal(signal.SIGALRM, _too_late)
        signal.alarm(1800 + part["bytes"] // SLOWEST)
        try:
            self.work(part)
            return True
        except TransferError as error:
            self.system.say(state="failed", trouble=str(error))
        except OSError as error:
            self.system.say(state="failed", trouble=f"{error}. Remedy: check the disk of {self.place}, and run again.")
        finally:
            signal.alarm(0)
        with contextlib.suppress(FileNotFoundError):
            (self.place / "pulse").unlink()  # those after this node turn to another
        return False

    def _linger(self) -> None:
        read = time.monotonic()
        while time.monotonic() - read < LINGER:
            time.sleep(2.0)
            if readers(self.place):
                read = time.monotonic()

    # -- queue, go, wait, end -----------------------------------------------------------------------------------

    def queue(self, seconds: float) -> dict[str, Any]:
        """Wait until no transfer runs on this node; return what one that still does reports after some seconds."""
        until = time.monotonic() + seconds
        while (reported := held_by(self.place)) and time.monotonic() < until:
            time.sleep(0.2)
        return reported

    def mine(self) -> dict[str, Any]:
        """Return what the lock says, where this transfer has it."""
        reported = read_json(self.place / "lock")
        return reported if reported.get("run") == self.run and running(int(reported["pid"])) else {}

    def check_mine(self) -> None:
        if not self.mine():
            raise TransferError("the process of this transfer is gone. Remedy: run again.")

    def allow(self, part: dict[str, Any]) -> None:
        """Let the readers in."""
        self.check_mine()
        (self.place / HOSTS).write_text(known_hosts(part["sources"]), encoding="utf-8")
        python = sys.executable or find_program("python3") or "python3"
        command = server_command(str(self.place), python, self.account)
        until = time.time() + 1800 + part["bytes"] // SLOWEST + 3600
        lines = [key_line(key, command, name, self.run, until) for name, key in part["readers"].items()]
        self._authorize(lambda text: with_keys(without_keys(text, str(self.place)), lines))

    def go(self, part: dict[str, Any]) -> None:
        """Send the process its instructions."""
        self.check_mine()
        write_json(self.place / "part", part)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Return what the process says, when it has done its part or after some seconds."""
        until = time.monotonic() + seconds
        while True:
            there = bool(self.mine())
            state = read_json(self.place / "state")
            if state.get("run") == self.run and state.get("state") in ("done", "failed"):
                return {**state, "over": True}
            if not there:
                reported = "the process of the transfer was killed. Remedy: run again; the transfer resumes."
                return {"state": "failed", "trouble": reported, "over": True}
            if time.monotonic() > until:
                return {**state, "over": False}
            time.sleep(0.05)

    def progress(self) -> dict[str, Any]:
        """Return the bytes that this node is to get, and those that it has of them."""
        return {
            "bytes": int(read_json(self.place / "part").get("bytes") or 0),
            "spooled": sum(spooled(self.system.folder).values()),
        }

    def end(self, keep: bool) -> None:
        """End the process and remove everything but, where ``keep`` is set, the parts that came."""
        reported = read_json(self.place / "lock")
        if reported and reported.get("run") != self.run and running(int(reported.get("pid", 0))):
            return  # another transfer's
        if self.mine():
            pid = int(reported["pid"])
            for number, patience in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                until = time.monotonic() + patience
                while running(pid) and time.monotonic() < until:
                    time.sleep(0.02)
        self.clear(keep and self._came())

    def clear(self, keep: bool) -> None:
        """Remove keys, and what this transfer has left; the lock last."""
        self._authorize(lambda text: without_keys(text, str(self.place)))
        for pid in readers(self.place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.remove_partial()
        if not self.place.is_dir():
            return
        for path in self.place.iterdir():
            if path.name not in ("blobs", "lock"):
                path.unlink()
        if not keep:
            blobs = self.place / "blobs"
            if blobs.is_symlink():
                blobs.unlink()
            elif blobs.exists():
                shutil.rmtree(blobs)
            (self.place / "lock").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # where the next transfer has begun there meanwhile
                self.place.rmdir()

    def _authorize(self, change: Callable[[str], str]) -> None:
        try:
            found = pwd.getpwnam(self.account)
        except KeyError as error:
            raise TransferError(f"there is no account {self.account}. Remedy: correct ansible_user.") from error
        path = Path(found.pw_dir, ".ssh", "authorized_keys")
        try:
            rewrite(path, change, (found.pw_uid, found.pw_gid))
        except FolderError as error:
            raise TransferError(str(error)) from error


def spooled(folder: Path) -> dict[str, int]:
    """Return the parts that have come, and their sizes."""
    with contextlib.suppress(FileNotFoundError):
        return {path.name: path.stat().st_size for path in folder.iterdir()}
    return {}


def _too_late(_number: int, _frame: Any) -> None:
    raise TransferError("it took too long. Remedy: check the links between the nodes (bench_network.yml); run again.")


def running(pid: int) -> bool:
    """Whether there is a process of this number that is not just waiting to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def readers(place: Path) -> list[int]:
    """Return the processes that read out this spool for others."""
    program = f"{place}/serve.py".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if program in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
