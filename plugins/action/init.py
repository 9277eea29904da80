# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Makes the folder of a new cluster from a list of servers: reads their host keys, asks them, and writes."""

from __future__ import annotations

import dataclasses
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.release import __version__ as core_version

from ..module_utils.common.reported import ReportedError, accept
from ..plugin_utils.connection.node_action import NodeAction, at_most
from ..plugin_utils.core.problems import Problem
from ..plugin_utils.core.values import plain
from ..plugin_utils.init import access, host_keys, host_keys_io, servers
from ..plugin_utils.init.controller import controller_problems, folder_problems, release_of
from ..plugin_utils.init.folder import HOSTS
from ..plugin_utils.init.folder_io import (
    OTHERS,
    collections,
    installed,
    part,
    read_folder,
    release,
    short,
    write_folder,
)
from ..plugin_utils.init.inventory import InventoryError, hosts, shared_variables
from ..plugin_utils.init.surroundings import READ
from ..plugin_utils.init.texts import VAULT, Setup
from ..plugin_utils.init.writing import Given, written
from ..plugin_utils.plan.controller import here
from ..plugin_utils.preflight.controller import Controller
from ..plugin_utils.validate.node import node_facts
from ..plugin_utils.validate.shape import data

SECONDS = 240
"""Within which a server's facts are gathered."""
SPEC: dict[str, Any] = {
    "stage": {"type": "str", "required": True, "choices": ["keys", "ask", "write"]},
    "servers": {"type": "raw", "default": ""},
    "servers_file": {"type": "str", "default": ""},
    "jump": {"type": "str", "default": ""},
    "folder": {"type": "str", "default": ""},
    "host_keys": {"type": "raw", "default": ""},
    "sudo_password": {"type": "bool", "default": False},
    "read": {"type": "dict", "default": {}},
    "answers": {"type": "dict", "default": {}},
}


class ActionModule(NodeAction):
    """``keys`` and ``write`` contact no host through Ansible; ``ask`` never fails, so that all servers are reported."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(argument_spec=SPEC)
        stage = {"keys": self._keys, "ask": self._ask, "write": self._write}[arguments["stage"]]
        try:
            result.update({"changed": False, **stage(plain(arguments), task_vars or {})})
        except OSError as error:
            raise AnsibleActionFail(
                f"Nothing was written: {error.filename or arguments['folder']} on the controller: {error.strerror}."
            ) from error
        return result

    def _keys(self, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Read the list and the host keys, and stop at what is wrong with either."""
        folder = _folder(arguments["folder"])
        there = read_folder(folder)
        versions = Controller(core_version, platform.python_version())
        _stop(controller_problems(platform.system(), versions, installed()))
        _stop(folder_problems(str(folder), there.get(HOSTS), [name for name in OTHERS if name in there]))
        hosts_there, shared = self._inventory(folder, there)
        listed = self._servers(arguments, variables, shared)
        accepted, wrong = host_keys.parse_fingerprints(arguments["host_keys"] or "")
        _stop(wrong)
        private_key = self._private_key(variables, shared)
        keys = _shown_keys(listed, private_key)
        pinned_in = [folder / servers.KNOWN_HOSTS, Path("~/.ssh/known_hosts").expanduser()]
        known = {
            label: {str(file): host_keys_io.known_keys(key.name, file) for file in pinned_in}
            for label, key in keys.items()
        }
        _stop(problem for label, key in keys.items() for problem in host_keys.changed(label, key, known[label]))
        _stop(host_keys.shared({**_of(listed, keys), **_of_others(there, hosts_there, keys)}))
        trusted = [
            label for label, found in known.items() if any(host_keys.is_known(keys[label], of) for of in found.values())
        ]
        new = host_keys.unconfirmed(keys, trusted, accepted)
        # A file of the run, which Ansible removes at its end: nothing is written into the folder before all is known.
        pins = Path(constants.DEFAULT_LOCAL_TMP) / "init_known_hosts"
        lines = [key.line for key in keys.values()]
        pins.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return {
            "folder": str(folder),
            "unconfirmed": host_keys.table(keys, new),
            "fingerprints": [keys[label].fingerprint for label in new],
            "known_hosts": lines,
            "private_key": private_key,
            "sudo_password": bool(_sudo_password(self, variables)),
            "servers": [
                {
                    **dataclasses.asdict(one),
                    "label": one.label,
                    "alias": one.alias,
                    "ssh_args": servers.ansible_ssh_args(one, str(pins), private_key),
                }
                for one in listed
            ],
        }

    def _servers(
        self, arguments: dict[str, Any], variables: Mapping[str, Any], shared: Mapping[str, str]
    ) -> list[servers.Server]:
        file = arguments["servers_file"]
        if file and not here(file).is_file():
            _stop([Problem("init_servers_file", f"{here(file)} is not a file", "correct the path")])
        text = here(file).read_text(encoding="utf-8") if file else ""
        users = (variables.get("ansible_user"), context.CLIARGS.get("remote_user"), shared.get("ansible_user"))
        lines = list(servers.lines_of(arguments["servers"] or "", text))
        user = next((str(one) for one in (*users, constants.DEFAULT_REMOTE_USER) if one), "")
        listed, problems = servers.parse_servers(lines, arguments["jump"], user)
        _stop([*problems, *([] if lines else [_NO_SERVERS])])
        return listed

    def _private_key(self, variables: Mapping[str, Any], shared: Mapping[str, str]) -> str:
        """Return the file of the key to log in with, below the home folder as ``~``, so that others can use it too."""
        name = "ansible_ssh_private_key_file"
        given = str(variables.get(name) or self._play_context.private_key_file or shared.get(name) or "")
        return short(given) if given else ""

    def _inventory(self, folder: Path, there: Mapping[str, str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """Return the hosts of the inventory that is there, and the variables that they share."""
        try:
            return hosts(there.get(HOSTS, "")), shared_variables(there.get(HOSTS, ""))
        except InventoryError as error:
            problem = Problem(str(folder / HOSTS), f"cannot be read ({error})", "correct the file, and run init again")
            _stop([problem])
            raise

    def _ask(self, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Gather one server's facts, as root; what is wrong is returned as ``problem``."""
        label = str(variables.get("inventory_hostname"))
        try:
            with at_most(SECONDS, f"no answer within {SECONDS} seconds"):
                return self._gathered(label, arguments, variables)
        except (AnsibleError, ReportedError) as error:
            return {"problem": str(error), "sudo": False}

    def _gathered(self, label: str, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        requested = {"disks": ["/"], "files": [{"path": path, "content": True} for path in READ]}
        needs = arguments["sudo_password"]
        if needs:
            answer = self._low_level_execute_command("sudo -n true", sudoable=False)
            needs = answer["rc"] != 0
        found = self._execute_module("swarmspeed.cluster.node_facts", module_args=requested, task_vars=variables)
        if found.get("failed") or found.get("unreachable"):
            output = " ".join(str(found.get(name) or "") for name in ("module_stdout", "module_stderr"))
            return {"problem": str(found.get("msg") or "").removeprefix(f"{label}: "), "output": output, "sudo": needs}
        facts = node_facts(label, accept(label, "node_facts", access.facts_of(found), data))
        # /etc/environment may hold a proxy's password.
        return {"facts": facts, "sudo": needs, "problem": "", "_ansible_no_log": True}

    def _write(self, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Decide, and write the folder."""
        read, answers = arguments["read"], arguments["answers"]
        answers = {one["label"]: answers[one["alias"]] for one in read["servers"]}
        _stop(
            access.access_problem(name, one["problem"], one.get("output", ""))
            for name, one in answers.items()
            if one["problem"]
        )
        folder, vault = Path(read["folder"]), self._loader._vault
        cli = context.CLIARGS
        given = Given(
            servers=[servers.Server(**{name: one[name] for name in _FIELDS}) for one in read["servers"]],
            facts={name: one["facts"] for name, one in answers.items()},
            keys=host_keys.parse_keys("\n".join(read["known_hosts"])),
            setup=Setup(
                collections(),
                [short(str(here(path))) for path in cli.get("vault_password_files") or ()],
                bool(cli.get("ask_vault_pass")),
            ),
            release=release(),
            schema=part("schemas/cluster.schema.json"),
            job=part("examples/digits/vars.yml"),
            script=part("examples/digits/train.py"),
            private_key=read["private_key"],
            sudo_password=_sudo_password(self, variables) if any(one["sudo"] for one in answers.values()) else "",
            environment=dict(os.environ),
            vault=bool(vault.secrets),
            cluster=folder.name,
            there=read_folder(folder),
        )
        made, problems = written(given)
        _stop(problems)
        outcome = made.outcome
        if VAULT in outcome.write:
            outcome.write[VAULT] = vault.encrypt(outcome.write[VAULT]).decode()
        if not self._task.check_mode:
            write_folder(folder, outcome.write)
        relative = os.path.relpath(folder)
        message = made.message(str(folder) if relative.startswith("..") else relative, diff=bool(self._task.diff))
        return {"changed": bool(outcome.write), "msg": message, "files": sorted(outcome.write)}


def _folder(given: str) -> Path:
    """Return the folder: the one given, else the current one if init has made it, else a new one in it."""
    current = here(".")
    return here(given) if given else current if release_of(read_folder(current).get(HOSTS, "")) else here("cluster")


def _shown_keys(listed: Sequence[servers.Server], private_key: str) -> dict[str, host_keys.HostKey]:
    """Return the host keys that jump hosts and servers show."""
    keys: dict[str, host_keys.HostKey] = {}
    # Servers behind a jump host that does not answer would only repeat that.
    for group in (servers.jumps(listed), listed):
        with tempfile.TemporaryDirectory(dir=constants.DEFAULT_LOCAL_TMP) as temporary:
            found, silent = host_keys_io.read_keys(group, Path(temporary), private_key)
        _stop(silent)
        keys.update(found)
    return keys


def _of(listed: Sequence[servers.Server], keys: Mapping[str, host_keys.HostKey]) -> dict[str, host_keys.HostKey]:
    """Return the keys of the servers; a jump host may be one of them, at another address."""
    return {one.label: keys[one.label] for one in listed}


def _of_others(
    there: Mapping[str, str], hosts_there: Mapping[str, Mapping[str, str]], keys: Mapping[str, host_keys.HostKey]
) -> dict[str, host_keys.HostKey]:
    """Return the pinned keys of the hosts in the inventory that are not in the list."""
    names = {host.get("ansible_host"): name for name, host in hosts_there.items()}
    pinned = host_keys.parse_keys(there.get(servers.KNOWN_HOSTS, ""))
    shown = {key.name for key in keys.values()}
    return {f"{names[one.name]} of {HOSTS}": one for one in pinned if one.name in names and one.name not in shown}


def _sudo_password(action: ActionModule, variables: Mapping[str, Any]) -> str:
    """Return the password of --ask-become-pass, or that of a variable."""
    given = action._play_context.become_pass or variables.get("ansible_become_password")
    return str(action._templar.template(given)) if given else ""


def _stop(problems: Iterable[Problem]) -> None:
    """End the run with what is wrong, each in one sentence."""
    lines = [problem.line() for problem in problems]
    if lines:
        raise AnsibleActionFail(
            "\n".join(["Nothing was written.", *lines]) if len(lines) > 1 else f"Nothing was written. {lines[0]}"
        )


_FIELDS = [field.name for field in dataclasses.fields(servers.Server)]
_NO_SERVERS = Problem(
    "init_servers",
    "names no server",
    "give addresses, -e init_servers=10.0.0.11,10.0.0.12, or a file with one a line, -e init_servers_file=FILE",
)
