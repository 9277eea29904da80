# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's unit: flags with their sources, clashes with the file, and the engine's words out of its journal."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_unit import (
    Flag,
    Unit,
    conflicts,
    engine_words,
    other_file,
    parse_properties,
    parse_unit,
    program_name,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

# What systemctl cat prints of docker.io 20.10.24 (Debian 12), shortened.
DEBIAN = r"""# /lib/systemd/system/docker.service
[Unit]
Description=Docker Application Container Engine
Requires=docker.socket

[Service]
Type=notify
# the default is not to use systemd for cgroups because the delegate issues still
# exists and systemd currently does not support the cgroup feature set required
EnvironmentFile=-/etc/default/docker
ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock $DOCKER_OPTS
ExecReload=/bin/kill -s HUP $MAINPID
KillMode=process
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
# The same of docker-ce 28 and 29 (contrib/init/systemd/docker.service in moby), shortened, with two drop-ins.
DOCKER_CE = r"""# /usr/lib/systemd/system/docker.service
[Unit]
Description=Docker Application Container Engine
StartLimitBurst=3

[Service]
Type=notify
ExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
ExecReload=/bin/kill -s HUP $MAINPID
Restart=always

# /etc/systemd/system/docker.service.d/10-proxy.conf
[Service]
Environment="HTTP_PROXY=http://me:hunter2@proxy:3128" "EXTRA=--label rack=7"

# /etc/systemd/system/docker.service.d/20-flags.conf
[Service]
ExecStart=
ExecStart=-/usr/bin/dockerd -H unix:///run/docker.sock -D \
# a comment inside
    --add-runtime nvidia=/usr/bin/nvidia-container-runtime \
    --insecure-registry=10.0.0.1:5000 --http-proxy ${HTTP_PROXY} $EXTRA $NONE -sNAME -l=warn --log-opt "max-size=1 m"
"""
VENDOR, DROP_IN = "/lib/systemd/system/docker.service", "/etc/systemd/system/docker.service.d/20-flags.conf"
PROXY = "/etc/systemd/system/docker.service.d/10-proxy.conf"


def nothing(path: str) -> str:
    return ""


def test_debian() -> None:
    requested: list[str] = []

    def read(path: str) -> str:
        requested.append(path)
        return '# DOCKER_OPTS="-D"\n\nDOCKER_OPTS="--mtu 1400 --live-restore"\n; x=y\nhttp_proxy=\'\'\n'

    unit = parse_unit(DEBIAN, read)
    assert requested == ["/etc/default/docker"]
    assert unit == Unit(
        "/usr/sbin/dockerd",
        (
            Flag("host", "fd://", VENDOR),
            Flag("containerd", "/run/containerd/containerd.sock", VENDOR),
            Flag("mtu", "1400", "/etc/default/docker"),
            Flag("live-restore", "", "/etc/default/docker"),
        ),
        can_reload=True,
    )
    assert len(parse_unit(DEBIAN, nothing).flags) == 2
    assert program_name(unit) == "dockerd"


def test_a_drop_in_replaces_the_command() -> None:
    unit = parse_unit(DOCKER_CE, nothing)
    assert unit.program == "/usr/bin/dockerd"
    assert unit.flags == (
        Flag("host", "unix:///run/docker.sock", DROP_IN),
        Flag("debug", "", DROP_IN),
        Flag("add-runtime", "nvidia=/usr/bin/nvidia-container-runtime", DROP_IN),
        Flag("insecure-registry", "10.0.0.1:5000", DROP_IN),
        Flag("http-proxy", "http://me:hunter2@proxy:3128", DROP_IN),
        Flag("label", "rack=7", PROXY),
        Flag("storage-driver", "NAME", DROP_IN),
        Flag("log-level", "warn", DROP_IN),
        Flag("log-opt", "max-size=1 m", DROP_IN),
    )


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", Unit()),
        ("# /x/docker.service\n[Service]\nExecReload=/bin/kill\n", Unit(can_reload=True)),
        ("[Service]\nExecReload=/bin/kill\nExecReload=\nExecStart=dockerd\n", Unit("dockerd")),
        ("[Unit]\nExecStart=/usr/bin/dockerd -D\n", Unit()),
        ("[Service]\nExecStart=/a -D\nExecStart=\n", Unit()),
        ("[Service]\nExecStart=@/a -Dl debug '\n", Unit("/a", (Flag("debug", "", ""), Flag("log-level", "debug", "")))),
        ("[Service]\nExecStart=/a -H=fd:// --x=$$1 -\n", Unit("/a", (Flag("host", "fd://", ""), Flag("x", "$1", "")))),
        ("[Service]\nEnvironment=A=-D\nEnvironment=\nExecStart=/a $A\n", Unit("/a")),
        ("[Service]\nEnvironmentFile=/e\nEnvironmentFile=\nExecStart=/a $A\n", Unit("/a")),
        ("[Service]\nExecStart=$A\n", Unit()),
    ],
)
def test_odd_units(text: str, unit: Unit) -> None:
    assert parse_unit(text, lambda path: "A=-D") == unit


@given(st.text(st.sampled_from("[Service]\nExecStart= -HD\"'$${A}\\#;/dockerd") | st.characters()))
@settings(deadline=None, derandomize=True, max_examples=examples(300))
def test_any_text_is_a_unit(text: str) -> None:
    unit = parse_unit("[Service]\n" + text, lambda path: text)
    conflicts(unit, {"hosts": []})
    engine_words(text)


def test_clashes_name_flag_key_and_file() -> None:
    unit = parse_unit(DOCKER_CE, nothing)
    config = {
        "hosts": ["fd://"],
        "debug": False,
        "runtimes": {"nvidia": {"path": "x"}},
        "insecure-registries": [],
        "proxies": {"http-proxy": "http://me:hunter2@proxy:3128"},
        "labels": ["a=b"],
        "mtu": 1400,
    }
    assert [str(problem) for problem in conflicts(unit, config)] == [
        f"hosts: is also set by the flag --host in {DROP_IN}, so dockerd would not start; leave hosts out, or start"
        " dockerd without -H by a drop-in that resets ExecStart",
        f"debug: is also set by the flag --debug in {DROP_IN}, so dockerd would not start; remove the one or the other"
        " (null removes a key)",
        f"insecure-registries: is also set by the flag --insecure-registry in {DROP_IN}, so dockerd would not start;"
        " remove the one or the other (null removes a key)",
        f"proxies.http-proxy: is also set by the flag --http-proxy in {DROP_IN}, so dockerd would not start; remove the"
        " one or the other (null removes a key)",
        f"labels: is also set by the flag --label in {PROXY}, so dockerd would not start; remove the one or the other"
        " (null removes a key)",
    ]
    assert conflicts(unit, {"mtu": 1, "runtimes": {}, "proxies": None}) == []
    gateway = Unit("dockerd", (Flag("host-gateway-ip", "10.0.0.1", "/u"),))
    assert [problem.path for problem in conflicts(gateway, {"host-gateway-ip": "10.0.0.2"})] == ["host-gateway-ip"]
    assert [problem.path for problem in conflicts(gateway, {"host-gateway-ips": []})] == ["host-gateway-ips"]


def test_another_file() -> None:
    unit = parse_unit("# /u.service\n[Service]\nExecStart=dockerd --config-file /srv/d.json\n", nothing)
    assert other_file(unit, "/etc/docker/daemon.json") == (
        "the engine does not read /etc/docker/daemon.json: --config-file in /u.service names /srv/d.json."
        " Set path: /srv/d.json"
    )
    assert other_file(unit, "/srv/d.json") == other_file(Unit(), "/x") == ""


def test_properties() -> None:
    assert parse_properties("LoadState=loaded\nX=a=b\n\n") == {"LoadState": "loaded", "X": "a=b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("\n", ""),
        (
            'time="2026-11-20T10:00:00Z" level=error msg="Handler for GET /x returned error: \\"y\\""\n'
            "failed to start daemon: error initializing graphdriver: unknown driver.\n"
            "docker.service: Main process exited, code=exited, status=1/FAILURE\n",
            "failed to start daemon: error initializing graphdriver: unknown driver",
        ),
        (
            "unable to configure the Docker daemon: the following directives don't match any: debg\n" * 2,
            "unable to configure the Docker daemon: the following directives don't match any: debg",
        ),
        (
            'time="x" level=error msg="Error reconfiguring the daemon" error="default runtime \\"a\\" does not exist"',
            'Error reconfiguring the daemon: default runtime "a" does not exist',
        ),
        ('time="x" level=error msg="one"\nlevel=info msg="two"', "one"),
        ("a\nb\nc\nd\n", "b; c; d"),
    ],
)
def test_the_words_of_the_engine(text: str, words: str) -> None:
    assert engine_words(text) == words
