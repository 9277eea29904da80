# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Values of the container's options: what Docker takes, and what is refused before any connection."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.values import (
    READ,
    VOLUMES,
    wrong_values,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.training_nodes import ROLE_VARS, plan, running
from tests.training_nodes import facts as node

PREFIX = "training_container_"
ASSETS = {"assets_sources": [{"name": "net"}]}
EXTENSIONS = {"deepspeed_launch_vscode_extensions": ["one.vsix"]}


def wrong(name: str, *values: Any, **more: Any) -> list[str]:
    """What is wrong with a variable that is a list."""
    return [found.text for found in wrong_values({**ROLE_VARS, PREFIX + name: list(values), **more})]


def of(name: str, value: Any) -> list[str]:
    """What is wrong with a variable that is none."""
    return [found.text for found in wrong_values({**ROLE_VARS, PREFIX + name: value})]


def test_the_defaults_are_right() -> None:
    assert list(wrong_values(ROLE_VARS)) == list(wrong_values({})) == []


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("sources", [[], [{"name": "a", "folder": "/a"}]])
def test_what_is_not_known_before_a_connection_is_not_judged(name: str, sources: list[Any]) -> None:
    """A template that only facts can answer: without its value, the others are judged."""
    known = {one: ROLE_VARS[one] for one in READ if one in ROLE_VARS and one != name}
    given = {"assets_sources": sources, VOLUMES: ["/data:/usr"]}
    found = wrong_values({**known, **{one: value for one, value in given.items() if one != name}})
    assert [wrong.variable for wrong in found] == ([] if name == VOLUMES else [VOLUMES])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shm_size", "16g"),
        ("shm_size", "1G"),
        ("shm_size", "512MB"),
        ("shm_size", "1.5g"),
        ("shm_size", "67108864"),
        ("shm_size", "0"),
        ("ipc_mode", ""),
        ("ipc_mode", "host"),
        ("ipc_mode", "container:db"),
        ("ulimits", ["memlock:-1:-1", "stack:67108864", "nofile:1024:1048576", "NPROC:5:-1", "core:0"]),
        ("ulimits", "nofile:1024:4096,core:0"),
        ("capabilities", ["ALL", "cap_sys_admin", "Sys_Ptrace"]),
        ("security_opts", ["no-new-privileges", "no-new-privileges:true", "label=disable", "apparmor:unconfined"]),
        ("security_opts", ["seccomp=unconfined", "seccomp=builtin", 'seccomp={"defaultAction": "x"}', "disable"]),
        ("environment", {"A": "1", "B": 2, "C": True, "d.e": "x=y\n"}),
        ("published_ports", ["127.0.0.1:80:80", "127.0.0.2:80:81", "80:80/udp", "[::1]:80:80", "443:80"]),
        ("volumes", ["/srv/data:/data", "cache:/cache:ro,nocopy", "/anonymous", "/a:/b:rw,rshared", "~/x:/y"]),
        ("volumes", ["/srv/data:/workspace/data", "/srv/fuse:/etc/ssl/mine:ro", "/usr/local/cuda:/usr/local/cuda:ro"]),
        ("devices", ["/dev/fuse:/dev/fuse:rwm"]),
        ("groups", ["44", "render"]),
    ],
)
def test_what_docker_takes(name: str, value: Any) -> None:
    assert of(name, value) == []


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("80:80", "80:81", True),
        ("80:80", "127.0.0.1:80:80", True),
        ("0.0.0.0:80:80", "127.0.0.1:80:80", True),
        ("80:80", "80:80", True),
        ("80:80", "80:80/tcp", True),
        ("80:80", "80:80/udp", False),
        ("127.0.0.1:80:80", "127.0.0.2:80:80", False),
        ("0.0.0.0:80:80", "[::]:80:80", False),
        ("80:80", "[::1]:80:80", True),
    ],
)
def test_a_port_of_the_host_is_published_once(one: str, other: str, meet: bool) -> None:
    expected = [f"{one!r} and {other!r} use the same port of the host"] if meet else []
    assert wrong("published_ports", one, other) == expected


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        ("", " is not SOURCE:TARGET[:OPTIONS]"),
        ("data", " is not SOURCE:TARGET[:OPTIONS]"),
        ("/srv:data", " is not SOURCE:TARGET[:OPTIONS]"),
        (":/data", " is not SOURCE:TARGET[:OPTIONS]"),
        ("/a:/b:ro:z", " is not SOURCE:TARGET[:OPTIONS]"),
        ("/srv:/da\nta", " is not SOURCE:TARGET[:OPTIONS]"),
        ("/srv:/", ": the target is the container's whole file system"),
        ("/srv:/data/..", ": the target is the container's whole file system"),
        ("my data:/data", ": 'my data' is neither a path nor the name of a volume"),
        ("srv/data:/data", ": 'srv/data' is neither a path nor the name of a volume"),
        ("/srv:/data:readonly", ": 'readonly' are not options of a mount"),
        ("/srv:/data:ro,rw", " is both ro and rw"),
        ("/srv:/workspace", ": this collection mounts the workspace at /workspace"),
        ("/srv:/workspace/", ": this collection mounts the workspace at /workspace"),
        ("mine:/a/../jobs:ro", ": this collection mounts the jobs at /jobs"),
        ("/srv:/etc/swarmspeed", ": this collection mounts the configuration at /etc/swarmspeed"),
        ("/srv:/etc/swarmspeed/ssh", ": this collection mounts the configuration at /etc/swarmspeed, read-only"),
        ("/srv:/usr", ": without the image's own /usr no program runs in the container"),
        ("/etc:/etc:ro", ": without the image's own /etc no program runs in the container"),
    ],
)
def test_mounts_that_are_refused(volume: str, why: str) -> None:
    assert wrong("volumes", "/ok:/ok", volume) == [f"{volume!r}{why}"]


def test_mounts_that_meet_one_another_or_what_is_mounted_for_other_roles() -> None:
    assert wrong("volumes", "/a:/x", "/b:/x/:ro") == ["'/a:/x' and '/b:/x/:ro' have the same target"]
    (place,) = (desired for desired in wrong("volumes", "/a:/srv/lab/assets", **ASSETS))
    assert place == "'/a:/srv/lab/assets': this collection mounts models and data sets at /srv/lab/assets"
    server = "/root/.vscode-server/extensions"
    assert wrong("volumes", "/a:/srv/lab/assets", f"/b:{server}") == []
    assert wrong("volumes", f"/b:{server}", **EXTENSIONS) == [
        f"'/b:{server}': this collection mounts extensions of VS Code at {server}"
    ]


# Before any connection


def inventory(hosts: dict[str, dict[str, Any]], files: dict[str, str] | None = None, text: str = "") -> Inventory:
    return Inventory(
        groups={"cluster": list(hosts), "managers": list(hosts)[:1], "workers": list(hosts)[1:]},
        hosts=hosts,
        names={host: list(values) for host, values in hosts.items()},
        defaults={name: ROLE_VARS[name] for name in READ if name in ROLE_VARS},
        files=files or {},
        kind=lambda path: "file" if path in (files or {}).values() else None,
        text=lambda dummy: text,
    )


def lines(given: Inventory) -> list[str]:
    return [problem.line() for problem in INVENTORY_CHECKS["container_options"](given)]


def test_they_are_refused_before_any_connection_for_the_hosts_that_have_them() -> None:
    ports, volumes = {PREFIX + "published_ports": ["80:80", "80:81"]}, {PREFIX + "volumes": ["data"]}
    found = lines(inventory({"a": ports, "b": volumes}))
    assert found == [
        f"{PREFIX}published_ports: '80:80' and '80:81' use the same port of the host (set for a). Remedy: publish one "
        "of them at another port.",
        f"{PREFIX}volumes: 'data' is not SOURCE:TARGET[:OPTIONS] (set for b). Remedy: write it as in "
        "/srv/data:/data:ro.",
    ]
    everywhere = {PREFIX + "volumes": ["/srv:/workspace"]}
    (found_once,) = lines(inventory({"a": everywhere, "b": everywhere}))
    assert found_once.startswith(
        f"{PREFIX}volumes: '/srv:/workspace': this collection mounts the workspace at /workspace."
    )
    assert lines(inventory({"a": {}, "b": {}})) == []


def test_on_servers_without_docker_there_is_no_container() -> None:
    bare = {"deepspeed_launch_runtime": "host", PREFIX + "shm_size": "lots"}
    assert lines(inventory({"a": bare, "b": bare})) == []


def test_a_profile_is_read_before_any_connection() -> None:
    seccomp = f"{PREFIX}seccomp_profile"
    given = {"a": {seccomp: "p.json"}}
    (line,) = lines(inventory(given, {seccomp: "/here/p.json"}, "[]"))
    assert line.startswith(f'{seccomp}: p.json: it has no "defaultAction", so it is not a seccomp profile.')
    assert lines(inventory(given, {seccomp: "/here/p.json"}, '{"defaultAction": "SCMP_ACT_ALLOW"}')) == []


# What is right stays


def test_numbers_of_the_environment_are_text_and_text_keeps_its_hash() -> None:
    numbers = plan(node(), training_container_environment={"A": 1, "B": True})
    texts = plan(node(), training_container_environment={"A": "1", "B": "true"})
    (one, other) = (made.task_inputs["gpu2"]["training_container"] for made in (numbers, texts))
    assert one["settings"]["environment"] == {"A": "1", "B": "true"}
    assert one["make"]["labels"] == other["make"]["labels"]
    desired = {"A": "1", "B": "x y"}
    assert not plan(
        node(running(training_container_environment=desired)), training_container_environment=desired
    ).changes


LIMIT = st.builds(
    lambda *parts: ":".join(parts),
    st.sampled_from(["nofile", "memlock", "stack", "bad"]),
    *[st.integers(-3, 5).map(str)] * 2,
)
VALUE = st.one_of(LIMIT, st.text(max_size=8), st.sampled_from(["80:80", "/a:/b"]))


@settings(max_examples=examples(300), deadline=None)
@given(
    name=st.sampled_from([name for name in READ if name.startswith(PREFIX)]),
    value=st.lists(VALUE, max_size=3) | VALUE | st.integers() | st.dictionaries(VALUE, VALUE, max_size=2) | st.none(),
)
def test_whatever_is_set_is_judged_in_sentences(name: str, value: Any) -> None:
    for found in wrong_values({**ROLE_VARS, name: value}):
        assert found.variable == name and found.text and found.remedy
