# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's files as facts, the plan for it, and what forbids it: over invented hosts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config import merge
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import (
    engine_settings,
    gather_engine_files,
    sealed,
    unit_from_facts,
    unit_text,
    unsealed,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state_io import (
    SystemEngineFilesIO,
    clock_synchronized,
    held_facts,
    parse_holds,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.engine import docker_plan, patched, shown_pair
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.files import proxy_environment
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import (
    CA_PATH,
    DROPIN_PATH,
    PACKAGES,
    PROXY_PATH,
    RECORD_PATH,
    SOURCES_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.planned import check_refused
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.requested import entries

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
REQUEST = {"repository_url": "https://mirror.example.com/linux", "repository_key": KEY, "mtu": 1500}
IO_UNIT = """\
# /lib/systemd/system/docker.service
[Service]
ExecStart=/usr/sbin/dockerd -H fd:// --live-restore --log-opt splunk-token=hunter2 --config-file /etc/mine.json
ExecReload=/bin/kill -s HUP $MAINPID
"""
ABSENT = {"exists": False, "sha256": None}


class FakeFiles:
    """A host with this daemon.json and this unit."""

    def __init__(self, config: bytes | None = None, unit: str = "") -> None:
        self.config, self.text = config, unit

    def read(self, path: str) -> bytes | None:
        return self.config if path == "/etc/docker/daemon.json" else None

    def unit(self, service: str) -> str:
        return self.text


def host(codename: str = "bookworm", config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A host without an engine; ``more`` replaces sections of its facts."""
    packages = {**dict.fromkeys(PACKAGES), **more.pop("packages", {})}
    running = any(packages[name] for name in ("docker.io", "docker-ce"))
    engine: dict[str, Any] = {
        "installed": running,
        "running": running,
        "version": "20.10.24" if running else None,
        "containers": {},
    }
    return {
        "system": {"distribution": "debian", "codename": codename},
        "packages": packages,
        "held": [],
        "files": {},
        "groups": {"docker": []},
        "accounts": {"ada": True, "bob": True},
        "engine": {"config_exists": config is not None, "config": config or {}, "problem": None, "unit": None},
        "docker": {**engine, "settings": engine_settings({}), **more.pop("docker", {})},
        **more,
    }


PYTHON = {"python3-docker": "5.0", "python3-requests": "2.28"}
DEBIAN = {**PYTHON, "docker.io": "20.10.24+dfsg1-1+deb12u1"}
CE = {
    **PYTHON,
    "docker-ce": "5:27.5.1-1~debian.12~bookworm",
    "docker-ce-cli": "5:27.5.1-1~debian.12~bookworm",
    "containerd.io": "1.7.25-1",
    "docker-buildx-plugin": "0.20.0-1",
}


def running(*names: str) -> dict[str, Any]:
    return {"containers": {name: {"state": "running"} for name in names} | {"old": {"state": "exited"}}}


def plan(facts: dict[str, Any], **request: Any) -> dict[str, Any]:
    found = docker_plan(facts, {**REQUEST, **request})
    return {**found, "problems": [f"{text}. Remedy: {remedy}" for text, remedy in found["problems"]]}


# The facts


def test_secrets_are_sealed_and_can_be_compared() -> None:
    config = {"proxies": {"http-proxy": "http://u:hunter2@p"}, "log-opts": {"splunk-token": "hunter2"}, "mtu": 1400}
    one = sealed(config)
    assert "hunter2" not in json.dumps(one) and one["mtu"] == 1400
    assert one == sealed(json.loads(json.dumps(config)))
    assert one != sealed({**config, "log-opts": {"splunk-token": "hunter3"}})
    assert unsealed(one) == {
        "proxies": {"http-proxy": "http://********@p"},
        "log-opts": {"splunk-token": "********"},
        "mtu": 1400,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PATCH = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.recursive(
        st.none() | st.integers(0, 3),
        lambda inner: st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        max_leaves=4,
    ),
)
NO_NULLS = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.recursive(
        st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2), max_leaves=4
    ),
)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_what_holds_no_secret_stays_as_it_is_and_may_be_sealed_twice(config: dict[str, Any]) -> None:
    once = sealed(config)
    assert unsealed(once).keys() == once.keys()
    json.dumps(once).encode()


@settings(deadline=None, derandomize=True)
@given(NO_NULLS, PATCH, PATCH)
def test_one_patch_does_what_two_do(config: dict[str, Any], one: dict[str, Any], two: dict[str, Any]) -> None:
    assert merge(config, patched(one, two)) == merge(merge(config, one), two)


def test_the_engines_files_as_facts() -> None:
    found = gather_engine_files(FakeFiles(b'{"mtu": 1400}', IO_UNIT), installed=True)
    assert (found["config_exists"], found["config"], found["problem"]) == (True, {"mtu": 1400}, None)
    assert [flag["name"] for flag in found["unit"]["flags"]] == ["host", "live-restore", "log-opt", "config-file"]
    assert "hunter2" not in json.dumps(found)
    unit = unit_from_facts(found["unit"])
    assert unit.config_file is not None
    assert (unit.config_file.value, unit.can_reload, unit.program) == ("/etc/mine.json", True, "/usr/sbin/dockerd")
    bare = gather_engine_files(FakeFiles(unit=IO_UNIT), installed=False)
    assert (bare["config_exists"], bare["unit"], unit_from_facts(bare["unit"]).flags) == (False, None, ())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "it is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"[]", "it holds a JSON list, not a mapping"),
        (b'{"a": {"b": 1}, "a": {"c": 2}}', "the key 'a' appears twice"),
        (b"\xff", "the byte at position 0 is not UTF-8 text"),
    ],
)
def test_a_file_that_is_not_json_is_a_fact_and_a_problem(content: bytes, problem: str) -> None:
    found = gather_engine_files(FakeFiles(content), installed=True)
    assert found["config"] == {} and problem in found["problem"]
    (problem,) = plan({**host(packages=DEBIAN), "engine": found})["problems"]
    assert problem.startswith("/etc/docker/daemon.json was left as it is: ")
    assert problem.endswith("Remedy: fix it by hand")


def test_holds_and_clock() -> None:
    assert parse_holds("bash\thi \nzsh\tii \nx\t\n\n") == ["bash"]
    assert held_facts([]) == []
    assert clock_synchronized() in (True, False, None)
    assert unit_text(CommandResult(1, "# /x\n")) == ""
    assert SystemEngineFilesIO().read("/none/such") is None
    assert SystemEngineFilesIO().unit("no-such-unit-at-all.service") == ""


def test_what_an_engine_says_of_its_settings() -> None:
    new = {
        "CgroupDriver": "systemd",
        "DefaultRuntime": "runc",
        "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}, {"Source": "x", "ID": "y"}, 5],
        "FirewallBackend": {"Driver": "nftables"},
        "LiveRestoreEnabled": True,
    }
    assert engine_settings(new) == {
        "cgroup_driver": "systemd",
        "default_runtime": "runc",
        "cdi_directories": ["/etc/cdi", "/var/run/cdi"],
        "cdi_devices": ["nvidia.com/gpu=all"],
        "firewall_backend": "nftables",
        "live_restore": True,
    }
    assert engine_settings({"CDISpecDirs": None, "DiscoveredDevices": None})["cdi_directories"] == []


# The plan


@pytest.mark.parametrize(
    ("codename", "source", "packages"),
    [
        ("bookworm", "distribution", ["docker.io", "iptables"]),
        ("trixie", "distribution", ["docker.io", "docker-cli", "docker-buildx", "iptables"]),
        ("noble", "distribution", ["docker.io", "docker-buildx", "iptables"]),
        ("bookworm", "docker", ["docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin", "iptables"]),
        ("bookworm", "keep", []),
    ],
)
def test_a_host_without_an_engine(codename: str, source: str, packages: list[str]) -> None:
    found = plan(host(codename), source=source)
    assert found["packages"] == ["python3-docker", "python3-requests", *packages]
    assert found["problems"] == []
    assert found["preview"] is (source == "docker")
    assert found["config"] == {"log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3"}}
    assert found["differing_keys"] == ["log-driver", "log-opts"]


def test_an_engine_that_is_there_stays_whatever_its_source() -> None:
    for packages in (DEBIAN, CE):
        for source in ("distribution", "docker", "keep"):
            found = plan(host(packages=packages), source=source)
            assert (found["packages"], found["config"], found["hold"], found["sources"]) == ([], {}, [], "")
    other = host(packages=PYTHON, docker={"installed": True, "running": True, "version": "24.0.2"})
    found = plan(other)
    assert (found["packages"], found["hold"]) == ([], [])


@pytest.mark.parametrize(("source", "packages"), [("distribution", ["docker-buildx"]), ("keep", [])])
def test_with_keep_nothing_is_added_to_an_engine_that_is_there(source: str, packages: list[str]) -> None:
    engine = {"docker.io": "26.1.5+dfsg1-9", "docker-cli": "26.1.5+dfsg1-9", **PYTHON}
    assert plan(host("trixie", packages=engine), source=source)["packages"] == packages


def test_fresh_values_yield_to_what_is_there_and_to_what_is_asked() -> None:
    there = {"log-opts": {"max-size": "1g"}, "labels": ["a=b"]}
    found = plan(host(config=there), mtu=1400, config={"mtu": 9000, "labels": None})
    assert found["config"] == {"log-driver": "json-file", "log-opts": {"max-file": "3"}, "mtu": 9000, "labels": None}
    assert found["differing_keys"] == ["log-opts.max-file", "labels", "log-driver", "mtu"]
    for config, requested in (({"log-driver": "journald"}, {}), ({}, {"log-driver": "journald"})):
        assert "log-opts" not in plan(host(config=config), config=requested)["config"]


def test_a_key_that_is_right_is_no_difference_and_needs_no_consent() -> None:
    facts = host(packages=DEBIAN, config={"debug": True, "mine": 1}, docker=running("job"))
    found = plan(facts, config={"debug": True})
    assert (found["differing_keys"], found["restart_reasons"]) == ([], [])


def test_a_running_engine_is_restarted_for_what_a_reload_does_not_take_over() -> None:
    facts = host(packages=DEBIAN)
    assert plan(facts, config={"debug": True})["restart_reasons"] == []
    found = plan(facts, config={"data-root": "/data"})
    assert found["restart_reasons"] == ["data-root in /etc/docker/daemon.json (docker_daemon_config)"]
    stopped = host(packages=DEBIAN, docker={"running": False})
    assert plan(stopped, config={"data-root": "/data"})["restart_reasons"] == []


def test_a_secret_of_daemon_json_is_in_no_part_of_the_plan_but_its_config() -> None:
    secret = {"proxies": {"http-proxy": "http://u:hunter2@p"}}
    facts = host(packages=CE, config=sealed({"proxies": {"http-proxy": "http://u:old@p"}}))
    found = plan(facts, config=secret)
    assert found["differing_keys"] == ["proxies.http-proxy"]
    assert found.pop("config") == secret
    assert "hunter2" not in json.dumps(found)
    assert plan(host(packages=CE, config=sealed(secret)), config=secret)["differing_keys"] == []


def test_a_dotted_key_is_found() -> None:
    assert shown_pair({"a.b": 1}, {"a.b": 2}, "a.b") == (1, 2)
    assert shown_pair({}, {"log-opts": {"x.y": "z"}}, "log-opts.x.y") == (None, "z")


# Versions, holds, sources


def test_a_version_is_pinned_and_held() -> None:
    found = plan(host(packages=CE), source="docker", version="27.5")
    assert (found["packages"], found["hold"]) == (
        [],
        ["docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin"],
    )
    assert (found["recorded"], found["release"]) == ([], [])
    assert "// Held: containerd.io docker-buildx-plugin docker-ce docker-ce-cli\n" in found["record"]
    assert '    "^docker\\-ce$";\n' in found["record"]
    held = host(
        packages=CE,
        held=found["hold"],
        files={RECORD_PATH: {"exists": True, "content": found["record"]}},
    )
    assert plan(held, source="docker", version="27.5")["recorded"] == sorted(found["hold"])
    released = plan(held, source="docker")
    assert released["release"] == released["recorded"] == sorted(found["hold"])
    assert plan(held, source="keep")["release"] == []


def test_another_version_is_asked_of_apt_and_restarts_the_engine() -> None:
    facts = host(packages=CE)
    found = plan(facts, source="docker", version="28.1")
    assert found["packages"] == ["docker-ce", "docker-ce-cli"] == found["locked"]
    assert found["preview"] is True
    assert found["restart_reasons"] == ["version 28.1 (docker_version)"]
    assert [entry["path"] for entry in found["files"] if entry["state"] == "absent"][-2:] == found["stale_sources"]
    assert "URIs: https://mirror.example.com/linux/debian\nSuites: bookworm\n" in found["sources"]
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n" in found["sources"]


def test_our_source_stays_and_no_other_is_touched() -> None:
    ours = {SOURCES_PATH: {"exists": True, "sha256": "x"}}
    assert plan(host(packages=CE, files=ours), source="docker")["sources"] != ""
    found = plan(host(packages=CE), source="docker")
    assert (found["sources"], found["stale_sources"]) == ("", [])
    assert [entry["path"] for entry in plan(host(packages=DEBIAN), source="docker")["files"]][-1] == SOURCES_PATH


@pytest.mark.parametrize(
    ("facts", "request_", "problem"),
    [
        (
            host(packages=DEBIAN),
            {"source": "docker", "version": "27.5"},
            "docker_version is 27.5, from docker_source docker, but the engine here is 20.10.24+dfsg1-1+deb12u1 (it is "
            "docker.io), and the role does not replace one kind by another. Remedy: remove that engine yourself (its "
            "images and containers stay below its data folder), or leave docker_version out to keep it",
        ),
        (
            host(packages=CE),
            {"source": "keep", "version": "28"},
            "docker_version is 28 and the engine here is 5:27.5.1-1~debian.12~bookworm, but docker_source is keep. "
            "Remedy: change the version yourself, or leave docker_version out",
        ),
        (
            host(packages=CE, held=["docker-ce"]),
            {"source": "docker", "version": "28"},
            "docker-ce is on hold in version 5:27.5.1-1~debian.12~bookworm, but docker_version is 28. Remedy: apt-mark "
            "unhold docker-ce if it may change, or leave docker_version out",
        ),
        (
            host(),
            {"source": "docker", "repository_key": ""},
            "docker_repository_key is not a public key as text (which begins with -----BEGIN PGP PUBLIC KEY "
            "BLOCK-----). Remedy: correct it",
        ),
        (
            host(),
            {"source": "docker", "repository_url": "https://u:hunter2@m/x"},
            "docker_repository_url holds a password, which everyone could read in apt's sources; write it into "
            "/etc/apt/auth.conf.d on the hosts (apt_auth.conf(5)) and leave it out here. Remedy: correct it",
        ),
        (
            host(),
            {"proxy": {"htp": "http://x"}},
            "docker_proxy has unknown keys (htp); known are http, https and no_proxy. Remedy: correct it",
        ),
        (host(), {"proxy": {"http": "x\ny"}}, "docker_proxy: http holds a line break. Remedy: correct it"),
        (
            host(packages=DEBIAN),
            {"config": {"debg": True}},
            "/etc/docker/daemon.json: debg: is not a key of daemon.json; the engine refuses or ignores it, perhaps "
            "'debug' is meant. Remedy: correct docker_daemon_config or the file",
        ),
        (
            host(),  # Debian 12's engine is known before it is installed
            {"config": {"proxies": {"http-proxy": "http://x"}}},
            "/etc/docker/daemon.json: proxies: is supported by engines from 23.0 on, but the engine here is 20.10; "
            "set it by a systemd drop-in with HTTP_PROXY instead. Remedy: correct docker_daemon_config or the file",
        ),
        (
            host(packages=DEBIAN),
            {"config": {"default-address-pools": [{"base": "10.10.0.0/16", "size": 12}]}},
            "/etc/docker/daemon.json: default-address-pools[0].size: is 12, and a network of that size is larger than "
            "the pool 10.10.0.0/16, so the engine would not start; set it to 16 or more, such as 24. Remedy: correct "
            "docker_daemon_config or the file",
        ),
        (
            host(packages=DEBIAN, config={"default-address-pools": [{"base": "10.10.0.0/16", "size": 24}]}),
            {"config": {"bip": "10.10.1.1/24"}},
            "/etc/docker/daemon.json: default-address-pools[0].base: 10.10.0.0/16 overlaps bip (10.10.1.1/24): the "
            "engine would not start if a network has these addresses already, and has none for networks if bip covers "
            "the pool; set bip outside of all pools, or to null, so that docker0 takes its addresses from the first "
            "pool. Remedy: correct docker_daemon_config or the file",
        ),
        (
            host(packages=DEBIAN, config={"live-restore": True}),
            {},
            "/etc/docker/daemon.json: live-restore: is incompatible with swarm mode, so the engine cannot join a "
            "swarm; set it to false or null. Remedy: correct docker_daemon_config or the file",
        ),
        (
            host(packages=CE, docker={"settings": engine_settings({"LiveRestoreEnabled": True})}),
            {},
            "the engine runs with live-restore, which is incompatible with swarm mode. Remedy: remove --live-restore "
            "from its unit, and restart it",
        ),
        (
            host(
                packages=CE,
                docker={"settings": engine_settings({"FirewallBackend": {"Driver": "nftables"}})},
            ),
            {},
            "the engine runs with the nftables firewall backend, which is incompatible with swarm mode. Remedy: "
            "remove --firewall-backend from its unit, and restart it",
        ),
    ],
)
def test_what_forbids_an_engine(facts: dict[str, Any], request_: dict[str, Any], problem: str) -> None:
    assert plan(facts, **request_)["problems"] == [problem]
    refused = {"docker": {"lab1": entries(*plan(facts, **request_)["problems"]), "lab3": entries("x")}}
    reported = list(check_refused("docker", ["lab1", "lab2"], refused))
    assert [f"{one.subject}: {one.text}. Remedy: {one.remedy}" for one in reported] == [f"lab1: {problem}"]
    assert "hunter2" not in problem


def test_without_a_swarm_live_restore_is_irrelevant() -> None:
    facts = host(packages=DEBIAN, config={"live-restore": True})
    assert plan(facts, swarm=False)["problems"] == []


def test_a_flag_on_the_unit_clashes_only_where_the_file_is_to_be_written() -> None:
    unit = gather_engine_files(FakeFiles(unit=IO_UNIT.replace("--config-file /etc/mine.json", "")), installed=True)
    facts = {**host(packages=CE), "engine": {**unit, "config": {"log-opts": {"max-size": "1m"}}}}
    assert plan(facts)["problems"] == []
    (problem,) = plan(facts, config={"debug": True})["problems"]
    assert problem.startswith("/etc/docker/daemon.json: log-opts: is also set by the flag --log-opt in /lib/systemd/")


def test_an_engine_that_reads_another_file_is_named() -> None:
    unit = gather_engine_files(FakeFiles(unit=IO_UNIT), installed=True)
    facts = {**host(packages=CE), "engine": unit}
    assert plan(facts, swarm=False)["problems"] == []
    (problem,) = plan(facts, swarm=False, config={"debug": True})["problems"]
    assert problem == (
        "the engine does not read /etc/docker/daemon.json: --config-file in /lib/systemd/system/docker.service names "
        "/etc/mine.json. Remedy: remove that flag from the unit, or leave docker_daemon_config empty"
    )


# Proxies


def test_the_proxy_is_in_a_file_of_its_own_that_root_alone_reads() -> None:
    facts = host(packages=DEBIAN, docker=running("job"))
    found = plan(facts, proxy={"http": "http://u:hunter2@p:3128", "no_proxy": "localhost"})
    files = {entry["path"]: entry for entry in found["files"]}
    assert files[PROXY_PATH]["content"] == 'HTTP_PROXY="http://u:hunter2@p:3128"\nNO_PROXY="localhost"\n'
    assert (files[PROXY_PATH]["mode"], files[PROXY_PATH]["secret"]) == ("0600", True)
    assert "hunter2" not in files[DROPIN_PATH]["content"] and PROXY_PATH in files[DROPIN_PATH]["content"]
    assert found["restart_reasons"] == ["its proxy (docker_proxy)"]
    there = {
        path: {"exists": True, "sha256": hashlib.sha256(files[path]["content"].encode()).hexdigest()}
        for path in (PROXY_PATH, DROPIN_PATH)
    }
    same = host(packages=DEBIAN, docker=running("job"), files=there)
    assert plan(same, proxy={"http": "http://u:hunter2@p:3128", "no_proxy": "localhost"})["restart_reasons"] == []
    assert plan(same)["restart_reasons"] == ["its proxy (docker_proxy)"]
    assert plan(host(packages=DEBIAN, files={PROXY_PATH: ABSENT}))["restart_reasons"] == []
    assert "/etc/systemd/system/docker.service.d" not in [entry["path"] for entry in plan(facts)["files"]]


def test_another_certificate_authority_is_another_unit_as_the_engine_reads_them_when_it_starts() -> None:
    facts = host(packages=DEBIAN, docker=running("job"))
    found = plan(facts, ca="abc")
    files = {entry["path"]: entry for entry in found["files"]}
    assert files[CA_PATH]["content"].endswith("[Service]\nEnvironment=SWARMSPEED_CA=abc\n")
    assert files["/etc/systemd/system/docker.service.d"]["mode"] == "0755"
    assert found["restart_reasons"] == ["a certificate authority (host_ca_certificate)"]
    there = {CA_PATH: {"exists": True, "sha256": hashlib.sha256(files[CA_PATH]["content"].encode()).hexdigest()}}
    same = host(packages=DEBIAN, docker=running("job"), files=there)
    assert plan(same, ca="abc")["restart_reasons"] == []
    assert plan(same, ca="other")["restart_reasons"] == plan(same)["restart_reasons"] == found["restart_reasons"]
    assert plan(facts)["restart_reasons"] == []


def test_what_systemd_would_take_for_its_own_is_escaped() -> None:
    assert proxy_environment({"http": 'a"b\\c$d`e%f'}) == 'HTTP_PROXY="a\\"b\\\\c\\$d\\`e%f"\n'
    assert proxy_environment({"http": "", "https": None}) == ""


def test_users_who_are_not_in_the_group() -> None:
    facts = host(packages=DEBIAN, groups={"docker": ["ada"]})
    assert plan(facts, users=["ada", "bob", "bob"])["users"] == ["bob"]
    assert plan({**facts, "groups": {"docker": None}}, users=["ada"])["users"] == ["ada"]


@settings(deadline=None, derandomize=True, max_examples=examples(60))
@given(
    st.dictionaries(st.sampled_from(["docker", "engine", "files", "packages", "held", "system", "groups"]), JSON),
    st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)
def test_no_facts_and_no_configuration_are_an_exception(facts: dict[str, Any], config: dict[str, Any]) -> None:
    docker_plan(facts, {**REQUEST, "config": config})


@pytest.mark.parametrize(
    ("version", "config", "unit", "refused"),
    [
        ("5:29.6.0-1~debian", {"features": {"swarm-nftables": True}}, "", False),
        ("5:29.6.0-1~debian", {}, " --feature swarm-nftables", False),
        ("5:29.6.0-1~debian", {}, "", True),
        ("5:29.5.3-1~debian", {"features": {"swarm-nftables": True}}, "", True),
    ],
)
def test_an_engine_that_runs_with_nftables(version: str, config: dict[str, Any], unit: str, refused: bool) -> None:
    """The rule is that of swarm_problems, also where a flag of the unit chose the backend."""
    started = f"# /x.service\n[Service]\nExecStart=/usr/bin/dockerd --firewall-backend nftables{unit}\n"
    facts = host(
        packages={**CE, "docker-ce": version, "docker-ce-cli": version},
        config=config,
        docker={"settings": engine_settings({"FirewallBackend": {"Driver": "nftables"}})},
    )
    facts["engine"]["unit"] = gather_engine_files(FakeFiles(None, started), True)["unit"]
    found = plan(facts)["problems"]
    assert [problem for problem in found if "nftables" in problem] == (
        [
            "the engine runs with the nftables firewall backend, which is incompatible with swarm mode. Remedy: "
            "remove --firewall-backend from its unit, and restart it"
        ]
        if refused
        else []
    )
