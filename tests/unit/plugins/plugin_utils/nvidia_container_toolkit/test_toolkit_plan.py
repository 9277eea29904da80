# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How containers get the GPUs, the plan for the toolkit, and whether an image's CUDA runs on a driver."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config import merge
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.access import (
    Access,
    access,
    device_requests,
    run_arguments,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.cuda import (
    cuda_verdict,
    image_cuda,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    PACKAGES,
    SOURCES_PATH,
    STALE_SOURCES,
    UNIT_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.toolkit import unit_text
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolkit_hosts import INSTALLED, done, node, plan

# How containers get the GPUs


def way(requested: str = "auto", engine: str | None = "26.1.5", **more: Any) -> Access:
    names = ("settings", "found", "users")
    settings_, found, users = (more.pop(name, {}) for name in names)
    return access(requested, engine, settings_, found, users, **more)


@pytest.mark.parametrize(
    ("engine", "mode", "config"),
    [
        ("20.10.24+dfsg1", "runtime", {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}),
        ("24.0.7", "runtime", {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}),
        (None, "runtime", {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}),
        ("25.0.0", "cdi", {"features": {"cdi": True}}),
        ("26.1.5+dfsg1-9", "cdi", {"features": {"cdi": True}}),
        ("28.1.9", "cdi", {"features": {"cdi": True}}),
        ("5:28.2.0-1~debian", "cdi", {}),
        ("29.7.2", "cdi", {}),
    ],
)
def test_cdi_where_the_engine_has_it(engine: str | None, mode: str, config: dict[str, Any]) -> None:
    found = way(engine=engine, cgroups="keep")
    assert (found.mode, dict(found.config), found.problem) == (mode, config, None)


def test_with_the_hook_the_engine_writes_cgroups_itself() -> None:
    options = {"exec-opts": ["native.cgroupdriver=cgroupfs"]}
    assert way(engine="24.0.7", found={"runtimes": {"nvidia": {"path": "/opt/x"}}}).config == options
    kept = way(engine="24.0.7", found={"exec-opts": ["native.umask=normal", "native.cgroupdriver=systemd"]}).config
    assert kept["exec-opts"] == ["native.umask=normal", "native.cgroupdriver=cgroupfs"]
    for more in (
        {"settings": {"cgroup_driver": "cgroupfs"}},
        {"found": options},
        {"users": {"exec-opts": ["native.cgroupdriver=systemd"]}},
        {"cgroups": "keep"},
    ):
        assert "exec-opts" not in way(engine="24.0.7", **more).config
    assert "exec-opts" not in way(engine="26.1").config


def test_keys_of_the_user_win() -> None:
    off = {"features": {"cdi": False}}
    assert way(users=off).mode == "runtime" and way(found=off).mode == "runtime"
    assert way(users={"features": {"buildkit": True}}).config == {"features": {"cdi": True}}
    assert way(found=off, users={"features": {"cdi": True}}).mode == "cdi"
    chosen = way(default_runtime=True, users={"default-runtime": "runc"}).config
    assert "default-runtime" not in chosen and "runtimes" in chosen


def test_a_runtime_that_is_there_is_left_as_it_is() -> None:
    # As nvidia-ctk writes it, with a key that the engine ignores.
    there = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
    assert way(engine="24.0.7", found=there, cgroups="keep").config == {}


def test_the_default_runtime_by_choice() -> None:
    config = way(default_runtime=True).config
    assert config["default-runtime"] == "nvidia" and "runtimes" in config
    done = {"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "x"}}, "features": {"cdi": True}}
    assert way(default_runtime=True, found=done).config == {}
    assert way(found=done).config == {}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"engine": "24.0.7"},
            "nvidia_container_toolkit_mode is cdi, but the engine is 24.0.7, and CDI needs 25.0 or later. Remedy: set "
            "nvidia_container_toolkit_mode: auto, or install a newer engine",
        ),
        (
            {"users": {"features": {"cdi": False}}},
            "nvidia_container_toolkit_mode is cdi, but features.cdi is false in the engine's configuration. Remedy: "
            "remove that key, or set nvidia_container_toolkit_mode: auto",
        ),
    ],
)
def test_cdi_that_cannot_be(more: dict[str, Any], problem: str) -> None:
    found = way("cdi", **more).problem
    assert found is not None and ". Remedy: ".join(found) == problem


def test_how_a_container_asks() -> None:
    assert device_requests("cdi") == [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
    assert device_requests("runtime") == [{"driver": "nvidia", "count": -1, "capabilities": [["gpu"]]}]
    assert [run_arguments(mode) for mode in ("cdi", "runtime")] == [
        ["--device", "nvidia.com/gpu=all"],
        ["--gpus", "all"],
    ]


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from(["auto", "runtime", "cdi"]),
    st.sampled_from([None, "20.10", "25.0", "28.2", "nonsense"]),
    st.dictionaries(
        st.sampled_from(["features", "exec-opts", "runtimes", "default-runtime"]),
        st.one_of(st.none(), st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.booleans())),
    ),
    st.booleans(),
)
def test_what_is_done_is_not_asked_again(
    requested: str, engine: str | None, found: dict[str, Any], default: bool
) -> None:
    once = access(requested, engine, {}, found, {}, default_runtime=default)
    again = access(requested, engine, {}, merge(found, dict(once.config)), {}, default_runtime=default)
    assert (again.mode, dict(again.config)) == (once.mode, {})


# The plan


def test_a_node_without_the_toolkit() -> None:
    found = plan(node())
    assert found["packages"] == list(PACKAGES) and found["fresh"] and found["mode"] == "cdi"
    assert found["differing_keys"] == ["features"] and found["unheld"] == list(PACKAGES)
    assert "URIs: https://m.example.com/deb/amd64\nSuites: /\nSigned-By:\n -----BEGIN" in found["sources"]
    states = {entry["path"]: entry["state"] for entry in found["files"]}
    assert states == {UNIT_PATH: "present", SOURCES_PATH: "present", **dict.fromkeys(STALE_SOURCES, "absent")}
    assert found["problems"] == []


def test_a_node_where_all_is_done() -> None:
    found = plan(done())
    assert (found["unheld"], found["missing"], found["config"], found["sources"]) == ([], [], {}, "")


def test_another_version_that_is_there_is_brought_to_the_one_asked_for() -> None:
    facts = done(packages=dict.fromkeys(PACKAGES, "1.19.1-1"))
    found = plan(facts)
    assert found["packages"] == list(PACKAGES) and found["before"] == dict.fromkeys(PACKAGES, "1.19.1-1")
    assert not found["fresh"] and found["recorded"] == sorted(PACKAGES)
    assert plan(facts, version="")["packages"] == []
    mixed = plan(done(packages={**INSTALLED, PACKAGES[3]: "1.17.8-1"}))
    assert mixed["packages"] == list(PACKAGES)


def test_kept_nothing_is_changed_and_what_is_missing_is_reported() -> None:
    found = plan(node("20.10.24"), source="keep")
    assert (found["packages"], found["config"], found["files"], found["hold"]) == ([], {}, [], [])
    assert found["missing"] == ["the Docker engine has no runtime nvidia"]


def test_what_is_missing_with_cdi() -> None:
    assert plan(node())["missing"] == [
        "the Docker engine does not support CDI devices",
        "/var/run/cdi/nvidia.yaml, which describes the GPUs to it, is missing",
    ]
    (missing,) = plan(done(), default_runtime=True)["missing"]
    assert missing == "the engine's default runtime is None, not nvidia"


def test_whom_it_concerns() -> None:
    containers = {"containers": {"job": {"state": "running"}}}
    found = plan(node(docker=containers))
    assert found["restart_reasons"] == ["features in /etc/docker/daemon.json"] and found["in_the_way"] == ["job"]
    hook = plan(node("24.0.7", docker=containers), cgroups="keep")
    assert hook["restart_reasons"] == ["NVIDIA's runtime hook, which it looks for when it starts"]
    new = node("29.1.0", docker=containers)
    assert plan(new)["in_the_way"] == []  # nothing is restarted
    assert plan({**new, "jobs": {"a": "running"}})["in_the_way"] == ["job"]  # but systemd is reloaded under a job
    assert plan({**new, "jobs": {"a": "succeeded"}})["in_the_way"] == []


@pytest.mark.parametrize(
    ("facts", "request_", "problem"),
    [
        (
            node(packages=dict.fromkeys(PACKAGES, "1.17.8-1"), held=["libnvidia-container1"]),
            {},
            "libnvidia-container1 is on hold in version 1.17.8-1, but version 1.18.2 is requested. Remedy: apt-mark "
            "unhold libnvidia-container1 if it may change, or set nvidia_container_toolkit_source: keep",
        ),
        (
            node(),
            {"repository_key": "x"},
            "nvidia_container_toolkit_repository_key is not a public key as text (which begins with -----BEGIN PGP "
            "PUBLIC KEY BLOCK-----). Remedy: correct it",
        ),
        (
            node(system={"architecture": "riscv64", "codename": "trixie"}),
            {},
            "NVIDIA has no container toolkit for riscv64. Remedy: set cluster_accelerator: cpu",
        ),
    ],
)
def test_what_forbids_the_toolkit(facts: dict[str, Any], request_: dict[str, Any], problem: str) -> None:
    assert plan(facts, **request_)["problems"] == [problem]


def test_a_hold_is_released_when_none_is_asked_for() -> None:
    found = plan(done(), hold=False)
    assert found["release"] == sorted(PACKAGES) and found["record"] == "" and found["hold"] == []


def test_the_unit_runs_before_the_engine() -> None:
    for mode in ("cdi", "runtime"):
        text = unit_text(mode)
        assert "Before=docker.service\n" in text and "create-dev-char-symlinks --create-all\n" in text
        assert ("cdi generate --output=/var/run/cdi/nvidia.yaml" in text) is (mode == "cdi")


def test_the_unit_makes_the_nodes_before_it_describes_them() -> None:
    """F6: the kernel module makes no /dev/nvidia-uvm. MIG instances are there once NVIDIA's MIG manager has run."""
    text = unit_text("cdi")
    nodes = "/usr/bin/nvidia-ctk system create-device-nodes --control-devices"
    line = f"ExecStartPre=-/bin/sh -c '{nodes} --load-kernel-modules || {nodes}'\n"
    assert line in text and text.index(line) < text.index("cdi generate")
    assert text.index("ExecStartPre=-/usr/bin/nvidia-smi -L\n") < text.index("cdi generate")
    assert "TimeoutStartSec=240\n" in text  # less than the task waits, and the engine waits for the unit
    (after,) = [row for row in text.splitlines() if row.startswith("After=")]
    assert "nvidia-mig-manager.service" in after.removeprefix("After=").split()


# CUDA


@pytest.mark.parametrize(
    ("environment", "driver", "level", "words"),
    [
        (["CUDA_VERSION=12.8.1"], "12.8", "ok", "the image i:1 has CUDA 12.8, and driver 580 supports CUDA up to 12.8"),
        (["CUDA_VERSION=11.8.0"], "12.2", "ok", "the image i:1 has CUDA 11.8, and driver 580 supports CUDA up to 12.2"),
        (
            ["CUDA_VERSION=12.8.1"],
            "12.2",
            "note",
            "the image i:1 has CUDA 12.8, and driver 580 supports CUDA up to 12.2: it runs, but not what is compiled "
            "at run time (PTX)",
        ),
        (
            ["CUDA_VERSION=13.0.0"],
            "12.8",
            "too_new",
            "the image i:1 has CUDA 13.0, but driver 580 supports CUDA up to 12.8 (Failed: CUDA driver version is "
            "insufficient for CUDA runtime version)",
        ),
        (["PATH=/x"], "12.8", "unknown", "the image i:1 does not state which CUDA it has"),
        (
            ["CUDA_VERSION=13.0"],
            None,
            "unknown",
            "the image i:1 has CUDA 13.0, but the driver does not report which CUDA it supports",
        ),
    ],
)
def test_whether_the_cuda_of_an_image_runs(environment: list[str], driver: str | None, level: str, words: str) -> None:
    assert cuda_verdict(environment, driver, "i:1", "580") == {"level": level, "text": words}


def test_where_an_image_tells_its_cuda() -> None:
    assert image_cuda(["NVIDIA_REQUIRE_CUDA=cuda>=12.6 brand=tesla,driver>=535"]) == (12, 6)
    assert image_cuda(["CUDA_VERSION=", "NVIDIA_REQUIRE_CUDA=cuda>=x"]) is None
    assert image_cuda(["novalue"]) is None
