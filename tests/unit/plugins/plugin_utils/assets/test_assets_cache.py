# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets come to the controller once, whole and verified: against the stand-in for a hub."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets import http_io
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.cache_io import Cache
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.gathered import known_manifest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.http_io import Http
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.sources import AssetError, Source, sources

from tests.hub_stand_in import TOKEN, Hub, commit_of

BIN = bytes(range(256)) * 64
FILES = {"config.json": b'{"a": 1}', "model.bin": BIN, "data/extra.bin": b"e" * 300}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Hub().begin()
    made.repositories = {"team/net": {"main": FILES}, "team/net-gated": {"main": FILES}}
    made.files = {"set.csv": b"1,2\n" * 50}
    yield made
    made.close()


def cache(tmp_path: Path, hub: Hub, token: str = "") -> Cache:
    http = Http(hub.address, token, sleep=lambda seconds: None)
    return Cache(tmp_path / "cache", http, token=bool(token))


def of_hub(hub: Hub, name: str = "team/net", **requested: Any) -> Source:
    (found,) = sources([{"name": "net", "huggingface": {"repository": name, **requested}}], hub.address)
    return found


def of_url(hub: Hub, path: str = "/files/set.csv", digest: str = sha256(b"1,2\n" * 50)) -> Source:
    (found,) = sources([{"name": "set", "url": hub.address + path, "sha256": digest}], hub.address)
    return found


def fetch_all(made: Cache, source: Source) -> Manifest:
    found = made.resolve(source)
    for file in made.lacking(found, [file[2] for file in found.files]):
        made.fetch(source, found, file)
    return found


def refused(made: Cache, source: Source) -> str:
    with pytest.raises(AssetError) as caught:
        fetch_all(made, source)
    return str(caught.value)


def test_a_branch_becomes_a_commit_and_its_files_are_verified(tmp_path: Path, hub: Hub) -> None:
    made, source = cache(tmp_path, hub), of_hub(hub)
    found = fetch_all(made, source)
    assert found.revision == commit_of(FILES)
    assert found.source == f"127.0.0.1/team/net at {commit_of(FILES)[:12]}"
    assert {path: digest for path, size, digest in found.files} == {name: sha256(data) for name, data in FILES.items()}
    assert {made.blob(sha256(data)).read_bytes() for data in FILES.values()} == set(FILES.values())
    assert made.lacking(found, [file[2] for file in found.files]) == []
    assert known_manifest(tmp_path / "cache", source) == found


def test_what_is_known_is_not_asked_again_until_it_is_refreshed(tmp_path: Path, hub: Hub) -> None:
    made, source = cache(tmp_path, hub), of_hub(hub)
    first = fetch_all(made, source)
    hub.repositories = {"team/net": {"main": {**FILES, "config.json": b"{}"}}}
    hub.requests.clear()
    assert made.resolve(source) == first and hub.requests == []
    later = made.resolve(source, refresh=True)
    assert later.revision != first.revision
    # Only what is new is fetched, and the small file has come with the list.
    assert made.lacking(later, [file[2] for file in later.files]) == []


def test_a_small_file_that_cannot_be_put_in_place_leaves_nothing_unfinished(tmp_path: Path, hub: Hub) -> None:
    made = cache(tmp_path, hub)
    in_the_way = made.blob(sha256(FILES["config.json"]))
    in_the_way.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        made.resolve(of_hub(hub))
    assert list((tmp_path / "cache/blobs").iterdir()) == [in_the_way]


def test_patterns_choose_files(tmp_path: Path, hub: Hub) -> None:
    found = cache(tmp_path, hub).resolve(of_hub(hub, files=["*.json", "data/*"]))
    assert [path for path, size, digest in found.files] == ["config.json", "data/extra.bin"]
    assert refused(cache(tmp_path, hub), of_hub(hub, files=["*.txt"])) == (
        "assets_sources: net: no file of team/net at main matches *.txt. Remedy: correct huggingface.files"
    )


def test_a_token_reaches_the_hub_and_not_where_it_redirects_to(tmp_path: Path, hub: Hub) -> None:
    """The stand-in's storage answers 400 to a request with a token."""
    found = fetch_all(cache(tmp_path, hub, TOKEN), of_hub(hub, "team/net-gated"))
    assert len(found.files) == 3
    assert TOKEN not in "".join(path.read_text() for path in (tmp_path / "cache/manifests").iterdir())


@pytest.mark.parametrize(
    ("token", "reported"),
    [
        (
            "",
            "assets_huggingface_token is not set. Remedy: accept its terms at {page}, and set assets_huggingface_token",
        ),
        (
            "hf_other",
            "the account of assets_huggingface_token was not given access. Remedy: accept its terms at {page}",
        ),
    ],
)
def test_a_gated_repository_is_refused_before_anything_is_fetched(
    tmp_path: Path, hub: Hub, token: str, reported: str
) -> None:
    page = f"{hub.address}/team/net-gated"
    assert refused(cache(tmp_path, hub, token), of_hub(hub, "team/net-gated")) == (
        f"assets_sources: net: team/net-gated is gated, and {reported.format(page=page)}"
    )
    assert not (tmp_path / "cache/blobs").exists()


def test_a_revision_and_a_repository_that_do_not_exist(tmp_path: Path, hub: Hub) -> None:
    made = cache(tmp_path, hub)
    assert refused(made, of_hub(hub, revision="v9")) == (
        "assets_sources: net: team/net has no revision v9 on 127.0.0.1. Remedy: name a branch, a tag or a commit of it"
    )
    assert refused(made, of_hub(hub, "team/none")) == (
        "assets_sources: net: team/none is not on 127.0.0.1, or it is private and assets_huggingface_token is not set. "
        "Remedy: correct huggingface.repository and kind, or set assets_huggingface_token to one that may read it"
    )


def test_a_transfer_that_breaks_goes_on_where_it_was(tmp_path: Path, hub: Hub) -> None:
    hub.cut = 1000
    made = cache(tmp_path, hub)
    fetch_all(made, of_hub(hub))
    requested = [request for request in hub.requests if f"/storage/{sha256(BIN)}" in request]
    assert [request.partition(" ")[2] for request in requested] == ["", "bytes=1000-"]


def test_what_an_interrupted_run_left_is_taken_up_and_what_is_of_another_file_is_not(tmp_path: Path, hub: Hub) -> None:
    made, source = cache(tmp_path, hub), of_hub(hub)
    found = made.resolve(source)
    part = tmp_path / "cache" / "blobs" / f"{sha256(BIN)}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"x" * 500)
    fetch_all(made, source)
    assert made.blob(sha256(BIN)).read_bytes() == BIN and not part.exists()
    made.blob(sha256(BIN)).unlink()
    part.write_bytes(BIN + b"longer")
    fetch_all(made, source)
    assert made.path(found, sha256(BIN)).read_bytes() == BIN


def test_a_server_that_is_busy_is_asked_again_and_one_that_stays_so_is_reported(tmp_path: Path, hub: Hub) -> None:
    hub.failing = 2
    fetch_all(cache(tmp_path, hub), of_url(hub))
    shutil.rmtree(tmp_path / "cache")
    hub.failing = 100
    assert refused(cache(tmp_path, hub), of_url(hub)) == (
        "assets_sources: set: 127.0.0.1 answers 503. Remedy: run again later"
    )
    hub.failing = 0
    gone = Hub()
    gone.server_close()
    reported = refused(cache(tmp_path, gone), of_hub(gone))
    assert reported == (
        "assets_sources: net: 127.0.0.1 cannot be queried (Connection refused). "
        "Remedy: check the controller's network, or assets_proxy"
    )


def test_a_url_whose_digest_differs_leaves_nothing(tmp_path: Path, hub: Hub) -> None:
    wrong = sha256(b"other")
    assert refused(cache(tmp_path, hub), of_url(hub, digest=wrong)) == (
        f"assets_sources: set: 127.0.0.1/files/set.csv has SHA-256 {sha256(hub.files['set.csv'])}, but {wrong} is "
        "requested. Remedy: check where the file comes from, and correct sha256"
    )
    assert list((tmp_path / "cache/blobs").iterdir()) == []
    assert refused(cache(tmp_path, hub), of_url(hub, "/files/none", wrong)) == (
        "assets_sources: set: 127.0.0.1 answers 404. Remedy: correct url"
    )


def test_a_folder_is_listed_and_read_again_only_where_it_was_touched(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    (folder / "a").mkdir(parents=True)
    (folder / "a/x.csv").write_text("1")
    (folder / "y.csv").write_text("2")
    (source,) = sources([{"name": "mine", "folder": str(folder)}], "https://hub.example")
    made = cache(tmp_path, hub)
    first = made.resolve(source)
    assert first.files == (("y.csv", 1, sha256(b"2")), ("a/x.csv", 1, sha256(b"1")))
    assert made.path(first, sha256(b"1")) == folder / "a/x.csv"
    read: list[str] = []
    original = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        read.append(str(file.name))
        return original(file, name)

    monkeypatch.setattr("hashlib.file_digest", counted)
    assert made.resolve(source) == first and read == []
    (folder / "y.csv").write_text("3")
    assert made.resolve(source).files[0][2] == sha256(b"3") and read == [str(folder / "y.csv")]
    (folder / "a/x.csv").unlink()
    (folder / "y.csv").unlink()
    assert refused(made, source).startswith(f"assets_sources: mine: {folder} holds no file. ")
    shutil.rmtree(folder)
    assert refused(made, source) == (
        f"assets_sources: mine: {folder} is not a directory on the controller. Remedy: correct folder"
    )


def test_a_disk_that_is_too_small_is_reported_before_anything_is_fetched(tmp_path: Path, hub: Hub) -> None:
    made = cache(tmp_path, hub)
    made.room(1)
    with pytest.raises(AssetError) as caught:
        made.room(1 << 60)
    assert re.fullmatch(
        r"the controller: [\d.]+ [GM]iB are free in .*/cache, but 1073741824\.0 GiB are to be downloaded there\. "
        r"Remedy: free space there, or set assets_cache to a folder on a larger disk",
        str(caught.value),
    )


def test_a_proxy_that_is_named_is_used(tmp_path: Path, hub: Hub) -> None:
    """The stand-in is no proxy: it sees the whole address as a path, and has no such file."""
    http = Http(proxy=hub.address, sleep=lambda seconds: None)
    with pytest.raises(http_io.HttpRefusedError):
        http.size("http://elsewhere.example/file")
    assert hub.requests == ["http://elsewhere.example/file"]
    assert os.environ.get("http_proxy") is None
