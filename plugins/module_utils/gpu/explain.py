# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What nvidia-smi prints when it fails, and what that means, with the remedy.

Sources: nvidia-smi(1) for its return values, and public reports for the messages. For the infoROM:
pytorch/pytorch#87464, and NVIDIA/DCGM#2, where diagnostics pass beside the warning and the advice is DCGM's own.
"""

from __future__ import annotations

import re

from ..common.command_io import TIMED_OUT, CommandResult
from .smi import ROW_START

MISMATCH = "Driver/library version mismatch"

INFOROM = 14
"""Exit status of nvidia-smi where the infoROM of a GPU is corrupted, which keeps no GPU from computing."""

ENOUGH = (0, INFOROM)
"""Exit statuses with which nvidia-smi has answered."""

MOST_REMARKS = 64
"""A host has fewer GPUs."""

_WARNING = re.compile(r"\s*warning\b", re.IGNORECASE)

CHECK_LOG = "Check `dmesg | grep -e Xid -e NVRM`"

_REMEDIES = (
    (
        "couldn't communicate with the NVIDIA driver",
        "the kernel module is not loaded or was not built for the running kernel. Check `dkms status`, then "
        "`modprobe nvidia`; after an installation, reboot",
    ),
    (
        MISMATCH,
        "the loaded kernel module and the libraries are of different versions, as after an upgrade without a reboot. "
        "Reboot this host",
    ),
    (
        "No devices were found",
        "the driver is loaded but uses no GPU. Check `dmesg | grep NVRM`; the usual reasons are a driver branch that "
        "does not support this GPU, and the wrong flavour of kernel module (open or proprietary) for its generation",
    ),
    (
        "Unable to determine the device handle",
        "a GPU does not answer and may have fallen off the bus. Check `dmesg | grep Xid`, then power the host off "
        "and on",
    ),
    (
        "GPU is lost",
        "a GPU has fallen off the bus or failed. Check `dmesg | grep Xid`, then power the host off and on; one that "
        "is lost again has a fault of its own, its slot or its power supply",
    ),
    (
        "Insufficient Permissions",
        "this account may not use the driver. Run with privileges (become: true)",
    ),
    (
        "couldn't find libnvidia-ml.so",
        "the driver's management library is missing. Install it in the driver's version (Debian: libnvidia-ml1, "
        "Ubuntu: libnvidia-compute-<branch>-server)",
    ),
)


def explain(answer: CommandResult) -> str | None:
    """Return what is wrong, with cause and remedy, or None where nvidia-smi is content or only warns.

    What stands in the row of a GPU concerns that GPU alone. Where there are rows, an exit status that comes with a
    warning says nothing more than the warning.
    """
    lines = _beside_rows(answer)
    for reported, meaning in _REMEDIES:
        line = next((line for line in lines if reported.lower() in line.lower()), None)
        if line is not None:
            return f"nvidia-smi says '{line}': {meaning}."
    if answer.rc == TIMED_OUT:
        return (
            f"nvidia-smi gave {answer.stderr}: the driver hangs, often on a GPU that has failed. "
            f"{CHECK_LOG}, then reboot this host."
        )
    if answer.rc != 0 and not remarks(answer):
        reported = " ".join(lines)[:300].rstrip(".") or "nothing"
        return (
            f"nvidia-smi ended with status {answer.rc} and printed: {reported}. Run nvidia-smi on this host and check "
            "`dmesg | grep -e Xid -e NVRM`."
        )
    return None


def remarks(answer: CommandResult) -> list[str]:
    """Return the warnings beside the rows of GPUs, in nvidia-smi's own words; none where it lists no GPU."""
    if not any(ROW_START.match(line) for line in answer.text.splitlines()):
        return []
    found = list(dict.fromkeys(line for line in _beside_rows(answer) if _WARNING.match(line)))[:MOST_REMARKS]
    return found or (["infoROM is corrupted (exit status 14)"] if answer.rc == INFOROM else [])


def _beside_rows(answer: CommandResult) -> list[str]:
    return [line.strip()[:300] for line in answer.text.splitlines() if not ROW_START.match(line)]
