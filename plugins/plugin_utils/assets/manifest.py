# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The list of files of a model or data set: what is planned, compared and verified. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.common.untrusted_text import VALUES_OF_FILES, parse_json
from .sources import safe_path

FORMAT = 1
SHA256 = re.compile(r"[0-9a-f]{64}")
File = tuple[str, int, str]
"""Relative path, size and SHA-256."""


@dataclass(frozen=True)
class Manifest:
    """``origins`` says by SHA-256 where the controller gets a file: a URL, or a path that begins with a slash."""

    title: str
    revision: str
    files: tuple[File, ...]
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.files)

    @property
    def size(self) -> int:
        return sum(size for dummy, size, sha256 in self.files)

    @property
    def source(self) -> str:
        """Return in a few words where it is from; of a repository at which commit."""
        return f"{self.title} at {self.revision[:12]}" if self.revision else self.title

    def for_node(self) -> dict[str, Any]:
        """Return what a node needs to know."""
        return {"digest": self.digest, "files": [list(file) for file in self.files]}


def digest_of(files: Iterable[Sequence[Any]]) -> str:
    """Return the digest of a list of files, whatever their order."""
    worked = hashlib.sha256()
    for path, size, sha256 in sorted((str(path), int(size), str(sha256)) for path, size, sha256 in files):
        worked.update(f"{sha256} {size} {path}\n".encode())
    return worked.hexdigest()


def to_text(manifest: Manifest) -> str:
    found = {
        "format": FORMAT,
        "digest": manifest.digest,
        "title": manifest.title,
        "revision": manifest.revision,
        "files": manifest.files,
        "origins": dict(manifest.origins),
    }
    return json.dumps(found)


def from_text(text: str) -> Manifest | None:
    """Return what ``to_text`` wrote; None for what an earlier release wrote, or what was damaged."""
    try:
        found = parse_json(text.encode(), VALUES_OF_FILES)
        files = tuple((str(path), int(size), str(sha256)) for path, size, sha256 in found["files"])
        origins = {str(name): str(origin) for name, origin in dict(found["origins"]).items()}
        manifest = Manifest(str(found["title"]), str(found["revision"]), files, origins)
        fits = all(safe_path(path) and size >= 0 and SHA256.fullmatch(sha256) for path, size, sha256 in files)
        return manifest if fits and found["format"] == FORMAT and found["digest"] == manifest.digest else None
    except (ValueError, KeyError, TypeError):
        return None


def size_text(size: float) -> str:
    """Return a size in GiB, small ones in MiB."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"
