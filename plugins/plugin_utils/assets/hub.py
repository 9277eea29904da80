# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The hub's API: addresses, what it replies, and what its refusals mean. Pure.

As documented at https://huggingface.co/docs/hub/api, and as huggingface_hub 0.34 uses it: ``HfApi.repo_info`` with
``files_metadata``, ``hf_hub_url``, and ``hf_raise_for_status`` for the header ``X-Error-Code``. Written from knowledge
of these; the real hub was not asked.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from ...module_utils.common.untrusted_text import on_one_line
from .sources import DATASET, AssetError, Source, safe_path

ERROR_HEADER = "X-Error-Code"
TOKEN = "assets_huggingface_token"
LARGEST = 1 << 50
"""Bytes of a file, at most."""
_GIT, _SHA256 = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class HubFile:
    """A file of a repository. The hub knows the SHA-256 of large ones; small ones are known by git's digest.

    Both become names of files on the controller, and are digests in hexadecimal, or empty.
    """

    path: str
    size: int
    sha256: str
    blob: str


@dataclass(frozen=True)
class Revision:
    """A repository at a commit."""

    commit: str
    gated: bool
    files: tuple[HubFile, ...]


def info_url(source: Source) -> str:
    """Return the address that says which commit a revision is, and its files with sizes and digests."""
    kind = "datasets" if source.repository_kind == DATASET else "models"
    revision = quote(source.revision, safe="")
    return f"{source.endpoint}/api/{kind}/{source.place}/revision/{revision}?blobs=true"


def file_url(source: Source, commit: str, path: str) -> str:
    kind = "datasets/" if source.repository_kind == DATASET else ""
    return f"{source.endpoint}/{kind}{source.place}/resolve/{commit}/{quote(path)}"


def parse_info(source: Source, reply: Any) -> Revision:
    """Return what the hub replied, with the files that are requested. Raises ``AssetError``."""
    try:
        if not isinstance(reply, Mapping):
            raise TypeError("it is not a mapping")
        commit = _digest("sha", reply["sha"], _GIT)
        if not isinstance(reply["siblings"], list):
            raise TypeError("siblings is not a list")
        files = tuple(_file(item) for item in reply["siblings"])
    except (KeyError, TypeError, ValueError) as error:
        reason = on_one_line(f"{type(error).__name__} {error}")
        raise source.error(
            f"the reply of {urlsplit(source.endpoint).hostname} has an unexpected form ({reason})",
            "check assets_huggingface_endpoint",
        ) from None
    odd = [file.path for file in files if not safe_path(file.path)]
    if odd:
        raise source.error(
            f"the repository lists {on_one_line(odd[0])!r}, which is not the path of a file", "use another revision"
        )
    chosen = tuple(file for file in files if wanted(file.path, source.files))
    if not chosen:
        raise source.error(
            f"no file of {source.place} at {source.revision} matches {', '.join(source.files) or '*'}",
            "correct huggingface.files",
        )
    return Revision(commit, reply.get("gated") not in (False, None), chosen)


def wanted(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file is requested: no pattern means all."""
    return not patterns or any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def refused(source: Source, status: int, headers: Mapping[str, str], token: bool) -> AssetError:
    """Return in a sentence what a refusal of the hub means."""
    host, code = urlsplit(source.endpoint).hostname, str(headers.get(ERROR_HEADER) or "")
    repository, page = source.place, f"{source.endpoint}/{source.place}"
    if code == "RevisionNotFound":
        return source.error(
            f"{repository} has no revision {source.revision} on {host}", "name a branch, a tag or a commit of it"
        )
    if code == "GatedRepo":
        reported = f"the account of {TOKEN} was not given access" if token else f"{TOKEN} is not set"
        remedy = f"accept its terms at {page}" + ("" if token else f", and set {TOKEN}")
        return source.error(f"{repository} is gated, and {reported}", remedy)
    if code == "RepoNotFound" or status in (401, 403, 404):
        reported = f"{TOKEN} may not read it" if token else f"{TOKEN} is not set"
        return source.error(
            f"{repository} is not on {host}, or it is private and {reported}",
            f"correct huggingface.repository and kind, or set {TOKEN} to one that may read it",
        )
    return source.error(f"{host} answers {status}", "run again later")


def _file(item: Any) -> HubFile:
    """A file, of what anybody may have sent: the hub, a mirror of it, or who is on the way to one."""
    large = item.get("lfs") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(large, (Mapping, type(None))):
        raise TypeError("a file is not a mapping")
    found = large or {}
    size = found["size"] if "size" in found else item["size"]
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LARGEST:
        raise ValueError(f"size {size!r} is not a number of bytes")
    path, sha256 = item["rfilename"], found.get("sha256")
    if not isinstance(path, str):
        raise TypeError("rfilename is not text")
    return HubFile(
        path=path,
        size=size,
        sha256=_digest("sha256", sha256, _SHA256) if sha256 else "",
        # Without a SHA-256 it is what the file is known by.
        blob=_digest("blobId", item.get("blobId"), _GIT) if item.get("blobId") or not sha256 else "",
    )


def _digest(name: str, value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name} {value!r} is not a digest")
    return value
