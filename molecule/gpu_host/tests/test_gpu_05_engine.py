"""daemon.json and the real engines of two nodes: 20.10, which cannot validate a file, and 26.1, which can."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import container_state, info
from tests.gpu_runs import PAIR, condition, gpu, module
from tests.playbook_run import on

FILE = "/etc/docker/daemon.json"
STARTED = "systemctl show -p ActiveEnterTimestamp --value docker.service"
IMAGE = (
    "docker image inspect stand-in:idle >/dev/null 2>&1 || { { echo /usr/bin/sleep; ldd /usr/bin/sleep | "
    "grep -o '/[^ ]*'; } | tar --create --dereference --absolute-names --files-from=- | docker import - "
    "stand-in:idle; }"
)


def docker(host: str, **arguments: Any) -> dict[str, Any]:
    return module(host, "docker_daemon_config", **arguments)


def config(host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(on(host, f"cat {FILE}"))
    return found


@pytest.fixture(params=PAIR)
def host(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each node, and its file and engine as they were when the test is over."""
    name = str(request.param)
    on(name, f"cp -a {FILE} /root/daemon.json.kept && systemctl reset-failed docker; systemctl start docker")
    yield name
    on(
        name,
        f"cmp -s {FILE} /root/daemon.json.kept || {{ cp -a /root/daemon.json.kept {FILE}; systemctl restart docker; }}",
    )


def test_keys_are_merged_and_a_reload_is_enough_where_it_is(host: str) -> None:
    before, started = config(host), on(host, STARTED)
    done = docker(host, config={"debug": True, "labels": ["stand-in=yes"]})
    assert (done["failed"], done["changed"], done["reloaded"], done["restarted"]) == (False, True, True, False)
    assert done["validated"] is (host == "lab2")
    assert config(host) == {**before, "debug": True, "labels": ["stand-in=yes"]}
    running = info(host)
    assert (running["Debug"], running["Labels"]) == (True, ["stand-in=yes"])
    assert on(host, STARTED) == started
    assert docker(host, config={"debug": True})["changed"] is False
    # A key that is gone from the file keeps its value in a running engine until it is restarted.
    assert docker(host, config={"debug": None, "labels": None})["restarted"] is True
    assert config(host) == before


def test_a_key_that_is_read_at_the_start_restarts_an_idle_engine(host: str) -> None:
    done = docker(host, config={"shutdown-timeout": 20, "bip": "172.29.0.1/24"})
    assert (done["failed"], done["restarted"]) == (False, True)
    assert "172.29.0.1" in on(host, "ip -4 address show docker0")


def test_a_value_that_stops_the_engine_is_rolled_back(host: str) -> None:
    before = on(host, f"cat {FILE}")
    failed = docker(host, config={"storage-driver": "nonsense"})
    assert failed["failed"] is True
    # 26.1 says nothing of it when it validates the file; both say it when they start.
    assert f"The engine did not apply the new {FILE}: systemctl restart docker.service failed" in failed["msg"]
    assert "driver not supported" in failed["msg"]  # the engine's own words
    assert failed["msg"].endswith("The previous configuration is in force again")
    assert on(host, f"cat {FILE}") == before
    assert on(host, "systemctl is-active docker") == "active"
    assert info(host)["ServerVersion"]


def test_a_running_container_needs_consent(host: str) -> None:
    on(host, IMAGE)
    run = "docker run --detach --rm --name at-work stand-in:idle /usr/bin/sleep infinity"
    with condition(host, run, "docker rm --force at-work >/dev/null 2>&1 || true"):
        before, started = on(host, f"cat {FILE}"), on(host, STARTED)
        refused = docker(host, config={"bip": "172.29.0.1/24"})
        assert refused["failed"] is True
        assert refused["msg"].startswith("Nothing was written: the engine reads bip only when it starts, ")
        assert ": at-work. " in refused["msg"]
        assert (on(host, f"cat {FILE}"), on(host, STARTED)) == (before, started)
        # The role says it before anything, in its own words.
        gpu("site", hosts=(host,), tags="docker", docker_daemon_config={"bip": "172.29.0.1/24"}).refused(
            f"{host}: the engine must be restarted for bip in {FILE} ",
            ": at-work. Remedy: set docker_allow_restart: true ",
        )
        assert (on(host, f"cat {FILE}"), on(host, STARTED)) == (before, started)
        # A reload stops nothing, and is done.
        assert docker(host, config={"debug": True})["reloaded"] is True
        assert container_state(host, "at-work") == "running"
        assert docker(host, config={"bip": "172.29.0.1/24"}, restart="always")["restarted"] is True


def test_somebody_else_writes_at_the_same_moment(host: str) -> None:
    """The stand-in for another tool is a dockerd that writes while it is asked to judge the candidate."""
    dropin = "/etc/systemd/system/docker.service.d/stand-in.conf"
    wrapper = "/opt/swarmspeed-stand-in/bin/dockerd"
    theirs = '{"labels": ["somebody=else"]}'
    begin = (
        f"mkdir -p {dropin.rpartition('/')[0]}\n"
        f"cat >{wrapper} <<'END'\n#!/bin/sh\necho '{theirs}' >{FILE}\nexec /usr/sbin/dockerd \"$@\"\nEND\n"
        f"chmod 755 {wrapper}\n"
        f"printf '[Service]\\nExecStart=\\nExecStart={wrapper} -H fd:// "
        f"--containerd=/run/containerd/containerd.sock\\n' >{dropin}\n"
        "systemctl daemon-reload"
    )
    with condition(host, begin, f"rm {dropin} {wrapper} && systemctl daemon-reload"):
        started = on(host, STARTED)
        failed = docker(host, config={"debug": True})
        assert failed["failed"] is True
        assert failed["msg"].startswith(f"{FILE} was changed by another program at the same time")
        assert on(host, f"cat {FILE}") == theirs
        assert on(host, STARTED) == started


BROKEN = {
    "not JSON": b'{"debug": true,\n  oops}',
    "not a mapping": b"[1, 2]",
    # Of these the engine joins what they hold; of others the last one counts, with a warning.
    "a key with mappings twice": b'{"log-opts": {"max-size": "1m"}, "log-opts": {"max-file": "2"}}',
    "not UTF-8": b'{"labels": ["\xff"]}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_configuration_is_never_overwritten(host: str, content: bytes) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in content)
    on(host, f"printf '{octal}' >{FILE}")
    digest = on(host, f"sha256sum {FILE}")
    failed = docker(host, config={"debug": True})
    assert failed["failed"] is True and FILE in failed["msg"]
    gpu("site", hosts=(host,), tags="docker").refused(f"{host}: {FILE}", "Remedy: fix it by hand")
    assert on(host, f"sha256sum {FILE}") == digest


OF_THE_FILE = f"{{host}}: {FILE}"
REFUSED = {
    "misspelt": ({"log-drivers": "journald"}, ("log-drivers", "log-driver"), OF_THE_FILE),
    # A run finds it before any connection.
    "of the wrong type": ({"debug": "yes"}, ("debug",), "docker_daemon_config.debug: 'yes' is not true or false "),
    "set by a flag too": (
        {"hosts": ["tcp://127.0.0.1:2375"]},
        ("hosts", "is also set by the flag --host in /"),
        OF_THE_FILE,
    ),
    "not with a swarm": ({"live-restore": True}, ("live-restore", "incompatible with swarm"), OF_THE_FILE),
}


@pytest.mark.parametrize(("values", "texts", "begin"), REFUSED.values(), ids=REFUSED)
def test_a_key_that_cannot_be_is_refused(host: str, values: dict[str, Any], texts: tuple[str, ...], begin: str) -> None:
    before, started = on(host, f"cat {FILE}"), on(host, STARTED)
    failed = docker(host, config=values, swarm=True)
    assert failed["failed"] is True
    assert [text for text in texts if text not in failed["msg"]] == [], failed["msg"]
    gpu("site", hosts=(host,), tags="docker", docker_daemon_config=values).refused(begin.format(host=host), *texts)
    assert (on(host, f"cat {FILE}"), on(host, STARTED)) == (before, started)
