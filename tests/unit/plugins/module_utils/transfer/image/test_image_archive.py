# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files of a saved image, of both kinds of stores, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image import archive as image_archive
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.archive import (
    stored_layers,
    unpack_saved,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import peak_memory


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


LAYERS = [b"a" * 3000, b"b" * 5000, b"c"]
DIGESTS = [f"sha256:{hexed(data)}" for data in LAYERS]
CONFIG = json.dumps({"rootfs": {"diff_ids": DIGESTS}}).encode()


def saved(newer: bool) -> io.BytesIO:
    """What a graph driver hands out, as engines before 25 do and as newer ones."""
    if newer:
        blobs = {f"blobs/sha256/{hexed(data)}": data for data in [*LAYERS, CONFIG]}
        return packed({**blobs, "index.json": b"{}", "manifest.json": b"[]", "oci-layout": b"{}"})
    named = {f"{number:064x}/layer.tar": data for number, data in enumerate(LAYERS, 1)}
    named.update({f"{number:064x}/json": b"{}" for number in (1, 2, 3)})
    return packed({**named, f"{hexed(CONFIG)}.json": CONFIG, "manifest.json": b"[]"}, {"f/layer.tar": "../x"})


def unpack(archive: io.BytesIO, wanted: list[str], folder: Path, **options: Any) -> set[str]:
    is_config = options.pop("is_config", CONFIG.__eq__)
    return unpack_saved(archive, wanted, folder, is_config=is_config, alive=lambda: None, **options)


@pytest.mark.parametrize("newer", [False, True])
def test_what_is_wanted_of_a_saved_image_is_kept_by_its_digest(newer: bool, tmp_path: Path) -> None:
    assert unpack(saved(newer), [*DIGESTS[1:], "sha256:ff"], tmp_path) == {"ff"}
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {**{hexed(data): data for data in LAYERS[1:]}, "config": CONFIG}


def test_a_saved_layer_that_is_not_what_it_is_called_is_not_kept(tmp_path: Path) -> None:
    archive = packed({f"blobs/sha256/{hexed(b'right')}": b"wrong"})
    assert unpack(archive, [hexed(b"right")], tmp_path) == {hexed(b"right"), "config"}
    assert list(tmp_path.iterdir()) == []


def test_another_configuration_is_not_kept(tmp_path: Path) -> None:
    assert unpack(saved(newer=True), [], tmp_path, is_config=lambda text: False) == {"config"}
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.binary(max_size=40), unique=True), st.booleans())
def test_what_is_packed_is_unpacked(layers: list[bytes], named: bool) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        names = [hexed(data) if named else f"{number}/layer.tar" for number, data in enumerate(layers)]
        files = {**dict(zip(names, layers)), "x.json": CONFIG}
        assert unpack(packed(files), [hexed(data) for data in layers], folder) == set()
        assert {path.read_bytes() for path in folder.iterdir()} == {*layers, CONFIG}


# -- containerd's image store ---------------------------------------------------------------------------------------


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def blob(data: bytes, kind: str = "tar") -> dict[str, Any]:
    return {
        "mediaType": f"application/vnd.oci.image.layer.v1.{kind}",
        "digest": f"sha256:{hexed(data)}",
        "size": len(data),
    }


def layout(*blobs: bytes, without: bytes = b"", **more: bytes) -> io.BytesIO:
    """What containerd's image store hands out: blobs in the order of their digests, then the index."""
    described = [{**blob(data), "annotations": {"a": "b"}} for data in blobs]
    manifest = json.dumps({"config": {"digest": f"sha256:{hexed(CONFIG)}"}, "layers": described}).encode()
    # Of another platform, and of how it was built: neither is the image.
    other = json.dumps({"config": {"digest": "sha256:other"}, "layers": [blob(b"other")]}).encode()
    files = {hexed(data): data for data in {*blobs, CONFIG, manifest, other, b'{"rootfs": {"diff_ids": null}}', b"{"}}
    files.pop(hexed(without), None)
    named = {f"blobs/sha256/{name}": files[name] for name in sorted(files)}
    return packed({**named, **more, "index.json": b'{"manifests": []}', "oci-layout": b"{}"})


def test_a_manifest_tells_how_layers_are_kept() -> None:
    blobs = [gzip.compress(LAYERS[0]), LAYERS[1], gzip.compress(LAYERS[2])]
    expected = [blob(data) for data in blobs]
    assert stored_layers(layout(*blobs), DIGESTS) == expected
    assert stored_layers(layout(*blobs), DIGESTS[:2]) == expected[:2]


def test_an_image_that_lacks_a_blob_or_has_other_layers_keeps_nothing() -> None:
    assert stored_layers(layout(*LAYERS, without=LAYERS[0]), DIGESTS[:1]) == []
    assert stored_layers(layout(*LAYERS), ["sha256:other"]) == []
    odd = json.dumps({"config": {"digest": f"sha256:{hexed(CONFIG)}"}, "layers": [1]}).encode()
    assert stored_layers(packed({"m": odd, hexed(CONFIG): CONFIG}), DIGESTS) == []


PIGZ = gzip.compress(LAYERS[1][:100]) + gzip.compress(LAYERS[1][100:])


def unpacked(blobs: list[bytes], folder: Path, wanted: list[str] = DIGESTS) -> set[str]:
    names = {hexed(data): digest.removeprefix("sha256:") for data, digest in zip(blobs, DIGESTS)}
    return unpack(layout(*blobs), wanted, folder, blobs=names)


def test_layers_are_uncompressed_and_those_not_wanted_left_alone(tmp_path: Path) -> None:
    blobs = [gzip.compress(LAYERS[0]), PIGZ, LAYERS[2]]
    assert unpacked(blobs, tmp_path, DIGESTS[1:]) == set()
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {**{hexed(data): data for data in LAYERS[1:]}, "config": CONFIG}


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd")
def test_zstd_is_uncompressed_by_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = [zstd(LAYERS[0]), zstd(LAYERS[1]), LAYERS[2]]
    assert unpacked(blobs, tmp_path) == set()
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {*LAYERS, CONFIG}
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    with pytest.raises(TransferError, match=r"^a layer cannot be uncompressed \(zstd\)\. Remedy: remove the image"):
        unpacked([zstd(LAYERS[0])[:-5], *LAYERS[1:]], tmp_path)
    monkeypatch.setattr(image_archive, "find_program", lambda name: None)
    with pytest.raises(TransferError) as caught:
        unpacked(blobs, tmp_path)
    assert str(caught.value) == (
        "a layer is compressed with zstd, and the program zstd is not installed. Remedy: apt-get install zstd"
    )


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd")
def test_what_zstd_uncompresses_is_read_in_pieces() -> None:
    sizes = [len(piece) for piece in image_archive._unzstd(iter([zstd(bytes(5 << 20))]))]
    assert sum(sizes) == 5 << 20 and max(sizes) <= image_archive.CHUNK


@pytest.mark.parametrize("compress", [gzip.compress, lambda data: data])
def test_a_layer_is_unpacked_in_pieces(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """An image may be anybody's: zeros are compressed a thousand times."""
    layer = bytes(48 << 20)
    kept, name = compress(layer), hexed(layer)
    archive = layout(kept)
    with peak_memory() as peak:
        assert unpack(archive, [name], tmp_path, blobs={hexed(kept): name}) == set()
    assert (tmp_path / name).stat().st_size == len(layer)
    assert peak() < 16 << 20


def test_a_layer_that_cannot_be_uncompressed_is_an_error(tmp_path: Path) -> None:
    damaged = gzip.compress(LAYERS[0])[:10] + b"damaged" * 10
    with pytest.raises(TransferError) as caught:
        unpacked([damaged, *LAYERS[1:]], tmp_path)
    assert str(caught.value).startswith("a layer cannot be uncompressed (Error -3 while decompressing data")
    assert str(caught.value).endswith("Remedy: remove the image there (docker rmi), and build, pull or load it again.")


def test_a_layer_that_ends_early_is_missing(tmp_path: Path) -> None:
    blobs = [gzip.compress(LAYERS[0])[:-20], *LAYERS[1:]]
    assert unpacked(blobs, tmp_path) == {hexed(LAYERS[0])}
