# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""HTTP for the controller: replies as JSON, and files that are taken up where an interrupted run has left them.

A token goes to the hub alone: where the hub redirects to another server, which is where large files lie, the token
does not follow.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import re
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ...module_utils.common.untrusted_text import on_one_line, parse_json

CHUNK = 1 << 20
TIMEOUT = 60.0
"""Seconds without a byte after which a connection is given up."""
TRIES = 5
_LATER = (408, 425, 429, 500, 502, 503, 504)
_AUTHORIZATION = "Authorization"
MOST_JSON = 64 << 20
"""Bytes of a reply in JSON: a repository of 100,000 files takes some 30 MB."""
_LENGTH = re.compile("[0-9]{1,18}")


class HttpRefusedError(Exception):
    """The server refused; ``status`` and ``headers`` say why."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"answers {status}")
        self.status, self.headers = status, headers


class HttpLostError(Exception):
    """The server cannot be reached, or does not go on. The text says why, without any address."""


class DigestError(Exception):
    """A file came whole, and is not what was expected; ``found`` is its digest."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows to the same server with the token, and to others without it; never from https to http."""

    def redirect_request(  # noqa: PLR0917 - the signature of urllib
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise HttpLostError("it redirects from https to another scheme")
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None:
            followed.method = req.get_method()
            token = req.unredirected_hdrs.get(_AUTHORIZATION)
            if token and _origin(newurl) == _origin(req.full_url):
                followed.add_unredirected_header(_AUTHORIZATION, str(token))
        return followed


class Http:
    """``token`` goes to the server of ``endpoint`` only. Without ``proxy`` the environment's counts."""

    def __init__(
        self,
        endpoint: str = "",
        token: str = "",
        proxy: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint, self._token, self._sleep = endpoint, token, sleep
        handlers: list[urllib.request.BaseHandler] = [_Redirect()]
        if proxy:
            handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
        self._opener = urllib.request.build_opener(*handlers)

    def json(self, url: str) -> Any:
        """Return a reply. Raises ``HttpRefusedError`` and ``HttpLostError``."""
        with self._open(url) as reply:
            try:
                data = reply.read(MOST_JSON + 1)
            except (OSError, http.client.HTTPException) as error:
                raise HttpLostError(_reason(error)) from error
        if len(data) > MOST_JSON:
            raise HttpLostError(f"it answers with more than {MOST_JSON} bytes")
        try:
            return parse_json(data)
        except ValueError as error:
            raise HttpLostError(f"it does not answer in JSON: {on_one_line(str(error))}") from error

    def read(self, url: str, size: int) -> bytes:
        """Return a small file. Raises the same."""
        with self._open(url) as reply:
            try:
                data: bytes = reply.read(size + 1)
            except (OSError, http.client.HTTPException) as error:
                raise HttpLostError(_reason(error)) from error
        return data

    def size(self, url: str) -> int | None:
        """Return the size of a file, None where the server does not say."""
        try:
            with self._open(url, method="HEAD") as reply:
                length = reply.headers.get("Content-Length")
        except HttpRefusedError as error:
            if error.status not in (400, 403, 405, 501):
                raise
            # Some servers, and addresses that are signed for GET, do not answer HEAD.
            with self._open(url, {"Range": "bytes=0-0"}) as reply:
                total = str(reply.headers.get("Content-Range") or "").rpartition("/")[2]
                length = total if reply.status == 206 else reply.headers.get("Content-Length")
        return int(length) if _LENGTH.fullmatch(str(length or "")) else None

    def fetch(self, url: str, path: Path, size: int, sha256: str) -> None:
        """Write a file whole and verified, or leave what came beside it for the next run."""
        part = path.with_name(f"{path.name}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(part) as file:
            # Another run may fetch the same file: this one waits, and then it is there.
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() and path.stat().st_size == size:
                return
            resumed = self._fill(url, file, size)
            found = _digest(file)
            if found != sha256 and resumed:
                # What an earlier run left may be of another file.
                file.truncate(0)
                self._fill(url, file, size)
                found = _digest(file)
            if found != sha256:
                part.unlink()
                raise DigestError(found)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)

    def _fill(self, url: str, file: IO[bytes], size: int) -> bool:
        """Read until the file has its size; return whether some of it was there."""
        began = os.fstat(file.fileno()).st_size
        tries = 0
        while True:
            offset = os.fstat(file.fileno()).st_size
            if offset >= size:
                return began > 0
            try:
                self._some(url, file, offset, size)
            except HttpLostError:
                # Each byte that came counts as a new beginning.
                tries = 1 if os.fstat(file.fileno()).st_size > offset else tries + 1
                if tries >= TRIES:
                    raise
                self._sleep(2.0 * tries)

    def _some(self, url: str, file: IO[bytes], offset: int, size: int) -> None:
        try:
            with self._open(url, {"Range": f"bytes={offset}-"} if offset else {}) as reply:
                if offset and reply.status != 206:
                    file.truncate(0)
                    offset = 0
                while offset <= size:
                    data = reply.read(CHUNK)
                    if not data:
                        break
                    file.write(data)
                    file.flush()
                    offset += len(data)
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise HttpLostError(_reason(error)) from error
        if offset < size:
            raise HttpLostError(f"it ended after {offset} of {size} bytes")
        if offset > size:
            file.truncate(0)
            raise HttpLostError(f"it sends more than the {size} bytes that were announced")

    def _open(self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Any:
        tries = 0
        while True:
            request = urllib.request.Request(url, headers=dict(headers or {}), method=method)
            request.add_header("User-Agent", "swarmspeed.cluster")
            # Nothing on the way may change the bytes.
            request.add_header("Accept-Encoding", "identity")
            if self._token and self._endpoint and _origin(url) == _origin(self._endpoint):
                request.add_unredirected_header(_AUTHORIZATION, f"Bearer {self._token}")
            tries += 1
            try:
                return self._opener.open(request, timeout=TIMEOUT)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _LATER or tries >= TRIES:
                    raise HttpRefusedError(error.code, dict(error.headers.items())) from None
            except (OSError, http.client.HTTPException) as error:
                if tries >= TRIES:
                    raise HttpLostError(_reason(error)) from None
            self._sleep(2.0 * tries)


def _opened(part: Path) -> IO[bytes]:
    """What came of a file so far, to be continued: a file of our own, and through no link."""
    handle = os.open(part, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(handle)
        raise OSError(f"{part} does not belong to this account alone")
    return os.fdopen(handle, "ab+")


def git_digest(data: bytes) -> str:
    """Return git's digest of a file, which the hub reports of small ones."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    return on_one_line(str(getattr(reason, "strerror", None) or reason), 200)  # it may quote what was sent


def _digest(file: IO[bytes]) -> str:
    file.flush()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # a file
