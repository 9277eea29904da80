# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Archives that an engine loads, made of parts of a spool; and the parts of an archive that an engine saved.

An engine that keeps layers itself (overlay2) loads an archive that lacks those layers which it has. So layers are
loaded while later ones still travel, each on top of those before it, as an image without a name that is removed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Callable

from ansible_collections.swarmspeed.cluster.plugins.module_utils._image_chain import GROUP

LABEL = "swarmspeed.transfer"
"""Of images that hold the lower layers of one that is still on its way."""
SMALL = 8 << 20
"""Bytes. Larger files of an archive are layers, smaller ones may be the configuration."""
CHUNK = 1 << 20
_HEX = re.compile(r"[0-9a-f]{64}")


def bare(digest: str) -> str:
    """Return a digest without its algorithm."""
    return digest.rpartition(":")[2]


def partial_config(layers: Sequence[str], system: str, architecture: str, run: str) -> bytes:
    """Return the configuration of an image of the lower layers only."""
    config = {
        "architecture": architecture,
        "os": system,
        "config": {"Labels": {LABEL: run}},
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
    }
    return json.dumps(config, sort_keys=True).encode()


def write_archive(
    out: BinaryIO, config: bytes, layers: Sequence[str], files: Mapping[str, Path], name: str | None
) -> str:
    """Write what ``docker load`` takes, with those layers of which there are files. Return the image's id."""
    digest = hashlib.sha256(config).hexdigest()
    manifest = [
        {
            "Config": f"{digest}.json",
            "RepoTags": [name] if name else None,
            "Layers": [f"{bare(layer)}.tar" for layer in layers],
        }
    ]
    with tarfile.open(fileobj=out, mode="w|", bufsize=CHUNK) as archive:
        for layer, path in files.items():
            entry = tarfile.TarInfo(f"{bare(layer)}.tar")
            with path.open("rb") as file:
                entry.size = path.stat().st_size
                archive.addfile(entry, file)
        for member, data in ((f"{digest}.json", config), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"sha256:{digest}"


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


def unpack_saved(archive: BinaryIO, wanted: Iterable[str], folder: Path, alive: Callable[[], Any]) -> set[str]:
    """Keep those files of a saved image whose SHA-256 is wanted, by that name. Return what was not among them.

    Engines before 25 name layers otherwise, so all are read; newer ones name them so, and a layer can be handed on
    while it is still being written.
    """
    missing = {bare(digest) for digest in wanted}
    for left in list(missing):
        if (folder / left).exists():
            missing.discard(left)
    with tarfile.open(fileobj=archive, mode="r|", bufsize=CHUNK) as saved:
        for member in saved:
            alive()
            file = saved.extractfile(member) if member.isreg() else None
            if file is None:
                continue
            hint = member.name.rpartition("/")[2]
            if _HEX.fullmatch(hint) and hint not in missing:
                continue
            named = bool(_HEX.fullmatch(hint))
            place = folder / (f"{hint}.part" if named else "incoming")
            digest = hashlib.sha256()
            with place.open("wb", buffering=0) as out:
                while True:
                    data = file.read(CHUNK)
                    if not data:
                        break
                    digest.update(data)
                    out.write(data)
                    alive()
            found = digest.hexdigest()
            if found in missing:
                place.rename(folder / found)
                missing.discard(found)
            else:
                place.unlink()
    return missing
