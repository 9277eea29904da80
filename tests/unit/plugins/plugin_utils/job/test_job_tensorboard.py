# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The container of TensorBoard, and how one gets to it. What the engine says is made up after its API."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.tensorboard import FilterModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.tensorboard import board, tunnel
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

ID = f"sha256:{'ab' * 32}"
REQUESTED: dict[str, Any] = {
    "host": "gpu1",
    "cluster": "lab",
    "runtime": "container",
    "state": "present",
    "port": 6006,
    "logdir": "/workspace",
}
MOUNTS: list[dict[str, Any]] = [
    {"Type": "bind", "Source": "/srv/lab/etc", "Destination": "/etc/swarmspeed"},
    {"Type": "bind", "Source": "/srv/lab/jobs", "Destination": "/jobs"},
    {"Type": "bind", "Source": "/srv/lab/workspace", "Destination": "/workspace"},
    {"Type": "bind", "Source": "/big/runs", "Destination": "/workspace/runs"},
    {"Type": "volume", "Name": "data", "Source": "/var/lib/docker/volumes/data/_data", "Destination": "/data"},
    {"Type": "bind", "Source": "/var/run/docker.sock", "Destination": "/var/run/docker.sock"},
]
TRAINING: dict[str, Any] = {"Image": ID, "Mounts": MOUNTS}


def requested(**change: Any) -> dict[str, Any]:
    return {**REQUESTED, **change}


def served(running: bool = True, labels: dict[str, str] | None = None, **change: Any) -> dict[str, Any]:
    """What the engine says of the container that was made as requested."""
    made = board(requested(**change), TRAINING, {})["settings"]
    about = {"Labels": made["labels"] if labels is None else labels, "Cmd": made["command"]}
    return {"Config": about, "State": {"Running": running}}


def test_the_container() -> None:
    found = board(REQUESTED, TRAINING, {})
    labels = found["settings"].pop("labels")
    assert found == {
        "name": "lab.tensorboard",
        "problem": "",
        "exists": False,
        "same": False,
        "holds_port": False,
        "settings": {
            "image": ID,
            "entrypoint": ["python3", "-m", "tensorboard.main"],
            "command": [
                *("--logdir", "/workspace", "--host", "127.0.0.1", "--port", "6006"),
                *("--reload_interval", "30", "--load_fast=false"),
            ],
            "volumes": ["/srv/lab/workspace:/workspace:ro", "/big/runs:/workspace/runs:ro"],
        },
    }
    assert labels["swarmspeed.cluster"] == "lab" and len(labels["swarmspeed.tensorboard"]) > 10


@pytest.mark.parametrize(
    ("logdir", "volumes"),
    [
        ("/workspace/runs/a", ["/big/runs:/workspace/runs:ro"]),
        ("/workspace/other", ["/srv/lab/workspace:/workspace:ro"]),
        ("/data/", ["data:/data:ro"]),
        ("/jobs", ["/srv/lab/jobs:/jobs:ro"]),
    ],
)
def test_it_has_the_folder_of_the_logs_alone(logdir: str, volumes: list[str]) -> None:
    assert board(requested(logdir=logdir), TRAINING, {})["settings"]["volumes"] == volumes


def test_a_second_run_finds_the_same() -> None:
    found = board(REQUESTED, TRAINING, served())
    assert (found["exists"], found["same"], found["holds_port"]) == (True, True, True)


@pytest.mark.parametrize(
    ("existing", "training", "holds"),
    [
        (served(running=False), TRAINING, False),
        (served(port=6007), TRAINING, False),
        (served(logdir="/data"), TRAINING, True),
        (served(), {**TRAINING, "Image": f"sha256:{'cd' * 32}"}, True),
        (served(), {**TRAINING, "Mounts": MOUNTS[:3]}, True),
    ],
)
def test_one_that_differs_is_made_again(existing: dict[str, Any], training: dict[str, Any], holds: bool) -> None:
    found = board(REQUESTED, training, existing)
    assert (found["problem"], found["exists"], found["same"], found["holds_port"]) == ("", True, False, holds)


def test_absent() -> None:
    for existing in (served(), served(running=False), {}):
        found = board(requested(state="absent", port="x"), {}, existing)
        assert (found["problem"], found["exists"], found["settings"]) == ("", bool(existing), {})


FOREIGN = (
    "gpu1: the container lab.tensorboard exists, but this collection did not create it. Remedy: rename or remove it."
)
PLACES = "/data, /jobs, /var/run/docker.sock, /workspace, /workspace/runs"


@pytest.mark.parametrize(
    ("change", "training", "existing", "problem"),
    [
        ({}, TRAINING, served(labels={}), FOREIGN),
        ({}, TRAINING, served(labels={"swarmspeed.cluster": "lab"}), FOREIGN),
        ({"state": "absent"}, {}, served(labels={"swarmspeed.tensorboard": "x"}), FOREIGN),
        ({"state": "gone"}, TRAINING, {}, "gpu1: tensorboard_state: 'gone' is neither present nor absent."),
        ({"port": 80}, TRAINING, {}, "gpu1: tensorboard_port: '80' is not a port from 1024 to 65535."),
        ({"port": "6006x"}, TRAINING, {}, "gpu1: tensorboard_port: '6006x' is not a port from 1024 to 65535."),
        (
            {"logdir": "runs"},
            TRAINING,
            {},
            "gpu1: tensorboard_logdir: 'runs' is not an absolute path without a colon, as the containers see it.",
        ),
        (
            {"logdir": "/workspace/../etc/swarmspeed"},
            TRAINING,
            {},
            "gpu1: tensorboard_logdir: '/workspace/../etc/swarmspeed' is not an absolute path without a colon, as the"
            " containers see it.",
        ),
        (
            {"runtime": "host"},
            {},
            {},
            "gpu1: deepspeed_launch_runtime is host, but TensorBoard is served from a container. Remedy: start it there"
            " by hand, in the environment of the ranks: python3 -m tensorboard.main --host 127.0.0.1 --logdir FOLDER.",
        ),
        (
            {},
            {},
            {},
            "gpu1: there is no container lab-gpu1, whose image TensorBoard needs. Remedy: site.yml creates it.",
        ),
        *(
            (
                {"logdir": logdir},
                TRAINING,
                {},
                f"gpu1: tensorboard_logdir: {logdir} is not on a mount of container lab-gpu1, so logs there would "
                "not persist."
                f" Mounts are {PLACES}. Remedy: name a folder below one of them.",
            )
            for logdir in ("/root/runs", "/etc/swarmspeed", "/etc/swarmspeed/ssh", "/")
        ),
        (
            {},
            {"Mounts": MOUNTS, "Image": "--privileged"},
            {},
            "gpu1: the engine does not report the image of its training container. Remedy: site.yml.",
        ),
    ],
)
def test_why_it_cannot_be_served(
    change: dict[str, Any], training: dict[str, Any], existing: dict[str, Any], problem: str
) -> None:
    found = board(requested(**change), training, existing)
    assert found["problem"] == problem
    assert not found["settings"] and not found["same"]


@pytest.mark.parametrize(
    ("reached", "lines"),
    [
        ({}, ["Run ssh -N -L 6006:127.0.0.1:6006 gpu1"]),
        (
            {"address": "10.1.0.4", "user": "admin", "port": 2200, "key": "~/my keys/id"},
            ["Run ssh -N -L 6006:127.0.0.1:6006 -p 2200 -i '~/my keys/id' admin@10.1.0.4"],
        ),
    ],
)
def test_how_one_gets_there(reached: dict[str, Any], lines: list[str]) -> None:
    assert tunnel("gpu1", reached, 6006) == [*lines, "and open http://127.0.0.1:6006."]
    assert tunnel("gpu1", {"connection": "local"}, 6006) == ["Open http://127.0.0.1:6006 on gpu1."]


@settings(max_examples=examples(200), deadline=None)
@given(address=st.text(min_size=1, max_size=20).filter(str.strip), user=st.text(max_size=8))
def test_what_is_printed_is_one_command(address: str, user: str) -> None:
    first = tunnel("gpu1", {"address": address, "user": user}, 6006)[0]
    assert shlex.split(first)[1:] == [
        "ssh",
        "-N",
        "-L",
        "6006:127.0.0.1:6006",
        f"{user}@{address}" if user else address,
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(200), deadline=None)
@given(key=st.sampled_from(["Image", "Mounts", "Config", "State"]), value=JSON)
def test_whatever_the_engine_says_is_a_plan_or_a_problem(key: str, value: Any) -> None:
    found = board(REQUESTED, {**TRAINING, key: value}, {**served(), key: value})
    assert found["problem"] or all(volume.count(":") == 2 for volume in found["settings"]["volumes"])


def test_the_filters_answer() -> None:
    filters = FilterModule().filters()
    plan = filters["tensorboard_plan"]
    assert plan(REQUESTED, {"container": TRAINING}, {"skipped": True})["problem"] == ""
    assert plan(requested(state="absent"), {"skipped": True}, {"container": None})["exists"] is False
    assert filters["ssh_tunnel"]({}, "gpu1", "6006")[-1] == "and open http://127.0.0.1:6006."
    with pytest.raises(AnsibleFilterError, match=r"The engine could not be asked: no such socket\. Remedy: site\.yml"):
        plan(REQUESTED, {"failed": True, "msg": "no such\nsocket"}, {})
    with pytest.raises(AnsibleFilterError, match="this is not what docker_container_info returned"):
        plan(REQUESTED, None, {})
