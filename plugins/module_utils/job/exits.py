# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Exit codes of ranks and launchers: what they mean, and where the launchers of DeepSpeed and PyTorch print them.

Formats: deepspeed/launcher/launch.py 0.16.9 to 0.19.8, pdsh 2.34, torch.distributed.run of PyTorch 2.13.0.
Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import NamedTuple

# Numbers have at most nine digits, as in launcher_log.py.
_LAUNCH = re.compile(r"exits with return code = (-?\d{1,9})(?!\d)")
_FROM_LAUNCH = ("deepspeed", "pdsh", "ssh")
_PDSH = re.compile(r"pdsh@\S{1,255}: (\S{1,255}): ssh exited with exit code (\d{1,9})(?!\d)")
_TORCHRUN = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: ")
_TORCHRUN_RANK = re.compile(r"\s*rank\s+: (\d{1,9}) \(local_rank: \d+\)")
_TORCHRUN_HOST = re.compile(r"\s*host\s+: ([A-Za-z0-9][\w.-]{0,254})$")
_TORCHRUN_CODE = re.compile(r"\s*exitcode\s+: (-?\d{1,9})\s+\(pid: ")
_ROOT_CAUSE = "Root Cause (first observed failure):"
_SRUN = re.compile(r"srun: error: ([A-Za-z0-9][\w.-]{0,254}): tasks? (\d{1,9})[\d,-]*: (.{1,200})")
_SRUN_CODE = re.compile(r"Exited with exit code (\d{1,9})")
_SRUN_WORDS = {"Out Of Memory": 137, "Killed": 137, "Segmentation fault": 139, "Aborted": 134, "Bus error": 135}
_MPIRUN = re.compile(
    r"process rank (\d{1,9}) with PID \d{1,9} on node ([A-Za-z0-9][\w.-]{0,254}) exited on signal (\d{1,9})"
)
_SIGNALS = {"SIGKILL": "exit-sigkill", "SIGBUS": "exit-sigbus", "SIGILL": "exit-sigill", "SIGSEGV": "exit-sigsegv"}
_SIGNALS.update({"SIGABRT": "exit-sigabrt", "SIGTERM": "ended-from-outside", "SIGINT": "ended-from-outside"})
_SIGNALS.update({"SIGHUP": "ended-from-outside", "SIGQUIT": "ended-from-outside"})
_SIGNAL_WORDS = {
    "SIGKILL": "often the kernel's out-of-memory killer",
    "SIGBUS": "often a full /dev/shm",
    "SIGILL": "an operator compiled for another processor",
    "SIGSEGV": "a crash in compiled code",
    "SIGABRT": "a library ended the process",
    "SIGTERM": "ended from outside",
    "SIGHUP": "ended from outside, as its terminal or session was closed",
}


class ExitMeaning(NamedTuple):
    """What an exit code says: in words, and which entry of the table it is, if any."""

    code: int
    signal: str
    text: str
    id: str


def exit_meaning(code: int, launcher: str = "deepspeed") -> ExitMeaning:
    """Say what an exit code means. launch.py turns signal n into 256 - n, a shell into 128 + n, Python into -n."""
    number = -code
    if code > 0:
        number = 256 - code if launcher in _FROM_LAUNCH and 224 < code < 255 else code - 128  # 255: ssh, or exit(-1)
    name = ""
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = ""
    if name:
        words = _SIGNAL_WORDS.get(name)
        return ExitMeaning(
            code, name, f"exit code {code}: {name}" + (f", {words}" if words else ""), _SIGNALS.get(name, "")
        )
    if code == 255 and launcher in ("pdsh", "ssh"):
        return ExitMeaning(code, "", f"exit code {code}: ssh itself failed", "exit-ssh")
    if code in (126, 127):
        what = "may not be run" if code == 126 else "was not found"
        return ExitMeaning(code, "", f"exit code {code}: the command {what}", "exit-not-found")
    return ExitMeaning(code, "", f"exit code {code}", "")


@dataclass
class Summary:
    """What torchrun's summary at the end of a log has named so far: of which rank it speaks."""

    rank: int | None = None
    node: str = ""
    first: bool = False


class Ended(NamedTuple):
    """An exit code that a launcher prints. ``first``: it says that this rank was the first."""

    code: int
    launcher: str
    node: str = ""
    rank: int | None = None
    first: bool = False


def exits_in(line: str, summary: Summary) -> list[Ended]:  # noqa: PLR0911 - one for each launcher
    """Return the exit codes in ``line``. ``summary`` keeps what earlier lines of the log have named."""
    if _ROOT_CAUSE in line:
        summary.first = True
    elif "exits with return code" in line:
        return [Ended(int(code), "deepspeed") for code in _LAUNCH.findall(line)]
    elif "exits successfully" in line and "launch.py" in line:
        return [Ended(0, "deepspeed")]
    elif "ssh exited with" in line:
        return [Ended(int(code), "pdsh" if code == "255" else "deepspeed", node) for node, code in _PDSH.findall(line)]
    elif "srun: " in line:
        return _of_srun(line)
    elif "exited on signal" in line:
        return [Ended(128 + int(number), "mpirun", node, int(rank)) for rank, node, number in _MPIRUN.findall(line)]
    elif "exitcode" in line or "rank  " in line or "host  " in line:
        return _of_torchrun(line, summary)
    return []


def _of_torchrun(line: str, summary: Summary) -> list[Ended]:
    host, named, code = _TORCHRUN_HOST.match(line), _TORCHRUN_RANK.match(line), _TORCHRUN_CODE.match(line)
    if host:
        summary.node = host.group(1)
    if named:
        summary.rank = int(named.group(1))
    if not code:
        return [Ended(int(number), "torchrun") for number in _TORCHRUN.findall(line)]
    ended = Ended(int(code.group(1)), "torchrun", summary.node, summary.rank, summary.first)
    summary.rank, summary.node, summary.first = None, "", False
    return [ended]


def _of_srun(line: str) -> list[Ended]:
    found = _SRUN.search(line)
    if not found:
        return []
    code = _SRUN_CODE.search(found.group(3))
    number = (
        int(code.group(1)) if code else next((_SRUN_WORDS[word] for word in _SRUN_WORDS if word in found.group(3)), 0)
    )
    return [Ended(number, "srun", found.group(1), int(found.group(2)))] if number else []
