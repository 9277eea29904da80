# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The script that puts a CUDA_HOME together in a build. The wheels are made up, in the layout of the real ones."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "roles/training_image/files/cuda_home.py"
ONE_TREE = ("nvidia/cu13/bin/nvcc", "nvidia/cu13/include/cuda.h", "nvidia/cu13/lib/libcudart.so.13")
A_FOLDER_EACH = (
    "nvidia/cuda_nvcc/bin/nvcc",
    "nvidia/cuda_nvcc/include/crt/host_config.h",
    "nvidia/cuda_cccl/include/crt/more.h",
    "nvidia/cuda_runtime/include/cuda.h",
    "nvidia/cuda_runtime/lib/libcudart.so.12",
)


@pytest.fixture(name="script")
def _script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("cuda_home", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def compile_stub(command: list[str], **dummy: Any) -> subprocess.CompletedProcess[str]:
        assert command[0] == "g++"
        Path(command[-1]).touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(module.subprocess, "run", compile_stub)
    return module


@pytest.mark.parametrize("files", [ONE_TREE, A_FOLDER_EACH])
def test_one_tree_whatever_the_wheels_look_like(script: ModuleType, tmp_path: Path, files: tuple[str, ...]) -> None:
    packages, home = tmp_path / "site-packages", tmp_path / "cuda"
    for name in (*files, "nvidia/__init__.py", "torch/lib/libtorch.so"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(name)
    script.assemble(packages, home)
    assert (home / "bin/nvcc").read_text().endswith("bin/nvcc")
    assert (home / "include/cuda.h").read_text().endswith("include/cuda.h")
    assert (home / "lib64/libcudart.so").read_text().startswith("nvidia/cu")
    assert (home / "lib64/libcuda.so").is_file()
    assert not list(home.rglob("libtorch*"))
    for name in files:
        if "/crt/" in name:
            assert (home / "include/crt" / Path(name).name).is_file()


def test_release_of_a_compiler(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n"
    monkeypatch.setattr(
        script.subprocess, "run", lambda command, **dummy: subprocess.CompletedProcess(command, 0, stdout=reported)
    )
    assert script.release_of(tmp_path) == "13.0"


def test_no_compiler_has_no_release(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*dummy: Any, **dummy2: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(script.subprocess, "run", absent)
    assert script.release_of(tmp_path) == ""
