# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor on the node of rank 0: it starts the job everywhere, judges it, and ends it everywhere.

Part of the supervisor's archive: standard library, Python 3.8 or later.

Why DeepSpeed's exit code is not enough (deepspeed/launcher, releases 0.16.9 and 0.19.8): without a hostfile it trains
on one node and only warns; when its child is ended by a signal it exits 0. So success also needs what launch.py logs
on every node: the expected world size, and "exits successfully" once a rank.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import time
from pathlib import Path
from typing import Any

from ..members import ranks_by_node
from ..summary import summary
from .base import RESUMES, NodeContext, now_text, write_json
from .channel import Hub
from .frames import read_secret
from .hang_watch import HangWatch
from .judge import Failure
from .local_run import MARKER, rest
from .nodes import Nodes
from .readiness import can_not_shrink, read_config, refused
from .restart_recovery import RestartRecovery
from .restarts import Restarts

CHANNEL = range(29480, 29500)
"""Where the followers find their leader."""
PORTS = range(29500, 29600)
"""Where a free port for the rendezvous is searched when none is given."""


def free_port(address: str, ports: range = PORTS) -> int:
    """The first port of this node that no one listens on."""
    for port in ports:
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    return 0


def digests(place: NodeContext) -> dict[str, Any]:
    """What the run computes from, for its summary. Where a secret may be in it, useless without the cluster's key."""
    found: dict[str, Any] = dict(place.options.get("digests") or {})
    with contextlib.suppress(OSError, ValueError):
        key = read_secret(place.spec.get("secret_file") or "")
        contents = {"environment": json.dumps(sorted(place.given().items())).encode()}
        if place.ds_config:
            contents["configuration"] = Path(place.ds_config).read_bytes()
        for name, data in contents.items():
            found[name] = f"hmac-sha256:{hmac.digest(key, name.encode() + data, 'sha256').hex()}"
    return found


class Leader(Nodes):
    """One run of one job."""

    def run(self) -> None:
        self.open()
        place, again = self.place, bool(self.timing.again)
        restarts = Restarts(place.options, list(self.state.get("restarts") or []) if again else [])
        config = read_config(place.ds_config) if place.shrinks else None
        number = int(self.state.get("attempt") or 1) if again else 1
        if again:
            self.state["container_started_at"] = None  # it was restarted, and with it this supervisor
            left_out = list((self.state.get("shrunk_from") or {}).get("left_out") or [])
            if left_out:
                config = read_config(place.own_config) if config is not None else None
                self.leave_out(left_out)
                self.reset()
        self.state.update(leader=True, attempt=number, master_port=None, first_failure=None, ranks={}, figures={})
        self.state["digests"] = digests(place)
        self._listen(int(self.state.get("channel_port") or 0) if again else 0)
        self.write()
        self.sweep(self.part, self.timing.failure_grace)  # of an earlier run whose supervisor was killed
        unprepared = self.prepare(place, self.part)
        self.part.begin(number)
        with contextlib.suppress(OSError):
            (self.folder / RESUMES).touch() if restarts.wanted else None
        self._recovery = RestartRecovery(self, restarts, config)
        self.hangs = HangWatch(self)
        failure: Failure | None
        if unprepared:
            failure = Failure(unprepared, node=place.node, final=True)
        elif again:
            failure = Failure(f"{place.node}, the node of rank 0, was restarted while the job ran.", node=place.node)
        else:
            failure = refused(self, place.ds_config) or can_not_shrink(self, config) or self._gather()
            if failure is None and not self.requested():
                resumed = self._recovery.checkpoint() if place.options.get("resuming") else None
                failure = self._attempt(number, restarts.arguments(resumed))
        while failure is not None and restarts.allowed(failure):
            number += 1
            failure, arguments = self._recovery.prepare(number, failure)
            if failure is None and not self.stop_reason:
                failure = self._attempt(number, arguments)
        self._finish(failure)

    def _listen(self, port: int) -> None:
        """Be there for the supervisors of the other nodes; at this port, where they know it already."""
        place = self.place
        names = [member["name"] for member in place.spec.get("members") or []]
        if len(names) < 2:
            return
        address = place.members[0]["address"]
        secret = read_secret(place.spec["secret_file"])
        self.hub = Hub(
            secret,
            place.run,
            names[1:],
            address=address,
            port=port or free_port(address, CHANNEL),
            attempt=int(self.state["attempt"]),
            addresses=[str(member["address"]) for member in place.members[1:]],
            log=self.channel_closed,
        )
        self.state["channel_port"] = self.hub.port
        gone = [name for name in names if name not in [member["name"] for member in place.members]]
        if gone:
            self.leave_out(gone)

    def _gather(self) -> Failure | None:
        """Wait for the supervisors of the other nodes."""
        missing = [] if self.stop_reason else self.wait_for_all(self.timing.start_timeout)
        if not missing:
            return None
        return Failure(
            f"the supervisor on {', '.join(missing)} did not report within {self.timing.start_timeout:.0f} s. "
            "Check that its container runs and reaches rank 0's (--tags verify), then launch again.",
            node=missing[0],
        )

    def _attempt(self, number: int, arguments: list[str]) -> Failure | None:
        """Start the launchers and follow them until all have ended, or must be ended."""
        place = self.place
        self.gather()
        self.reset()
        logs = self.part.begin(number)
        self.hangs.close()
        self.hangs = HangWatch(self)
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
        if self.hub:
            self.hub.attempt = number
        values = {"t": "start", "attempt": number, "master_port": port, "arguments": arguments}
        try:
            place.lay_out(self._recovery.config)
        except OSError as error:
            return Failure(f"the job's hostfile and ds_config.json could not be written: {error}.", node=place.node)
        names = [member["name"] for member in place.members]
        self.broadcast({**values, "members": names, "config": self._recovery.config})
        environment = self.visible(place, place.environment(port))
        if not place.direct:
            # The one way by which pdsh's runner hands variables to all nodes; the marker finds the ranks there.
            exported = {**self.visible(place, place.own_environment()), MARKER: str(self.folder)}
            lines = "".join(f"{key}={value}\n" for key, value in exported.items())
            (self.folder / "environment").write_text(lines, encoding="utf-8")
            environment["DS_ENV_FILE"] = str(self.folder / "environment")
        try:
            command = place.command({**values, "logs": str(logs)})
            self.part.start(command, environment, place.chdir, place.rank_itself())
        except OSError as error:
            return Failure(f"the launcher could not be started: {error}. Check command and chdir.", code=127)
        return self._follow()

    def _follow(self) -> Failure | None:
        """Wait for the end of all; end it when somebody asks or when it is not the job that was requested."""
        failed_at = 0.0
        stall = float(self.place.options.get("stall_timeout") or 0)
        while True:
            self.tick()
            if self.requested():
                return None
            fatal = self.judge.wrong_world() or self.gone() or self._stalled(stall) or self.hangs.poll()
            if fatal:
                return fatal
            codes = self.codes()
            if self.judge.failed(codes, self.rank_codes()):
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at >= self.timing.after_failure:
                    return self.verdict()
            if all(code is not None for code in codes.values()):
                self.drain()
                return self.verdict()
            time.sleep(self.timing.poll)

    def _stalled(self, limit: float) -> Failure | None:
        quiet = time.monotonic() - self.part.active_at
        if not limit or quiet < limit:
            return None
        known = self.hangs.last()
        found = f" {known['sentence'].rstrip('.')}." if known else ""
        failure = self.judge.stalled(
            f"no rank has printed anything for {quiet:.0f} s (deepspeed_launch_stall_timeout: {limit:.0f}). It hangs, "
            "or prints too seldom: check the last lines of each rank below jobs/, or raise the time-out."
        )
        failure.reason += found
        return failure

    def _finish(self, failure: Failure | None) -> None:
        """End what is left on every node, then say how it was."""
        noticed = now_text()
        state = "failed" if failure else "stopped" if self.stop_reason else "succeeded"
        self.hangs.close(state == "succeeded")
        grace = self.timing.grace if state == "stopped" else self.timing.failure_grace
        reason = failure.reason if failure else self.stop_reason
        self.broadcast({"t": "end", "state": state, "reason": reason, "grace": grace})
        self.end_all(grace)
        self.settling = True
        hub = self.hub
        if hub:
            hub.broadcast({"t": "bye", "state": state, "reason": reason})
            hub.poll()
            rest(2.0, self.tick, lambda: set(hub.connected()) <= set(hub.gone(self.timing.silence)), 0.05)
            hub.close()
        if self.part.clean():
            self.settle(self.place)
        self.gather()  # the last words
        self.judge.finish()
        codes = [code for code in self.codes().values() if code is not None]
        exit_code = failure.code if failure and failure.code is not None else next((code for code in codes if code), 0)
        if not codes and failure:
            exit_code = exit_code or 1
        where = {rank: node for node, ranks in ranks_by_node(self.place.members).items() for rank in ranks}
        exits = self.rank_codes()
        if state == "succeeded":
            exits = dict.fromkeys(where, 0)
        self.state.update(
            state=state,
            exit_code=exit_code,
            reason=reason,
            finished_at=now_text(),
            ranks={str(rank): {"node": node, "exit_code": exits.get(rank)} for rank, node in where.items()},
        )
        self.gpus.close()
        self.state.update(failed_node=None, failed_rank=None, traceback=[], tail=[], gpus={})
        if failure:
            found = self.judge.describe(failure)
            self.state.update(failed_node=found["node"], failed_rank=found["rank"], traceback=found.pop("traceback"))
            self.state["first_failure"] = {**found, "at": noticed}
            rank = self.state["ranks"].get(str(found["rank"]))
            if rank and rank["exit_code"] is None:
                rank["exit_code"] = found["exit_code"]
            self.state["tail"] = list(self.judge.watch.tail)
        for name in ("environment", RESUMES):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        with contextlib.suppress(OSError):
            recorded = {**self.state, "name": self.folder.name}
            given, history = self.place.given(), self.progress.history()
            found = summary(self.place.spec, recorded, history=history, environment=given)
            write_json(self.folder / "summary.json", found)
        self.write()
