# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The site that make docs has built, in headless Chromium: it can be read and searched, and loads nothing remote."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser
from tests.documents import DOCUMENTS, ROOT

SITE = ROOT / ".cache/docs/site/html"
PICTURES = ROOT / ".cache/docs/pictures"
PAGES = (
    "index",
    "docs/first_hour",
    "docs/tested",
    "docs/README",
    "docs/troubleshooting",
    "docs/architecture",
    "roles/docker/README",
    "modules/hostfile_module",
)
WAYS = ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with Browser() as opened:
        yield opened


def remote(browser: Browser) -> list[str]:
    return [address for address in browser.requests if not address.startswith(("file:", "data:"))]


def test_every_document_has_a_page() -> None:
    missing = [document for document in DOCUMENTS if not (SITE / document).with_suffix(".html").is_file()]
    assert missing == []
    assert (SITE / "modules/ds_config_module.html").is_file() and (SITE / "modules/visible_filter.html").is_file()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), WAYS)
def test_pages_can_be_read(browser: Browser, page: str, width: int, scheme: str) -> None:
    browser.open(SITE / f"{page}.html", width, scheme)
    (PICTURES / f"{page.replace('/', '-')}-{width}-{scheme}.png").write_bytes(browser.picture(".page"))
    assert browser.messages == []
    assert remote(browser) == []
    assert browser.geometry()["overflow"] <= 0
    assert browser.run("document.querySelectorAll('article h1').length") == 1
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    lightness = sum(int(part) for part in background.removeprefix("rgb(").removesuffix(")").split(",")) / 3
    assert (lightness < 128) == (scheme == "dark")


def test_narrow_windows_open_the_navigation(browser: Browser) -> None:
    browser.open(SITE / "index.html", 390)
    shown = "document.querySelector('.sidebar-drawer').getBoundingClientRect().left >= 0"
    assert not browser.run(shown)
    browser.run("document.querySelector('label[for=__navigation]').click()")
    assert browser.run(f"new Promise(done => setTimeout(() => done({shown}), 1000))")


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("squid", "docs/proxy.html"),
        ("train_micro_batch_size_per_gpu", "docs/ds_config.html"),
        ("slots", "modules/hostfile_module.html"),
    ],
)
def test_the_search_finds_pages_without_a_server(browser: Browser, query: str, page: str) -> None:
    browser.open(SITE / "search.html", query=f"?q={query}")
    found = (
        "new Promise(done => { const end = Date.now() + 15000; const again = () => {"
        " const links = [...document.querySelectorAll('#search-results li a')].map(link => link.href);"
        f" if (links.some(link => link.includes('{page}')) || Date.now() > end) done(links);"
        " else setTimeout(again, 200); }; again(); })"
    )
    assert any(page in link for link in browser.run(found))
    assert remote(browser) == []
