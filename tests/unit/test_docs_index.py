# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Each page is listed once, in the index or in the page of its folder; links and anchors among the documents exist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.tests import documents
from ansible_collections.swarmspeed.cluster.tests.docs_site.built import problems

from tests.documents import BESIDE, DOCUMENTS, INDEX, ROOT, anchors, listed, local_links


def test_the_index_has_the_four_kinds() -> None:
    assert list(listed()) == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    assert all(listed().values())


def test_every_page_is_listed_once() -> None:
    found = Counter(document for documents_ in listed().values() for document in documents_)
    assert [document for document, times in found.items() if times > 1] == []
    folders = (*BESIDE,)
    others = {document for document in DOCUMENTS if document.startswith(folders)} - set(found)
    # The changelog is generated at each release, so it is listed and not read as the others are.
    assert sorted(({*DOCUMENTS} | {"CHANGELOG.md"}) ^ set(found) ^ others) == ["README.md", INDEX]


@pytest.mark.parametrize(("folder", "page"), BESIDE.items())
def test_the_page_of_a_folder_lists_its_documents(folder: str, page: str) -> None:
    linked = {path for path, _anchor in local_links(page)}
    below = {document for document in DOCUMENTS if document.startswith(folder)}
    assert sorted(below - linked - {page}) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_anchors_exist(document: str) -> None:
    leading = [(path, anchor) for path, anchor in local_links(document) if anchor and path in DOCUMENTS]
    assert [f"{path}#{anchor}" for path, anchor in leading if anchor not in anchors(path)] == []


def test_anchors_are_those_that_a_repository_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = "# `a_b`: What, and [why](x.md)?\n\n## Why\n\n```sh\n# no heading\n```\n\n## Why\n"
    page += "\n[one](#why-1) [no](http://x#y) `[c](d)`\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    assert documents.anchors("page.md") == ["a_b-what-and-why", "why", "why-1"]
    assert documents.local_links("page.md") == [("x.md", ""), ("page.md", "why-1")]


def test_what_a_page_of_the_site_must_not_have_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<a href="https://example.org">4</a><script src="https://cdn.example.org/x.js"></script>'
        '<img src="d.png"><link rel="stylesheet" href="//fonts.example.org/x">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1><a href="#there">up</a><a href="mailto:a@example.org">m</a>')
    (tmp_path / "x.css").write_text("@import 'https://example.org/y.css'; a{background:url(data:image/png;base64,)}")
    assert problems(tmp_path) == [
        "a.html: loads https://cdn.example.org/x.js",
        "a.html: loads //fonts.example.org/x",
        "a.html: b.html#gone: there is no such anchor",
        "a.html: c.html leads nowhere",
        "a.html: d.png leads nowhere",
        "x.css: loads https://example.org/y.css",
    ]


def test_documents_are_all_that_is_written_in_markdown() -> None:
    written = {
        path.relative_to(ROOT).as_posix()
        for folder in ("docs", "roles", "examples")
        for path in (ROOT / folder).rglob("*.md")
    }
    assert sorted(written - set(DOCUMENTS)) == []
