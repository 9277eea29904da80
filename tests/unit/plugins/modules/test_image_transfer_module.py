# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""image_transfer's steps on a spool of its own: a real process in the background, a fake engine."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer import spool as image_spool
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_image
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.run import Transfer
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.spool import running
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.steps import step
from ansible_collections.swarmspeed.cluster.plugins.modules import image_transfer

needs_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
MINE = "ssh-ed25519 AAAA me@desk\n"


IMAGE = {
    "Id": "sha256:i",
    "Os": "linux",
    "Architecture": "x86_64",
    "RootFS": {"Layers": ["sha256:a", "sha256:b"]},
}


class FakeEngine:
    """An engine of overlay2 with one image of two layers, and one that was removed while it was read."""

    def __init__(self, driver: str = "overlay2") -> None:
        self.driver = driver

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answers = {
            "/info": {"Architecture": "x86_64", "DockerRootDir": "/", "DriverStatus": [["driver-type", self.driver]]},
            "/images/json": [{"Id": "sha256:i"}, {"Id": "sha256:gone"}],
            "/images/sha256:i/json": IMAGE,
            "/images/t/i:1/json": IMAGE,
            "/images/t/i:1/history": [{"Size": 5}, {"Size": 0}, {"Size": 7}],
        }
        if path.startswith("/images/json?filters="):
            return []
        if path not in answers:
            raise EngineError("No such image", 404)
        return answers[path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of the account, and a host key."""
    entry = tmp_path.stat()
    known = type("Entry", (), {"pw_dir": str(tmp_path), "pw_uid": entry.st_uid, "pw_gid": entry.st_gid})
    monkeypatch.setattr("pwd.getpwnam", lambda name: known)
    monkeypatch.setattr(image_spool, "HOST_KEY", str(tmp_path / "host.pub"))
    (tmp_path / "host.pub").write_text("ssh-ed25519 HOST root@h\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "authorized_keys").write_text(MINE)
    yield tmp_path


def transfer(home: Path, run: str = "r1", engine: Any = None) -> Transfer:
    return Transfer(str(home / "spool"), run, "lab2", getpass.getuser(), engine or FakeEngine())


def params(name: str, **changed: Any) -> dict[str, Any]:
    return {"step": name, "image": "t/i:1", "started_from": "desk", "part": {}, "seconds": 5, "keep": False, **changed}


PART = {
    "image": "t/i:1",
    "content": content_of_image(IMAGE),
    "layers": ["sha256:a", "sha256:b"],
    "os": "linux",
    "architecture": "amd64",
    "have": 2,
    "base": "",
    "store": "graph",
    "bytes": 0,
    "readers": {"lab3": "ssh-ed25519 READER x"},
    "sources": [
        {"name": "lab1", "address": "127.0.0.1", "port": 1, "account": "nobody", "host_key": "ssh-ed25519 H"},
    ],
}


@needs_keygen
def test_a_transfer_from_beginning_to_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{image_spool.__package__}.receive.PATIENCE", 0.0)
    keys = home / ".ssh" / "authorized_keys"
    one = transfer(home)
    gathered = step(params("start"), one)["gathered"]
    assert gathered["image"] == {
        "content": content_of_image(IMAGE),
        "layers": ["sha256:a", "sha256:b"],
        "os": "linux",
        "architecture": "amd64",
        "history": [7, 0, 5],
    }
    assert gathered["images"] == [{"id": "sha256:i", "layers": ["sha256:a", "sha256:b"]}]
    assert gathered["public_key"].startswith("ssh-ed25519 ") and gathered["host_key"].startswith("ssh-ed25519 HOST")
    spool = home / "spool"
    assert oct(spool.stat().st_mode & 0o777) == "0o700"
    assert oct((spool / "key").stat().st_mode & 0o777) == "0o600"
    pid = json.loads((spool / "lock").read_text())["pid"]
    try:
        assert running(pid) and pid != os.getpid()

        # Another one meanwhile is refused, and takes nothing of the first away.
        second = transfer(home, "r2")
        reported = step(params("start"), second)["gathered"]["running"]
        assert (reported["pid"], reported["host"], reported["started_from"], reported["run"]) == (
            pid,
            "lab2",
            "desk",
            "r1",
        )
        assert step(params("queue", seconds=0), second)["running"] == reported
        step(params("end"), second)
        assert running(pid) and (spool / "key").exists()

        step(params("allow", part=PART), one)
        assert keys.read_text().startswith(MINE) and "READER swarmspeed-transfer lab3.r1\n" in keys.read_text()
        step(params("go", part=PART), one)
        # No process listens at that address: the process reports it, in the sentence that the user will read.
        waited = step(params("wait", seconds=60), one)
        assert waited["over"] and not waited["changed"]
        assert waited["trouble"].startswith("no node offers the image any longer (lab1: ")
    finally:
        step(params("end"), one)
    assert not running(pid)
    assert keys.read_text() == MINE
    assert not spool.exists()
    assert step(params("queue"), second)["running"] == {}


@needs_keygen
def test_the_turn_comes_when_the_process_of_the_other_transfer_ends(home: Path) -> None:
    one, second = transfer(home), transfer(home, "r2")
    step(params("start"), one)
    # It is killed, as by a user: what it wrote into the lock stays, and counts for nothing.
    killer = threading.Timer(0.5, os.kill, (json.loads((home / "spool" / "lock").read_text())["pid"], 9))
    killer.start()
    assert step(params("queue", seconds=60), second)["running"] == {}
    killer.join()
    assert (home / "spool" / "lock").read_text()
    assert step(params("start"), second)["gathered"]["spooled"] == {}
    step(params("end"), second)


@needs_keygen
def test_a_process_without_instructions_ends_by_itself_some_time_after_the_last_step(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transfer, "request_limit", 4.0)
    one, second = transfer(home), transfer(home, "r2")
    step(params("start"), one)
    began = time.monotonic()
    time.sleep(1.0)
    step(params("allow", part=PART), one)
    # Its controller is killed here.
    assert step(params("queue", seconds=60), second)["running"] == {}
    assert time.monotonic() - began >= 5.0
    while (home / "spool").exists():  # its folder goes after its lock
        assert time.monotonic() - began < 60.0
        time.sleep(0.01)
    assert (home / ".ssh" / "authorized_keys").read_text() == MINE


@needs_keygen
def test_what_came_stays_where_that_is_asked_for_and_a_killed_process_is_reported(home: Path) -> None:
    one = transfer(home)
    step(params("start"), one)
    spool = home / "spool"
    (spool / "blobs" / "a.part").write_bytes(b"some")
    pid = json.loads((spool / "lock").read_text())["pid"]
    os.kill(pid, 9)
    while running(pid):
        pass
    (spool / "state").write_text(json.dumps({"run": "r0", "state": "done"}))  # of another run
    waited = step(params("wait"), one)
    assert waited["trouble"] == "the process of the transfer was killed. Remedy: run again; the transfer resumes."
    for name in ("allow", "go"):
        with pytest.raises(TransferError, match="the process of this transfer is gone"):
            step(params(name, part=PART), one)
    assert not (spool / "hosts").exists() and not (spool / "part").exists(), "they could be another transfer's"
    assert (home / ".ssh" / "authorized_keys").read_text() == MINE
    step(params("end", keep=True), one)
    assert sorted(path.name for path in spool.iterdir()) == ["blobs", "lock"]
    assert [path.name for path in (spool / "blobs").iterdir()] == ["a.part"]
    # The next one finds it.
    again = transfer(home, "r2")
    assert step(params("start"), again)["gathered"]["spooled"] == {"a.part": 4}
    step(params("end"), again)
    assert not spool.exists()


@needs_keygen
def test_an_engine_that_does_not_answer_is_an_answer(home: Path) -> None:
    class Dead(FakeEngine):
        def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
            raise EngineError("no answer from the Docker engine")

    one = transfer(home, engine=Dead())
    gathered = step(params("start"), one)["gathered"]
    assert gathered == {"trouble": "no answer from the Docker engine. Remedy: ansible-playbook site.yml --tags docker"}
    step(params("end"), one)
    assert not (home / "spool").exists()


def test_a_key_that_cannot_be_made_is_an_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = home / "ssh-keygen"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{home}/words\necho 'no entropy' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(image_spool, "find_program", lambda name: str(home / name))
    one = transfer(home)
    trouble = step(params("start"), one)["gathered"]["trouble"]
    assert trouble.startswith("ssh-keygen: no entropy. Remedy: ")
    # Without a passphrase, for which it would wait at a terminal.
    words = (home / "words").read_text().splitlines()
    assert words == ["-q", "-t", "ed25519", "-N", "", "-f", str(home / "spool" / "key")]
    assert step(params("queue", seconds=0), one)["running"] == {}


def test_what_a_transfer_left_that_was_killed_is_removed_by_the_end_of_the_next(home: Path) -> None:
    """Of another that still runs nothing is: test_a_transfer_from_beginning_to_end."""
    spool = home / "spool"
    (spool / "blobs").mkdir(parents=True)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    (spool / "lock").write_text(json.dumps({"pid": child, "run": "r1"}))
    (spool / "key").write_text("a private key")
    step(params("end"), transfer(home, "r2"))
    assert not spool.exists()


@pytest.mark.parametrize("linked", [False, True])
def test_the_lock_goes_last_as_the_next_transfer_begins_without_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    spool, elsewhere = home / "spool", home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("of the assets")
    spool.mkdir()
    if linked:
        (spool / "blobs").symlink_to(elsewhere)
    else:
        (spool / "blobs").mkdir()
        (spool / "blobs" / "a").write_text("came")
    for name in ("key", "lock", "part"):
        (spool / name).write_text("")
    beside: list[list[str]] = []
    unlink = Path.unlink

    def watched(path: Path, missing_ok: bool = False) -> None:
        if path.name == "lock":
            beside.append([one.name for one in spool.iterdir()])
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", watched)
    transfer(home).clear(keep=False)
    assert beside == [["lock"]] and not spool.exists()
    assert (elsewhere / "a").read_text() == "of the assets"


def test_a_spool_in_which_the_next_transfer_has_begun_meanwhile_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = home / "spool"
    spool.mkdir()
    (spool / "lock").write_text("")
    unlink = Path.unlink

    def followed(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        (spool / "lock").write_text("of the next")

    monkeypatch.setattr(Path, "unlink", followed)
    transfer(home).clear(keep=False)
    assert (spool / "lock").read_text() == "of the next"


def test_an_account_whose_keys_cannot_be_changed_is_an_answer(home: Path) -> None:
    (home / "second").hardlink_to(home / ".ssh" / "authorized_keys")
    trouble = step(params("start"), transfer(home))["gathered"]["trouble"]
    assert trouble.startswith(f"{home}/.ssh/authorized_keys has a second name, or belongs to another account. Remedy: ")


def test_a_transfer_that_takes_too_long_says_what_to_do() -> None:
    with pytest.raises(TransferError, match=r"^it took too long\. Remedy: check the links between the nodes"):
        image_spool._too_late(0, None)


def test_an_account_that_is_not_there_is_an_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise KeyError(name)

    one = transfer(home)
    monkeypatch.setattr("pwd.getpwnam", unknown)
    gathered = step(params("start"), one)["gathered"]
    assert gathered == {"trouble": f"there is no account {getpass.getuser()}. Remedy: correct ansible_user."}


def test_a_word_that_could_be_a_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"step": "end", "run": "../x", "place": "/x", "node": "n"}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        image_transfer.main()
    printed = json.loads(capsys.readouterr().out)
    assert printed["failed"] and printed["msg"] == "image_transfer: run: '../x'. Use letters and digits only."
