# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The work of a transfer on one node, in the background: the holder unpacks its image, the others fetch and load it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Callable, Protocol

from ..receive import Host, TransferError, receiver_of
from .archive import CONFIG, bare, stored_layers, unpack_saved
from .content import content_of_config
from .load import for_containerd, for_graph_driver, groups, partial_config, plain_blob

CONFIG_BYTES = 16 << 20
"""Most bytes of an image's configuration: a thousand layers take one million."""


class TransferIO(Host, Protocol):
    """What the work needs of the host; tests hand in a fake."""

    def saved(self, image: str) -> Any:
        """Return a context with the stream of ``docker save``. Raises ``TransferError``."""

    def load(self, write: Callable[[BinaryIO], Any]) -> None:
        """Hand what ``write`` writes to ``docker load``. Raises ``TransferError``."""

    def remove(self, identity: str) -> None:
        """Remove an image without a name."""

    def content(self, image: str) -> str:
        """Return the digest of an image's content, empty where there is none."""

    def tag(self, identity: str, image: str) -> None:
        """Give an image its name. Raises ``TransferError``."""


def give(part: Mapping[str, Any], system: TransferIO) -> None:
    """Unpack what others lack of the image into the spool."""
    layers = part["layers"]
    with beating(system):
        blobs = None
        if part["store"] != "graph":
            with system.saved(part["image"]) as archive:
                kept = stored_layers(archive, layers)
            blobs = {bare(blob["digest"]): bare(layer) for blob, layer in zip(kept, layers)}
        with system.saved(part["image"]) as archive:
            missing = unpack_saved(
                archive,
                layers[part["have"] :],
                system.folder,
                is_config=promised(part),
                alive=system.alive,
                blobs=blobs,
            )
    if missing:
        raise TransferError(
            f"docker save of {part['image']} did not contain {len(missing)} of its parts ({max(missing)[:12]}). "
            "Remedy: remove the image there (docker rmi), and build or load it again."
        )


def promised(part: Mapping[str, Any]) -> Callable[[bytes], bool]:
    """Return a test of whether a configuration is that of the image."""
    return lambda config: content_of_config(config) == part["content"]


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
        self._blobs = kept_layers(part, system)
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

    def name(self, config: bytes) -> None:
        """Load the image itself, of which the engine has all layers now, and name it once it is what was announced."""
        image, content = self._part["image"], self._part["content"]
        identity = self._archive(config, self._part["layers"], {})
        found = self._system.content(identity)
        if found != content:
            self._system.remove(identity)
            raise TransferError(
                f"the engine made {found or 'nothing'} of {image}, not {content}. Remedy: journalctl -u docker there."
            )
        self._system.tag(identity, image)

    def _archive(self, config: bytes, layers: Sequence[str], files: Mapping[str, Path]) -> str:
        """Load an image, with those layers of which there are files. Return its id."""
        if self._part["store"] == "graph":
            archive = for_graph_driver(config, layers, files)
        else:
            archive = for_containerd(config, self._blobs, files)
        there = self._system.content(archive.identity)
        try:
            self._system.load(archive.write)
        except TransferError:
            # Containerd's image store keeps what it could not unpack.
            if not there:
                self._system.remove(archive.identity)
            raise
        return archive.identity

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
            except Exception as error:  # reported by the main thread
                self.error = error
                return

    def _load(self, paths: list[Path]) -> None:
        layers = self._part["layers"][: self._done + len(paths)]
        new = layers[self._done :]
        config = partial_config(layers, self._part["os"], self._part["architecture"], self._run)
        self._blobs += [plain_blob(layer, path) for layer, path in zip(new, paths)]
        began = time.monotonic()
        self._partial.append(self._archive(config, layers, dict(zip(new, paths))))
        self.seconds += time.monotonic() - began
        self._done += len(paths)


def kept_layers(part: Mapping[str, Any], system: TransferIO) -> list[dict[str, Any]]:
    """Return how this node's containerd keeps the layers that do not travel."""
    layers = part["layers"][: part["have"]]
    if part["store"] == "graph" or not layers:
        return []
    found, reason = [], "some of its blobs are gone"
    try:
        with system.saved(part["base"]) as archive:
            found = stored_layers(archive, layers)
    except TransferError as error:
        reason = str(error).partition(". Remedy:")[0]
    if not found:
        raise TransferError(
            f"{part['image']} shares layers with the image {part['base'][:19]} there, which cannot be read ({reason}). "
            f"Remedy: docker rmi {part['base'][:19]} there, and run again: all layers travel then."
        )
    return found


def take(part: Mapping[str, Any], system: TransferIO, run: str) -> None:
    """Fetch what this node lacks of the image, and load it."""
    with closing(receiver_of(part, system)) as receiver:
        loader: Loader | None = None

        def say(state: str, **more: Any) -> None:
            system.say(state=state, resumed=receiver.resumed, **receiver.report(), **more)

        try:
            say("receiving")
            receiver.connect()
            with beating(system):
                loader = Loader(part, system, run)
            for layer in part["layers"][part["have"] :]:
                loader.give(receiver.fetch(bare(layer)))
                say("receiving")
            path = receiver.fetch(CONFIG, lambda path: promised(part)(path.read_bytes()), CONFIG_BYTES)
            say("loading")
            with beating(system):
                loader.end()
                loader.name(path.read_bytes())
        finally:
            if loader is not None:
                loader.stop()
                loader.clear()
            say("ending")
        say("done", changed=True)
