# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that talks to a Docker engine: its HTTP API over the local socket, standard library only.

Why not community.docker's client: it needs packages (requests) that a new host lacks before the docker role ran, and
reading must work there. Why not the docker command: a join token on a command line is visible in ``ps``.
API reference: https://docs.docker.com/reference/api/engine/ (used: version 1.41, engine 20.10, and later).
"""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, Protocol, cast

SOCKET_PATH = "/var/run/docker.sock"
TIMEOUT = 60.0
"""Seconds without an answer after which the engine counts as hung. A swarm call may itself take 20 (the engine's
swarmRequestTimeout)."""


class EngineError(Exception):
    """The engine refused or did not answer. ``status`` is the HTTP status, or 0 when there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Engine(Protocol):
    """What planning code may ask of an engine; tests hand in a fake."""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the decoded JSON answer (``None`` when empty); raise ``EngineError`` for any status of 400 or more."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class SocketEngine:
    """An engine behind a unix socket."""

    def __init__(self, path: str = SOCKET_PATH, timeout: float = TIMEOUT) -> None:
        self._path = path
        self._timeout = timeout

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        connection = _UnixConnection(self._path, self._timeout)
        try:
            payload = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"} if payload is not None else {}
            connection.request(method, path, body=payload, headers=headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"no answer from the Docker engine at {self._path}: {error}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise EngineError(_message(text) or f"HTTP status {response.status}", response.status)
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except ValueError as error:
            raise EngineError(f"{method} {path}: the engine's answer is not JSON: {text[:200]}") from error


def _message(text: str) -> str:
    try:
        decoded = json.loads(text)
    except ValueError:
        return text.strip()[:500]
    if isinstance(decoded, dict) and "message" in decoded:
        return str(cast("dict[str, Any]", decoded)["message"])
    return text.strip()[:500]
