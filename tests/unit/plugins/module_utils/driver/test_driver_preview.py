# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""apt asked beforehand. Lines of apt were recorded in November 2026 from Debian 12 and Ubuntu 24.04, and shortened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt import trial_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.trial_io import SystemAptIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import TIMED_OUT, CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.apt_failures import Goal, explain_update
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import (
    Choice,
    with_rivals,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import (
    as_dict,
    common_version,
    gather,
    numeric,
    parse_policy,
    parse_simulation,
    pinned_version,
    preferences,
    upstream,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver_apt import DEBIAN_12, NOBLE, NOBLE_KERNEL, FakeApt, debian_12, noble, troubles
from tests.effort import examples

POLICY = """\
nvidia-smi:
  Installed: (none)
  Candidate: 535.309.01-0+deb12u1
  Version table:
     535.309.01-0+deb12u1 500
        500 http://mirror.example/debian-security bookworm-security/non-free amd64 Packages
     535.261.03-1 500
        500 http://mirror.example/debian bookworm/non-free amd64 Packages
nvidia-open-kernel-dkms:
  Installed: 535.200.01-1
  Candidate: 535.261.03-1
  Version table:
     535.261.03-1 500
        500 http://mirror.example/debian bookworm/contrib amd64 Packages
 *** 535.200.01-1 100
        100 /var/lib/dpkg/status
virtual:
  Installed: (none)
  Candidate: (none)
  Version table:
"""
TRANSITIONAL = """\
Inst nvidia-kernel-common-580-server (580.178.04-0ubuntu0.24.04.1 Ubuntu:24.04/noble-updates [amd64])
Inst nvidia-headless-no-dkms-570-server-open (570.211.01-0ubuntu1.24.04.1 Ubuntu:24.04/noble-updates [amd64])
Inst nvidia-utils-580-server (580.178.04-0ubuntu0.24.04.1 Ubuntu:24.04/noble-updates [amd64])
"""
UNREACHABLE = """\
Ign:1 http://nosuch.invalid/x  InRelease
Get:2 http://mirror.example/debian bookworm InRelease [151 kB]
Err:1 http://nosuch.invalid/x  InRelease
  Could not resolve 'nosuch.invalid'
W: Failed to fetch http://nosuch.invalid/x/InRelease  Could not resolve 'nosuch.invalid'
W: Some index files failed to download. They have been ignored, or old ones used instead.
"""
NO_KEY = """\
Err:4 http://mirror.example/debian sid InRelease
  The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 6ED0E7B82643E131
W: GPG error: http://mirror.example/debian sid InRelease: The following signatures couldn't be verified because the \
public key is not available: NO_PUBKEY 6ED0E7B82643E131
E: The repository 'http://mirror.example/debian sid InRelease' is not signed.
"""
NOT_THERE = """\
E: Failed to fetch http://mirror.example/nosuch/InRelease  404  Not Found [IP: 192.0.2.1 80]
E: The repository 'http://mirror.example/nosuch  InRelease' is not signed.
"""
CONFLICTING = (
    "E: Conflicting values set for option Signed-By regarding source http://mirror.example/debian/ bookworm: "
    "/a.gpg != /b.gpg\nE: The list of sources could not be read.\n"
)
UNSOLVABLE = """\
Building dependency tree...
The following packages have unmet dependencies:
 nvidia-open-kernel-dkms : Depends: firmware-nvidia-gsp (= 535.261.03) or
                                    firmware-nvidia-gsp-535.261.03
E: Unable to correct problems, you have held broken packages.
"""


def test_versions_that_a_source_offers() -> None:
    assert parse_policy(POLICY) == {
        "nvidia-smi": ["535.309.01-0+deb12u1", "535.261.03-1"],
        "nvidia-open-kernel-dkms": ["535.261.03-1"],
    }


@pytest.mark.parametrize(
    ("version", "driver"),
    [
        ("580.178.04-0ubuntu0.24.04.1", "580.178.04"),
        ("535.309.01-0+deb12u1", "535.309.01"),
        ("1:580.95.05-1", "580.95.05"),
    ],
)
def test_the_drivers_own_version(version: str, driver: str) -> None:
    assert upstream(version) == driver


def test_debian_12_takes_the_one_version_that_the_open_module_has() -> None:
    io = FakeApt(DEBIAN_12)
    found = gather(io, debian_12("open"), "")
    assert (found.version, found.troubles) == ("535.261.03", ())
    assert "Pin: version 535.261.03-*" in io.pins[-1]
    assert found.installs["libcuda1"] == "535.261.03-1"
    assert gather(FakeApt(DEBIAN_12), debian_12("proprietary"), "").version == "535.309.01"


def test_what_apt_is_given_names_the_versions() -> None:
    found = as_dict(gather(FakeApt(DEBIAN_12), debian_12("proprietary"), ""), purge=False, holds=[])
    assert "nvidia-kernel-dkms=535.309.01-0+deb12u1" in found["packages"]
    assert "linux-headers-amd64=6.1.192-2" in found["packages"]
    assert found["locked"] == ["nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "nvidia-smi"]
    assert "dkms" not in found["new"] and "nvidia-persistenced" in found["new"]
    assert (found["problems"], found["cannot_fetch"]) == ([], False)


def test_a_branch_whose_newest_version_is_too_old_is_named() -> None:
    goal = replace(debian_12("proprietary"), minimum="535.400")
    (trouble,) = gather(FakeApt(DEBIAN_12), goal, "").troubles
    assert trouble.text == (
        "the newest driver of branch 535 to be had is 535.309.01, older than nvidia_driver_min_version (535.400). "
        "Remedy: choose another nvidia_driver_branch or nvidia_driver_source, or a lower nvidia_driver_min_version"
    )
    assert gather(FakeApt(DEBIAN_12), replace(goal, minimum="535.309.01"), "").version == "535.309.01"


def test_ubuntus_signed_module_comes_first_with_the_fabric_manager_of_the_same_version() -> None:
    found = gather(FakeApt(NOBLE), noble(580, fabric=True), "")
    assert (found.kind, found.version) == ("signed", "580.178.04")
    assert "nvidia-fabricmanager-580" in found.locked
    assert f"linux-modules-nvidia-580-server-open-{NOBLE_KERNEL}" in found.packages
    assert "linux-modules-nvidia-580-server-open-generic" in found.packages
    assert not any("dkms-580" in name for name in found.packages if "no-dkms" not in name)


def test_a_package_that_would_bring_another_kernel_is_left_out() -> None:
    def simulate(names: Sequence[str]) -> CommandResult:
        kernel = (
            "Inst linux-image-6.8.0-152-generic (1 x [amd64])\n"
            if "linux-modules-nvidia-580-server-open-generic" in names
            else ""
        )
        return CommandResult(0, kernel + "".join(f"Inst {name} (1 x [amd64])\n" for name in names))

    found = gather(FakeApt(NOBLE, simulate=simulate), noble(580), "")
    assert found.kind == "signed"
    assert "linux-modules-nvidia-580-server-open-generic" not in found.packages
    assert not any(name.startswith("linux-image-") for name in found.installs)


def test_without_a_signed_module_for_this_kernel_it_is_built() -> None:
    offered = {name: versions for name, versions in NOBLE.items() if not name.startswith("linux-modules-")}
    found = gather(FakeApt(offered), noble(580), "")
    assert found.kind == "dkms"
    assert f"linux-headers-{NOBLE_KERNEL}" in found.packages


def test_another_kernel_module_has_to_go() -> None:
    """Seen on Debian 12: both modules can be installed, but not with the firmware of one version."""
    requested: list[Sequence[str]] = []

    def simulate(names: Sequence[str]) -> CommandResult:
        requested.append(names)
        return CommandResult(0, "Remv nvidia-kernel-dkms [535.309.01-0+deb12u1]\n")

    goal = debian_12("open")
    rivals = [with_rivals(choice, ["nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "dkms"]) for choice in goal.choices]
    found = as_dict(gather(FakeApt(DEBIAN_12, simulate=simulate), Goal(rivals, 535), ""), purge=False, holds=[])
    assert found["rivals"] == ["nvidia-kernel-dkms"]
    assert all("nvidia-kernel-dkms-" in names for names in requested)
    assert "nvidia-kernel-dkms- " not in " ".join(found["packages"])
    assert found["problems"][0] == (
        "other packages of the driver are in the way: nvidia-kernel-dkms. Remedy: set "
        "nvidia_driver_allow_purge_conflicting: true to have them purged, or ask for the driver that they hold."
    )


def test_a_branch_that_the_distribution_gave_up_is_named() -> None:
    def simulate(_names: Sequence[str]) -> CommandResult:
        return CommandResult(0, TRANSITIONAL)

    reported = troubles(FakeApt(NOBLE, simulate=simulate), noble(570))
    assert reported[0] == (
        "branch 570 has been given up by the distribution: its packages now install branch 580. "
        "Remedy: set nvidia_driver_branch: 580, or nvidia_driver_source: cuda_repository"
    )


def test_a_missing_fabric_manager_is_named() -> None:
    offered = {**NOBLE, "nvidia-fabricmanager-580": ["580.95.05-0ubuntu0.24.04.1"]}
    reported = troubles(FakeApt(offered), noble(580, fabric=True))
    assert (
        "no fabric manager of branch 580 in the driver's version (found: nvidia-fabricmanager-580 580.95.05"
        in reported[0]
    )
    assert "CUDA fails with error 802" in reported[0]


@pytest.mark.parametrize(("driver", "there"), [("580.178.04", True), ("580.1.1", False)])
def test_only_the_fabric_manager_beside_a_driver_that_runs(driver: str, *, there: bool) -> None:
    goal = Goal([Choice("fabric", (), ())], 580, ("nvidia-fabricmanager-580", "nvidia-fabricmanager"), driver)
    found = gather(FakeApt(NOBLE), goal, "")
    if there:
        assert (found.packages, found.version) == (("nvidia-fabricmanager-580",), "580.178.04")
    else:
        assert "no fabric manager of version 580.1.1" in found.troubles[0].text


def test_headers_that_apt_does_not_have() -> None:
    offered = {name: versions for name, versions in DEBIAN_12.items() if name != "linux-headers-6.1.0-56-amd64"}
    (reported,) = troubles(FakeApt(offered), debian_12("open"))
    assert reported.startswith("apt has no package linux-headers-6.1.0-56-amd64, ")  # in the words of preflight


def test_packages_that_apt_does_not_have() -> None:
    reported = troubles(FakeApt({}), noble(999))
    assert reported[0].startswith(
        "apt has no package nvidia-headless-no-dkms-999-server-open, nvidia-utils-999-server, "
        f"linux-modules-nvidia-999-server-open-{NOBLE_KERNEL} for branch 999. Remedy: choose another "
        f"nvidia_driver_branch"
    )


def test_no_common_version() -> None:
    offered = {**DEBIAN_12, "nvidia-smi": ["535.309.01-0+deb12u1"]}
    (reported,) = troubles(FakeApt(offered), debian_12("open"))
    both = "535.309.01-0+deb12u1, 535.261.03-1"
    assert reported == (
        "no version of branch 535 is to be had of all packages that must be of one version (nvidia-open-kernel-dkms "
        f"535.261.03-1; libcuda1 {both}; libnvidia-ml1 {both}; libnvidia-cfg1 {both}; nvidia-smi "
        "535.309.01-0+deb12u1). Remedy: choose another nvidia_driver_branch or nvidia_driver_source"
    )


def test_a_conflict_is_reported_in_apts_words() -> None:
    io = FakeApt(DEBIAN_12, simulate=lambda _names: CommandResult(100, UNSOLVABLE))
    (reported,) = troubles(io, debian_12("open"))
    assert reported.startswith(
        "apt cannot install these packages together: nvidia-open-kernel-dkms : Depends: firmware-nvidia-gsp "
    )
    assert "apt-mark showhold; dpkg --audit" in reported


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            CommandResult(0, UNREACHABLE),
            "unreachable",
            "a repository cannot be read: Failed to fetch http://nosuch.invalid/x/InRelease  Could not resolve "
            "'nosuch.invalid'. Remedy: set host_apt_proxy where this host needs a proxy, or "
            "nvidia_driver_repository_url to a mirror; a source of your own that is dead must go",
        ),
        (CommandResult(100, NO_KEY), "key", "NO_PUBKEY 6ED0E7B82643E131"),
        (
            CommandResult(100, NO_KEY),
            "key",
            "is not signed. Remedy: give the key that signs it in nvidia_driver_repository_key (its owner publishes "
            "it), or fix the source that is named",
        ),
        (CommandResult(100, NOT_THERE), "unreachable", "404  Not Found"),
        (CommandResult(100, CONFLICTING), "unreachable", "apt-get update failed: Conflicting values set for"),
        (
            CommandResult(TIMED_OUT, stderr="no answer within 300 seconds"),
            "unreachable",
            "could not be fetched in time",
        ),
        (CommandResult(127, stderr="E: apt-get is not installed"), "unreachable", "apt-get is not installed"),
    ],
)
def test_an_update_that_fails_is_explained(answer: CommandResult, kind: str, words: str) -> None:
    trouble = explain_update(answer, "http://nosuch.invalid/x/")
    assert trouble is not None
    assert trouble.kind == kind and words in trouble.text and "Remedy: " in trouble.text


def test_a_dead_source_of_somebody_elses_stops_nothing() -> None:
    assert explain_update(CommandResult(0, UNREACHABLE), "http://mirror.example/debian") is None
    assert explain_update(CommandResult(0, UNREACHABLE), "") is None


def test_nothing_is_asked_further_when_the_indices_are_missing() -> None:
    io = FakeApt(DEBIAN_12, update=CommandResult(0, UNREACHABLE))
    found = gather(io, debian_12("open"), "http://nosuch.invalid/x/")
    assert io.pins == [] and found.version is None
    assert as_dict(found, purge=False, holds=[])["cannot_fetch"] is True


SIMULATED = """\
Remv nvidia-utils-470 [470.256.02-0ubuntu0.24.04.1]
Purg old-thing [1.0]
Inst nvidia-utils-580-server [580.95.05-0ubuntu0.24.04.2] (580.178.04-0ubuntu0.24.04.1 Ubuntu:24.04 [amd64])
Inst libgcc-s1 (14.2.0-4ubuntu2~24.04.1 Ubuntu:24.04 [amd64]) []
Conf libgcc-s1 (14.2.0-4ubuntu2~24.04.1 Ubuntu:24.04 [amd64])
"""


def test_a_simulation_is_read() -> None:
    assert parse_simulation(SIMULATED) == (
        {"libgcc-s1": "14.2.0-4ubuntu2~24.04.1"},
        {"nvidia-utils-580-server": "580.178.04-0ubuntu0.24.04.1"},
        {"nvidia-utils-470": "470.256.02-0ubuntu0.24.04.1", "old-thing": "1.0"},
    )


@pytest.mark.parametrize("purge", [True, False])
def test_what_would_be_removed_needs_consent_and_foreign_packages_stay(*, purge: bool) -> None:
    io = FakeApt(
        NOBLE, simulate=lambda _names: CommandResult(0, SIMULATED), held=["nvidia-utils-470", "libgcc-s1", "x"]
    )
    found = as_dict(gather(io, noble(580), ""), purge=purge, holds=["nvidia-utils-470"])
    reported = "\n".join(found["problems"])
    assert (
        "libgcc-s1 is on hold, and would have to change. Remedy: apt-mark unhold libgcc-s1 if that may be, or set "
        "nvidia_driver_source: keep."
    ) in found["problems"]
    assert "the installation would remove old-thing, which is no part of the driver" in reported
    assert ("other packages of the driver are in the way: nvidia-utils-470" in reported) is not purge


def test_preferences_are_recognised_and_others_are_not() -> None:
    assert pinned_version(preferences("580.178.04")) == "580.178.04"
    assert pinned_version(preferences("580.178.04") + "\nPackage: x\n") is None
    assert pinned_version("") is None


VERSIONS = st.lists(st.integers(1, 3).map(lambda last: f"580.{last}-1"), unique=True)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from("abc"), VERSIONS, min_size=3))
def test_the_common_version_is_one_that_all_have_and_the_highest(versions: dict[str, list[str]]) -> None:
    found = common_version(versions, "abc", 580)
    shared = set.intersection(*(set(offered) for offered in versions.values()))
    assert (found is None) is (not shared)
    if found is not None:
        assert f"{found}-1" in shared
        assert all(numeric(upstream(other)) <= numeric(found) for other in shared)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(st.text(alphabet=st.sampled_from("Inst Remv()[]-580 \nnvidia:*")))
def test_any_output_of_apt_is_read(text: str) -> None:
    parse_simulation(text)
    parse_policy(text)
    explain_update(CommandResult(100, text), "x")


def test_a_trial_leaves_the_host_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, folder = tmp_path / "root", tmp_path / "trial"
    for name in ("etc/apt/sources.list.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial"):
        (root / name).mkdir(parents=True)
    (root / "etc/apt/sources.list.d/debian.sources").write_text("Types: deb\n", encoding="utf-8")
    (root / "etc/apt/sources.list.d/old.list").write_text("deb http://x /\n", encoding="utf-8")
    (root / "etc/apt/preferences.d/swarmspeed-nvidia.pref").write_text("old", encoding="utf-8")
    (root / "var/lib/apt/lists/x_Packages").write_text("Package: x\n", encoding="utf-8")
    (root / "var/lib/apt/lists/lock").write_text("", encoding="utf-8")
    before = {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    folder.mkdir()
    os.utime(root / "var/lib/apt/lists/x_Packages", (1_700_000_000, 1_700_000_000))
    io = SystemAptIO(str(folder), "Types: deb\n", [str(root / "etc/apt/sources.list.d/old.list")], root=str(root))
    commands: list[list[str]] = []

    def run(command: list[str], _timeout: float) -> CommandResult:
        commands.append(command)
        return CommandResult(0, "nvidia-smi\nlibcuda1:amd64\n")

    monkeypatch.setattr(trial_io, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(trial_io, "run_program", run)
    io.update()
    io.policy(["nvidia-smi"])
    io.pin("new")
    io.simulate(["nvidia-smi"])
    assert io.held() == ["nvidia-smi", "libcuda1"]
    assert {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in (folder / "sources.list.d").iterdir()) == [
        "debian.sources",
        "swarmspeed-nvidia.sources",
    ]
    assert [path.name for path in (folder / "preferences.d").iterdir()] == ["zz-swarmspeed-nvidia.pref"]
    assert sorted(path.name for path in (folder / "lists").iterdir()) == ["partial", "x_Packages"]
    assert (folder / "lists/x_Packages").stat().st_mtime == 1_700_000_000
    for command in commands[:3]:
        for part in ("lists", "sources.list.d", "preferences.d", "cache"):
            assert any(argument.endswith(f"={folder / part}") for argument in command), (command, part)
    assert {"--simulate", "--ignore-hold"} <= set(commands[2]) and commands[3] == ["/usr/bin/apt-mark", "showhold"]
