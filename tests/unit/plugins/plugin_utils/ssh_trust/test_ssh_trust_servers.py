# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root's ssh between invented servers without Docker: planned on request, and taken back. ssh reads the result."""

from __future__ import annotations

import copy
import getpass
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action.managed_files import FILE_SPEC
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.servers import NOTHING
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.role_values import NODES
from tests.ssh_nodes import (
    CLUSTER,
    FIRST,
    KEY,
    ROLE_VARS,
    SECOND,
    SSH,
    THIRD,
    plan,
    private,
    public,
    readable,
    task_input,
)

BARE: dict[str, Any] = {"deepspeed_launch_runtime": "host", "cluster_network_mode": "host"}
REQUESTED: dict[str, Any] = {**BARE, "ssh_trust_hosts": True}
AUTHORIZED = "/root/.ssh/authorized_keys"
OF_SSHD = "/etc/ssh/ssh_host_ed25519_key.pub"
FRAGMENT = "/etc/ssh/ssh_config.d/swarmspeed-lab.conf"
BLOCK = f"the block 'swarmspeed lab' of {AUTHORIZED}"
FOLDER = {"exists": True, "sha256": None, "mode": "0755", "owner": 0, "group": 0}


def servers(**of_each: Any) -> dict[str, dict[str, Any]]:
    """Servers that have an sshd, and nothing of this collection's."""
    there = {"/root/.ssh": FOLDER, "/etc/ssh/ssh_config.d": FOLDER}
    return {host: {"files": {**there, OF_SSHD: readable(public(f"sshd {host}")), **of_each}} for host in NODES}


def with_key() -> dict[str, dict[str, Any]]:
    found = servers(**{KEY: private("the cluster's")})
    found[FIRST]["files"][f"{KEY}.pub"] = readable(public("cluster"))
    return found


def contents(made: Plan, host: str) -> dict[str, str]:
    return {entry["path"]: entry["content"] for entry in task_input(made, host)["files"] if "content" in entry}


def complete() -> dict[str, dict[str, Any]]:
    return {host: copy.deepcopy(dict(facts)) for host, facts in plan(with_key(), **REQUESTED).facts.items()}


def test_it_is_off_unless_requested() -> None:
    for facts in (servers(), with_key()):
        made = plan(facts, **BARE)
        assert made.changes == () and all(task_input(made, host) == NOTHING for host in NODES)


def test_a_pair_is_generated_once_and_every_host_is_to_trust_it() -> None:
    made = plan(servers(), **REQUESTED)
    shown = {host: {change.what: change.after for change in made.of("ssh_trust", host)} for host in NODES}
    for host in NODES:
        assert isinstance(shown[host][BLOCK], Unknown) and isinstance(shown[host][KEY], Unknown)
        assert {f"{SSH}/known_hosts", FRAGMENT} <= set(shown[host])
    provided = {host: task_input(made, host)["provide"] for host in NODES}
    assert [provided[host]["generate_cluster"] for host in NODES] == [True, False, False]
    assert [provided[host]["copy_cluster"] for host in NODES] == [False, True, True]
    assert not any(found["generate_host"] for found in provided.values())  # that of the hosts' sshd is not ours


def test_what_is_written() -> None:
    made = plan(with_key(), **REQUESTED, ssh_trust_hosts_port=2022)
    found = contents(made, SECOND)
    line = f'restrict,pty,from="10.1.0.0/24" {public("cluster").strip()}\n'
    assert found[AUTHORIZED] == line
    assert found[f"{SSH}/known_hosts"].splitlines() == [
        f"{host} {' '.join(public(f'sshd {host}').split()[:2])}" for host in NODES
    ]
    assert found[FRAGMENT].splitlines()[1:5] == [
        f"Match localuser root originalhost {FIRST}",
        "  HostName 10.1.0.11",
        f"  HostKeyAlias {FIRST}",
        "  Port 2022",
    ]
    assert "  BindAddress 10.1.0.12" in found[FRAGMENT].splitlines()
    for entry in task_input(made, SECOND)["files"]:
        assert set(entry) <= set(FILE_SPEC) and ManagedFile(**{"content": None, **entry}).block == (
            "swarmspeed lab" if entry["path"] == AUTHORIZED else None
        )
    assert task_input(made, SECOND)["reach"] == list(NODES)


def test_the_key_is_good_from_the_addresses_given_by_hand() -> None:
    apart = {"subnet": "", "addresses": {name: f"203.0.113.{16 * rank}" for rank, name in enumerate(NODES, 1)}}
    made = plan(with_key(), {**CLUSTER, "underlay": apart}, **REQUESTED)
    assert contents(made, THIRD)[AUTHORIZED].startswith('restrict,pty,from="203.0.113.16,203.0.113.32,203.0.113.48" ')
    assert "  HostName 203.0.113.16" in contents(made, THIRD)[FRAGMENT]


@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is not installed")
def test_ssh_reads_it_so(tmp_path: Path) -> None:
    text = contents(plan(with_key(), **REQUESTED), SECOND)[FRAGMENT]
    file = tmp_path / "ssh_config"
    file.write_text(text.replace("localuser root", f"localuser {getpass.getuser()}"), encoding="utf-8")

    def requested(name: str) -> dict[str, str]:
        printed = subprocess.run(["ssh", "-G", "-F", str(file), name], check=True, capture_output=True, text=True)
        return dict(line.split(" ", 1) for line in printed.stdout.splitlines())

    found = requested(THIRD)
    wanted = {"hostname": "10.1.0.13", "hostkeyalias": THIRD, "port": "22", "user": "root", "identityfile": KEY}
    wanted.update(bindaddress="10.1.0.12", stricthostkeychecking="true", userknownhostsfile=f"{SSH}/known_hosts")
    assert {name: found[name] for name in wanted} == wanted
    other = requested("elsewhere.example.com")
    assert "hostkeyalias" not in other and "bindaddress" not in other and other["identityfile"] != KEY
    file.write_text(text.replace("localuser root", "localuser another"), encoding="utf-8")
    assert requested(THIRD)["hostname"] == THIRD  # of other users nothing is changed


@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is not installed")
@pytest.mark.parametrize("root", ["/srv/swarm speed, 100% é'", '/srv/q"x\\y', "/srv/a#b"])
def test_ssh_finds_the_keys_whatever_the_folder_is_named(root: str, tmp_path: Path) -> None:
    made = plan(servers(), **REQUESTED, cluster_root=root)
    file = tmp_path / "ssh_config"
    text = contents(made, SECOND)[FRAGMENT]
    file.write_text(text.replace("localuser root", f"localuser {getpass.getuser()}"), encoding="utf-8")
    printed = subprocess.run(["ssh", "-G", "-F", str(file), THIRD], check=True, capture_output=True, text=True).stdout
    place = f"{root}/etc/ssh"
    assert f"\nuserknownhostsfile {place}/known_hosts\n" in printed
    # ssh replaces %% by % later, when it reads the key.
    assert f"\nidentityfile {KEY.replace(SSH, place)}\n" in printed.replace("%%", "%")


def test_folders_that_exist_keep_their_mode_and_others_are_made() -> None:
    assert not {"/root/.ssh", "/etc/ssh/ssh_config.d"} & {
        change.what for change in plan(with_key(), **REQUESTED).changes
    }
    facts = with_key()
    for name in ("/root/.ssh", "/etc/ssh/ssh_config.d"):
        del facts[SECOND]["files"][name]
    made = {entry["path"]: entry["mode"] for entry in task_input(plan(facts, **REQUESTED), SECOND)["folders"]}
    assert (made["/root/.ssh"], made["/etc/ssh/ssh_config.d"]) == ("0700", "0755")


def test_once_it_is_not_requested_any_more_no_host_trusts_the_key() -> None:
    made = plan(complete(), **BARE)
    for host in NODES:
        assert [(change.action, change.what) for change in made.of("ssh_trust", host)] == [
            ("-", BLOCK),
            ("-", FRAGMENT),
        ]
        assert [(entry["path"], entry["state"]) for entry in task_input(made, host)["files"]] == [
            (AUTHORIZED, "absent"),
            (FRAGMENT, "absent"),
        ]
    assert plan(made.facts, **BARE).changes == ()


@pytest.mark.parametrize(
    ("desired", "of_second", "text", "remedy"),
    [
        (
            {**REQUESTED, "deepspeed_launch_runtime": "container"},
            {},
            "ssh_trust_hosts is set, but ranks run in containers with their own keys",
            "remove it, or deepspeed_launch_runtime: host",
        ),
        (
            REQUESTED,
            {OF_SSHD: None},
            f"ssh_trust_hosts pins the keys of the hosts' sshd, but {OF_SSHD} does not exist there",
            "install openssh-server, or have it generated with ssh-keygen -A; or ssh_trust_hosts: false",
        ),
    ],
)
def test_what_is_refused(desired: dict[str, Any], of_second: dict[str, Any], text: str, remedy: str) -> None:
    facts = with_key()
    facts[SECOND]["files"].update(of_second)
    made = plan(facts, **desired)
    assert [(refusal.text, refusal.remedy) for refusal in made.refusals] == [(text, remedy)]
    assert made.changes == ()


@pytest.mark.parametrize("key", ["ssh-ed25519 AAAA\ngpu9 ssh-ed25519 BBBB", "none", 'command="x" ssh-ed25519 AAAA'])
def test_what_a_host_reports_of_its_sshd_is_checked(key: str) -> None:
    facts = with_key()
    facts[SECOND]["files"][OF_SSHD] = readable(key)
    with pytest.raises(ReportedError, match=f"^{SECOND}: {OF_SSHD}"):
        plan(facts, **REQUESTED)


def test_all_of_it_is_gathered_where_it_applies_alone() -> None:
    assert GATHERED.by_role_vars is not None
    plain = {entry["path"] for entry in GATHERED.by_role_vars(ROLE_VARS)["files"]}
    bare = {entry["path"]: entry for entry in GATHERED.by_role_vars({**ROLE_VARS, **BARE})["files"]}
    assert set(bare) - plain == {"/root/.ssh", "/etc/ssh/ssh_config.d", AUTHORIZED, OF_SSHD, FRAGMENT}
    assert bare[AUTHORIZED]["block"] == "swarmspeed lab"


FOUND = st.sampled_from([None, readable("edited by hand\n"), {**readable(""), "exists": False}])


@st.composite
def clusters(draw: Any) -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = draw(st.sampled_from([servers, with_key, complete]))()
    for host in NODES:
        for path in (AUTHORIZED, FRAGMENT, f"{SSH}/known_hosts", SSH, "/root/.ssh"):
            if draw(st.booleans()):
                facts[host]["files"].pop(path, None)
                value = draw(FOUND) if path not in (SSH, "/root/.ssh") else None
                facts[host]["files"].update({path: value} if value else {})
    return facts


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(clusters(), st.booleans(), st.sampled_from([22, 2022]))
def test_once_all_is_done_nothing_is_left_to_do(facts: Any, wanted: bool, port: int) -> None:
    desired = {**BARE, "ssh_trust_hosts": wanted, "ssh_trust_hosts_port": port}
    after = plan(plan(facts, **desired).facts, **desired)
    assert [(change.host, change.what) for change in after.changes] == []
    assert all(task_input(after, host) == {**NOTHING, "reach": list(NODES) if wanted else []} for host in NODES)
