# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is to be done for a driver on which host, and every refusal with its words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import (
    FIRST_BRANCH,
    Kernel,
    Place,
    choices,
    components,
    fabric_packages,
    known_branches,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import GENERATIONS, OPEN, PROPRIETARY
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.auto_source import recommendation
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.driver import Plan, make_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import EXCLUSION_FILE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import (
    PERSISTENCED,
    Node,
    Request,
    exclusion,
    parse_request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import offers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver_hosts import (
    BASE,
    HOSTS,
    KEY,
    MODULE,
    NO_DRIVER,
    facts,
    installed,
    planned,
    request_of,
    running,
)
from tests.effort import examples

PLACES = [
    Place(source, name.split()[0], name.split()[1], known)
    for name, known in parse_request({"offers": offers()}).offers.items()
    for source in ("distribution", "cuda_repository")
]


def plan(found: dict[str, Any], **requested: Any) -> Plan:
    return make_plan(found, request_of(requested))


def refusals(found: dict[str, Any], **requested: Any) -> list[str]:
    return [str(refusal) for refusal in plan(found, **requested).refusals]


def first_packages(found: Plan) -> tuple[str, ...]:
    return found.choices[0].packages


# What is installed, by distribution, generation and source


@pytest.mark.parametrize(
    ("host", "generation", "branch", "flavour", "package"),
    [
        ("debian12", "Kepler", 470, PROPRIETARY, "nvidia-tesla-470-kernel-dkms"),
        ("debian12", "Maxwell", 535, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian12", "Volta", 535, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian12", "Turing", 535, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian12", "Hopper", 535, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian12", "Grace Hopper", 535, OPEN, "nvidia-open-kernel-dkms"),
        ("debian13", "Pascal", 550, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian13", "Ampere", 550, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian13", "Ada", 550, PROPRIETARY, "nvidia-kernel-dkms"),
        ("debian13", "Grace Hopper", 550, OPEN, "nvidia-open-kernel-dkms"),
        ("jammy", "Kepler", 470, PROPRIETARY, "nvidia-headless-no-dkms-470-server"),
        ("jammy", "Volta", 580, PROPRIETARY, "nvidia-headless-no-dkms-580-server"),
        ("jammy", "Turing", 580, OPEN, "nvidia-headless-no-dkms-580-server-open"),
        ("noble", "Maxwell", 580, PROPRIETARY, "nvidia-headless-no-dkms-580-server"),
        ("noble", "Hopper", 580, OPEN, "nvidia-headless-no-dkms-580-server-open"),
        ("noble", "Blackwell", 580, OPEN, "nvidia-headless-no-dkms-580-server-open"),
    ],
)
def test_what_the_distribution_gives_to_a_generation(
    host: str, generation: str, branch: int, flavour: str, package: str
) -> None:
    found = plan(facts(host, generation))
    assert (found.state, found.branch, found.flavour, found.refusals) == ("install", branch, flavour, ())
    assert package in first_packages(found)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("generation", "flavour"), [("Volta", PROPRIETARY), ("Ampere", OPEN), ("Blackwell", OPEN)])
def test_what_nvidias_repository_gives(host: str, generation: str, flavour: str) -> None:
    found = plan(facts(host, generation), source="cuda_repository", repository_key=KEY)
    assert (found.branch, found.flavour, found.refusals) == (580, flavour, ())
    distribution, release = HOSTS[host][:2]
    assert found.address == f"{BASE}/{distribution}{release.replace('.', '')}/x86_64/"
    assert f"URIs: {found.address}\nSuites: /\nSigned-By:\n -----BEGIN PGP" in found.sources
    if distribution == "debian":
        module = "nvidia-kernel-open-dkms" if flavour == OPEN else "nvidia-kernel-dkms"
        assert {module, "nvidia-driver-cuda"} <= set(first_packages(found))
        assert "Components: contrib" in found.sources
    else:
        module = "nvidia-dkms-580-open" if flavour == OPEN else "nvidia-dkms-580"
        assert {module, "libnvidia-compute-580", "nvidia-utils-580"} <= set(first_packages(found))


def test_from_590_on_nvidias_packages_for_ubuntu_have_no_branch_in_their_names() -> None:
    found = plan(facts("noble", "Blackwell"), source="cuda_repository", repository_key=KEY, branch=590)
    assert {"nvidia-dkms-open", "libnvidia-compute", "nvidia-utils"} <= set(first_packages(found))


def test_debians_components_are_added_and_headers_asked_for() -> None:
    found = plan(facts("debian12"))
    assert "Suites: bookworm\nComponents: contrib non-free non-free-firmware\n" in found.sources
    assert "linux-headers-6.1.0-56-amd64" in first_packages(found)
    assert found.choices[0].optional == ("linux-headers-amd64",)
    there = facts("debian12", driver__headers={"installed": True})
    assert "linux-headers-6.1.0-56-amd64" not in first_packages(plan(there))


def test_ubuntu_prefers_its_signed_module_and_falls_back_to_dkms() -> None:
    found = plan(facts("noble"))
    assert [choice.kind for choice in found.choices] == ["signed", "dkms"]
    assert "linux-modules-nvidia-580-server-open-6.8.0-151-generic" in first_packages(found)
    assert "nvidia-dkms-580-server-open" in found.choices[1].packages
    assert "Components: restricted\n" in found.sources


def test_an_nvswitch_brings_the_fabric_manager() -> None:
    switches: dict[str, Any] = {"gpu__nvswitches": [{"address": "0000:05:00.0"}]}
    found = plan(facts("noble", **switches))
    assert found.fabric == ("nvidia-fabricmanager-580",)
    assert "Components: restricted multiverse\n" in found.sources
    (reported,) = refusals(facts("debian13", **switches))
    assert reported == (
        "this host has NVSwitches, and Debian has no fabric manager, without which CUDA fails with error 802. "
        "Remedy: set nvidia_driver_source: cuda_repository."
    )
    cuda = plan(facts("debian13", **switches), source="cuda_repository", repository_key=KEY)
    assert (cuda.refusals, cuda.fabric) == ((), ("nvidia-fabricmanager", "nvidia-fabricmanager-580"))


# Where auto takes it from


def switched(host: str, *generations: str) -> dict[str, Any]:
    return facts(host, *generations, gpu__nvswitches=[{"address": "0000:05:00.0"}])


@pytest.mark.parametrize(
    ("node", "requested", "source", "branch"),
    [
        (facts("debian12"), {}, "cuda_repository", 580),
        (facts("debian13"), {}, "cuda_repository", 580),
        (facts("jammy"), {}, "distribution", 580),
        (facts("noble"), {}, "distribution", 580),
        (facts("debian12", "Volta"), {}, "cuda_repository", 580),
        (facts("debian12"), {"branch": 535}, "distribution", 535),
        (facts("debian12"), {"branch": 570}, "cuda_repository", 570),
        (facts("debian13", "Blackwell"), {}, "cuda_repository", 580),
        (facts("debian12"), {"min_version": "580"}, "cuda_repository", 580),
        (facts("debian12"), {"min_version": "junk"}, "cuda_repository", 580),
        (switched("debian13"), {"branch": 550}, "cuda_repository", 550),
        (switched("noble"), {}, "distribution", 580),
        (facts("debian12"), {"source": "distribution"}, "distribution", 535),
        (facts("noble"), {"source": "cuda_repository"}, "cuda_repository", 580),
        (facts("debian12"), {"offers": {}}, "distribution", None),
    ],
)
def test_auto_takes_the_distributions_driver_while_it_is_supported(
    node: dict[str, Any], requested: dict[str, Any], source: str, branch: int | None
) -> None:
    request = request_of({"source": "auto", "repository_key": KEY, **requested})
    assert recommendation(request, Node(node)) == (source, branch)
    assert make_plan(node, request).source == source


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (
            facts("debian12"),
            "Debian 12's own driver, branch 535, has been without security updates since 2026-06, so the driver "
            "comes from NVIDIA's repository, and nvidia_driver_repository_key is empty. Remedy: set "
            f"nvidia_driver_repository_key to the text of {BASE}/debian12/x86_64/3bf863cc.pub (fingerprint "
            "EB693B3035CD5710E231E123A4B469963BF863CC); or set nvidia_driver_source: distribution, to take branch 535 "
            "all the same.",
        ),
        (
            switched("debian13"),
            "this host has NVSwitches, and Debian has no fabric manager, so the driver comes from NVIDIA's "
            "repository, and nvidia_driver_repository_key is empty. Remedy: set nvidia_driver_repository_key to the "
            f"text of {BASE}/debian13/x86_64/8793F200.pub (fingerprint 02182E60104FCDC26EAE1B8597A5D4CB8793F200).",
        ),
    ],
)
def test_auto_says_why_it_needs_the_key_of_nvidias_repository(host: dict[str, Any], words: str) -> None:
    assert refusals(host, source="auto") == [words]


def test_a_source_of_nvidias_repository_that_is_there_needs_no_key() -> None:
    node = facts("debian12")
    known = {"file": "/etc/apt/sources.list.d/cuda.list", "suite": "/", "components": [], "options": []}
    repositories = "https://nv.example/compute/cuda/repos"
    node["driver"]["sources"].append({**known, "uri": f"{repositories}/debian12/x86_64/"})
    found = plan(node, source="auto", repository_url=repositories)
    assert (found.source, found.branch, found.refusals) == ("cuda_repository", 580, ())


def test_auto_leaves_a_working_driver_alone_whose_branch_has_ended() -> None:
    found = plan(facts("debian12", gpu__driver=running("535.261.03")), source="auto")
    assert (found.state, found.refusals) == ("works", ())


# A driver that is there


@pytest.mark.parametrize(
    ("driver", "requested"),
    [
        (running("550.163.01"), {}),
        (running("550.163.01"), {"branch": 550}),
        (running("550.163.01"), {"branch": "550", "flavour": "proprietary", "min_version": "550.100"}),
        (running("575.57.08", OPEN), {"source": "keep"}),
        (running("575.57.08", None), {"flavour": "open"}),
    ],
)
def test_a_working_driver_is_left_alone_whatever_installed_it(
    driver: dict[str, Any], requested: dict[str, Any]
) -> None:
    node = facts(
        "debian13", gpu__driver=driver, driver__services={PERSISTENCED: {"active": False, "state": "disabled"}}
    )
    found = plan(node, **requested)
    assert (found.state, found.refusals) == ("works", ())
    assert not planned(node, **requested).pending("nvidia_driver", "gpu1")


@pytest.mark.parametrize(
    ("driver", "requested", "why"),
    [
        (NO_DRIVER, {}, "no driver is loaded"),
        (running("550.163.01"), {"branch": 580}, "driver 550.163.01 is not of branch 580"),
        (
            running("550.54.14"),
            {"min_version": "550.100"},
            "driver 550.54.14 is older than nvidia_driver_min_version (550.100)",
        ),
        (
            running("580.95.05"),
            {"flavour": "open"},
            "driver 580.95.05 has the proprietary kernel module, not the open one",
        ),
        (
            running("550.163.01", library_version="550.90.07", matches=False),
            {},
            "the loaded module is 550.163.01 but the libraries are 550.90.07",
        ),
        (
            running("550.163.01", library_version=None, matches=None),
            {},
            "driver 550.163.01 is loaded but its libraries are missing",
        ),
    ],
)
def test_why_a_driver_is_not_enough(driver: dict[str, Any], requested: dict[str, Any], why: str) -> None:
    assert plan(facts("noble", gpu__driver=driver), **requested).why == why


def test_a_flavour_that_runs_and_cannot_drive_the_gpus() -> None:
    node = facts("noble", "Blackwell", gpu__driver=running("580.95.05"))
    assert plan(node).why == "the proprietary kernel module of driver 580.95.05 cannot drive these GPUs (Blackwell)"


def test_keep_installs_nothing_and_says_why() -> None:
    assert refusals(facts(), source="keep") == [
        "no driver is loaded, and nvidia_driver_source is keep. Remedy: fix the driver yourself, or let it be "
        "installed (nvidia_driver_source: auto)."
    ]


@pytest.mark.parametrize(
    ("changes", "how", "reasons"),
    [
        ({}, "load", ()),
        (
            {"loaded": {"nouveau_loaded": True}},
            "reboot",
            ("nouveau is loaded, which cannot be taken out of a console safely",),
        ),
        ({"loaded": running("550.90.07", matches=False, library_version="550.163.01")}, "reload", ()),
        (
            {
                "loaded": running("550.90.07", matches=False, library_version="550.163.01"),
                "driver__users": ["nvidia-persiste (88)", "python (99)"],
            },
            "reboot",
            ("python (99) uses it",),
        ),
        (
            {
                "loaded": running("550.90.07", matches=False, library_version="550.163.01"),
                "driver__users": ["nvidia-persiste (88)", "nv-fabricmanage (89)"],
            },
            "reload",
            (),
        ),
        (
            {"loaded": running("550.90.07", matches=False, library_version="550.163.01"), "driver__users": None},
            "reboot",
            ("it cannot be seen what uses the loaded module",),
        ),
    ],
)
def test_an_installed_driver_is_loaded_as_gently_as_it_can_be(
    changes: dict[str, Any], how: str, reasons: tuple[str, ...]
) -> None:
    found = plan(installed(**changes))
    assert (found.state, found.how, found.reasons, found.refusals) == ("load", how, reasons, ())


def test_a_module_for_another_kernel_needs_a_reboot() -> None:
    found = plan(installed(), kernel="6.12.57+deb13-amd64")
    assert found.how == "reboot"
    assert found.reasons == ("the module is for kernel 6.12.57+deb13-amd64, and 6.12.43+deb13-amd64 runs",)


@pytest.mark.parametrize(
    "changes",
    [
        {"driver__packages": {"nvidia-smi": {"version": "550.163.01-2", "held": False, "finished": False}}},
        {"loaded": {"library_version": "550.90.07"}},
    ],
)
def test_what_is_half_installed_is_installed_again(changes: dict[str, Any]) -> None:
    node = installed()
    node["driver"].update({"packages": changes["driver__packages"]} if "driver__packages" in changes else {})
    node["gpu"]["driver"].update(changes.get("loaded", {}))
    assert plan(node).state == "install"


# A fabric manager beside a driver that works


@pytest.mark.parametrize(
    ("manager", "state", "why"),
    [
        (None, "fabric", "the fabric manager is missing"),
        ("580.65.06", "fabric", "the fabric manager is 580.65.06, the driver 580.95.05"),
        ("580.95.05", "works", ""),
    ],
)
def test_the_fabric_manager_has_the_drivers_version(manager: str | None, state: str, why: str) -> None:
    node = facts(
        "noble",
        gpu__driver=running("580.95.05", OPEN),
        gpu__nvswitches=[{"address": "x"}],
        gpu__fabric={"manager_version": manager},
    )
    found = plan(node)
    assert (found.state, found.why, found.version, found.refusals) == (state, why, "580.95.05", ())
    if state == "fabric":
        assert found.fabric == ("nvidia-fabricmanager-580", "nvidia-fabricmanager")
        assert [choice.packages for choice in found.choices] == [()]
        assert "error 802, and nvidia_driver_source is keep" in refusals(node, source="keep")[0]


# Refusals


@pytest.mark.parametrize(
    ("host", "generations", "requested", "words"),
    [
        (
            "debian13",
            ["Blackwell"],
            {},
            "branch 550 does not drive this host's GPUs yet (Blackwell); the first that does is 570. Remedy: take "
            "branch 580 "
            "of nvidia_driver_source: cuda_repository.",
        ),
        (
            "noble",
            ["Blackwell"],
            {"flavour": "proprietary"},
            "nvidia_driver_flavour is proprietary, and this host's GPUs (Blackwell) work with the open kernel "
            "module only. "
            "Remedy: set nvidia_driver_flavour: auto, or open.",
        ),
        (
            "noble",
            ["Volta"],
            {"flavour": "open"},
            "nvidia_driver_flavour is open, and this host's GPUs (Volta) work with the proprietary kernel module only. "
            "Remedy: set nvidia_driver_flavour: auto, or proprietary.",
        ),
        (
            "noble",
            ["Pascal"],
            {"branch": 595},
            "branch 595 no longer drives this host's GPUs (Pascal); the last that does is 580. Remedy: set "
            "nvidia_driver_branch: 580, or recommended.",
        ),
        (
            "noble",
            ["Volta", "Blackwell"],
            {},
            "no flavour of the kernel module drives all of this host's GPUs (Blackwell, Volta). Remedy: take the "
            "older GPUs "
            "out of this host, or give them to a virtual machine.",
        ),
        (
            "debian13",
            ["Hopper"],
            {"branch": 580},
            "Debian 13 has no driver of branch 580 (it has 535, 550). Remedy: set nvidia_driver_branch to one of "
            "535, 550, or "
            "nvidia_driver_source: cuda_repository.",
        ),
        (
            "debian13",
            ["Kepler"],
            {},
            "Debian 13 has no driver of branch 470 (it has 535, 550). Remedy: set nvidia_driver_branch to one of "
            "535, 550, or "
            "nvidia_driver_source: cuda_repository.",
        ),
        (
            "debian13",
            ["Grace Hopper"],
            {"branch": 535},
            "branch 535 of debian 13 has no open kernel module, which is what this host's GPUs need (Grace "
            "Hopper). Remedy: "
            "choose another nvidia_driver_branch or nvidia_driver_source.",
        ),
        (
            "noble",
            ["Ampere"],
            {"branch": 620, "flavour": "proprietary"},
            "branch 620 of ubuntu 24.04 has no proprietary kernel module, which is what is requested. Remedy: "
            "choose another "
            "nvidia_driver_branch or nvidia_driver_source, or nvidia_driver_flavour: auto.",
        ),
        (
            "debian12",
            ["Hopper"],
            {"min_version": "570.86"},
            "branch 535 is older than nvidia_driver_min_version (570.86). Remedy: set nvidia_driver_branch: 570 or "
            "a later "
            "one; where the distribution has none, nvidia_driver_source: cuda_repository.",
        ),
        (
            "noble",
            ["Hopper"],
            {"branch": "latest"},
            "nvidia_driver_branch is 'latest', which is neither a branch nor recommended. Remedy: write the first "
            "number of "
            "a driver's version, such as 580, or recommended.",
        ),
        (
            "noble",
            ["Hopper"],
            {"branch": "580.95.05"},
            "nvidia_driver_branch is '580.95.05', which is neither a branch nor recommended. Remedy: write the "
            "first number "
            "of a driver's version, such as 580, or recommended.",
        ),
        (
            "noble",
            ["Hopper"],
            {"flavour": "free"},
            "nvidia_driver_flavour is 'free', which is not known. Remedy: write one of auto, open, proprietary.",
        ),
        (
            "noble",
            ["Hopper"],
            {"source": "runfile"},
            "nvidia_driver_source is 'runfile', which is not known. Remedy: write one of auto, "
            "distribution, cuda_repository, keep.",
        ),
        (
            "noble",
            ["Hopper"],
            {"min_version": "new"},
            "nvidia_driver_min_version is 'new', which is no version. Remedy: write a version such as 570.86, or "
            "leave it "
            "empty.",
        ),
        (
            "noble",
            ["Hopper"],
            {"source": "cuda_repository"},
            "nvidia_driver_source is cuda_repository, and nvidia_driver_repository_key is empty. Remedy: set "
            f"nvidia_driver_repository_key to the text of {BASE}/ubuntu2404/x86_64/3bf863cc.pub (fingerprint "
            "EB693B3035CD5710E231E123A4B469963BF863CC).",
        ),
        (
            "noble",
            ["Hopper"],
            {"source": "cuda_repository", "repository_key": "/etc/key.asc"},
            "nvidia_driver_repository_key is no armoured public key. Remedy: give its text, from -----BEGIN PGP "
            "PUBLIC KEY "
            "BLOCK----- to the END line, not a file or an address.",
        ),
    ],
)
def test_a_request_that_this_host_cannot_satisfy(
    host: str, generations: list[str], requested: dict[str, Any], words: str
) -> None:
    assert refusals(facts(host, *generations), **requested) == [words]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"driver__unfinished": ["nvidia-kernel-dkms", "man-db"]},
            "an earlier run of dpkg or apt was interrupted (nvidia-kernel-dkms, man-db). Remedy: run `dpkg "
            "--configure -a`, "
            "then `apt-get -f install`, on this host and fix what they report.",
        ),
        (
            {"driver__interrupted": True},
            "an earlier run of dpkg or apt was interrupted. Remedy: run `dpkg --configure -a`, then `apt-get -f "
            "install`, on "
            "this host and fix what they report.",
        ),
        (
            {"driver__installer": "/usr/bin/nvidia-uninstall"},
            "NVIDIA's own installer installed a driver (/usr/bin/nvidia-uninstall is there), which packages would "
            "damage. "
            "Remedy: run /usr/bin/nvidia-uninstall on this host first, or set nvidia_driver_source: keep.",
        ),
        (
            {"driver__headers": {"installed": False, "available": False}},
            "apt has no package linux-headers-6.12.43+deb13-amd64, without which no module can be built for this "
            "kernel. "
            "Remedy: install the newest kernel of the distribution with its headers, reboot into it, and run again.",
        ),
        (
            {"driver__kernel_there": False},
            "kernel 6.12.43+deb13-amd64 has no modules on this host (/lib/modules/6.12.43+deb13-amd64). Remedy: "
            "reboot into "
            "a kernel that is installed, or correct nvidia_driver_kernel.",
        ),
        (
            {"driver__disk": {path: {"free_bytes": 2**30, "filesystem": 1} for path in ("/usr", "/var", "/boot")}},
            "1.0 GiB are free at /usr and /var and /boot; the driver needs about 4.1 GiB. Remedy: free space there "
            "(apt-get "
            "clean, old kernels).",
        ),
        (
            {
                "driver__disk": {
                    "/usr": {"free_bytes": 9 * 2**30, "filesystem": 1},
                    "/boot": {"free_bytes": 2**20, "filesystem": 2},
                }
            },
            "1 MiB are free at /boot; the driver needs about 150 MiB. Remedy: free space there (apt-get clean, old "
            "kernels).",
        ),
        (
            {"driver__sources": []},
            "no source of apt offers debian trixie main. Remedy: fix /etc/apt/sources.list or the files in "
            "/etc/apt/sources.list.d; a mirror will do.",
        ),
        (
            {"gpu__secure_boot": True, "driver__mok_enrolled": False},
            "Secure Boot is on, and the firmware does not trust the key with which DKMS signs modules on this "
            "host, so the "
            "module would be built and never loaded. Remedy: enrol the key (apt-get install dkms mokutil openssl; dkms "
            "generate_mok; mokutil --import /var/lib/dkms/mok.pub; then reboot, confirm it at the console and run "
            "again), or switch Secure Boot off in the firmware.",
        ),
        (
            {"driver": None},
            "no source of apt offers debian trixie main. Remedy: fix /etc/apt/sources.list or the files in "
            "/etc/apt/sources.list.d; a mirror will do.",
        ),
    ],
)
def test_a_host_that_is_not_ready(changes: dict[str, Any], words: str) -> None:
    assert refusals(facts("debian13", **changes))[0] == words


def test_everything_in_the_way_is_reported_at_once() -> None:
    found = refusals(
        facts(
            "debian13", driver__interrupted=True, driver__kernel_there=False, gpu__secure_boot=True, driver__sources=[]
        )
    )
    assert len(found) == 4


def test_secure_boot_is_no_obstacle_to_signed_modules_nor_to_an_enrolled_key() -> None:
    found = plan(facts("noble", gpu__secure_boot=True))
    assert found.refusals == () and [choice.kind for choice in found.choices] == ["signed"]
    assert plan(facts("debian13", gpu__secure_boot=True, driver__mok_enrolled=True)).refusals == ()
    (reported,) = refusals(facts("noble", gpu__secure_boot=True), source="cuda_repository", repository_key=KEY)
    assert "Remedy: take Ubuntu's signed modules (nvidia_driver_source: distribution); or enrol the key" in reported


def test_a_host_without_a_gpu_of_its_own() -> None:
    given_away = [{"address": "x", "driver": "vfio-pci", "generation": "Hopper"}]
    for node in (facts(gpu__pci_devices=[]), facts(gpu__pci_devices=given_away)):
        (reported,) = refusals(node)
        assert reported.startswith("this cluster computes on GPUs, and this host has none of NVIDIA's")


@pytest.mark.parametrize(
    ("changes", "requested", "words"),
    [
        (
            {"jobs": {"train": "running", "old": "finished"}},
            {},
            "driver 580.65.06 would be replaced under a training job (train). Remedy: let it end, or stop it "
            "(training_job with state: stopped), and run again.",
        ),
        (
            {"driver__users": ["python (7)"]},
            {},
            "driver 580.65.06 is in use (python (7) uses it), so another one would only run after a reboot, and "
            "until then no program could use the GPUs. Remedy: set nvidia_driver_reboot: if_needed, or stop what uses "
            "the GPUs.",
        ),
        ({"driver__users": ["python (7)"]}, {"reboot": "if_needed"}, None),
        ({"driver__users": []}, {}, None),
    ],
)
def test_a_driver_that_works_is_not_replaced_under_what_uses_it(
    changes: dict[str, Any], requested: dict[str, Any], words: str | None
) -> None:
    node = facts("noble", gpu__driver=running("580.65.06", OPEN), **changes)
    found = plan(node, min_version="580.95", **requested)
    assert found.state == "install"
    assert list(map(str, found.refusals)) == ([words] if words else [])


# NVIDIA's repository in another file


def test_a_source_of_the_same_repository_is_used_or_by_consent_replaced() -> None:
    there = [
        {
            "file": "/etc/apt/sources.list",
            "uri": "http://a.example",
            "suite": "noble",
            "components": ["main"],
            "options": [],
        },
        {
            "file": "/etc/apt/sources.list.d/cuda.list",
            "uri": "https://nv.example/compute/cuda/repos/ubuntu2404/x86_64",
            "suite": "/",
            "components": [],
            "options": [["Signed-By", "/k.gpg"]],
        },
    ]
    requested = {"source": "cuda_repository", "repository_url": "https://nv.example/compute/cuda/repos"}
    used = plan(facts("noble", driver__sources=there), **requested)
    assert (used.refusals, used.sources, used.stale_sources) == ((), "", ())
    replaced = plan(
        facts("noble", driver__sources=there), **requested, repository_key=KEY, allow_purge_conflicting=True
    )
    assert replaced.stale_sources == ("/etc/apt/sources.list.d/cuda.list",)
    assert "URIs: https://nv.example/compute/cuda/repos/ubuntu2404/x86_64/" in replaced.sources


# What is kept from unattended-upgrades


def test_the_exclusion_names_the_driver_and_not_the_container_toolkit() -> None:
    text = exclusion(["nvidia-smi"])
    assert '"nvidia-(?!container)";' in text and text.count("{") == text.count("}") == 1
    assert Node({"files": {EXCLUSION_FILE: {"content": text}}}).held_by_us == ["nvidia-smi"]


# The request, and the role's own words


@pytest.mark.parametrize(
    ("given_value", "expected"), [(580, 580), ("580", 580), (" 580 ", 580), ("recommended", None), ("٥٨٠", None)]
)
def test_a_branch_is_a_number_or_text(given_value: Any, expected: int | None) -> None:
    assert parse_request({"branch": given_value}).number == expected


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("false", False), (True, True), ("no", False)])
def test_switches_come_as_text_from_the_command_line(text: Any, *, value: bool) -> None:
    assert parse_request({"allow_purge_conflicting": text}).allow_purge_conflicting is value


def test_the_tables_fit_one_another() -> None:
    for place in PLACES:
        known = known_branches(place)
        assert known is None or place.usual_branch in known
        assert components(place.distribution, fabric=True)
    assert set(FIRST_BRANCH) <= set(GENERATIONS)


# Properties

REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "branch": st.sampled_from(["recommended", 470, 535, 550, 580, 590, 620, "x", ""]),
        "flavour": st.sampled_from(["auto", OPEN, PROPRIETARY, ""]),
        "source": st.sampled_from(["auto", "distribution", "cuda_repository", "keep", ""]),
        "min_version": st.sampled_from(["", "550", "580.95.05", "x"]),
        "repository_key": st.sampled_from(["", KEY]),
        "kernel": st.sampled_from(["", "1.2.3"]),
        "reboot": st.sampled_from(["never", "if_needed"]),
        "allow_purge_conflicting": st.booleans(),
        "hold": st.booleans(),
    },
)
DRIVERS = st.sampled_from(
    [NO_DRIVER, running("550.163.01"), running("580.95.05", OPEN), running("470.1", None, matches=False)]
)
NODES = st.builds(
    lambda host, generations, driver, boot, module: facts(
        host, *generations, gpu__driver=dict(driver), gpu__secure_boot=boot, driver__module=module
    ),
    st.sampled_from(sorted(HOSTS)),
    st.lists(st.sampled_from(sorted(GENERATIONS)), min_size=1, max_size=2),
    DRIVERS,
    st.sampled_from([True, False, None]),
    st.sampled_from([None, MODULE]),
)


@settings(deadline=None, derandomize=True, max_examples=examples(400))
@given(NODES, REQUESTS)
def test_a_plan_without_a_refusal_can_be_carried_out(node: dict[str, Any], requested: dict[str, Any]) -> None:
    request = request_of(requested)
    found = make_plan(node, request)
    assert all(refusal.text and refusal.remedy and not refusal.text.endswith(".") for refusal in found.refusals)
    if found.refusals:
        return
    if found.state == "install":
        assert found.choices and found.branch and found.flavour
        for name in {device["generation"] for device in node["gpu"]["pci_devices"]}:
            generation = GENERATIONS[name]
            assert found.flavour in generation.flavours
            assert generation.last_branch is None or found.branch <= generation.last_branch
            assert found.branch >= FIRST_BRANCH.get(name, 0)
        assert request.number in (None, found.branch)
        assert all(choice.kind == "signed" for choice in found.choices) or not node["gpu"]["secure_boot"]


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(
    place=st.sampled_from(PLACES),
    branch=st.integers(470, 640),
    flavour=st.sampled_from([OPEN, PROPRIETARY]),
    images=st.lists(st.sampled_from(["amd64", "generic", "cloud-amd64"]), unique=True),
    headers=st.booleans(),
)
def test_every_choice_locks_packages_that_it_installs(
    place: Place, branch: int, flavour: str, images: list[str], *, headers: bool
) -> None:
    for choice in choices(place, branch, flavour, Kernel("1.2-x", tuple(images), headers)):
        assert choice.locked and set(choice.locked) <= set(choice.packages)
        assert len(set(choice.packages)) == len(choice.packages)
        assert ("linux-headers-1.2-x" in choice.packages) is (choice.kind == "dkms" and not headers)
        assert len(choice.optional) == len(images)
    assert all("fabricmanager" in name for name in fabric_packages(place, branch))


@pytest.mark.parametrize("section", ["gpu", "driver", "system", "files", "jobs"])
def test_a_fact_that_is_missing_is_no_exception(section: str) -> None:
    node = facts()
    node[section] = None
    assert isinstance(make_plan(node, Request()), Plan)
    assert isinstance(make_plan({}, Request()), Plan)
