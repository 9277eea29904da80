# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The keys of daemon.json: which engine knows them, what they hold, which need a restart, which keep from a swarm."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_keys import (
    KEYS,
    NEWEST,
    check,
    needs_restart,
    parse_version,
    swarm_problems,
    swarm_takes_nftables,
    unknown_keys,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def reported(config: dict[str, Any], version: tuple[int, int] | None = None) -> list[str]:
    return [str(problem) for problem in check(config, config, version)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"debug": "true"}, "debug: must be true or false, not 'true'"),
        ({"mtu": "1400"}, "mtu: must be a whole number without quotes, at least 0, not '1400'"),
        ({"mtu": True}, "mtu: must be a whole number, at least 0, not true"),
        ({"mtu": 1400.0}, "mtu: must be a whole number, at least 0, not 1400.0"),
        ({"mtu": -1}, "mtu: must be a whole number, at least 0, not -1"),
        (
            {"network-diagnostic-port": 65536},
            "network-diagnostic-port: must be a whole number, from 0 to 65535, not 65536",
        ),
        ({"log-driver": None}, "log-driver: must be text, not nothing"),
        ({"log-driver": ["a"]}, "log-driver: must be text, not ['a']"),
        ({"log-opts": {"max-file": 3}}, "log-opts.max-file: must be text (put it into quotes), not 3"),
        ({"log-opts": [3]}, "log-opts: must be a mapping, not [3]"),
        ({"labels": "rack=7"}, "labels: must be a list, not 'rack=7'"),
        ({"labels": ["rack"]}, "labels[0]: must be 'name=value', not 'rack'"),
        ({"registry-mirrors": [1]},
         "registry-mirrors[0]: must be http:// or https:// and a host, without user and query, not 1"),
        ({"registry-mirrors": ["https://a", "http://me:hunter2@b"]},
         "registry-mirrors[1]: must be http:// or https:// and a host, without user and query, not "
         "'http://********@b'"),
        ({"registry-mirrors": ["m:5000"]},
         "registry-mirrors[0]: must be http:// or https:// and a host, without user and query, not 'm:5000'"),
        ({"exec-opts": ["systemd"]},
         "exec-opts[0]: must be 'name=value', such as 'native.cgroupdriver=systemd', not 'systemd'"),
        ({"default-shm-size": 64}, "default-shm-size: must be a size as text, such as '64M', not 64"),
        ({"default-shm-size": "lots"}, "default-shm-size: must be a size as text, such as '64M', not 'lots'"),
        ({"data-root": "docker"}, "data-root: must be an absolute path, not 'docker'"),
        ({"default-runtime": ""}, "default-runtime: must be the name of a runtime, not ''"),
        ({"dns": ["8.8.8"]}, "dns[0]: must be an IP address, not '8.8.8'"),
        ({"firewall-backend": "ufw"}, "firewall-backend: must be one of iptables, nftables, not 'ufw'"),
        ({"features": {"buildkit": 1}}, "features.buildkit: must be true or false, not 1"),
        ({"runtimes": {"nvidia": {"paht": "x"}}},
         "runtimes.nvidia.paht: is unknown; runtimes.nvidia has path, runtimeArgs, runtimeType, options, args, perhaps"
         " 'path' is meant"),
        ({"runtimes": {"nvidia": "x"}},
         "runtimes.nvidia: must be a mapping with path, runtimeArgs, runtimeType, options, args, not 'x'"),
        ({"runtimes": {"runc": {"path": "x"}}},
         "runtimes.runc: is the engine's own runtime, which cannot be set; choose another name"),
        ({"proxies": {"http_proxy": "x"}},
         "proxies.http_proxy: is unknown; proxies has http-proxy, https-proxy, no-proxy, perhaps 'http-proxy'"
         " is meant"),
        ({"proxies": {"http-proxy": ["http://me:hunter2@h"]}},
         "proxies.http-proxy: must be text, not ['http://********@h']"),
        ({"default-address-pools": [{"base": "10.0.0.0/8", "size": "24"}]},
         "default-address-pools[0].size: must be a whole number without quotes, from 1 to 128, not '24'"),
        ({"default-address-pools": [{"base": "10.0.0.0/8"}]}, "default-address-pools[0]: must name size"),
        ({"default-ulimits": {"memlock": {"Hard": -1, "Soft": -1}}},
         "default-ulimits.memlock: must have Name: memlock, or no container would start"),
        ({"default-ulimits": {"memlock": {"Name": "nofile", "Hard": -1}}},
         "default-ulimits.memlock: must have Name: memlock, or no container would start"),
        # names
        ({"live_restore": True}, "live_restore: is not a key of daemon.json; the engine refuses or ignores it, perhaps"
         " 'live-restore' is meant"),
        ({"Debug": True}, "Debug: is not a key of daemon.json; the engine refuses or ignores it, perhaps 'debug'"
         " is meant"),
        ({"qqqq": 1}, "qqqq: is not a key of daemon.json; the engine refuses or ignores it"),
        ({"": 1}, "'': is not a key of daemon.json; the engine refuses or ignores it"),
        ({"q" * 200: 1}, "'" + "q" * 76 + "...: is not a key of daemon.json; the engine refuses or ignores it"),
        ({"swarm-raft-election-tick": 1}, "swarm-raft-election-tick: is not a key of daemon.json; the engine refuses "
         "or ignores it"),
        ({"registry-mirror": []}, "registry-mirror: is the name of a flag, which the file ignores silently; the key is"
         " registry-mirrors"),
        ({"http-proxy": "x"}, "http-proxy: is silently ignored there; write it under proxies, as proxies.http-proxy"),
        ({"config-file": "x"}, "config-file: is a flag of dockerd, not a key of its file"),
    ],
)  # fmt: skip
def test_a_key_that_no_engine_takes(config: dict[str, Any], message: str) -> None:
    assert reported(config) == [message]
    assert reported({**config, "debug": True} if "debug" not in config else config, NEWEST) == [message]


@pytest.mark.parametrize(
    "config",
    [
        {"log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3", "env": None}},
        {"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}, "default-runtime": "nvidia"},
        {"runtimes": {"kata": {"runtimeType": "io.containerd.kata.v2", "options": {"a": [1]}}}},
        {"default-address-pools": [{"base": "10.200.0.0/16", "size": 24}], "dns": ["1.1.1.1", "::1"]},
        {"default-ulimits": {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}, "nofile": {"name": "nofile"}}},
        {"registry-mirrors": ["https://m/", "http://m:5000", "https://m/path/"], "insecure-registries": ["10.0.0.0/8"]},
        {"builder": {"gc": {"enabled": True, "defaultKeepStorage": "20GB"}}, "features": {"buildkit": False}},
        {"default-shm-size": "64M", "mtu": 0, "hosts": ["fd://"], "tls": False, "shutdown-timeout": -1},
    ],
)
def test_what_engines_take(config: dict[str, Any]) -> None:
    assert reported(config) == reported(config, (25, 0)) == []


@pytest.mark.parametrize(
    ("config", "version", "message"),
    [
        (
            {"proxies": {"no-proxy": "x"}},
            (20, 10),
            "proxies: is supported by engines from 23.0 on, but the engine here is 20.10; set it by a systemd "
            "drop-in with"
            " HTTP_PROXY instead",
        ),
        (
            {"firewall-backend": "nftables"},
            (28, 5),
            "firewall-backend: is supported by engines from 29.0 on, but the engine here is 28.5",
        ),
        ({"graph": "/x"}, (24, 0), "graph: was removed after engine 23.0, but the engine here is 24.0"),
    ],
)
def test_the_version_of_the_engine(config: dict[str, Any], version: tuple[int, int], message: str) -> None:
    assert reported(config, version) == [message]
    assert reported(config) == []
    assert unknown_keys(config, version) == list(config)
    assert unknown_keys(config, None) == []


def test_an_engine_newer_than_the_table_judges_what_is_not_known_here() -> None:
    newer = (NEWEST[0], NEWEST[1] + 1)
    assert reported({"quantum-bridge": 1}, newer) == []
    assert reported({"quantum-bridge": 1}, NEWEST) != []
    assert reported({"debgu": 1}, newer) != []
    assert unknown_keys({"quantum-bridge": 1, "debug": True}, newer) == ["quantum-bridge"]


def test_only_the_keys_that_are_asked_for_are_judged() -> None:
    config = {"debug": "x", "mtu": "x", "nonsense": 1}
    assert [problem.path for problem in check(["mtu", "gone"], config, None)] == ["mtu"]


@given(st.dictionaries(st.sampled_from(sorted(KEYS)) | st.text(), json_values, max_size=4), st.booleans())
@settings(deadline=None, derandomize=True, max_examples=examples(400))
def test_any_configuration_is_judged_in_words(config: dict[str, Any], known: bool) -> None:
    for problem in check(config, config, (20, 10) if known else None):
        assert len(problem.message) < 400
    swarm_problems(config)
    needs_restart(config, {})


@pytest.mark.parametrize(
    ("text", "version"),
    [("20.10.24+dfsg1", (20, 10)), ("29.7.2", (29, 7)), ("", None), (None, None), ("dev", None), ("9" * 9000, None)],
)
def test_versions(text: object, version: tuple[int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ({"live-restore": True}, ["live-restore"]),
        ({"live-restore": False, "firewall-backend": "iptables"}, []),
        ({"firewall-backend": "nftables"}, ["firewall-backend"]),
        ({"firewall-backend": "nftables", "iptables": True}, ["firewall-backend"]),
        ({"firewall-backend": "nftables", "iptables": False}, []),
        ({"firewall-backend": "nftables", "features": {"swarm-nftables": True}}, []),
        ({"firewall-backend": "nftables", "features": {"swarm-nftables": False}, "live-restore": True},
         ["live-restore", "firewall-backend"]),
    ],
)  # fmt: skip
def test_swarm(config: dict[str, Any], paths: list[str]) -> None:
    found = swarm_problems(config)
    assert [problem.path for problem in found] == paths
    assert all(
        "is incompatible with swarm mode, so the engine cannot join a swarm; set it to" in p.message for p in found
    )


@pytest.mark.parametrize(
    ("requested", "version", "taken"),
    [
        (True, (29, 6), True),
        (True, (30, 0), True),
        (True, (29, 5), False),
        (True, None, True),
        (False, (29, 7), False),
        (False, None, False),
        # GET /info does not say whether it is requested: the engine judges.
        (None, (29, 7), True),
        (None, (29, 5), False),
        (None, None, True),
    ],
)
def test_nftables_in_a_swarm(requested: bool | None, version: tuple[int, int] | None, taken: bool) -> None:
    assert swarm_takes_nftables(version, requested) is taken
    if requested is not None:
        config = {"firewall-backend": "nftables", "features": {"swarm-nftables": requested}}
        assert (swarm_problems(config, version) == []) is taken


def test_the_feature_is_named_where_the_engine_has_it() -> None:
    config = {"firewall-backend": "nftables"}
    begin = "nftables is incompatible with swarm mode, so the engine cannot join a swarm; set it to iptables or null"
    assert swarm_problems(config)[0].message == begin
    assert swarm_problems(config, (29, 6))[0].message == f"{begin}, or set features: {{swarm-nftables: true}}"
    old = {**config, "features": {"swarm-nftables": True}}
    assert swarm_problems(old, (29, 5))[0].message == (
        f"{begin} (features.swarm-nftables came with 29.6, and the engine here is 29.5)"
    )


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({}, {}, []),
        ({"mtu": 1}, {"mtu": 1, "debug": True}, []),
        ({"debug": True}, {}, ["debug"]),  # a removed key keeps its former value until a restart
        ({"max-concurrent-downloads": 3}, {}, []),  # but these fall back to their defaults
        ({"labels": ["a=b"], "registry-mirrors": []}, {"labels": ["a=c"], "registry-mirrors": ["https://m"]}, []),
        ({}, {"runtimes": {"nvidia": {"path": "x"}}, "default-runtime": "nvidia"}, []),
        ({"data-root": "/a", "mtu": 1}, {"data-root": "/b", "live-restore": True}, ["data-root", "mtu"]),
        ({"features": {"buildkit": True}}, {}, []),
        ({"features": {"cdi": True}}, {"features": {"cdi": True, "buildkit": True}}, []),
        ({}, {"features": {"containerd-snapshotter": True, "buildkit": True}}, ["features"]),
        ({}, {"unknown": 1}, ["unknown"]),
        ({"log-opts": {"max-size": "1m"}}, {"log-opts": {"max-size": "2m"}}, ["log-opts"]),
        ({"mtu": 1, "icc": True}, {"icc": True, "mtu": 1}, []),
    ],
)
def test_what_needs_a_restart(before: dict[str, Any], after: dict[str, Any], keys: list[str]) -> None:
    assert needs_restart(before, after) == keys
