# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The manifest of an offline bundle: what is in it, what it was made for, and what forbids using it.

Pure. A bundle is a folder; ``manifest.json`` is written last, so a folder without one is not finished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...module_utils.common.reported import UnfitError, escaped, file_name, relative_path, short_text, shown
from ...module_utils.common.untrusted_text import VALUES_OF_FILES, parse_json

FORMAT = 1
MANIFEST = "manifest.json"
VARIABLE = "cluster_bundle"
AGAIN = (
    "run bundle.yml again where there is internet access (it fetches only what is missing or damaged), and copy the "
    "folder again"
)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names for what ``uname`` says."""
KINDS = ("deb", "index", "image", "wheel", "source", "asset")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
"""The name of an image, as far as it must be no option and no line."""


class BundleError(ValueError):
    """A manifest cannot be read; the text says what is wrong with it."""


@dataclass(frozen=True)
class Entry:
    """One file; ``path`` is below the bundle. ``system`` is who it is for, empty for all."""

    path: str
    size: int
    sha256: str
    kind: str
    package: str = ""
    version: str = ""
    source: str = ""
    licence: str | None = None
    system: str = ""


@dataclass(frozen=True)
class Manifest:
    """What is in a bundle. ``image`` is empty, or the ``name``, ``id`` and ``path`` of the training image.

    It also has what the image ``holds``, where this collection's Dockerfile built it.
    """

    made_at: str
    made_by: str
    systems: tuple[str, ...]
    accelerator: str
    variables: Mapping[str, Any]
    files: tuple[Entry, ...]
    image: Mapping[str, str] = field(default_factory=dict)


def system_name(facts: Mapping[str, Any]) -> str:
    """Return how a bundle calls the system of a host, such as ``debian-12-amd64``."""
    machine = str(facts.get("architecture") or "unknown")
    name = f"{facts.get('distribution')}-{facts.get('release')}-{ARCHITECTURES.get(machine, machine)}"
    try:
        file_name(name)
    except UnfitError as error:
        # It is a folder of the bundle.
        raise BundleError(f"{shown(name)} cannot be what a system is called. Remedy: check /etc/os-release") from error
    return name


def render(manifest: Manifest) -> str:
    """Return the manifest as text, the same for the same content."""
    files = [asdict(entry) for entry in sorted(manifest.files, key=lambda entry: entry.path)]
    document = {
        "format": FORMAT,
        "made_at": manifest.made_at,
        "made_by": manifest.made_by,
        "made_for": {
            "systems": sorted(manifest.systems),
            "accelerator": manifest.accelerator,
            "variables": dict(manifest.variables),
        },
        "image": dict(manifest.image),
        "files": files,
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str) -> Manifest:
    """Read a manifest."""
    try:
        document = parse_json(text.encode(), VALUES_OF_FILES)
    except ValueError as error:
        raise BundleError(f"it is not JSON ({escaped(str(error))})") from error
    if not isinstance(document, Mapping):
        raise BundleError("it is not a mapping")
    if document.get("format") != FORMAT:
        raise BundleError(f"its format is {document.get('format')!r}, but this collection reads format {FORMAT}")
    made_for, files, image = document.get("made_for"), document.get("files"), document.get("image")
    if not isinstance(made_for, Mapping) or not isinstance(files, list) or not isinstance(image, Mapping):
        raise BundleError("made_for, image or files is missing")
    variables, systems = made_for.get("variables"), made_for.get("systems")
    if not isinstance(variables, Mapping) or not isinstance(systems, list):
        raise BundleError("made_for.variables or made_for.systems is missing")
    entries = tuple(_entry(value) for value in files)
    twice = _twice(entry.path for entry in entries)
    if twice:
        raise BundleError(f"{twice} is in it twice")
    return Manifest(
        _line(document.get("made_at"), "made_at"),
        _line(document.get("made_by"), "made_by"),
        tuple(_line(name, "made_for.systems") for name in systems),
        _line(made_for.get("accelerator"), "made_for.accelerator"),
        variables,
        entries,
        _image(image, entries),
    )


def _line(value: Any, name: str) -> str:
    try:
        return str(short_text(value or ""))
    except UnfitError as error:
        raise BundleError(f"{name} is {shown(value)}, not {error.expected}") from None


def _image(image: Mapping[Any, Any], entries: Iterable[Entry]) -> dict[str, str]:
    """Its path goes to the engine, its name into commands."""
    found = {str(name): _line(value, f"image.{name}") for name, value in image.items()}
    if found and found.get("path") not in [entry.path for entry in entries if entry.kind == "image"]:
        raise BundleError(f"image.path is {shown(found.get('path'))}, which is not an image in its list of files")
    if found and not _IMAGE.fullmatch(found.get("name", "")):
        raise BundleError(f"image.name is {shown(found.get('name'))}, which is not a valid name of an image")
    return found


def _entry(value: Any) -> Entry:
    if not isinstance(value, Mapping):
        raise BundleError("an entry of files is not a mapping")
    path, size, digest, kind = (value.get(name) for name in ("path", "size", "sha256", "kind"))
    if not isinstance(path, str) or not inside(path):
        raise BundleError(f"{shown(path)} is not a path below the bundle")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise BundleError(f"{path} has no size")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise BundleError(f"{path} has no SHA-256")
    if kind not in KINDS:
        raise BundleError(f"{path} is of an unknown kind ({shown(kind)})")
    texts = {name: str(value.get(name) or "") for name in ("package", "version", "source", "system")}
    licence = value.get("licence")
    return Entry(path, size, digest, kind, licence=str(licence) if licence else None, **texts)


def inside(path: str) -> bool:
    """Return whether a path stays below the bundle, and is written as such; none of its parts looks like an option."""
    try:
        relative_path(path)
    except UnfitError:
        return False
    return path != MANIFEST and not any(part.startswith("-") for part in path.split("/"))


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
