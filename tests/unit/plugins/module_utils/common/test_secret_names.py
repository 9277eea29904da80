# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one list of what is secret: names, addresses, shapes, and what is left to be read. Every secret is invented."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import secret_names
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import (
    MASK,
    hider,
    is_secret,
    is_secret_name,
    mask_arguments,
    mask_text,
    mask_urls,
    secret_values,
    secret_variables,
    words_of,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config import schema
from hypothesis import given
from hypothesis import strategies as st

SECRET = """
    HF_TOKEN HFTOKEN hf-token hfToken HUGGING_FACE_HUB_TOKEN WANDB_API_KEY COMET_API_KEY OPENAI_APIKEY openaiApiKey
    PGPASSWORD MYSQL_PWD DB_PASS DB_PASSWD REDIS_PASSWORD SSH_PASSPHRASE GH_PAT GITHUB_PAT_2 GITLAB_TOKEN
    AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN AZURE_STORAGE_CONNECTION_STRING AZURE_STORAGE_KEY
    DATABASE_CONN_STR SENTRY_DSN SLACK_WEBHOOK_URL CLIENT_SECRET client-secret SECRETS_JSON API_KEY2 KEY
    GOOGLE_CREDENTIALS CREDS SESSION_COOKIE BASIC_AUTH BEARER JWT MLFLOW_TRACKING_PASSWORD splunk-token my-Password
    REGISTRY_AUTH SSH_PRIVATE_KEY PRIVATEKEY Authorization
"""
PUBLIC = """
    PATH PATCH LD_LIBRARY_PATH PYTHONPATH TOKENIZERS_PARALLELISM TOKENIZER MAX_TOKENS tokens_per_second
    NCCL_SOCKET_IFNAME KEYBOARD MONKEY COMPASS PASSES BYPASS SECRETARY PWD OLDPWD OLD_PWD HF_HOME HF_TOKEN_PATH
    PASSWORD_FILE SSH_AUTH_SOCK AUTHOR XAUTHORITY EOS_TOKEN pad_token experts_per_token next_token PUBLIC_KEY
    SSH_PUBLIC_KEY PRIMARY_KEY experiment_key TOKEN_COUNT KEY_LENGTH FORWARD_PASS CUDA_VISIBLE_DEVICES
    MASTER_ADDR DS_ACCELERATOR authorization-plugins script_keys _ 123
"""


@pytest.mark.parametrize("name", SECRET.split())
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PUBLIC.split())
def test_names_of_anything_else(name: str) -> None:
    assert not is_secret_name(name)


def test_words() -> None:
    assert words_of("openaiApiKey2_URL") == ["openai", "api", "key", "url"]
    assert words_of("PGPassword") == ["pg", "password"]
    assert words_of("") == words_of("__1") == []
    assert not is_secret_name("x" * 100_000)


def test_of_all_keys_of_deepspeed_one_is_a_secret() -> None:
    """A value under such a key is masked wherever it stands, a number too."""
    folder = Path(schema.__file__).parent
    keys: set[str] = set()
    for path in folder.glob("blocks_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                keys.update(
                    key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
    assert len(keys) > 200 and {key for key in keys if is_secret_name(key)} == {"api_key"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:hunter2@proxy:3128/", f"http://{MASK}@proxy:3128/"),
        ("postgres://u:a/b@c@db:1/x?y=1", f"postgres://{MASK}@db:1/x?y=1"),
        ("https://ghp_x@github.com/a/b.git", f"https://{MASK}@github.com/a/b.git"),
        ("see http://h/a and https://u:p@k/", f"see http://h/a and https://{MASK}@k/"),
        ("http://localhost:8080/x@y", None),
        ("http://localhost:8080 me@example.org", None),
        ("git+https://github.com/a/b@main", None),
        ("tcp://10.0.0.1:29500", None),
        ("me@example.org", None),
    ],
)
def test_addresses(text: str, shown: str | None) -> None:
    assert mask_urls(text) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("export HF_TOKEN=abc; export A=1;", f"export HF_TOKEN={MASK}; export A=1;"),
        ('PGPASSWORD="two words" psql', f'PGPASSWORD="{MASK}" psql'),
        ("{'GH_PAT': 'x y', 'B': 'c'}", f"{{'GH_PAT': '{MASK}', 'B': 'c'}}"),
        ('{"api_key": "x", "mode": "y"}', f'{{"api_key": "{MASK}", "mode": "y"}}'),
        ("environ({'DB_PASS': 'q'})", f"environ({{'DB_PASS': '{MASK}'}})"),
        ("('MYSQL_PWD', 'q')", f"('MYSQL_PWD', '{MASK}')"),
        ("cmd = ['x.py', '--api-key', 'q', '-v']", f"cmd = ['x.py', '--api-key', '{MASK}', '-v']"),
        ("('token', 'labels')", None),
        ("WANDB_API_KEY: 0123", None),
        ("WANDB_API_KEY: 0123abc", f"WANDB_API_KEY: {MASK}"),
        ("--token=abc --lr=0.1", f"--token={MASK} --lr=0.1"),
        ("https://h/?access_token=abc&x=1", f"https://h/?access_token={MASK}&x=1"),
        ("used hf_" + "Ab1" * 12 + " here", f"used {MASK} here"),
        ("SWMTKN-1-" + "a1" * 20 + "-" + "b2" * 12, MASK),
        ("loss=0.5 lr=1e-3 tokens_per_second=123 next_token=7", None),
        ("sorted(rows, key=len)", None),
        ("Unexpected token: 'abc'", None),
        ("pass=2 of 3, auth=none", None),
        ("token=<redacted>", None),
        ("HF_TOKEN=\"''\"", None),
        ("TOKENIZERS_PARALLELISM=false", None),
        ("", None),
    ],
)
def test_texts(text: str, shown: str | None) -> None:
    assert mask_text(text) == (text if shown is None else shown)


@given(st.text(max_size=80))
def test_what_is_masked_stays_masked(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=6, max_size=40))
def test_no_value_of_a_secret_survives(value: str) -> None:
    hide = hider({"X_TOKEN": value, "HOME": "/root"})
    if value.strip("*"):
        assert value not in hide(f"a {value} b {value}{value} HOME=/root").replace(MASK, "")


def test_what_is_hidden_of_an_environment() -> None:
    given_ = {
        "A_KEY": 'say "yes"',
        "SHORT_PAT": "12345",
        "DB_URL": "pg://u:longer@h",
        "N": 7,
        "E_TOKEN": "",
        "P_KEY": "l1-abc\nl2-abc",
    }
    assert secret_values(given_) == {
        *('say "yes"', "12345", "u:longer", "longer"),
        *("l1-abc", "l2-abc", "l1-abc\nl2-abc"),
    }
    assert hider(given_)("12345 and longer, l1-abc\\nl2-abc") == f"12345 and {MASK}, {MASK}"  # the first is too short
    assert secret_variables(given_) == ["A_KEY", "DB_URL", "P_KEY", "SHORT_PAT"]
    assert not is_secret("E_TOKEN", "") and not is_secret("N", 7)


def test_a_longer_secret_goes_before_one_that_it_begins_with() -> None:
    assert hider({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefgh"})("abcdefgh abcdef") == f"{MASK} {MASK}"


def test_command_lines() -> None:
    words = ["x.py", "--api-key", "abc", "--token", "--lr", "1", "--pat=q", "-e", "HF_TOKEN=z"]
    assert mask_arguments(words) == [
        "x.py",
        "--api-key",
        MASK,
        "--token",
        "--lr",
        "1",
        f"--pat={MASK}",
        "-e",
        f"HF_TOKEN={MASK}",
    ]


@pytest.mark.parametrize("part", ["://a:", "a=", "'a':", "A_A: ", "hf_", "sk-", '="', "a.a.", "://", "a_", "-"])
def test_the_time_grows_with_the_text(part: str) -> None:
    """A container chooses the text, and a module of the host masks it."""
    text = part * (200_000 // len(part))
    began = time.process_time()
    mask_text(text)
    assert time.process_time() - began < 5


def test_a_name_without_an_end_is_not_read_to_its_end() -> None:
    """Those of a container's environment are its own choice."""
    name = "a_" * 5_000_000
    began = time.process_time()
    for _number in range(3):
        assert not is_secret_name(name)
    assert time.process_time() - began < 2


def test_it_goes_into_containers_alone() -> None:
    source = Path(secret_names.__file__).read_text(encoding="utf-8")
    assert "ansible_collections" not in source
    ast.parse(source, feature_version=(3, 8))
