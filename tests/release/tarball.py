# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""`make tarball`: what ``ansible-galaxy`` builds, repacked so that the same commit gives the same bytes.

Built from the checkout, and from an export of its last commit: a checkout that differs from its commit is no release.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BIN = Path(sys.executable).parent


def build(source: Path, folder: Path, when: int) -> Path:
    """Build the collection in ``source`` into ``folder``, with ``when`` as the time of all members."""
    with tempfile.TemporaryDirectory() as place:
        command = [str(_BIN / "ansible-galaxy"), "collection", "build", "--output-path", place, str(source)]
        built = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
        if built.returncode:
            raise SystemExit(built.stdout + built.stderr)
        (path,) = Path(place).glob("*.tar.gz")
        folder.mkdir(parents=True, exist_ok=True)
        repack(path, folder / path.name, when)
        return folder / path.name


def repack(source: Path, target: Path, when: int) -> None:
    """Write the members of ``source`` in their order: MANIFEST.json, FILES.json, and the files sorted by name."""
    with (
        tarfile.open(source) as given,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", mtime=when, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as taken,
    ):
        for member in given:
            member.mtime = when
            taken.addfile(member, given.extractfile(member) if member.isfile() else None)


def commit_time(root: Path) -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the last commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git(root, "log", "-1", "--format=%ct").decode())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def git(root: Path, *words: str) -> bytes:
    """Return what git prints there."""
    return subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=root, check=True, capture_output=True).stdout


def main(folder: Path) -> None:
    when = commit_time(ROOT)
    with tempfile.TemporaryDirectory() as place:
        exported = Path(place, "exported")
        exported.mkdir()
        archive = git(ROOT, "archive", "--format=tar", "HEAD")
        subprocess.run(["tar", "--extract", "--directory", str(exported)], input=archive, check=True)
        again = digest(build(exported, Path(place, "again"), when))
    path = build(ROOT, folder, when)
    if digest(path) != again:
        path.unlink()
        raise SystemExit("The checkout differs from its last commit: commit or remove what git status names.")
    print(f"{digest(path)}  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
