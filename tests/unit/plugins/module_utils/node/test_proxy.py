# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Proxies that are asked whether they let a host through; real ones are HTTP servers of the test's own."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.proxy import Proxy, first_source, parse, schemes
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.proxy_io import SystemProxyIO, gather_proxies
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight import proxy as preflight
from hypothesis import given
from hypothesis import strategies as st

SOURCE = "http://mirror.example/debian"


class Files:
    """A host whose apt has one source."""

    def __init__(self, text: str = f"deb {SOURCE} bookworm main\n") -> None:
        self._text = text

    def text(self, path: str) -> str:
        raise AssertionError(path)

    def files(self, patterns: Iterable[str]) -> dict[str, str]:
        assert list(patterns) == ["etc/apt/sources.list", "etc/apt/sources.list.d/*"]
        return {"/etc/apt/sources.list": self._text}

    def resolve(self, names: Iterable[str]) -> dict[str, list[str]]:
        raise AssertionError(names)


class Answers:
    """A proxy that answers always the same, and remembers what it was asked."""

    def __init__(self, status: int = 200, offered: tuple[str, ...] = ()) -> None:
        self.answer = (status, list(offered))
        self.requested: list[tuple[Proxy, str]] = []

    def head(self, proxy: Proxy, target: str) -> tuple[int, list[str]]:
        self.requested.append((proxy, target))
        return self.answer


def lines(*, fatal: bool = True, **answers: Any) -> list[str]:
    report = collect({"proxy": preflight.check_proxies}, {"n1": answers, "n2": answers})
    return [problem.line() for problem in (report.problems if fatal else report.warnings)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://p.example:3128", Proxy("p.example", 3128)),
        ("http://10.0.0.1", Proxy("10.0.0.1", 80)),
        ("p.example:8080", Proxy("p.example", 8080)),
        ("http://me:p%40ss@p.example:3128/", Proxy("p.example", 3128, base64.b64encode(b"me:p@ss").decode())),
        ("https://p.example:3128", None),
        ("socks5://p.example:1080", None),
        ("http://p.example:port", None),
        ("http://[::1", None),
        ("", None),
    ],
)
def test_parse(url: str, expected: Proxy | None) -> None:
    assert parse(url) == expected


@given(st.text())
def test_parse_never_raises(text: str) -> None:
    parse(text)


def test_the_first_plain_source_counts() -> None:
    text = f"# http://old.example/\nTypes: deb\nURIs: https://secure.example/debian\nURIs: {SOURCE}/\n"
    assert first_source({"a": "", "b": text}) == f"{SOURCE}/"
    assert first_source({"a": f"deb [signed-by=/x] {SOURCE} x main # http://no.example"}) == SOURCE
    assert first_source({}) == ""


def test_schemes() -> None:
    assert schemes(['Basic realm="x, y"', "Negotiate", ""]) == ["Basic", "Negotiate"]


def test_a_url_of_several_variables_is_asked_once_for_what_apt_would_fetch() -> None:
    proxy = Answers(407, ('Basic realm="x"',))
    url = "http://me:no@p.example:3128"
    found = gather_proxies(proxy, Files(), {"a": url, "b": url, "c": "https://other.example"})
    answer = {"address": "p.example:3128", "given": True, "status": 407, "error": "", "schemes": ["Basic"]}
    assert found == {"a": answer, "b": answer}
    assert [(requested.address, target) for requested, target in proxy.requested] == [("p.example:3128", SOURCE)]


def test_where_apt_has_no_plain_source_the_proxy_is_asked_for_itself() -> None:
    proxy = Answers()
    gather_proxies(proxy, Files("deb https://secure.example x main\n"), {"a": "http://p.example:3128"})
    assert proxy.requested[0][1] == "http://p.example/"


def test_nothing_is_read_where_there_is_no_proxy() -> None:
    class Nothing(Files):
        def files(self, patterns: Iterable[str]) -> dict[str, str]:
            raise AssertionError(patterns)

    assert gather_proxies(Answers(), Nothing(), {}) == {}


@contextmanager
def served(accepted: str) -> Iterator[tuple[int, list[str]]]:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            seen.append(self.requestline)
            if self.headers.get("Proxy-Authorization") == accepted:
                self.send_response(200)
            else:
                self.send_response(407)
                self.send_header("Proxy-Authenticate", 'Basic realm="lab"')
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_real_proxy_that_wants_a_password() -> None:
    with served("Basic " + base64.b64encode(b"me:p@ss").decode()) as (port, seen):
        urls = {"right": "http://me:p%40ss@127.0.0.1", "wrong": "http://me:no@127.0.0.1", "none": "http://127.0.0.1"}
        found = gather_proxies(SystemProxyIO(), Files(), {name: f"{url}:{port}" for name, url in urls.items()})
    assert {name: answer["status"] for name, answer in found.items()} == {"right": 200, "wrong": 407, "none": 407}
    assert found["wrong"]["schemes"] == ["Basic"]
    assert seen == [f"HEAD {SOURCE} HTTP/1.1"] * 3


def test_a_proxy_that_is_down_or_speaks_something_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        thread = threading.Thread(target=lambda: other.accept()[0].sendall(b"SSH-2.0-x\r\n\r\n"))
        thread.start()
        found = gather_proxies(SystemProxyIO(), Files(), {"a": f"http://127.0.0.1:{port}"})
        thread.join()
    assert found["a"]["error"] == "it does not answer in HTTP (BadStatusLine)"
    down = gather_proxies(SystemProxyIO(), Files(), {"a": f"http://127.0.0.1:{port}"})
    assert "refused" in down["a"]["error"] and down["a"]["status"] is None


ANSWER = {"address": "p:3128", "given": True, "status": 407, "error": "", "schemes": ["Basic"]}


def test_a_wrong_password_is_one_problem_for_all_that_hold_it() -> None:
    assert lines(host_apt_proxy=ANSWER, docker_proxy=ANSWER) == [
        "n1, n2: host_apt_proxy, docker_proxy: the proxy p:3128 does not accept this user and password (407). Remedy: "
        "correct them: http://USER:PASSWORD@HOST:PORT, with %40 for an @ in either and so on."
    ]


def test_no_password() -> None:
    assert lines(host_apt_proxy={**ANSWER, "given": False}) == [
        "n1, n2: host_apt_proxy: the proxy p:3128 requires a user and a password (407), but none is set. Remedy: write "
        "them into the address, http://USER:PASSWORD@HOST:PORT, with %40 for an @ in either and so on, in a file of "
        "ansible-vault or one that you alone can read."
    ]


def test_a_proxy_that_takes_no_passwords() -> None:
    (line,) = lines(host_apt_proxy={**ANSWER, "schemes": ["NTLM", "Negotiate"]})
    assert "requires NTLM, Negotiate authentication (407), which apt, pip and Docker do not support" in line


def test_a_proxy_that_is_down_is_a_warning() -> None:
    down = {**ANSWER, "status": None, "error": "refused"}
    assert lines(host_apt_proxy=down) == []
    (line,) = lines(fatal=False, host_apt_proxy=down)
    assert line.startswith("n1, n2: host_apt_proxy: the proxy p:3128 does not answer: refused. Remedy: ")


@pytest.mark.parametrize("status", [200, 403, 404, 502])
def test_every_other_answer_is_none_of_our_business(status: int) -> None:
    assert lines(host_apt_proxy={**ANSWER, "status": status}) == []


def test_odd_facts_are_no_exception() -> None:
    assert lines(a=None, b=[], c={"status": "407"}, d={}) == []


PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (PEM, None),
        (f"Issuer: CN=x\n{PEM}{PEM}", None),
        ("0\x82", "/ca contains no certificate in PEM form (-----BEGIN CERTIFICATE-----)"),
        ("", "/ca contains no certificate in PEM form (-----BEGIN CERTIFICATE-----)"),
        (
            f"{PEM}-----BEGIN RSA PRIVATE KEY-----\n",
            "/ca contains a private key, which every account on the nodes could then read",
        ),
    ],
)
def test_what_a_file_of_an_authority_holds(text: str, reported: str | None) -> None:
    found = [problem.text for problem in preflight.check_certificate("/ca", text)]
    assert found == ([reported] if reported else [])
