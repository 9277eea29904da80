# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The job as a resource: names, specification, states, decisions and what a console shows."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import hider
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import resource
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from hypothesis import given
from hypothesis import strategies as st

# Invented, cut to the keys that are read (engine API 1.41, GET /containers/ID/json).
INSPECTED = {
    "Id": "abc",
    "State": {"StartedAt": "t0", "Running": True, "Restarting": False},
    "Mounts": [
        {"Type": "bind", "Source": "/srv/x", "Destination": "/srv"},
        {"Type": "bind", "Source": "/srv/c/jobs", "Destination": "/jobs"},
    ],
}
PAIR: list[dict[str, Any]] = [
    {"name": "gpu1", "address": "c-gpu1", "slots": [0, 1]},
    {"name": "gpu2", "address": "c-gpu2", "slots": [0]},
]
GOOD: dict[str, Any] = {
    "command": ["deepspeed", "t.py"],
    "chdir": "/workspace",
    "environment": {"A": 1},
    "world_size": 3,
    "nodes": 2,
    "fingerprint": {},
    "ds_config": None,
}


@pytest.mark.parametrize("name", ["digits", "a", "llama-3.1_sft", "0", "a" * 63])
def test_good_names(name: str) -> None:
    resource.check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "A", "a/b", "a b", "a\n", "a" * 64, "ä"])
def test_bad_names(name: str) -> None:
    with pytest.raises(JobError, match=r"is not a name for a job\. Use 1 to 63 of"):
        resource.check_name(name)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"command": []}, "command: empty"),
        ({"command": [" "]}, "command: empty"),
        ({"world_size": 1}, "world_size 1 and nodes 2 do not fit"),
        ({"nodes": 0}, "world_size 3 and nodes 0 do not fit"),
        ({"chdir": "work"}, "chdir: 'work' is not absolute"),
        ({"ds_config": "ds_config.json"}, "ds_config: 'ds_config.json' is not absolute. Give a path as the container"),
        ({"environment": {"A=B": "1"}}, "'A=B' cannot be the name of a variable"),
        ({"environment": {"A": ["s3cret"]}}, "environment: A must be text or a number"),
        ({"environment": {"A": None}}, "environment: A must be text or a number"),
        (
            {"members": [{"name": "a", "address": "a", "slots": []}]},
            "members: a needs a name, an address, and one slot",
        ),
        ({"members": PAIR + PAIR}, "members: gpu1, gpu2 is there more than once."),
        ({"members": PAIR[:1]}, "members: 1 node(s) with 2 slot(s) are not the 2 node(s) and 3 rank(s)"),
        ({"members": PAIR}, "secret_file: give the path of a file that every node of the job has, and no one else."),
        (
            {"launcher": "per_node", "transport": "direct"},
            "members: launcher per_node needs the nodes of the job, for MASTER_ADDR. Give",
        ),
        (
            {"launcher": "torchrun"},
            "transport: pdsh starts DeepSpeed's launcher only. Launcher torchrun needs transport",
        ),
        (
            {"members": PAIR, "environment": {"HF_TOKEN": "x"}},
            "environment: HF_TOKEN looks like a secret, and transport",
        ),
        ({"members": PAIR, "environment": {"A": "$HOME"}}, "environment: A has a character that the shell behind pdsh"),
    ],
)
def test_bad_specifications(change: dict[str, Any], says: str) -> None:
    with pytest.raises(JobError) as caught:
        resource.build_spec(**{**GOOD, **change})
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_specification() -> None:
    usual: dict[str, Any] = {"launcher": "deepspeed", "transport": "pdsh", "runtime": "container", "members": []}
    usual.update(dict.fromkeys(("secret_file", "visible_devices", "env_file")))
    assert resource.build_spec(**GOOD) == {**usual, **GOOD, "environment": {"A": "1"}}
    made = resource.build_spec(
        **{**GOOD, "members": PAIR, "secret_file": "/k", "transport": "direct", "launcher": "torchrun"}
    )
    assert (made["members"], made["launcher"]) == (PAIR, "torchrun")


keys = st.text("abc", min_size=1, max_size=3)


@given(st.dictionaries(keys, st.dictionaries(keys, st.text(max_size=5))))
def test_the_hash_does_not_depend_on_order_but_on_every_value(spec: dict[str, Any]) -> None:
    turned = {key: dict(reversed(list(value.items()))) for key, value in reversed(list(spec.items()))}
    assert resource.spec_hash(turned) == resource.spec_hash(spec)
    assert resource.spec_hash({**spec, "zz": 1}) != resource.spec_hash(spec)


def test_changed_keys_name_what_differs_and_no_value() -> None:
    old = {"command": ["a"], "environment": {"K": "s3cret", "L": "1"}, "fingerprint": {"image": 1, "x": 2}, "nodes": 1}
    new = {"command": ["b"], "environment": {"K": "other", "L": "1"}, "fingerprint": {"image": 3, "x": 2}, "nodes": 1}
    assert resource.changed_keys(old, new) == ["command", "environment.K", "fingerprint.image"]
    assert resource.changed_keys(old, old) == []


def test_container() -> None:
    found = Container.parse(INSPECTED)
    assert (found.id, found.started_at, found.running) == ("abc", "t0", True)
    assert found.source_of("/jobs") == "/srv/c/jobs"
    assert found.source_of("/srv/deep/jobs") == "/srv/x/deep/jobs"
    assert found.source_of("/jobsite") is None


RUNNING = {
    "state": "running",
    "container": "c",
    "container_id": "abc",
    "container_started_at": "t0",
    "heartbeat": 100.0,
}


@pytest.mark.parametrize(
    ("recorded", "container", "now", "state", "says"),
    [
        ({}, None, 0, "absent", ""),
        ({"state": "failed", "reason": "x"}, None, 0, "failed", "x"),
        (RUNNING, Container("abc", "t0", True, {}), 130, "running", ""),
        ({**RUNNING, "state": "starting"}, Container("abc", "t0", True, {}), 101, "starting", ""),
        (
            RUNNING,
            Container("abc", "t0", True, {}),
            131,
            "lost",
            "no sign of life from its supervisor in container c for 31 s",
        ),
        (RUNNING, None, 101, "lost", "the container c it ran in is gone"),
        (RUNNING, Container("new", "t0", True, {}), 101, "lost", "is gone"),
        (RUNNING, Container("abc", "t1", True, {}), 101, "lost", "was stopped or restarted"),
        (RUNNING, Container("abc", "t0", False, {}), 101, "lost", "was stopped or restarted"),
    ],
)
def test_current_state(
    recorded: dict[str, Any], container: Container | None, now: float, state: str, says: str
) -> None:
    found, reason = resource.current_state(recorded, container, now)
    assert found == state
    assert says in reason
    assert bool(reason) == bool(says)


@pytest.mark.parametrize(
    ("wanted", "state", "same", "rerun", "todo"),
    [
        ("started", "absent", False, False, "start"),
        ("started", "running", True, False, "none"),
        ("started", "starting", True, True, "none"),
        ("started", "running", False, True, "refuse"),
        ("started", "starting", False, False, "refuse"),
        ("started", "succeeded", True, False, "none"),
        ("started", "succeeded", True, True, "start"),
        ("started", "succeeded", False, False, "start"),
        ("started", "failed", True, False, "start"),
        ("started", "stopped", True, False, "start"),
        ("started", "lost", True, False, "start"),
        ("started", "lost", False, False, "start"),
        ("stopped", "running", True, False, "stop"),
        ("stopped", "lost", True, False, "stop"),
        ("stopped", "succeeded", True, True, "none"),
        ("stopped", "stopped", True, False, "none"),
        ("stopped", "absent", True, False, "none"),
        ("absent", "running", True, False, "remove"),
        ("absent", "failed", True, False, "remove"),
        ("absent", "absent", True, True, "none"),
    ],
)
def test_plan(wanted: str, state: str, same: bool, rerun: bool, todo: str) -> None:
    assert resource.plan(wanted, state, same, rerun) == todo


def test_secrets_are_hidden_and_nothing_else() -> None:
    hide = hider(
        {"HF_TOKEN": "hf_abcdef", "WANDB_API_KEY": "hf_abcdefghi", "TOKENIZERS_PARALLELISM": "false", "X_KEY": "1"}
    )
    assert hide("a hf_abcdefghi b hf_abcdef false 1") == "a ******** b ******** false 1"


@given(st.binary(max_size=60), st.booleans(), st.integers(1, 60))
def test_whole_lines(data: bytes, ended: bool, limit: int) -> None:
    data = data[:limit]
    found = resource.whole_lines(data, ended, limit)
    assert data.startswith(found)
    if len(data) == limit:
        assert found  # a full window always moves on
    elif ended:
        assert found == data
    else:
        assert found == b"" or found[-1:] in (b"\n", b"\r")


def test_explain_is_one_message() -> None:
    job = {"name": "digits", "state": "failed", "reason": "rank 1 on lab2 ended.", "failed_node": "lab2"}
    assert resource.explain(job, "lab1", "/l") == "Training job digits failed: rank 1 on lab2 ended. Log: lab1:/l"
    job["reason"] = "bang"
    assert resource.explain(job, "lab1", "/l") == "Training job digits failed on lab2: bang. Log: lab1:/l"
    lost = {"name": "digits", "state": "lost", "reason": ""}
    assert resource.explain(lost, "lab1", "/l") == "Training job digits was lost: no reason is known. Log: lab1:/l"
