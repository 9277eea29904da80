# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Roles that concern the whole cluster, in a play of the user's own, by ansible-playbook itself.

The hosts are stand-ins: their Python is a script that names the module that it was sent, and replies to node_facts with
invented facts, at each time with the next ones. Nothing is changed anywhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.role_values import ROLES

_PYTHON = """#!{executable} -I
import json, re, sys
from pathlib import Path

folder = Path(__file__).parent
source = sys.stdin.read()  # pipelining
module = re.search(r"module_fqn=['\\"](?:[a-z_]+[.])*([a-z_]+)['\\"]", source)[1]
with (folder / "modules").open("a") as log:
    log.write(module + "\\n")
if module == "node_facts":
    count = int((folder / "count").read_text())
    states = json.loads((folder / "states.json").read_text())
    (folder / "count").write_text(str(count + 1))
    print(json.dumps({{"changed": False, "ansible_facts": {{"swarmspeed": states[min(count, len(states) - 1)]}}}}))
else:
    replies = json.loads((folder / "replies.json").read_text())
    print(json.dumps({{"changed": True, "stat": {{"exists": False}}, **replies.get(module, {{}})}}))
"""


@dataclass
class StandIns:
    """Stand-ins for hosts; ``play`` applies a role to all of them. The first that is added is the manager."""

    folder: Path
    role: str

    def add(self, name: str, *states: Mapping[str, Any], replies: Mapping[str, Any] | None = None) -> None:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "states.json").write_text(json.dumps(states), encoding="utf-8")
        (place / "replies.json").write_text(json.dumps(replies or {}), encoding="utf-8")
        (place / "count").write_text("0", encoding="utf-8")
        (place / "python").write_text(_PYTHON.format(executable=sys.executable), encoding="utf-8")
        (place / "python").chmod(0o755)

    def modules(self, name: str) -> list[str]:
        """Return what a host was sent since it was last asked."""
        path = self.folder / name / "modules"
        sent = path.read_text(encoding="utf-8").split() if path.exists() else []
        path.unlink(missing_ok=True)
        return sent

    def play(self, *arguments: str, entry: str = "", of_play: Mapping[str, Any] | None = None, **given: Any) -> str:
        names = sorted(path.name for path in self.folder.iterdir() if (path / "python").exists())
        hosts = {
            name: {"ansible_connection": "local", "ansible_python_interpreter": str(self.folder / name / "python")}
            for name in names
        }
        groups = {
            "managers": {"hosts": dict([next(iter(hosts.items()))])},
            "workers": {"hosts": dict(list(hosts.items())[1:])},
        }
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"children": groups}}), encoding="utf-8")
        role = f"swarmspeed.cluster.{self.role}"
        last = {"name": "Afterwards", "debug": {"msg": "{{ inventory_hostname }} goes on"}}
        play = {"hosts": "managers,workers", "gather_facts": False, "vars": given, **(of_play or {})}
        play |= (
            {"tasks": [{"include_role": {"name": role, "tasks_from": entry}}]}
            if entry
            else {"roles": [role], "tasks": [last]}
        )
        (self.folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
        answer = subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                *("-i", self.folder / "hosts.json", self.folder / "play.yml"),
                *arguments,
            ],
            cwd=ROLES.parent,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_RETRY_FILES_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return answer.stdout + answer.stderr


def changed(output: str) -> dict[str, int]:
    """Return changed tasks by host; none where the play did not end well."""
    recap = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", output, re.M)
    return {host: int(count) for host, count in recap}


def tasks(output: str) -> list[str]:
    return re.findall(r"^TASK \[(?:swarmspeed.cluster.)?(.*?)\]", output, re.M)
