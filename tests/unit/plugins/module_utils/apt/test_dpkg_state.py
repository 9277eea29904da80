# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An interrupted dpkg: how it is known, waited for and repaired. Answers of dpkg-query are in its documented format."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.dpkg_state import (
    CONFIGURE,
    FIX_BROKEN,
    DpkgError,
    DpkgState,
    Limits,
    parse_unfinished,
    pending,
    read_state,
    repair,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import TIMED_OUT, CommandResult
from hypothesis import given
from hypothesis import strategies as st

SOUND = "adduser\tii \nbc\tii \n"
HALF = "adduser\tii \nbc\tiF \n"
CUT_OFF = "adduser\tii \nbc\tiHR\n"


@dataclass
class FakeDpkg:
    """A host whose dpkg answers in turn; the last answer stays. ``repairs``: what dpkg-query says after a command."""

    answers: list[str]
    journal: list[str] = field(default_factory=list)
    busy: int = 0
    """So often the lock is found held."""
    repairs: dict[tuple[str, ...], str] = field(default_factory=dict)
    rc: int = 0
    ran: list[tuple[str, ...]] = field(default_factory=list)
    now: float = 0.0

    def query(self) -> CommandResult | None:
        return CommandResult(self.rc, self.answers[0] if len(self.answers) == 1 else self.answers.pop(0))

    def updates(self) -> list[str]:
        return self.journal

    def locked(self) -> bool:
        self.busy -= 1
        return self.busy >= 0

    def change(self, command: tuple[str, ...], timeout: float) -> CommandResult:
        self.ran.append(command)
        if command in self.repairs:
            self.answers, self.journal = [self.repairs[command]], []
        return CommandResult(1, "E: what dpkg said\n") if command not in self.repairs else CommandResult(0)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def repaired(self, *, check: bool = False, lock: float = 10) -> tuple[DpkgState, list[str]]:
        return repair(self, Limits(lock, 60), check=check, sleep=self.sleep, clock=lambda: self.now)


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("", ()),
        (SOUND, ()),
        ("a\tiF \nb\tiH \nc\tiU \n", ("a (half-configured)", "b (half-installed)", "c (unpacked)")),
        ("a\tiW \nb\tit \n", ("a (triggers-awaited)", "b (triggers-pending)")),
        ("a\thF \n", ("a (half-configured)",)),  # on hold, and unfinished all the same
        ("a\tiHR\n", ("a (half-installed, to be reinstalled)",)),
        ("a\tiiR\n", ("a (installed, to be reinstalled)",)),
        ("a\trc \nb\tun \nc\tpn \n", ()),  # removed, or never there
        ("libc6\tiF \nlibc6\tiF \n", ("libc6 (half-configured)",)),  # of two architectures
        ("a", ()),
        ("\tiF \n", ()),
    ],
)
def test_packages_that_dpkg_has_not_finished(text: str, unfinished: tuple[str, ...]) -> None:
    assert parse_unfinished(text) == unfinished


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    assert all(name.endswith(")") for name in parse_unfinished(text))


@pytest.mark.parametrize(
    ("names", "waits"), [([], False), (["tmp.i"], False), (["0000"], True), (["tmp.i", "0017"], True), ([""], False)]
)
def test_the_journal_waits_where_apt_says_so(names: list[str], waits: bool) -> None:
    assert pending(names) is waits


@pytest.mark.parametrize("busy", [1, 2])
def test_a_dpkg_that_begins_or_ends_meanwhile_is_at_work(busy: int) -> None:
    state = read_state(FakeDpkg([HALF], busy=busy))
    assert state.facts() == {"unfinished": ["bc (half-configured)"], "journal": False, "busy": True}


def test_a_host_without_dpkg_has_nothing_unfinished() -> None:
    class NoDpkg(FakeDpkg):
        def query(self) -> CommandResult | None:
            return None

    assert read_state(NoDpkg([])) == DpkgState()


def test_a_status_file_that_dpkg_cannot_read_is_one_error() -> None:
    with pytest.raises(DpkgError, match=r"dpkg-query ended with status 2: parsing file\. Remedy: run dpkg --audit"):
        read_state(FakeDpkg(["parsing file"], rc=2))


@pytest.mark.parametrize(
    ("host", "ran"),
    [
        (FakeDpkg([SOUND]), []),
        (FakeDpkg([HALF], repairs={CONFIGURE: SOUND}), [CONFIGURE]),
        (FakeDpkg([SOUND], journal=["0000"], repairs={CONFIGURE: SOUND}), [CONFIGURE]),
        (FakeDpkg([CUT_OFF], repairs={FIX_BROKEN: SOUND}), [CONFIGURE, FIX_BROKEN]),
        # Another one was at work, and finished its packages.
        (FakeDpkg([HALF, HALF, SOUND], busy=2), []),
        # Another one was at work, and was killed.
        (FakeDpkg([HALF], busy=3, repairs={CONFIGURE: SOUND}), [CONFIGURE]),
    ],
)
def test_only_what_is_needed_is_run(host: FakeDpkg, ran: list[tuple[str, ...]]) -> None:
    assert host.repaired()[1] == [" ".join(command) for command in ran]
    assert host.ran == ran


def test_check_mode_predicts_and_runs_nothing() -> None:
    host = FakeDpkg([HALF])
    found, commands = host.repaired(check=True)
    assert (found.unfinished, commands, host.ran) == (("bc (half-configured)",), [" ".join(CONFIGURE)], [])


def test_another_dpkg_is_waited_for_and_not_repaired() -> None:
    host = FakeDpkg([HALF], busy=1000)
    with pytest.raises(DpkgError, match=r"another dpkg or apt has been at work for 10 s\. Remedy: wait until it ends"):
        host.repaired()
    assert host.ran == [] and host.now >= 10


def test_what_cannot_be_repaired_is_named_with_dpkgs_words() -> None:
    with pytest.raises(DpkgError) as refused:
        FakeDpkg([CUT_OFF], journal=["0000"]).repaired()
    assert str(refused.value) == (
        "dpkg was interrupted and cannot be repaired: bc (half-installed, to be reinstalled), the journal in "
        "/var/lib/dpkg/updates. It printed: E: what dpkg said. "
        "Remedy: run dpkg --audit on this host, correct what it names, and run again"
    )


def test_a_command_that_does_not_end_is_named() -> None:
    class Slow(FakeDpkg):
        def change(self, command: tuple[str, ...], timeout: float) -> CommandResult:
            return CommandResult(TIMED_OUT)

    with pytest.raises(DpkgError, match="It printed: no end within 60 s"):
        Slow([HALF]).repaired()


def test_the_commands_ask_nothing_and_remove_nothing() -> None:
    assert "--force-confold" in CONFIGURE and "Dpkg::Options::=--force-confold" in FIX_BROKEN
    assert {"--yes", "--no-remove"} <= set(FIX_BROKEN)
