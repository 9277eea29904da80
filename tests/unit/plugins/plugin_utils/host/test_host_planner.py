# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role host: what it plans, refuses and needs consent for, over invented hosts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.firewall_rules import (
    SCRIPT_PATH,
    UNIT_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.gathered import (
    APT_PROXY,
    CA,
    CA_FOLDER,
    CA_LINK,
    EXCLUSIONS,
    GATHERED,
    GIT,
    GIT_OF_ROOT,
    GIT_PROXY,
    HOSTS,
    LIMITS,
    MIRROR,
    PIP,
    PIP_FOLDER,
    SYSCTLS,
    by_role_vars,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import NOTHING, HostPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Sealed, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome

from tests.plain_hosts import (
    ALONE,
    AUTHORITY,
    INPUTS,
    IPTABLES,
    OPEN,
    ROLE_VARS,
    done,
    host,
    plan,
    shown,
    task_input,
)

BLOCK = "the block 'swarmspeed lab' of "
KEPT = {EXCLUSIONS, HOSTS, LIMITS}
"""What is kept without any variable set."""


def text(made: Any, path: str) -> str:
    (entry,) = [entry for entry in task_input(made)["files"] if entry["path"] == path]
    return str(entry["content"])


# What is gathered


def test_whatever_is_compared_is_gathered() -> None:
    requested = {entry["path"]: entry for entry in (*GATHERED.files, *by_role_vars(ROLE_VARS)["files"])}
    every: dict[str, Any] = {
        "host_pip_index": "https://u:p@mirror.example.com",
        "host_git_proxy": "http://u:p@proxy.example.com",
        "host_apt_proxy": "http://p",
        "host_ca_certificate": "/ca.pem",
        "host_apt_mirror": "http://mirror.example.com",
        "host_sysctls": {"vm.swappiness": 1},
    }
    firewalls = {**OPEN, "active": ["iptables", "firewalld"], "iptables": IPTABLES}
    files = [ManagedFile(**entry) for entry in task_input(plan(host(firewall=firewalls), **every))["files"]]
    assert {item.path for item in files} | {CA_LINK, GIT} == set(requested)
    for item in files:
        assert requested[item.path].get("block") == item.block and requested[item.path].get("mark") == item.mark
        assert requested[item.path].get("secret", False) or not item.secret
        assert not (requested[item.path].get("secret") and requested[item.path].get("content"))


def test_packages_and_kernel_parameters_are_gathered_by_a_hosts_own_variables() -> None:
    assert by_role_vars({**ROLE_VARS, "host_packages": ["bc"], "host_sysctls": {"a.b": 1}}) == {
        "files": by_role_vars(ROLE_VARS)["files"],
        "packages": ["bc"],
        "sysctls": ["a.b"],
    }
    # Of the command line they are text; what is no list at all is reported where it is planned.
    assert by_role_vars({**ROLE_VARS, "host_packages": "bc,rsync", "host_sysctls": "a.b=1"})["packages"] == [
        "bc",
        "rsync",
    ]
    assert set(by_role_vars({**ROLE_VARS, "host_packages": {}, "host_sysctls": [1]})) == {"files"}


def test_the_plan_reads_the_users_certificate() -> None:
    assert list(HostPlanner().files(ROLE_VARS)) == []
    assert list(HostPlanner().files({**ROLE_VARS, "host_ca_certificate": "/ca.pem"})) == ["/ca.pem"]


# Files


def test_a_new_host() -> None:
    made = plan(host(packages={}))
    assert shown(made) == [
        ("+", EXCLUSIONS),
        ("+", BLOCK + HOSTS),
        ("+", LIMITS),
        ("+", "package ca-certificates"),
        ("+", "package iproute2"),
    ]
    assert [change.why for change in made.changes] == [
        "host_unattended_exclusions",
        "host_names",
        "host_limits",
        "host_packages",
        "host_packages",
    ]
    assert made.changes[3].after == Unknown("the version that apt chooses")
    assert text(made, HOSTS) == "10.1.0.1 gpu1\n10.1.0.2 gpu2\n10.1.0.3 gpu3\n"
    assert task_input(made)["packages"] == ["ca-certificates", "iproute2"]
    assert made.refusals == () and not made.missing_consents


def test_nothing_is_planned_for_a_host_that_is_as_desired() -> None:
    made = plan(done())
    assert shown(made) == [] and not made.pending("host", "gpu1")
    undo = {**NOTHING["undo"], "files": task_input(made)["undo"]["files"]}
    assert task_input(made) == {**NOTHING, "undo": undo}
    assert {entry["path"] for entry in undo["files"]} == KEPT
    assert {(entry["state"], entry["content"]) for entry in undo["files"]} == {("absent", "")}


def test_what_is_not_desired_any_more_goes() -> None:
    off: dict[str, Any] = {"host_names": False, "host_limits": False, "host_unattended_exclusions": False}
    assert shown(plan(done(), **off)) == [("-", EXCLUSIONS), ("-", BLOCK + HOSTS), ("-", LIMITS)]
    assert shown(plan(host(), **off)) == []


def test_the_nodes_are_named_in_rank_order() -> None:
    other = Inputs(cluster={**INPUTS.cluster, "hosts": ["gpu2", "gpu1"]})
    assert text(plan(host(), other), HOSTS) == "10.1.0.2 gpu2\n10.1.0.1 gpu1\n"


def test_alone_names_and_firewall_stay_as_they_are() -> None:
    closed = {**OPEN, "active": ["iptables"], "iptables": IPTABLES}
    assert shown(plan(host(firewall=closed), ALONE)) == [("+", EXCLUSIONS), ("+", LIMITS)]
    whole = done(host(firewall=closed))
    assert shown(plan(whole, ALONE)) == [] and task_input(plan(whole, ALONE))["close_unit"] is False
    assert {entry["path"] for entry in task_input(plan(whole, ALONE))["undo"]["files"]} == KEPT | {
        SCRIPT_PATH,
        UNIT_PATH,
    }


def test_a_file_that_was_edited_or_has_another_mode() -> None:
    facts = done()
    facts["files"] = {
        **facts["files"],
        LIMITS: {**facts["files"][LIMITS], "mode": "0666"},
        EXCLUSIONS: {**facts["files"][EXCLUSIONS], "sha256": "x", "content": "mine\n"},
    }
    made = plan(facts)
    limits, exclusions = ({change.what: change for change in made.changes}[path] for path in (LIMITS, EXCLUSIONS))
    assert (limits.before, limits.after) == ("mode 0666, owner 0, group 0", "mode 0644, owner 0, group 0")
    assert exclusions.before == "mine\n" and '"^docker\\.io$";\n' in exclusions.after
    assert {entry["path"] for entry in task_input(made)["files"]} == {LIMITS, EXCLUSIONS}
    drift = outcome(made, "", [])["drift"]["gpu1"]["host"]
    assert f"{LIMITS} is mode 0666, owner 0, group 0, but should be mode 0644, owner 0, group 0" in drift
    assert f"{EXCLUSIONS} has other content" in drift


@pytest.mark.parametrize(
    ("desired", "path", "expected"),
    [
        (
            {"host_apt_proxy": "http://p:3128"},
            APT_PROXY,
            "# Kept by swarmspeed.cluster (host_apt_proxy)\n"
            'Acquire::http::Proxy "http://p:3128";\nAcquire::https::Proxy "http://p:3128";\n',
        ),
        (
            {"host_apt_mirror": "http://m/debian"},
            MIRROR,
            "# Kept by swarmspeed.cluster (host_apt_mirror)\nTypes: deb\nURIs: http://m/debian\n"
            "Suites: bookworm bookworm-updates\nComponents: main\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
        ),
        (
            {"host_pip_index": "https://m/simple", "host_pip_proxy": "http://p", "host_ca_certificate": "/ca.pem"},
            PIP,
            "# Kept by swarmspeed.cluster (host_pip_index, host_pip_proxy, host_ca_certificate)\n[global]\n"
            "index-url = https://m/simple\nproxy = http://p\ncert = /etc/ssl/certs/ca-certificates.crt\n",
        ),
        (
            {"host_git_proxy": 'http://a\\b"c'},
            GIT_PROXY,
            '# Kept by swarmspeed.cluster (host_git_proxy)\n[http]\n\tproxy = "http://a\\\\b\\"c"\n',
        ),
        ({"host_git_proxy": "http://p"}, GIT, f"[include]\n\tpath = {GIT_PROXY}\n"),
        ({"host_ca_certificate": "/ca.pem"}, CA, AUTHORITY),
        (
            {"host_sysctls": {"vm.swappiness": 1, "Net.x": "4 5", "kernel.y": True}},
            SYSCTLS,
            "# Kept by swarmspeed.cluster (host_sysctls)\nkernel.y = True\nNet.x = 4 5\nvm.swappiness = 1\n",
        ),
    ],
)
def test_texts_of_files(desired: dict[str, Any], path: str, expected: str) -> None:
    made = plan(host(), **desired)
    assert text(made, path) == expected
    assert all(
        change.why in desired or change.what.endswith(tuple(KEPT)) or " or " in change.why for change in made.changes
    )
    gone = plan(done(**desired))
    assert ("-", f"{BLOCK if path == GIT else ''}{path}") in shown(gone)


def test_a_mirror_of_ubuntu_has_its_components() -> None:
    ubuntu = host(system={"distribution": "ubuntu", "codename": "noble"})
    lines = text(plan(ubuntu, host_apt_mirror="http://m"), MIRROR).splitlines()
    assert lines[3:5] == ["Suites: noble noble-updates", "Components: main restricted universe"]
    assert lines[5].endswith("/ubuntu-archive-keyring.gpg")


def test_folders_come_before_what_goes_into_them() -> None:
    made = plan(host(), host_ca_certificate="/ca.pem")
    paths = [entry["path"] for entry in task_input(made)["files"]]
    assert paths.index(PIP_FOLDER) < paths.index(PIP) and paths.index(CA_FOLDER) < paths.index(CA)
    whole = plan(done(host_ca_certificate="/ca.pem"), host_ca_certificate="/ca.pem")
    undone = {entry["path"] for entry in task_input(whole)["undo"]["files"]}
    assert {PIP, CA} <= undone and not {PIP_FOLDER, CA_FOLDER} & undone


# Secrets


@pytest.mark.parametrize("user", ["", "u:hunter2@"])
def test_addresses_with_a_password_are_for_root_alone(user: str) -> None:
    desired: dict[str, Any] = {
        "host_apt_proxy": f"http://{user}p",
        "host_pip_index": f"https://{user}m/simple",
        "host_git_proxy": f"http://{user}p",
    }
    made = plan(host(), **desired)
    files = {entry["path"]: entry for entry in task_input(made)["files"]}
    secret = bool(user)
    assert files[APT_PROXY]["secret"] is True and files[APT_PROXY]["mode"] == "0600"
    for path in (PIP, GIT_PROXY):
        assert (files[path]["secret"], files[path]["mode"]) == (secret, "0600" if secret else "0644")
    # git fails for everybody who may not read an included file.
    assert (GIT_OF_ROOT in files, GIT in files) == (secret, not secret)
    result = outcome(made, "", ["host"])
    assert isinstance({change.what: change for change in made.changes}[APT_PROXY].after, Sealed)
    assert ("hunter2" in json.dumps(result.pop("task_inputs"))) is secret
    assert "hunter2" not in json.dumps(result) and "hunter2" not in repr((made.changes, made.facts))


def test_another_password_is_a_change_and_neither_is_shown() -> None:
    facts = done(host_pip_index="https://u:hunter1@m")
    (change,) = plan(facts, host_pip_index="https://u:hunter2@m").changes
    assert change.what == PIP and isinstance(change.before, Sealed) and isinstance(change.after, Sealed)
    assert change.before != change.after
    assert shown(plan(facts, host_pip_index="https://u:hunter1@m")) == []


# A file of somebody else's


def test_somebody_elses_pip_conf_is_refused_where_ours_is_wanted() -> None:
    theirs = {PIP: {"exists": True, "sha256": "x", "mode": "0644", "owner": 0, "group": 0, "marked": False}}
    made = plan(host(files=theirs), host_pip_index="https://m")
    (refusal,) = made.refusals
    assert refusal.sentence.startswith(
        f"{PIP} exists, but this collection did not create it: its first line does not contain 'Kept by "
        "swarmspeed.cluster'. Remedy: add the settings"
    )
    assert PIP not in [entry["path"] for entry in task_input(made)["files"]] and PIP not in dict(shown(made)).values()
    left = plan(host(files=theirs))
    assert left.refusals == () and ("-", PIP) not in shown(left)
    assert PIP not in [entry["path"] for entry in task_input(left)["undo"]["files"]]


# The certificate authority


def test_an_authority_is_trusted_once_it_was_put_among_the_others() -> None:
    made = plan(host(), host_ca_certificate="/ca.pem")
    assert ("+", CA) in shown(made) and ("+", f"trust in {CA}") in shown(made) and task_input(made)["trust"] is True
    facts = done(host_ca_certificate="/ca.pem")
    assert shown(plan(facts, host_ca_certificate="/ca.pem")) == []
    facts["files"] = {**facts["files"], CA_LINK: {"exists": False}}
    broken = plan(facts, host_ca_certificate="/ca.pem")
    assert shown(broken) == [("+", f"trust in {CA}")] and task_input(broken)["trust"] is True
    assert outcome(broken, "", [])["drift"]["gpu1"]["host"] == [f"trust in {CA} is missing"]


def test_another_authority_is_put_among_the_others_again() -> None:
    facts = done(host_ca_certificate="/ca.pem")
    other = Inputs(INPUTS.cluster, {"/ca.pem": AUTHORITY.replace("abc", "def")}, INPUTS.digest_key)
    made = plan(facts, other, host_ca_certificate="/ca.pem")
    assert shown(made) == [("~", CA)] and task_input(made)["trust"] is True


def test_an_authority_that_is_not_desired_any_more_is_not_trusted() -> None:
    made = plan(done(host_ca_certificate="/ca.pem"))
    assert shown(made) == [("-", PIP), ("-", CA), ("-", f"trust in {CA}")]
    assert task_input(made)["trust"] is True and task_input(made)["undo"]["trust"] is True
    left = plan(host(files={CA_LINK: {"exists": True}}))
    assert task_input(left)["trust"] is True and task_input(left)["undo"]["trust"] is True
    assert task_input(plan(host()))["undo"]["trust"] is False


# Kernel parameters


def test_kernel_parameters_are_changes_each() -> None:
    desired: dict[str, Any] = {
        "host_sysctls": {"net.core.somaxconn": 8192, "vm.swappiness": "10", "net.ipv4.tcp_rmem": "1  2\t3"}
    }
    facts = host(sysctls={"net.core.somaxconn": "128", "vm.swappiness": None, "net.ipv4.tcp_rmem": "1 2 3"})
    made = plan(facts, **desired)
    assert [
        (change.action, change.what, change.before, change.after)
        for change in made.changes
        if change.what.startswith("kernel")
    ] == [
        ("~", "kernel parameter net.core.somaxconn", "128", "8192"),
        ("+", "kernel parameter vm.swappiness", None, "10"),
    ]
    assert task_input(made)["sysctls"] is True
    kept = plan(done(facts, **desired), **desired)
    assert shown(kept) == [] and task_input(kept)["sysctls"] is False


def test_a_missing_file_of_parameters_alone_loads_nothing() -> None:
    desired: dict[str, Any] = {"host_sysctls": {"vm.swappiness": 1}}
    made = plan(host(sysctls={"vm.swappiness": "1"}), **desired)
    assert ("+", SYSCTLS) in shown(made) and task_input(made)["sysctls"] is False


def test_each_host_is_planned_by_its_own_variables() -> None:
    hosts = {"gpu1": done(), "gpu2": done()}
    role_vars = {"gpu1": ROLE_VARS, "gpu2": {**ROLE_VARS, "host_limits": False}}
    made = fold([HostPlanner()], hosts, role_vars, INPUTS)
    assert [(change.host, change.what) for change in made.changes] == [("gpu2", LIMITS)]
