# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of training_job: runs the module, follows the job it started or found running, and judges its end."""

from __future__ import annotations

import sys
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils.common.digests import keyed_digest
from ..module_utils.common.reported import ReportedError
from ..module_utils.job.arguments import ARGUMENTS, spec_of
from ..module_utils.job.members import placed
from ..module_utils.job.resource import ACTIVE, JobError, explain, spec_hash
from ..plugin_utils.connection.following import FollowingAction, say
from ..plugin_utils.job.console import Console
from ..plugin_utils.job.live import Vitals
from ..plugin_utils.validate.filters import one_line_action
from ..plugin_utils.validate.job import reply as checked

MODULE = "swarmspeed.cluster.training_job"
FOLLOW = "swarmspeed.cluster.training_job_follow"
"""Sends half as much to the host at each look: it has nothing of what starts a job."""
PAUSE = 2.0
"""Seconds between two queries of a job on the host."""
WAIT = 10.0
"""Seconds that a query waits on the host while the log is silent."""
ATTACH_BYTES = 8192
"""How much of its log a job that was already running shows first."""
BEHIND_BYTES = 1 << 20
"""A console that is further behind the log than this jumps ahead; the log on the host stays whole."""


class ActionModule(FollowingAction):
    """The job is detached, so this may be interrupted, or lose its connection, at any time."""

    @one_line_action("what training_job returned")
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        started = args.get("state", "started") == "started"
        wanted, observing = started and not self._task.check_mode, self._true(args.get("observe", False))
        acting = wanted and not observing
        follow = wanted and self._true(args.get("follow", acting))
        timeout = self._timeout(args.get("follow_timeout", 0))
        fresh = str(args.get("log_offset")) == "0"  # whoever has just started it wants to see all of it
        if follow:
            args.setdefault("log_offset", -ATTACH_BYTES)
        recorded = args.pop("recorded", None)
        deciding = started and self._task.check_mode and not observing
        known = self._as_recorded(args, recorded, task_vars) if deciding and recorded else None
        reply = known or self._module(args, task_vars)
        if reply.get("failed") or reply.get("unreachable") or "job" not in reply:
            return {**result, **reply}
        changed = reply.get("changed", False)
        fresh = fresh or changed
        if follow and (fresh or reply["job"]["state"] in ACTIVE):
            reply = {**reply, **self._follow(args, task_vars, reply, timeout=timeout, fresh=fresh)}
            if reply["job"]["state"] == "succeeded":
                ranks, nodes = reply["job"]["world_size_seen"], reply["job"]["nodes_seen"]
                # With per_node a script may start ranks that no one else sees.
                what = (
                    f"{ranks} rank(s) on {nodes}"
                    if ranks
                    else f"its command ended well on {reply['job']['nodes_expected']}"
                )
                without = ", ".join((reply["job"].get("shrunk_from") or {}).get("left_out") or [])
                without = f", without {without}, which stayed away" if without else ""
                say(f"Job {reply['job']['name']} succeeded: {what} node(s){without}.")
        elif started and not observing and reply["job"]["state"] == "succeeded" and not changed:
            say(f"Job {reply['job']['name']} succeeded at {reply['job']['finished_at']}: not started again.")
        elif follow:
            self._show(self._console(reply["job"]), reply, last=True)
        if follow:
            reply["log"] = ""
        reply["changed"] = changed
        ended_badly = reply["job"]["state"] not in (*ACTIVE, "succeeded")
        if (acting or follow) and ended_badly and not reply.get("failed"):
            reply["failed"] = True
            reply["msg"] = explain(reply["job"], self._host(task_vars), reply["log_path"])
        return {**result, **reply}

    @staticmethod
    def _as_recorded(
        args: dict[str, Any], recorded: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        """Return the answer of the module for a job that succeeded as it is specified now; None: ask the host.

        Most runs of ``site.yml`` find that. What is not certain here, such as wrong arguments, is left to the module.
        """
        checked_args = ArgumentSpecValidator(ARGUMENTS).validate(args)
        params, key = checked_args.validated_parameters, str((task_vars or {}).get("_preflight_digest_key") or "")
        if checked_args.error_messages or params["rerun"] or not key:
            return None
        try:
            digest = keyed_digest(spec_hash(spec_of(params)).encode(), key)
        except (JobError, TypeError, ValueError):
            return None
        if recorded.get("spec") != digest:
            return None
        job = {"name": params["name"], "state": "succeeded", "finished_at": recorded.get("finished_at")}
        return {"changed": False, "todo": "none", "job": job}

    def _follow(
        self,
        args: dict[str, Any],
        task_vars: dict[str, Any] | None,
        reply: dict[str, Any],
        *,
        timeout: float,
        fresh: bool,
    ) -> dict[str, Any]:
        """Show the log of a job until it has ended; return the last reply."""
        name, run, host = reply["job"]["name"], reply["job"]["run"], self._host(task_vars)
        stop = f"touch {reply['log_path'].rpartition('/')[0]}/stop"
        stays = f"It keeps running: launch.yml attaches to it again; stop.yml, or `{stop}` on {host}, ends it."
        verb = "started" if fresh else f"is running since {reply['job']['started_at']}"
        say(f"Job {name} {verb}. Its log follows; Ctrl-C ends only this view. {stays}")
        if reply.get("changed"):  # our own: from its first line
            reply = {**reply, "log": "", "log_offset": 0}
        request: dict[str, Any] = {key: args[key] for key in ("name", "jobs_dir") if key in args}
        console, vitals = self._console(reply["job"]), Vitals(name, self._clock)
        deadline = self._clock() + timeout if timeout else None
        pause = 0.0  # the first look may wait on the host at once
        while True:
            news = self._show(console, reply)
            for line in vitals.lines({**reply["job"], "log_path": reply["log_path"]}):
                say(line)
            if reply["job"]["state"] not in ACTIVE and reply["log_offset"] >= reply["log_size"]:
                self._show(console, {**reply, "log": ""}, last=True)
                return reply
            if deadline is not None and self._clock() >= deadline:
                return {**reply, "failed": True, "msg": f"Job {name} has not ended within {timeout:g} s. {stays}"}
            offset, behind = reply["log_offset"], reply["log_size"] - reply["log_offset"]
            if behind > BEHIND_BYTES:
                say(f"({behind - ATTACH_BYTES} bytes of the log are not shown; all of it: {reply['log_path']})")
                offset = -ATTACH_BYTES
            elif pause and (not news or behind <= 0):
                self._sleep(pause)
            pause = PAUSE
            left = WAIT if deadline is None else min(WAIT, max(0.0, deadline - self._clock()))
            reply = self._gather({**request, "log_offset": offset, "wait": left}, task_vars, name, stays)
            if reply["job"]["run"] != run:
                raise AnsibleError(f"Job {name}, run {run}, was replaced meanwhile by someone else's run.")

    def _gather(self, args: dict[str, Any], task_vars: dict[str, Any] | None, name: str, stays: str) -> dict[str, Any]:
        """Query the job once, again when the connection or the engine does not answer."""
        return self._patiently(
            lambda: self._module(args, task_vars, FOLLOW),
            "job",
            f"Job {name}",
            lambda tries, problem: f"Job {name}: lost contact after {tries} more tries ({problem}). {stays}",
        )

    def _module(self, args: dict[str, Any], task_vars: dict[str, Any] | None, module: str = MODULE) -> dict[str, Any]:
        reply: dict[str, Any] = self._execute_module(module_name=module, module_args=args, task_vars=task_vars)
        reply.pop("ansible_facts", None)
        try:
            reply = checked(self._host(task_vars), reply)
        except ReportedError as error:
            raise AnsibleError(str(error)) from None
        shown = reply.get("invocation", {}).get("module_args", {})
        if isinstance(shown.get("environment"), dict):
            # The module hides the values itself, but not when it refuses its arguments.
            shown["environment"] = dict.fromkeys(shown["environment"], "(not shown)")
        return reply

    def _console(self, job: dict[str, Any]) -> Console:
        members = placed(job.get("members") or [])
        return Console(job["hosts"], self._clock, terminal=sys.stdout.isatty(), name=job["name"], members=members)

    def _show(self, console: Console, reply: dict[str, Any], last: bool = False) -> bool:
        lines = console.feed(reply["log"]) + (console.finish() if last else [])
        lines += console.progress(reply["job"].get("figures"), self._clock())
        for line in lines:
            say(line)
        return bool(lines)

    @staticmethod
    def _host(task_vars: dict[str, Any] | None) -> str:
        return str((task_vars or {}).get("inventory_hostname", "the host of rank 0"))

    @staticmethod
    def _true(value: Any) -> bool:
        try:
            return bool(boolean(value))
        except TypeError as error:
            raise AnsibleError(f"follow and observe are true or false, not {value!r}.") from error

    @staticmethod
    def _timeout(value: Any) -> float:
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise AnsibleError(f"follow_timeout: {value!r} is not a number of seconds, 0 or more.")
        return seconds
