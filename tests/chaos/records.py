# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is kept of each round, a JSON line each; and which round of a plan comes next."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from tests.chaos.plan import Round

Outcome = Literal["converged", "refused", "failed", "not made"]
SOURCES = ("plugins", "roles", "playbooks")
"""A change here is another collection: what was counted before says nothing of it."""


@dataclass(frozen=True)
class Record:
    """A round that came to its end."""

    seed: int
    round: int
    fault: str
    target: str
    scope: str
    """What SIGKILL met; empty where no controller was killed."""
    moment: str
    """The task that was running when it happened; empty for what happens between two runs."""
    outcome: Outcome
    """``refused``: refused with a remedy that was followed, and then converged. ``not made``: counts for nothing."""
    why: str
    refusals: list[str]
    followed: list[str]
    """What was done because a refusal said so."""
    seconds: float
    digest: str
    commit: str
    nodes: int
    lab: str
    ansible: str
    at: str


def digest(root: Path) -> str:
    """Return what stands for the collection's code: the names and contents of all files of its three folders."""
    found = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted(path for path in (root / folder).rglob("*") if path.is_file()):
            if "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(root)}\0".encode())
                found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def commit(root: Path) -> str:
    """Return the commit of a checkout, with a mark where files of it were changed since."""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() or "unknown"


def without_paths(text: str, root: Path) -> str:
    """Return a text without the places of this machine."""
    text = text.replace(f"{root}/", "").replace(str(root), ".").replace(str(Path.home()), "~")
    return re.sub(r"/tmp/[\w./-]+", "/tmp/…", text)


def append(path: Path, record: Record) -> None:
    """Add a line, whole or not at all, and on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (json.dumps(asdict(record), ensure_ascii=False) + "\n").encode()
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        # A line that a crash has cut off stays a line of its own, which read() leaves out.
        size = os.lseek(handle, 0, os.SEEK_END)
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        os.write(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> list[Record]:
    """Return all records of a file that were written whole; none where there is no file."""
    found = []
    names = {field.name for field in fields(Record)}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            values = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(values, dict) and names <= set(values):
            found.append(Record(**{name: values[name] for name in names}))
    return found


def pending(rounds: Sequence[Round], records: Iterable[Record], seed: int, of: str, nodes: int) -> list[Round]:
    """Return the rounds of a plan that are still to be made with this seed, this code and this size of lab."""
    made = {one.round for one in records if (one.seed, one.digest, one.nodes) == (seed, of, nodes)}
    return [one for one in rounds if one.number not in made]
