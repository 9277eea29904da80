# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role docker: what it plans, refuses and needs consent for, over invented hosts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import sealed as sealed_config
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.engine import docker_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import (
    CA_PATH,
    GATHERED,
    PROXY_PATH,
    RECORD_PATH,
    SOURCES_PATH,
    STALE_SOURCES,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.host import DISTRIBUTION, DOCKER, SHIPPED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import (
    KEY_FILE,
    NOTHING,
    DockerPlanner,
    request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.unseen import WHY, unseen
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Sealed, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome

from tests.engine_hosts import CE, DEBIAN, ENGINE, INPUTS, KEY, WISHES, act, host, plan, shown
from tests.role_values import ROLES

# What is gathered


def test_whatever_is_compared_is_gathered() -> None:
    for codename in ("bullseye", "forky", *SHIPPED):
        for source in (DISTRIBUTION, DOCKER):
            named = plan(host(system={"codename": codename}), docker_source=source, docker_hold=True)
            assert {*act(named)["packages"], *act(named)["hold"]} <= set(GATHERED.packages)
    entries = {entry["path"]: entry for entry in GATHERED.files}
    every = docker_plan(
        host(), {**request({**WISHES, "docker_proxy": {"http": "http://p"}}, INPUTS), "source": "docker"}
    )
    assert {entry["path"] for entry in every["files"]} | {RECORD_PATH, CA_PATH} == set(entries)
    assert entries[RECORD_PATH]["content"] is True  # the record is read, to know which holds are this collection's
    assert [path for path, entry in entries.items() if entry.get("secret")] == [PROXY_PATH]


def test_the_plan_reads_the_key_of_the_role_and_the_users_certificate() -> None:
    assert list(DockerPlanner().files(WISHES)) == [KEY_FILE]
    assert list(DockerPlanner().files({**WISHES, "host_ca_certificate": "/ca.pem"})) == [KEY_FILE, "/ca.pem"]
    assert (ROLES / KEY_FILE.removeprefix("role:")).read_text(encoding="utf-8").startswith(KEY.partition("\n")[0])


# Changes


def test_a_host_without_an_engine() -> None:
    made = plan(host())
    assert shown(made) == [
        ("+", "/etc/docker/daemon.json log-driver"),
        ("+", "/etc/docker/daemon.json log-opts"),
        ("+", "package python3-docker"),
        ("+", "package python3-requests"),
        ("+", "package docker.io"),
        ("+", "package iptables"),
        ("+", "service docker.service"),
    ]
    assert made.changes[4].after == Unknown("the version that apt chooses")
    assert {change.why for change in made.changes[:2]} == {"a new engine"}
    assert made.refusals == () and not made.missing_consents
    assert act(made)["packages"] == ["python3-docker", "python3-requests", "docker.io", "iptables"]


def test_nothing_is_planned_for_an_engine_that_is_as_wished() -> None:
    for packages in (DEBIAN, CE):
        for source in ("distribution", "docker", "keep"):
            made = plan(host(packages, "job"), docker_source=source)
            assert shown(made) == [] and not made.pending("docker", "gpu1")
            assert act(made) == {**NOTHING, "swarm": True}


def test_dockers_own_engine_brings_its_source() -> None:
    stale = {path: {"exists": True, "sha256": "x", "mode": "0644", "owner": 0, "group": 0} for path in STALE_SOURCES}
    made = plan(host(files=stale), docker_source="docker")
    assert shown(made)[:3] == [("+", SOURCES_PATH), ("-", STALE_SOURCES[0]), ("-", STALE_SOURCES[1])]
    assert "URIs: https://mirror.example.com/linux/debian\n" in made.changes[0].after
    assert [what for dummy, what in shown(made) if what.startswith("package docker")] == [
        "package docker-ce",
        "package docker-ce-cli",
        "package docker-buildx-plugin",
    ]
    preview = act(made)["preview"]
    assert preview["address"] == "https://mirror.example.com/linux"
    assert preview["without"] == [*STALE_SOURCES, SOURCES_PATH]
    assert [entry["path"] for entry in act(made)["files"]] == [SOURCES_PATH, *STALE_SOURCES]


def test_another_version_is_asked_of_apt_and_held() -> None:
    made = plan(host(CE), docker_source="docker", docker_version="28.1")
    packages = [change for change in made.changes if change.what.startswith("package")]
    assert [(change.what, change.before, change.after) for change in packages] == [
        (f"package {name}", CE[name], Unknown("version 28.1, as apt has it")) for name in ENGINE[:2]
    ]
    assert [what for sign, what in shown(made) if sign == "+" and what.startswith("hold")] == [
        f"hold on {name}" for name in ENGINE
    ]
    assert ("+", RECORD_PATH) in shown(made) and ("~", "service docker.service") in shown(made)
    assert act(made)["hold"] == ENGINE and "// Held: " in act(made)["record"]
    assert act(made)["preview"]["locked"] == ENGINE[:2]


def test_a_package_that_is_at_the_version_already_is_no_change() -> None:
    mixed = {**CE, "docker-ce-cli": "5:28.1.0-1~debian.12~bookworm"}
    made = plan(host(mixed), docker_source="docker", docker_version="28.1")
    assert [what for dummy, what in shown(made) if what.startswith("package")] == ["package docker-ce"]


def test_a_hold_without_its_record_and_a_record_without_its_hold() -> None:
    requested: dict[str, Any] = {"docker_source": "docker", "docker_version": "27.5"}
    record = plan(host(CE), **requested).facts["gpu1"]["files"][RECORD_PATH]
    assert shown(plan(host(CE, held=ENGINE), **requested)) == [("+", RECORD_PATH)]
    assert shown(plan(host(CE, files={RECORD_PATH: record}, held=ENGINE[1:]), **requested)) == [
        ("+", "hold on docker-ce")
    ]
    whole = host(CE, files={RECORD_PATH: record}, held=ENGINE)
    assert shown(plan(whole, **requested)) == []
    released = plan(whole, docker_source="docker")
    assert shown(released) == [*(("-", f"hold on {name}") for name in sorted(ENGINE)), ("-", RECORD_PATH)]
    assert act(released)["release"] == sorted(ENGINE) == act(released)["recorded"]


def test_keys_of_daemon_json_are_changes_each() -> None:
    config = {"mtu": 1500, "log-opts": {"max-size": "1m"}, "debug": True, "mine": 1}
    facts = host(DEBIAN, engine={"config_exists": True, "config": config, "problem": None, "unit": None})
    wished = {"mtu": 1500, "log-opts": {"max-size": "2m"}, "debug": None, "max-concurrent-downloads": 4}
    made = plan(facts, docker_daemon_config=wished)
    assert [(change.action, change.what, change.before, change.after) for change in made.changes] == [
        ("~", "/etc/docker/daemon.json log-opts.max-size", "1m", "2m"),
        ("-", "/etc/docker/daemon.json debug", True, None),
        ("+", "/etc/docker/daemon.json max-concurrent-downloads", None, 4),
        ("~", "service docker.service", "running", "restarted"),
    ]
    assert act(made)["config"] == wished and act(made)["restart_engine"] is False


def test_a_new_engine_gets_the_mtu_of_the_underlay() -> None:
    narrow = Inputs(cluster={"underlay": {"mtu": 1450}}, files=INPUTS.files, digest_key=INPUTS.digest_key)
    assert ("+", "/etc/docker/daemon.json mtu") in shown(plan(host(), narrow))
    assert ("+", "/etc/docker/daemon.json mtu") not in shown(plan(host(DEBIAN), narrow))


def test_a_stopped_engine_a_user_and_a_library() -> None:
    stopped = {**host(DEBIAN)["docker"], "running": False}
    facts = host({**DEBIAN, "python3-docker": ""}, docker=stopped)
    made = plan(facts, docker_users=["ada", "ada", "bob"])
    assert [(change.action, change.what, change.before) for change in made.changes] == [
        ("+", "package python3-docker", None),
        ("~", "service docker.service", "stopped"),
        ("+", "user ada in group docker", None),
        ("+", "user bob in group docker", None),
    ]
    assert act(made)["users"] == ["ada", "bob"]
    # What it holds cannot be planned yet; of a new engine it is known that it holds nothing.
    assert made.changes[1].why == WHY and unseen(made.facts["gpu1"])
    fresh = plan(host())
    assert not unseen(fresh.facts["gpu1"]) and WHY not in [change.why for change in fresh.changes]


def test_a_file_with_another_mode_does_not_restart_the_engine() -> None:
    proxy = {"http": "http://p:3128"}
    files = dict(plan(host(DEBIAN), docker_proxy=proxy).facts["gpu1"]["files"])
    assert shown(plan(host(DEBIAN, "job", files=files), docker_proxy=proxy)) == []
    files[PROXY_PATH] = {**files[PROXY_PATH], "mode": "0644"}
    made = plan(host(DEBIAN, "job", files=files), docker_proxy=proxy)
    ((change),) = made.changes
    assert (change.what, change.before, change.after) == (
        PROXY_PATH,
        "mode 0644, owner 0, group 0",
        "mode 0600, owner 0, group 0",
    )
    assert not made.missing_consents and act(made)["restart_engine"] is False and act(made)["reload_units"] is True


# Consent and refusals


@pytest.mark.parametrize(
    ("wished", "reason"),
    [
        (
            {"docker_daemon_config": {"data-root": "/data"}},
            "data-root in /etc/docker/daemon.json (docker_daemon_config)",
        ),
        ({"docker_proxy": {"http": "http://p"}}, "its proxy (docker_proxy)"),
        ({"host_ca_certificate": "/ca.pem"}, "a certificate authority (host_ca_certificate)"),
        ({"docker_source": "docker", "docker_version": "28"}, "version 28 (docker_version)"),
    ],
)
def test_a_restart_under_running_containers_needs_consent(wished: dict[str, Any], reason: str) -> None:
    made = plan(host(CE, "job", "db"), **wished)
    (change,) = made.missing_consents
    assert (change.what, change.after, change.why) == ("service docker.service", "restarted", reason)
    stops = outcome(made, "", [])["stops"]["gpu1"]["docker"]
    assert stops == [
        f"the engine must be restarted for {reason}, which stops these running containers: db, job. Remedy: set "
        "docker_allow_restart: true to allow it, or stop the containers first"
    ]
    allowed = plan(host(CE, "job"), docker_allow_restart=True, **wished)
    assert allowed.missing_consents == [] and act(allowed)["restart"] == "always"
    assert [change.what for change in allowed.changes if change.consent] == ["service docker.service"]
    idle = plan(host(CE), **wished)
    assert idle.missing_consents == [] and ("~", "service docker.service") in shown(idle)


@pytest.mark.parametrize("accounts", [{}, {"nosuchuser": False}, {"nosuchuser": "yes"}, None])
def test_only_existing_accounts_are_added_and_none_is_created(accounts: Any) -> None:
    known = {"ada": True, **accounts} if accounts is not None else None
    made = plan(host(DEBIAN, accounts=known), docker_users=["nosuchuser", "ada", "nosuchuser"])
    (refusal, *others) = made.refusals
    assert not [other for other in others if "nosuchuser" in other.text]
    assert (refusal.role, refusal.subject) == ("docker", "gpu1")
    assert refusal.text == "docker_users has 'nosuchuser', and there is no such account"
    assert refusal.remedy == "create it (sudo adduser nosuchuser), or take it out of docker_users"
    assert "nosuchuser" not in act(made)["users"]
    assert not [change for change in made.changes if "nosuchuser" in change.what]


def test_an_account_that_is_a_member_already_is_not_added_again() -> None:
    made = plan(host(DEBIAN, groups={"docker": ["ada"]}), docker_users=["ada"])
    assert (shown(made), list(made.refusals), act(made)["users"]) == ([], [], [])


def test_an_engine_that_has_kept_ports_of_a_swarm_is_restarted() -> None:
    stale = {**host(CE)["docker"], "stale_swarm_ports": [7946]}
    made = plan(host(CE, docker=stale))
    (change,) = made.changes
    assert (change.what, change.after) == ("service docker.service", "restarted")
    assert change.why == "port 7946, kept from a swarm that it has left"
    assert act(made)["restart_engine"] is True and not made.missing_consents
    assert made.facts["gpu1"]["docker"]["stale_swarm_ports"] == []
    runs = {**host(CE, "db")["docker"], "stale_swarm_ports": [7946]}
    (consent,) = plan(host(CE, docker=runs)).missing_consents
    assert consent.what == "service docker.service"


def test_what_a_reload_is_enough_for_needs_no_consent() -> None:
    made = plan(host(DEBIAN, "job"), docker_daemon_config={"debug": True})
    assert shown(made) == [("+", "/etc/docker/daemon.json debug")] and not made.missing_consents


def test_what_is_refused_has_text_and_remedy() -> None:
    made = plan(host(CE), docker_source="keep", docker_version="28")
    assert [(one.subject, one.text, one.remedy) for one in made.refusals] == [
        (
            "gpu1",
            "docker_version is 28, the engine here is 5:27.5.1-1~debian.12~bookworm, and docker_source is keep",
            "change the version yourself, or leave docker_version out",
        )
    ]
    assert made.pending("docker", "gpu1")


def test_without_a_swarm_live_restore_is_the_users_own() -> None:
    wished: dict[str, Any] = {"docker_daemon_config": {"live-restore": True}}
    assert len(plan(host(DEBIAN), **wished).refusals) == 1
    assert plan(host(DEBIAN), **wished, cluster_network_mode="host").refusals == ()


def test_on_hosts_without_docker_the_role_does_nothing() -> None:
    made = plan(host(), deepspeed_launch_runtime="host", docker_proxy={"htp": "x"})
    assert (shown(made), made.refusals, act(made)) == ([], (), NOTHING)


# Secrets


def test_no_secret_is_in_the_plan_but_in_what_the_role_acts_on() -> None:
    config = {"proxies": {"http-proxy": "http://u:hunter2@p"}}
    old = sealed_config({"proxies": {"http-proxy": "http://u:hunter1@p"}}, INPUTS.digest_key)
    engine = {"config_exists": True, "config": old, "problem": None, "unit": None}
    proxy = {"http": "http://u:hunter2@p"}
    made = plan(host(CE, engine=engine), docker_daemon_config=config, docker_proxy=proxy)
    changed = {change.what: change for change in made.changes}
    key = changed["/etc/docker/daemon.json proxies.http-proxy"]
    assert (key.before, key.after) == ("http://********@p", "http://********@p (another secret)")
    assert isinstance(changed[PROXY_PATH].after, Sealed)
    result = outcome(made, "", ["docker"])
    assert "hunter2" in json.dumps(result.pop("acts"))
    assert "hunter" not in json.dumps(result)
    assert "hunter" not in repr((made.changes, made.facts))
