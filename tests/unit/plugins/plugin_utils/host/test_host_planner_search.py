# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role host, searched: against a comparison of its parts, and against itself afterwards."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.gathered import CA, CA_LINK, GATHERED, by_wishes
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.host import Host
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import found_file
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import (
    ManagedFileError,
    file_is_right,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.plain_hosts import ALONE, INPUTS, IPTABLES, NFTABLES, OPEN, WISHES, act, host, plan
from tests.planned_roles import differ

SYSCTLS = ("vm.swappiness", "net.core.somaxconn")
PATHS = sorted({entry["path"] for entry in (*GATHERED.files, *by_wishes(WISHES)["files"])})
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "host_packages": st.lists(st.sampled_from(["bc", "rsync", "iproute2"])),
        "host_apt_proxy": st.sampled_from(["", "http://p", "http://u:hunter2@p"]),
        "host_apt_mirror": st.sampled_from(["", "http://m"]),
        "host_pip_index": st.sampled_from(["", "https://m", "https://u:hunter2@m"]),
        "host_git_proxy": st.sampled_from(["", "http://p", "http://u:hunter2@p"]),
        "host_ca_certificate": st.sampled_from(["", "/ca.pem"]),
        "host_names": st.booleans(),
        "host_limits": st.booleans(),
        "host_sysctls": st.dictionaries(st.sampled_from(SYSCTLS), st.sampled_from([1, "1", "2  3", True])),
        "host_firewall": st.sampled_from(["auto", "keep"]),
        "host_firewall_ports": st.lists(st.sampled_from(["8000/tcp", "9-10/udp", "x"]), max_size=2),
        "host_unattended_exclusions": st.booleans(),
        "cluster_network_mode": st.sampled_from(["overlay", "host"]),
        "group_names": st.sampled_from([["managers"], ["workers"]]),
        "overlay_network_encrypted": st.booleans(),
        "docker_allow_restart": st.booleans(),
    },
)
RULE = st.fixed_dictionaries(
    {
        "protocol": st.sampled_from(["tcp", "udp"]),
        "ports": st.sampled_from(["9999", "4789,7946"]),
        "source": st.sampled_from(["10.1.0.2", "10.1.0.9"]),
        "comment": st.sampled_from(["swarmspeed lab", "mine"]),
    }
)
FIREWALL = st.builds(
    lambda active, ufw, iptables, nftables: {
        **OPEN, "active": active, "ufw": ufw, "iptables": {**IPTABLES, **iptables}, "nftables": nftables
    },
    st.lists(st.sampled_from(["ufw", "firewalld", "iptables", "nftables"]), unique=True),
    st.lists(RULE, max_size=3, unique_by=str),
    st.sampled_from([{}, {"jump": "swarmspeed lab 0", "rules": 3}]),
    st.lists(st.sampled_from([NFTABLES, {**NFTABLES, "name": "open", "refuses": False}]), unique_by=str),
)  # fmt: skip
FILE = st.fixed_dictionaries(
    {
        "exists": st.booleans(),
        "sha256": st.sampled_from([None, "x"]),
        "mode": st.sampled_from(["0644", "0600", None]),
        "owner": st.just(0),
        "group": st.just(0),
        "marked": st.booleans(),
    }
)
FACTS = st.builds(
    lambda packages, unfinished, journal, busy, files, sysctls, firewall: host(
        packages=packages,
        dpkg={"unfinished": unfinished, "journal": journal, "busy": busy},
        files=files,
        sysctls=sysctls,
        firewall=firewall,
    ),
    st.dictionaries(st.sampled_from(["bc", "rsync", "iproute2", "ca-certificates"]), st.sampled_from([None, "1"])),
    st.lists(st.sampled_from(["bc (unpacked)", "docker.io (half-configured)"]), unique=True),
    st.booleans(),
    st.booleans(),
    st.dictionaries(st.sampled_from(PATHS), FILE),
    st.dictionaries(st.sampled_from(SYSCTLS), st.sampled_from([None, "1", "2 3"])),
    FIREWALL,
)
INPUT = st.sampled_from([INPUTS, ALONE])


def compared(facts: dict[str, Any], wished: dict[str, Any], inputs: Any) -> bool:
    """Whether anything differs, by the comparison that the role's tasks once began with."""
    requested = {**WISHES, **wished}
    here = Host("gpu1", facts, requested, inputs)
    firewall = here.firewall or {"found": {}, "wanted": {}}
    dpkg = facts["dpkg"]
    left = [] if dpkg["busy"] else [*dpkg["unfinished"], *([True] if dpkg["journal"] else [])]
    found = {
        "dpkg_interrupted": left,
        "packages_missing": [name for name in requested["host_packages"] if not facts["packages"].get(name)],
        "sysctls": facts["sysctls"],
        "firewall": firewall["found"],
        "ca_trusted": found_file(facts["files"], CA_LINK)["exists"],
    }
    wanted = {
        "dpkg_interrupted": [],
        "packages_missing": [],
        "sysctls": {name: " ".join(str(value).split()) for name, value in requested["host_sysctls"].items()},
        "firewall": firewall["wanted"],
        "ca_trusted": bool(requested["host_ca_certificate"]),
    }
    right = []
    for item in here.files(here.firewall):
        try:
            right.append(file_is_right(item, found_file(facts["files"], item.path), inputs.digest_key))
        except ManagedFileError:
            right.append(True)  # somebody else's, and refused
    return differ(found, wanted) or not all(right)


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED, INPUT)
def test_a_change_is_planned_where_the_comparison_finds_a_difference(facts: Any, wished: Any, inputs: Any) -> None:
    assert bool(plan(facts, inputs, **wished).changes) is compared(facts, wished, inputs)


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED, INPUT)
def test_once_all_is_done_nothing_is_left_to_do(facts: Any, wished: Any, inputs: Any) -> None:
    made = plan(facts, inputs, **wished)
    after = plan(made.facts["gpu1"], inputs, **wished)
    assert [change.what for change in after.changes] == []
    assert after.refusals == made.refusals
    left = {name: value for name, value in act(after).items() if value and name not in ("undo", "repair_dpkg")}
    assert left == {}


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED, INPUT)
def test_the_role_has_something_to_act_on_for_each_change(facts: Any, wished: Any, inputs: Any) -> None:
    made = plan(facts, inputs, **wished)
    todo = act(made)
    paths = [entry["path"] for entry in todo["files"]]
    for change in made.changes:
        what = change.what
        if what.startswith("package "):
            assert what.removeprefix("package ") in todo["packages"]
        elif what.startswith("kernel parameter "):
            assert todo["sysctls"] is True
        elif what.startswith("ufw rule "):
            assert todo["ufw"]
        elif what.startswith("opening for the other nodes in "):
            assert todo["restart_unit"] is True
        elif what == "dpkg":
            assert todo["repair_dpkg"] is True
        elif what == f"trust in {CA}":
            assert todo["trust"] is True
        else:
            assert what.rpartition(" of ")[2] in paths
    assert len(paths) == len([one for one in made.changes if one.what.rpartition(" of ")[2].startswith("/")])
    assert CA not in paths or todo["trust"]


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(FACTS, REQUESTED)
def test_what_was_made_is_undone(facts: Any, wished: Any) -> None:
    """Whatever the role is asked for by then. Folders stay."""
    made = plan(facts, **wished)
    ours = {entry["path"] for entry in act(made)["files"] if entry["state"] == "present" and entry["content"]}
    assert ours <= {entry["path"] for entry in act(plan(made.facts["gpu1"]))["undo"]["files"]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = ["docker", "files", "packages", "dpkg", "system", "sysctls", "firewall"]


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(st.dictionaries(st.sampled_from(SECTIONS), JSON), REQUESTED)
def test_no_facts_are_an_exception(facts: dict[str, Any], wished: dict[str, Any]) -> None:
    made = plan(facts, **wished)
    json.dumps(outcome(made, "", ["host"]), default=str)
