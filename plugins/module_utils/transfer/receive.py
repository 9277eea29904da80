# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Fills a spool from the nodes before this one in the chain: goes on where it was, and from another when one is lost.

A layer counts only when its SHA-256 is its name. What is there of it stays, whatever happens, for the next run.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Protocol

from ..common.digests import Hashed
from ..common.untrusted_text import on_one_line

PATIENCE = 45.0
"""Seconds for which all sources are tried again when none gives anything."""


class TransferError(Exception):
    """The transfer to this node failed. The text says why and what to do."""


class LinkLost(Exception):
    """A source gives nothing (more). The text says why."""


class Link(Protocol):
    """A connection to one source."""

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield what it sends of a part from an offset on, until its end. Raises ``LinkLost``."""

    def close(self) -> None:
        """End it."""


class Host(Protocol):
    """What receiving needs of the host."""

    folder: Path
    """Of the parts."""

    def connect(self, source: Mapping[str, Any]) -> Link:
        """Connect to a node that gives."""

    def alive(self) -> None:
        """Show a sign of life."""

    def say(self, **state: Any) -> None:
        """Keep what is to be reported."""


@dataclass(frozen=True)
class Words:
    """How messages name what is transferred, and what they advise where a source has it damaged."""

    whole: str = "the image"
    cure: str = "remove the image there (docker rmi), and build or load it again"
    part: Callable[[str], str] = lambda name: f"layer {name[:12]}"


class Receiver:
    """Parts, from whoever has them. Sources are in the order in which they are tried, the holder last."""

    def __init__(
        self,
        folder: Path,
        sources: Sequence[str],
        connect: Callable[[str], Link],
        *,
        alive: Callable[[], Any],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        words: Words | None = None,
    ) -> None:
        self._words = words or Words()
        self._folder, self._sources, self._connect = folder, list(sources), connect
        self._alive, self._clock, self._sleep = alive, clock, sleep
        self._began = clock()
        self._place = 0
        self._link: Link | None = None
        self._verified: set[str] = set()
        self.received: dict[str, int] = {}
        """Bytes by source."""
        self.resumed = 0
        """Bytes that an earlier run had left."""
        self.notes: list[str] = []
        """What went wrong on the way and was recovered from."""

    def connect(self) -> Link:
        """Connect, if that is not so, before work that takes a while: a node without readers ends the transfer."""
        if self._link is None:
            self._link = self._connect(self._sources[self._place])
        return self._link

    def fetch(self, name: str, accept: Callable[[Path], bool] | None = None, most: int | None = None) -> Path:
        """Return the file of a part, whose name is its digest, or that is accepted. Raises ``TransferError``.

        ``most`` are the bytes that it has at most: a source that sends more has it damaged.
        """
        whole, part = self._folder / name, self._folder / f"{name}.part"
        if name in self._verified:
            return whole  # an image may have a layer twice
        if whole.exists():
            # From an earlier transfer: what the disk made of it is not known.
            whole.replace(part)
        what = "the image's configuration" if accept else self._words.part(name)
        for again in (False, True):
            if again:
                self._turn_to(len(self._sources) - 1)
            found = self._fill(part, name, most)
            if accept(part) if accept else found == name:
                part.rename(whole)
                self._verified.add(name)
                return whole
            part.unlink()
            giver = self._sources[self._place]
            self.notes.append(f"{what} from {giver} was damaged")
        raise TransferError(
            f"{what} does not have its digest, and did not when it was fetched once more from {giver}. "
            f"Remedy: check the disk of {giver}, {self._words.cure}."
        )

    def report(self) -> dict[str, Any]:
        """Return who gave how much, what was recovered from, and how long it has taken."""
        seconds = round(self._clock() - self._began, 2)
        return {"received": dict(self.received), "notes": self.notes[-8:], "seconds": seconds}

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _turn_to(self, place: int) -> None:
        self.close()
        self._place = place

    def _fill(self, part: Path, name: str, most: int | None) -> str:
        """Read a part to its end; return the SHA-256 of all of it, or nothing of one that is larger than it may be."""
        self.connect()
        with part.open("ab+", buffering=0) as file:
            file.seek(0)
            hashed = Hashed(file, self._alive).read_all()
            self.resumed += hashed.size
            reasons: dict[str, str] = {}
            idle = self._clock()
            while True:
                source = self._sources[self._place]
                try:
                    for kind, data in self.connect().frames(name, hashed.size):
                        self._alive()
                        if kind == b"D":
                            if most is not None and hashed.size + len(data) > most:
                                self.close()  # in the midst of a part
                                return ""
                            write_all(file, data)
                            hashed.add(data)
                            self.received[source] = self.received.get(source, 0) + len(data)
                            idle = self._clock()
                        elif kind == b"E":
                            return hashed.sha256
                        elif kind == b"X":
                            raise LinkLost(on_one_line(data.decode("utf-8", "replace")))
                    raise LinkLost("the connection ended")
                except LinkLost as error:
                    reasons[source] = str(error)
                    self.notes.append(f"{source}: {error}")
                self._turn_to((self._place + 1) % len(self._sources))
                self._alive()
                if self._place == 0:
                    if self._clock() - idle > PATIENCE:
                        raise TransferError(self._given_up(reasons))
                    self._sleep(1.0)

    def _given_up(self, reasons: dict[str, str]) -> str:
        reported = "; ".join(f"{source}: {text}" for source, text in reasons.items())
        kept = sum(path.stat().st_size for path in self._folder.iterdir())
        return (
            f"no node offers {self._words.whole} any longer ({reported}). {mebibytes(kept)} of it are kept. "
            "Remedy: restore the first node named and run again; the transfer resumes."
        )


def receiver_of(part: Mapping[str, Any], system: Host, words: Words | None = None) -> Receiver:
    """Return a receiver of the parts that the sources of this node's part of a plan have."""
    sources = {source["name"]: source for source in part["sources"]}

    def connect(name: str) -> Link:
        return system.connect(sources[name])

    return Receiver(system.folder, list(sources), connect, alive=system.alive, words=words)


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all of it. Raises ``TransferError`` where the disk is full."""
    try:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise TransferError(
                f"the disk of {getattr(file, 'name', 'the spool')} is full. Remedy: make room there, and run again; "
                "the transfer resumes."
            ) from error
        raise


def mebibytes(size: float) -> str:
    return f"{size / (1 << 20):.0f} MiB"
