"""What a company has beyond its proxy, each over TLS: a package index, a registry, and a page to log in.

Usage: outside.py ADDRESS        (in a container; writes /srv/ca.crt)

8443  an index of the wheels in /wheelhouse, which stands in for PyTorch's, and a registry with one image, lab/tiny:1
8444  a page of HTML for whatever is asked, as a proxy that wants a login in the browser answers
8445  the same as 8443, with a certificate of an authority that no node knows
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import ssl
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

PLACE = Path("/srv")
WHEELS = Path("/wheelhouse")
PAGE = b"<!DOCTYPE html><html><head><title>Please log in</title></head><body>Please log in</body></html>\n"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def certificate(name: str, address: str) -> tuple[Path, Path]:
    """Make an authority, and have it sign a certificate for this address; return the latter and its key."""
    ca, key = PLACE / f"{name}.crt", PLACE / f"{name}.key"
    mine, own = PLACE / f"{name}-server.crt", PLACE / f"{name}-server.key"
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-keyout"]
    server = f"subjectAltName=IP:{address}"
    run = subprocess.run
    run([*new, key, "-out", f"{ca}.new", "-subj", f"/CN=Lab Company {name}"], check=True, capture_output=True)
    run(
        [*new, own, "-out", mine, "-subj", "/CN=outside", "-CA", f"{ca}.new", "-CAkey", key, "-addext", server],
        check=True,
        capture_output=True,
    )
    Path(f"{ca}.new").rename(ca)
    return mine, own


def image() -> dict[str, tuple[str, bytes]]:
    """Return the parts of an image with one small file, by their path in the registry: type and data."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        entry = tarfile.TarInfo("hello")
        entry.size = 6
        archive.addfile(entry, io.BytesIO(b"hello\n"))
    packed = gzip.compress(layer.getvalue(), mtime=0)
    digest = f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [digest]}}
    ).encode()
    parts = {f"sha256:{hashlib.sha256(data).hexdigest()}": data for data in (config, packed)}
    of_config, of_layer = parts
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": len(config),
            "digest": of_config,
        },
        "layers": [
            {
                "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "size": len(packed),
                "digest": of_layer,
            }
        ],
    }
    text = json.dumps(manifest).encode()
    served = {f"/v2/lab/tiny/blobs/{digest}": ("application/octet-stream", data) for digest, data in parts.items()}
    for name in ("1", f"sha256:{hashlib.sha256(text).hexdigest()}"):
        served[f"/v2/lab/tiny/manifests/{name}"] = (MANIFEST, text)
    return {**served, "/v2/": ("application/json", b"{}")}


class Company(BaseHTTPRequestHandler):
    """Index and registry."""

    protocol_version = "HTTP/1.1"
    parts = image()

    def do_GET(self) -> None:
        self.answer(*self.found(unquote(self.path.partition("?")[0])))

    do_HEAD = do_GET

    def found(self, path: str) -> tuple[int, str, bytes]:
        if path in self.parts:
            return (200, *self.parts[path])
        wheel = WHEELS / Path(path).name
        if path.startswith("/index/files/") and wheel.is_file():
            return 200, "application/octet-stream", wheel.read_bytes()
        project = re.fullmatch(r"/index/([a-z0-9-]+)/", path)
        # PEP 503: names that differ in case, dots, dashes and underscores are one.
        named = [
            file.name
            for file in WHEELS.iterdir()
            if project and re.sub(r"[-_.]+", "-", file.name.split("-")[0]).lower() == project[1]
        ]
        if named:
            page = "".join(f'<a href="/index/files/{name.replace("+", "%2B")}">{name}</a>\n' for name in named)
            return 200, "text/html", page.encode()
        return 404, "application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "not here"}]}'

    def answer(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Distribution-API-Version", "registry/2.0")
        if kind == MANIFEST:
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(data).hexdigest()}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class Login(Company):
    """A page to log in, with status 200."""

    def found(self, path: str) -> tuple[int, str, bytes]:
        return 200, "text/html; charset=utf-8", PAGE


def serve(port: int, handler: type[Company], files: tuple[Path, Path]) -> None:
    """Serve for ever, in a thread of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server = ThreadingHTTPServer(("0.0.0.0", port), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()


def main(address: str) -> None:
    stranger = certificate("stranger", address)
    known = certificate("ca", address)
    serve(8443, Company, known)
    serve(8444, Login, known)
    serve(8445, Company, stranger)


if __name__ == "__main__":
    main(sys.argv[1])
