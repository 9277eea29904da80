# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the supervisors of a job share: their place in it, the state file, and how they are stopped.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ...common.untrusted_folder import FolderError
from ..code_places import DIGEST, start_folder
from ..doctor import inside
from ..doctor.examination import INSIDE
from ..members import ranks_by_node, world_size
from .local_run import LocalRun, rest, survivors
from .start_folder import CodeError, StartFolder

POLL = 0.25
"""Seconds between two reads of logs, processes, the other supervisors and the stop file."""
HEARTBEAT = 2.0
"""Seconds between two writes of state.json when nothing changed."""
GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL when somebody stops a job: time to write a checkpoint."""
AFTER_FAILURE = 5.0
"""Seconds that ranks may go on after another one failed, so that they can say what they saw.
Seen with Gloo: rank 0 waits for ever for a killed rank 1."""
FAILURE_GRACE = 6.0
"""Seconds between SIGTERM and SIGKILL when a job has failed: what is left of it waits for ranks that are gone."""
SILENCE = 10.0
"""Seconds without a word of a follower after which its node counts as gone."""
START_TIMEOUT = 60.0
"""Seconds in which the supervisors of all nodes must have come to the leader."""
PROGRAM = "supervisor.pyz"
"""The archive of the supervisor in the folder of its job."""
RESUMES = "resumes"
"""A file in the folder of a job that goes on after a restart of its container; entrypoint.sh looks for it."""
MODULES = "PYTHONPATH"
LEADER_GONE = 15.0
"""Seconds without a word of the leader after which a follower ends its part."""


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` at once, so that no one reads half of it."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def write_json(path: Path, data: dict[str, Any]) -> None:
    write_text(path, json.dumps(data))


def now_text() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def fill(command: list[str], values: dict[str, Any]) -> list[str]:
    """The command of one node: ``@name@`` as a whole argument stands for what differs between nodes or attempts."""
    return [str(values.get(word, word)) for word in command]


def read_environment(path: str | None) -> dict[str, str]:
    """Lines ``KEY=VALUE`` of a file; none where there is no file."""
    if not path:
        return {}
    pairs = (line.partition("=") for line in Path(path).read_text(encoding="utf-8").splitlines())
    return {name: value for name, sign, value in pairs if sign}


class NodeContext:
    """What spec.json says: the job, and this node's place in it."""

    def __init__(self, folder: Path) -> None:
        request = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        self.spec: dict[str, Any] = request["spec"]
        self.options: dict[str, Any] = request.get("options") or {}
        self.folder = folder
        self.members: list[dict[str, Any]] = self.spec.get("members") or []
        """Those that take part now, rank 0's first; at the beginning those of the specification."""
        self.node: str = request.get("node") or (self.members[0]["name"] if self.members else "")
        self.leader: dict[str, Any] = request.get("leader") or {}
        self.run = str(request.get("run_id", folder.name))
        self.direct = self.spec.get("transport", "pdsh") == "direct"
        self.start = self._start_folder()
        """Where the run has code of its own; ``None`` where the job has no source that is known."""

    def _start_folder(self) -> StartFolder | None:
        chdir, digest = self.spec.get("chdir"), str(self.options.get("code") or "")
        wanted = (self.spec.get("fingerprint") or {}).get("workspace")
        if not (chdir and wanted and DIGEST.fullmatch(digest)):
            return None
        first = self.spec["members"][0]["name"] if self.spec.get("members") else ""
        return StartFolder(chdir, start_folder(self.folder.name, first), digest, wanted)

    def named(self, path: str) -> str:
        """Return what the cluster calls a file of which the job has a copy."""
        return next((name for name, own in self._own_copies().items() if own == path), path)

    def refresh(self) -> None:
        """Show what the run has made, as long as it runs."""
        if self.start:
            self.start.refresh()

    @property
    def chdir(self) -> str | None:
        """Where the launcher starts."""
        return self.start.path if self.start else self.spec.get("chdir")

    @property
    def ds_config(self) -> str | None:
        """The job's configuration, of its own where it has a copy."""
        path = self.spec.get("ds_config")
        return self._own_copies().get(path, path) if path else None

    def _own_copies(self) -> dict[str, str]:
        """Files of the cluster's that later jobs change, by the path that the command has."""
        return {path: str(self.folder / name) for path, name in (self.options.get("files") or {}).items()}

    @property
    def followers(self) -> list[str]:
        return [member["name"] for member in self.members[1:]]

    @property
    def rank(self) -> int:
        """The place of this node among the members."""
        return [member["name"] for member in self.members].index(self.node) if self.members else 0

    @property
    def world_size(self) -> int:
        return world_size(self.members) or int(self.spec["world_size"])

    @property
    def shrinks(self) -> bool:
        """Whether the job may go on without a node that stays away."""
        return bool(self.options.get("shrink"))

    @property
    def own_config(self) -> Path:
        """The job's own ds_config.json, where it may shrink."""
        return self.folder / "ds_config.json"

    def keep(self, names: Iterable[str]) -> None:
        """Go on with these members only."""
        kept = set(names)
        self.members = [member for member in self.members if member["name"] in kept]

    def lay_out(self, config: dict[str, Any] | None) -> None:
        """Write hostfile and ds_config.json of the job's own, as they change when it shrinks; the cluster's stay."""
        if not self.shrinks:
            return
        lines = [f"{member['name']} slots={max(member['slots']) + 1}\n" for member in self.members]
        write_text(self.folder / "hostfile", "".join(lines))
        if config is not None:
            write_text(self.own_config, json.dumps(config, indent=2) + "\n")

    def first_rank(self) -> int:
        """The lowest rank on this node."""
        return ranks_by_node(self.members)[self.node].start if self.members else 0

    def rank_itself(self) -> int | None:
        """The rank that this node's command is itself. With more than one slot it starts the ranks."""
        alone = self.spec.get("launcher") == "per_node" and len(self.slots()) == 1
        return self.first_rank() if alone else None

    def slots(self) -> list[int]:
        return list(self.members[self.rank]["slots"]) if self.members else []

    def given(self) -> dict[str, str]:
        """Variables that the user gave: the cluster's, and the job's own."""
        return {**read_environment(self.spec.get("env_file")), **self.spec["environment"]}

    def own_environment(self) -> dict[str, str]:
        """Those of the specification, with the run's own code and files in them."""
        return self._with_own(dict(self.spec["environment"]))

    def _with_own(self, environment: dict[str, str]) -> dict[str, str]:
        copies = self._own_copies()  # Accelerate gets its configuration by a variable
        environment = {name: copies.get(value, value) for name, value in environment.items()}
        start, path = self.start, environment.get(MODULES, os.environ.get(MODULES, ""))
        if start and path:
            environment[MODULES] = ":".join(start.holds(part.rstrip("/") or part) for part in path.split(":"))
        return environment

    def computes_on_gpus(self) -> bool:
        """Whether nvidia-smi has something to say of this job, where it is there."""
        return self.known_environment().get("DS_ACCELERATOR") != "cpu"

    def known_environment(self) -> dict[str, str]:
        """``given`` for what only reports: without the cluster's file it is that of the job alone."""
        try:
            return self.given()
        except (OSError, ValueError):
            return dict(self.spec["environment"])

    def environment(self, master_port: int) -> dict[str, str]:
        """Variables of this node's launcher: those requested, and what launchers other than DeepSpeed's need."""
        found = self._with_own(self.given())
        launcher, devices = self.spec.get("launcher", "deepspeed"), self.spec.get("visible_devices")
        if launcher != "deepspeed" and devices:
            found.setdefault(devices, ",".join(str(slot) for slot in self.slots()))
        if launcher == "per_node":
            found.update(
                MASTER_ADDR=self.members[0]["address"],
                MASTER_PORT=str(master_port),
                WORLD_SIZE=str(self.world_size),
                NODE_RANK=str(self.rank),
                NNODES=str(len(self.members)),
                NPROC_PER_NODE=str(len(self.slots())),
            )
        return found

    def command(self, values: dict[str, Any]) -> list[str]:
        words = fill(
            [*self.spec["command"], *values.get("arguments", [])],
            {
                "@node_rank@": self.rank,
                "@slots@": len(self.slots()) or 1,
                "@nodes@": len(self.members) or 1,
                "@include@": "@".join(
                    f"{member['name']}:{','.join(map(str, member['slots']))}" for member in self.members
                ),
                "@hostfile@": self.folder / "hostfile",
                "@ds_config@": self.own_config,
                "@master_port@": values["master_port"],
                "@logs@": values["logs"],
                **self._own_copies(),
            },
        )
        return [self.start.holds(word) for word in words] if self.start else words


class Supervisor:
    """What leader and followers share: the state file, and how they are stopped."""

    def __init__(self, folder: Path, timing: argparse.Namespace) -> None:
        self.folder, self.timing = folder, timing
        self.stop_reason = ""
        self.state: dict[str, Any] = {}
        self._written: dict[str, Any] = {}

    def begin(self) -> NodeContext:
        place = NodeContext(self.folder)
        self.state = {
            **json.loads((self.folder / "state.json").read_text(encoding="utf-8")),
            "state": "running",
            "pid": os.getpid(),
        }
        return place

    def prepare(self, place: NodeContext, part: LocalRun) -> str:
        """Lay out what the run starts from; return why that is not possible."""
        if place.start is None:
            return ""
        part.shown = (f"{place.start.path}/", f"{place.start.workspace}/")
        place.start.tick = self.save
        try:
            place.start.prepare(again=bool(self.timing.again))
        except (CodeError, FolderError, OSError) as error:
            return " ".join(str(error).split())
        return ""

    def visible(self, place: NodeContext, environment: dict[str, str]) -> dict[str, str]:
        """The environment of a launcher whose ranks can print their stacks on request, for an examination."""
        if not float(place.options.get("hang_after") or 0):
            return environment
        try:
            given = {**os.environ, **place.known_environment(), **environment}
            return {**environment, **inside.environment(self.folder / INSIDE, given)}
        except Exception as error:  # a job does not fail for want of it
            with contextlib.suppress(OSError), (self.folder / "supervisor.log").open("a", encoding="utf-8") as log:
                log.write(f"{now_text()} Ranks will not print their stacks on request: {error!r}\n")
            return environment

    def settle(self, place: NodeContext) -> None:
        """Bring what the run has made into the workspace. What cannot be moved stays where it is."""
        if place.start is None:
            return
        try:
            problems = place.start.settle()
        except (FolderError, OSError) as error:
            problems = [str(error)]
        if problems:
            with contextlib.suppress(OSError), (self.folder / "supervisor.log").open("a", encoding="utf-8") as log:
                lines = [f"{now_text()} Not moved into the workspace: {problem}\n" for problem in problems[:50]]
                log.write("".join(lines))

    def save(self) -> None:
        """Say that we live, and what is new. A full disk must not end the job."""
        last = self._written.get("heartbeat", 0.0)
        if {**self.state, "heartbeat": last} != self._written or time.time() - last >= HEARTBEAT:
            with contextlib.suppress(OSError):
                self.write()

    def write(self) -> None:
        self.state["heartbeat"] = time.time()
        write_json(self.folder / "state.json", self.state)
        self._written = dict(self.state)

    def requested(self) -> str:
        """Why the job is to be stopped; empty where no one asked."""
        if not self.stop_reason and (self.folder / "stop").exists():
            self.stop_reason = "on request"
        return self.stop_reason

    def sweep(self, part: LocalRun, grace: float) -> bool:
        """End whatever an earlier run has left on this node."""
        if survivors(self.folder):
            part.stop(grace)

        def tick() -> None:
            part.poll()
            if self.state:
                self.save()

        return rest(2 * grace + 5, tick, part.clean)
