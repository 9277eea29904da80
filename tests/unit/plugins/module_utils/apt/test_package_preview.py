# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Versions that are asked for, holds with their record, and what apt would do for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.package_preview import Goal, as_dict, gather
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.pins import (
    exclusion,
    newest,
    recorded,
    satisfies,
    source_problems,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from hypothesis import given, settings
from hypothesis import strategies as st

CE = "5:27.5.1-1~debian.12~bookworm"
POLICY = """\
docker-ce:
  Installed: (none)
  Candidate: 5:28.1.0-1~debian.12~bookworm
  Version table:
     5:28.1.0-1~debian.12~bookworm 500
        500 https://mirror.example.com/linux/debian bookworm/stable amd64 Packages
     5:27.5.1-1~debian.12~bookworm 500
        500 https://mirror.example.com/linux/debian bookworm/stable amd64 Packages
docker-ce-cli:
  Installed: (none)
  Candidate: 5:27.5.1-1~debian.12~bookworm
  Version table:
     5:27.5.1-1~debian.12~bookworm 500
        500 https://mirror.example.com/linux/debian bookworm/stable amd64 Packages
containerd.io:
  Installed: (none)
  Candidate: 1.7.25-1
  Version table:
     1.7.25-1 500
        500 https://mirror.example.com/linux/debian bookworm/stable amd64 Packages
"""
SIMULATED = f"Inst containerd.io (1.7.25-1 x)\nInst docker-ce-cli ({CE} x)\nInst docker-ce ({CE} x)\nConf docker-ce\n"
GOAL = Goal(("docker-ce", "docker-ce-cli", "containerd.io"), "docker", "", ("docker-ce", "docker-ce-cli"), "https://m")


class FakeApt:
    """An apt with these answers; notes what was simulated."""

    def __init__(self, simulated: CommandResult | None = None, held: Sequence[str] = (), update: str = "") -> None:
        self.answer = simulated or CommandResult(0, SIMULATED)
        self.holds, self.reported, self.simulated = list(held), update, list[str]()

    def update(self) -> CommandResult:
        return CommandResult(100 if self.reported else 0, self.reported)

    def policy(self, names: Sequence[str]) -> str:
        return POLICY

    def simulate(self, names: Sequence[str]) -> CommandResult:
        self.simulated = list(names)
        return self.answer

    def held(self) -> list[str]:
        return self.holds


@pytest.mark.parametrize(
    ("version", "pin", "right"),
    [
        (CE, "27.5.1", True),
        (CE, "27.5", True),
        (CE, "27", True),
        (CE, CE, True),
        (CE, "5:27.5", True),
        (CE, "27.50", False),
        (CE, "7.5", False),
        (CE, "2", False),
        (CE, "", True),
        ("1.18.2-1", "1.18.2", True),
        ("1.18.20-1", "1.18.2", False),
        ("20.10.24+dfsg1-1", "20.10", True),
        (None, "1", False),
        ("", "", False),
    ],
)
def test_a_version_that_is_asked_for(version: str | None, pin: str, right: bool) -> None:
    assert satisfies(version, pin) is right


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.integers(0, 9))
def test_a_version_satisfies_its_own_beginnings_and_no_longer_number(parts: list[int], digit: int) -> None:
    version = ".".join(map(str, parts))
    assert all(satisfies(f"5:{version}-1", ".".join(map(str, parts[:length]))) for length in range(1, len(parts) + 1))
    assert not satisfies(f"{version}{digit}-1", version)


def test_the_newest_of_those_that_satisfy() -> None:
    assert newest(["28.1", "27.5.1", "27.5.0"], "27.5") == "27.5.1"
    assert newest(["28.1"], "27") is None


@settings(deadline=None, derandomize=True)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9+.-]{1,20}", fullmatch=True), unique=True))
def test_a_record_can_be_read_back(names: list[str]) -> None:
    files = {"/x": {"exists": True, "content": exclusion("docker", names)}}
    assert recorded(files, "/x") == sorted(names)


@pytest.mark.parametrize("files", [None, {}, {"/x": None}, {"/x": {"content": "// mine"}}, {"/x": {"content": None}}])
def test_no_record_holds_nothing(files: Any) -> None:
    assert recorded(files, "/x") == []


@pytest.mark.parametrize(
    "url", ["https://m.example.com/x", "http://10.0.0.1:8080/d", "file:///srv/apt", "file:/srv/apt"]
)
def test_addresses_of_repositories(url: str) -> None:
    assert source_problems("docker", url, "-----BEGIN PGP PUBLIC KEY BLOCK-----") == []


@pytest.mark.parametrize("url", ["", "m.example.com", "https://a b", "https://a\nSigned-By: x"])
def test_what_is_no_address(url: str) -> None:
    (problem,) = source_problems("docker", url, "-----BEGIN PGP PUBLIC KEY BLOCK-----")
    assert problem == "docker_repository_url is not an address such as https://mirror.example.com/debian"


def test_the_newest_version_that_all_locked_packages_have() -> None:
    apt = FakeApt()
    found = gather(apt, GOAL)
    assert (found.version, found.problems, found.removes) == (CE, (), {})
    assert apt.simulated == [f"docker-ce={CE}", f"docker-ce-cli={CE}", "containerd.io"] == list(found.packages)
    assert set(found.installs) == {"docker-ce", "docker-ce-cli", "containerd.io"}
    # Ansible takes a host whose result says "unreachable" for one that does not answer.
    assert "unreachable" not in as_dict(found)


@pytest.mark.parametrize(
    ("apt", "goal", "problem"),
    [
        (
            FakeApt(),
            {"version": "28"},
            "apt has no version that begins with 28 that docker-ce, docker-ce-cli have in common (it has: docker-ce "
            "5:28.1.0-1~debian.12~bookworm, 5:27.5.1-1~debian.12~bookworm; docker-ce-cli "
            "5:27.5.1-1~debian.12~bookworm). Remedy: set docker_version to one of these.",
        ),
        (
            FakeApt(),
            {"packages": (*GOAL.packages, "nvidia-x")},
            "apt has no package nvidia-x. Remedy: correct docker_repository_url, or choose another docker_source.",
        ),
        (
            FakeApt(CommandResult(0, SIMULATED + "Remv containerd [1.6.20]\nRemv runc [1.1.5]\n")),
            {},
            "the installation would remove containerd, runc. Remedy: remove it yourself if it may go, or set "
            "docker_source: keep.",
        ),
        (
            FakeApt(held=["containerd.io", "bash"]),
            {},
            "containerd.io is on hold, but would have to change. Remedy: apt-mark unhold containerd.io if it may "
            "change, or set docker_source: keep.",
        ),
        (
            FakeApt(CommandResult(100, "", "The following packages have unmet dependencies:\n a : Depends: b\n")),
            {},
            "apt cannot install docker-ce, docker-ce-cli, containerd.io: a : Depends: b. Remedy: check what is held "
            "or half-installed (apt-mark showhold; dpkg --audit), and run again.",
        ),
    ],
)
def test_what_forbids_it(apt: FakeApt, goal: dict[str, Any], problem: str) -> None:
    requested = Goal(**{**GOAL.__dict__, **goal})
    assert gather(apt, requested).problems == (problem,)


def test_our_own_holds_and_what_may_go_are_no_problem() -> None:
    apt = FakeApt(CommandResult(0, SIMULATED + "Remv containerd [1.6.20]\n"), held=["docker-ce"])
    requested = Goal(**{**GOAL.__dict__, "holds": ("docker-ce",), "may_go": ("containerd",)})
    assert gather(apt, requested).problems == ()


@pytest.mark.parametrize(
    ("reported", "cannot_fetch", "words"),
    [
        ("E: Failed to fetch https://m/x  Could not resolve 'm'\n", True, "docker_repository_url to a mirror"),
        (
            "W: GPG error: https://m/x: The following signatures couldn't be verified: NO_PUBKEY 8D81803C0EBFCD88\n"
            "E: The repository 'https://m/x InRelease' is not signed.\n",
            False,
            "give the key that signs it in docker_repository_key",
        ),
    ],
)
def test_a_repository_that_cannot_be_had(reported: str, cannot_fetch: bool, words: str) -> None:
    found = gather(FakeApt(update=reported), GOAL)
    assert found.unreachable is cannot_fetch and as_dict(found)["cannot_fetch"] is cannot_fetch
    assert len(found.problems) == 1 and words in found.problems[0] and "nvidia_driver" not in found.problems[0]
