# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the scenario init does as a new user: the installed collection, an empty folder, and the lab's addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.host_keys import parse_keys

from tests.installed import Installed
from tests.playbook_run import ROOT, Run, from_archive, lab_inventory, variables

ACCOUNTS: dict[str, Any] = yaml.safe_load((ROOT / "molecule/init/vars/accounts.yml").read_text(encoding="utf-8"))
USER, PASSWORD, PORT = (ACCOUNTS[f"init_account{suffix}"] for suffix in ("", "_password", "_port"))
_BIN = Path(sys.executable).parent


class User:
    """A new user in an empty folder, who has a key, a password for sudo, and chooses one for the vault."""

    def __init__(self, installed: Installed) -> None:
        self.installed = installed
        self.home = installed.place / "home"
        self.home.mkdir(exist_ok=True)
        self.folder = self.home / "cluster"
        (self.home / "sudo_password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        (self.home / "vault_password").write_text("of-the-vault\n", encoding="utf-8")

    def run(self, place: Path, *command: str) -> Run:
        """Run a command of Ansible's there, with the configuration that is there."""
        environment = self.installed.environment()
        if (place / "ansible.cfg").is_file():
            # All that is needed later is in the folder.
            del environment["ANSIBLE_CONFIG"], environment["ANSIBLE_COLLECTIONS_PATH"]
        log = place / "ansible.log"
        logged = log.stat().st_size if log.exists() else 0
        answer = subprocess.run(
            [str(_BIN / command[0]), *command[1:]],
            cwd=place,
            env={**environment, "PWD": str(place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        added = log.read_bytes()[logged:].decode() if log.exists() else ""
        return Run(answer.returncode, answer.stdout, added)

    def init(self, servers: str, *arguments: str, confirmed: bool = True) -> Run:
        """Run init with these servers, logging in with the lab's key."""
        key = lab_inventory()["_meta"]["hostvars"]["lab1"]["ansible_ssh_private_key_file"]
        place = self.folder if (self.folder / "ansible.cfg").is_file() else self.home
        given = [*(("-e", f"init_host_keys={fingerprints()}") if confirmed else ()), "--private-key", key, *arguments]
        return self.run(place, "ansible-playbook", "swarmspeed.cluster.init", "-e", f"init_servers={servers}", *given)

    def play(self, name: str, *arguments: str) -> Run:
        """Run another playbook in the folder that init has written."""
        return self.run(self.folder, "ansible-playbook", f"swarmspeed.cluster.{name}", *lab_values(), *arguments)


def address(name: str) -> str:
    return str(lab_inventory()["_meta"]["hostvars"][name]["ansible_host"])


def fingerprints() -> str:
    """Return the fingerprints of the lab's host keys, which were read through its engine."""
    state = ROOT / ".lab" / os.environ.get("LAB_NAME", "swarmspeed") / "known_hosts"
    return ",".join(key.fingerprint for key in parse_keys(state.read_text(encoding="utf-8")))


def lab_values() -> tuple[str, ...]:
    """Return what the lab needs and no real server does: its stand-ins for a registry and a package index."""
    lab: dict[str, Any] = yaml.safe_load((ROOT / "inventories/lab/group_vars/cluster.yml").read_text(encoding="utf-8"))
    names = (
        *("training_image_base", "training_image_deepspeed_ops", "training_container_ulimits"),
        *("preflight_min_free_gib", "training_container_shm_size", "deepspeed_launch_environment"),
    )
    cache = ROOT / ".lab" / "cache"
    paths = {
        "training_image_base_archive": str(cache / "base-debian12.tar.gz"),
        "training_image_wheelhouse": str(cache / "wheelhouse"),
    }
    return (*variables(**{name: lab[name] for name in names}, **paths), *from_archive())
