# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The script that makes a wheel of DeepSpeed in a build. STAND-IN: a local repository."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "roles/training_image/files/deepspeed_wheel.py"


@pytest.fixture(name="script")
def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deepspeed_wheel", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=x")
    git(folder, "tag", "v0.19.8")
    git(folder, "branch", "v0.19.x")
    return folder


def test_a_branch_is_refused_with_the_commit_to_name(script: ModuleType, repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    with pytest.raises(script.SourceError) as caught:
        script.check_reference(f"git+file://{repository}@v0.19.x")
    assert str(caught.value) == (
        "training_image_deepspeed_source: v0.19.x is a branch, which moves on, and the image's tag would not tell. "
        f"Remedy: name a tag or a commit, which is {commit} now."
    )


def test_tags_commits_and_archives_pass(script: ModuleType, repository: Path) -> None:
    for reference in ("v0.19.8", git(repository, "rev-parse", "HEAD")):
        script.check_reference(f"git+file://{repository}@{reference}")
    script.check_reference("/build/source.tar.gz")


def test_a_repository_that_cannot_be_reached_is_left_to_pip(script: ModuleType, tmp_path: Path) -> None:
    script.check_reference(f"git+file://{tmp_path}/nowhere@main")


@pytest.mark.parametrize("built", ["0.19.8", "0.19.8+1a2b3c4", "0.19.8+unknown"])
def test_the_version_that_was_stated(script: ModuleType, built: str, tmp_path: Path) -> None:
    (tmp_path / f"deepspeed-{built}-py3-none-any.whl").touch()
    script.check_wheel(tmp_path, "0.19.8")
    script.check_wheel(tmp_path, built)


@pytest.mark.parametrize(
    ("wheels", "expected"),
    [
        (
            ["deepspeed-0.18.2+1a2b3c4-cp311-cp311-linux_x86_64.whl"],
            "training_image_deepspeed_source is DeepSpeed 0.18.2+1a2b3c4, and training_image_deepspeed_version is "
            "0.19.8. Remedy: set training_image_deepspeed_version: 0.18.2.",
        ),
        (
            ["einops-0.8.1-py3-none-any.whl"],
            "training_image_deepspeed_source is the source of einops-0.8.1-py3-none-any.whl, not of DeepSpeed. "
            "Remedy: give DeepSpeed's own source.",
        ),
        (
            [],
            "training_image_deepspeed_source is the source of nothing, not of DeepSpeed. "
            "Remedy: give DeepSpeed's own source.",
        ),
    ],
)
def test_another_source_than_was_stated(script: ModuleType, wheels: list[str], expected: str, tmp_path: Path) -> None:
    for name in wheels:
        (tmp_path / name).touch()
    with pytest.raises(script.SourceError) as caught:
        script.check_wheel(tmp_path, "0.19.8")
    assert str(caught.value) == expected


@pytest.mark.parametrize(("version", "status"), [("0.19.8", 0), ("0.18.2", 1)])
def test_what_pip_is_asked_for(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, status: int
) -> None:
    requested: list[list[str]] = []

    def pip(command: list[str], **dummy: Any) -> subprocess.CompletedProcess[str]:
        requested.append(command)
        (tmp_path / "deepspeed-0.19.8+unknown-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(script.subprocess, "run", pip)
    assert script.main(version, "/build/source.tar.gz", tmp_path, ["--no-index"]) == status
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    assert requested == [[sys.executable, "-m", "pip", "wheel", *options, "/build/source.tar.gz"]]


def test_pips_own_failure_is_handed_on(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(script.subprocess, "run", lambda command, **dummy: subprocess.CompletedProcess(command, 3))
    assert script.main("0.19.8", "/build/source.zip", tmp_path, []) == 3
