# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""asset_transfer's steps on nodes that are folders here: real processes in the background, pipes in place of ssh."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import spool, spool_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.pieces import pieces, write_piece
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.run import AssetTransfer
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.steps import step
from ansible_collections.swarmspeed.cluster.plugins.modules import asset_transfer
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import digest_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.transfer.assets import plan

needs_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
NODES = ("lab1", "lab2", "lab3")
MINE = "ssh-ed25519 AAAA me@desk\n"
pytestmark = needs_keygen


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Cluster:
    """The nodes' folders, and the controller's files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, 0
        self.files: dict[str, bytes] = {}
        self.spoiled: dict[str, bytes] = {}

    def root(self, node: str) -> Path:
        return self.folder / node / "assets"

    def manifest(self) -> dict[str, Any]:
        files = [[path, len(data), sha256(data)] for path, data in self.files.items()]
        return {"digest": digest_of(files), "files": files}

    def transfers(self, nodes: tuple[str, ...] = NODES) -> dict[str, AssetTransfer]:
        self.run += 1
        me = getpass.getuser()
        return {
            name: AssetTransfer(str(self.folder / name / "spool"), f"r{self.run}", name, me, str(self.root(name)))
            for name in nodes
        }

    def params(self, name: str, **changed: Any) -> dict[str, Any]:
        more = {"started_from": "desk", "part": {}, "seconds": 60, "keep": False, "archive": None, "listed": None}
        return {"step": name, **more, **changed}

    def start(self, transfers: Mapping[str, AssetTransfer]) -> dict[str, Any]:
        listed = self.folder / "listed.json"
        listed.write_text(json.dumps({"model": self.manifest()}))
        return {
            name: step(self.params("start", listed=str(listed)), one)["gathered"] for name, one in transfers.items()
        }

    def feed(self, one: AssetTransfer, most: int | None = None, size: int = 100) -> int:
        """Send what is lacking, in small pieces, ``most`` at most. Return the bytes."""
        needed = step(self.params("feed"), one)["needed"]
        sizes = {sha256(data): len(data) for data in self.files.values()}
        store = self.folder / "controller"
        store.mkdir(exist_ok=True)
        for path, data in self.files.items():
            (store / sha256(data)).write_bytes(self.spoiled.get(path, data))
        sent = 0
        for number, piece in enumerate(pieces([(name, sizes[name], came) for name, came in needed.items()], size)):
            if most is not None and number >= most:
                break
            archive = self.folder / "piece.tar"
            with archive.open("wb") as out:
                write_piece(out, piece, {name: store / name for name in sizes})
            step(self.params("feed", archive=str(archive)), one)
            sent += sum(count for dummy, offset, count in piece)
        return sent

    def distribute(self, nodes: tuple[str, ...] = NODES) -> tuple[dict[str, dict[str, Any]], int]:
        """Do all steps. Return what each node reported at the end, and what the controller sent."""
        transfers = self.transfers(nodes)
        try:
            gathered = self.start(transfers)
            made = plan(gathered, nodes, dict.fromkeys(nodes, "127.0.0.1"), {})
            assert made["problems"] == []
            for name in ("allow", "go"):
                for node, one in transfers.items():
                    step(self.params(name, part=made["parts"][node]), one)
            sent = self.feed(transfers[nodes[0]])
            waited = {node: step(self.params("wait"), one) for node, one in transfers.items()}
        finally:
            for one in transfers.values():
                step(self.params("end"), one)
        return waited, sent

    def content(self, node: str) -> dict[str, bytes]:
        folder = self.root(node) / "model"
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    entry = tmp_path.stat()
    known = type("Entry", (), {"pw_dir": str(tmp_path), "pw_uid": entry.st_uid, "pw_gid": entry.st_gid})
    monkeypatch.setattr("pwd.getpwnam", lambda name: known)
    monkeypatch.setattr(spool, "HOST_KEY", str(tmp_path / "host.pub"))
    (tmp_path / "host.pub").write_text("ssh-ed25519 HOST root@h\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "authorized_keys").write_text(MINE)

    def connect(source: Mapping[str, Any]) -> list[str]:
        return [sys.executable, "-B", str(tmp_path / source["name"] / "spool" / "serve.py")]

    monkeypatch.setattr(spool_io, "ssh_command", connect)
    made = Cluster(tmp_path)
    made.files = {
        "config.json": b"{}",
        "weights/1.bin": bytes(range(256)) * 5,
        "weights/2.bin": b"b" * 700,
        "none": b"",
    }
    yield made
    assert (tmp_path / ".ssh" / "authorized_keys").read_text() == MINE


def test_all_nodes_have_the_files_and_the_controller_sends_them_once(cluster: Cluster) -> None:
    waited, sent = cluster.distribute()
    assert [(one["over"], one["trouble"], one["changed"]) for one in waited.values()] == [(True, "", True)] * 3
    assert sent == sum(map(len, cluster.files.values()))
    assert waited["lab1"]["received"] == {}
    assert waited["lab2"]["received"] == {"lab1": sent} and waited["lab3"]["received"] == {"lab2": sent}
    for node in NODES:
        assert cluster.content(node) == cluster.files
        root = cluster.root(node)
        assert sorted(path.name for path in root.iterdir()) == [".swarmspeed", "model"]
        assert [path.name for path in (root / ".swarmspeed").iterdir()] == ["model.json"]
        assert not (cluster.folder / node / "spool").exists()
        assert oct((root / "model/weights").stat().st_mode & 0o777) == "0o755"
        assert oct((root / "model/weights/1.bin").stat().st_mode & 0o777) == "0o644"


def test_only_a_file_that_changed_travels_and_one_that_is_listed_no_longer_goes(cluster: Cluster) -> None:
    cluster.distribute()
    (cluster.root("lab2") / "model/own.txt").write_text("mine")
    before = (cluster.root("lab3") / "model/weights/1.bin").stat().st_ino
    cluster.files["config.json"] = b'{"a": 1}'
    del cluster.files["weights/2.bin"]
    waited, sent = cluster.distribute()
    assert [one["trouble"] for one in waited.values()] == [""] * 3
    assert sent == 8 and waited["lab3"]["received"] == {"lab2": 8}
    assert cluster.content("lab1") == cluster.content("lab3") == cluster.files
    assert cluster.content("lab2") == {**cluster.files, "own.txt": b"mine"}
    assert (cluster.root("lab3") / "model/weights/1.bin").stat().st_ino == before


def test_a_node_that_has_all_gives_to_one_that_is_new_and_the_controller_sends_nothing(cluster: Cluster) -> None:
    cluster.distribute(("lab1",))
    waited, sent = cluster.distribute(("lab1", "lab2"))
    assert sent == 0 and [one["trouble"] for one in waited.values()] == ["", ""]
    assert (waited["lab1"]["changed"], waited["lab2"]["changed"]) == (False, True)
    assert sum(waited["lab2"]["received"].values()) == sum(map(len, cluster.files.values()))
    assert cluster.content("lab2") == cluster.files


def test_a_transfer_that_was_killed_goes_on_where_it_was(cluster: Cluster) -> None:
    transfers = cluster.transfers()
    gathered = cluster.start(transfers)
    made = plan(gathered, NODES, dict.fromkeys(NODES, "127.0.0.1"), {})
    for name in ("allow", "go"):
        for node, one in transfers.items():
            step(cluster.params(name, part=made["parts"][node]), one)
    sent = cluster.feed(transfers["lab1"], most=8)
    for node, one in transfers.items():
        os.kill(json.loads((cluster.folder / node / "spool/lock").read_text())["pid"], 9)
        assert not (cluster.root(node) / "model").exists()
        step(cluster.params("end", keep=True), one)
    waited, rest = cluster.distribute()
    assert 0 < sent < sum(map(len, cluster.files.values()))
    assert sent + rest == sum(map(len, cluster.files.values())) and waited["lab1"]["resumed"] == sent
    assert all(cluster.content(node) == cluster.files for node in NODES)


def test_a_file_that_changed_on_the_controller_meanwhile_is_put_nowhere(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{spool.__package__}.receive.PATIENCE", 0.0)
    cluster.spoiled = {"weights/2.bin": b"c" * 700}
    waited, dummy = cluster.distribute(("lab1", "lab2"))
    assert waited["lab1"]["trouble"] == (
        "model/weights/2.bin does not have the digest that was planned. Remedy: run again; where its source is a "
        "folder of the controller, let no one write there meanwhile."
    )
    assert waited["lab2"]["trouble"].startswith("no node offers the files any longer (lab1: ")
    assert not (cluster.root("lab1") / "model").exists() and not (cluster.root("lab2") / "model").exists()


def test_nothing_more_is_taken_once_it_has_failed(cluster: Cluster) -> None:
    cluster.spoiled = {"config.json": b"[]"}
    transfers = cluster.transfers(("lab1",))
    one = transfers["lab1"]
    try:
        made = plan(cluster.start(transfers), ("lab1",), {"lab1": "127.0.0.1"}, {})
        step(cluster.params("allow", part=made["parts"]["lab1"]), one)
        step(cluster.params("go", part=made["parts"]["lab1"]), one)
        cluster.feed(one, most=1)
        reported = step(cluster.params("wait"), one)["trouble"]
        assert reported.startswith("model/config.json does not have the digest that was planned. ")
        with pytest.raises(TransferError, match=r"^model/config\.json does not have the digest that was planned\. "):
            cluster.feed(one)
    finally:
        step(cluster.params("end"), one)


def test_a_damaged_file_of_a_node_that_gives_is_named(cluster: Cluster) -> None:
    cluster.distribute(("lab1",))
    place = cluster.root("lab1") / "model/weights/2.bin"
    found = place.stat()
    place.write_bytes(b"x" * 700)
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))
    waited, dummy = cluster.distribute(("lab1", "lab2"))
    assert waited["lab2"]["trouble"] == (
        "model/weights/2.bin does not have its digest, and did not when it was fetched once more from lab1. "
        "Remedy: check the disk of lab1, and run again."
    )
    assert not (cluster.root("lab2") / "model").exists()


def test_what_lies_there_with_the_right_digest_is_not_sent(cluster: Cluster) -> None:
    folder = cluster.root("lab1") / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(b"{}")
    (folder / "none").write_bytes(b"x")
    dummy, sent = cluster.distribute(("lab1",))
    assert sent == sum(map(len, cluster.files.values())) - 2
    assert cluster.content("lab1") == cluster.files


def test_a_folder_in_the_way_is_named_and_another_transfer_reported(cluster: Cluster) -> None:
    place = cluster.root("lab1") / "model/config.json"
    place.mkdir(parents=True)
    waited, dummy = cluster.distribute(("lab1",))
    reported = waited["lab1"]["trouble"]
    assert reported.startswith(f"{place.parent} cannot be put in place ([Errno 21] Is a directory: ")
    assert reported.endswith(" Remedy: move what is in the way, and run again; the transfer resumes.")
    first, second = cluster.transfers(("lab1",)), cluster.transfers(("lab1",))
    try:
        cluster.start(first)
        problems = plan(cluster.start(second), ("lab1",), {"lab1": "127.0.0.1"}, {})["problems"]
        assert "another transfer of models and data sets has been running there since" in problems[0]
        assert step(cluster.params("queue", seconds=0), second["lab1"])["running"]["started_from"] == "desk"
    finally:
        step(cluster.params("end"), first["lab1"])
    assert step(cluster.params("queue", seconds=0), second["lab1"])["running"] == {}


def test_a_word_that_could_be_a_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"step": "end", "run": "../x", "place": "/x", "root": "/x", "node": "n"}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        asset_transfer.main()
    printed = json.loads(capsys.readouterr().out)
    assert printed["failed"] and printed["msg"] == "asset_transfer: run: '../x'. Use letters and digits only."
