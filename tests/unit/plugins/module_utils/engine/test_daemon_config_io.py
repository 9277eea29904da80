# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The file on its disk: replaced as a whole, with its owner and mode, and only while it holds what its reader saw."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.text_file import TextFileError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_io import (
    PRIVATE,
    PUBLIC,
    ConfigFile,
    ForeignEditError,
    LocalHost,
    readable_by_all,
    unbroken,
)


def mode(path: Path | str) -> int:
    return Path(path).stat().st_mode & 0o7777


def inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "docker" / "daemon.json"


@pytest.mark.parametrize("wanted", [PUBLIC, PRIVATE])
def test_a_new_file_and_its_folder(path: Path, wanted: int) -> None:
    file = ConfigFile(str(path))
    assert file.read() is None
    assert file.keep() is None or pytest.fail("there is nothing to keep")
    candidate = file.stage(b"{}", mode=wanted)
    assert not path.exists()
    file.commit(candidate, None)
    file.discard(candidate)
    assert path.read_bytes() == b"{}"
    assert mode(path) == wanted
    assert mode(path.parent) == 0o755
    assert inside(path.parent) == ["daemon.json"]


def test_a_file_keeps_its_mode_and_its_links(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    prepared: list[int] = []
    file = ConfigFile(str(link), lambda candidate: prepared.append(mode(candidate)))
    candidate = file.stage(b"new", mode=PUBLIC)
    assert Path(candidate).parent == path.parent
    assert prepared == [0o640]
    kept = file.keep()
    assert kept is not None
    file.commit(candidate, b"old")
    assert link.is_symlink()
    assert (path.read_bytes(), mode(path)) == (b"new", 0o640)
    path.chmod(0o600)
    file.commit(kept, b"new")
    assert (path.read_bytes(), mode(path)) == (b"old", 0o640)
    assert inside(path.parent) == ["daemon.json"]


def test_a_candidate_elsewhere_is_private_and_the_target_untouched(path: Path, tmp_path: Path) -> None:
    file = ConfigFile(str(path), lambda candidate: pytest.fail("this candidate never becomes the file"))
    candidate = file.stage(b"{}", str(tmp_path))
    assert mode(candidate) == PRIVATE
    assert not path.parent.exists()
    file.discard(candidate)
    file.discard(candidate)
    assert inside(tmp_path) == []


def test_a_foreign_edit(path: Path) -> None:
    file = ConfigFile(str(path))
    candidate = file.stage(b"new")
    path.write_bytes(b"theirs")
    for expected in (None, b"old"):
        with pytest.raises(ForeignEditError):
            file.commit(candidate, expected)
        with pytest.raises(ForeignEditError):
            file.remove(expected)
    assert path.read_bytes() == b"theirs"
    file.remove(b"theirs")
    assert not path.exists()


def test_the_candidate_goes_when_it_cannot_be_prepared(path: Path) -> None:
    def ends(candidate: str) -> None:
        raise SystemExit(1)

    with pytest.raises(SystemExit):
        ConfigFile(str(path), ends).stage(b"{}")
    assert inside(path.parent) == []


def test_trouble_is_reported_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b" / "daemon.json"
    with pytest.raises(TextFileError, match=r"/a/b/daemon\.json: cannot be written: No such file or directory$"):
        ConfigFile(str(deep)).stage(b"{}")
    with pytest.raises(TextFileError, match=r"is a directory; name the file itself$"):
        ConfigFile(str(tmp_path)).read()
    path = tmp_path / "daemon.json"
    path.write_bytes(b"old")
    file = ConfigFile(str(path))
    candidate = file.stage(b"new")
    Path(candidate).unlink()
    with pytest.raises(TextFileError, match=r"daemon\.json: cannot be replaced: No such file or directory$"):
        file.commit(candidate, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TextFileError, match=r"daemon\.json: cannot be written: No space left on device$"):
        file.stage(b"new")
    assert inside(tmp_path) == ["daemon.json"]
    assert path.read_bytes() == b"old"


def test_who_can_read_it(path: Path) -> None:
    path.parent.mkdir()
    assert readable_by_all(str(path)) is False
    path.write_bytes(b"")
    path.chmod(0o644)
    assert readable_by_all(str(path)) is True
    path.chmod(0o640)
    assert readable_by_all(str(path)) is False


def test_a_broken_connection_does_not_end_it_half_way() -> None:
    former = signal.getsignal(signal.SIGHUP)
    with pytest.raises(ZeroDivisionError), unbroken():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGHUP) == former


def test_the_host(tmp_path: Path) -> None:
    host = LocalHost()
    assert host.run(["sh", "-c", "echo a; exit 3"], 5).rc == 3
    assert host.program("sh")
    assert host.text(str(tmp_path / "none")) == host.text("\0") == host.text(str(tmp_path)) == ""
    (tmp_path / "e").write_bytes(b"A=\xff")
    assert host.text(str(tmp_path / "e")) == "A=\ufffd"
    assert isinstance(host.systemd(), bool)
    before = host.monotonic(), host.now()
    host.sleep(0.001)
    assert host.monotonic() > before[0]
    assert host.now() >= before[1]
