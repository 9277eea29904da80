# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with the pages of a site: links and anchors that lead nowhere, and what a browser would fetch."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_REMOTE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//")
_FETCHED = {"img", "script", "iframe", "source", "video", "audio", "embed"}
_FETCHING = ("stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "prefetch")


class Page(HTMLParser):
    """The links and anchors of a page, and the addresses of what it loads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and any(word in given.get("rel", "") for word in _FETCHING):
            self.loads.append(given.get("href", ""))
        elif tag in _FETCHED and given.get("src"):
            self.loads.append(given["src"])


def problems(site: Path) -> list[str]:
    """Return a line for each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {address}" for address in page.loads if _REMOTE.match(address)]
        local = [link for link in page.links if link and not re.match(r"[a-z]+:", link)]
        for link in [*local, *(address for address in page.loads if not _REMOTE.match(address))]:
            file, _hash, anchor = link.partition("#")
            target = Path(os.path.normpath(path.parent / unquote(file.partition("?")[0]))) if file else path
            if not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                found.append(f"{name}: {link}: there is no such anchor")
    for path in sorted(site.rglob("*.css")):
        addresses = re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", path.read_text(encoding="utf-8"))
        remote = [address for pair in addresses for address in pair if _REMOTE.match(address)]
        found += [f"{path.relative_to(site)}: loads {address}" for address in remote]
    return found
