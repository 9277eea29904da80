# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Options of the container that most leave alone: which settings they make, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.options import options, problems
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.planner import (
    TrainingContainerPlanner,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.training_nodes import HOST, NAME, ROLE, ROLE_VARS, facts, plan, running, shown, task_input

SECCOMP, PID = "training_container_seccomp_profile", "training_container_pid_mode"
PORTS, DEVICES, GROUPS = (f"training_container_{name}" for name in ("published_ports", "devices", "groups"))
OPTIONS, VOLUMES = "training_container_security_opts", "training_container_volumes"
SHM_SIZE, SYSCTLS = "training_container_shm_size", "training_container_sysctls"
IPC_MODE = "training_container_ipc_mode"
FILE = "text:profiles/mpi.json"
PROFILE = json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}, indent=2)
FILES = {FILE: PROFILE}
CHOSEN: dict[str, Any] = {SECCOMP: "profiles/mpi.json"}
HERE: dict[str, Any] = {
    "files": {"/dev/fuse": {"exists": True}, "/dev/kfd": {"exists": False}},
    "system": {"memory_bytes": 64 << 30},
}


def only(name: str, *values: Any) -> dict[str, Any]:
    """This variable alone, which is a list."""
    return {name: list(values)}


def host(container: dict[str, Any] | None = None) -> dict[str, Any]:
    """A host with what was gathered of its devices."""
    found = facts(container)
    return {**found, "files": {**found["files"], **HERE["files"]}}


def wrong(files: dict[str, str] | None = None, **desired: Any) -> list[tuple[str, str]]:
    return list(problems({**ROLE_VARS, **desired}, HERE, files or {}))


def test_by_default_there_is_none_of_them() -> None:
    """A container that was made before there were these options stays as it is."""
    assert options(ROLE_VARS, "") == {}
    assert not {"pid_mode", "published_ports", "groups", "seccomp"} & set(task_input(plan(facts()))["settings"])


@pytest.mark.parametrize(
    ("desired", "name", "value"),
    [
        ({PID: "host"}, "pid_mode", "host"),
        ({PORTS: ["8888:8888", "[::1]:6006:6006/tcp"]}, "published_ports", ["8888:8888", "[::1]:6006:6006/tcp"]),
        ({GROUPS: [44, "render"]}, "groups", ["44", "render"]),
        ({SYSCTLS: {"net.core.somaxconn": 1024}}, "sysctls", {"net.core.somaxconn": "1024"}),
        ({DEVICES: ["/dev/fuse"]}, "devices", ["/dev/fuse:/dev/fuse:rwm"]),
        (
            {DEVICES: ["/dev/fuse:/dev/f:r", "/dev/kmsg:rw"]},
            "devices",
            ["/dev/fuse:/dev/f:r", "/dev/kmsg:/dev/kmsg:rw"],
        ),
    ],
)
def test_what_is_set_is_a_setting(desired: dict[str, Any], name: str, value: Any) -> None:
    made = plan(facts(), **desired)
    assert task_input(made)["settings"][name] == value
    again = plan(facts(running(**desired)), **desired)
    assert shown(again) == [] and not again.pending(ROLE, HOST)
    back = plan(facts(running(**desired)))
    assert [what for dummy, what, dummy, dummy in shown(back)] == [f"{name} of container {NAME}", f"container {NAME}"]


def test_devices_come_after_those_of_rdma() -> None:
    made = plan(facts(fabric={"infiniband": [{"name": "mlx5_0"}]}), **only(DEVICES, "/dev/fuse"))
    assert task_input(made)["settings"]["devices"] == ["/dev/infiniband:/dev/infiniband", "/dev/fuse:/dev/fuse:rwm"]


def test_a_profile_is_passed_itself_and_listed_by_its_digest() -> None:
    assert list(TrainingContainerPlanner().files({**ROLE_VARS, **CHOSEN})) == [FILE]
    assert list(TrainingContainerPlanner().files(ROLE_VARS)) == []
    made = plan(facts(), files=FILES, **CHOSEN)
    found = task_input(made)
    profile = 'seccomp={"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}'
    assert found["make"]["security_opts"] == ["no-new-privileges", profile]
    assert re.fullmatch("[0-9a-f]{64}", found["settings"]["seccomp"])
    assert found["settings"]["security_opts"] == ["no-new-privileges"]
    assert "SCMP" not in json.dumps(found["make"]["labels"]) + outcome(made, "", [ROLE])["text"]


def test_another_profile_makes_the_container_again_and_another_layout_of_it_does_not() -> None:
    there = running(files=FILES, **CHOSEN)
    assert shown(plan(facts(there), files={FILE: json.dumps(json.loads(PROFILE))}, **CHOSEN)) == []
    other = {FILE: PROFILE.replace("ERRNO", "ALLOW")}
    changed = shown(plan(facts(there), files=other, **CHOSEN))
    assert [what for dummy, what, dummy, dummy in changed] == [f"seccomp of container {NAME}", f"container {NAME}"]


NO_PROFILE = "training_container_seccomp_profile: profiles/mpi.json: it "
NAME_ONE = "name a profile such as moby's profiles/seccomp/default.json"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("{,}", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", 'has no "defaultAction", so it is not a seccomp profile'),
        ('{"defaultAction": 1}', 'has no "defaultAction", so it is not a seccomp profile'),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_no_profile(text: str, why: str) -> None:
    assert wrong({FILE: text}, **CHOSEN) == [(NO_PROFILE + why, NAME_ONE)]


@pytest.mark.parametrize(
    ("desired", "text", "remedy"),
    [
        (
            {DEVICES: ["/dev/kfd"]},
            f"{DEVICES}: there is no /dev/kfd on this host",
            "load the kernel module that makes it, or name other devices for this host",
        ),
        (
            {**CHOSEN, OPTIONS: ["seccomp=unconfined"]},
            f"{SECCOMP}: it is set, and seccomp=… is also in {OPTIONS}",
            "leave one of them out",
        ),
        (
            {SYSCTLS: {"net.core.somaxconn": 1024, "kernel.shmmax": 1}, "cluster_network_mode": "host"},
            f"{SYSCTLS}: with cluster_network_mode: host net.core.somaxconn would be the host's own, which Docker "
            "refuses",
            "set it in host_sysctls",
        ),
        (
            {SYSCTLS: {"net.core.somaxconn": 1, "kernel.sem": "1 1 1 1", "fs.mqueue.msg_max": 9}, IPC_MODE: "host"},
            f"{SYSCTLS}: with training_container_ipc_mode: host kernel.sem, fs.mqueue.msg_max would be the host's own, "
            "which Docker refuses",
            "set it in host_sysctls",
        ),
        (
            {SHM_SIZE: "65g"},
            f"{SHM_SIZE}: 65g is more than the memory of this host (64.0 GiB)",
            "set it to auto, which is half of the memory, or to at most 64g",
        ),
    ],
)
def test_what_is_refused(desired: dict[str, Any], text: str, remedy: str) -> None:
    assert wrong(FILES, **desired) == [(text, remedy)]


def test_shared_memory_may_be_all_that_a_host_has() -> None:
    assert wrong({}, **{SHM_SIZE: "64g"}) == wrong({}, **{SHM_SIZE: f"{64 << 30}b"}) == []


def test_a_mount_whose_source_is_missing_is_refused() -> None:
    below = f"{ROLE_VARS['cluster_root']}/more"
    states = {"/data": "absent", "/here": "in_use", below: "absent", "/run/docker.sock": "absent"}
    folders = {path: {"real": path, "state": state} for path, state in states.items()}
    volumes = [*(f"{path}/:/inside{path}:ro" for path in states), "named:/named", "/unknown:/unknown"]
    assert list(problems({**ROLE_VARS, VOLUMES: volumes}, {"folders": folders}, {})) == [
        (
            f"{VOLUMES}: /data does not exist on this host",
            "correct the path, mount the file system, or create the folder",
        )
    ]


def test_the_sources_of_mounts_are_gathered() -> None:
    desired = {**ROLE_VARS, VOLUMES: ["/data/:/data:ro", "/data:/again", "named:/named", "./x:/x", "/anonymous:ro"]}
    assert GATHERED.by_role_vars is not None
    assert [path for path in GATHERED.by_role_vars(desired)["folders"]["paths"] if "data" in path][-1:] == ["/data"]


def test_a_volume_without_a_name_has_no_source_on_the_host() -> None:
    absent = {"folders": {"/anonymous": {"real": "/anonymous", "state": "absent"}}}
    assert list(problems({**ROLE_VARS, VOLUMES: ["/anonymous:ro"]}, absent, {})) == []


def test_in_the_hosts_network_nothing_is_published() -> None:
    text = f"{PORTS}: with cluster_network_mode: host there is nothing to publish, as each port is the host's own"
    assert wrong(cluster_network_mode="host", **only(PORTS, "80:80")) == [(text, f"leave {PORTS} out")]


def test_all_problems_are_refused_together_before_anything_is_made() -> None:
    made = plan(host(), files={FILE: ""}, **CHOSEN, **only(PORTS, "80:80", "80:81"), **only(DEVICES, "/dev/kfd"))
    assert [refusal.text.partition(":")[0] for refusal in made.refusals] == [SECCOMP, PORTS, DEVICES]
    assert shown(made) == [] and task_input(made)["make"] == {}


def test_devices_are_gathered() -> None:
    role_vars = {**ROLE_VARS, DEVICES: ["/dev/fuse:/dev/f", "no path", 7]}
    made = GATHERED.by_role_vars
    assert made is not None
    paths = [entry["path"] for entry in made(role_vars)["files"]]
    assert paths[-1] == "/dev/fuse" and len(paths) == 4


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=12)


@settings(max_examples=examples(300), deadline=None)
@given(
    name=st.sampled_from([PORTS, DEVICES, GROUPS]),
    values=st.lists(VALUES | st.sampled_from(["80:80", "/dev/fuse", "/dev/fuse:rw", "44"]), max_size=4),
)
def test_whatever_is_set_is_refused_in_sentences_or_a_container_that_stays(name: str, values: list[Any]) -> None:
    made = plan(host(), **only(name, *values))
    if made.refusals:
        assert all(refusal.text.startswith(name) and refusal.remedy for refusal in made.refusals)
    else:
        assert task_input(made)["make"]["state"] == "started"
        assert shown(plan(host(running(**only(name, *values))), **only(name, *values))) == []
