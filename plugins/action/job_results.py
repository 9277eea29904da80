# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of job_results: takes what the node has packed, and puts it in its place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

from ..module_utils.common.reported import ReportedError
from ..module_utils.job.resource import JobError, check_name
from ..module_utils.job.results import ARCHIVE, ResultsError, check_paths
from ..plugin_utils.connection.fetched import archive_bytes, fetch_at_most
from ..plugin_utils.connection.node_action import NodeAction
from ..plugin_utils.job.results import reply, same, take

MODULE = "swarmspeed.cluster.job_results"


class ActionModule(NodeAction):
    """The node only reads; what is written is written here, as the user who runs Ansible."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args, variables = dict(self._task.args), task_vars or {}
        name, node = str(args.get("name", "")), str(variables.get("inventory_hostname", "this host"))
        paths = [str(path) for path in args.get("paths") or []]
        try:
            check_name(name)
            check_paths(paths)
        except (JobError, ResultsError) as error:
            raise AnsibleError(f"job_results: {error}") from error
        if not args.get("dest"):
            raise AnsibleError("job_results: dest is missing. Remedy: give a folder on the controller.")
        place = Path(str(args["dest"])).expanduser() / name / "results"
        result.update(changed=False, dest=str(place), files=[], moved="", problems=[])
        if self._task.check_mode:
            return result
        work = str(self._connection._shell.tmpdir)
        answer = self._execute_module(module_name=MODULE, module_args={**args, "folder": work}, task_vars=variables)
        if answer.get("failed") or answer.get("unreachable"):
            return {**result, **answer}
        try:
            checked = reply(node, answer, paths, int(float(args.get("max_gib", 16)) * (1 << 30)))
            result.update(files=sorted(checked["packed"]), problems=checked["problems"])
            if checked["packed"] and not same(place, checked["packed"]):
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                result["moved"] = self._take(node, work, checked["packed"], place, variables)
                result["changed"] = True
        except ReportedError as error:
            raise AnsibleError(f"job_results: {error}") from None
        except OSError as error:
            raise AnsibleError(
                f"job_results: {error.filename or place} on the controller cannot be written: {error.strerror}. "
                "Remedy: free some space, or set deepspeed_launch_logs_dir to another folder."
            ) from error
        return result

    def _take(self, node: str, work: str, packed: dict[str, Any], place: Path, variables: dict[str, Any]) -> str:
        # Where the module puts it, whatever it answers.
        remote = self._connection._shell.join_path(work, ARCHIVE)
        # Root wrote it, and the account that logs in is to read it.
        words = ["chown", "--no-dereference", "--reference", work, "--", remote]
        self._execute_module(module_name="ansible.legacy.command", module_args={"argv": words}, task_vars=variables)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix="results.", suffix=".part") as archive:
            most = archive_bytes(int(one["size"]) for one in packed.values())
            fetch_at_most(self._connection, remote, archive.name, most)
            return take(node, Path(archive.name), packed, place)
