# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of a host decides on versions: the same before a driver works and after. The facts are written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.version_host import host_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.choose import choose
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.hosts import Host, capabilities
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.requested import parse_requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import load_table

TABLE = load_table()
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc=\n-----END PGP PUBLIC KEY BLOCK-----"


def device(number: str, at: str = "0000:01:00.0", **more: Any) -> dict[str, Any]:
    return {"address": at, "device_id": number, "driver": None, "generation": None, **more}


def gpu(capability: str | None, at: str = "0000:01:00.0") -> dict[str, Any]:
    return {"address": at, "compute_capability": capability}


@pytest.mark.parametrize(
    ("facts", "known", "unknown"),
    [
        ({"pci_devices": [device("0x2330")], "gpus": []}, ("9.0",), ()),
        # A working driver changes nothing, even where it says something else.
        ({"pci_devices": [device("0x2330")], "gpus": [gpu("9.9")]}, ("9.0",), ()),
        ({"pci_devices": [device("0x3000")], "gpus": [gpu("10.7")]}, ("10.7",), ()),
        ({"pci_devices": [device("0x3000")], "gpus": [gpu(None)]}, (), ("0x3000 at 0000:01:00.0",)),
        ({"pci_devices": [device("0x3000")], "gpus": [gpu("[N/A]")]}, (), ("0x3000 at 0000:01:00.0",)),
        ({"pci_devices": [device("0x3000")], "gpus": [gpu("10.7", "0000:02:00.0")]}, (), ("0x3000 at 0000:01:00.0",)),
        # Two kinds in one host, in the order of numbers and not of text.
        (
            {"pci_devices": [device("0x2901"), device("0x2330", "b"), device("0x2330", "c")], "gpus": []},
            ("9.0", "10.0"),
            (),
        ),
        # A GPU of a virtual machine is none of this host's.
        ({"pci_devices": [device("0x2330"), device("0x1db1", "b", driver="vfio-pci")], "gpus": []}, ("9.0",), ()),
        # MIG: the instances are parts of the GPU on the bus.
        (
            {"pci_devices": [device("0x20b0")], "gpus": [{**gpu("8.0"), "mig": {"instances": [{"index": 0}] * 7}}]},
            ("8.0",),
            (),
        ),
        ({}, (), ()),
    ],
)
def test_capabilities_are_of_what_is_plugged_in(
    facts: dict[str, Any], known: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    assert capabilities(facts) == (known, unknown)


def node(release: str = "12", version: str | None = None, module: dict[str, Any] | None = None) -> dict[str, Any]:
    loaded = {"loaded": bool(version), "version": version, "flavour": "open", "library_version": version}
    return {
        "system": {"distribution": "debian", "release": release, "codename": "x", "architecture": "x86_64"},
        "gpu": {"pci_devices": [device("0x2330", generation="Hopper")], "gpus": [], "driver": loaded},
        "driver": {"module": module, "packages": {}},
    }


@pytest.mark.parametrize(
    ("facts", "requested", "expected"),
    [
        (node(), {}, ("580", 580, "cuda_repository", "")),
        (node(version="580.95.05"), {}, ("580.95.05", 580, "cuda_repository", "")),
        (node(version="535.1"), {}, ("535.1", 580, "cuda_repository", "2026-06")),
        (node(version="535.1"), {"branch": 580}, ("580", 580, "cuda_repository", "")),
        (node(version="535.1"), {"min_version": "570"}, ("580", 580, "cuda_repository", "")),
        (node(), {"source": "distribution"}, ("535", 535, "distribution", "2026-06")),
        (node(), {"source": "keep"}, ("", None, "keep", "")),
        (node(version="550.1", release="13"), {"source": "keep"}, ("550.1", None, "keep", "2026-02")),
    ],
)
def test_the_driver_that_will_run(facts: dict[str, Any], requested: dict[str, Any], expected: tuple[Any, ...]) -> None:
    driver, branch, source, ended = expected
    found = host_of("gpu1", facts, {"repository_key": KEY, **requested}, TABLE)
    assert found == Host("gpu1", ("9.0",), (), driver, branch, source, 580, ended, "x86_64")


def test_a_driver_that_is_installed_and_not_loaded_will_run() -> None:
    facts = node(module={"version": "550.163.01", "flavour": "open"})
    facts["gpu"]["driver"]["library_version"] = "550.163.01"
    assert host_of("gpu1", facts, {}, TABLE).driver == "550.163.01"


@pytest.mark.parametrize("facts", [{}, {"gpu": None}, {"gpu": {"pci_devices": None, "gpus": None}}])
def test_a_fact_that_is_missing_is_no_exception(facts: dict[str, Any]) -> None:
    assert host_of("gpu1", facts, {}, TABLE).capabilities == ()


@pytest.mark.parametrize("release", ["12", "13"])
def test_the_image_is_the_same_before_the_driver_is_installed_and_after(release: str) -> None:
    before = node(release)
    after = node(release, version="580.95.05")
    after["gpu"]["gpus"] = [gpu("9.0")]
    module = {"file": "/x.ko", "version": "580.95.05", "flavour": "open", "signer": None}
    between = node(release, module=module)
    between["gpu"]["driver"]["library_version"] = "580.95.05"
    found = [
        choose([host_of("gpu1", facts, {"repository_key": KEY}, TABLE)], parse_requested({}), TABLE)
        for facts in (before, between, after)
    ]
    assert found[0] == found[1] == found[2]
    assert found[0].stack == "cu130"
