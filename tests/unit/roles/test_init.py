# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Real runs of init.yml, as a newcomer who has the collection and nothing else.

ssh and sudo are stand-ins: the server shows a host key, lets the account in or not, and is otherwise this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.init_servers import host_key
from tests.stand_ins import ANSIBLE, newcomer

KEY, OTHER = host_key("10.9.9.1"), host_key("10.9.9.1", "another")
PASSWORD = "geheim-7"
SSH = """\
#!{python} -I
import os, re, sys
place = os.path.dirname(os.path.abspath(__file__))
given = " ".join(sys.argv)
if "-O" in sys.argv:
    sys.exit(0)
(pins,) = re.findall("UserKnownHostsFile=(\\S+)", given)
if "PreferredAuthentications=none" in given:
    with open(pins, "a") as file:
        file.write(open(os.path.join(place, "shown")).read())
    sys.exit("ada@10.9.9.1: Permission denied (publickey).")
if open(pins).read() != open(os.path.join(place, "shown")).read():
    sys.exit("Host key verification failed.")
if os.path.exists(os.path.join(place, "locked")):
    sys.stderr.write("ada@10.9.9.1: Permission denied (publickey,password).\\n")
    sys.exit(255)
os.execve("/bin/sh", ["/bin/sh", "-c", sys.argv[-1]], {"PATH": place + ":/usr/bin:/bin", "HOME": "/"})
"""
SUDO = """\
#!{python} -I
import os, sys
place = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
prompt = words[words.index("-p") + 1] if "-p" in words else ""
if os.path.exists(os.path.join(place, "asks")):
    if not prompt:
        sys.exit("sudo: a password is required")
    sys.stderr.write(prompt)
    sys.stderr.flush()
    if sys.stdin.buffer.raw.read(len("{password}") + 1) != b"{password}\\n":
        sys.exit("Sorry, try again.")
command = words[words.index("/bin/sh") :] if "/bin/sh" in words else ["true"]
os.execvp(command[0], command)
"""


class Newcomer:
    """A home folder with stand-ins in its PATH, and an empty folder to work in."""

    def __init__(self, place: Path) -> None:
        self.place, self.bin, self.folder = place, place / "bin", place / "cluster"
        self.bin.mkdir()
        (self.bin / "shown").write_text(f"{KEY.line}\n", encoding="utf-8")
        python = '#!/bin/sh\nexec {python} "$@"\n'
        for name, text in (("ssh", SSH), ("sudo", SUDO), ("python3", python)):
            program = self.bin / name
            program.write_text(
                text.replace("{python}", sys.executable).replace("{password}", PASSWORD), encoding="utf-8"
            )
            program.chmod(0o755)

    def run(self, *arguments: str) -> tuple[int, str]:
        environment = newcomer(self.place)
        done = subprocess.run(
            [ANSIBLE, "swarmspeed.cluster.init", "-e", "init_servers=ada@10.9.9.1", *arguments],
            cwd=self.place,
            env={**environment, "PATH": f"{self.bin}{os.pathsep}{environment['PATH']}", "PWD": str(self.place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, " ".join(done.stdout.split())

    def refused(self, *arguments: str) -> str:
        """Return the error of a run that has to write nothing."""
        before = self.texts()
        code, output = self.run(*arguments)
        assert code == 2, output
        assert "Traceback" not in output
        assert self.texts() == before
        found = re.search(r"\[ERROR\]: Task failed: (?:Action failed: )?(Nothing was written\..*?) Origin: ", output)
        assert found is not None, output
        return found[1]

    def written(self, *arguments: str) -> str:
        code, output = self.run("-e", f"init_host_keys={KEY.fingerprint}", *arguments)
        assert code == 0, output
        return output

    def texts(self) -> dict[str, str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_text(encoding="utf-8") for path in files}


@pytest.fixture
def user(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


def test_a_key_that_is_confirmed_makes_the_folder_and_again_changes_nothing(user: Newcomer) -> None:
    message = user.refused()
    assert f"10.9.9.1 {KEY.fingerprint} ED25519" in message and f"-e init_host_keys={KEY.fingerprint}" in message
    output = user.written()
    assert "Next: cd cluster && ansible-playbook swarmspeed.cluster.plan" in output
    texts = user.texts()
    assert texts["known_hosts"] == f"{KEY.line}\n"
    variables = yaml.safe_load(texts["hosts.yml"])["cluster"]["vars"]
    assert variables["ansible_user"] == "ada" and "ansible_become_password" not in variables
    # The checkout is not where Ansible searches by itself.
    assert f"collections_path = {newcomer(user.place)['ANSIBLE_COLLECTIONS_PATH']}:" in texts["ansible.cfg"]
    assert "group_vars/all/vault.yml" not in texts
    # Pinned now: it needs no confirmation.
    code, output = user.run()
    assert code == 0 and "nothing to write" in output and "changed=1" not in output
    assert user.texts() == texts


def test_a_password_for_sudo_is_in_the_vault_alone(user: Newcomer) -> None:
    (user.bin / "asks").touch()
    keys = ("-e", f"init_host_keys={KEY.fingerprint}")
    assert "10.9.9.1: asks for a password for sudo. Remedy: " in user.refused(*keys)
    (user.place / "sudo_password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    (user.place / "vault_password").write_text("of-the-vault\n", encoding="utf-8")
    become, unlock = ("--become-password-file", "sudo_password"), ("--vault-password-file", "vault_password")
    assert "the vault: the password for sudo must not be stored in plain text" in user.refused(*keys, *become)
    assert PASSWORD not in user.written(*become, *unlock, "-vvv")
    texts = user.texts()
    assert texts["group_vars/all/vault.yml"].startswith("$ANSIBLE_VAULT;")
    assert PASSWORD not in "".join(texts.values()) and "of-the-vault" not in "".join(texts.values())
    shown = subprocess.run(
        [ANSIBLE.with_name("ansible-vault"), "view", "group_vars/all/vault.yml"],
        cwd=user.folder,  # whose ansible.cfg has the file with the vault's password
        env={**newcomer(user.place), "ANSIBLE_CONFIG": str(user.folder / "ansible.cfg")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert yaml.safe_load(shown.stdout) == {"vault_become_password": PASSWORD}
    shared = yaml.safe_load(texts["hosts.yml"])["cluster"]["vars"]
    assert shared["ansible_become_password"] == "{{ vault_become_password }}"


@pytest.mark.slow
def test_a_password_that_sudo_does_not_need_is_not_kept(user: Newcomer) -> None:
    (user.place / "sudo_password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    user.written("--become-password-file", "sudo_password")
    assert "vault_become_password" not in "".join(user.texts().values())


def test_servers_that_cannot_be_used_are_named_before_anything_is_written(user: Newcomer) -> None:
    (user.bin / "locked").touch()
    message = user.refused("-e", f"init_host_keys={KEY.fingerprint}")
    assert message.startswith(
        "Nothing was written. 10.9.9.1: asks for a password, or does not accept your key. Remedy: "
    )
    (user.place / ".ssh").mkdir()
    (user.place / ".ssh" / "known_hosts").write_text(f"{OTHER.line}\n", encoding="utf-8")
    assert f"10.9.9.1: shows another host key ({KEY.fingerprint}) than the one in" in user.refused()


def test_a_folder_that_init_did_not_write_stays_as_it_is(user: Newcomer) -> None:
    user.folder.mkdir()
    (user.folder / "hosts.yml").write_text("cluster:\n", encoding="utf-8")
    assert "cluster/hosts.yml: is an inventory that init did not write" in user.refused()
