"""After teardown only what its owner must consent to lose is left of this collection; the user's own stays."""

from __future__ import annotations

import pytest

from tests.engines import containers, has_image, image_ids, inspect, networks, swarm_state
from tests.playbook_run import CLUSTER_ROOT, ETC, JOBS, LABEL, NODES, Run, on, playbook, variables

CONSENT = {"training_image_remove": True, "workspace_remove": True, "deepspeed_launch_remove_jobs": True}


@pytest.fixture(scope="module")
def engine_before() -> dict[str, list[str]]:
    """Container ids and start times on each node that are not ours, and daemon.json."""
    return {name: theirs(name) for name in NODES}


def theirs(name: str) -> list[str]:
    listed = [inspect(name, "container", found) for found in containers(name)]
    others = [found for found in listed if LABEL not in (found["Config"]["Labels"] or {})]
    return [
        *(f"{found['Id']} {found['State']['StartedAt']}" for found in others),
        on(name, "cat /etc/docker/daemon.json"),
    ]


@pytest.fixture(scope="module")
def first(engine_before: dict[str, list[str]]) -> Run:
    assert on("lab1", f"ls {ETC}/ssh/id_ed25519")  # there is something to take down
    return playbook("teardown")


def test_teardown_succeeds_twice(first: Run) -> None:
    first.done(change=True)
    playbook("teardown").done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_no_container_network_or_swarm_is_left(name: str, first: Run) -> None:
    assert containers(name, LABEL) == {}
    assert [found for found in containers(name) if found.startswith("swarmspeed-")] == []
    assert "swarmspeed" not in networks(name)
    assert swarm_state(name) == "inactive"


@pytest.mark.parametrize("name", NODES)
def test_no_key_and_no_configuration_is_left(name: str, first: Run) -> None:
    assert on(name, f"find {CLUSTER_ROOT}/etc -type f 2>/dev/null; true") == ""
    assert on(name, "grep -rlE 'OPENSSH PRIVATE KEY' /srv /root /tmp 2>/dev/null; true") == ""
    assert on(name, "ls -A /root | grep swarmspeed; grep swarmspeed /root/.ssh/authorized_keys; true") == ""


@pytest.mark.parametrize("name", NODES)
def test_the_hosts_own_files_are_as_before(name: str, first: Run) -> None:
    assert on(name, "grep -n swarmspeed /etc/hosts; true") == ""
    assert on(name, "ls /etc/security/limits.d /etc/sysctl.d /etc/apt/apt.conf.d | grep swarmspeed; true") == ""


def test_the_users_configuration_of_pip_stayed_through_all_of_it(first: Run) -> None:
    assert on("lab2", "cat /etc/xdg/pip/pip.conf") == "[global]\ntimeout = 17"


@pytest.mark.parametrize("name", NODES)
def test_engine_and_the_users_containers_stay(name: str, first: Run, engine_before: dict[str, list[str]]) -> None:
    assert on(name, "systemctl is-active docker") == "active"
    assert theirs(name) == engine_before[name]


def test_the_users_container_was_among_them(first: Run) -> None:
    assert inspect("lab2", "container", "bystander")["State"]["Status"] == "running"
    assert inspect("lab2", "network", "bystander")["Driver"] == "bridge"


@pytest.mark.parametrize("name", NODES)
def test_image_workspace_and_jobs_stay_without_consent(name: str, first: Run) -> None:
    assert image_ids(name, "swarmspeed/swarmspeed") != set()
    assert on(name, f"ls {CLUSTER_ROOT}/workspace/train.py") != ""
    if name == "lab1":
        assert on(name, f"ls {JOBS}/digits/launcher.log {CLUSTER_ROOT}/workspace/checkpoints/digits/epoch12") != ""


def test_they_go_with_consent(first: Run) -> None:
    playbook("teardown", *variables(**CONSENT)).done(change=True)
    for name in NODES:
        assert image_ids(name, "swarmspeed/swarmspeed") == set()
        assert on(name, f"ls -d {CLUSTER_ROOT}/workspace {JOBS} 2>/dev/null; true") == ""


@pytest.mark.parametrize("name", NODES)
def test_the_users_image_stays_with_consent_too(name: str, first: Run, engine_before: dict[str, list[str]]) -> None:
    assert theirs(name) == engine_before[name]
    if name == "lab2":
        assert has_image(name, "bystander:mine")
