"""From bare nodes to a finished job without internet; a bundle that cannot be relied on is refused; nothing is left."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect
from tests.playbook_run import (
    CLUSTER_ROOT,
    JOBS,
    LAB,
    ROOT,
    Run,
    job,
    lab_inventory,
    network,
    node,
    on,
    playbook,
    variables,
)

BUNDLE = Path(os.environ.get("OFFLINE_BUNDLE") or ROOT / ".cache" / f"{LAB}-bundle")
DATA = ROOT / "molecule/offline/vars"
HOSTS = tuple(lab_inventory()["_meta"]["hostvars"])
DAMAGED = ("bundle", "cluster_bundle")
"""The check and its subject, whatever is wrong with the bundle itself."""


def given(**values: Any) -> tuple[str, str]:
    return variables(cluster_bundle=str(BUNDLE), assets_sources=[{"name": "offline", "folder": str(DATA)}], **values)


def site(**values: Any) -> Run:
    return playbook("site", *given(**values))


def manifest() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((BUNDLE / "manifest.json").read_text(encoding="utf-8"))
    return document


def system(name: str) -> str:
    return f"debian-{on(name, '. /etc/os-release; echo $VERSION_ID').strip()}-amd64"


@contextmanager
def changed(path: Path, data: bytes | None) -> Iterator[None]:
    """Give a file of the bundle another content, or take it away, for a while."""
    aside = BUNDLE.with_name(f"{BUNDLE.name}.aside")
    path.rename(aside)
    try:
        if data is not None:
            path.write_bytes(data)
        yield
    finally:
        path.unlink(missing_ok=True)
        aside.rename(path)


def test_no_node_tried_to_leave() -> None:
    assert network("count") == "0"


def test_the_cut_is_real_and_counts() -> None:
    """Last seen to be 0, so what is counted now are these two tries."""
    for name, address in zip(HOSTS, ("192.0.2.1", "198.51.100.1")):
        answer = node(name).run(f"timeout 5 bash -c 'echo > /dev/tcp/{address}/80'")
        assert answer.rc != 0
    assert int(network("count")) >= 2
    network("cut")
    assert network("count") == "0"


def test_the_bundle_is_for_both_releases_of_debian() -> None:
    assert manifest()["made_for"]["systems"] == ["debian-12-amd64", "debian-13-amd64"]
    assert {system(name) for name in HOSTS} == set(manifest()["made_for"]["systems"])


def test_the_job_was_trained_by_all_nodes() -> None:
    assert (job()["state"], job()["world_size_seen"]) == ("succeeded", len(HOSTS))
    assert "target 0.95 reached" in on("lab1", f"cat {JOBS}/digits/launcher.log")


@pytest.mark.parametrize("name", HOSTS)
def test_the_image_is_that_of_the_bundle(name: str) -> None:
    assert inspect(name, "image", manifest()["image"]["name"])["RepoTags"] == [manifest()["image"]["name"]]


@pytest.mark.parametrize("name", HOSTS)
def test_no_trace_of_the_source_remains(name: str) -> None:
    assert on(name, "ls -d /var/lib/swarmspeed-bundle* 2>/dev/null || true") == ""
    assert on(name, "grep -rl swarmspeed-bundle /etc /var/lib/apt || true") == ""
    assert on(name, "apt-config dump Dir::Etc::sourcelist").strip() == 'Dir::Etc::sourcelist "sources.list";'


def test_what_was_installed_has_the_versions_of_the_bundle() -> None:
    for name in HOSTS:
        mine = [entry for entry in manifest()["files"] if entry["system"] == system(name)]
        (engine,) = [entry for entry in mine if entry["package"] == "docker.io"]
        assert on(name, "dpkg-query -W -f '${Version}' docker.io") == engine["version"]


def test_verify_finds_every_promise_kept() -> None:
    playbook("verify", *given()).done(change=False, nodes=HOSTS)


@pytest.mark.parametrize("name", HOSTS)
def test_the_data_set_is_that_of_the_bundle(name: str) -> None:
    entries = [entry for entry in manifest()["files"] if entry["kind"] == "asset"]
    found = on(name, f"sha256sum < {CLUSTER_ROOT}/assets/offline/needs.yml").split()[0]
    assert [entry["sha256"] for entry in entries] == [found]


def test_a_data_set_that_is_not_in_the_bundle_is_refused() -> None:
    other = [{"name": "other", "folder": str(DATA)}]
    run = playbook("site", *variables(cluster_bundle=str(BUNDLE), assets_sources=other))
    run.refused("assets_sources: other: it is not in the bundle as it is requested.")


@pytest.mark.parametrize(
    ("part", "data", "text"),
    [
        ("apt/debian-13-amd64/Packages", b"", "apt/debian-13-amd64/Packages has 0 bytes"),
        ("deb", None, ".deb is missing. "),
        ("manifest.json", None, "has no manifest.json"),
    ],
)
def test_a_bundle_that_is_not_whole_is_refused(part: str, data: bytes | None, text: str) -> None:
    name = next(entry["path"] for entry in manifest()["files"] if entry["kind"] == "deb") if part == "deb" else part
    with changed(BUNDLE / name, data):
        site().refused_by(DAMAGED).refused(text)


def test_one_wrong_byte_is_enough() -> None:
    path = BUNDLE / next(entry["path"] for entry in manifest()["files"] if entry["kind"] == "deb")
    data = path.read_bytes()
    with changed(path, bytes([data[0] ^ 1]) + data[1:]):
        site().refused_by(DAMAGED).refused(f"{path.relative_to(BUNDLE)} is damaged")


def test_a_bundle_for_other_variables_is_refused() -> None:
    run = site(docker_source="docker").refused_by(DAMAGED)
    run.refused(f"was made on {manifest()['made_at']} with docker_source: ", "Remedy: set docker_source back, ")


def test_a_bundle_whose_image_an_earlier_release_built_is_refused_by_what_it_lacks() -> None:
    document = manifest()
    del document["image"]["holds"]  # as earlier releases wrote it
    with changed(BUNDLE / "manifest.json", json.dumps(document).encode()):
        run = site().refused_by(DAMAGED)
    run.refused(f"its image {document['image']['name']} lacks libibverbs1, ibverbs-providers, py-spy", "bundle.yml -i ")


def test_a_host_that_is_not_covered_is_refused() -> None:
    document = manifest()
    document["made_for"]["systems"] = ["debian-12-amd64"]
    with changed(BUNDLE / "manifest.json", json.dumps(document).encode()):
        site().refused_by(("bundle_systems", "lab2")).refused("is debian-13-amd64, ")


def test_after_all_this_nothing_is_to_be_repaired_and_no_one_tried_to_leave() -> None:
    site().done(change=False, nodes=HOSTS)
    assert network("count") == "0"
