# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nccl_env, over invented nodes: files, when an image is asked, who reads them again."""

from __future__ import annotations

import copy
import json
import subprocess
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.files import ENTRY_POINT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NOTHING, NcclEnvPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Sealed, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.container import run_inside
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile, file_is_right
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.nccl_nodes import (
    CONTAINER,
    ETC,
    HOST,
    ID,
    IMAGE,
    KEY,
    ON_THE_HOST,
    OTHER,
    RECORD,
    ROLE_VARS,
    ROOT,
    TEXT,
    cluster,
    done,
    files,
    host,
    plan,
    shown,
    task_input,
    written,
)
from tests.role_values import ROLES

ALL = [("+", ROOT), ("+", ""), ("+", "/nccl.conf"), ("+", "/env"), ("+", "/entrypoint.sh")]

# What is gathered


def gathered() -> dict[str, dict[str, Any]]:
    assert GATHERED.by_role_vars is not None
    return {entry["path"]: dict(entry) for entry in GATHERED.by_role_vars(ROLE_VARS)["files"]}


@pytest.mark.parametrize("desired", [{}, ON_THE_HOST])
def test_whatever_is_compared_is_gathered(desired: dict[str, Any]) -> None:
    requested = gathered()
    for made in (plan(host(), **desired), plan(host(image=None), **desired)):
        owned = {change.what for change in made.changes}
        assert owned and owned <= set(requested)
        for path, entry in files(made).items():
            assert bool(requested[path].get("secret")) is entry["secret"]
    assert requested[RECORD]["content"] is True
    assert "/etc/nccl.conf" not in requested  # the host's own


def test_teardown_removes_every_file_that_is_written() -> None:
    (task,) = yaml.safe_load((ROLES / "nccl_env/tasks/teardown.yml").read_text(encoding="utf-8"))
    assert task["ansible.builtin.file"]["path"] == "{{ cluster_root }}/etc/{{ item }}"
    names = {path.removeprefix(f"{ETC}/") for path in gathered() if path.startswith(f"{ETC}/")}
    assert set(task["loop"]) == names


def test_it_reads_the_entry_point_that_comes_with_the_role() -> None:
    assert list(NcclEnvPlanner().files(ROLE_VARS)) == [ENTRY_POINT]
    assert TEXT.startswith("#!/bin/sh\n")


# The image that is asked

CPU = cluster(accelerator="cpu")


@pytest.mark.parametrize(
    ("record", "desired", "of_cluster", "asks", "kept"),
    [
        (None, {}, cluster(), True, None),
        (f"{OTHER} 2.18.1\n", {}, cluster(), True, None),
        ("", {}, cluster(), True, None),
        ("garbage", {}, cluster(), True, None),
        (f"{ID} 2.27.3\n", {}, cluster(), False, f"{ID} 2.27.3\n"),
        (f"{ID} unknown\n", {}, cluster(), False, f"{ID} unknown\n"),
        (f"{ID}\n", {}, cluster(), False, f"{ID} unknown\n"),
        (f"{OTHER} 2.18.1\n", {"nccl_env_version": "2.21.5"}, cluster(), False, None),
        (f"{OTHER} 2.18.1\n", {}, CPU, False, None),
        (f"{OTHER} 2.18.1\n", ON_THE_HOST, cluster(), False, None),
        # Applied alone the role does not know which image is the cluster's.
        (f"{OTHER} 2.18.1\n", {}, cluster(image=""), False, None),
    ],
)
def test_an_image_is_asked_once(
    record: str | None, desired: dict[str, Any], of_cluster: dict[str, Any], asks: bool, kept: str | None
) -> None:
    made = plan(host(record), of_cluster, **desired)
    question = task_input(made)["question"]
    assert bool(question) is asks
    # The digest of these invented records is not that of their text: what is kept is written.
    assert files(made).get(RECORD, {}).get("content") == kept
    found = [change.after for change in made.changes if change.what == RECORD]
    assert len(found) == (1 if asks or kept is not None else 0)
    if asks:
        assert found == [Unknown("the release of NCCL that the image has")]
        assert question["image"] == ID and question["record"] == RECORD
        assert question["argv"][:6] == ["docker", "run", "--rm", "--network", "none", "--entrypoint"]
        assert question["argv"][6:9] == ["python3", IMAGE, "-c"]


def test_an_image_that_is_not_here_yet_is_asked_once_it_is() -> None:
    made = plan(host(image=None))
    assert [change.after for change in made.changes if change.what == RECORD] == [
        Unknown("the release of NCCL that the image has")
    ]
    assert task_input(made)["question"] == {} and files(made)[RECORD]["content"] == "as-built unknown\n"
    arrived = copy.deepcopy(done(host(image=None)))
    arrived["docker"]["images"] = {IMAGE: ID}
    again = plan(arrived)
    assert shown(again) == [("~", "/nccl.release")] and task_input(again)["question"]["image"] == ID
    assert task_input(again)["files"] == []  # the answer is recorded by the role


@pytest.mark.parametrize(("answer", "retries"), [("2.28.9", True), ("2.23.4", False), ("unknown", True)])
def test_what_an_image_said_decides_what_is_set(answer: str, retries: bool) -> None:
    facts = done(host())
    record = ManagedFile(RECORD, f"{ID} {answer}\n")
    facts["files"] = {**facts["files"], RECORD: {**written(f"{ID} {answer}\n"), "sha256": record.sha256}}
    assert shown(plan(facts)) == [] and task_input(plan(facts))["question"] == {}
    lines = setting_lines(plan({**facts, "files": {RECORD: facts["files"][RECORD]}}, nccl_env_timeout=60))
    assert any(line.startswith("NCCL_SOCKET_RETRY_CNT=") for line in lines) is retries


OURS = {"training_image_source": "build", "training_image_dockerfile": ""}


@pytest.mark.parametrize(
    ("record", "desired", "of_cluster", "off"),
    [
        (None, OURS, {}, True),
        (None, {**OURS, "training_image_dockerfile": "/d/Dockerfile"}, {}, False),
        (None, {"training_image_source": "pull"}, {}, False),
        (None, OURS, {"accelerator": "cpu"}, False),
        (None, OURS, {"versions": {}}, False),
        # What the image itself said counts.
        (f"{ID} 2.29.7\n", OURS, {}, False),
        (f"{ID} unknown\n", OURS, {}, False),
        (f"{ID} 2.26.2\n", {"training_image_source": "pull"}, {}, True),
        (None, {**OURS, "nccl_env_version": "2.21.5"}, {}, False),
        (None, {**ON_THE_HOST, "workspace_python_environment": "/opt/env"}, {}, True),
        (None, ON_THE_HOST, {}, False),
    ],
)
def test_ras_is_off_by_the_release_that_the_row_of_versions_brings(
    record: str | None, desired: dict[str, Any], of_cluster: dict[str, Any], off: bool
) -> None:
    of_cluster = cluster(**{"versions": {"nccl": "2.27.5"}, **of_cluster})
    texts = [str(entry.get("content")) for entry in files(plan(host(record), of_cluster, **desired)).values()]
    assert any("\nNCCL_RAS_ENABLE=0\n" in text for text in texts) is off


def test_verify_and_benchmark_know_which_hcas_were_chosen() -> None:
    port = {"port": 1, "state": "active", "physical_state": "linkup", "rate_gbps": 400.0, "link_layer": "infiniband"}
    facts = {**host(), "fabric": {"infiniband": [{"name": "mlx5_0", "ports": [port], "gpu_distances": {}}]}}
    of_cluster = cluster(rdma={"link_layer": "infiniband", "reason": "every node has active InfiniBand ports"})
    chosen = {"hcas": "=mlx5_0:1", "host_rdma": {"NCCL_IB_HCA": "=mlx5_0:1"}}

    def found(**desired: Any) -> dict[str, Any]:
        made = task_input(plan(facts, of_cluster, **desired))
        return {name: made[name] for name in chosen}

    assert found(cluster_network_mode="host") == chosen
    assert found() == {**chosen, "hcas": ""}
    for name in ("nccl_env_settings", "nccl_env_environment"):
        wanted = found(cluster_network_mode="host", **{name: {"NCCL_IB_DISABLE": 1}})
        assert wanted == {"hcas": "", "host_rdma": {"NCCL_IB_DISABLE": "1"}}


def setting_lines(made: Plan) -> list[str]:
    return str(files(made)[f"{ETC}/nccl.conf"]["content"]).splitlines()


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ("version = type('C', (), {'cuda': '12'}); cuda = type('C', (), {'nccl': N})", "2.27.3"),
        ("version = type('C', (), {'cuda': None})", "unknown"),
        ("raise OSError('libcuda.so.1')", "unknown"),
    ],
)
def test_what_is_asked_runs(printed: str, answer: str, tmp_path: Any) -> None:
    """With a stand-in for torch."""
    stand_in = f"N = type('N', (), {{'version': staticmethod(lambda: (2, 27, 3))}})\n{printed}\n"
    (tmp_path / "torch.py").write_text(stand_in, encoding="utf-8")
    question = task_input(plan(host()))["question"]["argv"][-1]
    done = subprocess.run(
        ["python3", "-c", question],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout.decode().strip()) == (0, answer), done.stderr


# Files


def test_a_node_with_containers() -> None:
    made = plan(host(f"{ID} 2.28.9\n"), nccl_env_environment={"HF_TOKEN": "hf_invented", "a": 1, "B": None})
    assert shown(made) == [*ALL, ("~", "/nccl.release")]
    entries = files(made)
    assert entries[f"{ETC}/nccl.conf"]["content"].splitlines()[1:] == [
        "# an overlay is a network namespace of its own, where RoCE's GIDs are not, and VXLAN carries no RDMA; "
        "cluster_network_mode: host would use it",
        "NCCL_IB_DISABLE=1",
        "# the interface in 10.20.0.0/24; = asks for that very name, without it eth1 would also be eth10",
        "NCCL_SOCKET_IFNAME==@IFNAME@",
    ]
    assert entries[f"{ETC}/env"]["content"].splitlines() == [
        *("a=1", "B=", "DS_ACCELERATOR=cuda", "GLOO_SOCKET_IFNAME=@IFNAME@", "HF_TOKEN=hf_invented")
    ]
    modes = {path.removeprefix(ROOT): entry["mode"] for path, entry in entries.items()}
    assert modes == {
        "": "0700",
        "/etc": "0700",
        "/etc/nccl.conf": "0644",
        "/etc/env": "0600",
        "/etc/entrypoint.sh": "0755",
        "/etc/nccl.release": "0644",
    }
    assert [entry["path"] for entry in task_input(made)["folders"]] == [ROOT, ETC]


def test_a_node_without_docker_gets_its_interface_by_name() -> None:
    made = plan(
        host(),
        nccl_env_settings={"NCCL_IB_TIMEOUT": 22},
        nccl_env_environment={"WANDB_DIR": "/data/@IFNAME@"},
        **ON_THE_HOST,
    )
    assert shown(made) == [
        ("+", ROOT),
        ("+", ""),
        *[("+", f"{ROOT}/{name}") for name in ("jobs", "host_jobs")],
        ("+", "/nccl.conf.host"),
        ("+", "/env"),
    ]
    # No NCCL_IB_DISABLE: it is the overlay that carries no RDMA.
    assert files(made)[f"{ETC}/nccl.conf.host"]["content"].splitlines()[1:] == [
        "# nccl_env_settings",
        "NCCL_IB_TIMEOUT=22",
        "# the interface in 10.1.0.0/24; = asks for that very name, without it eth1 would also be eth10",
        "NCCL_SOCKET_IFNAME==bond0",
    ]
    assert files(made)[f"{ETC}/env"]["content"].splitlines() == [
        "DS_ACCELERATOR=cuda",
        "GLOO_SOCKET_IFNAME=bond0",
        f"NCCL_CONF_FILE={ETC}/nccl.conf.host",
        "WANDB_DIR=/data/bond0",
    ]
    assert [files(made)[f"{ETC}/env"][name] for name in ("mode", "secret")] == ["0600", True]
    assert {files(made)[path]["mode"] for path in (ROOT, ETC, f"{ROOT}/jobs")} == {"0700"}
    assert task_input(made)["inside"] == {} and task_input(made)["render"] == []


@pytest.mark.parametrize(
    ("mode", "subnet", "requested"),
    [
        ("overlay", "10.20.0.0/24", "ip -4 -o address show scope global to 10.20.0.0/24"),
        ("host", "10.1.0.0/24", "ip -4 -o address show dev bond0 scope global to 10.1.0.0/24"),
    ],
)
def test_the_interface_is_found_by_address(mode: str, subnet: str, requested: str) -> None:
    made = plan(host(), cluster_network_mode=mode, ssh_trust_port=2299)
    text = files(made)[f"{ETC}/entrypoint.sh"]["content"]
    assert f"set -- $({requested} | head -n 1)" in text and f"subnet='{subnet}'" in text
    assert '-o "ListenAddress=$address:2299"' in text and "@SUBNET@" not in text and "@IFNAME@" in text
    assert requested in task_input(made)["inside"]["argv"][-1] and task_input(made)["subnet"] == subnet


def test_ranks_on_the_host_find_the_compiler_of_their_environment_unless_the_user_names_another() -> None:
    of_cuda = cluster(versions={"torch": "torch==2.13.0", "compiler": ["cuda-toolkit[nvcc]==13.0.3"]})
    made = plan(host(), of_cuda, **ON_THE_HOST, workspace_python_environment="/opt/train")
    assert "CUDA_HOME=/opt/train/cuda" in files(made)[f"{ETC}/env"]["content"].splitlines()
    own = {"nccl_env_environment": {"CUDA_HOME": "/usr/local/cuda"}}
    made = plan(host(), of_cuda, **ON_THE_HOST, **own, workspace_python_environment="/opt/train")
    assert "CUDA_HOME=/usr/local/cuda" in files(made)[f"{ETC}/env"]["content"].splitlines()
    for made in (
        plan(host(), of_cuda, **ON_THE_HOST),
        plan(host(), of_cuda, workspace_python_environment="/opt/train"),
    ):
        assert "CUDA_HOME" not in files(made)[f"{ETC}/env"]["content"]


@pytest.mark.parametrize("runtime", [{}, ON_THE_HOST])
def test_where_hosts_share_no_subnet_a_node_is_found_by_its_own_address(runtime: dict[str, Any]) -> None:
    apart = {"subnet": "", "interfaces": {HOST: "ens3"}, "addresses": {"gpu-1": "203.0.113.7", HOST: "198.51.100.9"}}
    made = plan(host(), cluster(underlay=apart), **{"cluster_network_mode": "host", **runtime})
    assert task_input(made)["subnet"] == "198.51.100.9/32"
    if runtime:
        assert "NCCL_SOCKET_IFNAME==ens3" in files(made)[f"{ETC}/nccl.conf.host"]["content"].splitlines()
    else:
        requested = "ip -4 -o address show dev ens3 scope global to 198.51.100.9/32"
        assert f"set -- $({requested} | head -n 1)" in files(made)[f"{ETC}/entrypoint.sh"]["content"]


def test_a_secret_is_only_in_what_the_role_acts_on() -> None:
    token = "hunter2"
    made = plan(done(host()), nccl_env_environment={"HF_TOKEN": token})
    (change,) = [change for change in made.changes if change.what == f"{ETC}/env"]
    assert isinstance(change.before, Sealed) and isinstance(change.after, Sealed) and change.before != change.after
    whole = outcome(made, "", ["nccl_env"])
    assert token in json.dumps(whole.pop("task_inputs")) and token not in json.dumps(whole)
    assert "(a secret)" in whole["text"]


@pytest.mark.parametrize(
    ("path", "edit", "reported"),
    [
        ("nccl.conf", {"sha256": "other"}, "has other content"),
        ("env", {"mode": "0644"}, "is mode 0644, owner 0, group 0, but should be mode 0600, owner 0, group 0"),
        ("entrypoint.sh", {"exists": False}, "is missing"),
    ],
)
def test_what_was_edited_by_hand(path: str, edit: dict[str, Any], reported: str) -> None:
    facts = done(host())
    facts["files"] = {**facts["files"], f"{ETC}/{path}": {**facts["files"][f"{ETC}/{path}"], **edit}}
    made = plan(facts)
    assert outcome(made, "", ["nccl_env"])["drift"][HOST]["nccl_env"] == [f"{ETC}/{path} {reported}"]
    assert [entry["path"] for entry in task_input(made)["files"]] == [f"{ETC}/{path}"]


# What is refused


def test_what_the_release_would_not_take_is_refused_with_its_remedy() -> None:
    made = plan(host(f"{ID} 2.21.5\n"), nccl_env_settings={"NCCL_RAS_ENABLE": 0})
    (refusal,) = made.refusals
    assert refusal.text == "NCCL_RAS_ENABLE is supported by NCCL from 2.24 on, but the image has 2.21.5"
    assert refusal.remedy == "correct it in nccl_env_settings"
    assert made.changes == () and task_input(made) == {**NOTHING, "subnet": "10.20.0.0/24"}
    assert made.pending("nccl_env", HOST)
    # Of an image that is new it is not known yet.
    assert plan(host(), nccl_env_settings={"NCCL_RAS_ENABLE": 0}).refusals == ()


def test_without_the_cluster_nothing_is_planned() -> None:
    made = plan(host(), {"image": IMAGE})
    assert made.changes == () and task_input(made) == NOTHING


# The running container


@pytest.mark.parametrize(
    ("changed", "renders"),
    [
        ({}, True),
        ({"state": "exited"}, False),
        ({"addresses": {}}, False),  # it goes on without its network when its node leaves the swarm
        ({"addresses": {"host": ""}}, False),
        ({"labels": {"swarmspeed.cluster": "lab"}}, False),  # made by hand from the image, which has that label
        ({"labels": {"swarmspeed.cluster": "other", "swarmspeed.spec": "1"}}, False),
    ],
)
def test_a_running_container_takes_changes_over(changed: dict[str, Any], renders: bool) -> None:
    facts = host(**{"state": "running", **changed})
    expected = run_inside(CONTAINER, "sh", "/etc/swarmspeed/entrypoint.sh", "render") if renders else []
    assert task_input(plan(facts))["render"] == expected
    assert task_input(plan(done(facts)))["render"] == []


def test_a_container_on_the_hosts_network_does_so_too() -> None:
    made = plan(host(state="running", addresses={"host": ""}), cluster_network_mode="host")
    assert made.task_inputs[HOST]["nccl_env"]["render"] != []


def test_the_record_of_a_release_alone_is_nothing_that_a_container_reads() -> None:
    facts = done(host(f"{OTHER} 2.27.3\n", state="running"))
    facts["files"] = {**facts["files"], RECORD: written(f"{OTHER} 2.27.3\n")}
    made = plan(facts)
    assert shown(made) == [("~", "/nccl.release")] and task_input(made)["render"] == []


@pytest.mark.parametrize(
    ("desired", "lines"),
    [
        ({}, ["GLOO_SOCKET_IFNAME=@IFNAME@", "NCCL_SOCKET_IFNAME==@IFNAME@"]),
        ({"nccl_env_settings": {"NCCL_SOCKET_IFNAME": ""}}, ["GLOO_SOCKET_IFNAME=@IFNAME@"]),
        (
            {
                "nccl_env_settings": {"NCCL_SOCKET_IFNAME": "=eth1"},
                "nccl_env_environment": {"GLOO_SOCKET_IFNAME": "eth1"},
            },
            ["GLOO_SOCKET_IFNAME=eth1", "NCCL_SOCKET_IFNAME==eth1"],
        ),
    ],
)
def test_verify_knows_what_must_be_in_the_container(desired: dict[str, Any], lines: list[str]) -> None:
    inside = task_input(plan(host(state="running"), **desired))["inside"]
    assert inside["lines"] == lines and inside["state"] == "running" and inside["container"] == CONTAINER
    assert task_input(plan(host(), **desired))["inside"]["state"] == "absent"


# Searched

RECORDS = st.none() | st.sampled_from(
    ["", f"{ID} 2.27.3\n", f"{ID} 2.18.1\n", f"{OTHER} 2.27.3\n", "as-built unknown\n"]
)
FACTS = st.builds(
    lambda record, image, state: host(record, image=image, state=state),
    RECORDS,
    st.sampled_from([None, ID]),
    st.sampled_from(["", "running", "exited"]),
)
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "nccl_env_settings": st.sampled_from([{}, {"NCCL_DEBUG": "INFO"}, {"NCCL_RAS_ENABLE": 0}, {"NCCL_X": "y"}]),
        "nccl_env_environment": st.dictionaries(st.sampled_from(["A", "b", "TOKEN"]), st.text("xyz"), max_size=3),
        "nccl_env_debug": st.sampled_from(["", "INFO"]),
        "nccl_env_timeout": st.sampled_from([0, 60]),
        "nccl_env_version": st.sampled_from(["", "2.18.1", "2.27.3"]),
        "cluster_network_mode": st.sampled_from(["overlay", "host"]),
        "deepspeed_launch_runtime": st.sampled_from(["container", "host"]),
    },
)
CLUSTERS = st.sampled_from([cluster(), CPU, cluster(image="")])


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(FACTS, CLUSTERS, REQUESTED)
def test_once_all_is_done_nothing_is_left_to_do(facts: Any, of_cluster: Any, desired: Any) -> None:
    made = plan(facts, of_cluster, **desired)
    after = plan(made.facts[HOST], of_cluster, **desired)
    assert [change.what for change in after.changes] == []
    assert {name: task_input(after)[name] for name in ("files", "folders", "question", "render")} == {
        name: NOTHING[name] for name in ("files", "folders", "question", "render")
    }
    assert after.refusals == made.refusals


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(FACTS, CLUSTERS, REQUESTED)
def test_the_role_writes_what_is_planned_and_no_more(facts: Any, of_cluster: Any, desired: Any) -> None:
    made = plan(facts, of_cluster, **desired)
    question = task_input(made)["question"]
    acted = [*files(made), *([question["record"]] if question else [])]
    assert sorted(acted) == sorted(change.what for change in made.changes)
    for entry in task_input(made)["files"]:
        item = ManagedFile(**{"content": None, **entry})
        assert not file_is_right(item, facts["files"].get(item.path, {"exists": False}), KEY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=examples(100))
@given(st.dictionaries(st.sampled_from(["docker", "files", "system"]), JSON))
def test_no_facts_are_an_exception(facts: dict[str, Any]) -> None:
    json.dumps(outcome(plan(facts), "", ["nccl_env"]), default=str)
