# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What DeepSpeed would compile at the first step, by files made up after its own and torch's."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import operators
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.operators import (
    compiled,
    installed_operators,
    missing_tools,
    operator_name,
)

INSTALLED = """version='0.19.8'
git_hash='unknown'
installed_ops={'async_io': False, 'fused_adam': True, 'cpu_adam': False, 'deepspeed_shm_comm': True}
accelerator_name='cuda'
torch_info={'version': '2.12', 'bf16_support': True, 'cuda_version': '13.0'}
"""


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder deepspeed that Python finds and that must not be imported."""
    package = tmp_path / "site" / "deepspeed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "git_version_info_installed.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "deepspeed", raising=False)
    return package


@pytest.mark.parametrize(
    ("needed", "accelerator", "expected"),
    [
        ([], "cuda", []),
        (["FUSED_ADAM", "SHM_COMM"], "cuda", []),
        (["AIO", "CPU_ADAM", "FUSED_ADAM"], "cuda", ["AIO", "CPU_ADAM"]),
        (["PIN_MEMORY"], "cuda", []),  # this release has none
        (["FUSED_ADAM"], "cpu", ["FUSED_ADAM"]),  # built for another accelerator
    ],
)
def test_what_is_compiled_at_the_first_step(
    wheel: Path, needed: list[str], accelerator: str, expected: list[str]
) -> None:
    assert operators.operators(needed, accelerator, [], {})["compile"] == expected


def test_what_torch_compiled_before_counts(wheel: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for place in ("py311_cu130/async_io", "cpu_adam"):
        (cache / place).mkdir(parents=True)
        (cache / place / f"{Path(place).name}.so").touch()
    assert operators.operators(["AIO", "CPU_ADAM"], "cuda", [cache], {}) == {"compile": [], "missing": []}
    assert not compiled("fused_adam", [cache, tmp_path / "absent"])


def test_without_deepspeed_there_is_nothing_to_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_package", lambda name: None)
    assert operators.operators(["AIO"], "cuda", [], {}) == {"compile": [], "missing": []}


@pytest.mark.parametrize(
    "text", ["", "installed_ops=", "installed_ops=[]\naccelerator_name='cuda'", "installed_ops=open('x')", "\0"]
)
def test_a_file_that_says_nothing(text: str) -> None:
    assert installed_operators(text, "cuda") == {}


@pytest.mark.parametrize(
    ("variable", "name"),
    [("AIO", "async_io"), ("SHM_COMM", "deepspeed_shm_comm"), ("FUSED_ADAM", "fused_adam"), ("QUANTIZER", "quantizer")],
)
def test_names_of_operators(variable: str, name: str) -> None:
    assert operator_name(variable) == name


def test_what_compiling_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    tools = ["a C++ compiler", "the headers of Python", "ninja"]
    assert missing_tools("cpu", {}) == tools
    assert missing_tools("cuda", {"CUDA_HOME": str(tmp_path)}) == [*tools, "nvcc"]
    (tmp_path / "Python.h").touch()
    (tmp_path / "bin").mkdir()
    for place in ("c++", "ninja", "bin/nvcc"):
        (tmp_path / place).touch(mode=0o755)
    assert missing_tools("cuda", {"CUDA_HOME": str(tmp_path)}) == []
    assert missing_tools("cuda", {"CUDA_HOME": str(tmp_path), "CXX": "no-such-compiler"}) == ["a C++ compiler"]
