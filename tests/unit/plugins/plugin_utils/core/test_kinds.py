# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The named kinds of values: what they accept and refuse, and the libraries that judge the same."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.kinds import CAPABILITIES, KINDS
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from tests.effort import examples

BARE = {"boolean", "choice", "pattern", "mapping"}
"""Kinds of which the argument spec, or the constraint itself, says all."""

ACCEPTED: dict[str, list[Any]] = {
    "number": [0, -1, 1.5],
    "whole_number": [0, -1, (1 << 63) - 1],
    "port": [0, 1, 65535],
    "dns_label": ["a", "7b", "a-b", "n" * 63],
    "host_name": ["gpu3", "GPU_3.example.org"],
    "job_name": ["finetune-10b", "a", "7.x_y"],
    "docker_name": ["train", "A.b_c-1"],
    "overlay_name": ["train", "A-b_1", "cafe", "n" * 63],
    "interface": ["bond0", "eth0.100", "enp1s0f0np0"],
    "account": ["alice", "DOMAIN\\alice", "a b", "user@example.com"],
    "group": ["44", "render", "2147483647"],
    "environment_name": ["HF_HOME", "_x1"],
    "environment_key": ["d.e", "A"],
    "sysctl": ["net.core.rmem_max", "net.ipv4.conf.eth0/100.rp_filter"],
    "operator": ["CPU_ADAM"],
    "capability": ["ALL", "cap_sys_admin", "Sys_Ptrace", *sorted(CAPABILITIES)],
    "ipv4": ["10.1.0.5"],
    "ip": ["10.1.0.5", "fd00::1"],
    "cidr_v4": ["10.0.0.0/8", "0.0.0.0/0", "10.1.0.5/32", "10.0.0.0/255.0.0.0"],
    "url": ["https://u:p@m.example/simple", "http://m.example:8080/pypi/simple/", "https://[fd00::1]/x"],
    "plain_url": ["https://hub.example"],
    "apt_uri": ["http://mirror.example.com/debian", "file:/srv/mirror", "mirror+file:/etc/apt/list", "copy:/x"],
    "pip_index": ["https://m.example/simple", "/srv/index", "file:///srv/index"],
    "proxy": ["proxy.example.com:3128", "http://u:p@p:3128/", "socks5h://p:1080"],
    "proxy_url": ["http://u:p%40@p:3128", "https://proxy.example.com:3128/"],
    "pip_proxy": ["http://p:3128", "socks5://u:p@p:1080/"],
    "apt_proxy": ["http://p:3128", "socks5h://p:1080"],
    "published_port": ["127.0.0.1:80:80", "443:80/udp", "[::1]:80:80"],
    "opened_port": ["8000/tcp", "8000-8010/udp"],
    "absolute_folder": ["/", "/data/swarm speed", "/a/..b"],
    "absolute_path": ["/a:b"],
    "relative_path": ["checkpoints/model", "a/", "..a"],
    "controller_path": ["files/train.tar", "~/x", "../x"],
    "file_name": ["__pycache__", "*.tmp", "-x"],
    "apt_package": ["git", "libc6:arm64", "g++", "git=1:2.39.5-0+deb12u2", "git/bookworm-backports"],
    "dpkg_package": ["git", "libc6:arm64", "g++", "git=1:2.39.5-0+deb12u2", "libc6:amd64=2*"],
    "apt_version": ["27.5", "5:28.1.1-1~debian.12~bookworm"],
    "python_command": ["python3", "python3.12"],
    "python_version": ["0.19.8", "0.20.0rc1", "1!2.0.post1+cu130"],
    "requirement": [
        *("transformers", "transformers>=4.50,<5", "a[b,c] ~= 1.2", "a @ https://h.example/a.whl", "a (>=1)"),
        *('a; python_version < "3.12"', "git+https://h.example/a@v1", "torch==2.11.0+cu130", "--pre", "/srv/a-1.whl"),
    ],
    "image": ["debian", "debian:12-slim", "registry.example.com:5000/team/train:1.4", f"a@sha256:{'0' * 64}"],
    "image_repository": ["team/train", "a" * 237],
    "kernel": ["6.1.0-31-amd64"],
    "pgp_key": ["-----BEGIN PGP PUBLIC KEY BLOCK-----\nx\n-----END PGP PUBLIC KEY BLOCK-----\n"],
    "memory_size": ["16g", "1G", "512MB", "1.5g", "67108864"],
    "torch_requirement": ["torch", "torch==2.11.0+cu130", "torch>=2.8,<3", "https://h.example/torch-2.whl", "--pre"],
    "git_reference": ["v1.4", "main", "feature/x", "0123abc", "release-2.0"],
    "overlay_subnet": ["10.20.0.0/24", "192.168.7.0/24", "100.64.0.0/16"],
    "yes_or_no": [True, False],
    "script": ["train.py", "./train", "/opt/train/run.sh", "-m package.module", "a/..b.py"],
    "ulimit": ["memlock:-1:-1", "stack:67108864", "nofile:1024:1048576", "NPROC:5:-1", "core:0"],
    "security_option": [
        *("no-new-privileges", "no-new-privileges:true", "label=disable", "apparmor:unconfined", "disable"),
        *("seccomp=unconfined", "seccomp=builtin", 'seccomp={"defaultAction": "x"}'),
    ],
    "line": ["text", "ü", " "],
    "argument": ["", "a\nb"],
    "scalar": ["x=y\n", 2, True, 0.5],
    "scalar_line": ["x=y", 2],
}

REFUSED: dict[str, list[Any]] = {
    "number": [True, float("inf"), float("nan")],
    "whole_number": [True, 1.5, "1", 1 << 63],
    "torch_requirement": ["", "numpy==2.0", "torch=2.1", "torch==", "torchvision"],
    "git_reference": ["", "-x", "a b", "a..b", "a~1", "a.lock", "/a", "a//b", "a@{1}", "a.", ".a"],
    "overlay_subnet": ["", "127.0.0.0/8", "224.0.0.0/8", "169.254.0.0/16", "10.0.0.0", "10.0.0.1/8"],
    "yes_or_no": ["yes", 1, 0, "true"],
    "script": ["", "../train.py", "a/../../train.py", "a\nb"],
    "port": [-1, 65536],
    "dns_label": ["Demo", "my_cluster", "a.b", "", "-", "-a", "a-", "n" * 64, "gpü", "a\n"],
    "host_name": ["", "a b", "-a", "a/b"],
    "job_name": ["Fine Tune", "../x", "", "a" * 64, "-a"],
    "docker_name": ["", "-a", "a b", "a/b", "ä"],
    "overlay_name": ["", "a.b", "a-", "cab", "1", "n" * 64],
    "interface": ["", "a" * 16, "eth 0", "a/b", "."],
    "account": ["", "a:b", "a,b", "a/b", "-x", "a\n"],
    "group": ["", "a b", "-1", "g" * 33, "2147483648"],
    "environment_name": ["", "1A", "A=B", "MY-TOKEN", "A B", "Ä"],
    "environment_key": ["", "A=B", "A B", "A\0"],
    "sysctl": ["", "vm", "net..x", "net.core=1", "net core"],
    "operator": ["", "CPU ADAM", "-x"],
    "capability": ["SYS_NICER", "", "CAP_", "ALL "],
    "ipv4": ["", "10.0.0.300", "10.0.0", "fd00::1", "automatic", "10.0.0.1/8", "010.0.0.1"],
    "ip": ["", "fd00::1%eth0", "10.0.0", "name"],
    "cidr_v4": ["", "ten", "10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "fd00::/64", "10.0.0.0/x"],
    "url": ["user:secret@m/simple", "https://", "https://m/ secret", "ftp://m/x", "https://:80/x", "https://m:0/"],
    "plain_url": ["https://u:p@hub.example", "hub.example"],
    "apt_uri": ["", "mirror.example.com/debian", "http://", "http://a b/"],
    "pip_index": ["", "m.example/simple", "ftp://m/simple", "https://"],
    "proxy": ["", "http://", "ftp://p:21", "p q", "http://p/path/more"],
    "proxy_url": ["", "p:3128", "socks5h://p:1080", "http://p/x", 'http://p"', "http://"],
    "pip_proxy": ["p:3128", "http://p/x", "localhost:1"],
    "apt_proxy": ["p:3128", "http://p:3128/x y", 'http://p"'],
    "published_port": ["80", "0:80", "80:65536", "host:80:80", "80:80/icmp", "1.2.3.400:80:80"],
    "opened_port": ["8000", "8000/sctp", "0/tcp", "9-8/tcp", "65536/udp"],
    "absolute_folder": ["", "/srv/$HOME", "data", "/a/../b", "/a:b", "/a\n", "~/x", "/.."],
    "absolute_path": ["", "bin", "/a/../b", "/a\0"],
    "relative_path": ["", "/etc/passwd", "../../etc", "a/../b", "-rf", "a//b", "a\\b", "./a"],
    "controller_path": ["", "a\nb", "a\0"],
    "file_name": ["", "a/b", ".", ".."],
    "apt_package": ["", "Git", "a", "git curl", "-y", "git=", "../x.deb"],
    "dpkg_package": ["", "Git", "a", "git curl", "-y", "git=", "../x.deb", "git/bookworm-backports"],
    "apt_version": ["", "latest", "v27", "27 5", ">=27"],
    "python_command": ["", "/usr/bin/python3", "3.12", "python 3"],
    "python_version": ["", "latest", ">=0.19", "0.19.x", "0.19 8"],
    "requirement": ["", "a b", "a>=", "a==1.0.", "a>1,,<2", "a[b", "a=1", "a ~= 1", "a>=1+local", "a;", "-r x"],
    "image": ["", "Debian", "a:", "a b", "a@sha256:0", "https://r/a", "a:t:u", f"a:{'t' * 129}", "-a", "a//b"],
    "image_repository": ["", "a:b", "A", "a/"],
    "kernel": ["", "6.1 x", "../x", "k" * 201],
    "pgp_key": ["", "x", "https://key", "-----BEGIN PGP PUBLIC KEY BLOCK-----"],
    "memory_size": ["lots", "", "0", "0g", "-1", "16 x", "1e3", "g", "99999999999999999999", "16g 2", "nan"],
    "ulimit": [
        *("nofile", "nofile:", "nofile:1:2:3", "nofile:many", "nofile:1_0", " core:1", "1:1", "files:1:1"),
        *("nofile:2:1", "stack:-1:4", "core:-2", "core:9223372036854775808", "nofile:-1:-1", "nofile:1024:-1"),
    ],
    "security_option": [
        *("seccomp=/etc/x.json", "seccomp:[]", "no-new-privileges=yes", "label", "systempaths=unconfined", ""),
    ],
    "line": ["", "a\nb", "a\0", "\x1b[0m"],
    "argument": ["a\0"],
    "scalar": [None, [1], {}, "a\0"],
    "scalar_line": [None, [1], "a\nb", "a\rb"],
}


def test_every_kind_has_values_of_both_sorts() -> None:
    assert set(KINDS) - BARE == set(ACCEPTED) == set(REFUSED)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_kind_accepts(name: str) -> None:
    assert [value for value in ACCEPTED[name] if not KINDS[name].accepts(value)] == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kind_refuses(name: str) -> None:
    assert [value for value in REFUSED[name] if KINDS[name].accepts(value)] == []


@pytest.mark.parametrize("name", [name for name in KINDS if name not in BARE])
def test_an_example_is_one(name: str) -> None:
    kind = KINDS[name]
    assert kind.what and (kind.example == "" or kind.accepts(kind.example))


ANY = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.integers(), max_size=2)
)


@settings(max_examples=examples(200), deadline=None)
@given(value=ANY | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2))
def test_whatever_it_is_it_is_accepted_or_not(value: Any) -> None:
    for name in ACCEPTED:
        assert KINDS[name].accepts(value) in (True, False)


@settings(max_examples=examples(300), deadline=None)
@given(text=st.text("0123456789./", max_size=18) | st.ip_addresses(v=4, network="10.0.0.0/8").map(str))
def test_networks_and_addresses_are_those_of_the_standard_library(text: str) -> None:
    for name, read, fits in (("ipv4", ipaddress.IPv4Address, True), ("cidr_v4", ipaddress.IPv4Network, "/" in text)):
        try:
            read(text)
            known = bool(fits)
        except ValueError:
            known = False
        assert KINDS[name].accepts(text) is known, (name, text)


REQUIREMENT = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["torch", "a.b-c", "A_1", "é", "-x", ""]),
    st.sampled_from(["", "[b]", "[b,c]", "[", "[b!]"]),
    st.sampled_from(["", "==", ">=", "~=", "===", "!=", "=", "<", " >= "]),
    st.sampled_from(["", "1", "1.0", "1.*", "1.0.*", "2.11.0+cu130", "1.0.dev1", "1!2", "x", "1..2", "1.0rc1.*"]),
    st.sampled_from(["", ",<5", ",", ",,<5", " , != 4.1"]),
)


@settings(max_examples=examples(800), deadline=None)
@given(text=REQUIREMENT)
def test_requirements_are_those_of_packaging(text: str) -> None:
    """What packaging takes is accepted; what it refuses is refused, but for forms that only pip's command line has."""
    assume(not re.search(r"(?<!=)[=!]=1\.0rc1\.\*|===.*,,", text))  # the two gaps below
    try:
        Requirement(text)
        known = True
    except InvalidRequirement:
        known = False
    assert KINDS["requirement"].accepts(text) is known, text


@pytest.mark.xfail(
    strict=True, reason="known gaps: a pre-release with .*, and ===, behind which packaging takes any text"
)
@pytest.mark.parametrize(
    ("text", "known"), [("torch==1.0rc1.*", False), ("torch!=1.0rc1.*", False), ("torch===1,,<5", True)]
)
def test_requirements_that_are_judged_otherwise_than_by_packaging(text: str, known: bool) -> None:
    assert KINDS["requirement"].accepts(text) is known


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.pattern])
def test_patterns_mean_the_same_to_json_schema(name: str) -> None:
    """ECMA-262, which editors use, knows neither named groups in Python's form nor its anchors and flags."""
    assert not re.search(r"\(\?P|\\A|\\Z|\(\?[aiLmsux]", KINDS[name].pattern)
