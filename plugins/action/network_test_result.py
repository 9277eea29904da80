# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Judges on the controller what all nodes found of one another, and writes verify.json there. Contacts no host."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.common.reported import sentence
from ..plugin_utils.core.files import write_private
from ..plugin_utils.core.roles import NAMES, requested_roles, role_of
from ..plugin_utils.core.values import mapping, sealed
from ..plugin_utils.fabric.all_reduce import judge_collective
from ..plugin_utils.fabric.checks import Verdict, Wanted, judge, trouble_of
from ..plugin_utils.fabric.document import (
    document,
    roles_section,
    summary,
    versions_of,
)
from ..plugin_utils.fabric.open_to_anyone import open_to_anyone
from ..plugin_utils.validate.filters import one_line_action
from ..plugin_utils.validate.shape import data


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only; meant for run_once."""

    TRANSFERS_FILES = False
    _requires_connection = False

    @one_line_action("what network_mesh_test returned")
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        dummy, given = self.validate_argument_spec(
            argument_spec={
                "cluster": {"type": "str", "required": True},
                "hosts": {"type": "list", "elements": "str", "required": True},
                "started": {"type": "dict", "default": {}},
                "ended": {"type": "dict", "default": {}},
                "wanted": {"type": "dict", "default": {}},
                "backend": {"type": "str", "default": "gloo", "choices": ["gloo", "nccl"]},
                "began": {"type": "float", "required": True},
                "reports_dir": {"type": "str", "default": ""},
                "failed": {"type": "bool", "default": False},
            }
        )
        nodes, hostvars = given["hosts"], variables["hostvars"]
        given.update(started=data(given["started"]), ended=data(given["ended"]))
        records = {
            name: {"start": given["started"].get(name), "end": given["ended"].get(name)} for name in given["started"]
        }
        failure = failed_before(nodes, hostvars) if given["failed"] else {}
        verdict, collective = Verdict([]), None
        notes: list[str] = []
        problems: list[str] = []
        if records:
            verdict = judge(records, wanted_of(nodes, given["wanted"]))
            answers = {
                name: mapping(mapping(mapping(records.get(name)).get("end")).get("collective")) for name in nodes
            }
            ready = {name: mapping(mapping(records.get(name)).get("start")).get("ready") or {} for name in nodes}
            expected = {name: str(mapping(ready[name].get("inner")).get("interface", "")) for name in nodes}
            hcas = {name: str(value) for name, value in mapping(given["wanted"].get("hcas")).items()}
            collective, more, noted = judge_collective(answers, expected, given["backend"], hcas)
            problems = [sentence(text) for text in verdict.problems + more]
            notes = [sentence(text) for text in verdict.notes + noted]
        notes += open_to_anyone(hostvars, wanted_of(nodes, given["wanted"]))
        requested = requested_roles(
            variables.get("ansible_run_tags") or ["all"], variables.get("ansible_skip_tags") or []
        )
        # Which roles were verified before something else failed is not known.
        known = [] if given["failed"] and not failure["role"] else requested
        ended = time.time()
        made = document(
            cluster=given["cluster"],
            began=given["began"],
            ended=ended,
            nodes=nodes,
            roles=roles_section(known, failure.get("role", ""), failure.get("reported", "")),
            findings=verdict.findings,
            collective=collective,
            versions={name: self._versions(name, hostvars, records) for name in nodes},
        )
        # A run with tags verified a part only; the file of a whole run says more.
        whole = set(requested) == set(NAMES)
        where = ""
        if given["reports_dir"] and whole and not self._task.check_mode:
            where = write(given["reports_dir"], made)
        result.update(changed=False, report=where, problems=problems, notes=notes)
        result["failed"] = bool(problems) or given["failed"]
        tried = bool(records) and all(not trouble_of(mapping(records.get(name))) for name in nodes)
        line = summary(verdict.findings, collective, nodes, ended - given["began"]) if tried else ""
        result["msg"] = message(problems, notes, failure, line, where)
        return result

    def _versions(self, name: str, hostvars: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, Any]:
        facts = mapping((hostvars[name].get("ansible_facts") or {}).get("swarmspeed")) if name in hostvars else {}
        record = mapping(records.get(name))
        ready = mapping(mapping(record.get("start")).get("ready"))
        nccl = str(mapping(mapping(record.get("end")).get("collective")).get("nccl") or "")
        return versions_of(facts, ready, nccl)


def wanted_of(nodes: list[str], given: Mapping[str, Any]) -> Wanted:
    """What was requested; Ansible hands numbers over as text."""
    data = given.get("data_port")
    return Wanted(
        hosts=tuple(nodes),
        network=str(given.get("network", "container")),
        data_port=int(data) if data else None,
        clock=float(given.get("clock", 30)),
        encrypted=str(given.get("encrypted", False)).lower() in ("true", "yes", "1"),
        rendezvous=str(given.get("rendezvous", "29500-29599")),
        ssh_port=int(given.get("ssh_port", 2222)),
    )


def failed_before(nodes: list[str], hostvars: Mapping[str, Any]) -> dict[str, str]:
    """The role and the words of the task that ended the playbook, on the first node that it failed on."""
    for name in nodes:
        found = mapping(mapping(hostvars.get(name)).get("_verify_failed"))
        if found:
            return {
                "role": role_of(found.get("tags") or []),
                "reported": " ".join(str(found.get("reported") or "").split()),
            }
    return {"role": "", "reported": ""}


def message(problems: list[str], notes: list[str], failure: Mapping[str, str], line: str, where: str) -> str:
    """What people read."""
    lines = []
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines.append(f"The network between the nodes has {count}.")
        lines += [f"{number}. {text}" for number, text in enumerate(problems, 1)]
    elif failure:
        lines.append(f"Verify ended{' at the role ' + failure['role'] if failure['role'] else ''}: see above.")
    elif line:
        lines.append(line)
    lines += [f"Note: {note}" for note in notes]
    if where:
        lines.append(f"Written to {where}.")
    return "\n".join(lines)


def write(folder: str, made: Mapping[str, Any]) -> str:
    """Write verify.json, whole or not at all."""
    path = Path(folder).expanduser() / "verify.json"
    try:
        write_private(path, json.dumps(sealed(made), indent=1) + "\n")
    except OSError as error:
        raise AnsibleActionFail(
            f"verify.json cannot be written: {error}. "
            "Remedy: set cluster_reports_dir to a folder that you may write to."
        ) from error
    return str(path)
