# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Exit codes of ranks and launchers: what they mean, and where the launchers of DeepSpeed and PyTorch print them.

Formats: deepspeed/launcher/launch.py 0.16.9 to 0.19.8, pdsh 2.34, torch.distributed.run of PyTorch 2.13.0.
Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

# Numbers have at most nine digits, as in launcher_log.py.
_LAUNCH = re.compile(r"exits with return code = (-?\d{1,9})(?!\d)")
_FROM_LAUNCH = ("deepspeed", "pdsh", "ssh")
_PDSH = re.compile(r"pdsh@\S{1,255}: (\S{1,255}): ssh exited with exit code (\d{1,9})(?!\d)")
_TORCHRUN = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: ")
_TORCHRUN_RANK = re.compile(r"\s*rank\s+: (\d{1,9}) \(local_rank: \d+\)")
_TORCHRUN_CODE = re.compile(r"\s*exitcode\s+: (-?\d{1,9})\s+\(pid: ")
_SIGNALS = {"SIGKILL": "exit-sigkill", "SIGBUS": "exit-sigbus", "SIGILL": "exit-sigill", "SIGSEGV": "exit-sigsegv"}
_SIGNALS.update({"SIGABRT": "exit-sigabrt", "SIGTERM": "ended-from-outside", "SIGINT": "ended-from-outside"})
_SIGNAL_WORDS = {
    "SIGKILL": "often the kernel's out-of-memory killer",
    "SIGBUS": "often a full /dev/shm",
    "SIGILL": "an operator compiled for another processor",
    "SIGSEGV": "a crash in compiled code",
    "SIGABRT": "a library ended the process",
    "SIGTERM": "ended from outside",
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


def exits_in(line: str) -> tuple[int | None, list[tuple[str, int, str]]]:
    """Return the rank that torchrun names in ``line``, and its exit codes: node where it is named, code, launcher."""
    if "exit" not in line and "rank" not in line:
        return None, []
    if "exits with return code" in line:
        return None, [("", int(code), "deepspeed") for code in _LAUNCH.findall(line)]
    if "exits successfully" in line and "launch.py" in line:
        return None, [("", 0, "deepspeed")]
    if "ssh exited with" in line:
        return None, [(node, int(code), "pdsh" if code == "255" else "deepspeed") for node, code in _PDSH.findall(line)]
    found = _TORCHRUN.findall(line) or _TORCHRUN_CODE.findall(line)
    named = _TORCHRUN_RANK.match(line)
    return int(named.group(1)) if named else None, [("", int(code), "torchrun") for code in found]
