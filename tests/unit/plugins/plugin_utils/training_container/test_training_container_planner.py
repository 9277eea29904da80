# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role training_container: what it compares, makes again, refuses and needs consent for."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.values import fingerprint
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.planner import OverlayNetworkPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Sealed
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.container import run_inside
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Planner, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import consent_text, drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.planner import (
    NOTHING,
    TrainingContainerPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.settings import (
    HASH_LABEL,
    SETTINGS_LABEL,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.role_values import load
from tests.training_nodes import (
    FOLDERS,
    HOST,
    HOSTS,
    ID,
    IMAGE,
    KEY,
    NAME,
    OTHER,
    ROLE,
    ROLE_VARS,
    ROOT,
    cluster,
    facts,
    plan,
    running,
    shown,
    task_input,
)

AT = {"subnet": "10.64.0.0/24", "mtu": 1500, "addresses": {HOST: "10.64.0.254"}}
HOST_NETWORK: dict[str, Any] = {"cluster_network_mode": "host"}
ENDED = ("~", f"container {NAME}", "exited", "running")
AGAIN = ("~", f"container {NAME}", "running", "made again")

# What is gathered


@pytest.mark.parametrize("desired", [{}, {"workspace_path": "/data/work"}])
def test_whatever_is_compared_is_gathered(desired: dict[str, Any]) -> None:
    assert GATHERED.by_role_vars is not None
    entries = [entry["path"] for entry in GATHERED.by_role_vars({**ROLE_VARS, **desired})["files"]]
    made = plan(facts(files={}), **desired)
    assert [change.what for change in made.changes if change.what.startswith("/")] == entries
    assert [entry["path"] for entry in task_input(made)["folders"]] == entries
    assert entries[-1] == (desired.get("workspace_path") or f"{ROOT}/workspace")


# The settings


def spec_of_role(**changed: Any) -> dict[str, Any]:
    """The settings as the role's templates gave them before it was planned: containers of then stay."""
    desired = {**load(f"{ROLE}/defaults/main.yml")}
    return {
        "image": IMAGE,
        "image_id": ID,
        "network": "lab",
        "shm_size": "32g",
        "ulimits": desired["training_container_ulimits"],
        "ipc_mode": "",
        "capabilities": ["IPC_LOCK", "SYS_NICE"],
        "security_opts": ["no-new-privileges"],
        "devices": [],
        "device_requests": [],
        "volumes": [f"{ROOT}/etc:/etc/swarmspeed:ro", f"{ROOT}/jobs:/jobs", f"{ROOT}/workspace:/workspace"],
        "environment": {},
        "restart_policy": "unless-stopped",
        **changed,
    }


CUDA = {"accelerator": "cuda"}
RDMA = {"fabric": {"infiniband": [{"name": "mlx5_0"}]}}
TO_SWITCHES = {"name": "mlx5_8", "switch_management": True}
RDMA_DEVICES = "/dev/infiniband:/dev/infiniband"
OLD_ENGINE = {"docker": {"version": "20.10.24", "installed": True}}
BY_HOOK = [{"driver": "nvidia", "count": -1, "capabilities": [["gpu"]]}]
BY_CDI = [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
MODE = "nvidia_container_toolkit_mode"
OPTIONS, PRIVILEGES = "training_container_security_opts", "training_container_no_new_privileges"


@pytest.mark.parametrize(
    ("found", "of_cluster", "desired", "expected"),
    [
        ({}, {}, {}, {}),
        ({}, {}, HOST_NETWORK, {"network": "host"}),
        ({}, {"overlay": AT}, {}, {"address": "10.64.0.254"}),
        ({}, {"overlay": AT}, HOST_NETWORK, {"network": "host"}),
        ({}, {"overlay": None}, HOST_NETWORK, {"network": "host"}),
        ({}, {}, {"overlay_network_name": "net"}, {"network": "net"}),
        ({"system": {"memory_bytes": 1 << 30}}, {}, {}, {"shm_size": "1g"}),
        ({"system": {"memory_bytes": 7 << 30}}, {}, {}, {"shm_size": "3g"}),
        ({}, {}, {"training_container_shm_size": "512m"}, {"shm_size": "512m"}),
        (RDMA, {}, {}, {"devices": [RDMA_DEVICES]}),
        ({"fabric": {"infiniband": [TO_SWITCHES]}}, {}, {}, {}),
        ({"fabric": {"infiniband": [TO_SWITCHES, {"name": "mlx5_0"}]}}, {}, {}, {"devices": [RDMA_DEVICES]}),
        ({}, CUDA, {}, {"device_requests": BY_CDI}),
        (OLD_ENGINE, CUDA, {}, {"device_requests": BY_HOOK}),
        ({}, CUDA, {MODE: "runtime"}, {"device_requests": BY_HOOK}),
        ({}, CUDA, {"docker_daemon_config": {"features": {"cdi": False}}}, {"device_requests": BY_HOOK}),
        ({}, {}, {OPTIONS: ["seccomp=unconfined"]}, {"security_opts": ["seccomp=unconfined", "no-new-privileges"]}),
        ({}, {}, {OPTIONS: ["no-new-privileges:true"]}, {"security_opts": ["no-new-privileges:true"]}),
        ({}, {}, {OPTIONS: ["label=disable"], PRIVILEGES: False}, {"security_opts": ["label=disable"]}),
        ({}, {}, {"training_container_environment": {"A": "1"}}, {"environment": {"A": "1"}}),
        ({"docker": {"images": {}}}, {}, {}, {"image_id": ""}),
        ({"docker": {"images": {IMAGE: "(known after apply)"}}}, {}, {}, {"image_id": ""}),
    ],
)
def test_the_settings_are_what_they_were(found: Any, of_cluster: Any, desired: Any, expected: dict[str, Any]) -> None:
    made = plan(facts(**found), cluster(**of_cluster), **desired)
    assert task_input(made)["settings"] == spec_of_role(**expected)
    labels = task_input(made)["make"]["labels"]
    assert labels[HASH_LABEL] == fingerprint(spec_of_role(**expected))
    assert labels.get("swarmspeed.address") == expected.get("address")


def test_models_and_data_sets_are_at_the_same_path_and_read_only() -> None:
    sources = [{"name": "x", "folder": "/x"}]
    for path, place in (("", f"{ROOT}/assets"), ("/data/assets", "/data/assets")):
        desired: dict[str, Any] = {"assets_sources": sources, "assets_path": path}
        made = plan(facts(), **desired)
        assert task_input(made)["settings"]["volumes"][3:] == [f"{place}:{place}:ro"]
        assert GATHERED.by_role_vars is not None
        assert {"path": place} in GATHERED.by_role_vars({**ROLE_VARS, **desired})["files"]
    # Without them nothing is mounted, so that containers that are there stay.
    assert len(task_input(plan(facts(), assets_path="/data/assets"))["settings"]["volumes"]) == 3


def test_extensions_of_vs_code_are_where_its_server_reads_them() -> None:
    desired: dict[str, Any] = {"deepspeed_launch_vscode_extensions": ["vscode/x.vsix"]}
    made, place = plan(facts(), **desired), f"{ROOT}/vscode/extensions"
    assert task_input(made)["settings"]["volumes"][3:] == [f"{place}:/root/.vscode-server/extensions"]
    folders = {item["path"]: item["mode"] for item in task_input(made)["folders"]}
    assert folders == {f"{ROOT}/vscode": "0700", place: "0755"}
    assert GATHERED.by_role_vars is not None
    assert {"path": place} in GATHERED.by_role_vars({**ROLE_VARS, **desired})["files"]
    # One that runs is made again for the mount alone, and with an empty list not at all.
    before = plan(facts()).facts[HOST]["docker"]["containers"][NAME]
    assert f"volumes of container {NAME}" in [one[1] for one in shown(plan(facts(before), **desired))]
    assert shown(plan(facts(made.facts[HOST]["docker"]["containers"][NAME]), **desired)) == []
    assert shown(plan(facts(before), deepspeed_launch_vscode_extensions=[])) == []


def test_further_volumes_come_last_and_the_workspace_where_it_is() -> None:
    made = plan(facts(), workspace_path="/data/work", training_container_volumes=["/nfs:/nfs"])
    assert task_input(made)["settings"]["volumes"][2:] == ["/data/work:/workspace", "/nfs:/nfs"]


def test_no_label_has_the_environment() -> None:
    made = plan(facts(), training_container_environment={"HF_HOME": "/never-to-be-seen"})
    assert "never-to-be-seen" not in json.dumps(task_input(made)["make"])
    assert "never-to-be-seen" not in json.dumps(outcome(made, "", [ROLE])["document"])


# Where there is none


@pytest.mark.parametrize(
    ("of_cluster", "desired", "place"),
    [
        ({}, {}, "network lab"),
        ({"overlay": AT}, {}, "network lab, address 10.64.0.254"),
        ({"overlay": None}, HOST_NETWORK, "network host"),
    ],
)
def test_one_that_is_missing_is_made(of_cluster: Any, desired: Any, place: str) -> None:
    made = plan(facts(), cluster(**of_cluster), **desired)
    assert shown(made) == [("+", f"container {NAME}", None, f"image {IMAGE}, {place}")]
    assert drift_text(made.changes[0]) == f"container {NAME} is missing"
    address, found = "address" in place, task_input(made)
    hostname = "" if desired else NAME
    assert {name: value for name, value in found["make"].items() if name != "labels"} == {
        "name": NAME,
        "hostname": hostname,
        "swap": False,
        "restore": False,
        "others": [],
        "state": "present" if address else "started",
        "security_opts": ["no-new-privileges"],
    }
    assert found["connect"] == (["docker", "network", "connect", "--ip", "10.64.0.254", "lab", NAME] if address else [])
    assert found["start"] == (["docker", "start", NAME] if address else [])
    assert found["ready"] == run_inside(NAME, "ssh", "-o", "ConnectTimeout=5", HOST, "true")
    assert found["log"] == ["docker", "logs", "--tail", "5", NAME]
    assert (found["missing"], found["image_check"], found["ours"]) == ("", {}, False)


@pytest.mark.parametrize("path", FOLDERS)
@pytest.mark.parametrize("fact", [None, {"mode": "0777"}, {"owner": 1000}])
def test_the_folders_that_it_mounts_are_made_with_it(path: str, fact: dict[str, Any] | None) -> None:
    found = facts()
    found["files"][path] = dict(ABSENT) if fact is None else {**found["files"][path], **fact}
    made = plan(found)
    (folder, container) = made.changes
    assert (folder.what, container.what) == (path, f"container {NAME}")
    (entry,) = task_input(made)["folders"]
    assert (entry["path"], entry["mode"], entry["owner"]) == (path, FOLDERS[path], 0)
    assert made.facts[HOST]["files"][path]["mode"] == FOLDERS[path]
    # A folder alone is no reason to disturb a container.
    found["docker"]["containers"] = {NAME: running()}
    assert shown(plan(found)) == []


def test_an_image_that_is_not_there_is_named_when_the_container_is_made() -> None:
    made = plan(facts(docker={"images": {}}))
    assert made.refusals == ()  # the role training_image may bring it in this very run
    assert task_input(made)["missing"] == (
        f"gpu2: the image {IMAGE}, from which the container is created, is missing. Remedy: ansible-playbook site.yml "
        "--tags training_image,training_container"
    )


@pytest.mark.parametrize(
    ("desired", "checked"),
    [
        ({}, False),
        ({"training_image_dockerfile": "x"}, True),
        *(({"training_image_source": source}, True) for source in ("pull", "archive", "present", None)),
    ],
)
def test_which_images_are_checked_before_their_first_container(desired: dict[str, Any], checked: bool) -> None:
    requested = task_input(plan(facts(), **desired))["image_check"]
    assert bool(requested) is checked
    if checked:
        assert requested["argv"][:6] == [
            *("docker", "run", "--rm", "--network=none", "--pull=never", "--entrypoint=sh"),
        ]
        assert requested["argv"][6:8] == [IMAGE, "-c"] and "command -v ssh" in requested["argv"][8]
    # One that is as desired is not made, and nothing is searched.
    assert task_input(plan(facts(running(**desired)), **desired))["image_check"] == {}


def test_what_the_job_needs_is_searched_too() -> None:
    requested = task_input(plan(facts(), training_image_source="pull", deepspeed_launch_script="a.py"))["image_check"]
    assert "command -v deepspeed" in requested["argv"][-1] and "torchrun" not in requested["argv"][-1]
    job: dict[str, Any] = {"deepspeed_launch_script": "a.py", "deepspeed_launch_launcher": "torchrun"}
    requested = task_input(plan(facts(), training_image_source="pull", **job))["image_check"]
    assert "command -v torchrun" in requested["argv"][-1]


HCA = {"port": 1, "state": "active", "physical_state": "linkup", "rate_gbps": 400.0, "link_layer": "infiniband"}
WITH_HCA = {"fabric": {"infiniband": [{"name": "mlx5_0", "ports": [HCA], "gpu_distances": {}}]}}
ON_INFINIBAND = {"accelerator": "cuda", "rdma": {"link_layer": "infiniband", "reason": "every node has it"}}


@pytest.mark.parametrize(
    ("of_cluster", "desired", "asks"),
    [
        (ON_INFINIBAND, HOST_NETWORK, True),
        (ON_INFINIBAND, {}, False),  # an overlay carries no RDMA
        ({**ON_INFINIBAND, "accelerator": "cpu"}, HOST_NETWORK, False),
        ({"accelerator": "cuda"}, HOST_NETWORK, False),
        (ON_INFINIBAND, {**HOST_NETWORK, "nccl_env_environment": {"NCCL_IB_DISABLE": 1}}, False),
        (ON_INFINIBAND, {**HOST_NETWORK, "nccl_env_settings": {"NCCL_IB_DISABLE": "1"}}, False),
        (ON_INFINIBAND, {**HOST_NETWORK, "nccl_env_settings": {"NCCL_IB_HCA": ""}}, False),
    ],
)
def test_where_nccl_gets_hcas_the_image_needs_libibverbs(
    of_cluster: dict[str, Any], desired: dict[str, Any], asks: bool
) -> None:
    made = plan(facts(**WITH_HCA), cluster(**of_cluster), training_image_source="pull", **desired)
    requested = task_input(made)["image_check"]
    assert requested["job"]["rdma"] is asks
    assert ("libibverbs.so.1" in requested["argv"][-1]) is asks is ("libibverbs.d" in requested["argv"][-1])


# Where there is one


@pytest.mark.parametrize("availability", ["pause", "drain"])
def test_a_new_one_is_not_attached_to_the_overlay_of_a_drained_node(availability: str) -> None:
    of_node: dict[str, Any] = {"swarm_availability": availability}
    made = plan(facts(), **of_node)
    (refusal,) = made.refusals
    assert refusal.text == (
        f"swarm_availability is {availability}, and Docker attaches no new container to the overlay on such a node"
    )
    assert refusal.remedy == "leave it active until the container runs, and set it again then"
    assert shown(made) == [] and task_input(made)["make"] == NOTHING["make"]
    # One that runs goes on, and in the host's network there is nothing to attach.
    assert plan(facts(running()), **of_node).refusals == ()
    assert plan(facts(), **of_node, **HOST_NETWORK).refusals == ()


@pytest.mark.parametrize("desired", [{}, HOST_NETWORK, {"training_container_environment": {"A": "1"}}])
@pytest.mark.parametrize("overlay", [cluster()["overlay"], AT])
def test_one_that_is_as_desired_stays(desired: dict[str, Any], overlay: Any) -> None:
    of_cluster = cluster(overlay=overlay)
    made = plan(facts(running(of_cluster, **desired)), of_cluster, **desired)
    assert shown(made) == [] and made.refusals == () and not made.pending(ROLE, HOST)
    found = task_input(made)
    unused = ("missing", "image_check", "folders", "make", "connect", "start", "ready", "log")
    assert {name: found[name] for name in unused} == {name: NOTHING[name] for name in unused}
    assert found["ours"] and found["settings"]["image"] == IMAGE


@pytest.mark.parametrize(
    ("desired", "of_cluster", "what", "before", "after"),
    [
        ({"training_container_shm_size": "8g"}, {}, "shm_size", "32g", "8g"),
        ({"training_container_ipc_mode": "host"}, {}, "ipc_mode", "", "host"),
        ({"training_container_capabilities": []}, {}, "capabilities", ["IPC_LOCK", "SYS_NICE"], []),
        ({"training_container_restart_policy": "no"}, {}, "restart_policy", "unless-stopped", "no"),
        ({}, {"overlay": AT}, "address", None, "10.64.0.254"),
        ({}, CUDA, "device_requests", [], BY_CDI),
    ],
)
def test_a_setting_that_differs_is_named_and_the_container_is_made_again(
    desired: Any, of_cluster: Any, what: str, before: Any, after: Any
) -> None:
    made = plan(facts(running()), cluster(**of_cluster), **desired)
    sign = "+" if before is None else "~"
    assert shown(made) == [(sign, f"{what} of container {NAME}", before, after), AGAIN]
    assert made.changes[-1].why == what
    make = task_input(made)["make"]
    assert (make["name"], make["swap"], make["restore"], make["state"]) == (f"{NAME}.new", True, True, "present")
    assert task_input(made)["start"] == [] and made.missing_consents == []
    assert task_input(made)["connect"][-1:] in ([], [f"{NAME}.new"])


def test_an_address_that_is_given_up_is_named() -> None:
    made = plan(facts(running(cluster(overlay=AT))))
    assert shown(made) == [("-", f"address of container {NAME}", "10.64.0.254", None), AGAIN]


def test_of_another_image_of_the_same_name_the_id_is_shown() -> None:
    made = plan(facts(running(), docker={"images": {IMAGE: OTHER}}))
    assert shown(made) == [("~", f"image id of container {NAME}", ID, OTHER), AGAIN]
    made = plan(facts(running(), docker={"images": {"train:2": OTHER}}), cluster(image="train:2"))
    assert shown(made) == [("~", f"image of container {NAME}", IMAGE, "train:2"), AGAIN]


@pytest.mark.parametrize("state", ["created", "exited"])
@pytest.mark.parametrize("suffix", [".new", ".old"])
def test_what_an_interrupted_run_has_left_is_removed_and_what_others_made_is_not(suffix: str, state: str) -> None:
    beside = NAME + suffix
    found = facts(running())
    found["docker"]["containers"][beside] = {**running(), "state": state}
    made = plan(found)
    assert shown(made) == [("-", f"container {beside}", state, None)]
    assert task_input(made)["left"] == [beside] and task_input(made)["make"] == {} and made.missing_consents == []
    assert list(made.facts[HOST]["docker"]["containers"]) == [NAME]
    again = plan(found, training_container_shm_size="8g")
    assert shown(again)[-2:] == [AGAIN, ("-", f"container {beside}", state, None)]
    assert list(again.facts[HOST]["docker"]["containers"]) == [NAME]
    # Of somebody who gave it this name.
    found["docker"]["containers"][beside] = {"state": state, "labels": {}, "addresses": {}}
    (refusal,) = plan(found).refusals
    assert refusal.text == f"the container {beside} exists, but this collection did not create it"
    assert task_input(plan(found))["left"] == []


def test_the_container_of_another_name_of_the_host_goes_once_the_new_one_runs() -> None:
    """Left there, it would keep its place in the overlay network, whose removal then fails for ever."""
    found = facts(None, docker={"containers": {"lab-gpu9": running()}})
    made = plan(found)
    assert [(one[0], one[1]) for one in shown(made)] == [("+", f"container {NAME}"), ("-", "container lab-gpu9")]
    make = task_input(made)["make"]
    assert (make["name"], make["swap"], make["restore"], make["others"]) == (f"{NAME}.new", True, True, ["lab-gpu9"])
    assert task_input(made)["left"] == ["lab-gpu9"] and list(made.facts[HOST]["docker"]["containers"]) == [NAME]
    assert made.missing_consents == [] and not plan(made.facts[HOST]).changes
    beside = facts(running(), docker={"containers": {NAME: running(), "lab-gpu9": running()}})
    assert (
        shown(plan(beside)) == [("-", "container lab-gpu9", "running", None)] and not task_input(plan(beside))["make"]
    )


def test_a_job_in_it_is_not_cut_off_without_consent() -> None:
    found = facts(None, docker={"containers": {"lab-gpu9": running()}}, jobs={"digits": "running"})
    (missing,) = plan(found).missing_consents
    assert missing.what == "container lab-gpu9"
    assert missing.consent is not None and missing.consent.effect == (
        "container lab-gpu9 must be removed, which cuts off job digits in it"
    )
    assert plan(found, training_container_allow_recreate=True).missing_consents == []


@pytest.mark.parametrize("label", ["swarmspeed.cluster", "swarmspeed.spec"])
def test_containers_of_other_clusters_and_of_others_stay(label: str) -> None:
    other = running()
    other["labels"] = {**other["labels"], label: "other"}
    if label == "swarmspeed.spec":
        del other["labels"][label]
    found = facts(running(), docker={"containers": {NAME: running(), "lab-gpu9": other}})
    assert shown(plan(found)) == [] and task_input(plan(found))["left"] == []


@pytest.mark.parametrize("images", [{}, {IMAGE: "(known after apply)"}])
def test_an_image_that_is_to_come_is_compared_once_it_is_there(images: dict[str, str]) -> None:
    assert shown(plan(facts(running(), docker={"images": images}))) == []


def test_another_environment_is_not_shown() -> None:
    there = running(training_container_environment={"A": "never-to-be-seen"})
    made = plan(facts(there), training_container_environment={"A": "nor-this"})
    (change, again) = made.changes
    assert change.what == f"environment of container {NAME}" and again.why == "environment"
    assert isinstance(change.before, Sealed) and isinstance(change.after, Sealed)
    text = json.dumps(outcome(made, "", [ROLE])["document"]) + outcome(made, "", [ROLE])["text"]
    assert "never" not in text and "nor-this" not in text and "(a secret) → (another secret)" in text


@pytest.mark.parametrize("label", [None, "", "no JSON", "[]", "[" * 100_000, "null"])
def test_one_without_a_readable_list_of_its_settings_is_compared_by_its_hash(label: str | None) -> None:
    there = running()
    there["labels"].pop(SETTINGS_LABEL)
    if label is not None:
        there["labels"][SETTINGS_LABEL] = label
    assert shown(plan(facts(there))) == []
    made = plan(facts(there), training_container_shm_size="8g")
    (change, again) = made.changes
    assert change.what == f"settings of container {NAME}" and change.before == f"hash {there['labels'][HASH_LABEL]}"
    assert (again.what, again.why) == (f"container {NAME}", "settings")


def test_the_hash_decides_and_not_the_list_of_settings() -> None:
    """Whoever is root on a node can write a label."""
    there = running(training_container_shm_size="8g")
    there["labels"][SETTINGS_LABEL] = running()["labels"][SETTINGS_LABEL]
    assert len(plan(facts(there)).changes) == 2
    there = running()
    there["labels"][SETTINGS_LABEL] = running(training_container_shm_size="8g")["labels"][SETTINGS_LABEL]
    assert shown(plan(facts(there))) == []


@pytest.mark.parametrize("state", ["exited", "created", "paused", "restarting", "dead", None])
def test_one_that_does_not_run_is_made_again_whatever_ran_in_it(state: str | None) -> None:
    made = plan(facts({**running(), "state": state, "addresses": {}}, jobs={"digits": "running"}))
    assert shown(made) == [("~", f"container {NAME}", state or "unknown", "running")]
    assert made.missing_consents == [] and task_input(made)["make"]["swap"] is True
    if state:
        assert drift_text(made.changes[0]) == f"container {NAME} is {state}, but should be running"


def test_one_that_was_cut_off_from_its_network_is_made_again() -> None:
    made = plan(facts({**running(), "addresses": {"bridge": "172.17.0.2"}}))
    assert shown(made) == [("+", f"network lab of container {NAME}", None, True), AGAIN]
    assert drift_text(made.changes[0]) == f"network lab of container {NAME} is missing"
    # The network that is desired is another one.
    made = plan(facts(running()), overlay_network_name="net")
    assert shown(made) == [("~", f"network of container {NAME}", "lab", "net"), AGAIN]


@pytest.mark.parametrize(("there", "differs"), [("10.64.0.9", True), ("10.64.0.254", False), (None, False)])
def test_one_at_another_address_than_it_was_given_is_made_again(there: str | None, differs: bool) -> None:
    of_cluster = cluster(overlay=AT)
    made = plan(facts({**running(of_cluster), "addresses": {"lab": there}}), of_cluster)
    assert shown(made) == ([("~", f"address of container {NAME}", there, "10.64.0.254"), AGAIN] if differs else [])
    # Given by the swarm, it is another one after each restart.
    assert shown(plan(facts({**running(), "addresses": {"lab": there}}))) == []


# What is refused, and what needs consent


@pytest.mark.parametrize(
    "labels", [{}, {"swarmspeed.cluster": "lab"}, {"swarmspeed.cluster": "other", HASH_LABEL: "1"}, {HASH_LABEL: "1"}]
)
def test_a_container_of_somebody_else_is_refused_and_left_alone(labels: dict[str, str]) -> None:
    made = plan(facts({**running(), "labels": labels}))
    (refusal,) = made.refusals
    assert refusal.sentence == (
        f"the container {NAME} exists, but this collection did not create it. Remedy: rename or remove it, or choose "
        "another cluster_name"
    )
    assert shown(made) == [] and task_input(made)["make"] == {} and task_input(made)["ours"] is False


JOBS = {"digits": "running", "old": "failed", "next": "starting"}


@pytest.mark.parametrize("consent", [False, True])
@pytest.mark.parametrize(
    ("desired", "there"), [({"training_container_shm_size": "8g"}, {}), ({}, {"addresses": {}}), ({}, {})]
)
def test_a_running_job_keeps_its_container_without_consent(desired: Any, there: Any, consent: bool) -> None:
    given_consent: dict[str, Any] = {"training_container_allow_recreate": consent}
    made = plan(facts({**running(), **there}, jobs=JOBS), **desired, **given_consent)
    different = bool(desired or there)
    assert [change.what for change in made.missing_consents] == (
        [f"container {NAME}"] if different and not consent else []
    )
    if different:
        assert consent_text(made.changes[-1]) == (
            f"container {NAME} must be re-created, which cuts off job digits, next in it. Remedy: set "
            "training_container_allow_recreate: true to allow it, or wait for the job, or stop it"
        )


def test_a_job_that_has_ended_keeps_nothing() -> None:
    made = plan(facts(running(), jobs={"old": "failed"}), training_container_shm_size="8g")
    assert made.missing_consents == [] and made.changes[-1].consent is None


# The image, where the role is applied alone


@pytest.mark.parametrize(
    ("desired", "container", "image"),
    [
        ({"training_image_source": None}, None, ""),
        ({"training_image_source": "build", "training_image_name": "x:1"}, None, ""),
        ({"training_image_source": "present", "training_image_name": "team/train"}, None, "team/train:latest"),
        ({"training_image_source": "pull", "training_image_name": "reg:5000/train"}, None, "reg:5000/train:latest"),
        ({"training_image_source": "pull", "training_image_name": "reg:5000/train:2"}, None, "reg:5000/train:2"),
        ({"training_image_source": None}, running(), IMAGE),
        ({"training_image_source": None}, {**running(), "image": ID}, IMAGE),
    ],
)
def test_alone_the_image_is_the_one_that_is_named_or_that_the_container_has(
    desired: Any, container: Any, image: str
) -> None:
    made = plan(facts(container), cluster(image=""), **desired)
    assert task_input(made)["settings"]["image"] == image
    assert [one.text.partition(",")[0] for one in made.refusals] == (
        [] if image else ["the name of the training image is unknown; the role training_image determines it"]
    )
    if container:
        assert shown(made) == []


# Where the role does not apply


@pytest.mark.parametrize(
    ("of_cluster", "desired"), [({}, {"deepspeed_launch_runtime": "host"}), ({"underlay": {}}, {})]
)
def test_where_it_does_not_apply_nothing_is_planned(of_cluster: Any, desired: Any) -> None:
    for container, ours in ((None, False), (running(), True), ({"state": "running", "labels": {}}, False)):
        made = plan(facts(container), cluster(**of_cluster), **desired)
        assert shown(made) == [] and made.refusals == ()
        assert task_input(made) == {**NOTHING, "name": NAME, "ours": ours}  # what teardown removes


def three(found: dict[str, Any], **desired: Any) -> Any:
    known = {host: copy.deepcopy(found) for host in HOSTS}
    return fold(
        [TrainingContainerPlanner()], known, {host: {**ROLE_VARS, **desired} for host in known}, Inputs(cluster())
    )


def test_what_must_be_tried_live_is_the_overlay_between_all_hosts() -> None:
    made = three(facts())
    reach = {"containers": {host: f"lab-{host}" for host in HOSTS}, "port": 2222}
    assert [made.task_inputs[host][ROLE]["reach"] for host in HOSTS] == [reach] * 3
    assert three(facts(), ssh_trust_port=22022).task_inputs[HOST][ROLE]["reach"]["port"] == 22022
    assert three(facts(), **HOST_NETWORK).task_inputs[HOST][ROLE]["reach"] == {}
    assert task_input(plan(facts()))["reach"] == {}  # one node reaches no other


def test_whether_they_reached_one_another_when_facts_were_gathered() -> None:
    done, cut = {"stage": "done", "error": ""}, {"stage": "connect", "error": "No route to host"}

    def reached(changed: Any = (), **found: Any) -> list[bool]:
        whole = three(facts()).facts
        gathered = {host: {**whole[host], "reach": found.get(host, dict.fromkeys(HOSTS, done))} for host in HOSTS}
        gathered[HOST].update(changed)
        made = fold([TrainingContainerPlanner()], gathered, dict.fromkeys(HOSTS, ROLE_VARS), Inputs(cluster()))
        return [made.task_inputs[host][ROLE]["reached"] for host in HOSTS]

    assert reached() == [True] * 3
    assert reached(**{HOST: {**dict.fromkeys(HOSTS, done), HOSTS[0]: cut}}) == [False] * 3
    # After a change it is not tested where facts are gathered again; and what is to be changed is tested afterwards.
    assert reached(**{HOSTS[0]: {}}) == [False] * 3
    assert reached(facts(None)) == [False] * 3


def test_a_network_that_is_replaced_takes_its_containers_along() -> None:
    names = {
        name: load("overlay_network/defaults/main.yml").get(name) for name in load("overlay_network/defaults/main.yml")
    }
    role_vars = {**ROLE_VARS, **names, "overlay_network_name": "lab", "overlay_network_allow_recreate": True}
    found = facts(running(), jobs={"digits": "running"})
    swarm = {"state": "active", "manager": True}
    network = {"driver": "overlay", "attachable": True, "subnets": ["10.99.0.0/24"], "options": {}, "labels": {}}
    found["docker"] |= {"swarm": swarm, "networks": {"lab": network}}
    of_cluster = cluster(hosts=[HOST])
    planners: list[Planner] = [OverlayNetworkPlanner(), TrainingContainerPlanner()]
    made = fold(planners, {HOST: found}, {HOST: role_vars}, Inputs(of_cluster))
    assert ("+", f"network lab of container {NAME}", None, True) in shown(made) and shown(made)[-1] == AGAIN
    assert {change.role for change in made.missing_consents} == {"overlay_network", ROLE}


# On the facts afterwards nothing is planned


containers = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "state": st.sampled_from(["running", "exited", "created", None]),
            "image": st.sampled_from([IMAGE, ID, "other:1"]),
            "image_id": st.sampled_from([ID, OTHER, None]),
            "labels": st.fixed_dictionaries(
                {"swarmspeed.cluster": st.just("lab"), HASH_LABEL: st.text(max_size=4)},
                optional={SETTINGS_LABEL: st.sampled_from(["", "{}", '{"image":"a"}', '{"shm_size":null}', "[1]"])},
            ),
            "addresses": st.dictionaries(
                st.sampled_from(["lab", "host", "bridge"]), st.sampled_from([None, "10.0.0.1"])
            ),
        }
    ),
)
role_vars = st.fixed_dictionaries(
    {},
    optional={
        "training_container_shm_size": st.sampled_from(["auto", "1g"]),
        "training_container_environment": st.dictionaries(st.sampled_from("AB"), st.text(max_size=2), max_size=2),
        "cluster_network_mode": st.sampled_from(["overlay", "host"]),
        "training_image_source": st.sampled_from(["build", "pull"]),
        "workspace_path": st.just("/data"),
    },
)


@settings(max_examples=examples(400))
@given(
    container=containers,
    desired=role_vars,
    overlay=st.sampled_from([AT, cluster()["overlay"]]),
    images=st.sampled_from([{}, {IMAGE: ID}, {IMAGE: OTHER}]),
    jobs=st.dictionaries(st.just("a"), st.sampled_from(["running", "failed"])),
    files=st.sampled_from([{}, facts()["files"]]),
)
def test_afterwards_nothing_is_left(
    *, container: Any, desired: Any, overlay: Any, images: Any, jobs: Any, files: Any
) -> None:
    found = facts(container, docker={"images": images}, jobs=jobs, files=files)
    before = copy.deepcopy(found)
    made = plan(found, cluster(overlay=overlay), **desired)
    assert found == before
    assert made.refusals == ()
    assert bool(made.changes) is bool(task_input(made)["make"])
    again = plan(made.facts[HOST], cluster(overlay=overlay), **desired)
    assert shown(again) == []
    # What is planned is what a second plan from the same facts says, too.
    assert shown(plan(copy.deepcopy(found), cluster(overlay=overlay), KEY, **desired)) == shown(made)


def test_nothing_is_guessed_of_a_host_whose_engine_is_started_first() -> None:
    found = facts()
    assert shown(plan(found)) != []
    found["docker"]["unseen"] = True
    assert shown(plan(found)) == [] and "make" not in {key for key, value in task_input(plan(found)).items() if value}
