# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which servers a host is configured to use. The files are written here in the programs' forms; none is a recording."""

from __future__ import annotations

import gzip
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import services
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.services_io import (
    SystemServicesIO,
    gather_esp,
    gather_services,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("nameserver 10.64.0.53\nnameserver 9.9.9.9\n", ["10.64.0.53", "9.9.9.9"]),
        ("# nameserver 1.1.1.1\nnameserver\t8.8.8.8 # two\noptions edns0\nsearch 10.0.0.1\n", ["8.8.8.8"]),
        ("nameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver 0.0.0.0\nnameserver\n", []),
        ("nameserver 8.8.8.8\nnameserver 8.8.8.8\n", ["8.8.8.8"]),
    ],
)
def test_nameservers(text: str, expected: list[str]) -> None:
    assert services.nameservers(text) == expected


def test_addresses_in_files_are_told_with_the_first_file() -> None:
    texts = {
        "/etc/apt/apt.conf.d/80proxy": 'Acquire::http::Proxy "http://me:s3cret@10.70.0.5:3128";',
        "/etc/docker/daemon.json": '{"registry-mirrors": ["https://10.70.0.6", "http://10.70.0.5"], "bip": "10.9.0.1"}',
        "/etc/apt/sources.list": "deb http://mirror.example.org/debian bookworm main\ndeb http://127.0.0.1/x y main\n",
        "/etc/environment": "no_proxy=10.1.2.3\nhttp_proxy=http://10.70.0.300/\nhttps_proxy=http://10.70.0.7.example/",
    }
    assert services.named_addresses(texts) == {
        "10.70.0.5": "/etc/apt/apt.conf.d/80proxy",
        "10.70.0.6": "/etc/docker/daemon.json",
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("", []),
        (None, []),
        ("http://me:pass@proxy.example.com:3128/path", ["proxy.example.com"]),
        (["10.0.0.53", "proxy:3128", ["http://PROXY:1/"]], ["10.0.0.53", "proxy"]),
        ({"http": "http://a:1", "https": "b", "no_proxy": "c,d", "no-proxy": "e"}, ["a", "b"]),
        (["http://localhost:1", "http://127.0.0.1", "http://[::1]/", "http://[::1", 7], []),
    ],
)
def test_url_hosts(values: Any, expected: list[str]) -> None:
    assert services.url_hosts(values) == expected


PLAIN = st.text(st.sampled_from("abcxyz0189"), min_size=1, max_size=8)


@given(PLAIN, PLAIN, PLAIN)
def test_passwords_stay_behind(user: str, password: str, host: str) -> None:
    assert services.url_hosts(f"http://{user}:{password}@{host}.example:3128/{password}") == [f"{host}.example"]


ABSENT = "# CONFIG_INET_ESP is not set\n"
DEP = "kernel/net/ipv4/esp4.ko.xz: kernel/net/xfrm/xfrm_algo.ko.xz\n"


@pytest.mark.parametrize(
    ("modules", "builtin", "available", "config", "expected"),
    [
        ("esp4 28672 0 - Live 0x0\n", "", "", "", True),
        ("", "kernel/net/ipv4/esp4.ko\n", "", "", True),
        ("", "", DEP, "", True),
        ("", "", "", "CONFIG_XFRM=y\nCONFIG_INET_ESP=y\n", True),
        ("", "", "", "CONFIG_XFRM=y\n" + ABSENT, False),
        ("", "kernel/fs/ext4/ext4.ko\n", "kernel/x.ko:\n", "", False),
        ("", "kernel/fs/ext4/ext4.ko\n", "", "CONFIG_INET_ESP=m\n", False),  # the module's package is not installed
        ("", "", "", "CONFIG_INET_ESP=m\n", None),
        ("esp4_offload 1 0\nesp6 2 0\n", "", "", "", None),
        ("", "", "", "CONFIG_INET_ESP_OFFLOAD=y\n", None),
    ],
)
def test_esp(modules: str, builtin: str, available: str, config: str, expected: bool | None) -> None:
    assert services.esp_support(modules, builtin, available, config) is expected


def make(root: Path, path: str, data: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def test_a_host_is_read(tmp_path: Path) -> None:
    make(tmp_path, "etc/resolv.conf", b"nameserver 127.0.0.53\n")
    make(tmp_path, "run/systemd/resolve/resolv.conf", b"nameserver 10.64.0.53\n")
    make(tmp_path, "etc/apt/apt.conf.d/80proxy", b'Acquire::http::Proxy "http://10.70.0.5:3128";\xff')
    make(tmp_path, "etc/apt/sources.list.d/huge.list", b"http://10.70.0.9/ " * 100_000)
    (tmp_path / "etc/apt/apt.conf.d/folder").mkdir()
    io = SystemServicesIO(str(tmp_path), lambda *_arguments: [(0, 0, 0, "", ("10.70.0.8", 0))] * 2)
    assert gather_services(io, ["mirror.example"]) == {
        "nameservers": ["10.64.0.53"],
        "addresses": {"10.70.0.5": "/etc/apt/apt.conf.d/80proxy"},
        "resolved": {"mirror.example": ["10.70.0.8"]},
    }
    make(tmp_path, "etc/resolv.conf", b"nameserver 9.9.9.9\n")
    assert gather_services(io, [])["nameservers"] == ["9.9.9.9"]
    assert gather_services(SystemServicesIO(str(tmp_path / "none")), []) == {
        "nameservers": [],
        "addresses": {},
        "resolved": {},
    }


def test_names_that_nobody_resolves_cost_no_more_than_the_time_set() -> None:
    def lookup(name: str, *_rest: Any) -> list[Any]:
        if name == "slow":
            time.sleep(5)
        if name == "unknown":
            raise socket.gaierror(-2, "Name or service not known")
        if name == "odd":
            raise UnicodeError("label too long")
        return [(0, 0, 0, "", ("127.0.1.1", 0)), (0, 0, 0, "", ("10.0.0.2", 0))]

    began = time.monotonic()
    found = SystemServicesIO("/", lookup, timeout=0.3).resolve(["slow", "unknown", "odd", "good"])
    assert found == {"slow": [], "unknown": [], "odd": [], "good": ["10.0.0.2"]}
    assert time.monotonic() - began < 3


def test_the_kernels_configuration_is_read_packed_or_plain(tmp_path: Path) -> None:
    io = SystemServicesIO(str(tmp_path))
    assert gather_esp(io, "6.1") is None
    make(tmp_path, "boot/config-6.1", b"CONFIG_INET_ESP=y\n")
    assert gather_esp(io, "6.1") is True
    make(tmp_path, "proc/config.gz", gzip.compress(ABSENT.encode()))
    assert gather_esp(io, "6.1") is False
    make(tmp_path, "lib/modules/6.1/modules.dep", DEP.encode())
    assert gather_esp(io, "6.1") is True
    make(tmp_path, "proc/config.gz", gzip.compress(ABSENT.encode())[:-9])  # cut off
    assert gather_esp(io, "6.2") is None
