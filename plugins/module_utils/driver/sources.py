# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is known of apt's sources: read from both of its formats, and the stanzas that the driver needs beside them.

Formats: sources.list(5). A mirror that a host uses is kept: components are added for the addresses that are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

_LINE = re.compile(r"^deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>(?:\s+\S+)*)$")
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
"""Facts are shown and kept, so a password in an address is not read. apt knows a place for it: apt_auth.conf(5)."""
_BACKPORTS = ("-backports", "-proposed", "-sloppy")
"""Suites from which nothing is taken unless it is requested by name."""


@dataclass(frozen=True)
class Source:
    """One address of one suite. ``options`` are those of the stanza, by their deb822 names (``Signed-By`` …)."""

    file: str
    uri: str
    suite: str
    components: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


_OPTION_NAMES = {
    "arch": "Architectures",
    "signed-by": "Signed-By",
    "trusted": "Trusted",
    "check-valid-until": "Check-Valid-Until",
    "by-hash": "By-Hash",
}
_KEPT = frozenset(_OPTION_NAMES.values())


def parse_sources(texts: Mapping[str, str]) -> list[Source]:
    """Read files by their names: ``.sources`` are deb822, all others one line an entry.

    Sources of source code do not count, nor those that are switched off.
    """
    found: list[Source] = []
    for name, text in sorted(texts.items()):
        read = _deb822 if name.endswith(".sources") else _lines
        found += read(name, _CREDENTIALS.sub("", text))
    return found


def _lines(name: str, text: str) -> Iterable[Source]:
    for line in text.splitlines():
        entry = _LINE.match(line.partition("#")[0].strip())
        if entry is None:
            continue
        options = []
        for option in (entry["options"] or "").split():
            key, dummy, value = option.partition("=")
            if key.lower() in _OPTION_NAMES:
                options.append((_OPTION_NAMES[key.lower()], value.replace(",", " ")))
        yield Source(name, entry["uri"], entry["suite"], tuple(entry["components"].split()), tuple(options))


def _deb822(name: str, text: str) -> Iterable[Source]:
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        fields: dict[str, str] = {}
        last = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in " \t" and last:
                fields[last] += f"\n{line}"
                continue
            key, separator, value = line.partition(":")
            last = key.strip().lower() if separator else ""
            if last:
                fields[last] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        options = tuple((key, fields[key.lower()]) for key in sorted(_KEPT) if key.lower() in fields)
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(name, uri, suite, tuple(fields.get("components", "").split()), options)


def extra_components(sources: list[Source], codename: str, wanted: tuple[str, ...], ours: str) -> list[Source]:
    """Return what to add so that every address of this release offers the wanted components.

    ``ours`` is our own file, which does not count. Empty where nothing is missing, or where no source of this release
    offers ``main``.
    """
    there: dict[tuple[str, str], set[str]] = {}
    models: dict[tuple[str, str], Source] = {}
    for source in sources:
        name, dummy, pocket = source.suite.partition("-")
        if source.file == ours or name != codename or f"-{pocket}" in _BACKPORTS:
            continue
        key = (source.uri.rstrip("/"), source.suite)
        there.setdefault(key, set()).update(source.components)
        if "main" in source.components:
            models.setdefault(key, source)
    added = []
    for key, model in models.items():
        missing = tuple(component for component in wanted if component not in there[key])
        if missing:
            added.append(Source(ours, model.uri, model.suite, missing, model.options))
    return added


def offers_release(sources: list[Source], codename: str) -> bool:
    """Return whether any source offers this release's main component."""
    return any(source.suite == codename and "main" in source.components for source in sources)


def render(sources: Iterable[Source], heading: str) -> str:
    """Return a deb822 file, or an empty text for no source."""
    stanzas = []
    for source in sources:
        lines = ["Types: deb", f"URIs: {source.uri}", f"Suites: {source.suite}"]
        if source.components:
            lines.append(f"Components: {' '.join(source.components)}")
        lines += [f"{key}:{value if value.startswith(chr(10)) else ' ' + value}" for key, value in source.options]
        stanzas.append("\n".join(lines) + "\n")
    return f"# {heading}\n" + "\n".join(stanzas) if stanzas else ""


def folded(key: str) -> str:
    """Return an armoured key as the continuation lines of a deb822 field: an empty line is a dot there."""
    return "\n" + "\n".join(f" {line.rstrip() or '.'}" for line in key.strip().splitlines())


def as_dicts(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """The form of the facts."""
    return [{**asdict(source), "components": list(source.components)} for source in sources]


def from_dicts(entries: Any) -> list[Source]:
    """Read the form of the facts; what is not of that form is left out."""
    found = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("uri") and entry.get("suite"):
            options = tuple((str(key), str(value)) for key, value in entry.get("options") or [])
            components = tuple(map(str, entry.get("components") or []))
            found.append(Source(str(entry.get("file")), str(entry["uri"]), str(entry["suite"]), components, options))
    return found
