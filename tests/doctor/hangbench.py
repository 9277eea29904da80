# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The hang doctor as HangBench's doctor: examines the ranks of a run, judges, and answers.

python -m tests.doctor.hangbench inside FOLDER          prints the variables that ranks need
python -m tests.doctor.hangbench answer FOLDER REQUEST  examines, judges and prints the answer
python -m tests.doctor.hangbench watch FOLDER FLOOR AFTER REQUEST
                                                        lets the supervisor's watch decide when, and whether that is a
                                                        hang, with these seconds for its 60 s and hang_after's 10 min
python -m tests.doctor.hangbench keep RESULTS           keeps the examinations of scored runs as fixtures

Ranks in a network namespace of their own are nodes of their own. What was examined is kept beside the request.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import (
    bound,
    collect,
    examination,
    finding,
    inside,
    judge,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import hang_watch
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.progress import Progress

EXAMINATIONS = Path(__file__).parent / "examinations"
KEPT_LINES = 60


def examined(folder: str, ranks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the examinations of all nodes, made side by side."""
    nodes: dict[str, list[dict[str, Any]]] = {}
    for one in ranks:
        nodes.setdefault(one.get("namespace") or "", []).append(one)
    running = []
    for number, (namespace, own) in enumerate(nodes.items(), start=1):
        enter = ["nsenter", f"--net={namespace}"] if namespace else []
        words = [*enter, sys.executable, "-m", "tests.doctor.hangbench", "examine", folder, f"node{number}"]
        given = json.dumps([{"rank": one["rank"], "pid": one["pid"], "folder": folder} for one in own])
        running.append(subprocess.Popen([*words, given], stdout=subprocess.PIPE))
    return [json.loads(process.communicate(timeout=60)[0]) for process in running]


def lines_of(path: str) -> list[list[Any]]:
    written = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[-2000:]
    kept: dict[int, list[list[Any]]] = {}
    for one in map(json.loads, written):
        kept.setdefault(one[1], []).append(one)
    return sorted((line for lines in kept.values() for line in lines[-KEPT_LINES:]), key=lambda line: line[0])


def answer(finding: dict[str, Any]) -> dict[str, Any]:
    does = finding.get("does") or {}
    words = f"{does.get('function', '')} ({does.get('file', '')}:{does.get('line', 0)})" if does else ""
    return {**finding, "ranks": finding["ranks"], "does": words}


def examine(folder: str, request: Path) -> dict[str, Any]:
    """Examine and judge once; keep what was examined."""
    given = json.loads(request.read_text(encoding="utf-8"))
    found = examined(folder, given["ranks"])
    job = {"world_size": given["world_size"], "log": lines_of(given["lines"])}
    written = json.dumps({"job": job, "examinations": found})
    request.with_name("examinations.json").write_text(written, encoding="utf-8")
    return judge.judge(found, job)


class Examined:
    """An examination as the watch polls it."""

    def __init__(self, _nodes: Any, _clock: Any, *, folder: str, request: Path) -> None:
        self.found: dict[str, Any] | None = None
        self.began = time.monotonic()
        threading.Thread(target=self._examine, args=(folder, request), daemon=True).start()

    def _examine(self, folder: str, request: Path) -> None:
        found = finding.bounded(examine(folder, request))
        recorded = json.loads(request.with_name("examinations.json").read_text(encoding="utf-8"))
        newest = examination.newest_collectives(recorded["examinations"])
        self.found = {**found, "newest": newest, "missing": [], "seconds": round(time.monotonic() - self.began, 1)}

    def poll(self) -> dict[str, Any] | None:
        return self.found

    def close(self) -> None:
        """Let the thread end with this program."""


def watch(folder: str, floor: float, after: float, request: Path) -> dict[str, Any]:
    """Wait as the supervisor does; return what it reports, once it reports something."""
    bound.FLOOR = floor
    given = json.loads(request.read_text(encoding="utf-8"))
    place = SimpleNamespace(options={"hang_after": after}, known_environment=dict)
    nodes: Any = SimpleNamespace(place=place, state={}, say=lambda text: print(text, file=sys.stderr, flush=True))
    make: Any = functools.partial(Examined, folder=folder, request=request)
    watched, progress = hang_watch.HangWatch(nodes, examine=make), Progress()
    with Path(given["lines"]).open(encoding="utf-8", errors="replace") as lines:
        while not (nodes.state.get("hang") or {}).get("findings"):
            now = time.monotonic()
            for written in lines:
                _when, rank, line = json.loads(written)
                moved = progress.feed(rank, line, now)
                nodes.pace.note(bound.STEP if moved else bound.announced(line) or bound.LINE, now)
            watched.poll()
            time.sleep(0.1)
    found: dict[str, Any] = nodes.state["hang"]["findings"][-1]
    return {**found, "hang": True}


def main() -> int:
    what, folder, *rest = sys.argv[1:]
    if what == "inside":
        for name, value in inside.environment(Path(folder), {}).items():
            print(f"{name}={value}")
    elif what == "examine":
        node, ranks = rest
        print(json.dumps(collect.examine(Path("/"), json.loads(ranks), node=node)))
    elif what == "answer":
        print(json.dumps(answer(examine(folder, Path(rest[0])))))
    elif what == "watch":
        floor, after, request = rest
        print(json.dumps(answer(watch(folder, float(floor), float(after), Path(request)))))
    elif what == "keep":
        keep(Path(folder))
    return 0


def keep(results: Path) -> None:
    """Keep what was examined of each scored run as a fixture: a part a line, without the paths of this machine."""
    EXAMINATIONS.mkdir(exist_ok=True)
    for line in results.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        path = Path(result.get("folder", "")) / "examinations.json"
        if "answer" not in result or not path.is_file():
            continue
        recorded = json.loads(path.read_text(encoding="utf-8"))
        parts = []
        for node in recorded["examinations"]:
            parts += [{"node": node["node"], "rank": pruned(rank)} for rank in node.pop("ranks")]
            parts.append({"node": node["node"], "host": node})
        parts.append({"job": recorded["job"]})
        written = "\n".join(json.dumps(part, separators=(",", ":")) for part in parts) + "\n"
        for own in (os.path.realpath(sys.prefix), str(Path.cwd()), str(Path(result["folder"]).parent)):
            written = written.replace(own, "/repository")
        written = re.sub(r"/[^ \"]*/(?=site-packages/|lib/python3)", "/usr/local/", written)
        (EXAMINATIONS / f"{result['id']}.jsonl").write_text(written, encoding="utf-8")


def pruned(rank: dict[str, Any]) -> dict[str, Any]:
    """Return what was examined of a rank, without most of what says nothing."""
    rank["entries"] = rank.get("entries", [])[-24:]
    rank["tasks"] = [task for number, task in enumerate(rank.get("tasks", [])) if number < 2 or task["state"] != "S"]
    rank["threads"] = [
        {**thread, "frames": thread["frames"][:8]}
        for thread in rank.get("threads", [])
        if thread["main"] or thread.get("daemon") is not True
    ]
    for entry in rank["entries"]:
        for name in ("outputs", "dtypes", "description", "state", "site"):
            entry.pop(name, None)
    return rank


def read(name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the examinations of a fixture, and the job."""
    nodes: dict[str, dict[str, Any]] = {}
    job: dict[str, Any] = {}
    for line in (EXAMINATIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        part = json.loads(line)
        if "job" in part:
            job = part["job"]
        elif "rank" in part:
            nodes.setdefault(part["node"], {"ranks": []})["ranks"].append(part["rank"])
        else:
            nodes.setdefault(part["node"], {"ranks": []}).update(part["host"])
    return list(nodes.values()), job


if __name__ == "__main__":
    sys.exit(main())
