# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part in a job: its launcher, what it and its ranks print, how they end, and that nothing stays behind.

Part of the supervisor's archive: standard library, Python 3.8 or later. Never waits: whoever holds a part
polls it, and a part that is being stopped goes on to the next signal by itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

MARKER = "SWARMSPEED_JOB"
"""Environment variable that finds the processes of a job, wherever their parent or process group is."""
LONGEST_LINE = 65536
BAR_INTERVAL = 10.0
"""Seconds between two lines of a progress bar that redraws itself without ending its line."""
SCAN_INTERVAL = 1.0
"""Seconds between two checks for ranks that are new."""

_RANK_FILE = re.compile(r"_rank(\d+)\.log$")
"""What launch.py calls the log of a rank (--enable_each_rank_log)."""


def environments(folder: Path) -> dict[int, dict[bytes, bytes]]:
    """Process number and environment of each living process of the job whose folder this is."""
    wanted = f"{MARKER}={folder}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile, or not ours
            lines = (entry / "environ").read_bytes().split(b"\0")
            if wanted in lines:
                pairs = (line.partition(b"=") for line in lines if line)
                found[int(entry.name)] = {name: value for name, _sign, value in pairs}
    return found


def survivors(folder: Path) -> list[int]:
    """Processes of the job on this node that are alive."""
    return list(environments(folder))


def rank_pids(found: Mapping[int, Mapping[bytes, bytes]]) -> dict[int, int]:
    """The process of each rank, of ``environments``: the first one, as its data loaders inherit the variable."""
    pids: dict[int, int] = {}
    for pid, environment in sorted(found.items()):
        text = environment.get(b"RANK", b"")
        if text.isdigit() and len(text) < 10:
            pids.setdefault(int(text), pid)
    return pids


def ended_with(pid: int) -> int | None:
    """How a process ended that its parent has not waited for yet; ``None`` while it runs and once it is gone.

    Linux shows it in the last field of /proc/PID/stat of a zombie (proc(5), exit_code). launch.py asks once a second.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] != "Z":
        return None
    status = int(fields[49])
    return -(status & 0x7F) if status & 0x7F else status >> 8


class Tail:
    """New lines of a file that grows. A bar that is redrawn without a line end is handed out now and then."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._clock = path, clock
        self._offset, self._rest, self._bar_at = 0, b"", clock()

    def lines(self, last: bool = False) -> list[str]:
        data = b""
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(-1 if last else 4 << 20)
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if self._rest and (last or len(self._rest) > LONGEST_LINE):
            whole.append(self._rest)
            self._rest = b""
        elif b"\r" in self._rest and self._clock() - self._bar_at >= BAR_INTERVAL:
            self._bar_at = self._clock()
            whole.append(self._rest)
            self._rest = b""
        return [line[:LONGEST_LINE].decode("utf-8", "replace") for line in whole]


class LocalRun:
    """One attempt of a job on this node. ``on_line(rank, line)`` gets each line; rank ``None`` for the launcher's."""

    def __init__(
        self,
        folder: Path,
        raw: str,
        on_line: Callable[[int | None, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self._raw, self._on_line, self._clock = folder, raw, on_line, clock
        self.launcher: subprocess.Popen[bytes] | None = None
        self.exit_code: int | None = None
        self.exits: dict[int, int] = {}
        """Exit codes of ranks, as far as they were seen; negative: a signal."""
        self.ranks: set[int] = set()
        """Ranks that have begun to write a log."""
        self.active_at = clock()
        """When anything was last printed."""
        self.shown = ("", "")
        """A folder in what is printed, and what a reader is shown instead: the run's own copy of the workspace."""
        self._first_rank = 0
        self._logs: Path | None = None
        self._tails: dict[Path, tuple[int | None, Tail]] = {}
        self._pids: dict[int, int] = {}
        self._scanned_at = 0.0
        self._kill_at: float | None = None
        self._grace = 0.0
        self._killed = False

    def begin(self, attempt: int, first_rank: int = 0) -> Path:
        """Where the launcher of this attempt is to put the logs of its ranks."""
        folder = self.folder / "ranks" / f"attempt-{attempt}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._first_rank, self._logs = first_rank, folder
        self._pids, self.exits, self.ranks, self.exit_code, self.launcher = {}, {}, set(), None, None
        self._kill_at, self._killed = None, False
        # What was printed before belongs to an earlier attempt.
        tail = Tail(self.folder / self._raw, self._clock)
        tail.lines(last=True)
        self._tails = {tail.path: (None, tail)}
        self.active_at = self._clock()
        return folder

    def launch(
        self, command: list[str], environment: dict[str, str], chdir: str | None, stdout: int | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command of the job's in a session of its own; what it prints goes to this node's log."""
        full = {**os.environ, **environment, MARKER: str(self.folder)}
        if chdir:
            full["PWD"] = chdir
        with (self.folder / self._raw).open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=chdir or None,
                env=full,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                start_new_session=True,
            )

    def start(
        self, command: list[str], environment: dict[str, str], chdir: str | None, rank: int | None = None
    ) -> None:
        """Start the launcher; with ``rank`` that rank itself, which has no log of its own to show itself by."""
        self.launcher = self.launch(command, environment, chdir)
        if rank is not None:
            self.ranks.add(rank)

    def poll(self) -> None:
        """Read what is new, see who has ended, and carry on with a stop that was begun."""
        now = self._clock()
        if now - self._scanned_at >= SCAN_INTERVAL:
            self._scanned_at = now
            self._find_ranks()
        for rank, pid in self._pids.items():
            if rank not in self.exits:
                code = ended_with(pid)
                if code is not None:
                    self.exits[rank] = code
        if self.launcher is not None and self.exit_code is None:
            self.exit_code = self.launcher.poll()
            if self.exit_code is not None:
                self._find_ranks()
        self._read(last=self.exit_code is not None)
        self._carry_on(now)

    def _read(self, last: bool) -> None:
        for rank, tail in list(self._tails.values()):
            for line in tail.lines(last):
                self.active_at = self._clock()
                self._on_line(rank, line.replace(*self.shown) if self.shown[0] else line)

    def _find_ranks(self) -> None:
        """Logs and processes of ranks that were not there before."""
        if self._logs is None:
            return
        for path in sorted(self._logs.rglob("*.log")):
            if path in self._tails:
                continue
            rank = self._rank_of(path)
            if rank is None:
                continue
            self.ranks.add(rank)
            self._tails[path] = (rank, Tail(path, self._clock))
            self._link(path, rank)
        for rank, pid in rank_pids(environments(self.folder)).items():
            self._pids.setdefault(rank, pid)

    def living(self) -> list[dict[str, Any]]:
        """Ranks whose process has not ended, as far as known."""
        return [{"rank": rank, "pid": pid} for rank, pid in sorted(self._pids.items()) if rank not in self.exits]

    def _rank_of(self, path: Path) -> int | None:
        found = _RANK_FILE.search(path.name)
        if found:
            return int(found.group(1))
        # torchrun --redirects 3: RUN/attempt_0/LOCAL_RANK/stdout.log and stderr.log
        return self._first_rank + int(path.parent.name) if path.parent.name.isdigit() else None

    def _link(self, path: Path, rank: int) -> None:
        """One name for the log of a rank, whatever the launcher calls it."""
        name = f"rank-{rank:05d}.err.log" if path.name == "stderr.log" else f"rank-{rank:05d}.log"
        beside = self.folder / "ranks" / f".{name}"
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
            os.link(path, beside)
            beside.replace(self.folder / "ranks" / name)

    def stop(self, grace: float) -> None:
        """SIGTERM to the launcher and all processes of the job on this node; SIGKILL to the rest after the grace."""
        if self._kill_at is None:
            self._grace = grace
            self._kill_at = self._clock() + grace
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.launcher is not None and self.launcher.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.launcher.pid, number)
        for pid in survivors(self.folder):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _carry_on(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + 1.0  # a process may be forking: until none is left
            self._killed = True
            self._signal(signal.SIGKILL)

    def clean(self) -> bool:
        """No process of this job is alive on this node."""
        ended = self.launcher is None or self.launcher.poll() is not None
        return ended and not survivors(self.folder)


def rest(seconds: float, tick: Callable[[], Any], until: Callable[[], bool], pause: float = 0.1) -> bool:
    """Tick until something is so, for at most some seconds; say whether it is."""
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() >= deadline:
            return False
        tick()
        time.sleep(pause)
    return True
