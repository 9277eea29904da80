# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of job_logs: asks the node for what is new and writes it."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError

from ..module_utils.common.reported import ReportedError
from ..module_utils.job.log_files import IDENTITY, LogsError, check_node, unpack
from ..module_utils.job.log_files_io import Copy
from ..module_utils.job.resource import JobError, check_name
from ..plugin_utils.connection.node_action import NodeAction, at_most
from ..plugin_utils.validate.logs import reply as checked

MODULE = "swarmspeed.cluster.job_logs"
MOST_FILES = 10_000
MOST_BYTES = 16 << 30
"""Of one node's logs: a node that always has more would fill the controller's disk."""


class ActionModule(NodeAction):
    """The node only reads; what is written is written here, as the user who runs Ansible."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        node = str(args.get("node") or (task_vars or {}).get("inventory_hostname", ""))
        name, dest = str(args.get("name", "")), str(args.get("dest", ""))
        try:
            check_name(name)
            check_node(node)
        except (JobError, LogsError) as error:
            raise AnsibleError(f"job_logs: {error}") from error
        patience = self._patience(args.pop("patience", 0))
        if not dest:
            raise AnsibleError("job_logs: dest is missing. Give a folder on the controller.")
        copy = Copy(dest, name, node)
        result.update(changed=False, dest=str(copy.job), gathered=[], shortened=[], problems=[])
        if self._task.check_mode:
            return result
        try:
            with at_most(patience, f"{node}: its logs did not arrive within {patience} s"):
                reply = self._gather({**args, "node": node}, task_vars, copy, result)
        except (LogsError, ReportedError) as error:
            raise AnsibleError(f"job_logs: {error}") from None
        except OSError as error:
            raise AnsibleError(
                f"job_logs: {copy.path} on the controller cannot be written: {error}. Give another dest."
            ) from error
        if "files" not in reply:  # failed or unreachable: nothing was gathered, or not all
            return {**reply, "changed": result["changed"]}
        result["changed"] = bool(result["gathered"])
        return result

    @staticmethod
    def _patience(value: Any) -> int:
        text = str(value)
        if not text.isdecimal():
            raise AnsibleError(f"job_logs: patience: {value!r} is not a whole number of seconds, 0 or more.")
        return int(text)

    def _gather(
        self, args: dict[str, Any], task_vars: dict[str, Any] | None, copy: Copy, result: dict[str, Any]
    ) -> dict[str, Any]:
        """Ask until there is no more; return the last reply. Nothing is sent twice, though a log may grow meanwhile."""
        here = copy.state()
        args.update(have=copy.have(), have_run={key: here.get(key) for key in IDENTITY})
        sent: list[str] = []
        size = 0
        while True:
            reply: dict[str, Any] = self._execute_module(
                module_name=MODULE, module_args={**args, "skip": sent}, task_vars=task_vars
            )
            if reply.get("failed") or reply.get("unreachable") or "files" not in reply:
                reply.pop("files", None)
                return reply
            reply = checked(str(args["node"]), reply)
            if not sent:
                copy.turn(reply.get("run") or {})
            result["problems"] = list(reply.get("problems") or [])
            for packed in reply["files"]:
                piece = unpack(packed, int(args.get("max_mib", 8)) << 20)
                sent.append(piece.path)
                size += len(piece.data)
                if len(sent) > MOST_FILES or size > MOST_BYTES:
                    raise LogsError(f"the node sent more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB.")
                if copy.write(piece):
                    result["gathered"].append(piece.path)
                    if piece.shortened:
                        result["shortened"].append(piece.path)
            if not reply.get("more") or not reply["files"]:
                return reply
