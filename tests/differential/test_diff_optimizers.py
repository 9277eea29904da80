# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Optimizers and schedulers against the classes of each release and of torch: names, parameters, and learning rates."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import Version, parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.field import Field
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.optimizers import (
    OPTIMIZERS,
    SCHEDULERS,
    TORCH_OPTIMIZERS,
    TORCH_SCHEDULERS,
    optimizer_params,
    scheduler_fault,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import Checker
from deepspeed_oracle import DeepSpeedError, Oracle

# what the engine takes out of the parameters, or gives itself
ENGINES = {"torch_adam", "adam_w_mode", "fp32_optimizer_states", "foreach"}
GIVEN = {"self", "params", "model_params", "deepspeed", "adam_w_mode", "adamw_mode", "max_grad_norm"}
CLASSES = {
    "FusedAdam": ("AdamW", {}, False),
    "DeepSpeedCPUAdam": ("adam", {}, True),
    "AdamW": ("Adam", {"torch_adam": True}, True),
    "Adagrad": ("Adagrad", {}, False),
    "DeepSpeedCPUAdagrad": ("Adagrad", {}, True),
    "FusedLamb": ("Lamb", {}, True),
    "FusedLion": ("Lion", {}, False),
    "DeepSpeedCPULion": ("Lion", {}, True),
    "OnebitAdam": ("OneBitAdam", {}, False),
    "ZeroOneAdam": ("ZeroOneAdam", {}, False),
    "OnebitLamb": ("OneBitLamb", {}, False),
}
"""What of a configuration leads to which class: name, parameters, whether the optimizer is offloaded."""

VALUES: list[Any] = [
    *(
        0,
        1,
        -1,
        3,
        5e8,
        0.5,
        1.5,
        -0.5,
        True,
        False,
        "2",
        "0.5",
        "true",
        "x",
        "log",
        "linear",
        "",
        [],
        [0.5],
        [0.5, 0.9],
        {},
    ),
]
STRICTER = [
    (r", not (true|false)$", "true or false for a number"),
    (r"must be (true or false|a (whole )?number.*|one of .*), not ('.*'|\[.*\]|\{.*\}|[\d.-]+)$", "another type"),
    (r"must be a number or a list of numbers .*, not (-|'|\{|\[)", "another type"),
]
"""Our error (pattern) where the class goes on: it computes with what it is given, or takes the default in silence."""


@pytest.fixture(scope="module")
def version(oracle: Oracle) -> Version:
    found = parse_version(oracle.release)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def classes(oracle: Oracle) -> dict[str, Any]:
    answer: dict[str, Any] = oracle.ask("parameters")
    return answer


def known(fields: dict[str, Field], version: Version) -> set[str]:
    return {name for name, field in fields.items() if field.known_to(version)}


def test_names(classes: dict[str, Any], version: Version) -> None:
    assert known(OPTIMIZERS, version) == set(classes["names"])
    shared = {"Adam", "AdamW", "Adagrad", "Muon"}
    assert set(TORCH_OPTIMIZERS) == set(classes["torch_optimizers"]) - shared
    for name in classes["torch_schedulers"]:
        assert (scheduler_fault(name) == "") is (name in TORCH_SCHEDULERS), name
    assert set(TORCH_SCHEDULERS) < set(classes["torch_schedulers"])


def test_parameters_of_optimizers(classes: dict[str, Any], version: Version) -> None:
    compared = 0
    for title, (name, params, offloaded) in CLASSES.items():
        if title not in classes["optimizers"]:
            assert title in ("OnebitAdam", "ZeroOneAdam", "OnebitLamb")
            continue
        dummy, fields = optimizer_params(name, params, offloaded, version)
        assert fields is not None
        theirs = set(classes["optimizers"][title]) - GIVEN
        ours = known(fields, version)
        # adam takes these out for every class; elsewhere they count as the class has them
        extra = ENGINES if "adam" in name.lower() and "bit" not in name.lower() and "one" not in name.lower() else set()
        assert ours - extra == theirs - extra, title
        compared += 1
    assert compared >= len(CLASSES) - 3


def test_parameters_of_schedulers(classes: dict[str, Any], version: Version) -> None:
    assert set(SCHEDULERS) == set(classes["schedulers"])
    for name, fields in SCHEDULERS.items():
        assert known(fields, version) == set(classes["schedulers"][name]) - {"optimizer"}
        assert {key for key, field in fields.items() if field.needed} == set(classes["needed"][name])
    assert {name: list(needed) for name, needed in TORCH_SCHEDULERS.items()} == {
        name: needed for name, needed in classes["torch_needed"].items() if name in TORCH_SCHEDULERS
    }


def test_learning_rates(oracle: Oracle, version: Version) -> None:
    """Every parameter with every value: what we write makes a scheduler that steps as the given one would."""
    accepted = 0
    for name, fields in SCHEDULERS.items():
        base = {key: 3 if key == "total_num_steps" else 0.1 for key, field in fields.items() if field.needed}
        for key in fields:
            for value in VALUES:
                accepted += stepped(oracle, version, name, {**base, key: value})
    assert accepted > 200


def stepped(oracle: Oracle, version: Version, name: str, params: dict[str, Any]) -> bool:
    checker = Checker(version, "deepspeed")
    written = checker.mapping({"scheduler": {"type": name, "params": params}})["scheduler"]["params"]
    try:
        theirs = oracle.ask("scheduler", name=name, params=params)
    except DeepSpeedError:
        theirs = None
    if checker.errors:
        for error in map(str, checker.errors if theirs is not None else ()):
            assert any(re.search(pattern, error) for pattern, dummy in STRICTER), (name, params, error)
        return False
    against = oracle.refusal("scheduler", name=name, params=written)
    if re.search("expected 1 ", against):
        return False  # a rate for each parameter group: how many there are only the script knows
    assert not against, (name, params)
    ours = oracle.ask("scheduler", name=name, params=written)
    if theirs is not None and not any(isinstance(value, str) for value in params.values()):
        assert ours == theirs, (name, params)
    return True
