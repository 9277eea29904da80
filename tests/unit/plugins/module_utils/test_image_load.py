# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Archives for an engine, and files of those it saved, of both kinds of engines."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_chain import GROUP
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_load import (
    LABEL,
    groups,
    partial_config,
    unpack_saved,
    write_archive,
)
from hypothesis import given
from hypothesis import strategies as st


def hexed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def packed(files: dict[str, bytes], links: dict[str, str] | None = None) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    out.seek(0)
    return out


def test_an_archive_names_all_layers_and_holds_those_of_which_there_are_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"layer b")
    out = io.BytesIO()
    identity = write_archive(out, b"{}", ["sha256:a", "sha256:b"], {"sha256:b": tmp_path / "b"}, "t/i:1")
    assert identity == f"sha256:{hexed(b'{}')}"
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    assert (
        files.pop("manifest.json")
        == json.dumps(
            [{"Config": f"{hexed(b'{}')}.json", "RepoTags": ["t/i:1"], "Layers": ["a.tar", "b.tar"]}]
        ).encode()
    )
    assert files == {"b.tar": b"layer b", f"{hexed(b'{}')}.json": b"{}"}


def test_a_partial_image_has_a_label_to_be_found_by() -> None:
    config = json.loads(partial_config(["sha256:a"], "linux", "amd64", "/spool"))
    assert config["config"] == {"Labels": {LABEL: "/spool"}}
    assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:a"]}


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([], []),
        ([1], [1]),
        ([1, 2, 3], [3]),
        ([GROUP, 1, 1], [1, 2]),
        ([1, GROUP, 1], [1, 1, 1]),
        ([3 * GROUP, 3 * GROUP], [1, 1]),
    ],
)
def test_small_layers_are_loaded_together(sizes: list[int], counts: list[int]) -> None:
    assert groups(sizes) == counts


@given(st.lists(st.integers(0, 2 * GROUP)))
def test_every_layer_is_in_one_group(sizes: list[int]) -> None:
    found = groups(sizes)
    assert sum(found) == len(sizes)
    place = 0
    for count in found:
        assert count == 1 or sum(sizes[place : place + count]) <= GROUP
        place += count


LAYERS = [b"a" * 3000, b"b" * 5000, b"c"]
CONFIG = b'{"rootfs": {}}'


def saved(newer: bool) -> io.BytesIO:
    if newer:
        blobs = {f"blobs/sha256/{hexed(data)}": data for data in [*LAYERS, CONFIG]}
        return packed({**blobs, "index.json": b"{}", "manifest.json": b"[]", "oci-layout": b"{}"})
    named = {f"{number:064x}/layer.tar": data for number, data in enumerate(LAYERS, 1)}
    named.update({f"{number:064x}/json": b"{}" for number in (1, 2, 3)})
    return packed({**named, f"{hexed(CONFIG)}.json": CONFIG, "manifest.json": b"[]"}, {"f/layer.tar": "../x"})


@pytest.mark.parametrize("newer", [False, True])
def test_what_is_wanted_of_a_saved_image_is_kept_by_its_digest(newer: bool, tmp_path: Path) -> None:
    wanted = [f"sha256:{hexed(data)}" for data in (LAYERS[1], LAYERS[2], CONFIG)]
    assert unpack_saved(saved(newer), [*wanted, "sha256:ff"], tmp_path, lambda: None) == {"ff"}
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {hexed(data): data for data in (LAYERS[1], LAYERS[2], CONFIG)}


def test_a_saved_layer_that_is_not_what_it_is_called_is_not_kept(tmp_path: Path) -> None:
    archive = packed({f"blobs/sha256/{hexed(b'right')}": b"wrong"})
    assert unpack_saved(archive, [hexed(b"right")], tmp_path, lambda: None) == {hexed(b"right")}
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.binary(max_size=40), unique=True), st.booleans())
def test_what_is_packed_is_unpacked(layers: list[bytes], named: bool) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        names = [hexed(data) if named else f"{number}/layer.tar" for number, data in enumerate(layers)]
        assert unpack_saved(packed(dict(zip(names, layers))), map(hexed, layers), folder, lambda: None) == set()
        assert {path.read_bytes() for path in folder.iterdir()} == set(layers)
