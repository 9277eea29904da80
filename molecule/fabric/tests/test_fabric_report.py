"""report.yml on a cluster that is up, and its pages in headless Chromium: those of the lab and constructed ones.

Chromium is installed from the distribution where it is missing. Pictures are left in .cache/report for inspection.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collections")]

from ansible_collections.swarmspeed.cluster.tests import report_clusters
from ansible_collections.swarmspeed.cluster.tests.browser import Browser

from tests.engines import join_tokens
from tests.playbook_run import (
    NODES,
    Run,
    container,
    inside,
    lab_inventory,
    on,
    playbook,
    site,
    snapshot,
    variables,
    write_inventory,
)

PICTURES = ROOT / ".cache" / "report"
WAYS = {
    "wide": (1280, "light", "screen"),
    "dark": (1280, "dark", "screen"),
    "tablet": (760, "light", "screen"),
    "narrow": (390, "light", "screen"),
    "print": (720, "light", "print"),
}
"""Width of the window in pixels, colour scheme, medium."""
SMALLEST = {"screen": 9.0, "print": 8.0}
"""Pixels of the smallest letters; 8 on paper are 6 points."""

BAD = """<!doctype html><style>p { margin: 0; font-size: 16px }</style><main>
<p>first line of text</p><p style="margin-top: -14px">second line of text</p><p style="width: 3000px">too wide</p>
<p style="font-size: 6px">tiny</p><svg width="50" height="20"><text x="0" y="14">cut off at the edge</text></svg></main>
<script>console.error("a message"); undefined.thing</script><img src="missing.png">"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def constructed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("constructed")
    report_clusters.write(folder)
    return folder


def inspected(browser: Browser, page: Path, name: str, way: str) -> None:
    """Open a page, take its picture, and assert that nothing is wrong with how it looks."""
    width, scheme, medium = WAYS[way]
    browser.open(page, width, scheme, medium)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}-{way}.png").write_bytes(browser.picture())
    found = browser.geometry()
    assert found["count"] > 100
    assert (found["covered"], found["cut"], found["overflow"]) == ([], [], 0)
    assert [text for text, pixels in found["small"] if pixels < SMALLEST[medium]] == []
    assert browser.messages == []
    assert browser.requests == [page.resolve().as_uri()]


def report(folder: Path, *arguments: str, **options: Any) -> Run:
    return playbook("report", *variables(cluster_reports_dir=str(folder)), *arguments, **options)


def test_a_bad_page_is_noticed(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(BAD, encoding="utf-8")
    browser.open(page, 800)
    found = browser.geometry()
    assert found["covered"] == ["first line of text | second line of text"]
    assert found["cut"] == ["cut off at the edge"]
    assert ["tiny", 6] in found["small"]
    assert found["overflow"] > 2000
    assert "a message" in browser.messages and any("undefined" in text for text in browser.messages)
    assert any(address.endswith("missing.png") for address in browser.requests)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("name", list(report_clusters.CASES))
def test_constructed_clusters_look_right(browser: Browser, constructed: Path, name: str, way: str) -> None:
    inspected(browser, constructed / f"{name}.html", name, way)


def test_light_and_dark_differ(browser: Browser, constructed: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        browser.open(constructed / "three.html", 1280, scheme)
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(245, 246, 247)", "rgb(16, 19, 23)"]
    # On paper it is light, whatever the reader's setting.
    browser.open(constructed / "three.html", 720, "dark", "print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.body).color") == "rgb(26, 31, 37)"


def test_pointing_at_a_pair_says_which_and_how_much(browser: Browser, constructed: Path) -> None:
    browser.open(constructed / "sixty_four.html")
    script = """(() => { const svg = document.querySelector('[data-heat="0"]'); svg.scrollIntoView({block: "center"});
    const box = svg.querySelector(".ground").getBoundingClientRect();
    return [box.left + box.width * 22.5 / 64, box.top + box.height * 0.5 / 64]; })()"""
    browser.move(*browser.run(script))
    assert browser.run("document.getElementById('tip').hidden") is False
    printed = browser.run("document.getElementById('tip').textContent")
    assert printed.startswith("gpu01 → gpu23: 0.0") and printed.endswith(" ms")
    browser.move(5, 5)
    assert browser.run("document.getElementById('tip').hidden") is True


def test_tables_are_sorted_by_a_click(browser: Browser, constructed: Path) -> None:
    browser.open(constructed / "sixty_four.html")
    rows = "[...document.querySelectorAll('#nodes tbody tr')].map((row) => row.cells[0].textContent.trim())"
    assert browser.run(rows)[0].endswith("gpu01")
    for first in ("gpu01", "gpu64"):
        browser.run("document.querySelector('#nodes th button').click()")
        assert browser.run(rows)[0].endswith(first)


def test_the_whole_page_is_printed(browser: Browser, constructed: Path) -> None:
    """Also what is folded on the screen: the table of 64 nodes."""
    browser.open(constructed / "sixty_four.html", 720, "light", "print")
    assert browser.run("document.querySelector('#nodes tbody tr:last-child').getBoundingClientRect().height") > 8
    assert browser.pdf().startswith(b"%PDF-")


@pytest.mark.parametrize("way", list(WAYS))
def test_the_lab_looks_right(browser: Browser, tmp_path: Path, way: str) -> None:
    if way == "wide":
        playbook("verify", *variables(cluster_reports_dir=str(tmp_path))).done(change=False)
    run = report(tmp_path).done(change=False)
    page = tmp_path / "report.html"
    assert f"The report is in {page}. All 3 nodes answer" in run.text
    inspected(browser, page, "lab", way)
    text = browser.run("document.body.innerText")
    for name in NODES:
        assert name in text and inside(name, "hostname -I").split()[0] in text
    assert on("lab1", "uname -r").strip() in text
    assert "There is no bench_network.json yet." in text
    assert ("Every node is a ready" in text) is (way == "wide")


def test_it_changes_nothing_and_holds_no_secret(tmp_path: Path) -> None:
    before = snapshot()
    report(tmp_path).done(change=False)
    assert snapshot() == before
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for token in join_tokens("lab1"):
        assert token not in text
    assert "PRIVATE KEY" not in text and "ssh-ed25519" not in text


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    run = report(tmp_path, "--check").done(change=False)
    assert "report.html would be written" in run.text and list(tmp_path.iterdir()) == []


def test_a_broken_cluster_has_a_report_too(browser: Browser, tmp_path: Path) -> None:
    """One container stopped, and one unreachable node: an address of the lab's network that is not used."""
    inventory = write_inventory(tmp_path / "broken.json", ["lab1"], ["lab2", "lab3"])
    address = lab_inventory()["_meta"]["hostvars"]["lab3"]["ansible_host"]
    unused = f"{address.rpartition('.')[0]}.250"
    inventory.write_text(inventory.read_text(encoding="utf-8").replace(address, unused), encoding="utf-8")
    on("lab2", f"docker stop -t 1 {container('lab2')}")
    try:
        run = report(tmp_path, inventory=inventory)
    finally:
        site("--tags", "training_container").done(change=True)
    assert run.rc == 0, run.output[-3000:]
    assert "2 of 3 nodes answer; 2 things are wrong." in run.text
    inspected(browser, tmp_path / "report.html", "lab-broken", "wide")
    found = browser.run("[...document.querySelectorAll('.findings li')].map((one) => one.innerText)")
    assert [" ".join(text.split()) for text in found][:1][0].startswith(
        "✕ lab3 Does not answer, so nothing is known of it"
    )
    assert "✕ lab2 Its training container is exited. Remedy ansible-playbook site.yml --tags training_container" in [
        " ".join(text.split()) for text in found
    ]


def test_files_that_cannot_be_read_are_reported_so(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "verify.json").write_text('{"version": 1, "pairs": [', encoding="utf-8")
    (tmp_path / "bench_network.json").write_text(json.dumps({"version": 2}), encoding="utf-8")
    report(tmp_path).done(change=False)
    browser.open(tmp_path / "report.html")
    text = browser.run("document.body.innerText")
    assert "verify.json is not JSON, perhaps cut short. Write it again." in text
    assert "bench_network.json is of format 2, and this report reads format 1. Write it again." in text
