"""From addresses to a plan and a trained job with the installed tarball, in an empty folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, os.environ["MOLECULE_PROJECT_DIRECTORY"])

from tests.init_runs import PASSWORD, PORT, USER, User, address
from tests.installed import Installed
from tests.playbook_run import NODES, on

FIRST, SECOND, THIRD = (
    f"{USER}@{address('lab1')}",
    f"{USER}@{address('lab2')}:{PORT}",
    f"root@{address('lab3')} jump={USER}@{address('lab1')}",
)
WITH_SUDO = ("--become-password-file", "sudo_password", "--vault-password-file", "vault_password")


@pytest.fixture(scope="module")
def user() -> User:
    return User(Installed(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "init"))


def files(user: User) -> dict[str, str]:
    found = (path for path in user.folder.rglob("*") if path.is_file() and path.name != "ansible.log")
    return {str(path.relative_to(user.folder)): path.read_text(encoding="utf-8") for path in found}


@pytest.mark.parametrize(
    ("servers", "arguments", "confirmed", "text"),
    [
        (FIRST, (), False, "Host keys that are not confirmed: "),
        (f"nobody@{address('lab1')}", (), True, "asks for a password, or does not accept your key"),
        (SECOND, (), True, f"{address('lab2')}:{PORT}: asks for a password for sudo"),
        (SECOND, WITH_SUDO[:2], True, "must not be stored in plain text"),
        (f"{FIRST},{address('lab1')}:22", (), True, f"{address('lab1')}: is the address of two servers"),
        (f"{FIRST}:23", (), True, f"{address('lab1')}:23: does not answer ssh"),
        (f"{SECOND},{address('lab2')}", (), True, "show the same host key"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_written(
    user: User, servers: str, arguments: tuple[str, ...], confirmed: bool, text: str
) -> None:
    user.init(servers, *arguments, confirmed=confirmed).refused("Nothing was written.", text)
    assert not user.folder.exists()


def of_the_collection() -> list[str]:
    """Return what of the collection's could be on the nodes."""
    return [on(name, "find /srv/swarmspeed /var/lib/swarmspeed /etc/docker 2>/dev/null; true") for name in NODES]


def test_addresses_become_a_folder(user: User) -> None:
    before = of_the_collection()
    run = user.init(f"{FIRST},{SECOND}", *WITH_SUDO, "-vvv").done(nodes=())
    assert PASSWORD not in run.output
    assert of_the_collection() == before
    texts = files(user)
    assert PASSWORD not in "".join(texts.values())
    assert texts["group_vars/all/vault.yml"].startswith("$ANSIBLE_VAULT;")
    groups = yaml.safe_load(texts["hosts.yml"])["cluster"]["children"]
    assert list(groups["managers"]["hosts"]) == ["lab1"] and list(groups["workers"]["hosts"]) == ["lab2"]
    assert groups["workers"]["hosts"]["lab2"]["ansible_port"] == PORT
    assert yaml.safe_load(texts["group_vars/cluster.yml"])["cluster_network_mode"] == "overlay"


def test_the_plan_is_the_third_command(user: User) -> None:
    assert "Plan: " in user.play("plan").done(change=False, nodes=("lab1", "lab2")).output


def test_a_server_behind_a_jump_host_is_added_to_what_a_hand_has_edited(user: User) -> None:
    edited = user.folder / "group_vars/cluster.yml"
    edited.write_text(edited.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    before = files(user)
    third = user.home / "servers.txt"
    third.write_text(f"# behind the first\n{THIRD} name=lab3\n", encoding="utf-8")
    run = user.init(SECOND, "-e", f"init_servers_file={third}", "--become-password-file", "../sudo_password")
    assert "group_vars/cluster.yml" in run.done(nodes=()).text
    after = files(user)
    assert {name for name in after if after[name] != before.get(name)} == {"hosts.yml", "known_hosts"}
    assert set(before["hosts.yml"].splitlines()) <= set(after["hosts.yml"].splitlines())
    again = user.init(SECOND, "-e", f"init_servers_file={third}", "--become-password-file", "../sudo_password")
    assert "nothing to write" in again.done(nodes=()).text
    assert files(user) == after


def test_site_trains_over_all_of_these_ways_and_again_changes_nothing(user: User) -> None:
    assert "target 0.95 reached" in user.play("site").done(change=True).text
    assert address("lab1") in on("lab3", "journalctl -u ssh --no-pager | grep 'Accepted publickey for root'")
    user.play("site").done(change=False)


def test_a_host_key_that_changed_ends_the_next_run(user: User) -> None:
    pins = user.folder / "known_hosts"
    before = pins.read_text(encoding="utf-8")
    first, *others = before.splitlines()
    pins.write_text("\n".join([f"{first.split()[0]} {' '.join(others[0].split()[1:])}", *others, ""]), encoding="utf-8")
    user.init(FIRST).refused("Nothing was written.", "shows another host key", "ssh-keygen -R")
    pins.write_text(before, encoding="utf-8")
