# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role docker, searched: against the comparison that it wraps, and against itself afterwards."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.engine import docker_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import (
    RECORD_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import (
    request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import found_file
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import (
    ManagedFile,
    file_is_right,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.engine_hosts import CE, DEBIAN, ENGINE, INPUTS, PYTHON, WISHES, act, host, plan


def compared(facts: dict[str, Any], requested: dict[str, Any]) -> bool:
    """Whether the facts differ from what ``docker_plan`` returns, files by the comparison of ``managed_files``."""
    made = docker_plan(facts, requested)
    files = [ManagedFile(**entry) for entry in made["files"]]
    return bool(
        made["differing_keys"]
        or made["users"]
        or made["version"]
        or made["release"]
        or not facts["docker"]["running"]
        or [name for name in made["packages"] if not facts["packages"][name]]
        or [name for name in made["hold"] if name not in facts["held"] or name not in made["recorded"]]
    ) or not all(file_is_right(item, found_file(facts["files"], item.path), requested["digest_key"]) for item in files)


CONFIG = st.dictionaries(
    st.sampled_from(["mtu", "debug", "log-opts", "data-root", "log-driver"]),
    st.none() | st.booleans() | st.integers(0, 2) | st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 2)),
    max_size=3,
)
FACTS = st.builds(
    lambda packages, config, held, members, running, containers: (
        host(
            packages,
            *containers,
            held=held,
            groups={"docker": members},
            engine={"config_exists": bool(config), "config": config, "problem": None, "unit": None},
        )
        | ({} if running else {"docker": {**host(packages)["docker"], "running": False}})
    ),
    st.sampled_from([{}, PYTHON, DEBIAN, CE, {**DEBIAN, "iptables": "1"}]),
    CONFIG,
    st.lists(st.sampled_from([*ENGINE, "docker.io"]), unique=True),
    st.lists(st.sampled_from(["ada", "bob"]), unique=True),
    st.booleans(),
    st.lists(st.sampled_from(["job", "db"]), unique=True),
)
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "docker_source": st.sampled_from(["distribution", "docker", "keep"]),
        "docker_version": st.sampled_from(["", "20.10", "27.5", "28"]),
        "docker_hold": st.booleans(),
        "docker_daemon_config": CONFIG,
        "docker_proxy": st.sampled_from([{}, {"http": "http://u:hunter2@p"}, {"no_proxy": "x"}]),
        "docker_allow_restart": st.booleans(),
        "docker_users": st.lists(st.sampled_from(["ada", "bob", "eve"])),
        "cluster_network_mode": st.sampled_from(["overlay", "host"]),
        "host_ca_certificate": st.sampled_from(["", "/ca.pem"]),
    },
)


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED)
def test_a_change_is_planned_where_the_comparison_finds_a_difference(facts: dict[str, Any], wished: Any) -> None:
    made = plan(facts, **wished)
    assert bool(made.changes) is compared(facts, request({**WISHES, **wished}, INPUTS))


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED)
def test_once_all_is_done_nothing_is_left_to_do(facts: dict[str, Any], wished: Any) -> None:
    after = plan(plan(facts, **wished).facts["gpu1"], **wished)
    assert [change.what for change in after.changes] == []
    assert {key: act(after)[key] for key in ("packages", "files", "config", "users", "hold", "release")} == {
        key: [] if key != "config" else {} for key in ("packages", "files", "config", "users", "hold", "release")
    }


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(FACTS, REQUESTED)
def test_the_role_has_something_to_act_on_for_each_change(facts: dict[str, Any], wished: Any) -> None:
    made, todo = plan(facts, **wished), act(plan(facts, **wished))
    for change in made.changes:
        what = change.what
        if what.startswith("package "):
            assert what.removeprefix("package ") in todo["packages"]
        elif what.startswith("/etc/docker/daemon.json "):
            assert what.removeprefix("/etc/docker/daemon.json ").partition(".")[0] in todo["config"]
        elif what.startswith("user "):
            assert what.split()[1] in todo["users"]
        elif what.startswith("hold on "):
            assert what.removeprefix("hold on ") in todo["hold" if change.action == "+" else "release"]
        elif what == RECORD_PATH:
            assert todo["record"] if change.action != "-" else todo["release"]
        elif what == "service docker.service":
            assert change.before != "running" or todo["config"] or todo["restart_engine"] or todo["version"]
        else:
            assert what in [entry["path"] for entry in todo["files"]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=examples(100))
@given(
    st.dictionaries(st.sampled_from(["docker", "engine", "files", "packages", "held", "system", "groups"]), JSON),
    st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)
def test_no_facts_and_no_configuration_are_an_exception(facts: dict[str, Any], config: dict[str, Any]) -> None:
    made = plan(facts, docker_daemon_config=config)
    json.dumps(outcome(made, "", ["docker"]), default=str)
