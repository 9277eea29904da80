# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The ranks of one case as processes: started, watched, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .catalogue import FOLDER, Case
from .faults import Network, kill


def stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on, or None where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def state(pid: int) -> str | None:
    """Return the state letter of a process; None where it has ended."""
    fields = stat(pid)
    return fields[0] if fields and fields[0] not in "ZX" else None


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class Launcher:
    """A process that has imported torch and forks ranks."""

    python: str
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Launcher:
        words = [self.python, "-u", "-W", "ignore", "-m", "job.launcher"]
        self.process = subprocess.Popen(words, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()
        return self

    def _read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def start(self, **request: Any) -> int:
        assert self.process.stdin
        with self._one_at_a_time:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return int(self._read())

    def __exit__(self, *dummy: object) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Ranks:
    case: Case
    folder: Path
    run: str
    python: str
    network: Network | None = None
    environment: dict[str, str] = field(default_factory=dict)
    launcher: Launcher | None = None
    pids: dict[int, int] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _read: dict[Path, int] = field(default_factory=dict)

    @property
    def private(self) -> Path:
        return self.folder / "private"

    def log(self, rank: int) -> Path:
        return self.folder / f"rank{rank}.log"

    def start(self) -> None:
        port = 29500 if self.network else free_port()
        for rank in self.case.ranks:
            own = {
                "MASTER_ADDR": "rank0.hangbench" if self.network else "127.0.0.1",
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(self.case.world),
                "OMP_NUM_THREADS": "1",
                "HANGBENCH_RUN": self.run,
                "HANGBENCH_PRIVATE": str(self.private),
                "HANGBENCH_PARAMETERS": json.dumps(self.case.parameters),
                "GLOO_SOCKET_IFNAME": "eth0" if self.network else "lo",
                **self.environment,
            }
            self.pids[rank] = self._forked(rank, own) if self.launcher else self._plain(rank, own)

    def _forked(self, rank: int, own: dict[str, str]) -> int:
        assert self.launcher
        return self.launcher.start(
            module=f"job.{self.case.script}",
            log=str(self.log(rank)),
            environment=own,
            namespace=f"/run/netns/{self.network.namespace(rank)}" if self.network else None,
            hosts=str(self.network.hosts[rank]) if self.network else None,
        )

    def _plain(self, rank: int, own: dict[str, str]) -> int:
        # A path is a script of a test.
        script = [self.case.script] if "/" in self.case.script else ["-m", f"job.{self.case.script}"]
        words = [self.python, "-u", "-W", "ignore", *script]
        if self.network:
            bind = 'mount --bind "$0" /etc/hosts && exec "$@"'
            inside = ["sh", "-c", bind, str(self.network.hosts[rank])]
            words = ["ip", "netns", "exec", self.network.namespace(rank), *inside, *words]
        with self.log(rank).open("ab") as log:
            process = subprocess.Popen(
                words,
                env={**os.environ, **own},
                cwd=FOLDER,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process.pid

    def alive(self, rank: int) -> bool:
        return rank in self.pids and state(self.pids[rank]) is not None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield what the ranks have printed since the last call."""
        for rank in self.case.ranks:
            for line in self._new(self.log(rank)):
                yield rank, line

    def moved(self) -> bool:
        """Return whether the trace of any rank has grown since the last call."""
        grown = [path for path in self.private.glob("trace-*") if list(self._new(path))]
        return bool(grown)

    def _new(self, path: Path) -> Iterator[str]:
        try:
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return
        if whole:
            self._read[path] = self._read.get(path, 0) + len(whole) + 1
            yield from whole.decode("utf-8", "replace").splitlines()

    def marks(self, name: str) -> dict[int, str]:
        found = {int(path.name.rpartition("-")[2]): path.read_text() for path in self.private.glob(f"{name}-*")}
        return {rank: value for rank, value in found.items() if value}

    def end(self) -> None:
        """End every process that this case started, whatever session it moved to."""
        deadline = time.monotonic() + 15
        while left := self._left():
            for pid in left:
                kill(pid, signal.SIGKILL)
            for process in self.processes:
                process.poll()
            if time.monotonic() > deadline:
                raise OSError(f"processes of {self.case.id} do not end: {left}")
            time.sleep(0.05)
        for process in self.processes:
            process.wait(timeout=5)

    def _left(self) -> list[int]:
        sessions = {str(pid) for pid in self.pids.values()}
        marker = f"HANGBENCH_RUN={self.run}".encode()
        found = []
        for path in Path("/proc").iterdir():
            if not path.name.isdigit() or (fields := stat(int(path.name))) is None or fields[0] in "ZX":
                continue
            with contextlib.suppress(OSError):
                if fields[3] in sessions or marker in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
        return found
