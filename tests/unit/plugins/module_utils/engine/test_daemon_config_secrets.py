# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Secrets of daemon.json: found wherever they stand, shown nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import MASK
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_secrets import (
    mask,
    mask_text,
    secrets,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


@pytest.mark.parametrize(
    ("config", "shown", "found"),
    [
        (
            {"proxies": {"http-proxy": "http://me:hunter2@proxy:3128", "no-proxy": "localhost,10.0.0.0/8"}},
            {"proxies": {"http-proxy": f"http://{MASK}@proxy:3128", "no-proxy": "localhost,10.0.0.0/8"}},
            {"me:hunter2", "hunter2"},
        ),
        (
            {"proxies": {"https-proxy": "me:hunt/er@2@proxy:3128"}},
            {"proxies": {"https-proxy": f"{MASK}@proxy:3128"}},
            {"me:hunt/er@2", "hunt/er@2"},
        ),
        ({"http-proxy": "http://a b:c d@h"}, {"http-proxy": f"http://{MASK}@h"}, {"a b:c d", "c d"}),
        (
            {"log-opts": {"splunk-token": "t0", "splunk-url": "https://u:p@h:8088", "env": "a"}},
            {"log-opts": {"splunk-token": MASK, "splunk-url": f"https://{MASK}@h:8088", "env": "a"}},
            {"t0", "u:p", "p"},
        ),
        ({"x": {"api_key": [1, {"y": "z"}], "secret": True, "password": None, "token": ""}},
         {"x": {"api_key": [MASK, {"y": MASK}], "secret": True, "password": None, "token": ""}},
         {"1", "z"}),
        ({"labels": ["rack=7", "join_token=abc"]}, {"labels": ["rack=7", f"join_token={MASK}"]}, {"abc"}),
        ({"metrics": "http://h/?token=abc"}, {"metrics": MASK}, {"http://h/?token=abc"}),
        ({"labels": ["owner=ops@example.com"]}, {"labels": ["owner=ops@example.com"]}, set()),
        ({"registry-mirrors": ["https://m"], "debug": True, "mtu": 1400}, None, set()),
    ],
)  # fmt: skip
def test_what_is_masked(config: dict[str, Any], shown: dict[str, Any] | None, found: set[str]) -> None:
    assert mask(config) == (config if shown is None else shown)
    assert secrets(config) == found
    assert secrets(mask(config)) == set()


SECRET = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=4).map(lambda text: f"S3{text}")


@given(
    SECRET,
    st.sampled_from(["{}", "u:{}@h", "http://u:{}@h", "http://{}@h/", "http://u:{}@h,http://x:{}@y", "a=1 token={}"]),
)
@settings(deadline=None, derandomize=True, max_examples=examples(300))
def test_no_secret_is_ever_shown(secret: str, form: str) -> None:
    text = form.format(secret, secret)
    config = {"proxies": {"http-proxy": text}} if form != "{}" else {"x": {"my-Password": [text]}}
    shown = json.dumps(mask(config), ensure_ascii=False)
    assert "S3" not in shown
    assert "S3" not in mask_text(f"the engine said: {text}!", secrets(config))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("proxyconnect http://a:b@h:1: refused, see https://x/y", f"proxyconnect http://{MASK}@h:1: refused, see https://x/y"),
        ("splunk-token=abc&x=1 wrong", f"splunk-token={MASK}&x=1 wrong"),
        ("ab xaby", f"{MASK} x{MASK}y"),
    ],
)  # fmt: skip
def test_messages(text: str, shown: str) -> None:
    assert mask_text(text, {"ab", "a"} if text.startswith("ab") else set()) == shown
