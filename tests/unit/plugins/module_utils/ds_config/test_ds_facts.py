# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Releases, and that the tables of facts agree with each other."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.blocks_removed import OPEN
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.blocks_training import EXTRA_REFUSED
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import (
    FILLED_IN,
    INTEGRATIONS,
    KNOWN_VERSIONS,
    NEWEST,
    TENSOR_PARALLEL_ALIASES,
    ZERO_ALIASES,
    ZERO_DEPRECATED,
    nearest_known,
    parse_version,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import BLOCKS


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("0.19.8", "0.19.8"),
        ("v0.19.8", "0.19.8"),
        (" 0.16.9 ", "0.16.9"),
        ("0.19.8+cu126", "0.19.8"),
        ("0.19.7.post1", "0.19.7"),
        ("0.19.9", "0.19.8"),
        ("0.20.0", "0.19.8"),
        ("1.0.0", "0.19.8"),
        ("0.17.1", "0.17.6"),
        ("0.15.0", "0.15.4"),
        ("0.14.5", "0.15.4"),
        ("0.9.2", "0.15.4"),
    ],
)
def test_nearest_known_release(text: str, known: str) -> None:
    version = parse_version(text)
    assert version is not None
    assert str(nearest_known(version)) == known


@pytest.mark.parametrize("text", ["", "0.19", "0,19,8", "latest", "0.19.8 0.19.7", "0.19.99999", "-1.0.0"])
def test_no_release(text: str) -> None:
    assert parse_version(text) is None


def test_releases_are_in_order() -> None:
    assert list(KNOWN_VERSIONS) == sorted(set(KNOWN_VERSIONS))
    assert NEWEST == (0, 19, 8)


def test_every_block_is_described_and_used() -> None:
    used = {field.block for fields in BLOCKS.values() for field in fields.values() if field.block}
    assert used == set(BLOCKS) - {""}


def test_every_release_that_fields_name_is_known() -> None:
    named = {
        release
        for fields in BLOCKS.values()
        for field in fields.values()
        for release in (field.since, field.gone, field.before and field.before[0])
        if release is not None
    }
    assert named <= set(KNOWN_VERSIONS)
    for fields in BLOCKS.values():
        for field in fields.values():
            assert (field.gone is None) is (field.instead == "")


def test_what_makes_a_key_necessary_is_a_neighbour() -> None:
    for fields in BLOCKS.values():
        for field in fields.values():
            assert field.needed in ("", "always") or fields[field.needed].kind == "flag"


def test_blocks_that_are_named_elsewhere_exist() -> None:
    assert set(BLOCKS) >= EXTRA_REFUSED
    assert set(BLOCKS) >= OPEN


def test_old_names_lead_to_keys_that_exist() -> None:
    zero = BLOCKS["zero_optimization"]
    assert set(TENSOR_PARALLEL_ALIASES.values()) <= set(BLOCKS["tensor_parallel"])
    assert not set(TENSOR_PARALLEL_ALIASES) & set(BLOCKS["tensor_parallel"])
    assert set(ZERO_ALIASES.values()) | set(ZERO_DEPRECATED) | set(ZERO_DEPRECATED.values()) <= set(zero)
    assert not set(ZERO_ALIASES) & set(zero)


def test_what_an_integration_fills_in_exists() -> None:
    assert set(FILLED_IN) == set(INTEGRATIONS)
    for paths in FILLED_IN.values():
        for path in paths:
            block, key = path.rpartition(".")[::2]
            assert block.endswith(".params") or key in BLOCKS[block]
    only_accelerate = FILLED_IN["accelerate"] - FILLED_IN["huggingface"]
    assert only_accelerate == {"zero_optimization.stage3_gather_16bit_weights_on_model_save"}
