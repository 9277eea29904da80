# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Stand-ins for hosts, for plays by ansible-playbook itself that apply one role and change nothing anywhere.

The Python of a stand-in is a script that records the name of the module that it was sent and replies to node_facts with
invented facts.
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

ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
_PYTHON = """#!{executable} -I
import json, re, sys
from pathlib import Path

folder = Path(__file__).parent
source = sys.stdin.read()  # pipelining
module = re.search(r"module_fqn=['\\"](?:[a-z_]+[.])*([a-z_]+)['\\"]", source)[1]
with (folder / "modules").open("a") as log:
    log.write(module + "\\n")
states = json.loads((folder / "states.json").read_text())
if module == "node_facts":
    print(json.dumps({{"changed": False, "ansible_facts": {{"swarmspeed": states[0]}}}}))
else:
    replies = json.loads((folder / "replies.json").read_text())
    reply = replies.get(module, {{}})
    if isinstance(reply, list):  # one after another, the last again and again
        replies[module] = reply[1:] or reply
        (folder / "replies.json").write_text(json.dumps(replies))
        reply = reply[0]
    print(json.dumps({{"changed": True, **replies["*"], **reply}}))
if module in {advancing} and states[1:]:
    (folder / "states.json").write_text(json.dumps(states[1:]))
"""


@dataclass
class StandIns:
    """``play`` applies ``role`` to all hosts that were added.

    A host has its next facts once it was sent one of the modules ``advancing``: by default each time they are gathered.
    ``grouped``: the first host by name is in the group managers, the others are in workers.
    """

    folder: Path
    role: str
    advancing: Sequence[str] = ("node_facts",)
    replies: Mapping[str, Any] = field(default_factory=lambda: {"stat": {"exists": False}})
    """Of every module but node_facts."""
    grouped: bool = True
    tags: Sequence[str] = ()

    def add(self, name: str, *states: Mapping[str, Any], replies: Mapping[str, Any] | None = None) -> None:
        """Add a host with its facts, one after another; ``replies`` are by module, or a list of them."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "states.json").write_text(json.dumps(states), encoding="utf-8")
        (place / "replies.json").write_text(json.dumps({"*": dict(self.replies), **(replies or {})}), encoding="utf-8")
        text = _PYTHON.format(executable=sys.executable, advancing=list(self.advancing))
        (place / "python").write_text(text, encoding="utf-8")
        (place / "python").chmod(0o755)

    def facts(self, name: str) -> Any:
        """Return the facts that a host has now."""
        return json.loads((self.folder / name / "states.json").read_text(encoding="utf-8"))[0]

    def modules(self, name: str) -> list[str]:
        """Return the modules that a host was sent since the last call."""
        path = self.folder / name / "modules"
        sent = path.read_text(encoding="utf-8").split() if path.exists() else []
        path.unlink(missing_ok=True)
        return sent

    def play(
        self,
        *arguments: str,
        entry: str = "",
        of_play: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        **given: Any,
    ) -> str:
        """Return what ansible-playbook printed; ``entry`` are other tasks of the role, ``of_play`` changes the play."""
        (self.folder / "hosts.json").write_text(json.dumps(self.inventory()), encoding="utf-8")
        role = f"swarmspeed.cluster.{self.role}"
        last = {"name": "Afterwards", "debug": {"msg": "{{ inventory_hostname }} goes on"}, "tags": list(self.tags)}
        does: dict[str, Any] = (
            {"tasks": [{"include_role": {"name": role, "tasks_from": entry}}]}
            if entry
            else {"roles": [{"role": role, "tags": list(self.tags)}], "tasks": [last]}
        )
        where = "managers:workers" if self.grouped else "all"
        play = {"hosts": where, "gather_facts": False, "vars": given, **does, **(of_play or {})}
        (self.folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
        answer = subprocess.run(
            [ANSIBLE, "-i", self.folder / "hosts.json", self.folder / "play.yml", *arguments],
            cwd=ROLES.parent,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_RETRY_FILES_ENABLED": "0", **(environment or {})},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        return answer.stdout + answer.stderr

    def inventory(self) -> dict[str, Any]:
        """Return the hosts in their groups, as Ansible reads them."""
        hosts = {
            path.parent.name: {"ansible_connection": "local", "ansible_python_interpreter": str(path)}
            for path in sorted(self.folder.glob("*/python"))
        }
        if not self.grouped:
            return {"all": {"hosts": hosts}}
        first, *others = hosts
        return {
            "managers": {"hosts": {first: hosts[first]}},
            "workers": {"hosts": {name: hosts[name] for name in others}},
        }


def newcomer(place: Path) -> dict[str, str]:
    """Return the environment of a user who has installed the collection and configured nothing, in this folder."""
    (place / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")  # nothing of the checkout's
    return {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(place),
        "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROLES.parent / "collections"),
        "ANSIBLE_NOCOLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }


def changed(output: str) -> dict[str, int]:
    """Return changed tasks by host; none where the play did not end well."""
    recap = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", output, re.M)
    return {host: int(count) for host, count in recap}


def tasks(output: str) -> list[str]:
    """Return the names of the tasks that ran."""
    return re.findall(r"^TASK \[(?:swarmspeed.cluster.)?(.*?)\]", output, re.M)
