# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads what ``docker save`` writes, on both kinds of stores.

A graph driver's layers are plain tar files, named by their digest since engine 25 and otherwise before. Containerd's
image store hands out its blobs as they came, which may be compressed; only the manifest shows which layer a blob is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import subprocess
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ...common.command_io import find_program
from ..receive import TransferError

CONFIG = "config"
"""Name of the image's configuration in a spool. Containerd's image store does not report its digest before."""
SMALL = 8 << 20
"""Bytes. Larger files of an archive are layers, smaller ones may be a manifest or a configuration."""
CHUNK = 1 << 20
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
AGAIN = "Remedy: remove the image there (docker rmi), and build, pull or load it again."
_HEX = re.compile(r"[0-9a-f]{64}")


def bare(digest: str) -> str:
    """Return a digest without its algorithm."""
    return digest.rpartition(":")[2]


def _documents(members: Iterator[tuple[str, int, BinaryIO]]) -> Iterator[tuple[str, bytes, Any]]:
    """Yield name, text and value of each small file that is a JSON object."""
    for name, size, file in members:
        if size <= SMALL and file.read(1) == b"{":
            text = b"{" + file.read()
            with contextlib.suppress(ValueError):
                yield name, text, json.loads(text)


def members(archive: BinaryIO) -> Iterator[tuple[str, int, BinaryIO]]:
    """Yield last part of the name, size and content of each file of an archive that can be read once only."""
    with tarfile.open(fileobj=archive, mode="r|", bufsize=CHUNK) as saved:
        for member in saved:
            file = saved.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name.rpartition("/")[2], member.size, file  # type: ignore[misc]  # an IO[bytes]


def stored_layers(archive: BinaryIO, layers: Sequence[str]) -> list[dict[str, Any]]:
    """Return how a store keeps the lowest layers of a saved image, these: their blobs, as a manifest names them.

    Empty where no image in the archive has these layers, or some of its blobs are not in it.
    """
    there: set[str] = set()
    configs: set[str] = set()
    manifests: list[Any] = []

    def seen() -> Iterator[tuple[str, int, BinaryIO]]:
        for name, size, file in members(archive):
            there.add(name)
            yield name, size, file

    for name, dummy, found in _documents(seen()):
        root = found.get("rootfs")
        if isinstance(root, Mapping) and (root.get("diff_ids") or [])[: len(layers)] == list(layers):
            configs.add(name)
        elif isinstance(found.get("config"), Mapping) and isinstance(found.get("layers"), list):
            manifests.append(found)
    for manifest in manifests:
        with contextlib.suppress(KeyError, TypeError, AttributeError):  # not a manifest after all
            blobs = [{key: blob[key] for key in ("mediaType", "digest", "size")} for blob in manifest["layers"]]
            if bare(manifest["config"]["digest"]) in configs and {bare(blob["digest"]) for blob in blobs} <= there:
                return blobs[: len(layers)]
    return []


def unpack_saved(
    archive: BinaryIO,
    wanted: Sequence[str],
    folder: Path,
    *,
    is_config: Callable[[bytes], bool],
    alive: Callable[[], Any],
    blobs: Mapping[str, str] | None = None,
) -> set[str]:
    """Keep the image's configuration, and those of its layers that are wanted, by their diff ids.

    ``blobs`` says which layer a file of that name is. Without it, files are known by their digests. Return what was not
    among them.
    """
    missing = {bare(digest) for digest in wanted if not (folder / bare(digest)).exists()} | {CONFIG}
    for name, size, file in members(archive):
        alive()
        head = file.read(4)
        if size <= SMALL and head[:1] == b"{":
            head += file.read()
            if is_config(head):
                _write(folder, CONFIG, iter([head]), alive)
                missing.discard(CONFIG)
                continue
        hint = name if blobs is None else blobs.get(name, "")
        named = bool(_HEX.fullmatch(hint))
        if (named or blobs is not None) and hint not in missing:
            continue
        place = f"{hint}.part" if named else "incoming"
        found = _write(folder, place, _pieces(head, file) if blobs is None else _plain(head, file), alive)
        if found in missing:
            (folder / place).rename(folder / found)
            missing.discard(found)
        else:
            (folder / place).unlink()
    return missing


def _write(folder: Path, name: str, data: Iterator[bytes], alive: Callable[[], Any]) -> str:
    """Write a file, which others read while it grows. Return its SHA-256."""
    digest = hashlib.sha256()
    with (folder / name).open("wb", buffering=0) as out:
        for piece in data:
            digest.update(piece)
            out.write(piece)
            alive()
    return digest.hexdigest()


def _pieces(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file whose first bytes have been read."""
    piece = head
    while piece:
        yield piece
        piece = file.read(CHUNK)


def _plain(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Yield the same, uncompressed."""
    pieces = _pieces(head, file)
    if head.startswith(GZIP):
        return _gunzip(pieces)
    return _unzstd(pieces) if head == ZSTD else pieces


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    # A blob may be several gzip files one after another, as pigz and estargz write them.
    unzip = zlib.decompressobj(31)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                if unzip.eof:
                    unzip = zlib.decompressobj(31)
                plain = unzip.decompress(rest, CHUNK)
                while plain:
                    yield plain
                    plain = unzip.decompress(unzip.unconsumed_tail, CHUNK)
                rest = unzip.unused_data
    except zlib.error as error:
        raise TransferError(f"a layer cannot be uncompressed ({error}). {AGAIN}") from error


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    # Python's own is of 3.14.
    program = find_program("zstd")
    if program is None:
        raise TransferError(
            "a layer is compressed with zstd, and the program zstd is not installed. Remedy: apt-get install zstd"
        )
    process = subprocess.Popen(
        [program, "-dc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )

    def feed() -> None:
        with contextlib.suppress(OSError, tarfile.TarError):
            for piece in pieces:
                process.stdin.write(piece)  # type: ignore[union-attr]  # a PIPE above
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]  # a PIPE above

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        plain = process.stdout.read(CHUNK)  # type: ignore[union-attr]  # a PIPE above
        while plain:
            yield plain
            plain = process.stdout.read(CHUNK)  # type: ignore[union-attr]  # a PIPE above
        if process.wait():
            raise TransferError(f"a layer cannot be uncompressed (zstd). {AGAIN}")
    finally:
        process.kill()
        process.wait()
        thread.join()
        for pipe in (process.stdin, process.stdout):
            pipe.close()  # type: ignore[union-attr]  # PIPEs above
