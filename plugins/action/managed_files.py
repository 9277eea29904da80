# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keeps the files a role owns; goes to the node only for those that node_facts found to differ."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.modules.managed_files import FILE_SPEC
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import entry_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import (
    ManagedFile,
    ManagedFileError,
    file_diff,
    file_is_right,
)


class ActionModule(NodeAction):
    """All that differ are written by one module call; a block is left to blockinfile."""

    # True would make a temporary directory on the node before anything is compared.
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "files": {"type": "list", "elements": "dict", "required": True, "options": FILE_SPEC},
            }
        )
        # Drawn by preflight for this run; node_facts got it, too.
        key = str(variables.get("_preflight_digest_key") or "")
        known = ((variables.get("ansible_facts") or {}).get("swarmspeed") or {}).get("files") or {}
        differing = self._differing(arguments["files"], known, key)
        if not self._task.check_mode:
            for blocks, items in groupby(differing, key=lambda item: item.block is not None):
                write = self._write_blocks if blocks else self._write_files
                write(list(items), variables)
        result.update(
            changed=bool(differing),
            files=[item.path for item in differing],
            diff=[file_diff(item, known[item.path], key) for item in differing],
        )
        return result

    def _differing(self, entries: list[dict[str, Any]], known: dict[str, Any], key: str) -> list[ManagedFile]:
        """Compare all files before the first is written, so that a wrong one stops the task in time."""
        differing: list[ManagedFile] = []
        for entry in entries:
            try:
                item = ManagedFile(**entry)
                right = file_is_right(item, known.get(item.path), key)
            except ManagedFileError as error:
                raise AnsibleActionFail(str(error)) from error
            if right is None:
                raise AnsibleActionFail(
                    f"{item.path}: node_facts was not asked about this file. Add it to files: of the node_facts task."
                )
            if not right:
                differing.append(item)
        return differing

    def _write_files(self, items: list[ManagedFile], variables: dict[str, Any]) -> None:
        arguments = {"files": [entry_of(item) for item in items]}
        secret = any(item.secret for item in items)
        self._execute("swarmspeed.cluster.managed_files", arguments, secret, variables)

    def _write_blocks(self, items: list[ManagedFile], variables: dict[str, Any]) -> None:
        for item in items:
            arguments = {
                "path": item.path,
                "block": item.content or "",
                "marker": f"# {{mark}} {item.block}",
                "state": item.state,
                "create": item.state == "present",
            }
            self._execute("ansible.builtin.blockinfile", arguments, item.secret, variables)

    def _execute(self, module: str, arguments: dict[str, Any], secret: bool, variables: dict[str, Any]) -> None:
        hidden = self._task.no_log
        # Without no_log the node's syslog would get a module's arguments, a secret among them.
        self._task.no_log = hidden or secret
        try:
            answer: dict[str, Any] = self._execute_module(module, arguments, task_vars=variables)
        finally:
            self._task.no_log = hidden
        if answer.get("failed"):
            message = str(answer.get("msg") or "nothing was reported")
            node = str(variables.get("inventory_hostname", ""))
            where = arguments.get("path", "")
            named = message if not where or where in message else f"{where}: {message}"
            raise AnsibleActionFail(named if not node or named.startswith(f"{node}: ") else f"{node}: {named}")
