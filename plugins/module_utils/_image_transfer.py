# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The work of a transfer on one node, in the background: the holder unpacks its image, the others fetch and load it."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Callable, Protocol

from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_chain import WHOLE
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_load import (
    bare,
    groups,
    partial_config,
    unpack_saved,
    write_archive,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_receive import (
    Link,
    Receiver,
    TransferError,
)


class TransferIO(Protocol):
    """What the work needs of the host; tests hand in a fake."""

    folder: Path
    """Of the parts."""

    def connect(self, source: Mapping[str, Any]) -> Link:
        """Connect to a node that gives."""

    def alive(self) -> None:
        """Show a sign of life."""

    def say(self, **state: Any) -> None:
        """Keep what is to be told."""

    def saved(self, image: str) -> Any:
        """Return a context with the stream of ``docker save``. Raises ``TransferError``."""

    def load(self, write: Callable[[BinaryIO], Any]) -> None:
        """Hand what ``write`` writes to ``docker load``. Raises ``TransferError``."""

    def remove(self, identity: str) -> None:
        """Remove an image without a name."""

    def identity(self, image: str) -> str:
        """Return the id of an image, or an empty text."""


def give(part: Mapping[str, Any], system: TransferIO) -> None:
    """Unpack what others lack of the image into the spool."""
    with beating(system), system.saved(part["image"]) as archive:
        if part["whole"]:
            save_whole(archive, system.folder)
            return
        wanted = [*part["layers"][part["have"] :], part["id"]]
        missing = unpack_saved(archive, wanted, system.folder, system.alive)
    if missing:
        raise TransferError(
            f"docker save of {part['image']} held no file with the digest {sorted(missing)[0][:12]}. "
            "Remedy: build or load the image there anew (docker rmi)."
        )


def save_whole(archive: BinaryIO, folder: Path) -> None:
    digest = hashlib.sha256()
    part = folder / f"{WHOLE}.part"
    with part.open("wb", buffering=0) as out:
        while True:
            data = archive.read(1 << 20)
            if not data:
                break
            digest.update(data)
            out.write(data)
    (folder / f"{WHOLE}.sha256").write_text(digest.hexdigest(), encoding="ascii")
    part.rename(folder / WHOLE)


@contextmanager
def beating(system: TransferIO) -> Iterator[None]:
    """Show signs of life while something else may take its time."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(2.0):
            system.alive()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Loader:
    """Loads layers in the order in which they come, in a thread of its own."""

    def __init__(self, part: Mapping[str, Any], system: TransferIO, run: str) -> None:
        self._part, self._system, self._run = part, system, run
        self._ready: queue.Queue[Path | None] = queue.Queue()
        self._partial: list[str] = []
        self._done = part["have"]
        self._stopped = False
        self.error: Exception | None = None
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def give(self, path: Path) -> None:
        """Take the next layer. Raises what has gone wrong with those before."""
        self._check()
        self._ready.put(path)

    def end(self) -> None:
        """Wait until all are loaded."""
        self._ready.put(None)
        self._thread.join()
        self._check()

    def stop(self) -> None:
        """Wait for what is being loaded, and load nothing more."""
        self._stopped = True
        self._ready.put(None)
        self._thread.join(30)

    def clear(self) -> None:
        """Remove the images that held lower layers; the layers stay when the image itself is there."""
        for identity in self._partial:
            self._system.remove(identity)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        over = False
        while not over:
            waiting = [self._ready.get()]
            while not self._ready.empty():
                waiting.append(self._ready.get())
            over = waiting[-1] is None
            paths = [path for path in waiting if path is not None]
            try:
                for count in groups([path.stat().st_size for path in paths]):
                    if self._stopped:
                        return
                    self._load(paths[:count])
                    paths = paths[count:]
            except Exception as error:  # told by the main thread
                self.error = error
                return

    def _load(self, paths: list[Path]) -> None:
        layers = self._part["layers"][: self._done + len(paths)]
        new = layers[self._done :]
        config = partial_config(layers, self._part["os"], self._part["architecture"], self._run)
        identity: list[str] = []
        began = time.monotonic()
        self._system.load(lambda out: identity.append(write_archive(out, config, layers, dict(zip(new, paths)), None)))
        self.seconds += time.monotonic() - began
        self._partial.append(identity[0])
        self._done += len(paths)


def take(part: Mapping[str, Any], system: TransferIO, run: str) -> None:
    """Fetch what this node lacks of the image, and load it."""
    sources = {source["name"]: source for source in part["sources"]}
    receiver = Receiver(system.folder, list(sources), lambda name: system.connect(sources[name]), alive=system.alive)
    began = time.monotonic()
    loader = None if part["whole"] else Loader(part, system, run)

    def say(state: str) -> None:
        seconds = round(time.monotonic() - began, 2)
        received, notes = dict(receiver.received), receiver.notes[-8:]
        system.say(state=state, received=received, resumed=receiver.resumed, notes=notes, seconds=seconds)

    try:
        say("receiving")
        if loader is None:
            path = receiver.fetch(WHOLE)
            say("loading")
            with beating(system):
                system.load(lambda out: copy(path, out))
        else:
            for layer in part["layers"][part["have"] :]:
                loader.give(receiver.fetch(bare(layer)))
                say("receiving")
            config = receiver.fetch(bare(part["id"]))
            say("loading")
            with beating(system):
                loader.end()
                system.load(lambda out: write_archive(out, config.read_bytes(), part["layers"], {}, part["image"]))
        found = system.identity(part["image"])
        if found != part["id"]:
            raise TransferError(
                f"{part['image']} is {found or 'absent'} after it was loaded, not {part['id']}. "
                "Remedy: docker rmi of it here, and run again."
            )
    finally:
        receiver.close()
        if loader is not None:
            loader.stop()
            loader.clear()
        say("ending")
    say("done")


def copy(path: Path, out: BinaryIO) -> None:
    with path.open("rb") as file:
        while True:
            data = file.read(1 << 20)
            if not data:
                return
            out.write(data)
