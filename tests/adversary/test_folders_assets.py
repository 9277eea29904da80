# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Somebody who can write the folder of models and data sets attacks the host through it: by its record, and by links.

Preflight refuses a configuration in which a container could. These attacks fail even so.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.facts_io import asset_facts
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.files import (
    install,
    lacking,
    prepare,
    read_record,
    remove_received,
    verify,
)
from ansible_collections.swarmspeed.cluster.plugins.modules.asset_files import absent

from tests.adversary.job_attacks import SECRET

NEW = b"new weights"
DIGEST = hashlib.sha256(NEW).hexdigest()
MANIFEST = {"digest": "d" * 64, "files": [("passwd", len(NEW), DIGEST)]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "models"
    prepare(path)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the host's, with a file that only root reads."""
    path = tmp_path / "host-etc" / "passwd"
    path.parent.mkdir()
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def untouched(victim: Path) -> bool:
    status = victim.stat()
    return (
        victim.read_text() == SECRET
        and sorted(victim.parent.iterdir()) == [victim]
        and (status.st_mode & 0o777, status.st_nlink) == (0o600, 1)
    )


def record(root: Path, *paths: Any, name: str = "net") -> None:
    """Forge a record."""
    files = {path: [1, "0" * 64, 1] for path in paths}
    (root / ".swarmspeed" / f"{name}.json").write_text(json.dumps({"digest": "x", "files": files}))


def receive(root: Path) -> None:
    (root / ".swarmspeed/incoming" / DIGEST).write_bytes(NEW)


def transfer(root: Path) -> None:
    """As a transfer does it, on a node that lacks the file."""
    receive(root)
    install(root, "net", MANIFEST, MANIFEST["files"])


UPWARDS = ("../../../host-etc/passwd", "a/../../../../host-etc/passwd", "./../../../host-etc/passwd", "..")


@pytest.mark.parametrize("path", [*UPWARDS, "ABSOLUTE", "", ".", "/", "a//b", "a\0b", "x" * 5000])
def test_a_forged_record_removes_nothing_elsewhere(root: Path, victim: Path, path: str) -> None:
    (root / "net").mkdir()
    record(root, str(victim) if path == "ABSOLUTE" else path)
    assert read_record(root, "net") == {}
    assert verify(root, "net") == []
    asset_facts({"root": str(root), "wanted": {"net": ""}})
    absent(root, False)
    assert untouched(victim)


@pytest.mark.parametrize("name", ["net", "..", "../../host-etc/passwd"])
def test_a_record_of_another_kind_is_none(root: Path, victim: Path, name: str) -> None:
    """Links to a record elsewhere, pipes and folders of its name; and names of records that lead elsewhere."""
    with suppress(OSError):
        (root / ".swarmspeed" / f"{name}.json").symlink_to(victim)
    os.mkfifo(root / ".swarmspeed" / "pipe.json")
    (root / ".swarmspeed" / "folder.json").mkdir()
    for one in (name, "pipe", "folder"):
        with suppress(OSError):
            assert read_record(root, one) == {}
    absent(root, False)
    assert untouched(victim)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"digest": "x", "files": {"a": [1e999, "", 1]}}', "nul\0", "\ud800"]
)
def test_a_record_that_is_no_record_is_none(root: Path, content: str) -> None:
    (root / ".swarmspeed/net.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert read_record(root, "net") == {}


def test_an_assets_folder_that_is_a_link_is_not_followed(root: Path, victim: Path) -> None:
    (root / "net").symlink_to(victim.parent)
    assert lacking(root, "net", MANIFEST["files"], lambda: None) == MANIFEST["files"]
    with pytest.raises(OSError, match="is a link, and containers can write here: it is not followed"):
        transfer(root)
    assert untouched(victim)
    found = asset_facts({"root": str(root), "wanted": {"net": ""}})["found"]["net"]
    assert found["there"] and not found["recorded"]


def test_recorded_files_behind_a_link_are_not_removed(root: Path, victim: Path) -> None:
    (root / "net").symlink_to(victim.parent)
    record(root, "passwd")
    assert verify(root, "net") == ["passwd"]
    absent(root, False)
    assert untouched(victim)


def test_a_folder_in_an_asset_that_is_a_link_is_not_followed(root: Path, victim: Path) -> None:
    (root / "net").mkdir()
    (root / "net/sub").symlink_to(victim.parent)
    nested = {"digest": "d" * 64, "files": [("sub/passwd", len(NEW), DIGEST)]}
    receive(root)
    with pytest.raises(OSError, match="it is not followed"):
        install(root, "net", nested, nested["files"])
    record(root, "sub/passwd")
    absent(root, False)
    assert untouched(victim)


@pytest.mark.parametrize("name", [".swarmspeed", ".swarmspeed/incoming", ".swarmspeed/net.new", ".swarmspeed/net.json"])
def test_our_own_folders_and_files_as_links_lead_nowhere(root: Path, victim: Path, name: str) -> None:
    receive(root)
    if (root / name).exists():
        (root / name).rename(root / "moved")
    (root / name).symlink_to(victim if name.endswith(".json") else victim.parent)
    for act in (
        lambda: prepare(root),
        lambda: install(root, "net", MANIFEST, MANIFEST["files"]),
        lambda: remove_received(root),
        lambda: absent(root, False),
    ):
        with suppress(OSError):
            act()
        assert untouched(victim), act


@pytest.mark.parametrize("hard", [False, True])
def test_what_was_received_is_not_replaced_by_a_file_of_the_host(root: Path, victim: Path, hard: bool) -> None:
    """It gets mode 0644 and goes to where containers read it: a link would make a secret of the host public."""
    place = root / ".swarmspeed/incoming" / DIGEST
    place.symlink_to(victim)
    if hard:
        place.unlink()
        os.mkfifo(place)
    with pytest.raises(OSError, match=r"is (a link|a named pipe), not a plain file"):
        install(root, "net", MANIFEST, MANIFEST["files"])
    assert untouched(victim)


@contextmanager
def swapping(path: Path, other: Path) -> Iterator[None]:
    """Exchange a folder and a link to another one, again and again, as fast as it goes."""
    done = threading.Event()

    def swap() -> None:
        link, kept = path.with_name("link"), path.with_name("kept")
        link.symlink_to(other)
        while not done.is_set():
            with suppress(OSError):
                path.rename(kept)
                link.rename(path)
            with suppress(OSError):
                path.rename(link)
                kept.rename(path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("swapped", ["net", "net/sub", ".swarmspeed/incoming"])
def test_folders_that_are_exchanged_for_links_meanwhile_lead_nowhere(root: Path, victim: Path, swapped: str) -> None:
    nested = {"digest": "d" * 64, "files": [("sub/passwd", len(NEW), DIGEST)]}
    (root / "net/sub").mkdir(parents=True)
    with swapping(root / swapped, victim.parent):
        for _round in range(150):
            with suppress(OSError):
                (root / ".swarmspeed/net.json").unlink()
                record(root, "sub/passwd")
                lacking(root, "net", nested["files"], lambda: None)
                verify(root, "net")
            with suppress(OSError):
                install(root, "net", nested, nested["files"])
            with suppress(OSError):
                absent(root, False)
            with suppress(OSError):
                prepare(root)
    assert untouched(victim)
