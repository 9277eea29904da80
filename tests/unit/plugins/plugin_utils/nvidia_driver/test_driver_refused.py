# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""GPUs and kernels for which no driver is installed: one sentence each, before anything is begun. Invented hosts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import OPEN
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.kernels import (
    Build,
    oldest_that_builds,
    parse_builds,
    signed_package,
    without_module,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import builds

from tests.driver_hosts import KEY, facts, installed, planned, request_of, running, task_input
from tests.driver_hosts import MODULE as DISK

SWITCHES = [{"name": f"mlx5_{number}", "switch_management": True, "ports": []} for number in range(8, 12)]
PORTS = [{"name": f"mlx5_{number}", "switch_management": False, "ports": []} for number in range(8)]
THERE = {"nvlsm": "1", "infiniband-diags": "1"}


def refusals(found: dict[str, Any], **requested: Any) -> list[str]:
    made = planned(found, **requested)
    assert not made.refusals or made.changes == ()
    return [f"{one.text}. Remedy: {one.remedy}." for one in made.refusals]


# vGPU


def guest(**changes: Any) -> dict[str, Any]:
    found = facts("noble", "Ada", **changes)
    found["gpu"]["pci_devices"][0]["vgpu"] = True
    return found


GUEST = (
    "this host is a guest with a vGPU (0000:01:00.0), which needs the host's GRID guest driver. Remedy: install the "
    "guest driver of the hypervisor's vGPU release (its administrator has it) and set nvidia_driver_source: keep."
)


@pytest.mark.parametrize("source", ["auto", "distribution", "cuda_repository", "keep"])
def test_no_driver_is_installed_in_a_guest_with_a_vgpu(source: str) -> None:
    assert refusals(guest(), source=source, repository_key=KEY) == [GUEST]


def test_a_guest_driver_that_works_is_left_alone() -> None:
    assert not planned(guest(gpu__driver=running("570.133.20", OPEN)), source="keep").pending("nvidia_driver", "gpu1")


@pytest.mark.parametrize(
    ("states", "numbers"),
    [
        (["Unlicensed (Unrestricted)", "Licensed (Expiry: 2026-12-24 10:17:12 GMT)", "Unlicensed"], "0, 2"),
        (["Licensed", None], ""),
    ],
)
def test_a_guest_without_a_licence_is_refused_before_anything_is_changed(
    states: list[str | None], numbers: str
) -> None:
    node = guest(gpu__driver=running("570.133.20", OPEN))
    node["gpu"]["gpus"] = [{"index": index, "license": state} for index, state in enumerate(states)]
    words = (
        f"GPU {numbers}: a vGPU without a valid licence, so it is slowed down after a while. Remedy: put the licence "
        "server's token into /etc/nvidia/ClientConfigToken, systemctl restart nvidia-gridd, and run again."
    )
    assert refusals(node, source="keep") == ([words] if numbers else [])


# NVSwitches of B200 and later


def b200(**changes: Any) -> dict[str, Any]:
    return facts("noble", "Blackwell", fabric={"infiniband": [*PORTS, *SWITCHES]}, **changes)


def test_switches_that_are_infiniband_devices_need_nvidias_packages() -> None:
    assert refusals(b200(), source="auto", repository_key=KEY) == [
        "this host has 4 NVSwitches of B200 or later (mlx5_8, mlx5_9, mlx5_10, mlx5_11), and its fabric manager cannot "
        "start without nvlsm, infiniband-diags, the kernel module ib_umad. Remedy: add NVIDIA's repository to apt on "
        "this host, apt-get install nvlsm infiniband-diags, echo ib_umad >/etc/modules-load.d/ib_umad.conf, modprobe "
        "ib_umad, and run again with nvidia_driver_source: cuda_repository, which brings the fabric manager in the "
        "driver's version."
    ]


@pytest.mark.parametrize(
    ("packages", "umad", "missing"),
    [
        ({"nvlsm": "1", "infiniband-diags": None}, True, "infiniband-diags"),
        ({"infiniband-diags": "1"}, True, "nvlsm"),
        (THERE, False, "the kernel module ib_umad"),
    ],
)
def test_only_what_is_missing_is_named(packages: dict[str, Any], *, umad: bool, missing: str) -> None:
    (reported,) = refusals(b200(packages=packages, driver__umad=umad), source="cuda_repository", repository_key=KEY)
    assert f"cannot start without {missing}. Remedy" in reported


def test_where_nothing_is_missing_the_fabric_manager_comes_from_nvidias_repository() -> None:
    node = b200(packages=THERE, driver__umad=True)
    made = planned(node, source="auto", repository_key=KEY)
    assert not made.refusals and task_input(made)["preview"]["fabric"][0] == "nvidia-fabricmanager"
    assert f"URIs: {task_input(made)['preview']['address']}" in task_input(made)["preview"]["sources"]
    (reported,) = refusals(node, source="distribution")
    assert reported.endswith(
        "and its fabric manager must be NVIDIA's own. Remedy: set nvidia_driver_source: cuda_repository."
    )


def test_a_driver_without_what_the_switches_need_is_refused_too() -> None:
    fabric = {"state": "In Progress", "manager_running": False, "manager_version": "580.95.05"}
    node = b200(gpu__driver=running("580.95.05", OPEN), gpu__fabric=fabric)
    assert "cannot start without nvlsm, infiniband-diags" in refusals(node)[0]
    node["gpu"]["fabric"] = {**fabric, "state": "Completed"}  # whatever manages it
    assert refusals(node) == []


@pytest.mark.parametrize("fabric", [{}, {"infiniband": PORTS}, {"infiniband": [{"name": "mlx5_0"}]}])
def test_ordinary_ports_are_no_switches(fabric: dict[str, Any]) -> None:
    made = planned(facts("noble", "Blackwell", fabric=fabric))
    assert not made.refusals and task_input(made)["preview"]["fabric"] == []


# GB200


@pytest.mark.parametrize(("number", "refused"), [("0x2941", True), ("0x31c2", True), ("0x2e12", False)])
def test_the_trays_of_a_rack_are_left_to_their_owner(number: str, *, refused: bool) -> None:
    node = facts("noble", "Blackwell")
    node["gpu"]["pci_devices"][0]["device_id"] = number
    assert refusals(node) == []  # B200 and B300 have the same chips
    node["system"]["architecture"] = "aarch64"
    words = (
        "these are GPUs of a GB200 or GB300; their trays form one NVLink domain through nvidia-imex, and this role "
        "does not set that up. Remedy: install driver and nvidia-imex in one version on every tray (NVIDIA's IMEX "
        "guide) and set nvidia_driver_source: keep."
    )
    assert refusals(node) == ([words] if refused else [])
    node["gpu"]["driver"] = running("580.95.05", OPEN)
    assert refusals(node) == []


# Secure Boot


@pytest.mark.parametrize(
    ("host", "keys", "commands"),
    [
        (
            "debian12",
            [],
            "apt-get install dkms mokutil openssl; openssl req -new -x509 -nodes -days 36500 -newkey rsa:2048 -subj "
            '"/CN=DKMS module signing key" -keyout /var/lib/dkms/mok.key -outform DER -out /var/lib/dkms/mok.pub; '
            "mokutil --import /var/lib/dkms/mok.pub;",
        ),
        (
            "debian13",
            [],
            "apt-get install dkms mokutil openssl; dkms generate_mok; mokutil --import /var/lib/dkms/mok.pub;",
        ),
        ("debian12", ["/var/lib/dkms/mok.pub"], "enrol the key (mokutil --import /var/lib/dkms/mok.pub;"),
        (
            "noble",
            [],
            "apt-get install shim-signed mokutil; update-secureboot-policy --new-key; mokutil --import "
            "/var/lib/shim-signed/mok/MOK.der;",
        ),
        ("noble", ["/var/lib/shim-signed/mok/MOK.der"], "(mokutil --import /var/lib/shim-signed/mok/MOK.der;"),
    ],
)
def test_the_remedy_for_secure_boot_makes_the_key_that_it_enrols(host: str, keys: list[str], commands: str) -> None:
    node = facts(host, gpu__secure_boot=True, driver__mok_enrolled=False, driver__mok_keys=keys)
    found = refusals(node, source="cuda_repository", repository_key=KEY)
    assert len(found) == 1 and commands in found[0]


# Kernels


BUILDS = parse_builds(builds())


@pytest.mark.parametrize(
    ("kernel", "branch", "oldest"),
    [
        ("6.17.0-22-generic", 580, None),
        ("7.0.0-31-generic", 580, "580.142"),
        ("7.0.0-1011-gcp", 580, "580.142"),
        ("7.1.0", 580, "580.159.04"),
        ("7.10.0-1-amd64", 580, "580.159.04"),
        ("7.0.0-31-generic", 590, ""),
        ("7.1.0", 595, "595.91.07"),
        ("7.0.0", 610, None),
        ("", 580, None),
    ],
)
def test_the_table_knows_which_driver_builds_on_a_kernel(kernel: str, branch: int, oldest: str | None) -> None:
    assert oldest_that_builds(BUILDS, kernel, branch) == oldest


def test_rows_of_another_form_refuse_nothing() -> None:
    assert parse_builds([{"linux": "7.0"}, "x", {"linux": "7.0", "branch": 590, "driver": None}]) == (
        Build("7.0", 590, ""),
    )
    assert parse_builds(None) == ()


def on_kernel(host: str, kernel: str) -> dict[str, Any]:
    node = facts(host, driver__kernel=kernel)
    node["system"]["kernel"] = kernel
    return node


def test_a_branch_that_does_not_build_on_the_kernel_is_refused() -> None:
    requested = {"source": "cuda_repository", "repository_key": KEY, "branch": 590}
    assert refusals(on_kernel("debian13", "7.0.4+deb14-amd64"), **requested) == [
        "no driver of branch 590 builds on kernel 7.0.4+deb14-amd64. Remedy: set nvidia_driver_branch to one that does "
        "(580 from 580.142 on; 595 from 595.91.07 on), or boot an older kernel."
    ]
    assert refusals(on_kernel("debian13", "6.19.3+deb14-amd64"), **requested) == []


def test_ubuntus_own_modules_are_not_concerned_and_dkms_is_not_tried() -> None:
    made = planned(on_kernel("noble", "7.0.0-31-generic"), branch=590)
    assert not made.refusals
    assert [choice["kind"] for choice in task_input(made)["preview"]["choices"]] == ["signed"]


def test_apt_is_told_which_driver_dkms_can_build() -> None:
    made = planned(on_kernel("noble", "7.0.0-31-generic"))
    preview = task_input(made)["preview"]
    assert (preview["kernel"], preview["builds_from"]) == ("7.0.0-31-generic", "580.142")
    assert [choice["kind"] for choice in preview["choices"]] == ["signed", "dkms"]


# The kernel that boots next


@pytest.mark.parametrize(
    ("module", "package", "words"),
    [
        (
            None,
            "linux-modules-nvidia-580-server-open-6.8.0-152-generic",
            "kernel 6.8.0-152-generic, which boots next, has no nvidia module, so after a reboot no program could use "
            "the GPUs. Remedy: apt-get install linux-modules-nvidia-580-server-open-6.8.0-152-generic; if apt says "
            "that it needs another version of the driver, run with nvidia_driver_hold: false and upgrade the driver; "
            "or remove that kernel (apt-get purge linux-image-6.8.0-152-generic).",
        ),
        (
            {"version": "580.105.08"},
            "",
            "kernel 6.8.0-152-generic, which boots next, has the nvidia module of driver 580.105.08, not of 580.95.05, "
            "so after a reboot no program could use the GPUs. Remedy: apt-get install linux-headers-6.8.0-152-generic, "
            "then dkms autoinstall -k 6.8.0-152-generic; or remove that kernel (apt-get purge "
            "linux-image-6.8.0-152-generic).",
        ),
    ],
)
def test_a_kernel_that_boots_next_without_the_driver_is_named(module: Any, package: str, words: str) -> None:
    boots = {"kernel": "6.8.0-152-generic", "module": module}
    node = facts("noble", gpu__driver=running("580.95.05", OPEN), driver__next_boot=boots)
    own = {"version": "6.8.0-151.151", "held": False, "finished": True}
    node["driver"]["packages"] = {"linux-modules-nvidia-580-server-open-6.8.0-151-generic": own} if package else {}
    made = planned(node)
    assert not made.changes and task_input(made)["next_boot"] == words


@pytest.mark.parametrize(
    ("boots", "version"),
    [
        ({"kernel": "6.8.0-152-generic", "module": {"version": "580.95.05"}}, "580.95.05"),
        (None, "580.95.05"),
        ({}, "580.95.05"),
        ({"kernel": "6.8.0-152-generic", "module": None}, ""),
    ],
)
def test_nothing_is_said_of_one_that_has_it(boots: Any, version: str) -> None:
    assert without_module(boots, version, "") is None


@pytest.mark.parametrize("kernel", ["6.8.0; rm -rf /", "6.8.0\x1b[2J", "$(x)"])
def test_no_command_is_made_of_a_strange_name(kernel: str) -> None:
    assert without_module({"kernel": kernel, "module": None}, "580.95.05", "") == (
        "the kernel that boots next, or its nvidia module, has an unexpected name",
        "check /boot on this host",
    )


def test_an_installed_driver_is_compared_before_a_reboot() -> None:
    boots = {"kernel": "6.12.57+deb13-amd64", "module": None}
    assert task_input(planned(installed(driver__next_boot=boots)))["next_boot"].startswith(
        "kernel 6.12.57+deb13-amd64, which"
    )
    right = {"kernel": "6.12.57+deb13-amd64", "module": {"version": DISK["version"]}}
    assert task_input(planned(installed(driver__next_boot=right)))["next_boot"] == ""
    # Without a driver there is nothing to compare with.
    assert task_input(planned(facts(driver__next_boot=boots)))["next_boot"] == ""


def test_the_package_of_another_kernel_is_named_after_that_of_the_running_one() -> None:
    packages = ["libcuda1", "linux-modules-nvidia-580-server-open-generic", "linux-modules-nvidia-580-6.8.0-1-generic"]
    assert signed_package(packages, "6.8.0-1-generic", "6.8.0-2-generic") == "linux-modules-nvidia-580-6.8.0-2-generic"
    assert signed_package(packages, "6.8.0-9-generic", "6.8.0-2-generic") == ""
    assert signed_package(packages, "", "6.8.0-2-generic") == ""


def test_the_request_carries_the_table() -> None:
    assert request_of({}).builds == BUILDS and BUILDS
