# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads the documents: their commands, names in code, tables, and the targets of the Makefile that they name."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/decisions/*.md",
        "roles/*/README.md",
        "examples/*.md",
        "examples/*/*.md",
        "tests/hangbench/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"  # generated; what earlier releases are said to have may be gone
)
INDEX = "docs/README.md"
"""All pages, in the four kinds; `make docs` makes the site's navigation from it."""
BESIDE = {"docs/decisions/": "docs/decisions/README.md", "roles/": "docs/roles.md", "examples/": "examples/README.md"}
"""Folders whose documents the index leaves to one page of its own."""
MINE = "inventories/mine"
"""The folder that the reader makes; the command of docs/installation.md makes it from inventories/example."""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text(document), re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[str]:
    """Return the lines of all sh blocks, without comments."""
    lines = (line for block in blocks(document, "sh") for line in block.splitlines())
    return [line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines) if line]


def prose(document: str) -> str:
    """Return a document without its code."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^ *```.*?^ *```$", "", text(document), flags=re.M | re.S))


def path_of(document: str, link: str) -> str:
    """Return where a link of a document leads, from the repository's root."""
    return os.path.normpath(Path(document).parent / link) if link else document


def local_links(document: str) -> list[tuple[str, str]]:
    """Return path and anchor of each link that leads to a file, or to a heading."""
    found = re.findall(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)", prose(document))
    return [(path_of(document, path), anchor) for path, anchor in found]


def anchors(document: str) -> list[str]:
    """Return the anchors of all headings, as GitHub and MyST make them."""
    plain = re.sub(r"^ *```.*?^ *```$", "", text(document), flags=re.M | re.S)
    headings = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ +(.+?) *$", plain, re.MULTILINE)
    ]
    found: list[str] = []
    seen: Counter[str] = Counter()
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def listed() -> dict[str, list[str]]:
    """Return the documents that each section of the index lists."""
    sections = re.split(r"^## ", text(INDEX), flags=re.MULTILINE)[1:]
    items = {
        section.partition("\n")[0]: re.findall(r"^- \[[^]]*\]\(([^)#]+)\)", section, re.MULTILINE)
        for section in sections
    }
    return {name: [path_of(INDEX, link) for link in links] for name, links in items.items()}


def spans(document: str) -> list[str]:
    """Return what stands in single backticks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^ *```.*?^ *```$", "", text(document), flags=re.M | re.S))


def reported(document: str) -> list[str]:
    """Return everything that a document names as code: spans, and the lines of sh blocks."""
    return [*spans(document), *commands(document)]


def targets() -> dict[str, str]:
    """Return the Makefile's targets with their recipes."""
    found = re.findall(r"^([a-z-]+):(?!=).*\n((?:\t.*\n)*)", text("Makefile"), re.MULTILINE)
    return dict(found)


def steps(target: str) -> list[str]:
    """Return the targets that `make test` and its like run, by tests/steps: one after another, or side by side."""
    words = shlex.split(targets()[target].replace("@tests/steps", "").replace("$", ""))
    return [step.split()[0] for word in words for step in word.split(" & ")]


def cells(document: str, heading: str, level: int = 2) -> Iterator[list[str]]:
    """Yield the rows of the tables below a heading, without their first two lines."""
    section = re.split(rf"^{'#' * level} {re.escape(heading)}$", text(document), flags=re.MULTILINE)[1].split("\n## ")[
        0
    ]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    for line in rows[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def coded(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)
