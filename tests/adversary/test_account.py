# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A process of the account that logs in to a node, without its password for sudo, attacks root in its own folder."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action import bundle_collect, bundle_image, job_results
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt import bundle_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.results import ARCHIVE, pack
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.keys import MARK, rewrite, with_keys

from tests.adversary.job_attacks import SECRET, untouched

ACCOUNT = (65534, 65534)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to lose")
LINE = "ssh-ed25519 AAAA me@desk"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "account"
    (path / ".ssh").mkdir(parents=True, mode=0o700)
    keys = path / ".ssh" / "authorized_keys"
    keys.write_text(f"{LINE}\n")
    for one in (path, path / ".ssh", keys):
        os.chown(one, *ACCOUNT)
    return path


def add(home: Path) -> None:
    rewrite(home / ".ssh" / "authorized_keys", lambda text: with_keys(text, ["an added key"]), ACCOUNT)


def stays(victim: Path) -> None:
    status = victim.stat()
    assert (status.st_uid, status.st_gid, victim.read_text()) == (0, 0, SECRET) and untouched(victim)


def test_what_is_honest_works(home: Path) -> None:
    (home / ".ssh" / "authorized_keys").chmod(0o640)
    add(home)
    status = (home / ".ssh" / "authorized_keys").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (*ACCOUNT, 0o640)
    assert (home / ".ssh" / "authorized_keys").read_text() == f"{LINE}\nan added key\n"
    assert [path.name for path in (home / ".ssh").iterdir()] == ["authorized_keys"]


def test_a_folder_is_made_for_the_account(home: Path) -> None:
    (home / ".ssh" / "authorized_keys").unlink()
    (home / ".ssh").rmdir()
    add(home)
    for path in (home / ".ssh", home / ".ssh" / "authorized_keys"):
        assert (path.stat().st_uid, path.stat().st_mode & 0o077) == (ACCOUNT[0], 0)


PLANTED: dict[str, Callable[[Path, Path], Any]] = {
    "a link": lambda path, victim: path.symlink_to(victim),
    "a link to a file that is to be": lambda path, victim: path.symlink_to(victim.parent / "new"),
    "a pipe": lambda path, _victim: os.mkfifo(path),
    "a folder": lambda path, _victim: path.mkdir(),
    "a hard link": lambda path, victim: path.hardlink_to(victim),
}


@pytest.mark.parametrize("plant", PLANTED)
def test_a_name_that_is_known_is_not_used(home: Path, victim: Path, plant: str) -> None:
    """As it was until now, with a file of root's given away."""
    PLANTED[plant](home / ".ssh" / f"authorized_keys.{MARK}", victim)
    add(home)
    stays(victim)
    assert "an added key" in (home / ".ssh" / "authorized_keys").read_text()


@pytest.mark.parametrize("plant", PLANTED)
def test_the_file_itself_is_something_else(home: Path, victim: Path, plant: str) -> None:
    keys = home / ".ssh" / "authorized_keys"
    keys.unlink()
    PLANTED[plant](keys, victim)
    with pytest.raises(FolderError, match=r"Remedy: make it a plain file of the account's own|Remedy: make /"):
        add(home)
    stays(victim)


@pytest.mark.parametrize("number", range(2))
def test_its_folder_is_a_link_or_a_pipe(home: Path, victim: Path, number: int) -> None:
    (home / ".ssh").rename(home / "aside")
    if number:
        os.mkfifo(home / ".ssh")
    else:
        (home / ".ssh").symlink_to(victim.parent)
    with pytest.raises(FolderError, match=r"and the account can write here: it is not followed"):
        add(home)
    stays(victim)


@pytest.mark.parametrize("name", ["open", "rename", "mkdir", "fchown", "fstat", "stat", "fchmod"])
@pytest.mark.parametrize("what", ["file", "folder", "no folder"])
def test_it_becomes_a_link_meanwhile(
    home: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    if what == "no folder":
        (home / ".ssh").rename(home / "aside")
    original = getattr(os, name)
    done: list[Path] = []

    def task_input() -> None:
        for path in [home / ".ssh" / "authorized_keys"] if what == "file" else [home / ".ssh"]:
            if not done and path.exists() and not path.is_symlink():
                done.append(path)
                path.rename(home / "moved")
                path.symlink_to(victim if what == "file" else victim.parent)

    def replaced(*args: Any, **given: Any) -> Any:
        result = original(*args, **given)
        if not done:
            monkeypatch.setattr(os, name, original)
            task_input()
            if not done:
                monkeypatch.setattr(os, name, replaced)
        return result

    monkeypatch.setattr(os, name, replaced)
    try:
        add(home)
    except FolderError as error:
        assert "Remedy: " in str(error)
    stays(victim)


def test_it_is_on_the_disk_before_it_has_the_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str) -> None:
        original = getattr(os, name)

        def call(*args: Any, **given: Any) -> Any:
            calls.append(name)
            return original(*args, **given)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("rename")
    add(home)
    assert calls == ["fsync", "rename", "fsync"]


# --- what is fetched: root writes it where the account can write, and gives it away


@pytest.mark.parametrize("plant", ["a link", "a link to a file that is to be", "a hard link", "a pipe"])
def test_what_is_fetched_is_written_through_no_link(tmp_path: Path, victim: Path, plant: str) -> None:
    work = tmp_path / "ansible-tmp"
    work.mkdir()
    (tmp_path / "debs").mkdir()
    PLANTED[plant](work / ARCHIVE, victim)
    pack(UntrustedFolder(tmp_path / "debs"), [], work / ARCHIVE, 1 << 30)
    stays(victim)
    (work / ARCHIVE).unlink()
    PLANTED[plant](work / ARCHIVE, victim)
    bundle_io.pack([], tmp_path / "debs", work / ARCHIVE)
    stays(victim)
    assert tarfile.is_tarfile(work / ARCHIVE) and not (work / ARCHIVE).is_symlink()


@pytest.mark.parametrize("module", [job_results, bundle_collect, bundle_image])
def test_what_is_fetched_is_given_away_through_no_link(tmp_path: Path, victim: Path, module: Any) -> None:
    """The command that each runs, where a link has been put in the place of what root wrote."""
    work = tmp_path / "ansible-tmp"
    work.mkdir()
    os.chown(work, *ACCOUNT)
    commands: list[list[str]] = []

    class Done(Exception):
        pass

    class Action(module.ActionModule):  # type: ignore[misc]  # given as a parameter
        def __init__(self) -> None:
            shell = SimpleNamespace(tmpdir=str(work), join_path=os.path.join)
            self._connection = SimpleNamespace(_shell=shell, fetch_file=self._stop)

        def _stop(self, *_args: object) -> None:
            raise Done

        def _execute_module(self, module_args: Any, **_given: Any) -> dict[str, Any]:
            words = module_args["argv"]
            if words[0] == "chown":
                (work / "x").unlink(missing_ok=True)
                (work / words[-1].rpartition("/")[2]).symlink_to(victim)
                commands.append(words)
                subprocess.run(words, check=True)
            return {"rc": 0, "stdout": "0" * 64}

    action = Action()
    with pytest.raises(Done):
        if module is job_results:
            action._take("gpu1", str(work), {}, tmp_path / "place", {})
        elif module is bundle_image:
            action._save("image", tmp_path / "bundle" / "image" / "x.tar", {})
        else:
            action._readable(str(work / "packages.tar"), {})
            raise Done
    assert len(commands) == 1
    stays(victim)


def test_a_tar_is_still_what_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_text("1")
    pack(UntrustedFolder(tmp_path / "files"), ["x"], tmp_path / ARCHIVE, 1 << 30)
    with tarfile.open(tmp_path / ARCHIVE) as archive:
        assert archive.getnames() == ["x"]
