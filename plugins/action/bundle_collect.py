# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of bundle_collect: knows what is there already, and takes what the host has downloaded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.module_utils._bundle import BundleError, inside, system_name
from ansible_collections.swarmspeed.cluster.plugins.module_utils._bundle_io import PART, unpack, whole, write_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction

MODULE = "swarmspeed.cluster.bundle_collect"


class ActionModule(NodeAction):
    """List, compare, download, fetch."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = dict(self._task.args)
        if not arguments.get("bundle") or not isinstance(arguments.get("system"), dict):
            raise AnsibleActionFail("bundle and system are needed: a folder, and what node_facts says of the host.")
        name = system_name(arguments["system"])
        if not inside(name):
            raise AnsibleActionFail(f"system: {name} cannot be the name of a folder.")
        folder = Path(arguments["bundle"]).expanduser() / "apt" / name
        work = str(self._connection._shell.tmpdir)
        arguments["folder"] = work
        answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        if answer.get("failed"):
            return {**result, **answer}
        debs = answer["debs"]
        try:
            expected = {deb["file"]: (int(deb["size"]), str(deb["sha256"])) for deb in debs}
            lacking = sorted(set(expected) - whole(folder, expected))
            if not self._task.check_mode:
                if lacking:
                    self._fetch({**arguments, "lacking": lacking}, folder, expected, variables)
                # The list of all, from which a node's own is made.
                write_text(folder / "Packages", "".join(f"{deb['stanza']}\n\n" for deb in debs))
        except (BundleError, OSError) as error:
            raise AnsibleActionFail(
                f"{folder}: {error}. Remedy: see that there is space, and run bundle.yml again."
            ) from error
        packages = [{key: value for key, value in deb.items() if key != "stanza"} for deb in debs]
        result.update(changed=bool(lacking), system=name, packages=packages, fetched=lacking)
        return result

    def _fetch(
        self, arguments: dict[str, Any], folder: Path, expected: dict[str, tuple[int, str]], variables: dict[str, Any]
    ) -> None:
        answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        if answer.get("failed"):
            raise AnsibleActionFail(str(answer.get("msg")))
        folder.mkdir(parents=True, exist_ok=True)
        self._readable(answer["archive"], variables)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=PART) as archive:
            self._connection.fetch_file(answer["archive"], archive.name)
            missing = unpack(Path(archive.name), folder, {name: expected[name] for name in arguments["lacking"]})
        if missing:
            raise BundleError(f"{', '.join(missing[:4])} did not arrive")

    def _readable(self, path: str, variables: dict[str, Any]) -> None:
        """Give a file that root wrote to the account that logs in."""
        words = ["chown", "--reference", str(self._connection._shell.tmpdir), path]
        self._execute_module(module_name="ansible.legacy.command", module_args={"argv": words}, task_vars=variables)
