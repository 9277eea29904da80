# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A text file replaced atomically: what is written, what is left alone, what check mode does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import text_file
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.text_file import (
    Found,
    TextFileError,
    apply,
    left_alone,
    read,
)


class FakeModule:
    """Records what a module would do to attributes; moves files for real."""

    def __init__(self, tmpdir: Path, check_mode: bool = False, attributes: dict[str, Any] | None = None) -> None:
        self.params: dict[str, Any] = {"mode": "0644", "unsafe_writes": False}
        self.check_mode = check_mode
        self.tmpdir = str(tmpdir)
        self.attributes = attributes
        self.calls: list[tuple[str, ...]] = []

    def atomic_move(self, src: str, dest: str, unsafe_writes: bool = False) -> None:
        self.calls.append(("move", dest))
        shutil.move(src, dest)

    def backup_local(self, fn: str) -> str:
        self.calls.append(("backup", fn))
        shutil.copy(fn, f"{fn}.copy")
        return f"{fn}.copy"

    def load_file_common_arguments(self, params: dict[str, Any], path: str | None = None) -> dict[str, Any]:
        return {"path": path, "mode": params["mode"]}

    def set_fs_attributes_if_different(
        self, file_args: dict[str, Any], changed: bool, diff: dict[str, Any] | None = None
    ) -> bool:
        self.calls.append(("attributes", str(file_args["path"])))
        if self.attributes is not None and diff is not None:
            diff.update(self.attributes)
        return self.attributes is not None or changed

    def warn(self, warning: str) -> None:
        self.calls.append(("warn", warning))


@pytest.fixture
def spare(tmp_path: Path) -> Path:
    folder = tmp_path / "spare"
    folder.mkdir()
    return folder


def test_a_new_file(tmp_path: Path, spare: Path) -> None:
    path = str(tmp_path / "file")
    module = FakeModule(spare)
    result = apply(module, read(path), "ä\r\n")
    assert Path(path).read_bytes() == b"\xc3\xa4\r\n"
    assert result == {
        "changed": True,
        "diff": [{"before_header": path, "after_header": path, "before": "", "after": "ä\r\n"}],
    }
    assert not list(spare.iterdir())


def test_an_equal_file_is_not_touched(tmp_path: Path, spare: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    before = path.stat()
    module = FakeModule(spare)
    assert apply(module, read(str(path)), "a\n", backup=True) == {"changed": False, "diff": []}
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert module.calls == [("attributes", str(path))]


def test_attributes_alone_are_a_change_with_a_diff(tmp_path: Path, spare: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    attributes = {"before": {"mode": "0600"}, "after": {"mode": "0644"}}
    result = apply(FakeModule(spare, attributes=attributes), read(str(path)), "a\n")
    header = f"{path} (file attributes)"
    assert result["changed"] is True
    assert result["diff"] == [{"before_header": header, "after_header": header, **attributes}]


@pytest.mark.parametrize("wanted", ["new\n", None])
def test_check_mode_tells_and_touches_nothing(tmp_path: Path, spare: Path, wanted: str | None) -> None:
    path = tmp_path / "file"
    path.write_text("old\n")
    module = FakeModule(spare, check_mode=True)
    result = apply(module, read(str(path)), wanted, backup=True)
    assert (result["changed"], result["diff"][0]["before"], result["diff"][0]["after"]) == (True, "old\n", wanted or "")
    assert "backup_file" not in result
    assert path.read_text() == "old\n"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "spare"]
    assert [call[0] for call in module.calls] == (["attributes"] if wanted else [])


def test_removal(tmp_path: Path, spare: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old\n")
    module = FakeModule(spare)
    assert apply(module, read(str(path)), None)["changed"] is True
    assert not path.exists()
    assert apply(module, read(str(path)), None) == {"changed": False, "diff": []}
    assert module.calls == []


def test_a_backup_is_made_before_the_file_is_replaced(tmp_path: Path, spare: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    module = FakeModule(spare)
    result = apply(module, read(str(path)), "new\n", backup=True)
    assert result["backup_file"] == f"{path}.copy"
    assert (tmp_path / "file.copy").read_bytes() == b"\xff\xfe"
    assert result["diff"][0]["before"] == "(2 bytes that are not UTF-8 text)\n"
    assert [call[0] for call in module.calls] == ["backup", "move", "attributes"]


def test_a_link_stays_a_link(tmp_path: Path, spare: Path) -> None:
    (tmp_path / "target").write_text("old\n")
    link = tmp_path / "link"
    link.symlink_to("target")
    apply(FakeModule(spare), read(str(link)), "new\n")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new\n"


def test_a_full_disk(tmp_path: Path, spare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, module = tmp_path / "file", FakeModule(spare)
    path.write_text("old\n")
    room = SimpleNamespace(f_bavail=1, f_frsize=8)
    monkeypatch.setattr("os.statvfs", lambda dummy: room)
    apply(module, read(str(path)), "8 bytes\n")
    with pytest.raises(TextFileError) as caught:
        apply(module, read(str(path)), "9 bytes.\n")
    assert str(caught.value) == f"{path}: cannot be written: {tmp_path} is full. Free space there"
    assert path.read_text() == "8 bytes\n" and list(spare.iterdir()) == []


def test_a_missing_folder(tmp_path: Path, spare: Path) -> None:
    path = str(tmp_path / "none" / "file")
    with pytest.raises(TextFileError) as caught:
        apply(FakeModule(spare), read(path), "a\n")
    assert str(caught.value) == f"{tmp_path}/none does not exist; create it before writing {path}"
    module = FakeModule(spare, check_mode=True)
    assert apply(module, read(path), "a\n")["changed"] is True
    assert module.calls[0] == (
        "warn",
        f"{tmp_path}/none does not exist yet; the run itself fails unless something creates it before",
    )


def test_what_is_no_regular_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    with pytest.raises(TextFileError, match="is a directory; name the file itself"):
        read(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TextFileError, match="is not a regular file; name the file itself"):
        read(str(tmp_path / "pipe"))
    with pytest.raises(TextFileError, match=r"is not a path: (stat: )?embedded null"):
        read("a\0b")
    (tmp_path / "file").touch()
    with pytest.raises(TextFileError, match=r"file/below: cannot be accessed: Not a directory"):
        read(str(tmp_path / "file" / "below"))


def test_a_file_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "MAX_BYTES", 3)
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read(str(path)).text == "abc"
    path.write_bytes(b"abcd")
    with pytest.raises(TextFileError, match="is larger than 3 bytes"):
        read(str(path))


def test_found() -> None:
    assert (Found("x").exists, Found("x").text) == (False, None)
    assert (Found("x", b"").exists, Found("x", b"").text) == (True, "")
    assert Found("x", b"\xff").text is None


def test_refusal_names_file_reason_and_remedy() -> None:
    assert str(left_alone("/etc/hosts", "DeepSpeed hostfile", "line 1 is odd")) == (
        "/etc/hosts is not a DeepSpeed hostfile: line 1 is odd. It was left as it is; fix or remove it, name another"
        " path, or set force: true to replace it, which keeps a copy beside it"
    )
