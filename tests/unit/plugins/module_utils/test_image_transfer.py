# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The work of one node: layers are loaded in order while others come, partial images go, and every fault is told."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_receive import TransferError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_transfer import give, take

LAYERS = {hashlib.sha256(data).hexdigest(): data for data in (b"a" * 100, b"b" * 100, b"c" * 100)}
CONFIG = b'{"os": "linux"}'
ID = hashlib.sha256(CONFIG).hexdigest()
PARTS = {**LAYERS, ID: CONFIG}


class FakeIO:
    """A host whose engine takes archives as an engine does: a layer that it lacks must be there."""

    def __init__(self, folder: Path, has: int = 0) -> None:
        self.folder = folder
        self.layers = [f"sha256:{name}" for name in list(LAYERS)[:has]]
        self.images: dict[str, str] = {}
        self.asked: list[str] = []
        self.removed: list[str] = []
        self.loaded: list[int] = []
        self.states: list[dict[str, Any]] = []
        self.full_after = 99
        self.archive = io.BytesIO()

    def connect(self, source: Mapping[str, Any]) -> FakeIO:
        return self

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        self.asked.append(name)
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
        yield self.archive

    def load(self, write: Callable[[BinaryIO], Any]) -> None:
        out = io.BytesIO()
        write(out)
        out.seek(0)
        with tarfile.open(fileobj=out) as archive:
            names = archive.getnames()
            manifest = json.loads(archive.extractfile("manifest.json").read())[0]  # type: ignore[union-attr]
        new = [name for name in names if name.endswith(".tar")]
        if len(self.loaded) >= self.full_after:
            raise TransferError("the disk of the engine is full (docker load: no space left on device).")
        self.loaded.append(len(new))
        for name in manifest["Layers"]:
            layer = f"sha256:{name.removesuffix('.tar')}"
            assert layer in self.layers or name in names, "an engine would not find this layer"
            if layer not in self.layers:
                self.layers.append(layer)
        identity = f"sha256:{manifest['Config'].removesuffix('.json')}"
        self.images[(manifest["RepoTags"] or [identity])[0]] = identity

    def remove(self, identity: str) -> None:
        self.removed.append(identity)
        del self.images[identity]

    def identity(self, image: str) -> str:
        return self.images.get(image, "")


def part(have: int = 0, **changed: Any) -> dict[str, Any]:
    return {
        "image": "t/i:1",
        "id": f"sha256:{ID}",
        "os": "linux",
        "architecture": "amd64",
        "layers": [f"sha256:{name}" for name in LAYERS],
        "have": have,
        "whole": False,
        "bytes": 300,
        "sources": [{"name": "h"}],
        **changed,
    }


@pytest.mark.parametrize("have", [0, 1, 3])
def test_what_is_lacked_comes_and_is_loaded_in_order(have: int, tmp_path: Path) -> None:
    system = FakeIO(tmp_path, have)
    take(part(have), system, "/spool")
    assert system.asked == [*list(LAYERS)[have:], ID]
    assert system.layers == [f"sha256:{name}" for name in LAYERS]
    assert system.images == {"t/i:1": f"sha256:{ID}"}, "partial images are gone"
    assert sum(system.loaded) == 3 - have and system.loaded[-1] == 0
    last = system.states[-1]
    assert (last["state"], last["received"]) == ("done", {"h": (3 - have) * 100 + len(CONFIG)})


def test_an_engine_that_does_not_take_it_ends_the_transfer_and_nothing_half_is_left(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    system.full_after = 1
    with pytest.raises(TransferError, match="the disk of the engine is full"):
        take(part(), system, "/spool")
    assert system.images == {}
    assert len(system.removed) == 1
    assert system.states[-1]["state"] == "ending"


def test_another_image_than_was_promised_is_an_error(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    system.identity = lambda image: "sha256:other"  # type: ignore[method-assign]
    with pytest.raises(TransferError, match=rf"t/i:1 is sha256:other after it was loaded, not sha256:{ID}"):
        take(part(), system, "/spool")


def test_the_holder_keeps_what_others_lack(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    with tarfile.open(fileobj=system.archive, mode="w") as archive:
        for number, data in enumerate(PARTS.values()):
            entry = tarfile.TarInfo(f"{number}/layer.tar")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    system.archive.seek(0)
    give(part(1, sources=[]), system)
    assert {path.name for path in tmp_path.iterdir()} == {*list(LAYERS)[1:], ID}


def test_a_holder_whose_image_lacks_a_layer_says_which(tmp_path: Path) -> None:
    system = FakeIO(tmp_path)
    with tarfile.open(fileobj=system.archive, mode="w"):
        pass
    system.archive.seek(0)
    with pytest.raises(TransferError, match=rf"docker save of t/i:1 held no file with the digest {ID[:12]}"):
        give(part(3, sources=[]), system)


def test_an_image_in_one_piece(tmp_path: Path) -> None:
    giver = FakeIO(tmp_path)
    giver.archive = io.BytesIO(b"all of it")
    give(part(whole=True, sources=[]), giver)
    digest = hashlib.sha256(b"all of it").hexdigest()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "whole": "all of it",
        "whole.sha256": digest,
    }
