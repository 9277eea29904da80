# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Archives that an engine loads, made of parts of a spool.

An engine takes an archive that lacks those layers which it has: a graph driver by their diff ids, containerd's image
store by the digests of its blobs. So layers are loaded while later ones still travel, each on top of those before it,
as an image without a name that is removed again. The image itself gets its name when it has been checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .archive import CHUNK, bare

GROUP = 64 << 20
"""Bytes of small layers that are loaded together."""
LABEL = "swarmspeed.transfer"
"""Of images that hold the lower layers of one that is still on its way."""
OCI = "application/vnd.oci.image"
"""Media types: https://github.com/opencontainers/image-spec/blob/main/media-types.md (read 2026-11-23)."""


def partial_config(layers: Sequence[str], system: str, architecture: str, run: str) -> bytes:
    """Return the configuration of an image of the lower layers only."""
    config = {
        "architecture": architecture,
        "os": system,
        "config": {"Labels": {LABEL: run}},
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
    }
    return json.dumps(config, sort_keys=True).encode()


@dataclass(frozen=True)
class Archive:
    """What an engine is to load, and the id that the image gets there."""

    identity: str
    files: Mapping[str, Path]
    texts: Mapping[str, bytes]

    def write(self, out: BinaryIO) -> None:
        """Write it as a tar file, from beginning to end."""
        with tarfile.open(fileobj=out, mode="w|", bufsize=CHUNK) as archive:
            for name, path in self.files.items():
                entry = tarfile.TarInfo(name)
                with path.open("rb") as file:
                    entry.size = path.stat().st_size
                    archive.addfile(entry, file)
            for name, text in self.texts.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))


def for_graph_driver(config: bytes, layers: Sequence[str], files: Mapping[str, Path]) -> Archive:
    """Return what a graph driver loads, with those layers of which there are files."""
    digest = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{digest}.json", "RepoTags": None, "Layers": [f"{bare(layer)}.tar" for layer in layers]}]
    return Archive(
        f"sha256:{digest}",
        {f"{bare(layer)}.tar": path for layer, path in files.items()},
        {f"{digest}.json": config, "manifest.json": json.dumps(manifest).encode()},
    )


def plain_blob(layer: str, path: Path) -> dict[str, Any]:
    """Return how a manifest names an uncompressed layer."""
    return {"mediaType": f"{OCI}.layer.v1.tar", "digest": layer, "size": path.stat().st_size}


def for_containerd(config: bytes, blobs: Sequence[Mapping[str, Any]], files: Mapping[str, Path]) -> Archive:
    """Return what containerd's image store loads, with those layers of which there are files.

    Blobs that are not in the archive are found in the store, by their digests.
    """
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    described = {"mediaType": f"{OCI}.config.v1+json", "digest": digest, "size": len(config)}
    manifest = _document("manifest", config=described, layers=list(blobs))
    identity = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    target = {"mediaType": f"{OCI}.manifest.v1+json", "digest": identity, "size": len(manifest)}
    return Archive(
        identity,
        {f"blobs/sha256/{bare(layer)}": path for layer, path in files.items()},
        {
            f"blobs/sha256/{bare(digest)}": config,
            f"blobs/sha256/{bare(identity)}": manifest,
            "index.json": _document("index", manifests=[target]),
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        },
    )


def _document(kind: str, **content: Any) -> bytes:
    return json.dumps({"schemaVersion": 2, "mediaType": f"{OCI}.{kind}.v1+json", **content}, sort_keys=True).encode()


def groups(sizes: Sequence[int]) -> list[int]:
    """Return how many of these layers, lowest first, are loaded together: one, or several small ones."""
    found: list[int] = []
    total = 0
    for size in sizes:
        if found and total + size <= GROUP:
            found[-1] += 1
            total += size
        else:
            found.append(1)
            total = size
    return found
