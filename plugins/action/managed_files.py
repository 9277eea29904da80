# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keeps the files a role owns; goes to the node only for those that node_facts found to differ."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ..plugin_utils.connection.messages import explained
from ..plugin_utils.connection.node_action import NodeAction
from ..plugin_utils.plan.managed_file import ManagedFile, ManagedFileError, file_diff, file_is_right

FILE_SPEC: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "no_log": False},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "int", "default": 0},
    "group": {"type": "int", "default": 0},
    "secret": {"type": "bool", "default": False},
    "block": {"type": "str"},
    "mark": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


class ActionModule(NodeAction):
    """Each differing file is handed to the well-kept module for it: copy, file or blockinfile."""

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
            for item in differing:
                self._write(item, variables)
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
                    f"{item.path}: node_facts did not gather this file. Add it to files: of the node_facts task."
                )
            if not right:
                differing.append(item)
        return differing

    def _write(self, item: ManagedFile, variables: dict[str, Any]) -> None:
        hidden = self._task.no_log
        # Without no_log the node's syslog would get a module's arguments, a secret block among them.
        self._task.no_log = hidden or item.secret
        try:
            answer = self._run_module_for(item, variables)
        finally:
            self._task.no_log = hidden
        if answer.get("failed"):
            # The action copy runs its modules by itself, so a broken connection is not yet in words.
            words = explained(str(variables.get("inventory_hostname", "")), f"writing {item.path}", answer)
            raise AnsibleActionFail(words or f"{item.path}: {answer.get('msg', 'could not be written')}")

    def _run_module_for(self, item: ManagedFile, variables: dict[str, Any]) -> dict[str, Any]:
        ownership: dict[str, Any] = {
            "path": item.path,
            "mode": item.mode,
            "owner": str(item.owner),
            "group": str(item.group),
        }
        module, arguments = "ansible.builtin.file", {**ownership, "state": "directory"}
        if item.block is not None:
            module = "ansible.builtin.blockinfile"
            arguments = {
                "path": item.path,
                "block": item.content or "",
                "marker": "# {mark} " + item.block,
                "state": item.state,
                "create": item.state == "present",
            }
        elif item.state == "absent":
            arguments = {"path": item.path, "state": "absent"}
        elif item.content is not None:
            return self._copy(item, variables)
        answer: dict[str, Any] = self._execute_module(module, arguments, task_vars=variables)
        return answer

    def _copy(self, item: ManagedFile, variables: dict[str, Any]) -> dict[str, Any]:
        """Run ansible.builtin.copy, which writes to a temporary file beside the target and renames it."""
        task = self._task.copy()
        task.args = {
            "dest": item.path,
            "content": item.content,
            "mode": item.mode,
            "owner": str(item.owner),
            "group": str(item.group),
        }
        copy = self._shared_loader_obj.action_loader.get(
            "ansible.legacy.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        answer: dict[str, Any] = copy.run(task_vars=variables)
        return answer
