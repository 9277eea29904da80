# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Servers of models and data sets that break off, say too little, or redirect to where they should not."""

from __future__ import annotations

import hashlib
import io
import threading
import urllib.request
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets import cache_io, http_io
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.cache_io import Cache
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.http_io import Http, HttpLostError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.sources import AssetError, Source, sources

from tests.hub_stand_in import Hub

DATA = b"1,2\n" * 50


class Odd(HTTPServer):
    """Answers each request as the next of ``answers`` says, the last of them from then on."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OddHandler)
        self.answers: list[str] = []
        self.requests: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/files/set.csv"


class OddHandler(BaseHTTPRequestHandler):
    server: Odd

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.headers.get('Range') or 'whole'}")
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer == "breaks off":
            return
        self.send_response(405 if answer == "no HEAD" else 206 if answer == "part" else 200)
        if answer == "part":
            self.send_header("Content-Range", f"bytes 0-0/{len(DATA)}")
        if answer in ("nothing", "no HEAD"):
            self.send_header("Content-Length", "0")
        elif answer == "whole":
            self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        if self.command == "GET" and answer in ("whole", "no length"):
            self.wfile.write(DATA)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Odd]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = Odd()
    yield server
    server.shutdown()
    server.server_close()


def http(most: int = 50) -> Http:
    """A client that fails where it tries for ever."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        assert len(waited) < most, "it is tried for ever"

    return Http(sleep=sleep)


def of_url(url: str) -> Source:
    (found,) = sources([{"name": "set", "url": url, "sha256": hashlib.sha256(DATA).hexdigest()}], "https://hub.example")
    return found


def test_a_server_that_ends_early_again_and_again_is_given_up(odd: Odd, tmp_path: Path) -> None:
    odd.answers = ["nothing"]
    with pytest.raises(HttpLostError, match=f"it ended after 0 of {len(DATA)} bytes"):
        http().fetch(odd.url, tmp_path / "file", len(DATA), hashlib.sha256(DATA).hexdigest())
    assert len(odd.requests) == http_io.TRIES and not (tmp_path / "file").exists()


def test_a_server_that_sends_more_than_it_announced_is_given_up_and_nothing_of_it_kept(
    odd: Odd, tmp_path: Path
) -> None:
    odd.answers = ["no length"]
    with pytest.raises(HttpLostError, match=f"it sends more than the {len(DATA) - 1} bytes that were announced"):
        http().fetch(odd.url, tmp_path / "file", len(DATA) - 1, hashlib.sha256(DATA).hexdigest())
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("file.part", 0)]


def test_a_file_without_an_end_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        """What urllib hands over."""

        status, reads = 200, 0

        def __enter__(self) -> Endless:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def read(self, most: int) -> bytes:
            self.reads += 1
            assert self.reads <= 2, "it is read on"
            return b"x" * most

    monkeypatch.setattr(Http, "_open", lambda *_args, **_given: Endless())
    size = http_io.CHUNK + 1
    with pytest.raises(HttpLostError, match=f"it sends more than the {size} bytes that were announced"):
        http().fetch("http://hub.example/x", tmp_path / "file", size, "0" * 64)


def test_of_a_small_file_no_more_is_read_than_shows_that_it_is_another(odd: Odd) -> None:
    odd.answers = ["no length"]
    assert http().read(odd.url, 10) == DATA[:11]


def test_a_connection_that_breaks_is_made_again(odd: Odd) -> None:
    odd.answers = ["breaks off", "breaks off", "whole"]
    assert http().read(odd.url, len(DATA)) == DATA
    odd.answers = ["breaks off"]
    odd.requests.clear()
    with pytest.raises(HttpLostError):
        http().read(odd.url, len(DATA))
    assert len(odd.requests) == http_io.TRIES


def test_a_server_without_head_is_asked_for_one_byte(odd: Odd) -> None:
    odd.answers = ["no HEAD", "part"]
    assert http().size(odd.url) == len(DATA)
    assert odd.requests == ["HEAD whole", "GET bytes=0-0"]


def test_a_server_that_does_not_say_how_much_it_has_is_refused(odd: Odd, tmp_path: Path) -> None:
    odd.answers = ["no length"]
    with pytest.raises(AssetError, match=r"set: 127\.0\.0\.1 does not report the size of the file"):
        Cache(tmp_path, http(), token=False).resolve(of_url(odd.url))


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    gone = Hub()
    gone.server_close()
    with pytest.raises(AssetError, match=r"set: 127\.0\.0\.1 cannot be queried \(Connection refused\)"):
        Cache(tmp_path, http(), token=False).resolve(of_url(f"{gone.address}/files/set.csv"))


@pytest.mark.parametrize("to", ["http://hub.example/other", "ftp://hub.example/other"])
def test_no_redirect_leaves_https(to: str) -> None:
    request = urllib.request.Request("https://hub.example/file")
    with pytest.raises(HttpLostError, match="it redirects from https to another scheme"):
        http_io._Redirect().redirect_request(request, io.BytesIO(), 302, "Found", Message(), to)


def test_a_redirect_within_https_is_followed() -> None:
    request = urllib.request.Request("https://hub.example/file", method="HEAD")
    to = "https://storage.example/file"
    followed = http_io._Redirect().redirect_request(request, io.BytesIO(), 302, "Found", Message(), to)
    assert followed is not None and (followed.full_url, followed.get_method()) == (to, "HEAD")


def test_a_large_file_of_which_the_hub_has_no_digest_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub().begin()
    hub.repositories = {"team/net": {"main": {"config.json": b'{"a": 1}'}}}
    monkeypatch.setattr(cache_io, "LARGEST_SMALL", 7)
    (source,) = sources([{"name": "net", "huggingface": {"repository": "team/net"}}], hub.address)
    try:
        with pytest.raises(AssetError, match=r"net: the hub has no SHA-256 of config\.json"):
            Cache(tmp_path, Http(hub.address), token=False).resolve(source)
        assert len(hub.requests) == 1
    finally:
        hub.close()


def test_a_small_file_that_was_changed_on_the_way_is_not_written(tmp_path: Path) -> None:
    class OnTheWay(Http):
        def read(self, url: str, size: int) -> bytes:
            return super().read(url, size).replace(b"1", b"2")

    hub = Hub().begin()
    hub.repositories = {"team/net": {"main": {"config.json": b'{"a": 1}'}}}
    (source,) = sources([{"name": "net", "huggingface": {"repository": "team/net"}}], hub.address)
    try:
        with pytest.raises(
            AssetError, match=r"net: config\.json arrived with other content than the hub states\. Remedy: run again"
        ):
            Cache(tmp_path, OnTheWay(hub.address), token=False).resolve(source)
    finally:
        hub.close()
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_is_asked_for_where_the_hub_has_data_sets(tmp_path: Path) -> None:
    hub = Hub().begin()
    hub.repositories = {"team/set": {"main": {"a.json": b"{}"}}}
    (source,) = sources([{"name": "set", "huggingface": {"repository": "team/set", "kind": "dataset"}}], hub.address)
    try:
        found = Cache(tmp_path, Http(hub.address), token=False).resolve(source)
    finally:
        hub.close()
    expected = [
        "/api/datasets/team/set/revision/main?blobs=true",
        f"/datasets/team/set/resolve/{found.revision}/a.json",
    ]
    assert hub.requests == expected


def test_a_name_that_nodes_cannot_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a\nb").write_text("1")
    (source,) = sources([{"name": "mine", "folder": str(tmp_path / "data")}], "https://hub.example")
    with pytest.raises(AssetError, match=r"mine: 'a\\nb' cannot be the name of a file on the nodes"):
        Cache(tmp_path / "cache", http(), token=False).resolve(source)


def test_a_file_of_the_controller_is_never_fetched(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1")
    (source,) = sources([{"name": "mine", "folder": str(tmp_path / "data")}], "https://hub.example")
    made = Cache(tmp_path / "cache", http(), token=False)
    found = made.resolve(source)
    with pytest.raises(AssetError, match=r"mine: a\.csv has changed on the controller during the transfer"):
        made.fetch(source, found, found.files[0])


@pytest.mark.parametrize("items", [5, {"name": "a"}, "a", None])
def test_what_is_no_list_of_sources_is_one_error(items: object) -> None:
    with pytest.raises(AssetError, match="this is not a list"):
        sources(items, "https://hub.example")
