# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An examination in the folder of a job: what a node found, and on the node of rank 0 what follows from all nodes.

Part of the supervisor's archive: standard library, Python 3.8 or later. Both parts run as processes of their own
(``supervisor.pyz FOLDER --examine NAME`` and ``--judge NAME``): whatever they meet, a rank in an uninterruptible wait
or a record of a gigabyte, the supervisor reads its logs and answers its nodes meanwhile.

    hangs/0001/examination.json    on every node: what collect.py found here, and the last lines of the ranks
    hangs/0001/examination.z       the same, compressed, as it goes to the leader
    hangs/0001/job.json, 002.z …   only on the leader's node: the job, and what the others found
    hangs/0001/finding.json        only there: the finding
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...common.untrusted_text import parse_json
from ...common.whole_file import whole_file
from . import collect, judge
from .finding import bounded

HANGS = "hangs"
REQUEST = "request"
"""The examination that doctor.yml asks for; those of the supervisor have numbers."""
NAME = re.compile(rf"[0-9]{{4}}|{REQUEST}")
INSIDE = "inside"
"""The folder of what the launcher puts into the ranks (inside.py)."""
EXAMINATION, COMPRESSED, JOB, FINDING = "examination.json", "examination.z", "job.json", "finding.json"
RANKS = "ranks.json"
"""Process numbers of the ranks, as the supervisor knows them."""
LIMIT_BYTES = 16 << 20
"""Bytes of what one node finds in one examination."""
SENT_BYTES = 4 << 20
"""Bytes of it, compressed, that go to the leader."""
KEPT_BYTES = 64 << 20
"""Bytes of all examinations of a job on a node; older ones are removed beyond that."""
SEQUENCES = ("sequence", "collective_seq_id", "p2p_seq_id")
"""What the number of a collective is called, here and in torch's own records."""
LINES, LINE_BYTES = 20, 8192
"""Last lines of each rank, from this many bytes at the end of its log."""


def place(folder: Path, name: str) -> Path:
    """Where one examination lies."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an examination")
    return folder / HANGS / name


def begin(folder: Path, name: str, ranks: list[dict[str, Any]]) -> Path:
    """Make room for an examination of these ranks, ``{rank, pid}``."""
    prune(folder)
    made = place(folder, name)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700, parents=True)
    (made / RANKS).write_text(json.dumps(ranks), encoding="utf-8")
    return made


def next_name(folder: Path) -> str:
    """The number after the last one."""
    with contextlib.suppress(OSError):
        names = [path.name for path in (folder / HANGS).iterdir()]
        taken = [int(name) for name in names if NAME.fullmatch(name) and name != REQUEST]
        return f"{min(9999, max(taken, default=0) + 1):04d}"
    return "0001"


def prune(folder: Path, most: int = KEPT_BYTES - LIMIT_BYTES) -> None:
    """Remove the oldest examinations, of earlier runs too, until there is room for another."""
    found = []
    for path in [*folder.glob(f"{HANGS}/*"), *folder.glob(f"runs/*/{HANGS}/*")]:
        with contextlib.suppress(OSError):
            size = sum(part.lstat().st_size for part in path.rglob("*"))
            found.append((path.lstat().st_mtime, size, path))
    total = 0
    for dummy, size, path in sorted(found, reverse=True):
        total += size
        if total > most:
            shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    """At once: who waits for the file reads all of it."""
    with whole_file(path) as file:
        file.write(data)


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes")
    return data


def keep(folder: Path, name: str, number: int, data: bytes) -> None:
    """Keep what the member of this number has sent."""
    _write(place(folder, name) / f"{number:03d}.z", data)


def keep_job(folder: Path, name: str, job: dict[str, Any]) -> None:
    """Keep what the judgement needs to know: world_size, nodes by rank, members, and problems by member."""
    _write(place(folder, name) / JOB, json.dumps(job).encode())


def read_finding(folder: Path, name: str) -> dict[str, Any]:
    found = parse_json(_read(place(folder, name) / FINDING, LIMIT_BYTES))
    return found if isinstance(found, dict) else {}


def last_lines(path: Path, rank: int) -> list[list[Any]]:
    """``[time, rank, line]`` of the last lines of a log. Only the file has a time: when its last line was written."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        about = os.fstat(file.fileno())
        file.seek(max(0, about.st_size - LINE_BYTES))
        lines = file.read(LINE_BYTES).decode("utf-8", "replace").splitlines()[-LINES:]
        return [[about.st_mtime, rank, line] for line in lines]
    return []


def examine(folder: Path, name: str, node: str, ranks: list[dict[str, Any]]) -> None:
    """Examine this node. ``ranks``: those that are found now, where the supervisor has named none."""
    made = place(folder, name)
    with contextlib.suppress(OSError, ValueError):
        ranks = json.loads((made / RANKS).read_text(encoding="utf-8")) or ranks
    if (folder / INSIDE).is_dir():
        ranks = [{**one, "folder": str(folder / INSIDE)} for one in ranks]
    found = collect.examine(Path("/"), ranks, collect.LIMIT_S, LIMIT_BYTES, node)
    log = []
    for one in ranks:
        own = folder / "ranks" / f"rank-{one['rank']:05d}.log"
        logs = [own] if own.exists() or len(ranks) > 1 else [folder / "node.log", folder / "launcher.log"]
        log += next((lines for lines in (last_lines(path, one["rank"]) for path in logs) if lines), [])
    data = json.dumps({"examination": found, "log": log}).encode("utf-8", "replace")
    _write(made / EXAMINATION, data)
    _write(made / COMPRESSED, zlib.compress(data, 6))


def expand(data: bytes) -> dict[str, Any]:
    """What a node has sent; ``ValueError`` where it is something else."""
    engine = zlib.decompressobj()
    try:
        text = engine.decompress(data, 2 * LIMIT_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is damaged: {error}") from error
    if not engine.eof:
        raise ValueError("it is cut off, or far too long")
    return whole(text)


def whole(text: bytes) -> dict[str, Any]:
    """An examination as it lies in its file."""
    found = parse_json(text)
    if not isinstance(found, dict) or not isinstance(found.get("examination"), dict):
        raise ValueError("it is not an examination")
    log = found.get("log")
    return {"examination": found["examination"], "log": [one for one in log if _is_line(one)] if log else []}


def _is_line(one: Any) -> bool:
    if not isinstance(one, list) or len(one) != 3:
        return False
    return isinstance(one[0], (int, float)) and isinstance(one[1], int) and isinstance(one[2], str)


def _newest(value: Any) -> int:
    """The highest number of a collective in what a flight recorder wrote; 0 where it wrote none."""
    highest, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            numbers = (one.get(key) for key in SEQUENCES)
            highest = max([highest, *(number for number in numbers if isinstance(number, int))])
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return highest


def newest_collectives(examinations: list[dict[str, Any]]) -> dict[str, int]:
    """By rank the number of its newest collective, as far as a recorder wrote it: a rank that goes on has others."""
    found: dict[str, int] = {}
    waiting: list[Any] = list(examinations)
    while waiting:
        one = waiting.pop()
        rank = one.get("rank") if isinstance(one, dict) else None
        if isinstance(rank, int):
            found[str(rank)] = max(found.get(str(rank), 0), _newest(one))
        elif isinstance(one, (dict, list)):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return {rank: number for rank, number in found.items() if number}


def goes_on(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether every rank whose recorder was read both times has begun another collective in between."""
    both = [rank for rank in before if rank in after]
    return bool(both) and all(after[rank] > before[rank] for rank in both)


def conclude(found: list[dict[str, Any]], world_size: int, nodes: dict[int, str]) -> dict[str, Any]:
    """The finding that follows from what the nodes found; it never fails."""
    log = [line for one in found for line in one["log"]]
    job = {"world_size": world_size, "nodes": nodes, "log": log}
    try:
        concluded = bounded(judge.judge([one["examination"] for one in found], job))
    except Exception as error:  # of hostile data: a finding is made of all that can be read, and nothing depends on it
        return bounded({"sentence": f"It is not known why the job makes no progress: {error!r} while it was judged"})
    examined = {one["examination"].get("node") for one in found}
    blamed = {nodes[rank] for rank in concluded["ranks"] if rank in nodes}
    unseen = sorted(blamed - examined)
    if not unseen:
        return concluded
    # That nothing was found there, as on a node that is too busy, does not show that its ranks are gone.
    words = f"Which rank the others wait for is unknown: {', '.join(unseen[:8])} could not be examined"
    remedy = f"see whether {', '.join(unseen[:8])} can be reached and is busy, then run doctor.yml"
    unknown = {"sentence": words, "remedy": remedy, "collective": concluded["collective"]}
    return bounded(unknown)


def judge_all(folder: Path, name: str) -> None:
    """Judge what all nodes found. A node whose examination cannot be used counts as one that did not answer."""
    made = place(folder, name)
    job = json.loads((made / JOB).read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = []
    for number, node in enumerate(job["members"]):
        own, sent = made / EXAMINATION, made / f"{number:03d}.z"
        try:
            found.append(whole(_read(own, 2 * LIMIT_BYTES)) if number == 0 else expand(_read(sent, SENT_BYTES)))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            job["problems"].setdefault(node, str(error))
    nodes = {int(rank): str(node) for rank, node in job["nodes"].items()}
    concluded = conclude(found, int(job["world_size"]), nodes)
    newest = newest_collectives([one["examination"] for one in found])
    _write(made / FINDING, json.dumps({**concluded, "problems": job["problems"], "newest": newest}).encode())
