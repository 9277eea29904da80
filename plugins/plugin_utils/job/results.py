# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Results of a job on the controller: taken out of what a node sent, checked, and put in their place as a whole."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from ...module_utils.common.digests import CHUNK, Hashed
from ...module_utils.common.reported import ReportedError, accept, hex_digest, relative_path, sentence, whole
from ..cluster.trees import file_sha256
from ..validate.shape import by_name, listing, mapping

_REPLY = mapping(
    {
        "packed": by_name(relative_path, mapping({"size": whole(0, 1 << 50), "sha256": hex_digest}), 10_000),
        "problems": listing(sentence, 100_000),
    }
)


def reply(host: str, reported: Mapping[str, Any], paths: list[str], most: int) -> dict[str, Any]:
    """Return what the module reported: only of what was asked for, and not too much. Raises ``ReportedError``."""
    own = {key: reported.get(key) for key in ("packed", "problems")}
    checked: dict[str, Any] = accept(host, "job_results", own, _REPLY)
    for path in checked["packed"]:
        if not any(path == requested or path.startswith(f"{requested}/") for requested in paths):
            raise ReportedError(f"{host}: job_results: {path} was not requested. Remedy: check that node.")
    if sum(entry["size"] for entry in checked["packed"].values()) > most:
        raise ReportedError(f"{host}: job_results: it sent more than was requested. Remedy: check that node.")
    return checked


def same(place: Path, packed: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether just these files are there already."""
    here = {str(path.relative_to(place)): path for path in place.rglob("*") if not path.is_dir()}
    return here.keys() == packed.keys() and all(
        path.is_file() and not path.is_symlink() and file_sha256(path) == packed[name]["sha256"]
        for name, path in here.items()
    )


def take(host: str, archive: Path, packed: Mapping[str, Mapping[str, Any]], place: Path) -> str:
    """Put the archive's files into the folder; return where former ones were moved to. Raises ``ReportedError``."""
    part = Path(tempfile.mkdtemp(dir=place.parent, prefix=f"{place.name}."))
    try:
        missing = dict(packed)
        try:
            with tarfile.open(archive, "r:") as tar:
                for member in tar:
                    entry = missing.pop(member.name, None)
                    content = tar.extractfile(member) if entry and member.isreg() else None
                    if not entry or not content or member.size != entry["size"]:
                        raise ReportedError(
                            f"{host}: job_results: the archive differs from what was reported. {_AGAIN}"
                        )
                    _write(host, content, part / member.name, entry["sha256"])
        except (tarfile.TarError, EOFError, ValueError) as error:
            if isinstance(error, ReportedError):
                raise
            raise ReportedError(f"{host}: job_results: the archive arrived incomplete. {_AGAIN}") from None
        if missing:
            raise ReportedError(f"{host}: job_results: {next(iter(missing))} did not arrive. {_AGAIN}")
        moved = _make_way(place)
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return moved


_AGAIN = "Remedy: run launch.yml again"


def _write(host: str, content: IO[bytes], path: Path, sha256: str) -> None:
    for folder in reversed(path.parents):
        folder.mkdir(mode=0o700, exist_ok=True)
    hashed = Hashed(content)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        shutil.copyfileobj(hashed, file, CHUNK)
    if hashed.sha256 != sha256:
        raise ReportedError(f"{host}: job_results: {path.name} arrived incomplete. {_AGAIN}")


def _make_way(place: Path) -> str:
    """Move what is there to the first free name."""
    if not place.exists():
        return ""
    number = 1
    while (free := place.with_name(f"{place.name}.{number}")).exists():
        number += 1
    place.rename(free)
    return str(free)
