# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Ubuntu's signed modules fit only its newest kernels, and DKMS builds only drivers that know the kernel.

The two failures of apt were recorded over Ubuntu's indices in November 2026, and shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.apt_failures import Goal
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import SIGNED
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import as_dict, gather

from tests.driver_apt import DEBIAN_12, NOBLE, NOBLE_KERNEL, FakeApt, debian_12, noble, troubles

MODULE = f"linux-modules-nvidia-580-server-open-{NOBLE_KERNEL}"
FOLLOWING = "linux-modules-nvidia-580-server-open-generic"
UNSOLVABLE = f"""\
The following packages have unmet dependencies:
 {MODULE} : Depends: nvidia-kernel-common-580-server (<= 580.159.03-1) but 580.178.04 is to be installed
E: Unable to correct problems, you have held broken packages.
"""
FIT = "Ubuntu keeps its signed modules only for its newest kernels, in the newest version of the driver"
REMEDY = "Remedy: install the newest kernel of the distribution, reboot into it, and run again"


def signed_alone(goal: Goal) -> Goal:
    """What is left under Secure Boot."""
    return replace(goal, choices=[choice for choice in goal.choices if choice.kind == SIGNED])


def not_this_kernel(names: Sequence[str]) -> CommandResult:
    if MODULE in names:
        return CommandResult(100, UNSOLVABLE)
    return CommandResult(0, "".join(f"Inst {name} (1 x [amd64])\n" for name in names))


def test_a_module_that_fits_another_driver_needs_the_newest_kernel() -> None:
    (reported,) = troubles(FakeApt(NOBLE, simulate=not_this_kernel), signed_alone(noble(580)))
    assert reported.startswith(
        f"apt cannot install Ubuntu's signed module for this kernel: {MODULE} : Depends: nvidia-"
    )
    assert reported.endswith(f": {FIT}. {REMEDY}")


def test_a_kernel_without_a_module_needs_the_newest_one() -> None:
    offered = {name: versions for name, versions in NOBLE.items() if name != MODULE}
    (reported,) = troubles(FakeApt(offered), signed_alone(noble(580)))
    assert reported == f"apt has no package {MODULE}: {FIT}. {REMEDY}"


def notes(io: FakeApt, goal: Goal) -> list[str]:
    found: list[str] = as_dict(gather(io, goal, ""), purge=False, holds=[])["notes"]
    return found


def test_where_dkms_is_taken_instead_it_is_said_and_why() -> None:
    (conflict, dummy) = notes(FakeApt(NOBLE, simulate=not_this_kernel), noble(580))
    assert conflict.startswith(
        "DKMS builds the module on this host, with a compiler, as apt cannot install Ubuntu's signed module"
    )
    assert conflict.endswith(f": {FIT}.") and "Remedy" not in conflict
    offered = {name: versions for name, versions in NOBLE.items() if name != MODULE}
    assert notes(FakeApt({**offered, "linux-headers-generic": ["1"]}), noble(580)) == [
        f"DKMS builds the module on this host, with a compiler, as apt has no package {MODULE}: {FIT}."
    ]


def test_on_debian_where_dkms_is_the_only_way_nothing_is_said() -> None:
    assert notes(FakeApt(DEBIAN_12), debian_12("open")) == []


@pytest.mark.parametrize(
    ("rc", "brings", "reported"),
    [
        (0, "linux-image-6.8.0-152-generic", "would install another kernel now"),
        (100, "linux-modules-6.8.0-152-generic", "cannot be installed"),
        (0, "linux-modules-6.8.0-152-generic", ""),
    ],
)
def test_a_package_that_follows_new_kernels_is_not_left_out_without_a_word(rc: int, brings: str, reported: str) -> None:
    def simulate(names: Sequence[str]) -> CommandResult:
        text = "".join(f"Inst {name} (1 x [amd64])\n" for name in names)
        follows = FOLLOWING in names
        return CommandResult(rc if follows else 0, text + (f"Inst {brings} (1 x [amd64])\n" if follows else ""))

    found = notes(FakeApt(NOBLE, simulate=simulate), noble(580))
    assert found == (
        [
            f"{FOLLOWING}, with which the next kernel comes with its module, {reported}. It is left out, and with "
            "nvidia_driver_hold the package that brings new kernels is put on hold. To follow new kernels again, "
            "install it and that package with apt-get install --allow-change-held-packages, reboot and run again."
        ]
        if reported
        else []
    )


@pytest.mark.parametrize(("builds_from", "kind"), [("535.400", None), ("535.309.01", "dkms"), ("", "dkms")])
def test_a_driver_that_does_not_build_on_the_kernel_is_refused_before_dkms_begins(
    builds_from: str, kind: str | None
) -> None:
    goal = replace(debian_12("proprietary"), kernel="7.0.4+deb14-amd64", builds_from=builds_from)
    io = FakeApt(DEBIAN_12)
    found = gather(io, goal, "")
    assert found.kind == kind
    if kind is None:
        assert [trouble.text for trouble in found.troubles] == [
            "driver 535.309.01 does not build on kernel 7.0.4+deb14-amd64: of branch 535, 535.400 is the oldest that "
            "does. Remedy: choose another nvidia_driver_branch or nvidia_driver_source, or boot an older kernel"
        ]
        assert io.pins == []  # nothing was simulated


def test_a_module_that_ubuntu_built_is_not_asked_whether_it_builds() -> None:
    found = gather(FakeApt(NOBLE), replace(noble(580), kernel="7.0.0-31-generic", builds_from="580.999"), "")
    assert (found.kind, found.troubles) == ("signed", ())
