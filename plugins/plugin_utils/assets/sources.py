# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where models and data sets come from: ``assets_sources``, checked. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

VARIABLE = "assets_sources"
HUGGINGFACE, URL, FOLDER = "huggingface", "url", "folder"
KINDS = (HUGGINGFACE, URL, FOLDER)
MODEL, DATASET = "model", "dataset"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_OF_HUB = {"repository", "revision", "kind", "files"}
_OF = {HUGGINGFACE: {HUGGINGFACE}, URL: {URL, "sha256"}, FOLDER: {FOLDER}}


class AssetError(Exception):
    """A model or data set cannot be had as it is requested. The text is one sentence with its remedy."""


@dataclass(frozen=True)
class Source:
    """One model or data set. ``place`` is the repository, the URL or the folder."""

    name: str
    kind: str
    place: str
    revision: str = ""
    repository_kind: str = ""
    files: tuple[str, ...] = ()
    sha256: str = ""
    endpoint: str = ""

    @property
    def key(self) -> str:
        """Return what distinguishes it from others in the controller's cache."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:32]

    @property
    def title(self) -> str:
        """Return what is shown of it: a URL without user, password and query."""
        if self.kind == URL:
            return f"{urlsplit(self.place).hostname}{urlsplit(self.place).path}"
        if self.kind == FOLDER:
            return self.place
        return (
            f"{urlsplit(self.endpoint).hostname}/{'datasets/' if self.repository_kind == DATASET else ''}{self.place}"
        )

    def error(self, cause: str, remedy: str) -> AssetError:
        return AssetError(f"{VARIABLE}: {self.name}: {cause}. Remedy: {remedy}")


def sources(items: Any, endpoint: str) -> list[Source]:
    """Return what is requested. Raises ``AssetError`` at the first item that is not understood."""
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes)):
        raise AssetError(f"{VARIABLE}: this is not a list. Remedy: give a list of models and data sets")
    found = [_source(number, item, endpoint.rstrip("/")) for number, item in enumerate(items)]
    for number, source in enumerate(found):
        if source.name.lower() in [other.name.lower() for other in found[:number]]:
            raise source.error("another entry has the same name", "give each a name of its own")
    return found


def safe_path(path: str) -> bool:
    """Whether a path from elsewhere may become one below a folder of a node."""
    parts = path.split("/")
    return len(path) <= 1000 and all(_PART.fullmatch(part) and part not in (".", "..") for part in parts)


def _source(number: int, item: Any, endpoint: str) -> Source:
    name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
    where = f"{VARIABLE}: {name or f'item {number + 1}'}"
    for problem, remedy in _problems(name, item):
        raise AssetError(f"{where}: {problem}. Remedy: {remedy}")
    if item.get(HUGGINGFACE):
        return _of_hub(where, name, item[HUGGINGFACE], endpoint)
    if item.get(URL):
        address = urlsplit(str(item[URL]))
        if address.scheme not in ("http", "https") or not address.hostname or not url_name(str(item[URL])):
            raise AssetError(f"{where}: url is not the address of a file. Remedy: give http(s)://host/path/file")
        digest = str(item.get("sha256") or "").lower()
        if not _SHA256.fullmatch(digest):
            raise AssetError(
                f"{where}: sha256 is not a SHA-256 in hexadecimal. Remedy: give the one that the file's publisher "
                "states, 64 digits"
            )
        return Source(name, URL, str(item[URL]), sha256=digest)
    return Source(name, FOLDER, str(item[FOLDER]))


def url_name(url: str) -> str:
    """Return the name of the file at a URL; empty where it has none that can be one on a node."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return name if name and safe_path(name) else ""


def _problems(name: str, item: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(item, Mapping):
        yield "this is not a mapping", "give name and one of huggingface, url and folder"
        return
    if not _NAME.fullmatch(name):
        yield "name is not the name of a folder", "use letters, digits, dots, hyphens and underscores"
    given = [kind for kind in KINDS if item.get(kind)]
    if len(given) != 1:
        reported = " and ".join(given) if given else "none"
        yield f"exactly one of huggingface, url and folder is needed (given: {reported})", "give one"
        return
    unknown = sorted(set(map(str, item)) - {"name"} - _OF[given[0]])
    if unknown:
        yield f"unknown key {unknown[0]} with {given[0]}", "see docs/assets.md"


def _of_hub(where: str, name: str, requested: Any, endpoint: str) -> Source:
    if not isinstance(requested, Mapping) or not _REPOSITORY.fullmatch(str(requested.get("repository") or "")):
        raise AssetError(f"{where}: huggingface.repository is not a repository. Remedy: write owner/name")
    unknown = sorted(set(map(str, requested)) - _OF_HUB)
    if unknown:
        raise AssetError(f"{where}: unknown key huggingface.{unknown[0]}. Remedy: see docs/assets.md")
    kind, files = str(requested.get("kind") or MODEL), requested.get("files") or []
    if kind not in (MODEL, DATASET):
        raise AssetError(f"{where}: huggingface.kind is {kind!r}. Remedy: write model or dataset")
    if not isinstance(files, Sequence) or isinstance(files, str):
        raise AssetError(f"{where}: huggingface.files is not a list. Remedy: give a list of patterns, such as *.json")
    address = urlsplit(endpoint)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise AssetError(f"{where}: assets_huggingface_endpoint is not an address. Remedy: give https://host")
    revision = str(requested.get("revision") or "main")
    patterns = tuple(str(pattern) for pattern in files)
    return Source(name, HUGGINGFACE, str(requested["repository"]), revision, kind, patterns, endpoint=endpoint)
