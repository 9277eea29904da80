# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs inside the container beside the launcher of one training job: starts it, watches its log, judges its end.

The module training_job copies this file, _job_log.py and _job_ds_config.py into the job's folder and starts it
detached, so they must need nothing but each other and Python 3.8. Usage: ``supervisor.py FOLDER [--sweep]``; the other
options shorten tests.

Why DeepSpeed's exit code is not enough (deepspeed/launcher, releases 0.16.9 and 0.19.8): without a hostfile it trains
on one node and only warns; when its child is ended by a signal it exits 0. So success also needs what launch.py logs
on every node: the expected world size, and "exits successfully" once a rank.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

try:
    from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_log import LogWatch
except ImportError:  # in a job's folder, where both files lie side by side
    from _job_log import LogWatch  # type: ignore[import-not-found,no-redef]

POLL = 0.5
"""Seconds between two looks at the log, the launcher and the stop file."""
HEARTBEAT = 2.0
"""Seconds between two writes of state.json when nothing changed."""
GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL: DeepSpeed's pdsh runner ends the remote ranks in that time."""
AFTER_FAILURE = 15.0
"""Seconds that ranks may go on after another one failed. Seen with Gloo: rank 0 waits for ever for a killed rank 1."""
CHECK_TIMEOUT = 300.0
"""Seconds that DeepSpeed may take to read its configuration: importing it from a cold disk is the slow part."""
MARKER = "SWARMSPEED_JOB"
"""Environment variable that finds processes of a job which left the launcher's process group."""


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Replace ``path`` at once, so that nobody reads half of it."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(data), encoding="utf-8")
    beside.replace(path)


def now_text() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def survivors(folder: Path) -> list[int]:
    """Processes of the job in this container, wherever their parent or process group is."""
    wanted = f"{MARKER}={folder}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile, or not ours
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


class Supervisor:
    """One run of one job."""

    def __init__(self, folder: Path, poll: float, grace: float, after_failure: float) -> None:
        self.folder, self.poll, self.grace, self.after_failure = folder, poll, grace, after_failure
        self.watch = LogWatch()
        self.asked = ""
        self.state: dict[str, Any] = {}
        self._offset = 0
        self._written: dict[str, Any] = {}

    def run(self) -> None:
        request = json.loads((self.folder / "spec.json").read_text(encoding="utf-8"))
        self.state = {
            **json.loads((self.folder / "state.json").read_text(encoding="utf-8")),
            "state": "running",
            "pid": os.getpid(),
        }
        self.end_survivors()  # of an earlier run whose supervisor was killed
        spec = request["spec"]
        refusal = self._refusal(spec)
        if self.asked or refusal:
            self._finish("stopped" if self.asked else "failed", 1, self.asked or refusal)
            return
        try:
            launcher = self._launch(spec, spec["command"])
        except OSError as error:
            self._finish("failed", 127, f"the launcher could not be started: {error}. Check command and chdir.")
            return
        exit_code, fatal = self._follow(launcher, spec["world_size"], spec["nodes"])
        self.end_survivors()
        self._read_log()
        self.watch.finish()
        if self.asked:
            self._finish("stopped", exit_code, self.asked)
            return
        reason = fatal or self.watch.why_failed(exit_code, spec["world_size"], spec["nodes"])
        self._finish("failed" if reason else "succeeded", exit_code, reason)

    def _refusal(self, spec: dict[str, Any]) -> str:
        """Why DeepSpeed in this image would not take the job's configuration; empty where it does."""
        path = spec.get("ds_config")
        if not path:
            return ""
        checker = str(self.folder / "_job_ds_config.py")
        try:
            process = self._launch(
                spec, ["python3", "-B", checker, path, str(spec["world_size"])], stdout=subprocess.PIPE
            )
        except OSError as error:
            return f"{path} could not be checked: {error}. The image needs python3 on its PATH."
        deadline = time.monotonic() + CHECK_TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            self.tick()
            if (self.folder / "stop").exists():
                self.asked = self.asked or "on request"
            if self.asked:
                break
            time.sleep(min(self.poll, 0.1))
        if process.poll() is None:
            self._stop(process)
            return f"DeepSpeed did not read {path} within {CHECK_TIMEOUT:.0f} s. Look at the log."
        try:
            answer = json.loads(process.stdout.read() if process.stdout else b"")
        except ValueError:
            return f"DeepSpeed could not be imported to check {path}. The end of the log says why."
        self.state["deepspeed_version"] = answer["release"] or None
        if not answer["refusal"]:
            return ""
        return (
            f"DeepSpeed {answer['release']} in this image refuses {path} for {spec['world_size']} rank(s): "
            f"{answer['refusal']}"
        )

    def _launch(self, spec: dict[str, Any], command: list[str], stdout: int | None = None) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **spec["environment"], MARKER: str(self.folder)}
        if spec["chdir"]:
            environment["PWD"] = spec["chdir"]
        with (self.folder / "launcher.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=spec["chdir"] or None,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                start_new_session=True,
            )

    def _follow(self, launcher: subprocess.Popen[bytes], world_size: int, nodes: int) -> tuple[int, str]:
        """Wait for the end; end it when somebody asks or when it is not the job that was asked for."""
        fatal, failed_at = "", 0.0
        while launcher.poll() is None:
            self.tick()
            fatal = self.watch.wrong_world(world_size, nodes)
            if self.watch.exits:
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at >= self.after_failure:
                    self._stop(launcher)
                    break
            if (self.folder / "stop").exists():
                self.asked = self.asked or "on request"
            if self.asked or fatal:
                self._stop(launcher)
                break
            time.sleep(self.poll)
        return launcher.wait(), fatal

    def _stop(self, launcher: subprocess.Popen[bytes]) -> None:
        """SIGTERM to the launcher's whole group, SIGKILL to what is left of it after the grace."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launcher.pid, number)
            deadline = time.monotonic() + self.grace
            while launcher.poll() is None and time.monotonic() < deadline:
                self.tick()
                time.sleep(min(self.poll, 0.2))
            if launcher.poll() is not None:
                return

    def end_survivors(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = survivors(self.folder)
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            deadline = time.monotonic() + self.grace
            while left and survivors(self.folder) and time.monotonic() < deadline:
                self.tick()
                time.sleep(min(self.poll, 0.2))

    def tick(self) -> None:
        """Read what is new in the log and say that we live. A full disk must not end the job."""
        self._read_log()
        if not self.state:  # --sweep: there is no job to report on
            return
        watch = self.watch
        self.state.update(
            world_size_seen=watch.world_size, nodes_seen=len(watch.node_ranks) or None, hosts=list(watch.hosts)
        )
        last = self._written.get("heartbeat", 0.0)
        if {**self.state, "heartbeat": last} != self._written or time.time() - last >= HEARTBEAT:
            with contextlib.suppress(OSError):
                self._write()

    def _read_log(self) -> None:
        with contextlib.suppress(FileNotFoundError), (self.folder / "launcher.log").open("rb") as log:
            log.seek(self._offset)
            for data in iter(lambda: log.read(1 << 20), b""):
                self._offset += len(data)
                self.watch.feed(data)

    def _write(self) -> None:
        self.state["heartbeat"] = time.time()
        write_json(self.folder / "state.json", self.state)
        self._written = dict(self.state)

    def _finish(self, state: str, exit_code: int, reason: str) -> None:
        host, rank, trace = self.watch.culprit() if state == "failed" else ("", None, [])
        self.tick()
        self.state.update(state=state, exit_code=exit_code, reason=reason, finished_at=now_text())
        self.state.update(failed_node=host or None, failed_rank=rank, traceback=trace)
        self.state["tail"] = list(self.watch.tail) if state == "failed" else []
        self._write()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sweep", action="store_true", help="only end what an earlier run left behind")
    parser.add_argument("--poll", type=float, default=POLL)
    parser.add_argument("--grace", type=float, default=GRACE)
    parser.add_argument("--after-failure", type=float, default=AFTER_FAILURE)
    given = parser.parse_args(arguments)
    os.umask(0o077)
    supervisor = Supervisor(given.folder, given.poll, given.grace, given.after_failure)
    if given.sweep:
        supervisor.end_survivors()
        return 0

    def asked(number: int, _frame: object) -> None:
        supervisor.asked = f"its supervisor was told to end ({signal.Signals(number).name})"

    signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGINT, asked)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        supervisor.run()
    except Exception as error:
        # Without this the job would count as lost, and nobody would know why.
        (given.folder / "supervisor.log").write_text(traceback.format_exc(), encoding="utf-8")
        supervisor.end_survivors()
        supervisor._finish("failed", 1, f"the supervisor failed: {error!r}; see supervisor.log beside the log.")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
