# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts with GPUs, with and without a driver, and the plan for it.

The facts are written by hand, in the form that ``gpu_info`` and ``node_facts`` give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import preferences
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import PROPRIETARY
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    PREFERENCES_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.planner import NvidiaDriverPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import (
    PERSISTENCED,
    Request,
    exclusion,
    parse_request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import fact_after
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import builds, offers

from tests.role_values import defaults

HOSTS = {
    "debian12": ("debian", "12", "bookworm", "6.1.0-56-amd64", "http://deb.example/debian"),
    "debian13": ("debian", "13", "trixie", "6.12.43+deb13-amd64", "http://deb.example/debian"),
    "jammy": ("ubuntu", "22.04", "jammy", "5.15.0-91-generic", "http://archive.example/ubuntu"),
    "noble": ("ubuntu", "24.04", "noble", "6.8.0-151-generic", "http://archive.example/ubuntu"),
}
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc=\n-----END PGP PUBLIC KEY BLOCK-----"
BASE = "https://mirror.example/cuda"
NO_DRIVER = {
    "loaded": False,
    "version": None,
    "flavour": None,
    "library_version": None,
    "matches": None,
    "nouveau_loaded": False,
}
ROLE_VARS = defaults(
    nvidia_driver_source="distribution",
    nvidia_driver_repository_url=BASE,
)
CUDA = Inputs({"accelerator": "cuda"}, digest_key="k" * 40)


def facts(host: str = "debian13", *generations: str, **changes: Any) -> dict[str, Any]:
    """A host without a driver. ``changes`` name a section's key as ``gpu__secure_boot``, or a section."""
    distribution, release, codename, kernel, mirror = HOSTS[host]
    devices = [
        {"address": f"0000:{number:02x}:00.0", "device_id": "0x2330", "driver": None, "generation": name}
        for number, name in enumerate(generations or ("Hopper",), 1)
    ]
    found: dict[str, Any] = {
        "system": {
            "distribution": distribution,
            "release": release,
            "codename": codename,
            "kernel": kernel,
            "architecture": "x86_64",
        },
        "gpu": {
            "present": True,
            "pci_devices": devices,
            "nvswitches": [],
            "driver": dict(NO_DRIVER),
            "gpus": [],
            "fabric": {"state": None, "manager_running": None, "manager_version": None},
            "secure_boot": False,
            "problems": [],
        },
        "driver": {
            "kernel": kernel,
            "kernel_there": True,
            "machine_id": "m",
            "boot_id": "b",
            "packages": {},
            "image_flavours": ["amd64" if distribution == "debian" else "generic"],
            "kernel_packages": {
                f"linux-image-{'amd64' if distribution == 'debian' else 'generic'}": {"version": "1", "held": False}
            },
            "unfinished": [],
            "interrupted": False,
            "headers": {"package": f"linux-headers-{kernel}", "installed": False, "available": True},
            "module": None,
            "dkms": [],
            "next_boot": None,
            "mok_enrolled": None,
            "mok_keys": [],
            "umad": False,
            "persistence_off": False,
            "installer": None,
            "users": [],
            "services": {},
            "sources": [
                {
                    "file": "/etc/apt/sources.list",
                    "uri": mirror,
                    "suite": codename,
                    "components": ["main"],
                    "options": [],
                }
            ],
            "disk": {path: {"free_bytes": 50 * 2**30, "filesystem": 1} for path in ("/usr", "/var", "/boot")},
        },
        "files": {},
        "jobs": {},
    }
    for name, value in changes.items():
        section, dummy, key = name.partition("__")
        if key:
            found[section][key] = value
        else:
            found[section] = value
    return found


def running(version: str, flavour: str | None = PROPRIETARY, **more: Any) -> dict[str, Any]:
    """A driver that is loaded, with its libraries."""
    loaded = {"loaded": True, "version": version, "flavour": flavour, "library_version": version, "matches": True}
    return {**NO_DRIVER, **loaded, **more}


def request_of(requested: dict[str, Any]) -> Request:
    """What is asked of the distribution's driver, unless another source is named."""
    known = {"offers": offers(), "builds": builds()}
    return parse_request({"repository_url": BASE, "source": "distribution", **known, **requested})


MODULE = {"file": "/x.ko", "version": "550.163.01", "flavour": PROPRIETARY, "signer": "DKMS"}


def installed(**changes: Any) -> dict[str, Any]:
    """Packages and module on disk agree; what is loaded is said by ``changes``."""
    driver = {**NO_DRIVER, "library_version": "550.163.01", **changes.pop("loaded", {})}
    package = {"version": "550.163.01-2", "held": True, "finished": True}
    return facts(
        "debian13", gpu__driver=driver, driver__module=MODULE, driver__packages={"nvidia-smi": package}, **changes
    )


def kept(path: str, text: str) -> dict[str, Any]:
    """What is gathered of a file of the role that is as it was written."""
    return {**fact_after(ManagedFile(path, text), ""), "content": text}


def ours(*, held: bool, record: bool = True, active: bool = True) -> dict[str, Any]:
    packages = {
        name: {"version": version, "held": held, "finished": True}
        for name, version in (
            ("libcuda1", "550.163.01-2"),
            ("nvidia-smi", "550.163.01-2"),
            ("nvidia-modprobe", "570.1-1"),
        )
    }
    files = {PREFERENCES_FILE: kept(PREFERENCES_FILE, preferences("550.163.01"))}
    if record:
        files[EXCLUSION_FILE] = kept(EXCLUSION_FILE, exclusion(["libcuda1", "nvidia-smi"]))
    services = {PERSISTENCED: {"active": active, "state": "enabled"}}
    return facts(gpu__driver=running("550.163.01"), driver__packages=packages, driver__services=services, files=files)


def planned(found: Mapping[str, Any], inputs: Inputs = CUDA, **requested: Any) -> Plan:
    """Return the plan of the role; ``requested`` are its variables without ``nvidia_driver_``."""
    role_vars = {**ROLE_VARS, **{f"nvidia_driver_{name}": value for name, value in requested.items()}}
    return fold([NvidiaDriverPlanner()], {"gpu1": found}, {"gpu1": role_vars}, inputs)


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(change.action, change.what) for change in made.changes]


def task_input(made: Plan) -> Mapping[str, Any]:
    return made.task_inputs["gpu1"]["nvidia_driver"]
