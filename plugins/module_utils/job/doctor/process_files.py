# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Readers of what Linux shows of processes: /proc/PID/{stat,status,syscall,cgroup}, /proc/locks, mounts, /dev/kmsg.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

CALLS = {
    "x86_64": {
        **{0: "read", 1: "write", 2: "open", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv"},
        **{20: "writev", 23: "select", 34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto"},
        **{45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync"},
        **{75: "fdatasync", 78: "getdents", 82: "rename", 128: "rt_sigtimedwait", 202: "futex", 217: "getdents64"},
        **{230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 262: "newfstatat", 270: "pselect6"},
        **{271: "ppoll", 281: "epoll_pwait", 288: "accept4", 332: "statx"},
    },
    "aarch64": {
        **{22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 61: "getdents64", 63: "read"},
        **{64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll"},
        **{79: "newfstatat", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep"},
        **{115: "clock_nanosleep", 137: "rt_sigtimedwait", 202: "accept", 203: "connect", 206: "sendto"},
        **{207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4", 291: "statx"},
    },
}
"""Names of the calls in which processes wait, by machine and number."""
OF_FILES = {
    *("read", "write", "pread64", "pwrite64", "readv", "writev", "flock", "fcntl", "fsync", "fdatasync", "getdents64"),
    *("getdents", "ioctl"),
}
"""Those whose first argument is an open file."""
_SIGNALS = re.compile(r"^(SigBlk|SigIgn|SigCgt):\s*([0-9a-f]{1,32})$", re.MULTILINE)
_LOCK = re.compile(r"^\d+: (?P<waits>-> )?(?P<kind>\w+)\s+\w+\s+\w+\s+(?P<pid>-?\d+) (?P<file>\S+)")
TELLING = re.compile(
    r"out of memory|oom-kill|hung_task|blocked for more than|nvrm: xid|link is (?:not ready|down)|i/o error|"
    r"nfs: server .* not responding|segfault|soft lockup|nvlink|mlx5.*(?:error|timeout)|mce: |pcieport.*error",
    re.IGNORECASE,
)
"""Messages of the kernel that can say why a rank does not go on."""


def stat_of(content: str) -> dict[str, Any] | None:
    """Return name, state, parent, processor time and start in ticks, and exit status in /proc/PID/stat."""
    name, closed, rest = content.partition("(")[2].rpartition(")")
    fields = rest.split()
    if not closed or len(fields) < 13:
        return None
    try:
        status = int(fields[49]) if len(fields) > 49 else 0
        return {
            "name": name,
            "state": fields[0],
            "parent": int(fields[1]),
            "ticks": int(fields[11]) + int(fields[12]),
            "threads": int(fields[17]) if len(fields) > 17 else 1,
            "start": int(fields[19]) if len(fields) > 19 else 0,
            "signal": status & 0x7F,
            "code": status >> 8 & 0xFF,
        }
    except ValueError:
        return None


def signals_of(content: str) -> dict[str, int]:
    """Return the masks of blocked, ignored and caught signals in /proc/PID/status."""
    return {name: int(mask, 16) for name, mask in _SIGNALS.findall(content)}


def has_signal(mask: int, number: int) -> bool:
    return bool(mask >> (number - 1) & 1)


def call_of(content: str, machine: str) -> tuple[str, int | None]:
    """Return the system call in /proc/PID/task/TID/syscall, and its first argument."""
    words = content.split()
    if not words or not words[0].lstrip("-").isdigit():
        return ("running", None) if words[:1] == ["running"] else ("", None)
    name = CALLS.get(machine, {}).get(int(words[0]), words[0])
    try:
        return name, int(words[1], 16) if len(words) > 1 else None
    except ValueError:
        return name, None


def kernel_functions(content: str) -> list[str]:
    """Return the functions in /proc/PID/task/TID/stack, innermost first."""
    found = re.findall(r"^\[<[^>]*>\] ([\w.]{1,80})", content[:4096], re.MULTILINE)
    return found[:12]


def locks_of(content: str, pids: Mapping[int, str]) -> dict[int, list[dict[str, Any]]]:
    """Return for each of the processes the locks of files that it waits for, with who holds them."""
    found: dict[int, list[dict[str, Any]]] = {}
    holders: dict[str, int] = {}
    for line in content.splitlines()[:10000]:
        matched = _LOCK.match(line)
        if not matched:
            continue
        pid = int(matched.group("pid"))
        if not matched.group("waits"):
            holders[matched.group("file")] = pid
        elif pid in pids:
            holder = holders.get(matched.group("file"))
            found.setdefault(pid, []).append({"kind": matched.group("kind"), "holder": holder, "waits": True})
    return found


def cgroups_of(content: str) -> dict[str, str]:
    """Return the paths in /proc/PID/cgroup by controller; that of version 2 has none."""
    found = {}
    for line in content.splitlines()[:64]:
        _number, _colon, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            found.update(dict.fromkeys(controllers.split(","), path))
    return found


def cgroup_mounts(content: str) -> dict[str, tuple[str, str]]:
    """Return where cgroups are mounted, and what of them, in /proc/self/mountinfo: by controller, version 2 as ""."""
    found = {}
    for line in content.splitlines()[:4096]:
        before, dash, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if not dash or len(words) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2":
            found[""] = (words[4], words[3])
        elif kinds[0] == "cgroup":
            found.update(dict.fromkeys(kinds[2].split(","), (words[4], words[3])))
    return found


def flat(content: str) -> dict[str, int]:
    """Return the numbers of a file such as cpu.stat or memory.events: a name and a number on each line."""
    pairs = (line.split() for line in content.splitlines()[:64])
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def pressure_of(content: str) -> float | None:
    """Return the share of the last 10 s in which some process waited, in percent, in /proc/pressure/*."""
    matched = re.match(r"some avg10=(\d+\.\d+)", content)
    return float(matched.group(1)) if matched else None


def kernel_message(record: str, uptime: float) -> dict[str, Any] | None:
    """Return a record of /dev/kmsg that says something, with its age in seconds."""
    prefix, semicolon, line = record.partition(";")
    words = prefix.split(",")
    if not semicolon or len(words) < 3 or not words[2].isdigit() or not TELLING.search(line[:300]):
        return None
    return {"age": round(uptime - int(words[2]) / 1e6, 1), "line": line.splitlines()[0][:300]}
