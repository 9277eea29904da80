# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host reports of its driver: parsers, and how the facts are put together.

The output of ``dkms status`` on Debian 13 was recorded; those of modinfo, mokutil and systemctl are written after their
manuals and public reports, as no GPU was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.host import (
    gather_driver,
    is_driver_package,
    parse_dkms,
    parse_packages,
    parse_services,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.host_io import SystemDriverIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.next_boot import parse_modinfo
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

KERNEL = "6.12.43+deb13-amd64"
DPKG = """\
adduser\tii \t3.152
libcuda1\tii \t550.163.01-2
linux-headers-amd64\tii \t6.12.43-1
linux-image-6.12.43+deb13-amd64\tii \t6.12.43-1
linux-image-amd64\tii \t6.12.43-1
nvidia-container-toolkit\thi \t1.17.8-1
nvidia-kernel-dkms\thi \t550.163.01-2
nvidia-smi\tiF \t550.163.01-2
nvidia-tesla-470-smi\trc \t470.256.02-1
libnvidia-ml1\tun \t
"""
MODINFO = f"""\
filename:       /lib/modules/{KERNEL}/updates/dkms/nvidia-current.ko.xz
firmware:       nvidia/550.163.01/gsp_tu10x.bin
version:        550.163.01
license:        NVIDIA
signer:         DKMS module signing key
"""


class FakeDriverIO:
    """A host from texts: files by path, and answers by the first word of a command."""

    def __init__(self, files: Mapping[str, str] | None = None, reported: Mapping[str, str] | None = None) -> None:
        self._files, self._reported = dict(files or {}), dict(reported or {})
        self.calls: list[tuple[str, ...]] = []

    def read(self, path: str) -> str:
        return self._files.get(path, "")

    def names(self, directory: str) -> list[str]:
        below = [path[len(directory) + 1 :] for path in self._files if path.startswith(f"{directory}/")]
        return sorted({path.split("/")[0] for path in below})

    def exists(self, path: str) -> bool:
        return path in self._files or bool(self.names(path))

    def free(self, path: str) -> int | None:
        return len(path) * 2**30

    def filesystem(self, path: str) -> int | None:
        return len(path)

    def users(self) -> list[str] | None:
        return []

    def run(self, *command: str) -> CommandResult | None:
        self.calls.append(command)
        text = self._reported.get(command[0])
        return None if text is None else CommandResult(0, text)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("nvidia-kernel-dkms", True),
        ("nvidia-headless-no-dkms-580-server-open", True),
        ("libnvidia-compute-580-server", True),
        ("linux-modules-nvidia-580-server-open-6.8.0-151-generic", True),
        ("firmware-nvidia-gsp", True),
        ("cuda-drivers", True),
        ("libcuda1", True),
        ("nvidia-fabricmanager-580", True),
        ("libcuda1-dev", False),
        ("nvidia-container-toolkit", False),
        ("libnvidia-container1", False),
        ("nvidia-cuda-toolkit", False),
        ("nvidia-docker2", False),
        ("cuda-toolkit-12-8", False),
        ("linux-modules-6.8.0-151-generic", False),
    ],
)
def test_which_packages_are_the_drivers(name: str, *, ours: bool) -> None:
    assert is_driver_package(name) is ours


def test_packages_whose_files_are_there() -> None:
    found = parse_packages(DPKG)
    assert found["libcuda1"] == {"version": "550.163.01-2", "held": False, "finished": True}
    assert found["nvidia-kernel-dkms"]["held"] is True
    assert found["nvidia-smi"]["finished"] is False
    assert "nvidia-tesla-470-smi" not in found and "libnvidia-ml1" not in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "nvidia-current/550.163.01, 6.12.43+deb13-amd64, x86_64: installed",
            [{"module": "nvidia-current", "version": "550.163.01", "kernel": KERNEL, "state": "installed"}],
        ),
        (
            "nvidia, 470.256.02, 5.15.0-91-generic, x86_64: installed (original_module exists)",
            [{"module": "nvidia", "version": "470.256.02", "kernel": "5.15.0-91-generic", "state": "installed"}],
        ),
        ("nvidia/580.95.05: added", [{"module": "nvidia", "version": "580.95.05", "kernel": "", "state": "added"}]),
        ("", []),
        ("Error! Could not locate dkms.conf file.", []),
    ],
)
def test_dkms(text: str, found: list[dict[str, str]]) -> None:
    assert parse_dkms(text) == found


def test_modinfo() -> None:
    found = parse_modinfo(MODINFO)
    assert found is not None
    assert (found["version"], found["flavour"], found["signer"]) == (
        "550.163.01",
        "proprietary",
        "DKMS module signing key",
    )
    opened = parse_modinfo("filename: /x.ko\nversion: 580.95.05\nlicense: Dual MIT/GPL\n")
    assert opened is not None and (opened["flavour"], opened["signer"]) == ("open", None)
    assert parse_modinfo("modinfo: ERROR: Module nvidia not found.") is None


def test_services_that_are_not_installed_are_left_out() -> None:
    text = (
        "Id=nvidia-persistenced.service\nLoadState=loaded\nActiveState=active\nUnitFileState=static\n\n"
        "Id=nvidia-fabricmanager.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
    )
    assert parse_services(text) == {"nvidia-persistenced.service": {"active": True, "state": "static"}}


def test_a_whole_look() -> None:
    io = FakeDriverIO(
        files={
            f"/lib/modules/{KERNEL}/build/Makefile": "",
            "/etc/machine-id": "abc\n",
            "/etc/apt/sources.list": "deb http://m.example/debian trixie main\n",
            "/var/lib/dpkg/updates/0001": "",
            "/usr/x": "",
        },
        reported={
            "dpkg-query": DPKG,
            "dkms": f"nvidia-current/550.163.01, {KERNEL}, x86_64: installed\nzfs/2.3, {KERNEL}, x86_64: installed\n",
            "modinfo": MODINFO,
            "systemctl": "",
        },
    )
    found = gather_driver(io, KERNEL, secure_boot=False)
    assert found["kernel_there"] is True
    assert found["headers"] == {"package": f"linux-headers-{KERNEL}", "installed": True, "available": None}
    assert sorted(found["packages"]) == ["libcuda1", "nvidia-kernel-dkms", "nvidia-smi"]
    assert found["image_flavours"] == ["amd64"]
    assert list(found["kernel_packages"]) == ["linux-image-amd64"]
    assert found["unfinished"] == ["nvidia-smi"]
    assert found["interrupted"] is True
    assert [entry["module"] for entry in found["dkms"]] == ["nvidia-current"]
    assert found["module"]["version"] == "550.163.01"
    assert found["mok_enrolled"] is None
    assert found["machine_id"] == "abc"
    assert found["disk"] == {
        "/usr": {"free_bytes": 4 * 2**30, "filesystem": 4},
        "/var": {"free_bytes": 4 * 2**30, "filesystem": 4},
    }
    assert [source["suite"] for source in found["sources"]] == ["trixie"]
    assert not any(call[0] in ("apt-cache", "mokutil") for call in io.calls)


@pytest.mark.parametrize(
    ("lists", "reported", "available"),
    [
        ({}, "", None),
        ({"/var/lib/apt/lists/x_Packages": ""}, f"Package: linux-headers-{KERNEL}\nVersion: 1\n", True),
        ({"/var/lib/apt/lists/x_Packages.lz4": ""}, "", False),
    ],
)
def test_headers_that_are_missing_are_searched_for_in_apts_lists(
    lists: dict[str, str], reported: str, *, available: bool | None
) -> None:
    io = FakeDriverIO(lists, {"apt-cache": reported})
    assert gather_driver(io, KERNEL, secure_boot=None)["headers"]["available"] is available


@pytest.mark.parametrize(
    ("files", "reported", "enrolled"),
    [
        ({}, {"mokutil": "is already enrolled"}, False),
        ({"/var/lib/dkms/mok.pub": ""}, {"mokutil": "/var/lib/dkms/mok.pub is already enrolled"}, True),
        ({"/var/lib/shim-signed/mok/MOK.der": ""}, {"mokutil": "MOK.der is not enrolled"}, False),
        ({"/var/lib/dkms/mok.pub": ""}, {}, None),
    ],
)
def test_the_key_of_dkms_under_secure_boot(
    files: dict[str, str], reported: dict[str, str], *, enrolled: bool | None
) -> None:
    assert gather_driver(FakeDriverIO(files, reported), KERNEL, secure_boot=True)["mok_enrolled"] is enrolled


UBUNTU_START = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"
DEBIAN_START = "/usr/bin/nvidia-persistenced --user nvpd"


@pytest.mark.parametrize(
    ("units", "off"),
    [
        ({"/usr/lib/systemd/system": UBUNTU_START}, True),  # nvidia-compute-utils-580-server 580.178.04
        ({"/lib/systemd/system": UBUNTU_START}, True),
        ({"/usr/lib/systemd/system": DEBIAN_START}, False),
        ({"/etc/systemd/system": DEBIAN_START, "/usr/lib/systemd/system": UBUNTU_START}, False),  # the owner's own unit
        ({}, False),
    ],
)
def test_whether_the_unit_starts_the_daemon_with_persistence_mode_off(units: dict[str, str], *, off: bool) -> None:
    files = {
        f"{folder}/nvidia-persistenced.service": f"[Service]\nExecStart={line}\n" for folder, line in units.items()
    }
    assert gather_driver(FakeDriverIO(files), KERNEL, secure_boot=None)["persistence_off"] is off


def test_what_beside_the_driver_is_read_for_switches_and_secure_boot() -> None:
    files = {"/sys/module/ib_umad/refcnt": "", "/var/lib/dkms/mok.pub": ""}
    found = gather_driver(FakeDriverIO(files), KERNEL, secure_boot=True)
    assert (found["umad"], found["mok_keys"]) == (True, ["/var/lib/dkms/mok.pub"])
    found = gather_driver(FakeDriverIO({"/var/lib/dkms/mok.pub": ""}), KERNEL, secure_boot=False)
    assert (found["umad"], found["mok_keys"], found["next_boot"]) == (False, [], None)


def test_nvidias_own_installer_is_noticed() -> None:
    files = {"/usr/bin/nvidia-uninstall": ""}
    assert gather_driver(FakeDriverIO(files), KERNEL, secure_boot=None)["installer"] == "/usr/bin/nvidia-uninstall"


def test_a_host_with_nothing() -> None:
    found = gather_driver(FakeDriverIO(), KERNEL, secure_boot=None)
    empty: dict[str, Any] = {
        "packages": {},
        "module": None,
        "dkms": [],
        "installer": None,
        "services": {},
        "sources": [],
    }
    assert {name: found[name] for name in empty} == empty
    assert found["kernel_there"] is False


def test_this_host_can_be_read() -> None:
    """The one place of input, on the machine that runs the tests: whatever it has, no exception."""
    found = gather_driver(SystemDriverIO(), "0.0-none", secure_boot=None)
    assert found["kernel_there"] is False and found["headers"]["installed"] is False
    assert set(found["disk"]) <= {"/usr", "/var", "/boot"} and found["disk"]["/usr"]["free_bytes"] > 0


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(st.text(alphabet=st.sampled_from("nvidia/,:=.\t\n Uih580")))
def test_any_output_is_read(text: str) -> None:
    parse_packages(text)
    parse_services(text)
    parse_modinfo(text)
    assert all(entry["state"] and entry["module"] for entry in parse_dkms(text))
