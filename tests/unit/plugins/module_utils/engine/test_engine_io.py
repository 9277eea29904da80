# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""SocketEngine against a real unix socket. The server in the thread is ours; refusals are recorded from 20.10.24."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError, SocketEngine

Serve = Callable[[Optional[bytes]], "Server"]


class Server:
    """Answers each connection with the same bytes; with None it accepts and says nothing until it is stopped."""

    def __init__(self, path: str, answer: bytes | None) -> None:
        self.path = path
        self.requests: list[bytes] = []
        self._answer = answer
        self._stop = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._listener.settimeout(10)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, dummy = self._listener.accept()
            with connection:
                if self._stop.is_set():
                    return
                connection.settimeout(10)
                self.requests.append(self._read(connection))
                if self._answer is None:
                    self._stop.wait(10)
                    return
                connection.sendall(self._answer)

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(4096)
        head, dummy, body = data.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
        while len(body) < length:
            body += connection.recv(4096)
        return head + b"\r\n\r\n" + body

    def stop(self) -> None:
        self._stop.set()
        if self._answer is not None:
            with socket.socket(socket.AF_UNIX) as waker:  # ends accept()
                waker.connect(self.path)
        self._thread.join()
        self._listener.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(answer: bytes | None) -> Server:
        servers.append(Server(str(tmp_path / f"{len(servers)}.sock"), answer))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def http(status: str, body: str) -> bytes:
    encoded = body.encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(encoded)}\r\n\r\n".encode() + encoded


def failure(engine: SocketEngine, path: str = "/info") -> EngineError:
    with pytest.raises(EngineError) as caught:
        engine.call("GET", path)
    return caught.value


def test_an_answer(serve: Serve) -> None:
    server = serve(http("200 OK", '{"Name": "l\u00e4b"}'))
    assert SocketEngine(server.path).call("GET", "/info") == {"Name": "läb"}
    head = server.requests[0].decode()
    assert head.startswith("GET /info HTTP/1.1\r\n") and head.endswith("\r\n\r\n")
    assert "Content-Type" not in head


def test_a_body_is_sent_as_json(serve: Serve) -> None:
    server = serve(http("200 OK", '"n1"'))
    assert SocketEngine(server.path).call("POST", "/swarm/init", {"ListenAddr": "0.0.0.0"}) == "n1"
    head, dummy, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /swarm/init ") and b"Content-Type: application/json" in head
    assert json.loads(body) == {"ListenAddr": "0.0.0.0"}


def test_each_call_is_a_connection_of_its_own(serve: Serve) -> None:
    server = serve(http("200 OK", "[]"))
    engine = SocketEngine(server.path)
    assert [engine.call("GET", "/a"), engine.call("GET", "/b")] == [[], []]
    assert [request.split()[1] for request in server.requests] == [b"/a", b"/b"]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 204 No Content\r\n\r\n", http("200 OK", "\n")])
def test_an_empty_answer_is_none(serve: Serve, answer: bytes) -> None:
    assert SocketEngine(serve(answer).path).call("POST", "/swarm/leave") is None


def test_chunks_are_joined(serve: Serve) -> None:
    answer = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n["a\r\n3\r\nb"]\r\n0\r\n\r\n'
    assert SocketEngine(serve(answer).path).call("GET", "/info") == ["ab"]


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (
            http("503 Service Unavailable", '{"message":"This node is not a swarm manager."}\n'),
            503,
            "This node is not a swarm manager.",
        ),
        (http("400 Bad Request", "plain text\n"), 400, "plain text"),
        (http("404 Not Found", '{"error": 1}'), 404, '{"error": 1}'),
        (http("409 Conflict", "[]"), 409, "[]"),
        (http("500 Internal Server Error", ""), 500, "HTTP status 500"),
        (http("500 Internal Server Error", "x" * 900), 500, "x" * 500),
    ],
)
def test_a_refusal_keeps_status_and_message(serve: Serve, answer: bytes, status: int, message: str) -> None:
    error = failure(SocketEngine(serve(answer).path))
    assert (str(error), error.status) == (message, status)


def test_an_answer_that_is_not_json(serve: Serve) -> None:
    error = failure(SocketEngine(serve(http("200 OK", "<html>" + "x" * 900)).path))
    assert str(error) == "GET /info: the engine's answer is not JSON: <html>" + "x" * 194
    assert error.status == 0


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1,"]
)
def test_something_that_is_no_whole_http_answer(serve: Serve, answer: bytes) -> None:
    server = serve(answer)
    error = failure(SocketEngine(server.path))
    assert str(error).startswith(f"no answer from the Docker engine at {server.path}: ")
    assert error.status == 0


def test_an_engine_that_hangs(serve: Serve) -> None:
    server = serve(None)
    error = failure(SocketEngine(server.path, timeout=0.2))
    assert str(error) == f"no answer from the Docker engine at {server.path}: timed out"
    assert error.status == 0 and isinstance(error.__cause__, TimeoutError)


def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none.sock")
    error = failure(SocketEngine(path))
    assert str(error) == f"no answer from the Docker engine at {path}: [Errno 2] No such file or directory"
    assert error.status == 0 and isinstance(error.__cause__, FileNotFoundError)


def test_a_socket_that_no_one_listens_on(tmp_path: Path) -> None:
    path = str(tmp_path / "stale.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
    error = failure(SocketEngine(path))
    assert str(error) == f"no answer from the Docker engine at {path}: [Errno 111] Connection refused"
    assert isinstance(error.__cause__, ConnectionRefusedError)
