"""The most that each constraint accepts, on a whole cluster, which is made, inspected, and removed again."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.boundaries.runs import ACCOUNT, CONTROLLER, HIGHEST, arguments, prepare_highest, seen
from tests.engines import containers, image_names, info, inspect, networks
from tests.playbook_run import NODES, job, on, playbook

CLUSTER = str(HIGHEST["cluster_name"])
ROOT_FOLDER = str(HIGHEST["cluster_root"])


@pytest.fixture(scope="module", autouse=True)
def deployed() -> None:
    """Remove the cluster of the lowest set, and make the other."""
    prepare_highest()
    playbook("teardown", *arguments("lowest")).done(change=True)
    assert not [found for name in NODES for found in containers(name) if found.startswith("a-")]
    playbook("site", *arguments("highest")).done(change=True)


def test_a_second_run_changes_nothing() -> None:
    playbook("site", *arguments("highest")).done(change=False)


def test_verify_finds_everything_as_configured() -> None:
    playbook("verify", *arguments("highest")).done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_the_engine_has_taken_the_containers_options(name: str) -> None:
    found = inspect(name, "container", f"{CLUSTER}-{name}")
    host = found["HostConfig"]
    assert host["ShmSize"] == 4 * 2**30
    assert host["Sysctls"] == {key: str(value) for key, value in HIGHEST["training_container_sysctls"].items()}
    assert (host["IpcMode"], host["PidMode"]) == ("shareable", "host")
    assert {(limit["Name"], limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]} == {
        ("nofile", 64, 1024),
        ("core", -1, -1),
        ("stack", 1048576, -1),
        ("nice", 0, 0),
    }
    assert {option.upper().removeprefix("CAP_") for option in host["CapAdd"]} >= {"NET_RAW", "SYS_NICE"}
    assert any("SCMP_ACT_ALLOW" in option for option in host["SecurityOpt"])
    assert host["PortBindings"]["65535/tcp"] == [{"HostIp": "0.0.0.0", "HostPort": "2"}]
    assert set(host["GroupAdd"]) == {"video", "2147483647"}
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert found["Config"]["Image"] == HIGHEST["training_image_name"]
    for key, value in HIGHEST["training_container_environment"].items():
        assert f"{key}={value}" in found["Config"]["Env"]


@pytest.mark.parametrize("name", NODES)
def test_the_network_and_sshd_have_taken_their_names_and_numbers(name: str) -> None:
    network = str(HIGHEST["overlay_network_name"])
    assert networks(name)[network] == "overlay"
    assert inspect(name, "network", network)["IPAM"]["Config"][0]["Subnet"] == HIGHEST["overlay_network_subnet"]
    assert on(name, f"docker exec {CLUSTER}-{name} ss -Hlnt 'sport = :65535'").strip()


def test_the_swarm_has_taken_its_numbers() -> None:
    cluster = info("lab1")["Swarm"]["Cluster"]
    assert cluster["DataPathPort"] == 49151
    assert cluster["DefaultAddrPool"] == HIGHEST["swarm_default_address_pool"]


@pytest.mark.parametrize("name", NODES)
def test_the_engine_runs_with_its_configuration(name: str) -> None:
    found = info(name)
    assert found["Debug"] is True
    assert "swarmspeed.boundary=highest" in found["Labels"]
    assert found["NoProxy"] == HIGHEST["docker_proxy"]["no_proxy"]
    assert ACCOUNT in on(name, "getent group docker")


@pytest.mark.parametrize("name", NODES)
def test_the_host_has_taken_its_settings(name: str) -> None:
    for parameter, value in HIGHEST["host_sysctls"].items():
        assert on(name, f"sysctl -n {parameter}").split() == str(value).split()
    on(name, "dpkg-query --show bc libc6 g++")
    assert HIGHEST["host_pip_index"] in on(name, "cat /etc/xdg/pip/pip.conf")
    assert "nofile" in on(name, "cat /etc/security/limits.d/*swarmspeed*")


def test_the_job_has_trained_with_every_text_as_it_is() -> None:
    workspace = str(HIGHEST["workspace_path"])
    for rank, name in enumerate(NODES):
        found = seen(name, workspace, rank)
        assert found["world_size"] == 3
        assert found["words"] == HIGHEST["deepspeed_launch_args"]
        for variable in ("nccl_env_environment", "deepspeed_launch_environment", "deepspeed_launch_secrets"):
            for key, value in HIGHEST[variable].items():
                assert found["environment"].get(key) == str(value), (variable, key)
        for excluded in HIGHEST["workspace_exclude"]:
            assert (
                on(name, f"ls -A {shlex.quote(workspace)} | grep -Fxc -- {shlex.quote(str(excluded))} || true").strip()
                == "0"
            )
    assert job(str(HIGHEST["deepspeed_launch_name"]), f"{ROOT_FOLDER}/jobs")["state"] == "succeeded"


def test_the_controller_has_what_was_gathered() -> None:
    results = CONTROLLER / "lo gs" / str(HIGHEST["deepspeed_launch_name"]) / "results"
    assert json.loads((results / "seen" / "rank-0.json").read_text(encoding="utf-8"))["world_size"] == 3
    assert (CONTROLLER / "the plan.json").is_file()


def test_stop_and_teardown_leave_nothing() -> None:
    playbook("stop", *arguments("highest")).done()
    playbook("teardown", *arguments("highest")).done(change=True)
    for name in NODES:
        assert not [found for found in containers(name) if found.startswith(CLUSTER)]
        assert HIGHEST["training_image_name"] in image_names(name)  # training_image_source: present
        gone = [HIGHEST["workspace_path"], f"{HIGHEST['assets_path']}/A._-9", f"{ROOT_FOLDER}/jobs"]
        for path in gone:
            assert on(name, f"test -e {shlex.quote(str(path))} && echo there || echo gone").strip() == "gone"
