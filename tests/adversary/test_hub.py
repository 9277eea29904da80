# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A hub, a mirror of it, or who is on the way to one that is asked over http: what it replies becomes paths.

Against the stand-in for a hub, whose replies are changed on the way.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.cache_io import Cache, path_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.http_io import Http, HttpLostError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.hub import HubFile, Revision, parse_info
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.sources import AssetError, Source, sources

from tests.hub_stand_in import Hub

GIT, SHA256 = "c" * 40, "a" * 64
NAMES = [
    "../../../host/secret",
    "/tmp/owned",
    "..",
    "../../dev/zero",
    "a/b",
    "A" * 64,
    "a" * 63,
    "a" * 65,
    f"{SHA256}\n",
    f"{SHA256}/../x",
    f"{SHA256[:-1]}\u0661",
    "\0" * 64,
    "\ud800" * 64,
    "\x1b[2J",
]
OTHER: list[Any] = [1, -1, True, 1.5, [], ["x"], {}, {"x": 1}, "9" * 5000, None, ""]


def of_hub(endpoint: str = "http://hub.example") -> Source:
    (found,) = sources([{"name": "net", "huggingface": {"repository": "team/net"}}], endpoint)
    return found


def reply(**changed: Any) -> dict[str, Any]:
    file = {"rfilename": "model.bin", "size": 3, "blobId": GIT, "lfs": {"sha256": SHA256, "size": 3}, **changed}
    return {"sha": GIT, "gated": False, "siblings": [file]}


def replies() -> Iterator[Any]:
    for name in NAMES:
        yield reply(lfs={"sha256": name, "size": 3})
        yield reply(blobId=name, lfs=None)
        yield reply(blobId=name)
        yield {**reply(), "sha": name}
    for value in OTHER:
        yield value
        yield {**reply(), "sha": value}
        yield {**reply(), "siblings": [value]}
        yield {**reply(), "siblings": value or None}
        yield reply(blobId=value, lfs=None)
        yield reply(rfilename=value if not isinstance(value, str) else f"../{value}")
        yield reply(lfs=1 if isinstance(value, dict) else value or 1)
        yield reply(lfs={"sha256": value or 1, "size": 3})
    sizes: list[Any] = [-1, 1 << 51, 10**400, 1.0, True, None, "3", [], float("nan"), float("inf")]
    for size in sizes:
        yield reply(size=size, lfs=None)
        yield reply(lfs={"sha256": SHA256, "size": size})


def test_an_honest_reply_is_understood() -> None:
    assert parse_info(of_hub(), reply()) == Revision(GIT, False, (HubFile("model.bin", 3, SHA256, GIT),))
    small = reply(lfs=None)
    assert parse_info(of_hub(), small) == Revision(GIT, False, (HubFile("model.bin", 3, "", GIT),))


@pytest.mark.parametrize("number", range(len(list(replies()))))
def test_a_reply_that_is_not_of_its_form_is_one_error(number: int) -> None:
    hostile = list(replies())[number]
    with pytest.raises(AssetError) as caught:
        parse_info(of_hub(), hostile)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000 and "Remedy: " in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_no_caller_has_another_name_made_a_path(tmp_path: Path, name: str) -> None:
    """Behind the check of the reply: whoever forgets one."""
    made = Cache(tmp_path / "cache", Http(), token=False)
    manifest = Manifest("net", GIT, (("x", 3, name),), {name: "http://hub.example/x"})
    uses: list[Callable[[], Any]] = [
        lambda: made.blob(name),
        lambda: made.path(manifest, name),
        lambda: made.lacking(manifest, [name]),
        lambda: made.fetch(of_hub(), manifest, ("x", 3, name)),
        lambda: path_of(manifest, name, tmp_path / "cache", bundled=True),
    ]
    for use in uses:
        with pytest.raises(AssetError) as caught:
            use()
        assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


# --- over the network


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Hub().begin()
    made.repositories = {"team/net": {"main": {"config.json": b"{}"}}}
    made.files = {"set.csv": b"1,2\n"}
    yield made
    made.close()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["../../../host/secret", "../../../host/new", "{0}/host/secret", "{0}/host/new"])
@pytest.mark.parametrize("field", ["sha256", "blobId"])
def test_nothing_is_written_truncated_or_read_outside_of_the_cache(
    tmp_path: Path, hub: Hub, victim: Path, field: str, name: str
) -> None:
    """Also what ends in .part, which the transfer of a file continues, empties and removes."""
    (victim.parent / "secret.part").write_text("the user's, and longer than what the hub announces")
    before = everything(tmp_path)
    path = name.format(tmp_path)
    hostile = reply(lfs={"sha256": path, "size": 2}) if field == "sha256" else reply(blobId=path, lfs=None, size=2)

    class OnTheWay(Http):
        def json(self, url: str) -> Any:
            super().json(url)
            return hostile

    made = Cache(tmp_path / "cache", OnTheWay(hub.address, sleep=lambda seconds: None), token=False)
    with pytest.raises(AssetError):
        found = made.resolve(of_hub(hub.address))
        for file in found.files:
            made.fetch(of_hub(hub.address), found, file)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "plant",
    [
        lambda part, victim: part.symlink_to(victim),
        lambda part, victim: part.symlink_to(victim.parent / "new"),
        lambda part, victim: part.hardlink_to(victim),
        lambda part, victim: os.mkfifo(part),
    ],
)
def test_a_part_that_is_another_file_is_left_alone(
    tmp_path: Path, hub: Hub, victim: Path, plant: Callable[[Path, Path], None]
) -> None:
    part = tmp_path / "cache" / "blobs" / f"{SHA256}.part"
    part.parent.mkdir(parents=True)
    plant(part, victim)
    before = everything(victim.parent)
    made = Cache(tmp_path / "cache", Http(hub.address, sleep=lambda seconds: None), token=False)
    (source,) = sources([{"name": "set", "url": f"{hub.address}/files/set.csv", "sha256": SHA256}], hub.address)
    with pytest.raises(AssetError, match="cannot be written"):
        made.fetch(source, made.resolve(source), ("set.csv", 4, SHA256))
    assert everything(victim.parent) == before


def test_a_part_of_another_account_is_left_alone(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could be written to after it was verified."""
    part = tmp_path / "cache" / "blobs" / f"{SHA256}.part"
    part.parent.mkdir(parents=True)
    part.write_text("1,")
    other = part.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    made = Cache(tmp_path / "cache", Http(hub.address, sleep=lambda seconds: None), token=False)
    (source,) = sources([{"name": "set", "url": f"{hub.address}/files/set.csv", "sha256": SHA256}], hub.address)
    with pytest.raises(AssetError, match=r"cannot be written \(.*\.part does not belong to this account alone\)"):
        made.fetch(source, made.resolve(source), ("set.csv", 4, SHA256))
    assert part.read_text() == "1,"


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"[" * 200_000 + b"]" * 200_000,
        b'{"sha": ' + b"9" * 1_000_000 + b"}",
        b"\xff\xfe",
        b"",
        b'"\\ud800"',
        b"[" + b"[]," * (5 << 20) + b"[]]",
        b"NaN",
        b"x" * (70 << 20),
    ],
    ids=["deep", "deep mappings", "deep and whole", "digits", "no text", "nothing", "half", "many", "nan", "long"],
)
def test_a_text_that_is_hard_to_read_is_one_error(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    class Reply:
        """What urllib hands over."""

        def __enter__(self) -> Reply:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def read(self, most: int) -> bytes:
            return text[:most]

    monkeypatch.setattr(Http, "_open", lambda *_args, **_given: Reply())
    with pytest.raises(AssetError) as caught:
        Cache(tmp_path / "cache", Http(hub.address), token=False).resolve(of_hub(hub.address))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000


def test_a_text_without_an_end_costs_no_more_than_it_may() -> None:
    """Measured in a process of its own: 1.5 GB of address space, as on a small controller."""
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))\n"
        "from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.http_io import Http, HttpLostError\n"
        "class Reply:\n"
        "    __enter__ = lambda self: self\n"
        "    __exit__ = lambda self, *error: None\n"
        "    read = lambda self, most=-1: (b'[' + b'[],' * (most // 3 + 1))[:most]\n"
        "Http._open = lambda *args, **given: Reply()\n"
        "try:\n"
        "    Http().json('http://hub.example')\n"
        "except HttpLostError as error:\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "it answers with more than" in done.stdout) == (0, True), done.stderr[-300:]


@pytest.mark.parametrize("length", ["9" * 5000, "\u00b2", "-1", "1e9", "0x10", "", " ", "1_000"])
def test_a_length_that_is_no_number_is_none(monkeypatch: pytest.MonkeyPatch, length: str) -> None:
    class Reply:
        headers = {"Content-Length": length}  # noqa: RUF012 - as http.client has it

        def __enter__(self) -> Reply:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

    monkeypatch.setattr(Http, "_open", lambda *_args, **_given: Reply())
    assert Http().size("http://hub.example/x") is None


def test_what_a_server_sent_reaches_the_console_without_control_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_given: object) -> None:
        raise http.client.BadStatusLine("\x1b]0;OWNED\x07\x1b[2J")

    asks = Http(sleep=lambda seconds: None)
    monkeypatch.setattr(asks._opener, "open", fails)
    with pytest.raises(HttpLostError) as caught:
        asks.json("http://hub.example")
    assert str(caught.value).isprintable()
