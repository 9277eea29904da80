# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor on the node of rank 0: it starts the job everywhere, hears everybody, judges, and ends it everywhere.

Copied into containers beside the supervisor: standard library, Python 3.8 or later.

Why DeepSpeed's exit code is not enough (deepspeed/launcher, releases 0.16.9 and 0.19.8): without a hostfile it trains
on one node and only warns; when its child is ended by a signal it exits 0. So success also needs what launch.py logs
on every node: the expected world size, and "exits successfully" once a rank.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from typing import Any

try:
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_base import (
        RESUMES,
        Supervisor,
        now_text,
        write_json,
    )
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_channel import Hub, read_secret
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_checkpoints import Verdict, list_files
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_judge import Failure, Judge
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_part import MARKER, Part, rest
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_progress import Progress
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_restarts import Restarts, judge
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_summary import summary
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_voices import Voices
except ImportError:  # in a job's folder, where the files lie side by side
    from _job_base import RESUMES, Supervisor, now_text, write_json  # type: ignore[import-not-found,no-redef]
    from _job_channel import Hub, read_secret  # type: ignore[import-not-found,no-redef]
    from _job_checkpoints import Verdict, list_files  # type: ignore[import-not-found,no-redef]
    from _job_judge import Failure, Judge  # type: ignore[import-not-found,no-redef]
    from _job_part import MARKER, Part, rest  # type: ignore[import-not-found,no-redef]
    from _job_progress import Progress  # type: ignore[import-not-found,no-redef]
    from _job_restarts import Restarts, judge  # type: ignore[import-not-found,no-redef]
    from _job_summary import summary  # type: ignore[import-not-found,no-redef]
    from _job_voices import Voices  # type: ignore[import-not-found,no-redef]

CHECK_TIMEOUT = 300.0
"""Seconds that DeepSpeed may take to read its configuration: importing it from a cold disk is the slow part."""
CHANNEL = range(29480, 29500)
"""Where the followers find their leader."""
PORTS = range(29500, 29600)
"""Where a free port for the rendezvous is looked for when none is given."""
RECONNECT = 5.0
"""Seconds in which a follower whose connection was lost must be back."""


def free_port(address: str, ports: range = PORTS) -> int:
    """The first port of this node that nobody listens on."""
    for port in ports:
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    return 0


class Leader(Supervisor):
    """One run of one job."""

    def run(self) -> None:
        self.place = place = self.begin()
        spec = place.spec
        self.judge = Judge(spec, place.members, int(spec["world_size"]))
        self.hub: Hub | None = None
        self._ended: dict[str, dict[str, Any]] = {}
        self._lost_at: dict[str, float] = {}
        self.progress = Progress()
        self._voices = Voices()
        self._merged = self.folder / "launcher.log"
        self._listings: dict[str, dict[str, Any]] = {}
        again = bool(self.timing.again)
        self.restarts = Restarts(place.options, list(self.state.get("restarts") or []) if again else [])
        number = int(self.state.get("attempt") or 1) if again else 1
        port = int(self.state.get("channel_port") or 0) if again else 0
        self.state.update(leader=True, attempt=number, master_port=None, first_failure=None, ranks={}, figures={})
        if again:
            self.state["container_started_at"] = None  # it was restarted, and with it this supervisor
        self.part = Part(self.folder, "node.log", self._hear)
        if place.followers:
            address = place.members[0]["address"]
            port = port or free_port(address, CHANNEL)
            self.hub = Hub(read_secret(spec["secret_file"]), place.run, place.followers, address=address, port=port)
            self.state["channel_port"] = self.hub.port
        self.write()
        self.sweep(self.part, self.timing.failure_grace)  # of an earlier run whose supervisor was killed
        self.part.begin(number)
        with contextlib.suppress(OSError):
            (self.folder / RESUMES).touch() if self.restarts.wanted else None
        failure: Failure | None
        if again:
            failure = Failure(f"{place.node}, the node of rank 0, was restarted while the job ran.", node=place.node)
        else:
            failure = self._refusal(spec) or self._gather()
            if failure is None and not self.requested():
                resumed = self._checkpoint() if place.options.get("resuming") else None
                failure = self._attempt(number, self.restarts.arguments(resumed))
        while failure is not None and self.restarts.allowed(failure):
            number += 1
            failure = self._once_more(number, failure)
        self._finish(failure)

    def _once_more(self, number: int, failure: Failure) -> Failure | None:
        """End what is left of an attempt, wait, and start the next one from the newest checkpoint."""
        pause = self.restarts.pause()
        self._say(f"attempt {number - 1} failed: {failure.reason}")
        if self.hub:
            self.hub.broadcast({"t": "end", "again": True, "grace": self.timing.failure_grace})
        self._end_all(self.timing.failure_grace)
        self.part.poll()
        rest(pause, self._tick, lambda: bool(self.requested()))
        hub = self.hub
        if hub and not self.asked:
            wait = self.restarts.node_wait
            rest(wait, self._tick, lambda: len(hub.connected()) == len(hub.nodes) or bool(self.requested()))
            missing = [node for node in hub.nodes if node not in hub.connected()]
            if missing and not self.asked:
                return Failure(
                    f"{failure.reason} The job can not go on: {', '.join(missing)} did not come back within "
                    f"{wait:.0f} s. Repair that node and launch again, which resumes, or leave it out with "
                    "deepspeed_launch_exclude.",
                    node=missing[0],
                    final=True,
                )
        if self.asked:
            return None
        verdict = self._checkpoint()
        if verdict is not None and verdict.tag is not None and not verdict.complete:
            return Failure(f"{failure.reason} It can not be resumed: {verdict.advice}", node=failure.node, final=True)
        tag = verdict.tag if verdict else None
        self.restarts.done.append(
            {"attempt": number - 1, "reason": failure.reason, "at": now_text(), "resumed_from": tag}
        )
        self.state["restarts"] = self.restarts.done
        self._say(f"attempt {number} begins, " + (f"from checkpoint {tag}" if tag else "from the beginning"))
        self.judge = Judge(self.place.spec, self.place.members, int(self.place.spec["world_size"]))
        self._ended, self._lost_at = {}, {}
        return self._attempt(number, self.restarts.arguments(verdict))

    def _checkpoint(self) -> Verdict | None:
        """The newest checkpoint, as all nodes see the folder."""
        folder = self.restarts.folder
        if not folder:
            return None
        self._listings = {self.place.node: list_files(folder)}
        if self.hub:
            self.hub.broadcast({"t": "list", "folder": folder})
            hub = self.hub
            rest(60.0, self._tick, lambda: all(node in self._listings for node in hub.connected()))
        spec = self.place.spec
        return judge(self._listings, self.place.members, spec.get("ds_config"), int(spec["world_size"]))

    def _say(self, text: str) -> None:
        """A line of our own in the merged log."""
        with contextlib.suppress(OSError), self._merged.open("a", encoding="utf-8") as log:
            log.write(f"swarmspeed: {text}\n")

    def _end_all(self, grace: float) -> None:
        """Wait until nobody of the job is alive on any node that can be reached."""
        self.part.stop(grace)
        hub = self.hub

        def clean() -> bool:
            silent = hub.gone(self.timing.silence) if hub else {}
            near = [node for node in hub.connected() if node not in silent] if hub else []
            return self.part.clean() and all(self._ended.get(node, {}).get("clean") for node in near)

        rest(2 * grace + 5, self._tick, clean, 0.1)

    def _refusal(self, spec: dict[str, Any]) -> Failure | None:
        """Why DeepSpeed in this image would not take the job's configuration; ``None`` where it does."""
        path = spec.get("ds_config")
        if not path:
            return None
        checker = str(self.folder / "_job_ds_config.py")
        command = ["python3", "-B", checker, path, str(spec["world_size"])]
        try:
            process = self.part.launch(command, self.place.environment(0), spec["chdir"], stdout=subprocess.PIPE)
        except OSError as error:
            return Failure(f"{path} could not be checked: {error}. The image needs python3 on its PATH.")
        ended = rest(CHECK_TIMEOUT, self._tick, lambda: process.poll() is not None or bool(self.requested()), 0.1)
        if self.asked or not ended:
            return (
                None
                if self.asked
                else Failure(f"DeepSpeed did not read {path} within {CHECK_TIMEOUT:.0f} s. Look at the log.")
            )
        try:
            answer = json.loads(process.stdout.read() if process.stdout else b"")
        except ValueError:
            return Failure(f"DeepSpeed could not be imported to check {path}. The end of the log says why.")
        self.state["deepspeed_version"] = answer["release"] or None
        if not answer["refusal"]:
            return None
        return Failure(
            f"DeepSpeed {answer['release']} in this image refuses {path} for {spec['world_size']} rank(s): "
            f"{answer['refusal']}"
        )

    def _gather(self) -> Failure | None:
        """Wait for the supervisors of the other nodes."""
        hub = self.hub
        if hub is None or self.asked:
            return None
        rest(
            self.timing.start_timeout,
            self._tick,
            lambda: len(hub.connected()) == len(hub.nodes) or bool(self.requested()),
        )
        missing = [node for node in hub.nodes if node not in hub.connected()]
        if not missing or self.asked:
            return None
        return Failure(
            f"the supervisor on {', '.join(missing)} did not report within {self.timing.start_timeout:.0f} s. "
            "Check that its container runs and reaches rank 0's (--tags verify), then launch again.",
            node=missing[0],
        )

    def _attempt(self, number: int, arguments: list[str]) -> Failure | None:
        """Start the launchers and follow them until all have ended, or must be ended."""
        spec, place = self.place.spec, self.place
        self.part.poll()
        logs = self.part.begin(number)
        address = place.members[0]["address"] if place.members else ""
        port = int(self.place.options.get("master_port") or 0)
        if place.members:
            port = port or free_port(address)
            if not port or not free_port(address, range(port, port + 1)):
                return Failure(
                    f"port {port or '29500 to 29599'} of {address}, for the rendezvous, is taken on {place.node}. Stop "
                    "what holds it, or set deepspeed_launch_master_port to another one (0: a free one is chosen).",
                    node=place.node,
                )
        self.state.update(master_port=port or None, attempt=number)
        values = {"t": "start", "attempt": number, "master_port": port, "arguments": arguments}
        if self.hub:
            self.hub.broadcast(values)
        environment = place.environment(port)
        if not place.direct:
            # The one way by which pdsh's runner hands variables to all nodes; the marker finds the ranks there.
            (self.folder / "environment").write_text(
                "".join(f"{key}={value}\n" for key, value in {**spec["environment"], MARKER: str(self.folder)}.items()),
                encoding="utf-8",
            )
            environment["DS_ENV_FILE"] = str(self.folder / "environment")
        try:
            self.part.start(place.command({**values, "logs": str(logs)}), environment, spec["chdir"])
        except OSError as error:
            return Failure(f"the launcher could not be started: {error}. Check command and chdir.", code=127)
        return self._follow()

    def _follow(self) -> Failure | None:
        """Wait for the end of all; end it when somebody asks or when it is not the job that was asked for."""
        failed_at = 0.0
        stall = float(self.place.options.get("stall_timeout") or 0)
        while True:
            self._tick()
            if self.requested():
                return None
            fatal = self.judge.wrong_world() or self._gone() or self._stalled(stall)
            if fatal:
                return fatal
            codes = self._codes()
            if self.judge.failed(codes, self._rank_codes()):
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at >= self.timing.after_failure:
                    return self._blame(self.judge.why(codes, self._rank_codes()))
            if all(code is not None for code in codes.values()):
                self._drain()
                return self._blame(self.judge.why(self._codes(), self._rank_codes()))
            time.sleep(self.timing.poll)

    def _codes(self) -> dict[str, int | None]:
        """Exit code of the launcher of each node that has one."""
        codes = {self.place.node: self.part.exit_code}
        if self.place.direct:
            codes.update({node: self._ended.get(node, {}).get("code") for node in self.place.followers})
        return codes

    def _rank_codes(self) -> dict[int, int]:
        found = {int(rank): code for item in self._ended.values() for rank, code in item.get("ranks", {}).items()}
        return {**found, **self.part.exits}

    def _drain(self) -> None:
        """The last lines of ranks that have ended."""
        rest(1.0 if self.hub else 0.0, self._tick, lambda: False, 0.1)
        self.part.poll()

    def _blame(self, failure: Failure | None) -> Failure | None:
        """Where ranks only say that they lost another one, a node whose supervisor is away is the cause."""
        away = [node for node in self.hub.nodes if node not in self.hub.connected()] if self.hub else []
        if failure is None or not away or (failure.finding is not None and failure.finding.kind != "symptom"):
            return failure
        return self._has_gone(away[0], time.monotonic() - self._lost_at.get(away[0], time.monotonic()))

    @staticmethod
    def _has_gone(node: str, seconds: float) -> Failure:
        return Failure(
            f"{node} has gone: nothing was heard of it for {seconds:.0f} s. Its container was stopped or restarted, "
            "the node is down, or its network is cut. Look at that node (verify.yml), then launch again.",
            node=node,
        )

    def _gone(self) -> Failure | None:
        """A node that does not answer any more, or whose supervisor has gone and not come back."""
        if self.hub is None:
            return None
        now = time.monotonic()
        silent = self.hub.gone(self.timing.silence)
        for node in self.hub.nodes:
            if node in self.hub.connected():
                self._lost_at.pop(node, None)
            else:
                self._lost_at.setdefault(node, now)
            lost = now - self._lost_at.get(node, now)
            if node in silent or lost > min(RECONNECT, self.timing.silence):
                return self._has_gone(node, max(silent.get(node, 0.0), lost))
        return None

    def _stalled(self, limit: float) -> Failure | None:
        quiet = time.monotonic() - self.part.active_at
        if not limit or quiet < limit:
            return None
        return self.judge.stalled(
            f"no rank has printed anything for {quiet:.0f} s (deepspeed_launch_stall_timeout: {limit:.0f}). It hangs, "
            "or prints too seldom: look at the last lines of each rank below jobs/, or raise the time-out."
        )

    def _tick(self) -> None:
        """Hear everybody, and say that we live."""
        for node, message in self.hub.poll() if self.hub else []:
            kind = message.get("t")
            if kind in {"lines", "steps"}:
                self.part.active_at = time.monotonic()
            if kind == "steps":
                for rank, line in message["lines"]:
                    self.progress.feed(rank, line, time.monotonic())
            elif kind == "lines":
                for rank, line in message["lines"]:
                    self._merge(node, rank, line)
            elif kind in {"part", "ended"}:
                self._ended.setdefault(node, {}).update(message)
                if message.get("problem"):
                    self._merge(node, None, f"the launcher could not be started: {message['problem']}")
            elif kind == "listing":
                self._listings[node] = message["found"]
            elif kind == "stop":
                self.asked = self.asked or f"{message.get('reason')}, on {node}"
        self.part.poll()
        self._report()
        self.save()

    def _hear(self, rank: int | None, line: str) -> None:
        lines, step = self._voices.hear(rank, line, time.monotonic())
        if step or not self.place.members:  # without members all ranks speak through the launcher
            self.progress.feed(rank or 0, step or line, time.monotonic())
        for one in lines:
            self._merge(self.place.node, rank, one)

    def _merge(self, node: str, rank: int | None, line: str) -> None:
        """One log of all: the launcher's lines and rank 0's, and of the others what warns or fails."""
        named = self.judge.feed(node, rank, line)
        with contextlib.suppress(OSError), self._merged.open("ab") as log:
            log.write(named.encode("utf-8", "replace") + b"\n")

    def _report(self) -> None:
        watch = self.judge.watch
        figures = self.progress.figures()
        self.state["figures"] = {key: value for key, value in figures.items() if key != "history"}
        self.state.update(
            world_size_seen=self.judge.world_size(self._seen()),
            nodes_seen=self.judge.nodes_seen(self._seen()) or None,
            hosts=[member["name"] for member in self.place.members] or list(watch.hosts),
        )

    def _seen(self) -> dict[str, int]:
        """Ranks that have shown themselves, by node."""
        seen = {node: len(item.get("seen", [])) for node, item in self._ended.items()}
        return {**seen, self.place.node: len(self.part.ranks)}

    def _finish(self, failure: Failure | None) -> None:
        """End what is left on every node, then say how it was."""
        state = "failed" if failure else "stopped" if self.asked else "succeeded"
        grace = self.timing.grace if state == "stopped" else self.timing.failure_grace
        reason = failure.reason if failure else self.asked
        if self.hub:
            self.hub.broadcast({"t": "end", "state": state, "reason": reason, "grace": grace})
        self._end_all(grace)
        hub = self.hub
        if self.hub:
            self.hub.broadcast({"t": "bye", "state": state, "reason": reason})
            self.hub.poll()
            rest(2.0, self._tick, lambda: not hub or set(hub.connected()) <= set(hub.gone(self.timing.silence)), 0.05)
            self.hub.close()
        self.part.poll()  # the last words
        self.judge.finish()
        codes = [code for code in self._codes().values() if code is not None]
        exit_code = failure.code if failure and failure.code is not None else next((code for code in codes if code), 0)
        if not codes and failure:
            exit_code = exit_code or 1
        members = self.place.members
        where = {rank: item["name"] for n, item in enumerate(members) for rank in self._ranks_of(n)}
        exits = self._rank_codes()
        if state == "succeeded":
            exits = dict.fromkeys(where, 0)
        self.state.update(
            state=state,
            exit_code=exit_code,
            reason=reason,
            finished_at=now_text(),
            ranks={str(rank): {"node": node, "exit_code": exits.get(rank)} for rank, node in where.items()},
        )
        self.state.update(failed_node=None, failed_rank=None, traceback=[], tail=[])
        if failure:
            found = self.judge.describe(failure)
            self.state.update(failed_node=found["node"], failed_rank=found["rank"], traceback=found.pop("traceback"))
            self.state["first_failure"] = {**found, "at": now_text()}
            rank = self.state["ranks"].get(str(found["rank"]))
            if rank and rank["exit_code"] is None:
                rank["exit_code"] = found["exit_code"]
            self.state["tail"] = list(self.judge.watch.tail)
        for name in ("environment", RESUMES):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        with contextlib.suppress(OSError):
            told = {**self.state, "name": self.folder.name}
            found = summary(self.place.spec, told, history=self.progress.history())
            write_json(self.folder / "summary.json", found)
        self.write()

    def _ranks_of(self, number: int) -> range:
        first = self.place.first_rank(number)
        return range(first, first + len(self.place.members[number]["slots"]))
