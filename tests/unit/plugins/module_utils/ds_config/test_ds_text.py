# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The text of a ds_config.json: canonical, compared by meaning, read back; and the secrets in it."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import (
    UnreadableError,
    is_json,
    parse,
    render,
    same,
    secrets,
    secrets_in_text,
)


def test_canonical_text() -> None:
    config = build(Request(config={"train_batch_size": 8.0, "optimizer": {"type": "ä", "params": {"lr": 1e-5}}})).config
    assert render(config) == (
        "{\n"
        '  "optimizer": {\n'
        '    "params": {\n'
        '      "lr": 1.0e-05\n'
        "    },\n"
        '    "type": "\\u00e4"\n'
        "  },\n"
        '  "train_batch_size": 8\n'
        "}\n"
    )


@pytest.mark.parametrize("number", [1e-5, -1e-8, 1.5e-5, 1e22, 12, 0.5, 1e300])
def test_a_number_is_one_in_yaml_too(number: float) -> None:
    # gdGPT's train_ds.py reads the file that its --config names with PyYAML, to which 1e-05 is a text.
    config = {"a": number, "b": [number, {"1e-05": '1e-05 \\" 2e-06'}]}
    assert yaml.safe_load(render(config)) == config
    assert json.loads(render(config)) == config


def test_same_meaning() -> None:
    wanted = {"a": 500000000, "b": True}
    assert same(parse('{"b": true, "a": 5e8}'), wanted)
    assert not same({"a": 500000000, "b": 1}, wanted)
    assert not same({"a": 500000000}, wanted)
    assert not same({"a": float("inf")}, wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{,}", "a key with ':' is missing; a key with spaces or punctuation needs quotes (line 1, column 2)"),
        ("[1]", "it holds [1] instead of a mapping"),
        ("null", "it holds nothing instead of a mapping"),
        (
            '{"a": {"b": 1, "b": 1}}',
            "the key 'b' is given twice, which DeepSpeed refuses (line 1, column 16)",
        ),
        pytest.param("[" * 100_000, "it is nested deeper than 100 levels (line 1, column 102)", id="deep"),
    ],
)
def test_files_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_hjson_is_read_as_deepspeed_does() -> None:
    text = "{train_batch_size: 8 # by hand\n  zero_optimization: {stage: 2,}}"
    assert parse(text) == {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    assert not is_json(text)
    assert is_json('{"a": 1}') and is_json(" ")
    assert not is_json("[" * 100_000)


def test_an_empty_file_is_an_empty_configuration() -> None:
    assert parse(" \n") == {}


def test_secrets_are_found_and_max_tokens_is_none() -> None:
    config = {
        "comet": {"api_key": "k1", "project": "p"},
        "free": [{"hf_token": "k2", "password": 77, "secret": None, "APIKEY": ""}],
        "hybrid_engine": {"max_out_tokens": 512},
        "tokens": "x",
    }
    assert sorted(secrets(config)) == ["77", "k1", "k2"]
    assert sorted(secrets_in_text(json.dumps(config))) == ["77", "k1", "k2", "null"]
    assert secrets_in_text("api_key: k3 # by hand\n") == ["k3"]
    assert list(secrets(None)) == []
