# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which operators of a job DeepSpeed would compile at the first step, and what compiling them lacks.

DeepSpeed loads an operator that its wheel holds for this accelerator, else what torch compiled before, else it compiles
(``ops/op_builder/builder.py``, 0.15.4 to 0.19.8). Nothing of either is imported here: that takes seconds.

Runs beside probe.py inside the container or on the host: standard library, Python 3.8.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAMES = {"AIO": "async_io", "SHM_COMM": "deepspeed_shm_comm"}
"""Names of operators that are not their build variable's in lower case."""


def operators(
    needed: list[str], accelerator: str, roots: list[Path], environment: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return ``compile``, which of the ``needed`` build variables are not compiled yet, and ``missing``.

    ``missing`` is what compiling needs and was not found, in the words of the field. ``roots``: torch's extension
    caches. Both are empty where DeepSpeed is not installed, as nothing is known of its operators then.
    """
    package = _package("deepspeed")
    if package is None or not needed:
        return {"compile": [], "missing": []}
    installed = installed_operators(_read(package / "git_version_info_installed.py"), accelerator)
    lacking = [name for name in needed if not _there(operator_name(name), installed, roots)]
    return {"compile": lacking, "missing": missing_tools(accelerator, environment) if lacking else []}


def operator_name(variable: str) -> str:
    """Return the name of the operator whose build variable is ``DS_BUILD_<variable>``."""
    return NAMES.get(variable, variable.lower())


def installed_operators(text: str, accelerator: str) -> dict[str, bool]:
    """Return DeepSpeed's operators and whether its wheel holds each for this accelerator.

    ``text`` is its ``git_version_info_installed.py``. Empty where the wheel was built for another accelerator.
    """
    values: dict[str, Any] = {}
    try:
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                values[statement.targets[0].id] = ast.literal_eval(statement.value)
    except (SyntaxError, ValueError):
        return {}
    found = values.get("installed_ops")
    if not isinstance(found, dict) or values.get("accelerator_name") != accelerator:
        return {}
    return {str(name): bool(there) for name, there in found.items()}


def _there(name: str, installed: Mapping[str, bool], roots: list[Path]) -> bool:
    # A release that has no operator of this name does not load one.
    return (bool(installed) and installed.get(name, True)) or compiled(name, roots)


def compiled(name: str, roots: list[Path]) -> bool:
    """Whether torch has compiled it before: CACHE/NAME/NAME.so, or one folder further down by Python and CUDA."""
    return any(next(root.glob(f"{level}{name}/{name}.so"), None) for root in roots for level in ("", "*/"))


def missing_tools(accelerator: str, environment: Mapping[str, str]) -> list[str]:
    """Return what torch needs to compile an extension and does not find."""
    found = {
        "a C++ compiler": shutil.which(environment.get("CXX") or "c++") or shutil.which("g++"),
        "the headers of Python": Path(sysconfig.get_paths()["include"], "Python.h").is_file(),
        "ninja": shutil.which("ninja"),
    }
    if accelerator == "cuda":
        home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH") or "/usr/local/cuda"
        found["nvcc"] = shutil.which("nvcc") or Path(home, "bin/nvcc").is_file()
    return [name for name, there in found.items() if not there]


def _package(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent if found and found.origin else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
