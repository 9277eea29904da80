# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container attacks the host through the workspace. Races are in test_folders_races.py."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.unpack import ArchiveError, unpack
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import system_io
from ansible_collections.swarmspeed.cluster.plugins.modules import mounted_files, node_facts

from tests.adversary.job_attacks import SECRET, untouched


def archive(tmp_path: Path, *members: tarfile.TarInfo | str) -> str:
    """What unpack is given; a text stands for a plain file of that name."""
    path = tmp_path / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for member in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = 3
            file.addfile(info, io.BytesIO(b"new") if info.isreg() else None)
    return str(path)


def special(name: str, kind: bytes, to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


# --- reading


@pytest.mark.parametrize(
    "plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: sparse(path, 1 << 42)]
)
def test_a_workspace_that_never_ends_is_a_file_that_differs(workspace: Path, plant: Callable[[Path], Any]) -> None:
    plant(workspace / "train.py")
    begun = time.monotonic()
    assert system_io.tree_digests(str(workspace), ["train.py"]) == {"train.py": None}
    assert time.monotonic() - begun < 1


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def test_no_digest_of_a_file_of_the_host(workspace: Path, victim: Path) -> None:
    (workspace / "train.py").symlink_to(victim)
    (workspace / "sub").symlink_to(victim.parent)
    assert set(system_io.tree_digests(str(workspace), ["train.py", "sub/secret", "../../host/secret"]).values()) == {
        None
    }


@pytest.mark.parametrize("place", [".vscode", ".vscode/launch.json"])
def test_no_content_of_a_file_of_the_host(
    workspace: Path, victim: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    victim.rename(victim.parent / "launch.json")
    (workspace / place).parent.mkdir(exist_ok=True)
    (workspace / place).symlink_to(victim.parent if place == ".vscode" else victim.parent / "launch.json")
    requested = {"path": str(workspace / ".vscode/launch.json"), "content": True}
    args = {"files": [requested], "trees": {str(workspace): {}}, "docker_socket": "/none"}
    with patch_module_args(args), pytest.raises(SystemExit):
        node_facts.main()
    printed = capsys.readouterr().out
    assert SECRET not in printed
    assert json.loads(printed)["ansible_facts"]["swarmspeed"]["files"][requested["path"]]["exists"] is False


# --- writing


def test_unpacking_replaces_a_link_and_goes_through_none(workspace: Path, victim: Path, tmp_path: Path) -> None:
    (workspace / "secret").symlink_to(victim)
    (workspace / "mine").write_text("stays")
    assert unpack(archive(tmp_path, "secret", "sub/train.py"), UntrustedFolder(workspace)) == ["secret", "sub/train.py"]
    assert (workspace / "secret").read_text() == "new" and not (workspace / "secret").is_symlink()
    assert (workspace / "mine").read_text() == "stays" and untouched(victim)
    (workspace / "out").symlink_to(victim.parent)
    for name in ("out/secret", "out/new", "out/deeper/new"):
        with pytest.raises(FolderError) as caught:
            unpack(archive(tmp_path, name), UntrustedFolder(workspace))
        assert f"{workspace}/out is a link" in str(caught.value) and "Remedy: " in str(caught.value)
    assert untouched(victim)


@pytest.mark.parametrize(
    "member",
    [
        "../host/secret",
        "sub/../../../host/secret",
        "/tmp/owned",
        special("out", tarfile.SYMTYPE, "../../host"),
        special("out", tarfile.LNKTYPE, "first"),
        special("out", tarfile.FIFOTYPE),
        special("out", tarfile.CHRTYPE),
        special("out", tarfile.BLKTYPE),
        special("a\x1b[2J", tarfile.SYMTYPE, "\x1b[2J"),
    ],
)
def test_a_hostile_member_is_refused_before_anything_is_written(
    workspace: Path, victim: Path, tmp_path: Path, member: tarfile.TarInfo | str
) -> None:
    with pytest.raises(ArchiveError) as caught:
        unpack(archive(tmp_path, "first", member), UntrustedFolder(workspace))
    assert str(caught.value).isprintable() and "Nothing was unpacked. Remedy: " in str(caught.value)
    assert list(workspace.iterdir()) == [] and untouched(victim)


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03cut"])
def test_what_is_no_archive_is_one_error(workspace: Path, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "archive").write_bytes(data)
    with pytest.raises(ArchiveError, match=r"cannot be read: .*Remedy: send it again"):
        unpack(str(tmp_path / "archive"), UntrustedFolder(workspace))


def test_a_setuid_member_becomes_a_plain_program(workspace: Path, tmp_path: Path) -> None:
    program = tarfile.TarInfo("program")
    program.mode = 0o6755
    unpack(archive(tmp_path, program), UntrustedFolder(workspace))
    assert (workspace / "program").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("place", [".vscode", ".vscode/launch.json"])
def test_launch_json_is_written_through_no_link(workspace: Path, victim: Path, place: str) -> None:
    (workspace / place).parent.mkdir(exist_ok=True)
    (workspace / place).symlink_to(victim.parent if place == ".vscode" else victim)
    wanted = {"path": ".vscode/launch.json", "content": "{}", "mode": "0644"}
    requested: dict[str, Any] = {
        "root": str(workspace),
        "archive": None,
        "whole": None,
        "absent": [],
        "files": [wanted],
    }
    if place == ".vscode":
        with pytest.raises(FolderError, match="is a link, and containers can write here"):
            mounted_files.apply(requested, False)
    else:
        assert mounted_files.apply(requested, False)["changed"] is True
        assert mounted_files.apply(requested, False)["changed"] is False
    assert untouched(victim)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a//b", ".", "", "a\0b", "x" * 300])
def test_a_path_that_leads_out_is_refused(workspace: Path, name: str) -> None:
    folder = UntrustedFolder(workspace)
    for use in (folder.read, folder.digest, folder.remove, folder.kind, lambda name: folder.write(name, b"")):
        if name == "" and use == folder.kind:
            continue
        with pytest.raises((FolderError, ValueError)):
            use(name)
    assert list(workspace.iterdir()) == []
