# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A stand-in for a Hugging Face hub: the two calls of its API that role assets makes, and plain files beside them.

Made up from the hub's documentation, not recorded. Large files (``*.bin``) are kept by SHA-256 and redirected to
another origin, ``localhost`` in place of ``127.0.0.1``, which refuses a token as the hub's storage does. As a program
it serves a folder: ``<owner>/<name>/<revision>/<file>``, and ``files/<file>`` at ``/files/<file>``. A repository whose
name ends in ``-gated`` needs the token. A folder of names and no files counts as one commit.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_standin"
Repositories = Mapping[str, Mapping[str, Mapping[str, bytes]]]
"""By owner/name and revision the files."""


def commit_of(files: Mapping[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()


def sibling(path: str, data: bytes) -> dict[str, Any]:
    """Return how the hub lists a file."""
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    found: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": blob}
    if path.endswith(".bin"):
        found["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return found


class Hub(ThreadingHTTPServer):
    """Serves until ``close``; ``requests`` are the paths that were requested, with the range if there was one."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.repositories: Repositories = {}
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.cut = 0
        """Bytes after which the next answers of large files break off, once each."""
        self.failing = 0
        """How many of the next requests are answered with 503."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self) -> Hub:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def found(self, repository: str, revision: str) -> Mapping[str, bytes] | None:
        """Return the files of a revision, which may be the commit as well."""
        revisions = self.repositories.get(repository, {})
        if revision in revisions:
            return revisions[revision]
        return next((files for files in revisions.values() if commit_of(files) == revision), None)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        wanted = self.headers.get("Range")
        self.server.requests.append(self.path + (f" {wanted}" if wanted else ""))
        if self.server.failing:
            self.server.failing -= 1
            self._send(503)
            return
        words = [unquote(word) for word in urlsplit(self.path).path.strip("/").split("/")]
        if words[0] == "files":
            self._file(self.server.files.get("/".join(words[1:])), body)
        elif words[0] == "storage":
            self._stored(words[1], body)
        elif words[0] == "api" and len(words) == 6 and words[4] == "revision":
            self._info("/".join(words[2:4]), words[5])
        else:
            words = words[1:] if words[0] == "datasets" else words
            if len(words) > 4 and words[2] == "resolve":
                self._resolve("/".join(words[:2]), words[3], "/".join(words[4:]), body)
            else:
                self._send(404)

    def _may(self, repository: str) -> bool:
        return not repository.endswith("-gated") or self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _info(self, repository: str, revision: str) -> None:
        if repository not in self.server.repositories:
            self._send(401, {"X-Error-Code": "RepoNotFound"})
            return
        files = self.server.found(repository, revision)
        if files is None:
            self._send(404, {"X-Error-Code": "RevisionNotFound"})
            return
        gated = "manual" if repository.endswith("-gated") else False
        listed = [sibling(path, data) for path, data in files.items()]
        reply = {"id": repository, "sha": commit_of(files), "gated": gated, "siblings": listed}
        self._send(200, {"Content-Type": "application/json"}, json.dumps(reply).encode())

    def _resolve(self, repository: str, revision: str, path: str, body: bool) -> None:
        files = self.server.found(repository, revision) or {}
        if not self._may(repository):
            self._send(403 if self.headers.get("Authorization") else 401, {"X-Error-Code": "GatedRepo"})
        elif path not in files:
            self._send(404, {"X-Error-Code": "EntryNotFound"})
        elif path.endswith(".bin"):
            place = f"http://localhost:{self.server.server_address[1]}/storage"
            self._send(302, {"Location": f"{place}/{hashlib.sha256(files[path]).hexdigest()}?signature=x"})
        else:
            self._file(files[path], body)

    def _stored(self, sha256: str, body: bool) -> None:
        if self.headers.get("Authorization"):
            self._send(400)
            return
        every = (files for revisions in self.server.repositories.values() for files in revisions.values())
        data = (data for files in every for data in files.values())
        self._file(next((one for one in data if hashlib.sha256(one).hexdigest() == sha256), None), body)

    def _file(self, data: bytes | None, body: bool) -> None:
        if data is None:
            self._send(404)
            return
        wanted = str(self.headers.get("Range") or "").removeprefix("bytes=").partition("-")
        start = int(wanted[0] or 0)
        end = int(wanted[2]) + 1 if wanted[2] else len(data)
        headers = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"} if wanted[0] else {}
        self._send(206 if wanted[0] else 200, headers, data[start:end], body)

    def _send(
        self, status: int, headers: Mapping[str, str] | None = None, data: bytes = b"", body: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not body:
            return
        if self.server.cut and len(data) > self.server.cut:
            self.wfile.write(data[: self.server.cut])
            self.server.cut = 0
            self.close_connection = True
            return
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class Folder(Mapping[str, Mapping[str, Mapping[str, bytes]]]):
    """Repositories as they lie in a folder, read again for each request."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __getitem__(self, name: str) -> Mapping[str, Mapping[str, bytes]]:
        if not (self._root / name).is_dir():
            raise KeyError(name)
        return {revision.name: _read(revision) for revision in sorted((self._root / name).iterdir())}

    def __iter__(self) -> Any:
        return iter([f"{path.parent.name}/{path.name}" for path in self._root.glob("*/*") if path.is_dir()])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _read(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def main() -> None:
    root, port = Path(sys.argv[1]), int(sys.argv[2])
    hub = Hub(port)
    hub.repositories = Folder(root)
    hub.files = _read(root / "files")
    hub.serve_forever()


if __name__ == "__main__":
    main()
