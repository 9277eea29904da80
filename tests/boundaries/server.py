# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs on a node and serves its folder: an index of packages, a repository of apt, and a proxy with nothing else.

User and password of a request must be those of ``kinds.yml`` as they are meant: ``p%40ss`` is ``p@ss``.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6

PORTS = (1, 65535)
MEANT = "Basic " + base64.b64encode(b"user:p@ss").decode()


class Server(ThreadingHTTPServer):
    address_family = AF_INET6  # of both families


class Handler(SimpleHTTPRequestHandler):
    def send_head(self):  # type: ignore[no-untyped-def]
        for name in ("Authorization", "Proxy-Authorization"):
            if self.headers.get(name, MEANT) != MEANT:
                self.send_error(403)
                return None
        return super().send_head()


def repository() -> None:
    """Make a package, and the index that apt reads."""
    control = Path("package/DEBIAN/control")
    control.parent.mkdir(parents=True)
    fields = "Package: swarmspeed-boundary\nVersion: 1\nArchitecture: all\nMaintainer: a <a@a>\nDescription: a\n"
    control.write_text(fields)
    Path("deb").mkdir()
    subprocess.run(["dpkg-deb", "--build", "package", "deb/a.deb"], check=True)
    package = Path("deb/a.deb").read_bytes()
    about = f"Filename: ./a.deb\nSize: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n"
    Path("deb/Packages").write_text(fields + about)
    Path("mirrors").write_text(f"file:{Path.cwd()}/deb\n")


def index() -> None:
    """Make a package index of the wheel that lies here; a request to a proxy is the path of a whole URL."""
    (wheel,) = Path().glob("einops-*.whl")
    folder = Path("simple/einops")
    folder.mkdir(parents=True)
    (folder / wheel.name).symlink_to(wheel.resolve())
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    Path("http:").mkdir()
    Path("http:/mirror.invalid").symlink_to(Path.cwd())


if __name__ == "__main__":
    repository()
    index()
    servers = [Server(("::", port), Handler) for port in PORTS]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever).start()
    servers[0].serve_forever()
