# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets in an offline bundle: a folder like the controller's cache, of which all is in the manifest.

Where files come from is left out of the lists there: whoever can write in a bundle could name any file of the
controller in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..bundle.files import take, write_text
from ..bundle.folder import own_folder
from ..bundle.manifest import BundleError
from .cache_io import Cache
from .gathered import manifest_path
from .manifest import Manifest, to_text
from .sources import Source

PART = "assets"
"""Folder of a bundle."""


def collect(cache: Cache, found: Iterable[tuple[Source, Manifest]], bundle: Path) -> list[dict[str, Any]]:
    """Copy every file from the cache into a bundle, where it is not there yet. Return what the manifest is to list."""
    blobs, lists = own_folder(bundle, PART, "blobs"), own_folder(bundle, PART, "manifests")
    entries: dict[str, dict[str, Any]] = {}
    for source, manifest in found:
        for path, size, sha256 in manifest.files:
            place = blobs / sha256
            if not (place.is_file() and place.stat().st_size == size):
                try:
                    with cache.path(manifest, sha256).open("rb") as file:
                        take(file, place, (size, sha256))
                except BundleError as error:
                    raise source.error(
                        f"{path} has changed on the controller during the transfer", "run again"
                    ) from error
            entries[sha256] = _entry(f"blobs/{sha256}", size, sha256, "asset", source)
        listed = write_text(lists / manifest_path(bundle, source).name, to_text(replace(manifest, origins={})))
        entries[listed.path] = _entry(f"manifests/{listed.path}", listed.size, listed.sha256, "index", source)
    return list(entries.values())


def _entry(path: str, size: int, sha256: str, kind: str, source: Source) -> dict[str, Any]:
    return {"path": f"{PART}/{path}", "size": size, "sha256": sha256, "kind": kind, "source": source.title}
