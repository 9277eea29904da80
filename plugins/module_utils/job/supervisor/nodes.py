"""All nodes of a job as the supervisor on rank 0's sees them: read from, written into one log, and ended.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable

from ..doctor.bound import LINE, STEP, Pace, announced
from .base import Supervisor
from .channel import BEAT, Hub
from .checkpoint_files import list_files
from .gpu_watch import GpuWatch
from .judge import Failure, Judge
from .local_run import LocalRun, rest
from .messages import MOST_PIECES
from .nccl_log import NcclLog, chosen, merged
from .progress import Progress
from .rank_log_filter import RankLogFilter
from .wire import ChannelLog

RECONNECT = 5.0
"""Seconds in which a follower whose connection was lost must be back."""
LISTING = 60.0
"""Seconds in which all nodes must have reported which checkpoints they have."""


def ignore(_node: str, _message: dict[str, Any]) -> None:
    """What a follower found, where it is no longer waited for."""


class Nodes(Supervisor):
    """The nodes that take part, this one among them."""

    def open(self) -> None:
        """Find this node's place in the job; no message has come yet."""
        self.place = self.begin()
        self.hub: Hub | None = None
        self.part = LocalRun(self.folder, "node.log", self._on_line)
        self.progress = Progress()
        self.pace = Pace(0.0, time.monotonic())
        self.on_examined: Callable[[str, dict[str, Any]], None] = ignore
        self.settling = False
        """Nothing of the job runs any more, and other supervisors move what it has made."""
        self.gpus = GpuWatch(wanted=False)
        self._merged = self.folder / "launcher.log"
        self._listings: dict[str, dict[str, Any]] = {}
        self._pieces: dict[str, list[dict[str, Any]]] = {}
        self.channel_closed = ChannelLog(self.folder / "supervisor.log")
        self.reset()

    def reset(self) -> None:
        """Forget what an earlier attempt has said."""
        self.judge = Judge(self.place.spec, self.place.members, self.place.world_size)
        self._filter = RankLogFilter()
        self._nccl = NcclLog(self.place.world_size)
        self._nccl_found: dict[str, dict[str, Any]] = {}
        self.gpus.close()
        self.gpus = GpuWatch(self.place.computes_on_gpus(), self.timing.gpu_every)
        self.state.update(gpus={}, nccl={})
        self._pending: list[tuple[int | None, str]] = []
        self._ended: dict[str, dict[str, Any]] = {}
        self._in_order: list[int] = []
        self._lost_at: dict[str, float] = {}

    def broadcast(self, message: dict[str, Any]) -> None:
        """Say something to all followers."""
        if self.hub:
            self.hub.broadcast(message)

    def missing(self) -> list[str]:
        """Followers that are not connected."""
        return [node for node in self.hub.nodes if node not in self.hub.connected()] if self.hub else []

    def wait_for_all(self, seconds: float) -> list[str]:
        """Wait for all followers; return those that are still missing. None, where somebody stops the job."""
        rest(seconds, self.tick, lambda: not self.missing() or bool(self.requested()))
        return [] if self.stop_reason else self.missing()

    def leave_out(self, names: list[str]) -> None:
        """Go on without these followers."""
        self.place.keep({member["name"] for member in self.place.members} - set(names))
        if self.hub:
            reason = f"{self.place.node} went on without this node, which had stayed away too long."
            self.hub.leave_out(names, {"t": "bye", "state": "failed", "reason": reason})

    def listings(self, folder: str) -> dict[str, dict[str, Any]]:
        """What each node has in a folder."""
        self._listings, self._pieces = {self.place.node: list_files(folder)}, {}
        self.broadcast({"t": "list", "folder": folder})
        hub = self.hub
        if hub:
            rest(LISTING, self.tick, lambda: all(node in self._listings for node in hub.connected()))
        return self._listings

    def say(self, text: str) -> None:
        """A line of our own in the merged log."""
        with contextlib.suppress(OSError), self._merged.open("a", encoding="utf-8") as log:
            log.write(f"swarmspeed: {text}\n")

    def end_all(self, grace: float) -> None:
        """Wait until no process of the job is alive on any node that can be reached."""
        self.part.stop(grace)
        hub = self.hub

        def clean() -> bool:
            silent = hub.gone(self.timing.silence) if hub else {}
            near = [node for node in hub.connected() if node not in silent] if hub else []
            return self.part.clean() and all(self._ended.get(node, {}).get("clean") for node in near)

        rest(2 * grace + 5, self.tick, clean, 0.1)

    def codes(self) -> dict[str, int | None]:
        """Exit code of the launcher of each node that has one."""
        codes = {self.place.node: self.part.exit_code}
        if self.place.direct:
            codes.update({node: self._ended.get(node, {}).get("code") for node in self.place.followers})
        return codes

    def rank_codes(self) -> dict[int, int]:
        """Exit codes of ranks, as far as known, in the order in which they became known."""
        found = {int(rank): code for item in self._ended.values() for rank, code in item.get("ranks", {}).items()}
        found.update(self.part.exits)
        self._in_order = [rank for rank in self._in_order if rank in found]
        self._in_order += [rank for rank in found if rank not in self._in_order]
        return {rank: found[rank] for rank in self._in_order}

    def drain(self) -> None:
        """The last lines of ranks that have ended."""
        rest(1.0 if self.hub else 0.0, self.tick, lambda: False, 0.1)
        self.gather()

    def verdict(self) -> Failure | None:
        """Why the job failed; ``None`` where it did not. A node that has gone explains what others only lost it by."""
        failure = self.judge.why(self.codes(), self.rank_codes())
        if failure is None or not failure.weak:
            return failure
        # ssh may end before the supervisor on that node does, or be reported sooner: a later beat distinguishes them.
        hub, later, silence = self.hub, time.monotonic() + BEAT, self.timing.silence

        def known() -> bool:
            if hub is None or self.missing() or hub.gone(silence):
                return True
            return all(hub.last_seen[node] > later for node in hub.nodes)

        rest(silence + 2 * BEAT, self.tick, known)
        failure = self.judge.why(self.codes(), self.rank_codes())
        silent = hub.gone(silence) if hub else {}
        away = [*self.missing(), *silent]
        if failure is None or not failure.weak or not away:
            return failure
        lost = time.monotonic() - self._lost_at.get(away[0], time.monotonic())
        return self._has_gone(away[0], max(lost, silent.get(away[0], 0.0)))

    @staticmethod
    def _has_gone(node: str, seconds: float) -> Failure:
        return Failure(
            f"{node} has gone: it has not answered for {seconds:.0f} s. Its container was stopped or restarted, "
            "the node is down, or its network is cut. Check that node (verify.yml), then launch again.",
            node=node,
        )

    def gone(self) -> Failure | None:
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

    def tick(self) -> None:
        """Read all messages, and send a sign of life."""
        for node, message in self.hub.poll() if self.hub else []:
            kind = message.get("t")
            if kind in {"lines", "steps"}:
                self._printed(node, message)
            elif kind in {"part", "ended"}:
                self._ended.setdefault(node, {}).update(message)
                if message.get("problem"):
                    self._merge(node, None, f"the launcher could not be started: {message['problem']}")
            elif kind == "listing":
                self._list(node, message)
            elif kind == "examined":
                self.on_examined(node, message)
            elif kind == "gpus":
                self.state["gpus"] = {**self.state["gpus"], node: message["gpus"]}
            elif kind == "nccl" and message["size"] <= self.place.world_size:
                self._connected(node, message)
            elif kind == "stop":
                self.stop_reason = self.stop_reason or f"{message.get('reason')}, on {node}"
        self.gather()
        if not self.settling:
            self.place.refresh()
        self._report()
        self.save()

    def _printed(self, node: str, message: dict[str, Any]) -> None:
        """What ranks of another node have printed: lines for the log, or for their figures."""
        self.part.active_at = time.monotonic()
        for rank, line in message["lines"]:
            if message["t"] == "steps":
                self._feed(rank, line)
            else:
                # With pdsh only the launcher here names other nodes: a follower reports for itself.
                foreign = rank is None and not self.place.direct
                self._merge(node, rank, f"{node}: {line}" if foreign else line)
        if message.get("sign"):
            self.pace.note(LINE, time.monotonic())

    def _list(self, node: str, message: dict[str, Any]) -> None:
        """What a node has in a folder, which may come in pieces."""
        parts = self._pieces.setdefault(node, [])
        parts.append(message["found"])
        if message["more"] and len(parts) < MOST_PIECES:
            return
        del self._pieces[node]
        self._listings[node] = {
            "files": [file for part in parts for file in part["files"]],
            "latest": {path: text for part in parts for path, text in part["latest"].items()},
            "truncated": message["more"] or any(part["truncated"] for part in parts),
        }

    def gather(self) -> None:
        """What is new on this node. Of a rank that has failed, its earlier lines come first."""
        self.part.poll()
        pending, self._pending = self._pending, []
        for rank, line in [*self._filter.final_lines(self.part.exits), *pending]:
            self._merge(self.place.node, rank, line)

    def _on_line(self, rank: int | None, line: str) -> None:
        self._nccl.feed(line)
        signs, now = self._filter.signs, time.monotonic()
        lines, step = self._filter.on_line(rank, line, now)
        moved = False
        if step or not self.place.members:  # without members all ranks speak through the launcher
            moved = self._feed(rank or 0, step or line)
        if self._filter.signs > signs and not moved:
            self.pace.note(announced(line) or LINE, now)
        self._pending += [(rank, one) for one in lines]

    def _feed(self, rank: int, line: str) -> bool:
        """Figures of a rank; whether the training has gone on."""
        now = time.monotonic()
        moved = self.progress.feed(rank, line, now)
        if moved:
            self.pace.note(STEP, now)
        return moved

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
        own, node = self._nccl.found(), self.place.node
        if own and own != {key: value for key, value in self._nccl_found.get(node, {}).items() if key in own}:
            self._connected(node, {**own, **chosen(self.place.known_environment())})
        rows = self.gpus.poll()
        if rows:
            self.state["gpus"] = {**self.state["gpus"], node: rows}

    def _connected(self, node: str, found: dict[str, Any]) -> None:
        """What NCCL has connected on a node."""
        self._nccl_found[node] = found
        names = [member["name"] for member in self.place.members] or [self.place.node]
        self.state["nccl"] = merged(self._nccl_found, names)

    def _seen(self) -> dict[str, int]:
        """Ranks that have shown themselves, by node."""
        seen = {node: len(item.get("seen", [])) for node, item in self._ended.items()}
        return {**seen, self.place.node: len(self.part.ranks)}
