# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is understood as models and data sets, and each sentence for what is not; the hub's replies."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.hub import info_url, parse_info, refused, wanted
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import (
    Manifest,
    digest_of,
    from_text,
    size_text,
    to_text,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.sources import AssetError, safe_path, sources
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

HUB = "https://hub.example"
NET: dict[str, Any] = {"name": "net", "huggingface": {"repository": "team/net", "revision": "refs/pr/1"}}
SHA256 = "a" * 64


def test_what_is_understood() -> None:
    url = {"name": "words", "url": "https://me:secret@files.example/a/words.txt?key=secret", "sha256": SHA256.upper()}
    one, two, three = sources([NET, url, {"name": "mine", "folder": "~/data"}], f"{HUB}/")
    assert (one.place, one.revision, one.repository_kind, one.title) == (
        "team/net",
        "refs/pr/1",
        "model",
        "hub.example/team/net",
    )
    assert info_url(one) == f"{HUB}/api/models/team/net/revision/refs%2Fpr%2F1?blobs=true"
    # What is shown of a URL holds no secret.
    assert (two.title, two.sha256) == ("files.example/a/words.txt", SHA256)
    assert three.title == "~/data"
    assert len({one.key, two.key, three.key}) == 3
    data = {"name": "set", "huggingface": {"repository": "words", "kind": "dataset"}}
    (four,) = sources([data], HUB)
    assert (four.revision, four.title) == ("main", "hub.example/datasets/words")
    assert info_url(four) == f"{HUB}/api/datasets/words/revision/main?blobs=true"


@pytest.mark.parametrize(
    ("item", "reported"),
    [
        ("net", "item 1: this is not a mapping. Remedy: give name and one of huggingface, url and folder"),
        (
            {"folder": "/x"},
            "item 1: name is not the name of a folder. Remedy: use letters, digits, dots, hyphens and underscores",
        ),
        (
            {"name": "../x", "folder": "/x"},
            "../x: name is not the name of a folder. Remedy: use letters, digits, dots, hyphens and underscores",
        ),
        ({"name": "x"}, "x: exactly one of huggingface, url and folder is needed (given: none). Remedy: give one"),
        (
            {"name": "x", "folder": "/x", "url": "http://h/x"},
            "x: exactly one of huggingface, url and folder is needed (given: url and folder). Remedy: give one",
        ),
        (
            {"name": "x", "folder": "/x", "unpack": True},
            "x: unknown key unpack with folder. Remedy: see docs/assets.md",
        ),
        (
            {"name": "x", "url": "ftp://h/x"},
            "x: url is not the address of a file. Remedy: give http(s)://host/path/file",
        ),
        (
            {"name": "x", "url": "http://h/x/"},
            "x: url is not the address of a file. Remedy: give http(s)://host/path/file",
        ),
        (
            {"name": "x", "url": "http://h/x"},
            "x: sha256 is not a SHA-256 in hexadecimal. "
            "Remedy: give the one that the file's publisher states, 64 digits",
        ),
        (
            {"name": "x", "huggingface": {"repository": "a/b/c"}},
            "x: huggingface.repository is not a repository. Remedy: write owner/name",
        ),
        (
            {"name": "x", "huggingface": "a/b"},
            "x: huggingface.repository is not a repository. Remedy: write owner/name",
        ),
        ({"name": "x", "huggingface": 7}, "x: huggingface.repository is not a repository. Remedy: write owner/name"),
        (
            {"name": "x", "huggingface": {"repository": "a/b", "branch": "x"}},
            "x: unknown key huggingface.branch. Remedy: see docs/assets.md",
        ),
        (
            {"name": "x", "huggingface": {"repository": "a/b", "kind": "space"}},
            "x: huggingface.kind is 'space'. Remedy: write model or dataset",
        ),
        (
            {"name": "x", "huggingface": {"repository": "a/b", "files": "*.json"}},
            "x: huggingface.files is not a list. Remedy: give a list of patterns, such as *.json",
        ),
    ],
)
def test_what_is_not_understood_is_one_sentence(item: Any, reported: str) -> None:
    with pytest.raises(AssetError) as caught:
        sources([item], HUB)
    assert str(caught.value) == f"assets_sources: {reported}"


def test_names_and_the_hub_are_checked() -> None:
    with pytest.raises(
        AssetError, match=r"^assets_sources: NET: another entry has the same name\. Remedy: give each a name of"
    ):
        sources([NET, {"name": "NET", "folder": "/x"}], HUB)
    with pytest.raises(AssetError, match=r"^assets_sources: this is not a list\. Remedy: "):
        sources("net", HUB)
    with pytest.raises(
        AssetError, match=r"^assets_sources: net: assets_huggingface_endpoint is not an address\. Remedy: "
    ):
        sources([NET], "hub.example")


@pytest.mark.parametrize("path", ["a", "a/b.bin", ".hidden", "ü/…", "a b"])
def test_paths_that_may_become_files(path: str) -> None:
    assert safe_path(path)


@pytest.mark.parametrize("path", ["", "/a", "a/", "../a", "a/../b", ".", "a//b", "a\nb", "a\x1bb", "x" * 300])
def test_paths_that_may_not(path: str) -> None:
    assert not safe_path(path)


@settings(max_examples=examples(200))
@given(st.text(max_size=40))
def test_no_path_that_is_taken_leads_out(path: str) -> None:
    if safe_path(path):
        assert not path.startswith("/") and ".." not in path.split("/") and "\n" not in path


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {"sha": "x"},
        {"sha": "c" * 40, "siblings": [{}]},
        {"sha": "c" * 40, "siblings": [{"rfilename": "a", "size": "b", "blobId": "b" * 40}]},
    ],
)
def test_a_reply_that_is_none_is_reported(reply: Any) -> None:
    (source,) = sources([NET], HUB)
    with pytest.raises(
        AssetError,
        match=r"^assets_sources: net: the reply of hub\.example has an unexpected form \(.*\)\. Remedy: check",
    ):
        parse_info(source, reply)


def test_a_hub_that_lists_a_path_outside_is_refused() -> None:
    (source,) = sources([NET], HUB)
    with pytest.raises(AssetError, match=r"the repository lists '\.\./x', which is not the path of a file"):
        parse_info(source, {"sha": "c" * 40, "siblings": [{"rfilename": "../x", "size": 1, "blobId": "b" * 40}]})


def test_refusals_that_have_no_code() -> None:
    (source,) = sources([NET], HUB)
    assert "is not on hub.example, or it is private" in str(refused(source, 404, {}, False))
    assert str(refused(source, 418, {}, False)).endswith("hub.example answers 418. Remedy: run again later")


def test_patterns() -> None:
    assert wanted("a/b.json", []) and wanted("a/b.json", ["*.json"]) and wanted("a/b.json", ["x", "a/*"])
    assert not wanted("a/b.json", ["*.bin"]) and not wanted("A.json", ["a.json"])


FILES = st.lists(
    st.tuples(st.text(min_size=1).filter(safe_path), st.integers(0, 1 << 50), st.sampled_from(["a" * 64, "b" * 64]))
)


@settings(max_examples=examples(200))
@given(FILES)
def test_a_list_of_files_is_read_as_it_was_written(files: list[tuple[str, int, str]]) -> None:
    made = Manifest("t", "r", tuple(files), {"a" * 64: "/x"})
    assert from_text(to_text(made)) == made
    assert digest_of(reversed(files)) == made.digest


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", '{"format": 1}'),
        to_text(Manifest("t", "", (("a", 1, SHA256),))).replace('"a"', '"b"'),
        to_text(Manifest("t", "", (("a", -1, SHA256),))),
        to_text(Manifest("t", "", (("../a", 1, SHA256),))),
        to_text(Manifest("t", "", (("a", 1, SHA256[1:]),))),
    ],
)
def test_a_list_that_was_damaged_is_none(text: str) -> None:
    assert from_text(text) is None


def test_sizes_in_words() -> None:
    assert (size_text(1 << 19), size_text(3 << 30)) == ("0.5 MiB", "3.0 GiB")
