# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets on three nodes, from a stand-in for a hub: what travels, what breaks, what is left."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub_stand_in import TOKEN, Hub
from tests.playbook_run import CLUSTER_ROOT, NODES, Run, condition, node, on, playbook, start, variables

ROOT = f"{CLUSTER_ROOT}/assets"
PLACE = f"{CLUSTER_ROOT}/assets_transfer"
MIB = 1 << 20
# Only what goes to the other nodes: the controller's own connection stays fast.
SLOW = "tc qdisc add dev eth0 root tbf rate 16mbit burst 128kb latency 300ms"
QUICK = "tc qdisc del dev eth0 root 2>/dev/null; true"


class Site:
    """The stand-in for the hub, the controller's folders, and runs of role assets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir()
        (self.data / "large.csv").write_bytes(os.urandom(6 * MIB))
        (self.data / "small.csv").write_text("1,2\n")
        self.hub = Hub().begin()
        self.model = {"config.json": b"{}", "sub/model.bin": os.urandom(10 * MIB)}
        self.hub.repositories = {name: {"main": self.model} for name in ("team/net", "team/net-gated")}
        self.hub.files = {"words.txt": b"a\nb\n"}

    @property
    def sources(self) -> list[dict[str, Any]]:
        digest = hashlib.sha256(self.hub.files["words.txt"]).hexdigest()
        return [
            {"name": "net", "huggingface": {"repository": "team/net"}},
            {"name": "words", "url": f"{self.hub.address}/files/words.txt", "sha256": digest},
            {"name": "mine", "folder": str(self.data)},
        ]

    def given(self, *sources: dict[str, Any], **more: Any) -> tuple[str, ...]:
        requested = {
            "assets_sources": list(sources) or self.sources,
            "assets_cache": str(self.folder / "cache"),
            "assets_huggingface_endpoint": self.hub.address,
            **more,
        }
        return ("--tags", "assets", *variables(**requested))

    def run(self, *sources: dict[str, Any], **more: Any) -> Run:
        return playbook("site", *self.given(*sources, **more))


@pytest.fixture(scope="module", autouse=True)
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("assets"))
    yield site
    site.hub.close()


def digests(name: str, folder: str) -> dict[str, str]:
    """Return SHA-256 by path of the files below a folder of a node."""
    lines = on(name, f"cd {folder} && find . -type f -exec sha256sum {{}} +").splitlines()
    return {line[66:].removeprefix("./"): line[:64] for line in lines}


def wanted(files: dict[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}


def in_folder(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def line(run: Run, name: str) -> str:
    """Return what a run reports of a node's transfer."""
    found = re.search(rf"{name}: \d+ MiB of models and data sets [^\"]*", run.text)
    assert found, run.output[-4000:]
    return found[0]


def until(what: str, seconds: float, true: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)


def whole(site: Site) -> None:
    """Assert that every node has everything, at the same path, and nothing of a transfer."""
    for name in NODES:
        assert digests(name, f"{ROOT}/net") == wanted(dict(site.hub.repositories["team/net"]["main"]))
        assert digests(name, f"{ROOT}/words") == wanted(site.hub.files)
        assert digests(name, f"{ROOT}/mine") == wanted(in_folder(site.data))
        assert not node(name).file(PLACE).exists and not node(name).file(f"{ROOT}/.swarmspeed/incoming").exists
        assert on(name, "grep -c swarmspeed-transfer /root/.ssh/authorized_keys; true").strip() == "0"


def test_every_node_has_the_same_files_at_the_same_path(made: Site) -> None:
    made.hub.cut = 3 * MIB
    run = made.run().done(change=True)
    assert line(run, "lab1").startswith("lab1: 16 MiB of models and data sets in ")
    assert " from lab1." in line(run, "lab2") and " from lab2." in line(run, "lab3")
    whole(made)
    # The connection that broke was taken up where it ended.
    assert any(request.endswith(f"bytes={3 * MIB}-") for request in made.hub.requests)
    made.hub.requests.clear()
    made.run().done(change=False)
    assert made.hub.requests == []


def test_check_mode_predicts_and_sends_nothing(made: Site) -> None:
    (made.data / "small.csv").write_text("1,3\n")
    run = playbook("site", "--check", "--diff", *made.given()).done(change=True)
    assert f"{ROOT}/mine/small.csv: different" in run.text
    assert digests("lab2", f"{ROOT}/mine")["small.csv"] == hashlib.sha256(b"1,2\n").hexdigest()


def test_of_a_changed_folder_only_the_changed_file_travels(made: Site) -> None:
    (made.data / "small.csv").write_text("1,4\n")
    before = on("lab3", f"stat -c %i {ROOT}/mine/large.csv")
    run = made.run().done(change=True)
    assert line(run, "lab2").startswith("lab2: 0 MiB ")
    assert on("lab3", f"stat -c %i {ROOT}/mine/large.csv") == before
    whole(made)
    made.run().done(change=False)


def test_a_node_that_is_killed_does_not_stop_the_others_and_goes_on_later(made: Site) -> None:
    (made.data / "huge.bin").write_bytes(os.urandom(40 * MIB))
    with condition("lab1", f"{QUICK}; {SLOW}", QUICK):
        process = start("site", *made.given())
        try:
            incoming = f"du -sb {ROOT}/.swarmspeed/incoming 2>/dev/null | cut -f1; true"
            until("8 MB on lab3", 180, lambda: int(on("lab3", incoming) or 0) > 8 * MIB)
            pid = json.loads(on("lab2", f"cat {PLACE}/lock"))["pid"]
            on("lab2", f"kill -9 {pid}")
            output = process.communicate(timeout=400)[0]
        finally:
            process.kill()
    run = Run(process.returncode, output)
    run.refused("lab2: the process of the transfer was killed. Remedy: run again; the transfer resumes.")
    assert not node("lab2").file(f"{ROOT}/mine/huge.bin").exists
    assert digests("lab3", f"{ROOT}/mine") == wanted(in_folder(made.data))
    assert "MiB had come before" in line(made.run().done(change=True), "lab2")
    whole(made)


def test_a_data_set_that_differs_between_nodes_is_named_and_repaired(made: Site) -> None:
    on("lab2", f"echo 9,9 >> {ROOT}/mine/small.csv")
    reported = "lab2: role assets: " + f"{ROOT}/mine/small.csv is changed on the node"
    playbook("verify", *made.given()).refused(reported)
    assert made.run().done(change=True).changed["lab1"] == 0
    whole(made)
    # Same size, same time: only reading it shows that.
    on(
        "lab3",
        f"cd {ROOT}/mine && touch -r small.csv /tmp/when && echo 8,8 > small.csv && touch -r /tmp/when small.csv",
    )
    playbook("verify", *made.given()).done()
    playbook("verify", *made.given(assets_verify_digests=True)).refused("lab3: 1 files below", "mine/small.csv")
    on("lab3", f"rm {ROOT}/mine/small.csv")
    made.run().done(change=True)
    whole(made)


@pytest.mark.parametrize(
    ("source", "reported"),
    [
        ({"huggingface": {"repository": "team/net", "revision": "v9"}}, "team/net has no revision v9 on 127.0.0.1."),
        ({"huggingface": {"repository": "team/net-gated"}}, "is gated, and assets_huggingface_token is not set."),
        ({"folder": "/gone"}, "/gone is not a directory on the controller."),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_changed(
    made: Site, source: dict[str, Any], reported: str
) -> None:
    run = made.run({"name": "other", **source}).refused(reported, "Remedy: ")
    assert not any(run.changed.values())
    assert not node("lab1").file(f"{ROOT}/other").exists


def test_a_digest_that_differs_leaves_nothing(made: Site) -> None:
    source = {"name": "other", "url": f"{made.hub.address}/files/words.txt", "sha256": "0" * 64}
    made.run(source).refused("has SHA-256", f"but {'0' * 64} is requested.")
    assert not any(node(name).file(f"{ROOT}/other").exists for name in NODES)
    assert not list((made.folder / "cache/blobs").glob("*.part"))


def test_a_gated_model_comes_with_a_token_that_is_never_shown(made: Site) -> None:
    source = {"name": "gated", "huggingface": {"repository": "team/net-gated"}}
    secret = made.folder / "secret.yml"
    secret.write_text(f"assets_huggingface_token: {TOKEN}\n")
    run = playbook("site", "-vvv", *made.given(source), "--extra-vars", f"@{secret}").done(change=True)
    assert TOKEN not in run.output
    assert digests("lab3", f"{ROOT}/gated") == wanted(made.model)


def test_a_disk_that_is_too_small_on_one_node_is_refused(made: Site) -> None:
    with condition("lab2", "mkdir -p /small && mount -t tmpfs -o size=4m tmpfs /small", "umount /small; rmdir /small"):
        made.run(assets_path="/small/assets").refused_by(("assets", "lab2"))
    assert not node("lab1").file("/small").exists


def test_files_of_somebody_else_need_consent(made: Site) -> None:
    on("lab1", f"mkdir -p {ROOT}/adopted && echo mine > {ROOT}/adopted/small.csv")
    source = {"name": "adopted", "folder": str(made.data)}
    made.run(source).refused_by(("consents", "lab1"))
    assert on("lab1", f"cat {ROOT}/adopted/small.csv") == "mine"
    made.run(source, assets_allow_adopt=True).done(change=True)
    assert digests("lab1", f"{ROOT}/adopted") == wanted(in_folder(made.data))


def test_teardown_removes_them_by_consent_alone(made: Site) -> None:
    on("lab1", f"echo mine > {ROOT}/mine/own.txt")
    playbook("teardown", *made.given()).done()
    assert node("lab2").file(f"{ROOT}/net/config.json").exists
    playbook("teardown", *made.given(assets_remove=True)).done(change=True)
    assert not node("lab2").file(ROOT).exists
    assert on("lab1", f"find {ROOT} -type f").split() == [f"{ROOT}/mine/own.txt"]
    on("lab1", f"rm -r {ROOT}")
    playbook("teardown", *made.given(assets_remove=True)).done(change=False)
    shutil.rmtree(made.folder / "cache")
