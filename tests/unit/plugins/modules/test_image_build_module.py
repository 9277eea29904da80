# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The module image_build: what it starts, with a shell script in place of docker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.modules import image_build


def run(capsys: pytest.CaptureFixture[str], args: dict[str, Any]) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit) as ended:
        image_build.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


@pytest.fixture(name="docker")
def _docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """STAND-IN for docker: prints its arguments and whether BuildKit is asked for."""
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "BuildKit $DOCKER_BUILDKIT"\n')
    program.chmod(0o755)
    monkeypatch.setattr(image_build, "find_program", lambda name: str(program) if name == "docker" else None)
    return program


def given(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"name": "team/x:1", "context": str(tmp_path / "context"), "place": str(tmp_path / "build"), **more}


@pytest.mark.usefixtures("docker")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"args": {"A": "one two"}, "labels": {"a.b": "c d"}, "secrets": {"network": "/root/network"}}
    assert run(capsys, given(tmp_path, **more))["changed"] is True
    request = given(tmp_path, observe=True)
    found = run(capsys, request)
    while found["running"]:
        time.sleep(0.02)
        found = run(capsys, request)
    assert found["text"].splitlines() == [
        *(
            "build",
            "--network=host",
            "--progress=plain",
            "--tag",
            "team/x:1",
            "--file",
            f"{tmp_path}/context/Dockerfile",
        ),
        *("--build-arg=A=one two", "--label=a.b=c d", "--secret=id=network,src=/root/network"),
        *(f"{tmp_path}/context", "BuildKit 1"),
    ]
    assert (found["rc"], found["changed"]) == (0, False)


@pytest.mark.usefixtures("docker")
def test_check_mode_builds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, given(tmp_path, _ansible_check_mode=True))["changed"] is True
    assert not (tmp_path / "build").exists()


def test_no_docker(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_build, "find_program", lambda dummy: None)
    found = run(capsys, given(tmp_path))
    assert (found["failed"], found["msg"]) == (
        True,
        "There is no docker command. Remedy: ansible-playbook site.yml --tags docker",
    )


@pytest.mark.usefixtures("docker")
def test_a_look_at_no_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, given(tmp_path, observe=True))
    assert found["failed"] is True
    assert "Remedy: run again; if it stays, check the disk of" in found["msg"]
