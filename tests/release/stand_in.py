# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A stand-in for a Galaxy server: what ``ansible-galaxy collection install`` and ``verify`` ask of its API v3.

Made up from the client in ansible-core, not recorded. It serves tarballs on the loopback address, with detached
signatures of their MANIFEST.json, and believes whoever publishes: nothing is imported, checked or signed here.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.release.tarball import digest

_COLLECTIONS = "/api/v3/collections"


class Galaxy(ThreadingHTTPServer):
    """Serves until ``close``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, Any] = {"/api/": {"available_versions": {"v3": "v3/"}}}
        self.tarballs: dict[str, bytes] = {}
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/"

    def begin(self) -> Galaxy:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def publish(self, tarball: Path, signatures: Sequence[str] = ()) -> None:
        """Serve a tarball and its signatures, as the only version of its collection."""
        about = json.loads(manifest(tarball))["collection_info"]
        place = f"{_COLLECTIONS}/{about['namespace']}/{about['name']}/"
        version = f"{place}versions/{about['version']}/"
        self.tarballs[f"/api/download/{tarball.name}"] = tarball.read_bytes()
        self.pages[place] = {"created_at": "2026-11-28T00:00:00Z", "updated_at": digest(tarball)}
        self.pages[f"{place}versions/"] = {
            "meta": {"count": 1},
            "links": {"next": None},
            "data": [{"version": about["version"], "href": version}],
        }
        self.pages[version] = {
            "href": version,
            "namespace": {"name": about["namespace"]},
            "collection": {"name": about["name"]},
            "version": about["version"],
            "download_url": f"/api/download/{tarball.name}",
            "artifact": {"filename": tarball.name, "sha256": digest(tarball)},
            "metadata": {"dependencies": about["dependencies"]},
            "signatures": [{"signature": text} for text in signatures],
        }


class _Handler(BaseHTTPRequestHandler):
    server: Galaxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        if path in self.server.tarballs:
            self._send(200, "application/gzip", self.server.tarballs[path])
        elif path in self.server.pages:
            self._send(200, "application/json", json.dumps(self.server.pages[path]).encode())
        else:
            self._send(404, "application/json", b'{"errors": [{"title": "Not found."}]}')

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Signer:
    """A key of a test's own, and the keyring with its public half that a user would have."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "gnupg"
        self.keyring = folder / "keyring.kbx"
        self.home.mkdir(mode=0o700, parents=True)
        self._gpg("--passphrase", "", "--quick-generate-key", "release@example.invalid", "ed25519", "sign", "1d")
        public = self._gpg("--export", "release@example.invalid")
        subprocess.run(
            ["gpg", "--quiet", "--no-default-keyring", "--keyring", str(self.keyring), "--import"],
            input=public,
            env={**os.environ, "GNUPGHOME": str(self.home)},
            check=True,
            capture_output=True,
        )

    def sign(self, tarball: Path) -> str:
        """Return a detached signature of the tarball's MANIFEST.json, which names the digests of all else."""
        return self._gpg("--armor", "--detach-sign", stdin=manifest(tarball)).decode()

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=False, capture_output=True)

    def _gpg(self, *words: str, stdin: bytes | None = None) -> bytes:
        command = ["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--homedir", str(self.home), *words]
        return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout


def manifest(tarball: Path) -> bytes:
    with tarfile.open(tarball) as archive:
        member = archive.extractfile("MANIFEST.json")
        assert member is not None
        return member.read()


def small(folder: Path) -> None:
    """Write a collection of a few files under this collection's name, for tests of what becomes of a tarball."""
    files = {
        "README.md": "# Small\n",
        "meta/runtime.yml": "---\nrequires_ansible: '>=2.19.0'\n",
        "playbooks/site.yml": "---\n- hosts: localhost\n",
        "roles/docker/files/run": "#!/bin/sh\n",
        "galaxy.yml": "---\nnamespace: swarmspeed\nname: cluster\nversion: 1.0.0\nreadme: README.md\nauthors: [x]\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "roles/docker/files/run").chmod(0o755)
