# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor of a node of the job that does not hold rank 0: it does what the leader says and reports what it sees.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import os
import time
from typing import Any

from .base import RESUMES, NodeContext, Supervisor, now_text
from .checkpoint_files import list_files
from .examiner import Examiner, messages
from .frames import read_secret
from .gpu_watch import GpuWatch
from .link import Link
from .local_run import LocalRun
from .messages import listing_messages, pieces
from .nccl_log import NcclLog, chosen
from .rank_log_filter import RankLogFilter
from .restarts import Restarts
from .wire import ChannelLog


class Follower(Supervisor):
    """A node of the job that does not hold rank 0."""

    def run(self) -> None:
        self.place = place = self.begin()
        self.state["leader"] = False
        self.write()
        self.link = Link(
            read_secret(place.spec["secret_file"]),
            place.run,
            place.node,
            address=place.leader["address"],
            port=int(place.leader["port"]),
            log=ChannelLog(self.folder / "supervisor.log"),
        )
        self.part = LocalRun(self.folder, "launcher.log", self._on_line)
        self.sweep(self.part, self.timing.failure_grace)
        self._unprepared = self.prepare(place, self.part)
        self._deserted = False
        self.restarts = Restarts(place.options, [])
        self.ending: dict[str, Any] = {}
        self._lines: list[tuple[int | None, str]] = []
        self._steps: list[tuple[int, str]] = []
        self._filter = RankLogFilter()
        self._nccl = NcclLog(place.world_size)
        self._nccl_reported: dict[str, Any] = {}
        self._gpus = GpuWatch(wanted=False)
        self._reported: dict[str, Any] = {}
        self._examiner = Examiner(self.folder)
        self._examining = False
        self._signs = 0
        self._active_at = 0.0
        self._greeted = 0
        if self.restarts.wanted:
            (self.folder / RESUMES).touch()
        if self.timing.again:
            self.state["container_started_at"] = None  # it was restarted, and with it this supervisor
        while not (self.ending.get("t") == "bye" and self.part.clean()):
            self._turn()
        self.part.poll()  # the last words
        self._report()
        if not self._deserted:  # else others may still run, in the same folder where the workspace is shared
            self.settle(place)
        self._gpus.close()
        self._examiner.close()
        self.link.close()
        (self.folder / RESUMES).unlink(missing_ok=True)
        self.state.update(
            state=self.ending.get("state", "failed"), reason=self.ending.get("reason", ""), finished_at=now_text()
        )
        self.state["exit_code"] = self.part.exit_code
        self.write()

    def _turn(self) -> None:
        """Read the leader's messages, poll this node's part, and report what is new."""
        for message in self.link.poll():
            self._obey(message)
        if self.link.greeted != self._greeted:
            self._greeted = self.link.greeted
            self.link.send({"t": "ready", "pid": os.getpid()})
            self._reported, self._nccl_reported = {}, {}
        self.part.poll()
        # At the end of the run, whoever gets "bye" first moves the outputs, where the workspace is shared.
        if not self.ending or self.ending.get("again"):
            self.place.refresh()
        self._report()
        self._examined()
        if self.ending.get("again") and self.part.clean():
            self.ending = {}
        if self.requested() and not self.ending:
            # The leader decides. Where it cannot be reached, this part ends alone.
            self.link.send({"t": "stop", "reason": self.stop_reason})
            if not self.link.welcome:
                self._deserted = True
                self.ending = {"t": "bye", "state": "stopped", "reason": self.stop_reason}
                self.part.stop(self.timing.grace)
        if self.link.silent() > self.timing.leader_gone and self.ending.get("t") != "bye":
            self.part.stop(self.timing.failure_grace)
            # With restarts the node of rank 0 may be rebooting.
            if self.link.silent() > self.timing.leader_gone + (self.restarts.node_wait if self.restarts.wanted else 0):
                self._deserted = True
                self.ending = self._leader_gone(self.place)
        self.save()
        time.sleep(self.timing.poll)

    def _obey(self, message: dict[str, Any]) -> None:
        if message["t"] == "start":
            self._start(self.place, message)
        elif message["t"] == "list":
            for part in listing_messages(list_files(message["folder"])):
                self.link.send(part)
        elif message["t"] == "examine":
            self._examiner.begin(message["name"], self.part.living())
            self._examining = True
        elif message["t"] in {"end", "bye"}:
            self.ending = {**self.ending, **message}
            self.part.stop(float(message.get("grace", self.timing.failure_grace)))

    def _examined(self) -> None:
        """Say what an examination of this node has found, once it has ended."""
        problem = self._examiner.poll() if self._examining else None
        if problem is not None:
            self._examining = False
            for part in messages(self.folder, self._examiner.name, problem):
                self.link.send(part)

    def _leader_gone(self, place: NodeContext) -> dict[str, Any]:
        why = f" ({self.link.problem})" if self.link.problem else ""
        # Its supervisor keeps the job's state and log: no one else could say how it went on.
        advice = " Without the node of rank 0 a job cannot go on with fewer." if place.shrinks else ""
        return {
            "t": "bye",
            "state": "failed",
            "reason": f"the leader of the job, on {place.members[0]['name']}, has not answered for "
            f"{self.link.silent():.0f} s{why}: this node's part was ended.{advice} Check that node, or launch again "
            "and leave it out with deepspeed_launch_exclude.",
        }

    def _start(self, place: NodeContext, message: dict[str, Any]) -> None:
        place.keep(message["members"])
        self._filter, self._signs = RankLogFilter(), 0
        self._nccl, self._nccl_reported = NcclLog(place.world_size), {}
        self._gpus.close()
        self._gpus = GpuWatch(place.computes_on_gpus(), self.timing.gpu_every)
        logs = self.part.begin(int(message["attempt"]), place.first_rank())
        self._reported = {}
        self.state["attempt"] = message["attempt"]
        values = {**message, "logs": str(logs)}
        try:
            if self._unprepared:
                raise OSError(self._unprepared)
            place.lay_out(message["config"])
            if not place.direct:  # the leader's launcher comes over ssh; here its ranks are watched
                self.visible(place, {})
                return
            environment = self.visible(place, place.environment(message["master_port"]))
            self.part.start(place.command(values), environment, place.chdir, place.rank_itself())
        except OSError as error:
            problem = " ".join(str(error).split())[:2000]
            self.link.send({"t": "ended", "code": 127, "ranks": {}, "problem": problem})

    def _on_line(self, rank: int | None, line: str) -> None:
        self._nccl.feed(line)
        lines, step = self._filter.on_line(rank, line, time.monotonic())
        self._lines += [(rank, one) for one in lines]
        if step and rank is not None:
            self._steps.append((rank, step))

    def _report(self) -> None:
        """Report to the leader what is new."""
        self._lines = [*self._filter.final_lines(self.part.exits), *self._lines]
        for lines in pieces(self._lines):
            self.link.send({"t": "lines", "lines": lines})
        if self._steps or self.part.active_at > self._active_at:
            self._active_at = self.part.active_at
            sign, self._signs = self._filter.signs > self._signs, self._filter.signs
            for lines in pieces(self._steps) if self._steps else [[]]:
                self.link.send({"t": "steps", "lines": lines, "sign": sign})
        self._lines, self._steps = [], []
        report = {
            "t": "part",
            "ranks": {str(rank): code for rank, code in sorted(self.part.exits.items())},
            "seen": sorted(self.part.ranks),
            "code": self.part.exit_code,
            "clean": bool(self.ending) and self.part.clean(),
        }
        if report != self._reported and self.link.welcome:
            self._reported = report
            self.link.send(report)
        found, rows = self._nccl.found(), self._gpus.poll()
        if found != self._nccl_reported and self.link.welcome:
            self._nccl_reported = found
            self.link.send({"t": "nccl", **found, **chosen(self.place.known_environment())})
        if rows:
            self.link.send({"t": "gpus", "gpus": rows})
