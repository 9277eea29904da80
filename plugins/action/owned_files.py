# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keeps the files a role owns; goes to the node only for those that node_facts found to differ."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.swarmspeed.cluster.plugins.module_utils._compare import OwnedFile, file_diff, file_is_right

FILE_SPEC: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "no_log": False},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "int", "default": 0},
    "group": {"type": "int", "default": 0},
    "secret": {"type": "bool", "default": False},
    "block": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Each differing file is handed to the well-kept module for it: copy, file or blockinfile."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "files": {"type": "list", "elements": "dict", "required": True, "options": FILE_SPEC},
            }
        )
        known = ((variables.get("ansible_facts") or {}).get("swarmspeed") or {}).get("files") or {}
        changed: list[str] = []
        diffs: list[dict[str, str]] = []
        for entry in arguments["files"]:
            item = OwnedFile(**entry)
            right = file_is_right(item, known.get(item.path))
            if right is None:
                raise AnsibleActionFail(f"{item.path}: node_facts was not asked about this file (files: of the task that runs it).")
            if right:
                continue
            if not self._task.check_mode:
                self._write(item, variables)
            changed.append(item.path)
            diffs.append(file_diff(item, known[item.path]))
        result.update(changed=bool(changed), files=changed, diff=diffs)
        return result

    def _write(self, item: OwnedFile, variables: dict[str, Any]) -> None:
        ownership = {"path": item.path, "mode": item.mode, "owner": str(item.owner), "group": str(item.group)}
        if item.block is not None:
            arguments = {
                "path": item.path,
                "block": item.content or "",
                "marker": "# {mark} " + item.block,
                "state": item.state,
                "create": item.state == "present",
            }
            answer = self._execute_module("ansible.builtin.blockinfile", arguments, task_vars=variables)
        elif item.state == "absent":
            answer = self._execute_module("ansible.builtin.file", {"path": item.path, "state": "absent"}, task_vars=variables)
        elif item.content is None:
            answer = self._execute_module("ansible.builtin.file", {**ownership, "state": "directory"}, task_vars=variables)
        else:
            answer = self._copy(item, variables)
        if answer.get("failed"):
            raise AnsibleActionFail(f"{item.path}: {answer.get('msg', 'could not be written')}")

    def _copy(self, item: OwnedFile, variables: dict[str, Any]) -> dict[str, Any]:
        """Run ansible.builtin.copy, which writes to a temporary file beside the target and renames it."""
        task = self._task.copy()
        task.args = {
            "dest": item.path,
            "content": item.content,
            "mode": item.mode,
            "owner": str(item.owner),
            "group": str(item.group),
        }
        task.no_log = task.no_log or item.secret
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
