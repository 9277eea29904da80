# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Make the Python environment of a proof: the machine's own torch, everything else from the folder of wheels.

Needs no network, no root and neither pip nor ensurepip of the machine: pip is one of the wheels, and runs out of its
file. The environment sees the packages beside torch by a .pth file, as torch may itself be in a virtual environment,
which --system-site-packages would pass by.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.gpu_proof.paths import CACHE, COLLECTIONS, DIGITS, REQUIREMENTS, ROOT, WHEELS, ProofError
from tests.gpu_proof.requirements import wanted

ENVIRONMENT = CACHE / "environment"
SMI_FOLDERS = ("/usr/lib/nvidia/current", "/usr/local/nvidia/bin", "/opt/bin")
"""As gpu_info looks for it."""
_MADE_IN = 300
_ASK = """
import json, sys, sysconfig
found = {"python": list(sys.version_info[:2]), "torch": None, "paths": [p for p in sys.path if p]}
try:
    import torch
    found.update(torch=torch.__version__, cuda=torch.version.cuda)
except ImportError as error:
    found["error"] = str(error)
print(json.dumps(found))
"""


def find_python(named: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return a Python that has torch, and what it says. Raises ProofError."""
    candidates = [named] if named else [sys.executable, "python3", "/usr/bin/python3"]
    seen = []
    for candidate in candidates:
        program = shutil.which(candidate)
        if program is None:
            seen.append(f"{candidate}: there is none")
            continue
        done = subprocess.run([program, "-c", _ASK], text=True, capture_output=True, check=False, timeout=120)
        printed = json.loads(done.stdout) if done.returncode == 0 else {"error": _last(done.stderr)}
        if printed.get("torch"):
            return program, printed
        seen.append(f"{candidate}: {printed['error']}")
    raise ProofError(f"no Python with torch: {'; '.join(seen)}. Remedy: make gpu-proof GPU_PYTHON=/path/to/python")


def make(python: str, reported: dict[str, Any]) -> Path:
    """Re-create the environment; return its Python. Raises ProofError."""
    if not WHEELS.is_dir():
        raise ProofError(
            f"{WHEELS.relative_to(ROOT)} is missing. Remedy: make gpu-proof-wheels where a package index is reached, "
            "and bring the folder here."
        )
    major, minor = reported["python"]
    names = wanted(REQUIREMENTS.read_text(encoding="utf-8"), (major, minor))
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    _run([python, "-m", "venv", "--without-pip", str(ENVIRONMENT)], "a virtual environment", _MADE_IN)
    program = ENVIRONMENT / "bin" / "python3"
    site = ENVIRONMENT / "lib" / f"python{major}.{minor}" / "site-packages"
    beside = [path for path in reported["paths"] if path.endswith(("site-packages", "dist-packages"))]
    (site / "beside_torch.pth").write_text("".join(f"{path}\n" for path in beside), encoding="utf-8")
    (pip,) = WHEELS.glob("pip-*.whl")
    install = ["install", "--no-index", "--find-links", str(WHEELS), "--no-deps", "--no-cache-dir", "--quiet"]
    options = ["--ignore-installed", "--no-warn-script-location", "--disable-pip-version-check"]
    _run([str(program), f"{pip}/pip", *install, *options, *names], "the packages in it", _MADE_IN)
    with tarfile.open(COLLECTIONS) as tar:
        tar.extractall(ENVIRONMENT / "collections")
    if subprocess.run([str(program), "-c", "import sklearn"], capture_output=True, check=False, timeout=120).returncode:
        shutil.copytree(Path(__file__).parent / "stand_in", site, dirs_exist_ok=True)
        shutil.copy(DIGITS, site / "sklearn" / "datasets")
    _torchrun(program)
    _nvidia_smi()
    return program


def _torchrun(program: Path) -> None:
    """Write a torchrun that starts ranks with this environment's Python: torch's own starts them with torch's."""
    path = ENVIRONMENT / "bin" / "torchrun"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} -m torch.distributed.run "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def _nvidia_smi() -> None:
    """Put nvidia-smi where ranks look: their PATH leads to the environment and to the system's folders only."""
    found = shutil.which("nvidia-smi", path=":".join([os.environ.get("PATH", ""), *SMI_FOLDERS]))
    if found:
        (ENVIRONMENT / "bin" / "nvidia-smi").symlink_to(found)


def variables() -> dict[str, str]:
    """Return the environment variables that every part gets."""
    # DeepSpeed 0.19.8 reads no 9.0a in TORCH_CUDA_ARCH_LIST; without it, it asks the GPU
    foreign = ("ANSIBLE_", "PYTHON", "PIP_", "TORCH_CUDA_ARCH_LIST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    places = f"{ROOT / 'collections'}:{ENVIRONMENT / 'collections'}"
    return {
        **kept,
        "PATH": f"{ENVIRONMENT / 'bin'}:{kept.get('PATH', '/usr/local/bin:/usr/bin:/bin')}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'collections'}",
        "PYTHONUNBUFFERED": "1",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": places,
        "ANSIBLE_HOME": str(CACHE / "ansible"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "LC_ALL": "C.UTF-8",
    }


def _run(command: list[str], what: str, limit: int) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    done = subprocess.run(
        command,
        env={**clean, "PIP_CONFIG_FILE": os.devnull},
        text=True,
        capture_output=True,
        check=False,
        timeout=limit,
    )
    if done.returncode:
        raise ProofError(
            f"{ENVIRONMENT.relative_to(ROOT)}: {what} could not be made: {_last(done.stderr)} "
            "Remedy: make gpu-proof-wheels again; it has wheels for x86-64 Linux, for CPython 3.12 and its own release."
        )


def _last(text: str) -> str:
    return (text.strip() or "it printed nothing").splitlines()[-1][:300]
