# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the log of a DeepSpeed launcher says about a job: its world size, which ranks ended how, and the first failure.

The formats are those of deepspeed/launcher (launch.py, runner.py, multinode_runner.py), releases 0.16.9 and 0.19.8.
Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections import deque

TAIL_LINES = 40
LONGEST_LINE = 65536

# Numbers have at most nine digits: Python refuses to read one of thousands, and a rank can print what it likes.
_LAUNCH = r"\[launch\.py:\d+:\w+\] "
_WORLD = re.compile(_LAUNCH + r"dist_world_size=(\d{1,9})(?!\d)")
_NODE = re.compile(_LAUNCH + r"nnodes=(\d{1,9}), num_local_procs=\d+, node_rank=(\d{1,9})(?!\d)")
_SUCCESS = re.compile(_LAUNCH + r"Process \d+ exits successfully")
_FROM_LAUNCH = re.compile(_LAUNCH)
_FAILURE = re.compile(r" exits with return code = (-?\d{1,9})(?!\d)")
_SSH = re.compile(r"pdsh@\S{1,255}: (\S{1,255}): ssh exited with exit code (\d{1,9})(?!\d)")
_WORKERS = re.compile(r"Running on the following workers: (\S+)")
_PREFIX = re.compile(r"^([\w.-]+): \[\d{4}-[^]]*\] \[\w+\] \[launch\.py:")
_RANK = re.compile(r"\[rank(\d{1,9})\]")
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ROUTINE = re.compile(r"\[INFO\] \[(?:launch|runner|multinode_runner)\.py:")
_NO_HOSTFILE = "Unable to find hostfile, will proceed with training with local resources only"
_TRACEBACK = "Traceback (most recent call last):"
_SYMPTOMS = ("Connection reset by peer", "Connection closed by peer", "Broken pipe", "Socket Timeout")


def plain(text: str) -> str:
    """``text`` without terminal control codes; of a progress bar redrawn with carriage returns its last state."""
    drawn = [piece for piece in text.split("\r") if piece.strip()]
    return _CONTROL.sub("", drawn[-1]).rstrip() if drawn else ""


class LogWatch:
    """What the log of a launcher has shown so far. Lines of other nodes begin with pdsh's ``host: ``."""

    def __init__(self) -> None:
        self.world_sizes: list[int] = []
        self.node_ranks: set[int] = set()
        self.successes = 0
        self.successes_of: dict[str, int] = {}
        self.no_hostfile = False
        self.hosts: list[str] = []
        self.exits: list[tuple[str, int, bool]] = []  # node, exit code, whether it is ssh's own
        self.tracebacks: list[tuple[str, list[str]]] = []  # prefix, lines
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._open: list[tuple[str, list[str]]] = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._line(line.decode("utf-8", "replace"))

    def finish(self) -> None:
        """Read the last line although no newline ended it."""
        self.feed(b"\n")

    def host_of(self, line: str) -> str:
        head, colon, _rest = line.partition(": ")
        return head if colon and head in self.hosts else ""

    def _line(self, raw: str) -> None:
        workers = _WORKERS.search(raw)
        if workers:
            self.hosts = workers.group(1).split(",")
        prefix = _PREFIX.match(raw)  # the line above is missing where the launcher runs with --log_level warning
        if prefix and prefix.group(1) not in self.hosts:
            self.hosts.append(prefix.group(1))
        # Searched, not matched: a progress bar without a newline can stand before a launcher's line.
        self.world_sizes += [int(size) for size in _WORLD.findall(raw)]
        self.node_ranks |= {int(rank) for _count, rank in _NODE.findall(raw)}
        successes = len(_SUCCESS.findall(raw))
        self.successes += successes
        if successes:
            self.successes_of[self.host_of(raw)] = self.successes_of.get(self.host_of(raw), 0) + successes
        self.no_hostfile = self.no_hostfile or _NO_HOSTFILE in raw
        # In two steps: between the two stands a command of any length, and a pattern would look for it from each.
        launch = _FROM_LAUNCH.search(raw)
        codes = _FAILURE.findall(raw, launch.end()) if launch else []
        self.exits += [(self.host_of(raw), int(code), False) for code in codes[-1:]]
        self.exits += [(host, int(code), True) for host, code in _SSH.findall(raw)]
        host = self.host_of(raw)
        line = plain(raw[len(host) + 2 :] if host else raw)[:2000]
        if not line:
            return
        line = f"{host}: {line}" if host else line
        self._trace(line)
        if not _ROUTINE.search(line):
            self.tail.append(line)

    def _trace(self, line: str) -> None:
        at = line.find(_TRACEBACK)
        if at >= 0:
            if len(self.tracebacks) < 32 and all(prefix != line[:at] for prefix, _lines in self._open):
                self.tracebacks.append((line[:at], [_TRACEBACK]))
                self._open.append(self.tracebacks[-1])
            return
        for found in sorted(self._open, key=lambda item: -len(item[0])):
            prefix, lines = found
            if line.startswith(prefix):
                lines.append(line[len(prefix) :])
                if len(lines) > TAIL_LINES:
                    del lines[1]
                if not lines[-1][:1].isspace():  # the exception itself ends a traceback
                    self._open.remove(found)
                return

    @property
    def world_size(self) -> int | None:
        """The size the nodes agree on, or the smallest one they named."""
        return min(self.world_sizes) if self.world_sizes else None

    def culprit(self) -> tuple[str, int | None, list[str]]:
        """Node, rank and traceback of the first failure: a rank that lost its peer is a symptom, not the cause."""
        traces = [item for item in self.tracebacks if not any(text in item[1][-1] for text in _SYMPTOMS)]
        if not traces and self.exits:
            traced = [self.host_of(prefix) for prefix, _lines in self.tracebacks]
            host = next((item[0] for item in self.exits if item[0] not in traced), self.exits[0][0])
            traces = [item for item in self.tracebacks if self.host_of(item[0]) == host]
            if not traces:
                return host, None, []
        for prefix, lines in traces or self.tracebacks:
            rank = _RANK.search(prefix)
            return self.host_of(prefix), int(rank.group(1)) if rank else None, lines
        return "", None, []

    def wrong_world(self, world_size: int, nodes: int) -> str:
        """Why this cannot become the job that was requested; empty when nothing rules it out yet."""
        if self.no_hostfile and nodes > 1:
            return (
                f"DeepSpeed did not find its hostfile and would have trained on one node instead of {nodes}. "
                "Check --hostfile in the command and that the file is mounted into the container (--tags hostfile)."
            )
        wrong = [size for size in self.world_sizes if size != world_size]
        if wrong:
            return (
                f"DeepSpeed started with a world size of {wrong[0]}, expected {world_size}. "
                "Compare hosts and slots in the hostfile, and --include, --exclude, --num_nodes and --num_gpus "
                "in the command, with the nodes of the job."
            )
        return ""

    def incomplete(self, world_size: int, nodes: int) -> str:
        """Why a launcher that ended with 0, as have all ranks it reported, did not do the job; empty when it did."""
        if self.world_size is None:
            return (
                "the launcher ended with exit code 0 but never logged a world size, so nothing shows that it trained "
                f"on {world_size} ranks. Use the deepspeed launcher, without --quiet and with --log_level info."
            )
        if len(self.node_ranks) < nodes:
            return (
                f"only {len(self.node_ranks)} of {nodes} nodes started: node ranks {sorted(self.node_ranks)} are in "
                "the log. Check that ssh reaches the others and that their containers run (verify.yml)."
            )
        if self.successes < world_size:
            return (
                f"the launcher ended with exit code 0 but only {self.successes} of {world_size} ranks ended "
                "successfully: a launcher process was ended by a signal, which DeepSpeed reports as 0. "
                "Look for the out-of-memory killer in the kernel log, or for somebody who killed it."
            )
        return ""
