# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The summary of a run: nothing secret in it, nothing that is not JSON, and every key always there."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import hider
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.summary import (
    FIGURES,
    LONGEST,
    clean,
    seconds_of,
    shown_spec,
    since,
    summary,
)

from tests.effort import examples

SPEC: dict[str, Any] = {
    "command": ["deepspeed", "train.py", "--key", "hf_s3cret"],
    "environment": {"HF_TOKEN": "hf_s3cret", "GLOO_SOCKET_IFNAME": "eth7"},
    "fingerprint": {"image": "sha256:1", "workspace": {f"file{number}": "0" * 64 for number in range(LONGEST + 1)}},
    "world_size": 2,
}
STATE: dict[str, Any] = {
    "name": "digits",
    "run": 3,
    "attempt": 2,
    "state": "failed",
    "reason": "it printed hf_s3cret",
    "spec_hash": "abc",
    "exit_code": 1,
    "started_at": "2026-11-22T10:00:00Z",
    "finished_at": "2026-11-22T10:01:30Z",
    "world_size_expected": 2,
    "world_size_seen": 2,
    "nodes_expected": 2,
    "nodes_seen": 1,
    "members": [{"name": "gpu1", "slots": [0], "first_rank": 0}],
    "deepspeed_version": "0.19.8",
    "ranks": {"10": {"node": "gpu2", "exit_code": 1, "ended_at": "x"}, "9": {"node": "gpu1", "exit_code": 0}},
    "figures": {"step": 5, "loss": float("nan"), "history": [{"t": 1, "step": 5, "loss": float("inf"), "rate": 2.0}]},
    "first_failure": {"node": "gpu2", "rank": 10, "cause": "c", "line": "token hf_s3cret"},
    "restarts": [{"attempt": 1, "reason": "r", "at": "t", "resumed_from": "step5", "other": "dropped"}],
}


def test_the_whole_of_it() -> None:
    found = summary(SPEC, STATE, {"torch": "2.13.0", "python": None})
    assert (found["name"], found["run"], found["attempt"], found["state"]) == ("digits", 3, 2, "failed")
    assert found["seconds"] == 90.0
    assert found["world_size"] == {"expected": 2, "seen": 2} and found["nodes"] == {"expected": 2, "seen": 1}
    assert found["versions"] == {"deepspeed": "0.19.8", "torch": "2.13.0", "python": None, "image": "sha256:1"}
    assert list(found["ranks"].items()) == [
        ("9", {"node": "gpu1", "exit_code": 0}),
        ("10", {"node": "gpu2", "exit_code": 1}),
    ]
    assert found["figures"] == {**dict.fromkeys(FIGURES), "step": 5, "loss": "nan"}
    assert found["history"] == [{"t": 1, "step": 5, "loss": "inf", "rate": 2.0}]
    assert found["restarts"] == [{"attempt": 1, "reason": "r", "at": "t", "resumed_from": "step5"}]
    assert found["members"] == STATE["members"]


def test_versions_that_were_seen_before_the_start() -> None:
    seen = {
        "python": "3.11.2",
        "torch": "2.13.0+cpu",
        "deepspeed": "0.19.7",
        "transformers": None,
        "accelerate": "1.15.0",
    }
    found = summary(SPEC, {**STATE, "versions": seen})["versions"]
    assert found == {
        "deepspeed": "0.19.8",  # what has read the configuration knows best
        "torch": "2.13.0+cpu",
        "python": "3.11.2",
        "image": "sha256:1",
        "accelerate": "1.15.0",
    }
    assert summary(SPEC, {**STATE, "versions": seen, "deepspeed_version": None})["versions"]["deepspeed"] == "0.19.7"


def test_a_job_that_shrank() -> None:
    shrunk = {"world_size": 3, "nodes": 3, "left_out": ["gpu3"]}
    assert summary(SPEC, {**STATE, "shrunk_from": shrunk})["shrunk_from"] == shrunk
    assert summary(SPEC, STATE)["shrunk_from"] is None


def test_the_digests_of_what_it_computed_from_are_in_it() -> None:
    digests = {"code": "a" * 64, "assets": {"net": "b" * 64}, "environment": "hmac-sha256:0"}
    assert summary(SPEC, {**STATE, "digests": digests})["digests"] == digests
    assert summary(SPEC, STATE)["digests"] == {}


def test_no_value_of_the_environment_and_no_secret_is_in_it() -> None:
    text = json.dumps(summary(SPEC, STATE), allow_nan=False)
    assert "hf_s3cret" not in text and "eth7" not in text
    found = json.loads(text)
    assert found["spec"]["environment"] == ["GLOO_SOCKET_IFNAME", "HF_TOKEN"]
    assert found["spec"]["command"][-1] == "********"
    assert found["reason"] == "it printed ********"
    assert found["first_failure"]["line"] == "token ********"
    assert STATE["reason"] == "it printed hf_s3cret", "what was given is not changed"


def test_every_key_is_there_for_a_job_of_which_nothing_is_known() -> None:
    nothing = summary({}, {})
    assert set(nothing) == set(summary(SPEC, STATE))
    assert (nothing["reason"], nothing["ranks"], nothing["members"], nothing["restarts"]) == ("", {}, [], [])
    assert nothing["figures"] == dict.fromkeys(FIGURES) and nothing["seconds"] is None


def test_curve_points_that_are_given_count() -> None:
    assert summary(SPEC, STATE, history=[])["history"] == []


def test_what_is_long_is_reported_by_its_digest() -> None:
    long = {f"file{number}": number for number in range(LONGEST + 1)}
    found = shown_spec({"workspace": long, "short": dict.fromkeys("ab", 1), "list": [long]})
    assert found["workspace"]["entries"] == LONGEST + 1 and len(found["workspace"]["sha256"]) == 64
    assert found["list"] == [found["workspace"]]
    assert found["short"] == {"a": 1, "b": 1}
    other = shown_spec({"workspace": {**long, "file0": "changed"}})
    assert other["workspace"]["sha256"] != found["workspace"]["sha256"]
    shuffled = dict(sorted(long.items(), reverse=True))
    assert shown_spec({"workspace": shuffled})["workspace"] == found["workspace"]


def test_names_of_environments_at_any_depth() -> None:
    assert shown_spec({"a": [{"launch_environment": {"B": "1", "A": "2"}}]}) == {
        "a": [{"launch_environment": ["A", "B"]}]
    }


@pytest.mark.parametrize(
    ("state", "seconds"),
    [
        ({"started_at": "2026-11-22T10:00:00Z", "finished_at": "2026-11-22T09:59:59Z"}, 0.0),
        ({"started_at": "2026-11-22T10:00:00Z", "heartbeat": 1795341605.25}, 5.2),
        ({"started_at": "2026-11-22T10:00:00Z"}, None),
        ({"started_at": "yesterday", "finished_at": "2026-11-22T10:00:00Z"}, None),
        ({}, None),
    ],
)
def test_how_long_it_took(state: dict[str, Any], seconds: float | None) -> None:
    assert seconds_of(state) == seconds


def test_since_when() -> None:
    state = {"started_at": "s", "finished_at": None, "heartbeat": 1795341605.25}
    assert since(state, active=True) == "s"
    assert since(state, active=False) == "2026-11-22T10:00:05Z"
    assert since({**state, "finished_at": "f"}, active=False) == "f"
    assert since({"started_at": "s"}, active=False) == "s"
    assert since({}, active=False) is None


def test_whatever_it_holds_a_secret_is_hidden_and_the_rest_stays() -> None:
    draw = random.Random(5)
    secret = "s3cret-value"
    hide = hider({"WANDB_API_KEY": secret, "TOKENIZERS_PARALLELISM": "false", "PW_TOKEN": "short"})

    def made(depth: int) -> Any:
        kind = draw.randrange(6 if depth else 4)
        if kind == 4:
            return {str(draw.randrange(99)): made(depth - 1) for dummy in range(draw.randrange(4))}
        if kind == 5:
            return [made(depth - 1) for dummy in range(draw.randrange(4))]
        return (draw.random(), f"x{secret}y", "false", None)[kind]

    for dummy in range(examples(300)):
        value = made(4)
        cleaned = clean(value, hide)
        assert secret not in json.dumps(cleaned)
        assert json.dumps(cleaned) == json.dumps(value).replace(secret, "********")


def test_secrets_of_what_all_ranks_get_are_hidden_too() -> None:
    state = {"state": "failed", "reason": "401 for gh-s3cret and own-s3cret"}
    spec = {"environment": {"A_TOKEN": "own-s3cret"}, "command": ["x", "--api-key", "arg-s3cret"]}
    made = summary(spec, state, environment={"GH_PAT": "gh-s3cret"})
    assert made["reason"] == "401 for ******** and ********"
    assert made["spec"]["command"] == ["x", "--api-key", "********"]
