# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role training_container acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.planned_roles import END, GATHER, HERE, REPORT, PlannedRole, passes
from tests.role_values import ROLES, load, task_inputs, templar
from tests.training_nodes import HOSTS, facts, plan, task_input

ROLE = PlannedRole(
    "training_container", modules=True, ansible_play_hosts=list(HOSTS), _training_container_ready={"rc": 0}
)
MAKE: dict[str, Any] = {"name": "lab-gpu2", "swap": False, "restore": False, "others": []}
SWAP: dict[str, Any] = {"name": "lab-gpu2.new", "swap": True, "restore": True, "others": []}
REACH = {"containers": {host: f"lab-{host}" for host in HOSTS}, "port": 2222}


def test_where_no_network_is_tried_the_role_ends_at_its_first_task() -> None:
    assert ROLE.runs("main", ROLE.plan(False, reach=REACH), ansible_check_mode=True) == [END]
    assert ROLE.runs("main", ROLE.plan(False, reach=REACH, reached=True)) == [END]


def test_the_overlay_network_is_tried_in_every_run() -> None:
    """Where an engine was restarted a node can be cut off although nothing differs."""
    assert ROLE.runs("main", ROLE.plan(False, reach=REACH)) == [REPORT, "network.yml"]
    assert ROLE.runs("main", ROLE.plan(True, reach=REACH)) == [REPORT, "converge.yml", "network.yml"]
    assert ROLE.runs("main", ROLE.plan(True, reach=REACH), ansible_check_mode=True) == [REPORT]
    # Not where the play goes on with this host alone.
    assert ROLE.runs("main", ROLE.plan(False, reach=REACH), ansible_play_hosts=[HERE]) == [REPORT]


def test_a_host_at_which_the_play_has_failed_is_not_tried() -> None:
    (task, *dummy) = ROLE.tasks("reach")
    values = ROLE.given(ROLE.plan(False, reach=REACH), ansible_play_hosts=["gpu1", HERE])
    requested = templar(values).template(task["swarmspeed.cluster.overlay_reach"]["hosts"])
    assert requested == {"gpu1": "lab-gpu1"}


@pytest.mark.parametrize(
    ("act_", "ran"),
    [
        ({}, []),
        ({"image_check": {"image": "a"}}, ["image.yml"]),
        ({"folders": [{"path": "/x"}]}, ["swarmspeed.cluster.managed_files"]),
    ],
)
def test_what_is_not_planned_has_no_task(act_: dict[str, Any], ran: list[str]) -> None:
    made, ready = "community.docker.docker_container", "ansible.builtin.command"
    assert ROLE.runs("make", ROLE.plan(True, make=MAKE, **act_)) == ["assert", *ran, made, ready]


def test_one_that_is_there_is_replaced_once_the_new_one_is_created() -> None:
    made, ready = "community.docker.docker_container", "ansible.builtin.command"
    swap = "swarmspeed.cluster.container_swap"
    assert ROLE.runs("make", ROLE.plan(True, make=SWAP)) == ["assert", made, swap, ready]
    assert ROLE.runs("converge", ROLE.plan(True, make=SWAP)) == ["make.yml", swap, GATHER]
    assert ROLE.runs("converge", ROLE.plan(True, make=MAKE)) == ["make.yml", GATHER]
    # What an interrupted run has left goes, and the container that runs is let alone.
    assert ROLE.runs("converge", ROLE.plan(True, left=["lab-gpu2.old"])) == [swap, GATHER]
    states = [task["swarmspeed.cluster.container_swap"]["state"] for task in ROLE.tasks("make") if swap in task]
    assert states == ["swapped", "restored"]


def test_one_with_an_address_of_its_own_is_started_once_it_has_it() -> None:
    found = ROLE.plan(True, make=MAKE, connect=["docker", "network"], start=["docker", "start"])
    ran = ROLE.runs("make", found)
    assert ran == [
        "assert",
        "community.docker.docker_container",
        *["ansible.builtin.command"] * 3,
    ]
    names = [task["name"] for task in ROLE.tasks("make")]
    assert names.index("Assign the container its address") < names.index("Start the container at its address")


NO_NETWORK = (
    'Error starting container c957: 404 Client Error for http+docker://x/start: Not Found ("network lab not found")'
)
CUT = "attaching to network failed, make sure your network options are correct and check manager logs: context deadline"


@pytest.mark.parametrize(
    ("result", "again", "printed"),
    [
        ({"failed": True, "msg": NO_NETWORK}, True, NO_NETWORK),
        ({"failed": True, "msg": f'Error starting container c957: 500 Server Error ("{CUT}")'}, True, CUT),
        (
            {"failed": True, "msg": "Error creating container: 400 Error:\nbad device."},
            False,
            "Error: bad device",
        ),
        ({"changed": True, "container": {}}, False, ""),
    ],
)
def test_a_start_that_the_network_is_not_ready_for_is_tried_again(
    result: dict[str, Any], again: bool, printed: str
) -> None:
    block = next(task for task in load("training_container/tasks/make.yml") if "rescue" in task)
    create, [failed] = block["block"][0], block["rescue"]
    given = ROLE.given(ROLE.plan(True, make=MAKE), _training_container_started=result, ansible_failed_result=result)
    assert templar(given).evaluate_conditional(create["until"]) is not again
    message = str(templar(given).template(failed["ansible.builtin.fail"]["msg"]))
    assert message.startswith(f"{HERE}: container {MAKE['name']} was not started: ") and printed in message
    assert message.endswith('. Remedy: see "journalctl -u docker" on the node, correct the cause, and run again')


RESTARTS = "Error response from daemon: Container 5f is restarting, wait until the container is running"
ENDED = "Error response from daemon: container 5f is not running"
NO_INTERFACE = "swarmspeed: no interface of this container is in 10.1.0.0/24; its networks are: eth0 UP 10.2.0.3/24 ;"
LOGS = 'see "docker logs lab-gpu2" on the node, correct the cause, and run again'
RUN = "ansible-playbook site.yml --tags"


def refusal(ready: dict[str, Any], log: dict[str, Any], make: Any = MAKE, restored: Any = None) -> str:
    """Return what is printed where sshd is not reached, on one line as Ansible folds it."""
    task = ROLE.task("make", "Fail because sshd in the container is not reachable")
    found = ROLE.plan(True, name="lab-gpu2", make=make)
    more = {"_training_container_ready": ready, "_training_container_log": log}
    values = ROLE.given(found, _training_container_restored=restored, **more)
    assert task_inputs(task, values)
    return str(templar({**values, **task["vars"]}).template(task["ansible.builtin.fail"]["msg"]))


@pytest.mark.parametrize(
    ("printed", "remedy"),
    [
        ("root@lab-gpu2: Permission denied (publickey).", f"{RUN} ssh_trust,training_container"),
        ("ssh: connect to host gpu2: Connection refused", LOGS),
        # Of one whose log cannot be read.
        (RESTARTS, LOGS),
    ],
)
@pytest.mark.parametrize("log", [{"skipped": True}, {"rc": 1, "stderr_lines": ["no logs"]}, {"rc": 0}])
def test_sshd_that_lets_no_one_in_is_one_sentence(printed: str, remedy: str, log: dict[str, Any]) -> None:
    ready = {"rc": 255, "stderr": printed}
    found = ROLE.plan(True, name="lab-gpu2", make=MAKE)
    ran = ROLE.runs("make", found, _training_container_ready=ready, _training_container_log=log)
    assert ran[-1] == "ansible.builtin.fail"
    assert refusal(ready, log) == (
        f"{HERE}: container lab-gpu2 cannot be reached by ssh from itself: {printed.rstrip('.')}. Remedy: {remedy}"
    )


def test_a_wait_for_sshd_that_itself_fails_is_reported_as_well() -> None:
    """A task that times out has neither an exit status nor an output."""
    found, ready = ROLE.plan(True, name="lab-gpu2", make=MAKE), {"failed": True, "msg": "Timed out after 300 seconds."}
    assert "ansible.builtin.fail" in ROLE.runs("make", found, _training_container_ready=ready)
    assert "from itself: Timed out after 300 seconds. Remedy: see " in refusal(ready, {"skipped": True})


@pytest.mark.parametrize(("changed", "shown"), [(True, True), (False, False)])
def test_where_the_new_one_lets_no_one_in_the_earlier_one_runs_again(changed: bool, shown: bool) -> None:
    ready = {"rc": 255, "stderr": "Connection refused"}
    found = ROLE.plan(True, name="lab-gpu2", make=SWAP)
    ran = ROLE.runs("make", found, _training_container_ready=ready)
    assert ran[-2:] == ["swarmspeed.cluster.container_swap", "ansible.builtin.fail"]
    ended = {**SWAP, "restore": False}
    assert ROLE.runs("make", ROLE.plan(True, make=ended), _training_container_ready=ready)[-2:] == [
        "ansible.builtin.command",
        "ansible.builtin.fail",
    ]
    logs = LOGS.replace("lab-gpu2", "lab-gpu2.new") if shown else LOGS
    again = "The former container runs again, unchanged. " if shown else ""
    assert refusal(ready, {"skipped": True}, SWAP, {"changed": changed}) == (
        f"{HERE}: container lab-gpu2 cannot be reached by ssh from itself: Connection refused. {again}Remedy: {logs}"
    )


@pytest.mark.parametrize(
    ("log", "shown", "remedy"),
    [
        (
            {"stderr_lines": ["earlier", NO_INTERFACE, ""]},
            NO_INTERFACE.removesuffix(" ;"),
            f"{RUN} nccl_env,ssh_trust,training_container",
        ),
        ({"stderr_lines": ["no such key."], "stdout_lines": ["out"]}, "no such key", LOGS),
        ({"stderr_lines": [], "stdout_lines": ["out"]}, "out", LOGS),
        # As a program in it may write, to look like something else.
        ({"stderr_lines": ["a\x1b[2Jb\r\u202ec \t{{ 7 * 7 }}"]}, "a [2Jb c {{ 7 * 7 }}", LOGS),
        ({"stderr_lines": ["x" * 9000]}, f"{'x' * 290} (cut off)", LOGS),
    ],
)
@pytest.mark.parametrize("printed", [RESTARTS, ENDED])
def test_of_a_container_that_does_not_stay_up_the_log_is_shown(
    log: dict[str, Any], shown: str, remedy: str, printed: str
) -> None:
    assert refusal({"rc": 1, "stderr": printed}, {"rc": 0, **log}) == (
        f"{HERE}: container lab-gpu2 cannot be reached by ssh from itself: it does not stay up, and the last line of "
        f"its log is: {shown}. Remedy: {remedy}"
    )


@pytest.mark.parametrize(
    ("ready", "read", "ends"),
    [
        ({"rc": 0, "stderr": "", "attempts": 1}, False, True),
        ({"rc": 255, "stderr": "Connection refused", "attempts": 30}, False, False),
        ({"failed": True, "msg": "Timed out after 300 seconds."}, False, False),
        # One that has just been started may be restarting for a moment.
        ({"rc": 1, "stderr": RESTARTS, "attempts": 10}, True, False),
        ({"rc": 1, "stderr": RESTARTS, "attempts": 11}, True, True),
        ({"rc": 1, "stderr": ENDED, "attempts": 11}, True, True),
    ],
)
def test_the_wait_ends_early_and_the_log_is_read_where_the_container_does_not_stay_up(
    ready: dict[str, Any], read: bool, ends: bool
) -> None:
    values = ROLE.given(ROLE.plan(True), _training_container_ready=ready)
    assert task_inputs(ROLE.task("make", "Read why the container does not stay up"), values) is read
    until = ROLE.task("make", "Wait for sshd in the container")["until"]
    assert templar(values).evaluate_conditional(until) is ends


@pytest.mark.parametrize("missing", ["", "gpu2: the image a:1 is not there"])
def test_no_container_is_made_of_an_image_that_is_not_there(missing: str) -> None:
    (first, *dummy) = ROLE.tasks("make")
    values = ROLE.given(ROLE.plan(True, missing=missing))
    assert passes(first, values) is (not missing)
    assert templar(values).template(first["ansible.builtin.assert"]["fail_msg"]) == missing


def container_of(made: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which the engine is asked for a container, those that are left out without."""
    task = next(task for task in ROLE.tasks("make") if "community.docker.docker_container" in task)
    omit = "__omit__"
    values = ROLE.given({"task_inputs": {HERE: {ROLE.role: made}}}, omit=omit)
    arguments = task["community.docker.docker_container"]
    found = {name: templar(values).template(value) for name, value in arguments.items()}
    return {name: value for name, value in found.items() if value != omit}


def test_each_setting_is_given_to_the_engine() -> None:
    made = task_input(plan(facts(), training_container_environment={"A": "1"}, training_container_ipc_mode="host"))
    requested = container_of(made)
    wanted = made["settings"]
    assert {name: requested[name] for name in ("image", "shm_size", "ulimits", "capabilities", "security_opts")} == {
        name: wanted[name] for name in ("image", "shm_size", "ulimits", "capabilities", "security_opts")
    }
    assert (requested["network_mode"], requested["env"], requested["ipc_mode"]) == ("lab", {"A": "1"}, "host")
    assert (requested["name"], requested["hostname"], requested["labels"]) == (
        "lab-gpu2",
        "lab-gpu2",
        made["make"]["labels"],
    )
    assert (requested["recreate"], requested["state"]) == (False, "started")
    assert (
        requested["volumes"] == wanted["volumes"] and requested["devices"] == [] and "device_requests" not in requested
    )
    # Whatever decides whether it is made again is also what it is made with.
    used = {"network": "network_mode", "environment": "env"}
    assert {used.get(name, name) for name in wanted} - {"image_id"} <= {*requested, "device_requests"}


def test_options_that_are_set_are_given_to_the_engine() -> None:
    profile = {"text:seccomp.json": '{"defaultAction": "SCMP_ACT_ALLOW"}'}
    made = task_input(
        plan(
            facts(),
            files=profile,
            training_container_seccomp_profile="seccomp.json",
            training_container_pid_mode="host",
            training_container_published_ports=["127.0.0.1:8888:8888"],
            training_container_devices=["/dev/fuse"],
            training_container_groups=["44"],
            training_container_sysctls={"kernel.sem": "1 2 3 4"},
        )
    )
    requested = container_of(made)
    assert requested["security_opts"] == ["no-new-privileges", 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}']
    assert (requested["pid_mode"], requested["groups"]) == ("host", ["44"])
    assert requested["sysctls"] == {"kernel.sem": "1 2 3 4"}
    assert (requested["published_ports"], requested["devices"]) == (
        ["127.0.0.1:8888:8888"],
        ["/dev/fuse:/dev/fuse:rwm"],
    )
    unset = container_of(task_input(plan(facts())))
    assert not {"pid_mode", "published_ports", "groups", "sysctls"} & set(unset)


def test_in_the_hosts_network_it_has_no_name_of_its_own() -> None:
    requested = container_of(task_input(plan(facts(), cluster_network_mode="host", training_container_ulimits=[])))
    assert "hostname" not in requested and "ipc_mode" not in requested and "ulimits" not in requested
    assert requested["network_mode"] == "host"


@pytest.mark.parametrize(("problem", "right"), [("", True), ("gpu2: the image a lacks ssh", False)])
def test_what_an_image_lacks_keeps_the_container_from_being_made(problem: str, right: bool) -> None:
    (search, judged) = ROLE.tasks("image")
    assert search["run_once"] is judged["run_once"] is True
    values = ROLE.given(ROLE.plan(True), _training_container_image_problem=problem)
    assert passes(judged, values) is right


def test_teardown_removes_the_container_that_is_ours() -> None:
    task, folders = ROLE.tasks("teardown")

    def removed(**act_: Any) -> list[str]:
        found: list[str] = templar(ROLE.given(ROLE.plan(False, name="lab-gpu2", **act_))).template(task["loop"])
        return found

    assert removed(ours=True) == ["lab-gpu2"] and removed() == []
    assert removed(left=["lab-gpu2.old"]) == ["lab-gpu2.old"]
    # Behind it: what is mounted is not to be removed.
    assert folders["swarmspeed.cluster.vscode_extensions"]["state"] == "absent"


def test_after_a_restart_of_an_engine_what_is_planned_then_is_reported_and_applied() -> None:
    names = [task["name"] for task in ROLE.tasks("repair")]
    order = ["Gather facts and plan again", "Report what is planned after the restart", "Apply the planned changes"]
    assert [name for name in names if name in order] == order
    assert names.index(order[-1]) < names.index("Test the overlay network again")


def test_verify_looks_inside_only_a_container_that_is_there() -> None:
    *dummy, inside = ROLE.tasks("verify")
    assert task_inputs(inside, ROLE.given(ROLE.plan(False))) is False
    assert task_inputs(inside, ROLE.given(ROLE.plan(False, inside=["docker"]))) is True


@pytest.mark.parametrize(("size", "right"), [("67108864\n", False), ("67108865\n", True), ("", False)])
def test_verify_measures_shared_memory(size: str, right: bool) -> None:
    judged = ROLE.task("verify", "Assert that shared memory")
    values = ROLE.given(ROLE.plan(False), _training_container_shm_seen={"stdout": size})
    assert passes(judged, values) is right


def test_the_network_benchmark_makes_its_containers_with_the_same_settings() -> None:
    text = (ROLES / "overlay_network/tasks/bench_network.yml").read_text(encoding="utf-8")
    settings = task_input(plan(facts()))["settings"]
    names = set(re.findall(r"_overlay_network_bench_like\.(\w+)", text))
    assert names and names <= set(settings)
    values = {**ROLE.given(ROLE.plan(False, settings=settings)), **load("overlay_network/vars/main.yml")}
    assert templar(values).template(values["_overlay_network_bench_like"]) == settings
