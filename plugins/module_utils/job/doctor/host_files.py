# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node itself shows: messages of the kernel, GPUs, NCCL's RAS, pressure, memory, disks.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .process_files import kernel_message, pressure_of
from .processes import Proc

MOST_RECORDS = 20000
MOST_MESSAGES = 100
GPU_FIELDS = ("index", "name", "utilization.gpu", "memory.used", "memory.total", "pstate", "power.draw")
RAS = ("127.0.0.1", 28028)
"""Where NCCL answers on each node, unless NCCL_RAS_ADDR says otherwise."""
RAS_SINCE = (2, 28, 7)
"""In 2.26 and 2.27 a job can crash when RAS is asked (nccl#1996, nccl#1669)."""
DISKS = ("/", "/dev/shm", "/tmp")
"""A file system of a user's is not asked: one that does not answer would block the doctor, too."""


def host(
    proc: Proc, reports: Iterable[Mapping[str, Any]], age: float, until: float, missing: list[str]
) -> dict[str, Any]:
    releases = [str(report.get("releases", {}).get("nccl", "")) for report in reports]
    found: dict[str, Any] = {
        "kernel": messages(proc, age, missing),
        "pressure": pressure(proc),
        "memory": memory(proc),
        "disk": disks(proc),
    }
    left = until - time.monotonic()
    if proc.root == Path("/") and left > 1:
        found["gpus"] = gpus(min(4.0, left))
        left = until - time.monotonic()
        if left > 1 and any(release_of(release) >= RAS_SINCE for release in releases):
            found["ras"] = ras(min(5.0, left))
    return found


def release_of(words: str) -> tuple[int, ...]:
    return tuple(int(part) for part in words.split(".") if part.isdigit())


def messages(proc: Proc, age: float, missing: list[str]) -> list[dict[str, Any]]:
    """Return what the kernel has said since the ranks were started that may explain a hang, if it may be read here."""
    found: list[dict[str, Any]] = []
    uptime = proc.text("uptime").split()
    try:
        number = os.open(proc.root / "dev" / "kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        missing.append(f"messages of the kernel: {error.strerror}")
        return []
    try:
        for _number in range(MOST_RECORDS):
            record = os.read(number, 8192).decode("utf-8", "replace")
            if not record:
                break
            one = kernel_message(record, float(uptime[0]) if uptime else 0.0)
            if one is not None and one["age"] <= age:
                found.append(one)
    except BlockingIOError:
        pass
    except OSError as error:
        missing.append(f"messages of the kernel: {error.strerror}")
    finally:
        os.close(number)
    return found[-MOST_MESSAGES:]


def pressure(proc: Proc) -> dict[str, float]:
    read = {name: pressure_of(proc.text("pressure", name)) for name in ("cpu", "memory", "io")}
    return {name: value for name, value in read.items() if value is not None}


def memory(proc: Proc) -> dict[str, int]:
    found = {}
    for line in proc.text("meminfo").splitlines()[:8]:
        name, _colon, value = line.partition(":")
        words = value.split()
        if name in {"MemTotal", "MemAvailable"} and words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def disks(proc: Proc) -> dict[str, int]:
    """Return free bytes."""
    found = {}
    for path in DISKS:
        with contextlib.suppress(OSError):
            status = os.statvfs(proc.root / path.lstrip("/"))
            found[path] = status.f_bavail * status.f_frsize
    return found


def gpus(seconds: float) -> list[dict[str, Any]]:
    """Return what nvidia-smi says of the GPUs."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    words = [program, "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
        lines = ran.stdout[: 1 << 16].decode("utf-8", "replace").splitlines() if ran.returncode == 0 else []
        return [dict(zip(GPU_FIELDS, (word.strip() for word in line.split(",")))) for line in lines[:64]]
    return []


def ras(seconds: float) -> str:
    """Return what NCCL's RAS says of the whole job; it is asked on loopback only."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(RAS, timeout=min(seconds, 1.0)) as ras_socket:
        ras_socket.settimeout(seconds)
        ras_socket.sendall(b"timeout 3\nverbose status\n")
        until = time.monotonic() + seconds
        while len(answer) < 1 << 16 and time.monotonic() < until:
            part = ras_socket.recv(1 << 16)
            if not part:
                break
            answer += part
    return answer[: 1 << 16].decode("utf-8", "replace")
