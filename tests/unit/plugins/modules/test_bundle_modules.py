# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of bundle_collect and bundle_send, with an apt that is invented."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_io import BundleAptError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_packages import Deb, parse_deb
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import bundle_collect, bundle_send
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.engine import docker_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    PACKAGES as TOOLKIT,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.toolkit import toolkit_plan

SYSTEM = {"distribution": "debian", "release": "12", "architecture": "x86_64"}


def deb(name: str, version: str) -> Deb:
    return parse_deb(
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
        f"Filename: x/{name}.deb\nSize: 1\nSHA256: {'ab' * 32}"
    )


class FakeApt:
    """Knows engine in two versions, which needs a library."""

    downloaded: list[str]

    def __init__(self, folder: str, sources: str, without: Sequence[str]) -> None:
        assert Path(folder).is_dir() and (sources, list(without)) == ("", [])

    def update(self) -> CommandResult:
        return CommandResult(0)

    def policy(self, names: Sequence[str]) -> str:
        lines = [
            "  Version table:",
            "     2.1 500",
            "        500 http://x P",
            "     1.9 500",
            "        500 http://x P",
            "",
        ]
        table = "\n".join(lines)
        return "".join(f"{name}:\n  Installed: (none)\n{table}" for name in names if name in ("engine", "tool"))

    def simulate(self, names: Sequence[str]) -> CommandResult:
        return CommandResult(0, "".join(f"Inst {name} (1 x)\n" for name in names))

    def held(self) -> list[str]:
        return []

    def wanted(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        found = [(name.partition("=")[0], name.partition("=")[2] or "2.1", "amd64") for name in names]
        return [*found, ("library", "1", "amd64")]

    def shown(self, wanted: Sequence[tuple[str, str, str]]) -> list[Deb]:
        return [deb(name, version) for name, version, dummy in wanted]

    def download(self, debs: Sequence[Deb], folder: Path) -> None:
        FakeApt.downloaded = [one.file for one in debs]


def run(module: Any, capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args({"bundle": "/srv/bundle", "system": SYSTEM, **args}), pytest.raises(SystemExit) as ended:
        module.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


GROUPS = [
    {"prefix": "docker", "packages": ["engine"], "locked": ["engine"], "version": "1.9"},
    {"prefix": "host", "packages": ["tool"]},
]


def test_all_that_the_groups_need_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bundle_collect, "EmptyHost", FakeApt)
    result = run(bundle_collect, capsys, folder=str(tmp_path), groups=GROUPS)
    assert result["changed"] is False
    assert [(one["name"], one["version"]) for one in result["debs"]] == [
        ("engine", "1.9"),
        ("library", "1"),
        ("tool", "2.1"),
    ]
    assert result["debs"][0]["source"] == "engine 1.9"


def test_only_what_is_lacking_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bundle_collect, "EmptyHost", FakeApt)
    monkeypatch.setattr(bundle_collect, "pack", lambda debs, folder, archive: None)
    result = run(bundle_collect, capsys, folder=str(tmp_path), groups=GROUPS, lacking=["library.deb"])
    assert (result["changed"], result["archive"]) == (True, f"{tmp_path}/packages.tar")
    assert FakeApt.downloaded == ["library.deb"]


def test_a_package_that_is_not_there_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bundle_collect, "EmptyHost", FakeApt)
    groups = [{"prefix": "docker", "packages": ["motor"]}]
    message = run(bundle_collect, capsys, folder=str(tmp_path), groups=groups)["msg"]
    assert message.startswith("apt has no package motor. Remedy: correct docker_repository_url")


def test_alone_it_says_who_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(bundle_collect, capsys, groups=GROUPS)["msg"] == (
        "folder is missing: this module is run by the action plugin of the same name."
    )


def test_without_an_archive_it_says_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bundle_send, "installed", lambda: "ii  one amd64 1\n")
    result = run(bundle_send, capsys)
    assert (result["changed"], result["installed"]) == (False, {"one:amd64": "1"})


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BundleAptError("apt cannot install one from the bundle: no."), "apt cannot install one from the bundle: no."),
        (OSError(28, "No space left"), "Cannot lay out packages in /x: [Errno 28] No space left. Is there space?"),
    ],
)
def test_what_fails_leaves_no_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    done: list[str] = []

    def refuse(place: Path, packages: Sequence[str]) -> None:
        raise error

    monkeypatch.setattr(bundle_send, "PLACE", "/x")
    monkeypatch.setattr(bundle_send, "lay_out", lambda place, archive, files: done.append("laid out"))
    monkeypatch.setattr(bundle_send, "remove", lambda place: done.append(f"removed {place}"))
    monkeypatch.setattr(bundle_send, "ask", refuse)
    assert run(bundle_send, capsys, archive="/x.tar", files={"a": "b"}, packages=["one"])["msg"] == message
    assert done == ["laid out", "removed /x"]


BARE = {
    "system": {**SYSTEM, "codename": "bookworm"},
    "packages": {},
    "docker": {},
    "engine": {},
    "files": {},
    "held": [],
}
"""As the action bundle_collect gives it to the plans of the roles: a host that has nothing yet."""


@pytest.mark.parametrize(
    ("source", "codename", "packages"),
    [
        ("distribution", "bookworm", ["python3-docker", "python3-requests", "docker.io", "iptables"]),
        (
            "distribution",
            "trixie",
            ["python3-docker", "python3-requests", "docker.io", "docker-cli", "docker-buildx", "iptables"],
        ),
        ("keep", "bookworm", ["python3-docker", "python3-requests"]),
    ],
)
def test_the_plan_for_an_empty_host_names_all_that_docker_needs(
    source: str, codename: str, packages: list[str]
) -> None:
    facts = {**BARE, "system": {**SYSTEM, "codename": codename}}
    plan = docker_plan(facts, {"source": source, "version": ""})
    assert (plan["packages"], plan["sources"], plan["stale_sources"]) == (packages, "", [])


def test_an_empty_hosts_plan_names_all_that_the_toolkit_needs() -> None:
    request = {"version": "1.18.2", "repository_url": "https://x.example.com/deb", "repository_key": "key"}
    plan = toolkit_plan(BARE, request)
    assert plan["packages"] == list(TOOLKIT) and plan["version"] == "1.18.2"
    assert "URIs: https://x.example.com/deb/amd64\n" in plan["sources"]
    assert plan["stale_sources"]
