# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Repositories of apt that a build uses beside the base image's, such as a PPA with another Python. Pure.

Forms as in sources.list(5), keys as apt's option ``signed-by`` takes them (read 2026-11-25).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..plan.controller import TEXT, here
from .inputs import Trouble, apt_sources_text, apt_sources_troubles, is_deb822

VARIABLE = "training_image_apt_repositories"
ARMOR = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_TRUST = re.compile(r"\b(signed-by|trusted)\s*[=:]", re.IGNORECASE)
_LINE = re.compile(r"(?P<kind>deb(?:-src)?)\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<rest>.*)")
_USER = re.compile(r"(?<=://)[^/@\s]*@")


@dataclass(frozen=True)
class Repository:
    """``source`` is in either form of apt's, ``key`` an armored public key, or empty where the source names one."""

    source: str
    key: str

    @property
    def suffix(self) -> str:
        """Return the end of the file's name, by which apt distinguishes the two forms."""
        return "sources" if is_deb822(self.source) else "list"

    @property
    def encrypted(self) -> bool:
        return "https://" in self.source

    @property
    def identity(self) -> list[str]:
        """Return what makes another image: not a user or password, which a hash could give away."""
        return [_USER.sub("", self.source), self.key]

    def signed_by(self, path: str) -> str:
        """Return the source with the key that signs it, by its path."""
        if not self.key:
            return self.source
        if is_deb822(self.source):
            parts = re.split(r"\n\s*\n", self.source.strip("\n"))
            return "\n\n".join(f"{part.rstrip()}\nSigned-By: {path}" for part in parts if part.strip()) + "\n"
        return "".join(f"{_signed_line(line, path)}\n" for line in self.source.splitlines())


def _signed_line(line: str, path: str) -> str:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return line
    options = " ".join([*(found["options"] or "").split(), f"signed-by={path}"])
    return f"{found['kind']} [{options}] {found['rest']}"


def key_files(given: Any) -> list[str]:
    """Return the files of the controller that hold keys."""
    keys = [str(entry.get("key") or "") for entry in _entries(given)]
    return [key for key in keys if key and not _is_data(key)]


def repositories(given: Any, files: Mapping[str, str]) -> list[Repository]:
    """Return the repositories with their keys; ``files`` are texts by name, as planners get them."""
    found = []
    for entry in _entries(given):
        key = str(entry.get("key") or "")
        text = files.get(f"{TEXT}{key}", "") if key and not _is_data(key) else key
        found.append(Repository(apt_sources_text(entry.get("source")), text.strip()))
    return found


def repository_troubles(given: Any, kind: Callable[[str], str | None], text: Callable[[str], str]) -> Iterator[Trouble]:
    """Yield what is wrong with them, without the sources: they may hold a password."""
    for number, entry in enumerate(_entries(given), 1):
        source, key = apt_sources_text(entry.get("source")), str(entry.get("key") or "")
        if not source:
            yield Trouble(VARIABLE, f"entry {number} has no source", "give 'deb http://HOST/ubuntu jammy main'")
            continue
        for trouble in apt_sources_troubles(source, VARIABLE):
            yield Trouble(VARIABLE, f"entry {number}: {trouble.text}", trouble.remedy)
        if key and _TRUST.search(source):
            yield Trouble(
                VARIABLE, f"entry {number} has a key, and its source says what it is signed by", "leave one of the two"
            )
        elif not key and not _TRUST.search(source):
            yield Trouble(
                VARIABLE,
                f"entry {number} has no key, without which apt refuses what is there",
                "set key to the public key of the repository, as text or as a file on the controller",
            )
        elif key and not _is_data(key):
            yield from _key_file(number, key, kind, text)


def _key_file(
    number: int, key: str, kind: Callable[[str], str | None], text: Callable[[str], str]
) -> Iterator[Trouble]:
    path = str(here(key))
    if kind(path) != "file":
        yield Trouble(
            VARIABLE, f"entry {number}: {path} is not a file on the controller", "correct the path of the key"
        )
    elif not _is_data(text(path)):
        yield Trouble(
            VARIABLE,
            f"entry {number}: {path} is not a public key in text form",
            "write it with gpg --export --armor, or gpg --enarmor",
        )


def _is_data(key: str) -> bool:
    return ARMOR in key


def _entries(given: Any) -> list[Mapping[str, Any]]:
    """Return the entries; what is of another form is reported by the argument spec."""
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else []
    return [entry for entry in several if isinstance(entry, Mapping)]
