# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a module that keeps one text file would reply where nothing is to change, from node_facts' look at the file."""

from __future__ import annotations

import hashlib
import json
import re
from types import ModuleType
from typing import Any

from ansible import constants
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.text_file import Found
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction


class NodeNeededError(Exception):
    """Something would be refused or written: the module judges that, on the node."""


class StandIn:
    """What the modules use of AnsibleModule. In check mode, so that nothing is written; reply() compares attributes."""

    check_mode = True
    tmpdir = ""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.no_log_values: set[str] = set()
        self.warnings: list[str] = []

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def fail_json(self, msg: str, **dummy: Any) -> None:
        raise NodeNeededError(msg)

    def load_file_common_arguments(self, params: dict[str, Any], path: str | None = None) -> dict[str, Any]:
        return {}

    def set_fs_attributes_if_different(
        self, file_args: dict[str, Any], changed: bool, diff: dict[str, Any] | None = None
    ) -> bool:
        return changed


def returns_invocation(task_vars: dict[str, Any] | None) -> bool:
    """Whether a module's reply holds its arguments: always before ansible-core 2.21, there as it is configured."""
    if constants.config.get_configuration_definition("INJECT_INVOCATION") is None:
        return True
    return bool(constants.config.get_config_value("INJECT_INVOCATION", variables=task_vars))


def reply(module: ModuleType, arguments: dict[str, Any], files: Any, invocation: bool) -> dict[str, Any] | None:
    """The module's reply, were it run on the node; None where it has to be: something differs or is not known.

    ``files`` is the part of node_facts of that name; ``invocation`` says whether the reply holds the arguments.
    """
    try:
        # As on the way to the node: templates and tags become plain values, keys text.
        given = json.loads(json.dumps(arguments))
    except (TypeError, ValueError):
        return None
    path = given.get("path")
    fact = _plain_file((files or {}).get(path)) if isinstance(path, str) else None
    if fact is None or not set(given) <= set(module.ARGUMENTS):
        return None
    checked = ArgumentSpecValidator({**FILE_COMMON_ARGUMENTS, **module.ARGUMENTS}).validate(given)
    params = checked.validated_parameters
    # A path with ~ or $ means something else on the node, and a mode in symbols depends on the file's.
    if checked.error_messages or params["path"] != path or not _octal(params["mode"]):
        return None
    mode = int(fact["mode"], 8)
    content = fact["content"].encode()
    stand_in = StandIn(params)
    try:
        result = module.answer(stand_in, lambda path: Found(path, content))
    except NodeNeededError:
        return None
    if result["changed"] or int(params["mode"], 8) != mode:
        return None
    result.update(uid=0, gid=0, owner="root", group="root", mode=f"0{mode:03o}", state="file", size=len(content))
    if invocation:
        result["invocation"] = {"module_args": params}
    # As exit_json has it: a short secret must not turn false into text.
    kept = {key: value for key, value in result.items() if value is None or isinstance(value, bool)}
    masked: dict[str, Any] = {**remove_values(result, stand_in.no_log_values), **kept}
    if stand_in.warnings:
        masked["warnings"] = stand_in.warnings
    # Releases of ansible-core differ in whether they mask warnings.
    unmasked = remove_values(stand_in.warnings, stand_in.no_log_values) == stand_in.warnings
    return masked if unmasked else None


def _octal(mode: Any) -> bool:
    return isinstance(mode, str) and re.fullmatch("[0-7]{3,4}", mode) is not None


def _plain_file(fact: Any) -> dict[str, Any] | None:
    """The fact where it holds all that a module tells of a file: all its text, root's, neither a link nor labelled."""
    if not isinstance(fact, dict) or not fact.get("plain") or (fact["owner"], fact["group"]) != (0, 0):
        return None
    # Not the same for bytes that are not UTF-8.
    return fact if hashlib.sha256(fact["content"].encode()).hexdigest() == fact["sha256"] else None


class LookedAction(NodeAction, NormalAction):  # type: ignore[misc]  # ansible-core has no types
    """Runs the module as without an action, unless the task says looked: true and the look has found all as wanted."""

    MODULE: ModuleType

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        task = self._task
        if boolean(task.args.get("looked", False), strict=False) and not task.async_val and not task.delegate_to:
            facts = ((task_vars or {}).get("ansible_facts") or {}).get("swarmspeed") or {}
            answered = reply(self.MODULE, task.args, facts.get("files"), returns_invocation(task_vars))
            if answered is not None:
                return answered
        ran: dict[str, Any] = super().run(tmp, task_vars)
        return ran
