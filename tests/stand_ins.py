# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Stand-ins for the hosts of a cluster, for plays by ansible-playbook itself in which nothing is changed anywhere.

The Python of a stand-in is a script that names the module that it was sent and replies to node_facts with invented
facts, which become others once it was sent the module that ends what the role does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.role_values import ROLES

PYTHON = """#!{executable} -I
import json, re, sys
from pathlib import Path

folder = Path(__file__).parent
source = sys.stdin.read()  # pipelining
module = re.search(r"module_fqn=['\\"](?:[a-z_]+[.])*([a-z_]+)['\\"]", source)[1]
with (folder / "modules").open("a") as log:
    log.write(module + "\\n")
after = folder / "after.json"
if module in {ending} and after.exists():
    after.replace(folder / "facts.json")
if module == "node_facts":
    found = json.loads((folder / "facts.json").read_text())
    print(json.dumps({{"changed": False, "ansible_facts": {{"swarmspeed": found}}}}))
else:
    print(json.dumps({{"changed": True, **{replies}}}))
"""


@dataclass
class StandIns:
    """``play`` runs a playbook that applies ``role`` on hosts in groups, of which ``managers`` are some."""

    folder: Path
    role: str
    ending: Sequence[str]
    replies: Mapping[str, Any] = field(default_factory=dict)
    managers: Sequence[str] = ("gpu1",)
    workers: Sequence[str] = ("gpu2", "gpu3")

    def add(self, name: str, found: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "facts.json").write_text(json.dumps(found), encoding="utf-8")
        (place / "after.json").write_text(json.dumps(after), encoding="utf-8")
        text = PYTHON.format(executable=sys.executable, ending=list(self.ending), replies=dict(self.replies))
        (place / "python").write_text(text, encoding="utf-8")
        (place / "python").chmod(0o755)

    def modules(self, name: str) -> list[str]:
        """Return what a host was sent since it was last asked."""
        path = self.folder / name / "modules"
        sent = path.read_text(encoding="utf-8").split() if path.exists() else []
        path.unlink(missing_ok=True)
        return sent

    def play(self, *arguments: str, entry: str = "", play: Mapping[str, Any] | None = None, **given: Any) -> str:
        """Return what ansible-playbook printed; ``entry`` are other tasks of the role, ``play`` changes the play."""
        groups = {
            group: {"hosts": {name: self._host(name) for name in names}}
            for group, names in (("managers", self.managers), ("workers", self.workers))
        }
        (self.folder / "hosts.json").write_text(json.dumps(groups), encoding="utf-8")
        role = f"swarmspeed.cluster.{self.role}"
        tasks = [{"name": "Afterwards", "debug": {"msg": "{{ inventory_hostname }} goes on"}}]
        does: dict[str, Any] = (
            {"tasks": [{"include_role": {"name": role, "tasks_from": entry}}]}
            if entry
            else {"roles": [{"role": role}], "tasks": tasks}
        )
        whole = {"hosts": "managers:workers", "gather_facts": False, "vars": given, **does, **(play or {})}
        (self.folder / "play.yml").write_text(json.dumps([whole]), encoding="utf-8")
        program = Path(sys.executable).with_name("ansible-playbook")
        answer = subprocess.run(
            [program, "-i", self.folder / "hosts.json", self.folder / "play.yml", *arguments],
            cwd=ROLES.parent,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_RETRY_FILES_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        return answer.stdout + answer.stderr

    def _host(self, name: str) -> dict[str, str]:
        return {"ansible_connection": "local", "ansible_python_interpreter": str(self.folder / name / "python")}


def changed(output: str) -> dict[str, int]:
    """Return changed tasks by host; none where the play did not end well."""
    recap = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", output, re.M)
    return {host: int(count) for host, count in recap}
