# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Make the folder that travels to a machine with a GPU: wheels for two Pythons, three collections, the digits' data.

Runs where a package index is reached. Two sets of wheels: for this Python, and for CPython 3.12 on x86-64 Linux, which
is what Ubuntu 24.04 and most images with torch have. DeepSpeed is published as source; without its operators it is pure
Python, and one wheel serves all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.gpu_proof.paths import COLLECTIONS, DIGITS, REQUIREMENTS, ROOT, WHEELS, ProofError
from tests.gpu_proof.requirements import wanted

LIMIT = 60 * 1024**2
"""Bytes. So it goes with the checkout through what takes small uploads only."""

OTHER_PYTHON = (3, 12)
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux2010")
_COLLECTIONS = ("ansible/posix", "community/crypto", "community/docker")
"""Roles name their modules, and Ansible looks for each when it reads a playbook."""
_LEFT_OUT = {"tests", "docs", "changelogs", "__pycache__", ".github", "MANIFEST.json", "FILES.json"}
_SOURCES = ("deepspeed",)


def make() -> str:
    """Re-create the folder; return a sentence on its size. Raises ProofError."""
    WHEELS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WHEELS.parent) as name:
        folder = Path(name) / "wheels"
        folder.mkdir()
        text = REQUIREMENTS.read_text(encoding="utf-8")
        ours = sys.version_info[:2]
        for python in sorted({ours, OTHER_PYTHON}):
            _download(folder, wanted(text, python), python)
        _build(folder, wanted(text, ours))
        _collections(folder / COLLECTIONS.name)
        _digits(folder / DIGITS.name)
        size = sum(path.stat().st_size for path in folder.iterdir())
        judge_size(size)
        shutil.rmtree(WHEELS, ignore_errors=True)
        folder.rename(WHEELS)
    count = len(list(WHEELS.glob("*.whl")))
    pythons = " and ".join(f"{major}.{minor}" for major, minor in sorted({ours, OTHER_PYTHON}))
    sizes = f"{size / 1024**2:.1f} of {LIMIT // 1024**2} MiB"
    return f"{WHEELS.relative_to(ROOT)}: {count} wheels for Python {pythons}, {sizes}"


def judge_size(size: int) -> None:
    """Raise ProofError where the folder is larger than what may travel."""
    if size > LIMIT:
        raise ProofError(
            f"{WHEELS.relative_to(ROOT)} would be {size / 1024**2:.1f} MiB, {LIMIT // 1024**2} MiB are allowed. "
            f"Remedy: leave out of {REQUIREMENTS.relative_to(ROOT)} what machines with torch have."
        )


def platforms(machine: str = "x86_64") -> list[str]:
    """Return pip's options for wheels of another Python than its own."""
    return [word for platform in _PLATFORMS for word in ("--platform", f"{platform}_{machine}")]


def _download(folder: Path, names: Iterable[str], python: tuple[int, int]) -> None:
    ready = [name for name in names if name.partition("==")[0] not in _SOURCES]
    version = ".".join(map(str, python))
    options = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", version, *platforms()]
    _pip(["download", *options, "--dest", str(folder), *ready], f"the wheels for Python {version}")


def _build(folder: Path, names: Iterable[str]) -> None:
    sources = [name for name in names if name.partition("==")[0] in _SOURCES]
    _pip(["wheel", "--no-deps", "--wheel-dir", str(folder), *sources], "DeepSpeed's wheel")


def _pip(arguments: list[str], what: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        command, env={**os.environ, "DS_BUILD_OPS": "0"}, text=True, capture_output=True, check=False, timeout=900
    )
    if done.returncode:
        last = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
        raise ProofError(
            f"pip could not fetch {what}: {last} Remedy: check the package index, or a name in {REQUIREMENTS.name}."
        )


def _collections(archive: Path) -> None:
    import ansible_collections  # a namespace package: of the package ansible, or of ansible-galaxy  # noqa: PLC0415

    places = [Path(place) for place in ansible_collections.__path__]
    with tarfile.open(archive, "w:gz") as tar:
        for name in _COLLECTIONS:
            found = next((place / name for place in places if (place / name / "plugins").is_dir()), None)
            if found is None:
                raise ProofError(
                    f"collection {name.replace('/', '.')} is not installed here. "
                    "Remedy: make venv, or ansible-galaxy collection install -r requirements.yml"
                )
            tar.add(found, f"ansible_collections/{name}", filter=_kept)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts[3:]
    if parts and (parts[0] in _LEFT_OUT or "__pycache__" in parts):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _digits(target: Path) -> None:
    """Take the data out of scikit-learn, which with SciPy would be 45 MiB for each Python."""
    with tempfile.TemporaryDirectory() as folder:
        _pip(["download", "--no-deps", "--only-binary=:all:", "--dest", folder, "scikit-learn"], "scikit-learn")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read("sklearn/datasets/data/digits.csv.gz"))
