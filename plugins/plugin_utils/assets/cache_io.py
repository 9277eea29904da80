# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller's cache: lists of files of models and data sets, and their files, named by SHA-256."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from ...module_utils.common.untrusted_text import on_one_line
from ...module_utils.common.whole_file import whole_file, write_whole
from ..bundle.manifest import AGAIN
from ..cluster.trees import file_sha256
from ..plan.controller import here
from .gathered import known_manifest, manifest_path
from .http_io import DigestError, Http, HttpLostError, HttpRefusedError, git_digest
from .hub import HubFile, Revision, file_url, info_url, parse_info, refused
from .manifest import SHA256, File, Manifest, size_text, to_text
from .sources import FOLDER, HUGGINGFACE, AssetError, Source, safe_path, url_name

LARGEST_SMALL = 64 << 20
"""Bytes. A file without a SHA-256 on the hub is in git itself, which takes none that are larger than 10 MB."""


class Cache:
    """``folder`` is the cache. One that is ``bundled`` is part of an offline bundle: nothing is asked or written."""

    def __init__(self, folder: Path, http: Http, *, token: bool, bundled: bool = False) -> None:
        self.folder, self._http, self._token, self._bundled = folder, http, token, bundled

    def blob(self, sha256: str) -> Path:
        return blob_path(self.folder, sha256)

    def resolve(self, source: Source, *, refresh: bool = False) -> Manifest:
        """Return a source's list of files. One that is not on the controller is asked for once, and then known."""
        known = known_manifest(self.folder, source)
        if self._bundled:
            if known is None:
                raise source.error("it is not in the bundle as it is requested", AGAIN)
            return known
        if source.kind == FOLDER:
            found = self._of_folder(source)
        elif known and not refresh:
            return known
        elif source.kind == HUGGINGFACE:
            found = self._of_hub(source)
        else:
            found = self._of_url(source)
        if found != known:
            _write(manifest_path(self.folder, source), to_text(found))
        return found

    def path(self, manifest: Manifest, sha256: str) -> Path:
        """Return where a file lies on the controller, or is to."""
        return path_of(manifest, sha256, self.folder, bundled=self._bundled)

    def lacking(self, manifest: Manifest, wanted: Iterable[str]) -> list[File]:
        """Return which of the wanted files, by SHA-256, are not there with their size."""
        names, found = set(wanted), {}
        for file in manifest.files:
            path = self.path(manifest, file[2])
            if file[2] in names and not (path.is_file() and path.stat().st_size == file[1]):
                found[file[2]] = file
        return list(found.values())

    def room(self, needed: int) -> None:
        """Raise ``AssetError`` where the disk has not that many bytes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise AssetError(
                f"the controller: {size_text(free)} are free in {self.folder}, but {size_text(needed)} are to be "
                "downloaded there. Remedy: free space there, or set assets_cache to a folder on a larger disk"
            )

    def fetch(self, source: Source, manifest: Manifest, file: File) -> None:
        """Fetch a file. Raises ``AssetError``."""
        path, size, sha256 = file
        origin = manifest.origins.get(sha256, "")
        if not origin or origin.startswith("/"):
            raise source.error(f"{path} has changed on the controller during the transfer", "run again")
        try:
            self._http.fetch(origin, self.blob(sha256), size, sha256)
        except DigestError as error:
            if source.kind == HUGGINGFACE:
                cause = f"{path} arrived with SHA-256 {error.found}, but the hub states {sha256}"
                raise source.error(cause, "run again, and check what is between the controller and the hub") from None
            raise source.error(
                f"{source.title} has SHA-256 {error.found}, but {sha256} is requested",
                "check where the file comes from, and correct sha256",
            ) from None
        except HttpRefusedError as error:
            raise self._refused(source, error) from None
        except HttpLostError as error:
            raise source.error(
                f"{path} could not be downloaded from {urlsplit(origin).hostname} ({error})",
                "run again; the transfer resumes",
            ) from None
        except OSError as error:
            raise source.error(f"{path} cannot be written ({error})", "free space in assets_cache") from None

    def _refused(self, source: Source, error: HttpRefusedError) -> AssetError:
        if source.kind == HUGGINGFACE:
            return refused(source, error.status, error.headers, self._token)
        return source.error(
            f"{urlsplit(source.place).hostname} answers {error.status}",
            "correct url" if error.status < 500 else "run again later",
        )

    def _of_hub(self, source: Source) -> Manifest:
        host = urlsplit(source.endpoint).hostname
        try:
            revision = parse_info(source, self._http.json(info_url(source)))
            if revision.gated:
                # The list of files is public, the files are not: better now than when nodes wait.
                self._http.size(file_url(source, revision.commit, revision.files[0].path))
            small = {file.path: self._small(source, revision, file) for file in revision.files if not file.sha256}
        except HttpRefusedError as error:
            raise self._refused(source, error) from None
        except HttpLostError as error:
            raise _silent(source, host, error) from None
        files = tuple((file.path, file.size, file.sha256 or small[file.path]) for file in revision.files)
        origins = {sha256: file_url(source, revision.commit, path) for path, dummy, sha256 in files}
        return Manifest(source.title, revision.commit, files, origins)

    def _small(self, source: Source, revision: Revision, file: HubFile) -> str:
        """Fetch a file that the hub keeps in git, which has no SHA-256 of it, and return its SHA-256."""
        noted = self.folder / "git" / file.blob
        with contextlib.suppress(OSError, UnicodeDecodeError, AssetError):
            sha256 = noted.read_text(encoding="ascii").strip()
            if self.blob(sha256).stat().st_size == file.size:
                return sha256
        if file.size > LARGEST_SMALL:
            raise source.error(f"the hub has no SHA-256 of {file.path}", "leave it out with huggingface.files")
        data = self._http.read(file_url(source, revision.commit, file.path), file.size)
        if git_digest(data) != file.blob:
            raise source.error(f"{file.path} arrived with other content than the hub states", "run again")
        sha256 = hashlib.sha256(data).hexdigest()
        _made(self.folder / "blobs")
        with whole_file(self.blob(sha256)) as blob:
            blob.write(data)
        _write(noted, sha256)
        return sha256

    def _of_url(self, source: Source) -> Manifest:
        there = self.blob(source.sha256)
        host = urlsplit(source.place).hostname
        try:
            size = there.stat().st_size if there.exists() else self._http.size(source.place)
        except HttpRefusedError as error:
            raise self._refused(source, error) from None
        except HttpLostError as error:
            raise _silent(source, host, error) from None
        if size is None:
            raise source.error(
                f"{host} does not report the size of the file",
                "fetch it to a folder of the controller, and give folder",
            )
        files = ((url_name(source.place), size, source.sha256),)
        return Manifest(source.title, "", files, {source.sha256: source.place})

    def _of_folder(self, source: Source) -> Manifest:
        """List a folder. A file that was read before and has not been touched since is not read again."""
        root = here(source.place)
        if not root.is_dir():
            raise source.error(f"{source.place} is not a directory on the controller", "correct folder")
        memory = self.folder / "folders" / f"{source.key}.json"
        known: dict[str, list[object]] = {}
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(memory.read_text(encoding="utf-8"))
        seen: dict[str, list[object]] = {}
        files: list[File] = []
        try:
            for path in _files(root):
                name, status = path.relative_to(root).as_posix(), path.stat()
                if not safe_path(name):
                    raise source.error(f"{name!r} cannot be the name of a file on the nodes", "rename it")
                mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
                before = known.get(name)
                digest = str(before[4]) if before and before[:4] == mark else file_sha256(path)
                seen[name] = [*mark, digest]
                files.append((name, status.st_size, digest))
        except OSError as error:
            raise source.error(
                f"{error.filename} cannot be read ({error.strerror})", "let this account read it"
            ) from None
        if not files:
            raise source.error(f"{source.place} holds no file", "correct folder")
        if seen != known:
            _write(memory, json.dumps(seen))
        origins = {sha256: str(root / name) for name, dummy, sha256 in files}
        return Manifest(source.title, "", tuple(files), origins)


def _silent(source: Source, host: str | None, error: HttpLostError) -> AssetError:
    return source.error(f"{host} cannot be queried ({error})", "check the controller's network, or assets_proxy")


def path_of(manifest: Manifest, sha256: str, cache: Path, *, bundled: bool) -> Path:
    """Return where a file lies on the controller, or is to. In a bundle no list may name another place."""
    origin = manifest.origins.get(sha256, "")
    return Path(origin) if origin.startswith("/") and not bundled else blob_path(cache, sha256)


def blob_path(cache: Path, sha256: str) -> Path:
    """Return where a file is kept. Whoever may have named it: no other name becomes a path. Raises ``AssetError``."""
    if not SHA256.fullmatch(sha256):
        raise AssetError(
            f"{on_one_line(sha256)!r} is not a SHA-256 of a file. Remedy: check assets_huggingface_endpoint, and empty "
            f"{cache / 'git'} and {cache / 'manifests'}"
        )
    return cache / "blobs" / sha256


def _files(root: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        found += [Path(folder, name) for name in sorted(names)]
    # A link to a file counts as that file, one to a directory is not followed.
    return [path for path in found if path.is_file()]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(path: Path, text: str) -> None:
    _made(path.parent)
    write_whole(path, text)
