# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Any launcher's log, read for a diagnosis, and the diagnosis as plain data. For the controller."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ...module_utils.job.diagnose import first_cause
from ...module_utils.job.evidence import Finding

# Numbers have at most nine digits, as in module_utils/job/launcher_log.py.
_OUR_LINE = re.compile(r"([A-Za-z0-9][\w.-]*): rank (\d{1,9}): ?(.*)", re.DOTALL)
_NODE_LINE = re.compile(r"([A-Za-z0-9][\w.-]*): (.*)", re.DOTALL)
_NODE_SIGNS = (
    re.compile(r"^([A-Za-z0-9][\w.-]*): rank \d{1,9}: ", re.MULTILINE),
    re.compile(
        r"^([A-Za-z0-9][\w.-]*): (?:\[\d{4}-[^]\n]*\] \[\w+\] \[|\[rank\d+\]: |\[default\d+\]:|Traceback \(most)",
        re.MULTILINE,
    ),
    re.compile(r"^pdsh@\S+: ([A-Za-z0-9][\w.-]*): ", re.MULTILINE),
)
_PROGRAMS = {
    *(
        "docker",
        "srun",
        "slurmstepd",
        "nvidia-container-cli",
        "mpirun",
        "orterun",
        "python",
        "python3",
        "bash",
        "sh",
        "ssh",
    ),
    *("kernel", "systemd", "dockerd", "containerd", "torchrun", "deepspeed", "accelerate", "wandb", "swarmspeed"),
}
"""Words before a colon that are not nodes."""
_WORKERS = re.compile(r"Running on the following workers: (\S+)")


def split_log(text: str, nodes: Iterable[str] = ()) -> list[tuple[str, int | None, str]]:
    """Read a log of any launcher: ``NODE: rank N: text``, pdsh's ``NODE: text``, or lines without a prefix.

    What stands before a colon is a node only where something says so, as ``ValueError: text`` looks the same.
    """
    names = {name for sign in _NODE_SIGNS for name in sign.findall(text)} | {str(name) for name in nodes}
    names |= {name for found in _WORKERS.findall(text) for name in found.split(",")}
    heads = [_NODE_LINE.match(line) for line in text.split("\n") if line.strip() and not line.startswith("pdsh@")]
    if not nodes and heads and all(heads):  # every line has one: a launcher put it there
        found = {head.group(1) for head in heads if head}
        names |= {
            name for name in found - _PROGRAMS if not name.endswith(("Error", "Exception", "Warning", "Interrupt"))
        }
    lines: list[tuple[str, int | None, str]] = []
    for line in text.split("\n"):
        if line.startswith("pdsh@"):
            lines.append(("", None, line))
            continue
        ours = _OUR_LINE.match(line)
        if ours and ours.group(1) in names:
            lines.append((ours.group(1), int(ours.group(2)), ours.group(3)))
            continue
        noded = _NODE_LINE.match(line)
        if noded and noded.group(1) in names:
            lines.append((noded.group(1), None, noded.group(2)))
        else:
            lines.append(("", None, line))
    return lines


def as_dict(findings: list[Finding]) -> dict[str, Any]:
    """Return the first cause with its fields by name, and the other findings likewise."""
    first = first_cause(findings)
    if first is None:
        nothing = "Not known; the log has no error line."
        first = Finding("unknown", "unknown", nothing, "Check the end of the log, and the exit codes of the ranks.")
    others = [_fields(finding) for finding in findings if finding is not first]
    return {"known": not first.id.startswith("unknown"), **_fields(first), "others": others}


def _fields(finding: Finding) -> dict[str, Any]:
    return asdict(finding)
