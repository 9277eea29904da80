# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The source of the workspace in an offline bundle: one archive of plain files, by repository and commit."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import BinaryIO

from ...module_utils.common.digests import CHUNK, Hashed
from ...module_utils.common.reported import UnfitError, relative_path
from ...module_utils.common.whole_file import whole_file
from ..bundle.files import read_manifest
from ..bundle.folder import opened, own_folder
from ..bundle.manifest import AGAIN, BundleError, Entry, inside
from ..cluster.trees import tree_manifest
from .repository import FOLDER, SOURCE, Repository, SourceError, is_commit
from .repository_io import private_folder

PLACE, KIND = "source", "source"


def pack(bundle: Path, repository: Repository, tree: Path, commit: str) -> str:
    """Put the files of a commit into the bundle, unless they are there; return the path below it.

    The same files make the same archive, so that a bundle that is made again does not change. Links stand as the files
    that they lead to, as they are sent to nodes.
    """
    path = own_folder(bundle, PLACE) / f"{repository.key}-{commit}.tar"
    with whole_file(path) as part, tarfile.open(fileobj=part, mode="w") as tar:
        for name in sorted(tree_manifest(str(tree), [])):
            file = tree / name
            member = tarfile.TarInfo(name)
            member.size = file.stat().st_size
            member.mode = 0o755 if os.access(file, os.X_OK) else 0o644
            with file.open("rb") as content:
                tar.addfile(member, content)
    return path.relative_to(bundle).as_posix()


def listed(bundle: Path, path: str, size: int, sha256: str) -> Entry:
    """Return the entry of the manifest for an archive that ``pack`` has made."""
    if not inside(path) or not path.startswith(f"{PLACE}/"):
        raise BundleError(f"{path} cannot be the source of the workspace")
    key, dummy, commit = Path(path).stem.rpartition("-")
    return Entry(path, size, sha256, KIND, package=key, version=commit)


def take(bundle: Path, repository: Repository, cache: Path) -> tuple[Path, str]:
    """Return folder and commit of the source in the bundle, unpacked in the cache. Raises ``SourceError``."""
    try:
        entry = _entry(bundle, repository)
        # By what the archive holds, and beside what was fetched: a bundle says itself which commit it has.
        tree = cache / "bundled" / entry.sha256
        if not tree.is_dir():
            private_folder(cache)
            private_folder(tree.parent)
            part = Path(tempfile.mkdtemp(dir=tree.parent, prefix="part-"))
            try:
                with opened(bundle, entry.path) as file:
                    _unpack(file, part, entry)
                if not tree.is_dir():
                    part.rename(tree)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except BundleError as error:
        raise SourceError(SOURCE, f"the bundle {bundle}: {error}", AGAIN) from error
    except (OSError, tarfile.TarError, EOFError) as error:
        raise SourceError(SOURCE, f"its archive in the bundle {bundle} cannot be used ({error})", AGAIN) from error
    folder = tree / repository.folder if repository.folder else tree
    if not folder.is_dir():
        raise SourceError(
            FOLDER,
            f"{repository.url} has no folder {repository.folder} in the bundle",
            "correct it; it is relative to the root of the repository",
        )
    return folder, entry.version


def _entry(bundle: Path, repository: Repository) -> Entry:
    found = [one for one in read_manifest(bundle).files if one.kind == KIND and one.package == repository.key]
    if len(found) != 1 or not is_commit(found[0].version):
        raise BundleError(f"it does not hold {repository.url}")
    if repository.commit and repository.commit != found[0].version:
        raise BundleError(f"it holds commit {found[0].version[:12]} of {repository.url}")
    return found[0]


def _unpack(file: BinaryIO, place: Path, entry: Entry) -> None:
    """Unpack plain files only, and only where the bytes that were read are those in the manifest."""
    if Hashed(file).read_all().sha256 != entry.sha256:
        raise BundleError(f"{entry.path} is damaged (its SHA-256 differs)")
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            try:
                name = relative_path(member.name)
            except UnfitError:
                raise BundleError(f"{entry.path} holds a path that leads elsewhere") from None
            if content is None:
                raise BundleError(f"{entry.path} holds something that is not a plain file")
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as written:
                shutil.copyfileobj(content, written, CHUNK)
            path.chmod(0o755 if member.mode & 0o100 else 0o644)
