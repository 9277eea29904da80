# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes the report of a cluster, on the controller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.common.reported import ReportedError, accept
from ..plugin_utils.core.files import read_text, write_private
from ..plugin_utils.core.values import plain
from ..plugin_utils.report.document import document
from ..plugin_utils.report.inputs import Inputs, parse_bench, parse_verify
from ..plugin_utils.report.page import page
from ..plugin_utils.validate.filters import one_line_action
from ..plugin_utils.validate.job import infos
from ..plugin_utils.validate.shape import data

SPEC: dict[str, Any] = {
    "cluster": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "managers": {"type": "list", "elements": "str", "default": []},
    "gathered": {"type": "dict", "required": True},
    "jobs": {"type": "dict", "required": True},
    "folder": {"type": "path", "required": True},
    "network_mode": {"type": "str", "choices": ["overlay", "host"], "default": "overlay"},
    "network_name": {"type": "str", "default": ""},
    "runtime": {"type": "str", "choices": ["container", "host"], "default": "container"},
    "accelerator": {"type": "str", "choices": ["auto", "cuda", "cpu"], "default": "auto"},
    "underlay_subnet": {"type": "str", "default": ""},
    "max_clock_offset": {"type": "float", "default": 30.0},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only; meant for run_once."""

    TRANSFERS_FILES = False
    _requires_connection = False

    @one_line_action("what node_facts and training_job_info returned")
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(argument_spec=SPEC)
        if not arguments["folder"]:
            raise AnsibleActionFail(
                "cluster_reports_dir is empty, so the report cannot be written. Set cluster_reports_dir to a folder "
                "on the controller."
            )
        folder = Path(arguments["folder"])
        path = folder / "report.html"
        try:
            made = document(self._inputs(arguments, folder, (task_vars or {}).get("hostvars") or {}))
            if not self._task.check_mode:
                write_private(path, page(made))
        except OSError as error:
            raise AnsibleActionFail(
                f"{error.filename or folder} on the controller cannot be used: {error.strerror}. "
                "Set cluster_reports_dir to a folder that you may write to."
            ) from error
        reported = made["verdict"]["text"]
        text = f"{path} would be written" if self._task.check_mode else f"The report is in {path}"
        result.update(changed=False, path=str(path), level=made["verdict"]["level"], findings=made["findings"])
        result["msg"] = f"{text}. {reported}"
        return result

    @staticmethod
    def _inputs(arguments: dict[str, Any], folder: Path, hostvars: Mapping[str, Any]) -> Inputs:
        hosts, gathered = arguments["hosts"], plain(arguments["gathered"])
        facts, silent = {}, {}
        for name in hosts:
            answer = gathered.get(name) or {}
            found = (answer.get("ansible_facts") or {}).get("swarmspeed")
            if found:
                try:
                    # Its form was checked when it was gathered; here it becomes text of a page, escaped.
                    facts[name] = accept(name, "node_facts", found, data)
                except ReportedError as error:
                    silent[name] = str(error)
            else:
                silent[name] = str(answer.get("msg") or "no reason was given").removeprefix("Task failed: ")
        variables = {name: hostvars.get(name, {}) for name in hosts}
        return Inputs(
            cluster=arguments["cluster"],
            now=time.time(),
            hosts=tuple(hosts),
            managers=tuple(arguments["managers"]),
            facts=facts,
            silent=silent,
            jobs=infos(plain(arguments["jobs"])),
            verify=parse_verify(read_text(folder / "verify.json")),
            bench=parse_bench(read_text(folder / "bench_network.json")),
            network_mode=arguments["network_mode"],
            network_name=arguments["network_name"],
            runtime=arguments["runtime"],
            accelerator=arguments["accelerator"],
            slots={name: plain(those.get("gpu_slots")) for name, those in variables.items()},
            addresses={name: str(those.get("ansible_host") or name) for name, those in variables.items()},
            own_addresses={name: str(those.get("cluster_address") or "") for name, those in variables.items()},
            underlay_subnet=arguments["underlay_subnet"],
            max_clock_offset=arguments["max_clock_offset"],
        )
