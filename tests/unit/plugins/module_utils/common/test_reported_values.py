# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parsers of what a node returned: what each takes, what it refuses, and the one error."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import reported
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import (
    ReportedError,
    UnfitError,
    accept,
    escaped,
    shown,
)
from hypothesis import given
from hypothesis import strategies as st


def key(kind: str = "ssh-ed25519", inner: str = "") -> str:
    name = (inner or kind).encode()
    return f"{kind} {base64.b64encode(len(name).to_bytes(4, 'big') + name + bytes(36)).decode()}"


TAKEN: dict[str, list[Any]] = {
    "host_name": ["gpu1", "a", "_dmarc", "node-1.example.com", "x" * 253],
    "account": ["root", "ubuntu", "host$", "DOMAIN\\user", "user@realm", "first.last"],
    "interface": ["eth0", "enp0s31f6.100", "br-1a2b3c4d5e6f", "wg0", "vxlan.calico", "ens1f0np0"],
    "file_name": ["one_1.0-1+b1_amd64.deb", "a", "docker.io_20.10.24%2bdfsg1-1_amd64.deb"],
    "relative_path": ["apt/x/one.deb", "a", ".hidden/b", "a b"],
    "absolute_path": ["/", "/var/lib/docker", "/a b"],
    "address": ["10.0.0.1", "::1", "fe80::1", "0000:0000:0000:0000:0000:ffff:0a14:000b"],
    "network": ["10.0.0.0/24", "fe80::/64", "10.0.0.1/32", "10.0.0.7/24"],
    "port": [1, 22, 65535],
    "number": [0, -1, 1.5, 1e17],
    "flag": [True, False],
    "digest": ["sha256:" + "0" * 64],
    "hex_digest": ["ab" * 32],
    "identity": ["x1y2z3", "sha256:" + "0" * 64, "a" * 128],
    "word": ["6.1.0-41-amd64", "0000:3b:00.0", "n/a", "v1+b"],
    "short_text": ["", "NVIDIA H100 80GB HBM3", "héllo"],
    "ssh_public_key": [
        key(),
        f"{key()} root@gpu1\n",
        key("ecdsa-sha2-nistp256"),
        key("sk-ssh-ed25519@openssh.com"),
        f"{key('ssh-rsa')} a comment of words",
    ],
}
REFUSED: dict[str, list[Any]] = {
    "host_name": ["", "-a", "a b", "a\n", "a/b", "x" * 254, None, 1, ["a"]],
    "account": ["", "-oProxyCommand=x", "a b", "a\n", "a;b", "$(x)", 0],
    "interface": ["", "-a", "eth0\n", "a/b", "a b", "a:1", "x" * 16, "..", None],
    "file_name": ["", ".", "..", "a/b", "-a", ".a", "a..b", "a\n", "a\0", None],
    "relative_path": ["", ".", "/a", "../a", "a/../b", "a//b", "./a", "a/", "-a", "a\n", "a\\b", None, 3, "x" * 5000],
    "absolute_path": ["", "a", "/a/../b", "/a\n", None],
    "address": ["", "10.0.0.1\n", "10.0.0", "fe80::1%eth0\nx", "10.0.0.1/24", " 10.0.0.1", "\u0661.1.1.1", 1, None],
    "network": ["", "10.0.0.0/33", "10.0.0.0/24\n", "fe80::1%x/64", 7, None],
    "port": [0, 65536, "22", True, 22.0, None],
    "number": [float("nan"), float("inf"), "1", True, None, 10**30],
    "flag": [0, 1, "true", None],
    "digest": ["0" * 64, "sha256:" + "G" * 64, "sha256:" + "0" * 64 + "\n", None],
    "hex_digest": ["AB" * 32, "ab", None],
    "identity": ["", "../x", "a b", "a\n", "-a", "a" * 129, None],
    "word": ["", "a b", "-a", "a\n", "/a", None],
    "short_text": ["a\nb", "a\x1b[2J", "a\u2028b", "\u202eabc", "x" * 1001, None, 3],
    "ssh_public_key": [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        f"{key()}\n{key()}",
        f"restrict {key()}",
        f" {key()}",
        key("ssh-ed25519", inner="ssh-rsa"),
        key("command=x"),
        f"{key()} a\tb",
        None,
        5,
    ],
}


@pytest.mark.parametrize("name", sorted({*TAKEN, *REFUSED}))
def test_each_parser_takes_what_it_is_for_and_nothing_else(name: str) -> None:
    parser = getattr(reported, name)
    for value in TAKEN[name]:
        assert parser(value) == value
    for value in REFUSED[name]:
        with pytest.raises(UnfitError):
            parser(value)
            pytest.fail(f"{name} took {value!r}")


def test_the_error_names_host_field_value_and_remedy() -> None:
    with pytest.raises(ReportedError) as caught:
        accept("gpu1", "fabric.interfaces[0].name", "eth0\nLD_PRELOAD=/x", reported.interface)
    assert str(caught.value) == (
        "gpu1: fabric.interfaces[0].name is 'eth0\\nLD_PRELOAD=/x', not the name of a network interface. "
        f"{reported.REMEDY}."
    )
    assert accept("gpu1", "x", "eth0", reported.interface) == "eth0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\n", "'a\\n'"),
        ("x" * 70, f"'{'x' * 60}'... (70 characters)"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (1.0, "1.0"),
        (7, "7"),
        pytest.param(10**5000, "a number of 16610 bits", id="giant"),
        ([1, 2], "a list of 2"),
        ({}, "a mapping of 0"),
        (b"x", "a bytes"),
    ],
)
def test_a_value_is_shown_short(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_text_on_one_line_is_cut() -> None:
    assert escaped("x" * 300) == "x" * 300
    assert escaped("x" * 301) == "x" * 300 + "..."
    assert escaped("\n" * 60, 50) == "\\n" * 50 + "..."


@given(st.text())
def test_what_is_shown_is_one_printable_line(text: str) -> None:
    assert len(escaped(text, 50).splitlines()) <= 1 and "\x1b" not in escaped(text)
    assert shown(text).isprintable()
    line = reported.sentence(text)
    assert len(line.splitlines()) <= 1


@given(st.ip_addresses())
def test_every_address_is_taken(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if "%" not in str(found):
        assert reported.address(str(found)) == str(found)


@given(st.text(min_size=1))
def test_a_path_that_is_taken_stays_below(path: str) -> None:
    try:
        reported.relative_path(path)
    except UnfitError:
        return
    assert not path.startswith(("/", "-")) and ".." not in path.split("/") and "\n" not in path
