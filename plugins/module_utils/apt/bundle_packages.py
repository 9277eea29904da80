# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Debian packages of an offline bundle: what apt says of them, which of them a node lacks, and a repository of those.

Pure. The rules of versions are those of deb-version(7).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from urllib.parse import unquote

_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_URI = re.compile(r"^'[^']*' (\S+) ([0-9]+)(?: \S*)?$")
_FIELD = re.compile(r"^([A-Za-z0-9-]+):[ \t]*(.*)$")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_%:-]*\.deb")
_SIZE = re.compile(r"[0-9]{1,15}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SOURCE = re.compile(r"^(\S+)(?: \((\S+)\))?$")
_WORDS = {
    "package": re.compile(r"[a-z0-9][a-z0-9+.-]{0,200}"),
    "version": re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]{0,200}"),
    "architecture": re.compile(r"[a-z0-9][a-z0-9-]{0,30}"),
}
"""As deb-control(5) and deb-version(7) have them."""


class DebError(ValueError):
    """apt's output cannot be used; the text says of which package."""


@dataclass(frozen=True)
class Deb:
    """One package as a repository lists it. ``stanza`` is what it says, with ``file`` as the place."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    file: str
    size: int
    sha256: str
    stanza: str


def _order(letter: str) -> int:
    """Return the place of a letter in a version: a tilde before the end, letters before all others."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isascii() and letter.isalpha() else ord(letter) + 256


def _text_key(text: str) -> list[int]:
    # Zero for the end: a tilde comes before it, everything else after.
    return [*(_order(letter) for letter in text), 0]


def _key(text: str) -> list[tuple[list[int], int]]:
    return [(_text_key(words), int(number or 0)) for words, number in _PARTS.findall(text)]


def compare(one: str, other: str) -> int:
    """Return -1, 0 or 1 as the first version is older, equally old or newer."""
    for left, right in zip(_split(one), _split(other)):
        for mine, theirs in zip_longest(_key(left), _key(right), fillvalue=([0], 0)):
            if mine != theirs:
                return -1 if mine < theirs else 1
    return 0


def _split(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    if not colon or not epoch.isdecimal():
        epoch, rest = "0", version
    upstream, dash, revision = rest.rpartition("-")
    return (epoch, upstream, revision) if dash else (epoch, rest, "0")


def parse_uris(text: str) -> list[tuple[str, str, str]]:
    """Return name, version and architecture of each package in ``apt-get --print-uris``'s output."""
    found = []
    for line in text.splitlines():
        match = _URI.match(line)
        if match is None:
            continue
        parts = unquote(match[1]).removesuffix(".deb").rsplit("_", 2) if match[1].endswith(".deb") else []
        if len(parts) != 3:
            raise DebError(
                f"apt names a file {match[1]}, which does not have the form package_version_architecture.deb"
            )
        found.append((parts[0], parts[1], parts[2]))
    return found


def stanzas(text: str) -> Iterator[str]:
    """Yield each paragraph of a list of packages."""
    for part in re.split(r"\n[ \t]*\n", text.strip("\n")):
        if part.strip():
            yield part.strip("\n")


def parse_deb(stanza: str) -> Deb:
    """Read one paragraph of a list of packages; the file's own name becomes its place."""
    fields: dict[str, str] = {}
    lines = []
    for line in stanza.splitlines():
        match = _FIELD.match(line)
        if match is None:
            lines.append(line)
            continue
        if match[1].lower() in fields:
            raise DebError(f"{fields.get('package', 'a package')}: its repository says its {match[1]} twice")
        fields[match[1].lower()] = match[2].strip()
        lines.append(line if match[1].lower() != "filename" else f"Filename: ./{line.rpartition('/')[2].strip()}")
    name, version = fields.get("package", ""), fields.get("version", "")
    lacking = [
        key for key in ("package", "version", "architecture", "filename", "size", "sha256") if not fields.get(key)
    ]
    if lacking:
        raise DebError(f"{name or 'a package'}: its repository does not state its {', '.join(lacking)}")
    odd = [key for key, words in _WORDS.items() if not words.fullmatch(fields[key])]
    if odd:
        raise DebError(f"a package: its repository says an odd {odd[0]} ({fields[odd[0]][:60]!a})")
    file = fields["filename"].rpartition("/")[2]
    if not _FILE.fullmatch(file) or not _SHA256.fullmatch(fields["sha256"]) or not _SIZE.fullmatch(fields["size"]):
        raise DebError(f"{name}: its repository has an unexpected file name, size or digest of it ({file[:60]!a})")
    source = _SOURCE.match(fields.get("source") or name)
    if source is None:
        raise DebError(f"{name}: its repository names an odd source package")
    return Deb(
        name,
        version,
        fields["architecture"],
        source[1],
        source[2] or version,
        file,
        int(fields["size"]),
        fields["sha256"],
        "\n".join(lines),
    )


def choose(debs: Iterable[Deb], wanted: Iterable[tuple[str, str, str]]) -> list[Deb]:
    """Return those that apt wants, by file name. Every one must be there."""
    known = {(deb.name, deb.version, deb.architecture): deb for deb in debs}
    chosen: dict[str, Deb] = {}
    for name, version, architecture in wanted:
        deb = known.get((name, version, architecture))
        if deb is None:
            raise DebError(f"{name}: apt wants version {version} for {architecture}, but does not show it")
        same = chosen.setdefault(deb.file, deb)
        if same.sha256 != deb.sha256:
            raise DebError(f"{name}: two repositories have different files named {deb.file}")
    return [chosen[file] for file in sorted(chosen)]


def lacking(debs: Iterable[Deb], installed: Mapping[str, str]) -> list[Deb]:
    """Return the packages that a node does not have in this version or a newer one.

    ``installed`` are versions by ``name:architecture``. A package for all architectures is installed as the node's.
    """
    by_name: dict[str, list[str]] = {}
    for key, version in installed.items():
        by_name.setdefault(key.partition(":")[0], []).append(version)
    found = []
    for deb in debs:
        exact = installed.get(f"{deb.name}:{deb.architecture}")
        versions = by_name.get(deb.name, []) if deb.architecture == "all" else [exact] if exact else []
        if not any(compare(version, deb.version) >= 0 for version in versions):
            found.append(deb)
    return found


def packages_text(debs: Iterable[Deb]) -> str:
    """Return the list of a flat repository of these packages."""
    return "".join(f"{deb.stanza}\n\n" for deb in debs)


def release_text(packages: str) -> str:
    """Return the Release file beside it, by which apt checks the list; unsigned, as nothing would be proven by it."""
    data = packages.encode()
    return (
        "Origin: swarmspeed.cluster\nLabel: swarmspeed.cluster offline bundle\n"
        f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} Packages\n"
    )


def parse_installed(text: str) -> dict[str, str]:
    """Return versions by ``name:architecture`` of what ``dpkg-query`` says is wholly installed.

    One line each: the status in letters, name, architecture and version, parted by blanks.
    """
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[0][1:2] == "i" and words[0][2:] == "":
            found[f"{words[1]}:{words[2]}"] = words[3]
    return found
