# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Proxies in environments, and network file systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init import surroundings
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.surroundings import (
    Proxy,
    choose_proxy,
    parse_environment,
    shared_mounts,
)

from tests.init_servers import ROOT

URL = "http://proxy.example.com:3128"


def test_the_environment_is_read_as_pam_reads_it() -> None:
    text = f"# x\nPATH=\"/usr/bin:/bin\"\nexport https_proxy={URL}\nno_proxy='a,b'\nwrong line\n"
    assert parse_environment(text) == {"PATH": "/usr/bin:/bin", "https_proxy": URL, "no_proxy": "a,b"}


@pytest.mark.parametrize(
    ("environments", "proxy"),
    [
        ({}, Proxy()),
        ({"a": {"PATH": "/"}}, Proxy()),
        ({"a": {"http_proxy": URL, "HTTPS_PROXY": URL + "/"}}, Proxy(URL, (), "a")),
        ({"a": {"https_proxy": "proxy.example.com:3128"}}, Proxy(URL, (), "a")),
        ({"a": {}, "the controller": {"HTTPS_PROXY": URL}}, Proxy(URL, (), "the controller")),
        (
            {"a": {"https_proxy": URL, "NO_PROXY": "localhost, .example.com,10.0.0.0/8,10.0.0.0/8,we ird;x,::1"}},
            Proxy(URL, (".example.com", "10.0.0.0/8", "we", "ird"), "a"),
        ),
    ],
)
def test_the_first_proxy_counts(environments: Mapping[str, Mapping[str, str]], proxy: Proxy) -> None:
    expected = Proxy(proxy.url, tuple(one for one in proxy.exceptions if one != "ird"), proxy.source)
    assert choose_proxy(environments) == expected


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3128", "http://localhost:8080", "socks5://proxy:1080", "http://{{lookup('pipe','id')}}:1"]
)
def test_a_proxy_that_servers_cannot_use_is_named(url: str) -> None:
    found = choose_proxy({"the controller": {"https_proxy": url}})
    assert found.url == "" and "the environment of the controller" in found.note


def test_another_proxy_is_named_without_its_address() -> None:
    found = choose_proxy({"a": {"https_proxy": URL}, "b": {"https_proxy": "http://u:geheim@other:1"}})
    assert found.url == URL and found.note.startswith("b: another proxy") and "geheim" not in found.note


@pytest.mark.parametrize(
    ("url", "secret"), [(URL, False), ("http://u:p@proxy:1", True), ("http://u@proxy:1", False), ("", False)]
)
def test_a_password_makes_it_a_secret(url: str, secret: bool) -> None:
    assert Proxy(url).secret is secret


def test_exceptions_are_such_as_the_variable_takes() -> None:
    constraints: dict[str, Any] = yaml.safe_load(
        (ROOT / "roles/preflight/meta/constraints.yml").read_text(encoding="utf-8")
    )
    pattern = constraints["cluster_no_proxy"]["pattern"]
    for text in ("a.b", "*.x", "10.0.0.0/8", "::1/128", "a b", "a/b", "", "a;b"):
        assert (re.fullmatch(pattern, text) is None) is (surroundings._EXCEPTION.fullmatch(text) is None)


def test_only_network_file_systems_that_all_mount_alike() -> None:
    nfs = "10.0.0.5:/export /mnt/train nfs4 rw 0 0\n"
    other = "10.0.0.5:/home /home nfs rw 0 0\n"
    assert shared_mounts([f"/dev/sda1 / ext4 rw 0 0\n{nfs}{other}", nfs]) == ["/mnt/train"]
    assert shared_mounts([nfs, nfs.replace("/export", "/other")]) == []
    assert shared_mounts([nfs.replace("/mnt/train", "/mnt/a\\040b")]) == []
    assert shared_mounts([]) == []
