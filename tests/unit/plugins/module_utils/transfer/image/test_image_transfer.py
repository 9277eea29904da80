# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The work of one node: layers are loaded in order during the transfer, partial images removed, faults reported."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_config
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.worker import give, take
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


LAYERS = {digest(data): data for data in (b"a" * 100, b"b" * 100, b"c" * 100)}
DIFF_IDS = [f"sha256:{name}" for name in LAYERS]
CONFIG = json.dumps({"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": DIFF_IDS}}).encode()
CONTENT = content_of_config(CONFIG)
PARTS = {**LAYERS, "config": CONFIG}
STORES = ("graph", "containerd")


def packed(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def saved(count: int = 3, zipped: int = 0) -> bytes:
    """What containerd's image store hands out of an image of the lowest layers, some of which it keeps compressed."""
    layers = list(LAYERS.values())[:count]
    blobs = [gzip.compress(data) if number < zipped else data for number, data in enumerate(layers)]
    config = CONFIG if count == 3 else json.dumps({"rootfs": {"diff_ids": DIFF_IDS[:count]}}).encode()
    described = [{"mediaType": "any", "digest": f"sha256:{digest(data)}", "size": len(data)} for data in blobs]
    manifest = json.dumps({"config": {"digest": f"sha256:{digest(config)}"}, "layers": described}).encode()
    return packed({f"blobs/sha256/{digest(data)}": data for data in (*blobs, config, manifest)})


class FakeIO:
    """A host whose engine takes archives as engines do: a layer that it lacks must be there."""

    def __init__(self, folder: Path, archive: bytes = b"", has: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.archive = archive
        self.has = set(has)
        self.images: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.requested: list[str] = []
        self.removed: list[str] = []
        self.loaded: list[int] = []
        self.states: list[dict[str, Any]] = []
        self.full_after = 99
        self.connected = False

    def connect(self, source: Mapping[str, Any]) -> FakeIO:
        self.connected = True
        return self

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        self.requested.append(name)
        yield b"D", PARTS[name][offset:]
        yield b"E", b""

    def close(self) -> None:
        pass

    def alive(self) -> None:
        pass

    def say(self, **state: Any) -> None:
        self.states.append(state)

    @contextmanager
    def saved(self, image: str) -> Iterator[BinaryIO]:
        yield io.BytesIO(self.archive)

    def load(self, write: Callable[[BinaryIO], Any]) -> None:
        out = io.BytesIO()
        write(out)
        out.seek(0)
        with tarfile.open(fileobj=out) as archive:
            files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
        if "index.json" in files:
            (target,) = json.loads(files["index.json"])["manifests"]
            identity = target["digest"]
            manifest = json.loads(self.blob(files, identity))
            config = self.blob(files, manifest["config"]["digest"])
            layers = {
                blob["digest"]: f"blobs/sha256/{blob['digest'].removeprefix('sha256:')}" for blob in manifest["layers"]
            }
        else:
            (manifest,) = json.loads(files["manifest.json"])
            config = files[manifest["Config"]]
            identity = f"sha256:{digest(config)}"
            layers = {f"sha256:{name.removesuffix('.tar')}": name for name in manifest["Layers"]}
        self.images[identity] = config  # containerd's image store keeps what it could not unpack
        if len(self.loaded) >= self.full_after:
            raise TransferError("the disk of the engine is full (docker load: no space left on device).")
        for layer, name in layers.items():
            assert layer in self.has or name in files, "an engine would not find this layer"
        self.loaded.append(sum(name in files for name in layers.values()))
        self.has |= set(layers)

    @staticmethod
    def blob(files: Mapping[str, bytes], name: str) -> bytes:
        data = files[f"blobs/sha256/{name.removeprefix('sha256:')}"]
        assert digest(data) == name.removeprefix("sha256:")
        return data

    def remove(self, identity: str) -> None:
        self.removed.append(identity)
        del self.images[identity]

    def content(self, image: str) -> str:
        return content_of_config(self.images[image]) if image in self.images else ""

    def tag(self, identity: str, image: str) -> None:
        assert identity in self.images
        self.names[image] = identity


def part(have: int = 0, **changed: Any) -> dict[str, Any]:
    return {
        "image": "t/i:1",
        "content": CONTENT,
        "os": "linux",
        "architecture": "amd64",
        "layers": DIFF_IDS,
        "have": have,
        "base": "sha256:base",
        "store": "graph",
        "bytes": 300,
        "sources": [{"name": "h"}],
        **changed,
    }


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("have", [0, 1, 3])
def test_what_is_lacked_comes_and_is_loaded_in_order_and_named_last(have: int, store: str, tmp_path: Path) -> None:
    system = FakeIO(tmp_path, saved(have) if have else b"", tuple(DIFF_IDS[:have]))
    take(part(have, store=store), system, "/spool")
    assert system.requested == [*list(LAYERS)[have:], "config"]
    assert system.has == set(DIFF_IDS)
    assert len(system.images) == 1 and list(system.images.values()) == [CONFIG], "partial images are gone"
    assert system.names == {"t/i:1": next(iter(system.images))}
    assert sum(system.loaded) == 3 - have and system.loaded[-1] == 0
    last = system.states[-1]
    assert (last["state"], last["received"]) == ("done", {"h": (3 - have) * 100 + len(CONFIG)})


def test_containerd_goes_on_from_layers_that_it_keeps_compressed(tmp_path: Path) -> None:
    zipped = f"sha256:{digest(gzip.compress(LAYERS[next(iter(LAYERS))]))}"
    system = FakeIO(tmp_path, saved(2, zipped=1), (zipped, DIFF_IDS[1]))
    take(part(2, store="containerd"), system, "/spool")
    assert (system.requested, list(system.names)) == ([list(LAYERS)[2], "config"], ["t/i:1"])
    assert system.has == {zipped, *DIFF_IDS[1:]}, "the compressed layer is used as it is"


def test_the_holder_has_a_reader_while_containerd_hands_out_what_is_there(tmp_path: Path) -> None:
    """That takes minutes of an image of many GB, and a node without readers ends the transfer after 90 s."""

    class Reading(FakeIO):
        @contextmanager
        def saved(self, image: str) -> Iterator[BinaryIO]:
            assert self.connected
            yield io.BytesIO(self.archive)

    system = Reading(tmp_path, saved(2), tuple(DIFF_IDS[:2]))
    take(part(2, store="containerd"), system, "/spool")
    assert list(system.names) == ["t/i:1"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "some of its blobs are gone"),
        (TransferError("docker save failed: x. Remedy: see journalctl."), "docker save failed: x"),
    ],
)
def test_containerd_without_the_blobs_of_an_image_that_shares_layers_says_what_to_do(
    error: Exception | None, reason: str, tmp_path: Path
) -> None:
    class Holding(FakeIO):
        @contextmanager
        def saved(self, image: str) -> Iterator[BinaryIO]:
            if error:
                raise error
            yield io.BytesIO(packed({}))

    system = Holding(tmp_path)
    with pytest.raises(TransferError) as caught:
        take(part(2, store="containerd", base=f"sha256:{'b' * 64}"), system, "/spool")
    assert str(caught.value) == (
        f"t/i:1 shares layers with the image sha256:bbbbbbbbbbbb there, which cannot be read ({reason}). "
        "Remedy: docker rmi sha256:bbbbbbbbbbbb there, and run again: all layers travel then."
    )
    assert (system.requested, system.states[-1]["state"]) == ([], "ending")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("after", [0, 1])
def test_an_engine_that_cannot_load_ends_the_transfer_and_nothing_half_is_left(
    after: int, store: str, tmp_path: Path
) -> None:
    system = FakeIO(tmp_path)
    system.full_after = after
    with pytest.raises(TransferError, match="the disk of the engine is full"):
        take(part(store=store), system, "/spool")
    assert (system.images, system.names) == ({}, {})
    assert len(system.removed) == after + 1
    assert system.states[-1]["state"] == "ending"


def test_an_image_that_was_there_before_stays_when_it_cannot_be_loaded_again(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    identity = f"sha256:{digest(CONFIG)}"
    system.images[identity] = CONFIG
    system.full_after = 0
    with pytest.raises(TransferError, match="the disk of the engine is full"):
        take(part(3), system, "/spool")
    assert (list(system.images), system.removed) == ([identity], [])


def test_another_image_than_was_promised_gets_no_name(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    system.content = lambda image: "sha256:other"  # type: ignore[method-assign]
    with pytest.raises(TransferError) as caught:
        take(part(), system, "/spool")
    assert str(caught.value) == (
        f"the engine made sha256:other of t/i:1, not {CONTENT}. Remedy: journalctl -u docker there."
    )
    assert (system.images, system.names) == ({}, {})


def test_a_configuration_of_another_image_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    with pytest.raises(TransferError, match=r"^the image's configuration does not have its digest"):
        take(part(content="sha256:other"), system, "/spool")
    assert (system.images, system.names) == ({}, {})


def test_a_graph_driver_hands_out_what_others_lack(tmp_path: Path) -> None:
    files = {f"{number}/layer.tar": data for number, data in enumerate(LAYERS.values())}
    give(part(1, sources=[]), FakeIO(tmp_path, packed({**files, "x.json": CONFIG})))
    assert {path.name for path in tmp_path.iterdir()} == {*list(LAYERS)[1:], "config"}


@pytest.mark.parametrize("zipped", [0, 2, 3])
def test_containerd_hands_out_the_same_uncompressed(zipped: int, tmp_path: Path) -> None:
    give(part(1, store="containerd", sources=[]), FakeIO(tmp_path, saved(3, zipped)))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        name: data for name, data in PARTS.items() if name != next(iter(LAYERS))
    }


@pytest.mark.parametrize("store", STORES)
def test_a_holder_whose_image_lacks_parts_says_which(store: str, tmp_path: Path) -> None:
    with pytest.raises(TransferError) as caught:
        give(part(3, store=store, sources=[]), FakeIO(tmp_path, packed({})))
    assert str(caught.value) == (
        "docker save of t/i:1 did not contain 1 of its parts (config). "
        "Remedy: remove the image there (docker rmi), and build or load it again."
    )
