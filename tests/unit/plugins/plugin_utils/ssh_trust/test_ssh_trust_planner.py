# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role ssh_trust, over three invented nodes: keys, who trusts them, and what of it is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Sealed, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.container import run_inside
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.files import SSHD_CONFIG
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.planner import SshTrustPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.servers import NOTHING
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.role_values import NODES
from tests.ssh_nodes import (
    CLUSTER,
    DIGEST_KEY,
    FIRST,
    HOST_KEY,
    KEY,
    ROLE_VARS,
    ROOT,
    SECOND,
    SSH,
    THIRD,
    complete,
    keys,
    plan,
    private,
    public,
    readable,
    running,
    shown,
    task_input,
    texts,
    virgin,
    with_keys,
)

FOLDERS = [("+", ROOT), ("+", f"{ROOT}/etc"), ("+", "")]
HOST_PAIR = [("+", "/ssh_host_ed25519_key"), ("+", "/ssh_host_ed25519_key.pub")]
TEXTS = [("+", f"/{name}") for name in ("authorized_keys", "known_hosts", "ssh_config", "sshd_config")]


# What is gathered


def test_whatever_is_compared_is_gathered_and_of_a_private_key_its_digest_alone() -> None:
    assert GATHERED.by_role_vars is not None
    entries = {entry["path"]: entry for entry in GATHERED.by_role_vars(ROLE_VARS)["files"]}
    assert {change.what for change in plan(virgin()).changes} == set(entries)
    assert [path for path, entry in entries.items() if entry.get("secret")] == [KEY, HOST_KEY]
    assert not [path for path, entry in entries.items() if entry.get("secret") and entry.get("content")]
    assert list(SshTrustPlanner().files(ROLE_VARS)) == [SSHD_CONFIG]


# Keys


def test_on_nodes_that_have_nothing_keys_are_generated_and_what_follows_is_not_known() -> None:
    made = plan(virgin())
    pair = [("+", "/id_ed25519"), ("+", "/id_ed25519.pub")]
    assert shown(made, FIRST) == [*FOLDERS, *HOST_PAIR, *pair, *TEXTS]
    assert shown(made, SECOND) == [*FOLDERS, *HOST_PAIR, pair[0], *TEXTS]
    unknown = {change.what.removeprefix(f"{SSH}/") for change in made.changes if isinstance(change.after, Unknown)}
    assert unknown == {
        *("id_ed25519", "id_ed25519.pub", "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"),
        *("authorized_keys", "known_hosts"),
    }
    # Those that hold a key which is still to be made are written once it is planned again.
    assert [name for name in texts(made, SECOND) if "." not in name][3:] == ["ssh_config", "sshd_config"]
    provide = task_input(made, FIRST)["provide"]
    assert (provide["generate_host"], provide["generate_cluster"], provide["copy_cluster"]) == (True, True, False)
    assert (provide["path"], provide["comment"]) == (KEY, "swarmspeed lab")
    assert (provide["host_path"], provide["host_comment"]) == (HOST_KEY, f"lab-{FIRST}")
    provide = task_input(made, THIRD)["provide"]
    assert (provide["generate_host"], provide["generate_cluster"], provide["copy_cluster"]) == (True, False, True)
    assert provide["copied_from"] == FIRST


def test_once_the_keys_are_there_all_is_known() -> None:
    made = plan(with_keys())
    for host in NODES:
        assert shown(made, host) == [*FOLDERS, *TEXTS] and task_input(made, host)["provide"] == {}
        assert texts(made, host)["authorized_keys"] == f'restrict,pty,from="10.20.0.0/24" {public("cluster")}'
        pinned = [f"{name} {' '.join(public(name).split()[:2])}" for name in NODES]
        assert texts(made, host)["known_hosts"].splitlines() == pinned


def test_nothing_is_planned_where_all_is_as_it_should_be() -> None:
    made = plan(complete())
    assert made.changes == () and all(task_input(made, host) == NOTHING for host in NODES)


def edited(host: str, path: str, **change: Any) -> dict[str, dict[str, Any]]:
    facts = complete()
    facts[host]["files"][path] = {**facts[host]["files"][path], **change}
    return facts


def test_a_node_that_lost_the_clusters_key_gets_it_again() -> None:
    made = plan(edited(SECOND, KEY, exists=False))
    (change,) = made.changes
    assert (change.host, change.what, change.before) == (SECOND, KEY, None)
    assert change.after == Sealed(private("the cluster's")["sha256"]) and change.why == f"the cluster's key, of {FIRST}"
    provide = task_input(made, SECOND)["provide"]
    assert provide["copy_cluster"] and not provide["generate_host"] and not provide["generate_cluster"]


def test_another_key_is_replaced_and_neither_is_shown() -> None:
    made = plan(edited(SECOND, KEY, **private("somebody's")))
    (change,) = made.changes
    assert isinstance(change.before, Sealed) and isinstance(change.after, Sealed)
    whole = outcome(made, "", ["ssh_trust"])
    assert whole["drift"][SECOND]["ssh_trust"] == [f"{KEY} has other content"]
    assert f"{KEY}: (a secret) → (another secret)" in whole["text"]
    assert private("somebody's")["sha256"] not in json.dumps(whole)


def test_a_public_key_that_is_not_that_of_the_private_one_beside_it_is_replaced() -> None:
    """ssh would offer that one, and be refused by all."""
    facts = complete()
    first = facts[FIRST]["files"][f"{KEY}.pub"]
    facts[SECOND]["files"][f"{KEY}.pub"] = {**first, "content": public("somebody's"), "sha256": "another"}
    facts[THIRD]["files"][f"{KEY}.pub"] = {
        **first,
        "content": f"{' '.join(public('cluster').split()[:2])} another comment\n",
    }
    made = plan(facts)
    assert [(change.host, change.what, change.action) for change in made.changes] == [(SECOND, f"{KEY}.pub", "~")]
    assert texts(made, SECOND) == {"id_ed25519.pub": public("cluster")} and task_input(made, SECOND)["provide"] == {}
    assert plan(made.facts).changes == ()
    # Until the first one's is made, what it will be is not known.
    facts[FIRST]["files"][KEY] = {**facts[FIRST]["files"][KEY], "exists": False}
    after = {change.what: change.after for change in plan(facts).changes if change.host == SECOND}
    assert isinstance(after[f"{KEY}.pub"], Unknown)


@pytest.mark.parametrize(
    ("host", "path", "half", "comment"),
    [(FIRST, KEY, "cluster", "swarmspeed lab"), (THIRD, HOST_KEY, THIRD, f"lab-{THIRD}")],
)
def test_a_public_key_of_another_pair_is_replaced_and_nobody_comes_to_trust_it(
    host: str, path: str, half: str, comment: str
) -> None:
    facts = complete()
    facts[host]["files"][f"{path}.pub"] = readable(public("somebody's"))
    made = plan(facts)
    changes = [(change.host, change.what, change.before, change.after) for change in made.changes]
    wanted = f"{' '.join(public(half).split()[:2])} {comment}\n"
    assert changes[0] == (host, f"{path}.pub", public("somebody's"), wanted)
    # The comment of a key stands in authorized_keys too; the invented ones have another.
    assert {what for dummy, what, *rest in changes[1:]} == ({f"{SSH}/authorized_keys"} if path == KEY else set())
    assert texts(made, host)[f"{path.rpartition('/')[2]}.pub"] == wanted and task_input(made, host)["provide"] == {}
    assert "somebody's" not in "".join("".join(texts(made, one).values()) for one in NODES)
    assert plan(made.facts).changes == ()


@pytest.mark.parametrize("half", ["a\nb", "", '* ssh-rsa "'])
def test_what_a_host_says_is_in_its_private_key_is_checked(half: str) -> None:
    facts = edited(THIRD, HOST_KEY, public_key=half)
    with pytest.raises(ReportedError, match=rf"^{THIRD}: {HOST_KEY}: public_key is "):
        plan(facts)


def test_without_the_first_ones_pair_all_get_another() -> None:
    facts = edited(FIRST, KEY, exists=False)
    made = plan(facts)
    assert ("+", "/id_ed25519") in shown(made, FIRST) and ("~", "/id_ed25519.pub") in shown(made, FIRST)
    for host in (SECOND, THIRD):
        assert shown(made, host) == [("~", "/id_ed25519"), ("~", "/authorized_keys")]
        assert task_input(made, host)["provide"]["copy_cluster"] is True
    assert task_input(made, FIRST)["provide"]["generate_cluster"] is True


def test_another_host_key_is_pinned_everywhere() -> None:
    facts = edited(THIRD, HOST_KEY, exists=False)
    made = plan(facts)
    assert shown(made, THIRD)[:2] == [("+", "/ssh_host_ed25519_key"), ("~", "/ssh_host_ed25519_key.pub")]
    for host in (FIRST, SECOND):
        assert shown(made, host) == [("~", "/known_hosts")]
        assert task_input(made, host) == NOTHING  # until it is planned again, with the key
    facts[THIRD]["files"].update({HOST_KEY: private("a new one"), f"{HOST_KEY}.pub": readable(public("new"))})
    again = plan(facts)
    for host in NODES:
        assert shown(again, host) == [("~", "/known_hosts")]
        assert f"{THIRD} {' '.join(public('new').split()[:2])}\n" in texts(again, host)["known_hosts"]


@pytest.mark.parametrize(("host", "path"), [(FIRST, KEY), (THIRD, HOST_KEY)])
def test_a_public_part_that_is_gone_is_made_of_the_private_one(host: str, path: str) -> None:
    made = plan(edited(host, f"{path}.pub", exists=False))
    (change, *rest) = [change for change in made.changes if change.host == host]
    assert (change.action, change.what, change.after) == (
        "+",
        f"{path}.pub",
        Unknown("the public part of the private key"),
    )
    assert task_input(made, host)["provide"]["generate_cluster" if path == KEY else "generate_host"] is True
    trusting = {"id_ed25519": "/authorized_keys", "ssh_host_ed25519_key": "/known_hosts"}[path.rpartition("/")[2]]
    assert [change.what.removeprefix(SSH) for change in rest] == [trusting]
    # It is never written as long as it is not known.
    assert all(task_input(made, one)["files"] == [] for one in NODES)


@pytest.mark.parametrize(
    ("host", "path", "change", "reported"),
    [
        (THIRD, KEY, {"mode": "0644"}, "is mode 0644, owner 0, group 0, but should be mode 0600, owner 0, group 0"),
        (FIRST, KEY, {"owner": 1000}, "is mode 0600, owner 1000, group 0, but should be mode 0600, owner 0, group 0"),
        (
            SECOND,
            HOST_KEY,
            {"mode": "0640"},
            "is mode 0640, owner 0, group 0, but should be mode 0600, owner 0, group 0",
        ),
        (
            SECOND,
            f"{ROOT}/etc",
            {"mode": "0755"},
            "is mode 0755, owner 0, group 0, but should be mode 0700, owner 0, group 0",
        ),
        (
            THIRD,
            f"{SSH}/sshd_config",
            {"mode": "0666"},
            "is mode 0666, owner 0, group 0, but should be mode 0644, owner 0, group 0",
        ),
        (FIRST, f"{SSH}/authorized_keys", {"sha256": "y", "content": "a\nb\n"}, "has other content"),
        (FIRST, f"{SSH}/ssh_config", {"exists": False}, "is missing"),
        (SECOND, KEY, {"exists": False}, "is missing"),
        (THIRD, f"{HOST_KEY}.pub", {"exists": False}, "is missing"),
    ],
)
def test_what_was_edited_by_hand(host: str, path: str, change: dict[str, Any], reported: str) -> None:
    made = plan(edited(host, path, **change))
    assert f"{path} {reported}" in outcome(made, "", ["ssh_trust"])["drift"][host]["ssh_trust"]
    todo = task_input(made, host)
    assert todo["provide"] or path in [entry["path"] for entry in todo["files"]]


@pytest.mark.parametrize("line", ["ssh-ed25519 AAAA x\n", "a\nb", "", '* ssh-rsa "'])
def test_what_a_host_says_is_its_key_is_checked(line: str) -> None:
    facts = complete()
    facts[THIRD]["files"][f"{HOST_KEY}.pub"] = readable(line)
    with pytest.raises(ReportedError, match=rf"^{THIRD}: {HOST_KEY}.pub is "):
        plan(facts)


# Files


def test_the_configuration_in_an_overlay() -> None:
    found = texts(plan(with_keys()), SECOND)
    lines = found["ssh_config"].splitlines()
    assert lines[1:4] == [f"Host {FIRST} lab-{FIRST}", f"  HostName lab-{FIRST}", f"  HostKeyAlias {FIRST}"]
    assert f"Host {' '.join(NODES)} {' '.join(f'lab-{name}' for name in NODES)}" in lines
    assert "  StrictHostKeyChecking yes" in lines and not [line for line in lines if "BindAddress" in line]
    assert "@" not in found["sshd_config"] and "\nPort 2222\n" in found["sshd_config"]
    assert "\nAllowTcpForwarding no\n" in found["sshd_config"]


def test_the_configuration_on_the_hosts_network() -> None:
    made = plan(with_keys(), cluster_network_mode="host", ssh_trust_port=2299, ssh_trust_port_forwarding=True)
    found = texts(made, SECOND)
    assert "  HostName 10.1.0.13" in found["ssh_config"].splitlines()
    assert found["ssh_config"].endswith("\n  BindAddress 10.1.0.12\n  LogLevel ERROR\n")
    assert "\n  Port 2299\n" in found["ssh_config"] and "\nPort 2299\n" in found["sshd_config"]
    assert found["authorized_keys"].startswith('restrict,pty,port-forwarding,from="10.1.0.0/24" ssh-ed25519 ')
    for name in ("AllowTcpForwarding", "AllowStreamLocalForwarding"):
        assert f"\n{name} yes\n" in found["sshd_config"]


def test_where_hosts_share_no_subnet_the_key_is_good_from_their_addresses() -> None:
    own = {name: f"203.0.113.{16 * rank}" for rank, name in enumerate(NODES, 1)}
    apart = {"subnet": "", "addresses": own}
    made = plan(with_keys(), {**CLUSTER, "underlay": apart}, cluster_network_mode="host")
    given = ",".join(own.values())
    for host in NODES:
        assert texts(made, host)["authorized_keys"].startswith(f'restrict,pty,from="{given}" ssh-ed25519 ')


@pytest.mark.parametrize(
    ("changed", "reloads"),
    [
        ({}, True),
        ({"state": "exited"}, False),
        ({"labels": {"swarmspeed.cluster": "lab"}}, False),
        ({"labels": {"swarmspeed.cluster": "other", "swarmspeed.spec": "1"}}, False),
    ],
)
def test_a_running_sshd_reads_what_was_written(changed: dict[str, Any], reloads: bool) -> None:
    command = run_inside(f"lab-{SECOND}", "sh", "/etc/swarmspeed/entrypoint.sh", "reload")
    made = plan(running(edited(SECOND, f"{SSH}/sshd_config", mode="0666"), **changed))
    assert (
        task_input(made, SECOND)["reload"] == (command if reloads else []) and task_input(made, FIRST)["reload"] == []
    )


# Where it does not apply


def test_without_docker_no_key_is_made() -> None:
    made = plan(virgin(), deepspeed_launch_runtime="host", cluster_network_mode="host")
    assert made.changes == () and all(task_input(made, host) == NOTHING for host in NODES)


@pytest.mark.parametrize("of_cluster", [{}, {"image": "x"}, {**CLUSTER, "hosts": [*NODES, "gone"]}])
def test_without_the_whole_cluster_nothing_is_planned(of_cluster: dict[str, Any]) -> None:
    made = plan(virgin(), of_cluster)
    assert made.changes == () and all(task_input(made, host) == NOTHING for host in NODES)


# Searched

PRIVATE = st.sampled_from(
    [None, private("the cluster's"), private("other", half="other"), private("the cluster's", "0644", half="cluster")]
)
PUBLIC = st.sampled_from([None, readable(public("cluster")), readable(public("other"))])


@st.composite
def clusters(draw: Any) -> dict[str, dict[str, Any]]:
    facts = complete() if draw(st.booleans()) else virgin()
    for host in NODES:
        for path, made in ((KEY, PRIVATE), (f"{KEY}.pub", PUBLIC), (HOST_KEY, PRIVATE), (f"{HOST_KEY}.pub", PUBLIC)):
            if draw(st.booleans()):
                value = draw(made)
                facts[host]["files"].pop(path, None)
                facts[host]["files"].update({path: value} if value else {})
    return running(facts) if draw(st.booleans()) else facts


REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "cluster_network_mode": st.sampled_from(["overlay", "host"]),
        "ssh_trust_port": st.sampled_from([2222, 2299]),
        "ssh_trust_port_forwarding": st.booleans(),
    },
)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(clusters(), REQUESTED)
def test_once_all_is_done_nothing_is_left_to_do(facts: Any, desired: Any) -> None:
    after = plan(plan(facts, **desired).facts, **desired)
    assert [(change.host, change.what) for change in after.changes] == []
    assert all(task_input(after, host) == NOTHING for host in NODES)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(clusters(), REQUESTED)
def test_the_role_has_something_to_act_on_for_each_change(facts: Any, desired: Any) -> None:
    made = plan(facts, **desired)
    provides = any(task_input(made, host)["provide"] for host in NODES)
    for change in made.changes:
        todo = task_input(made, change.host)
        if change.what.endswith(".pub") and not isinstance(change.after, Unknown):
            assert change.what in [entry["path"] for entry in todo["files"]]
        elif change.what == f"{KEY}.pub" and change.host != FIRST:
            assert provides  # written once the first one's is known
        elif change.what in (KEY, f"{KEY}.pub"):
            assert todo["provide"]["generate_cluster" if change.host == FIRST else "copy_cluster"]
        elif change.what in (HOST_KEY, f"{HOST_KEY}.pub"):
            assert todo["provide"]["generate_host"]
        elif isinstance(change.after, Unknown):
            assert provides and change.what not in [entry["path"] for entry in todo["files"]]
        else:
            assert change.what in [entry["path"] for entry in todo["files"]]


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(clusters())
def test_a_key_that_exists_is_never_generated_again(facts: Any) -> None:
    made = plan(facts)
    for host in NODES:
        files = facts[host]["files"]
        for change in made.of("ssh_trust", host):
            if isinstance(change.after, Unknown) and change.what == HOST_KEY:
                assert HOST_KEY not in files
            if isinstance(change.after, Unknown) and change.what == KEY:
                assert KEY not in facts[FIRST]["files"]


@settings(deadline=None, derandomize=True, max_examples=examples(100))
@given(clusters())
def test_no_digest_of_a_key_is_written_whole(facts: Any) -> None:
    whole = json.dumps(outcome(plan(facts), "", ["ssh_trust"]))
    for found in facts.values():
        for path in (KEY, HOST_KEY):
            assert str((found["files"].get(path) or {"sha256": "-no-"})["sha256"]) not in whole
    assert DIGEST_KEY not in whole and keys(FIRST)
