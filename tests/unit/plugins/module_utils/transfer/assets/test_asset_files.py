# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets on a node's disk: what is recorded, what counts as unchanged, what is removed; pieces."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets import facts_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.facts_io import asset_facts, filesystem
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.files import (
    AssetFolderError,
    file_digest,
    incoming,
    install,
    lacking,
    opened,
    prepare,
    read_record,
    record_path,
    recorded_names,
    verify,
    write_record,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.assets.pieces import (
    append_piece,
    pieces,
    write_piece,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError
from ansible_collections.swarmspeed.cluster.plugins.modules import asset_files
from ansible_collections.swarmspeed.cluster.plugins.modules.asset_files import absent, verified
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import digest_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.growth import peak_memory

FILES = {"a.txt": b"a", "sub/b.txt": b"bb"}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(files: dict[str, bytes]) -> dict[str, Any]:
    listed = [(path, len(data), sha256(data)) for path, data in files.items()]
    return {"digest": digest_of(listed), "files": listed}


def put(root: Path, files: dict[str, bytes], name: str = "m") -> dict[str, Any]:
    """Put files in place as a transfer does."""
    made = manifest(files)
    incoming(root).mkdir(parents=True, exist_ok=True)
    missing = lacking(root, name, made["files"], lambda: None)
    for path, dummy, digest in missing:
        (incoming(root) / digest).write_bytes(files[path])
    install(root, name, made, missing)
    return made


def facts(root: Path, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = asset_facts({"root": str(root), "wanted": {"m": wanted}})["found"]["m"]
    return found


def test_what_is_as_wanted_is_known_without_a_list(tmp_path: Path) -> None:
    made = put(tmp_path, FILES)
    as_wanted = {"recorded": True, "there": True, "digest": made["digest"], "changed": [], "missing": [], "files": {}}
    assert facts(tmp_path, made["digest"]) == as_wanted
    assert facts(tmp_path, "")["files"] == {path: sha256(data) for path, data in FILES.items()}
    read: list[bool] = []
    assert lacking(tmp_path, "m", made["files"], lambda: read.append(True)) == []
    assert read == [], "a second run reads no terabytes"


def test_what_was_changed_or_removed_is_named(tmp_path: Path) -> None:
    made = put(tmp_path, FILES)
    (tmp_path / "m/a.txt").write_bytes(b"x")
    (tmp_path / "m/sub/b.txt").unlink()
    found = facts(tmp_path, made["digest"])
    assert (found["changed"], found["missing"]) == (["a.txt", "sub/b.txt"], ["sub/b.txt"])
    assert [file[0] for file in lacking(tmp_path, "m", made["files"], lambda: None)] == ["a.txt", "sub/b.txt"]


def test_what_was_only_touched_is_read_and_not_lacking(tmp_path: Path) -> None:
    made = put(tmp_path, FILES)
    os.utime(tmp_path / "m/a.txt", (1, 1))
    assert facts(tmp_path, made["digest"])["changed"] == ["a.txt"]
    assert lacking(tmp_path, "m", made["files"], lambda: None) == []
    put(tmp_path, FILES)
    assert facts(tmp_path, made["digest"])["changed"] == []


def test_a_new_release_of_a_file_is_lacking_also_where_it_is_of_the_same_size(tmp_path: Path) -> None:
    put(tmp_path, FILES)
    later = manifest({**FILES, "a.txt": b"A"})
    assert [file[0] for file in lacking(tmp_path, "m", later["files"], lambda: None)] == ["a.txt"]


def test_a_file_of_another_size_is_not_read(tmp_path: Path) -> None:
    """It may be terabytes that somebody else has put there."""
    made = put(tmp_path, FILES)
    (tmp_path / "m/a.txt").write_bytes(b"longer")
    read: list[bool] = []
    assert [file[0] for file in lacking(tmp_path, "m", made["files"], lambda: read.append(True))] == ["a.txt"]
    assert read == []


def test_a_link_or_a_pipe_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    made = put(tmp_path, FILES)
    (tmp_path / "other").write_bytes(b"a")
    (tmp_path / "m/a.txt").unlink()
    (tmp_path / "m/a.txt").symlink_to(tmp_path / "other")
    (tmp_path / "m/sub/b.txt").unlink()
    os.mkfifo(tmp_path / "m/sub/b.txt")
    assert len(lacking(tmp_path, "m", made["files"], lambda: None)) == 2
    put(tmp_path, FILES)
    assert not (tmp_path / "m/a.txt").is_symlink() and (tmp_path / "other").read_bytes() == b"a"
    assert (tmp_path / "m/sub/b.txt").read_bytes() == b"bb"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": {}}', '{"digest": "x", "files": {"a": [1]}}', '{"digest": 1, "files": 3}']
)
def test_a_record_that_was_damaged_is_none(tmp_path: Path, text: str) -> None:
    put(tmp_path, FILES)
    record_path(tmp_path, "m").write_text(text)
    assert read_record(tmp_path, "m") == {}
    assert facts(tmp_path, "")["there"] is True and facts(tmp_path, "")["recorded"] is False


def test_a_recorded_file_that_is_missing_is_damaged(tmp_path: Path) -> None:
    put(tmp_path, FILES)
    (tmp_path / "m/sub/b.txt").unlink()
    assert verify(tmp_path, "m") == ["sub/b.txt"]


def test_a_large_file_is_verified_in_pieces(tmp_path: Path) -> None:
    large = bytes(64 << 20)
    put(tmp_path, {"a.bin": large})
    with peak_memory() as peak:
        assert file_digest(opened(tmp_path), "m/a.bin", lambda: None) == sha256(large)
    assert peak() < 16 << 20


def test_a_file_that_is_gone_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(AssetFolderError, match=r"m/a\.txt is gone again$"):
        write_record(tmp_path, "m", manifest(FILES))
    assert recorded_names(tmp_path) == []


def test_ranks_can_read_what_a_root_with_a_strict_umask_put_there(tmp_path: Path) -> None:
    root = tmp_path / "assets"
    before = os.umask(0o077)
    try:
        prepare(root)
        put(root, FILES)
    finally:
        os.umask(before)
    folders = {path.relative_to(tmp_path).as_posix(): path for path in (root, *root.rglob("*")) if path.is_dir()}
    modes = {name: oct(path.stat().st_mode & 0o777) for name, path in folders.items()}
    assert modes.pop("assets/.swarmspeed/incoming") == "0o700"
    assert modes == dict.fromkeys(("assets", "assets/.swarmspeed", "assets/m", "assets/m/sub"), "0o755")


def test_only_what_is_recorded_is_verified_and_removed(tmp_path: Path) -> None:
    root = tmp_path / "assets"
    put(root, FILES)
    (root / "m/own.txt").write_text("mine")
    (root / "other").mkdir()
    (root / "other/file").write_text("mine")
    assert verified(root, ["m", "gone"])["damaged"] == []
    status = (root / "m/a.txt").stat()
    (root / "m/a.txt").write_bytes(b"x")
    os.utime(root / "m/a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert verify(root, "m") == ["a.txt"] and verified(root, ["m"])["damaged"] == ["m/a.txt"]
    assert absent(root, True) == {"changed": True, "removed": ["m"]} and (root / "m/a.txt").exists()
    assert absent(root, False) == {"changed": True, "removed": ["m"]}
    left = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    assert left == ["m/own.txt", "other/file"]
    assert absent(root, False) == {"changed": False, "removed": []}


def test_nothing_is_left_of_a_folder_that_was_this_roles(tmp_path: Path) -> None:
    root = tmp_path / "assets"
    put(root, FILES)
    absent(root, False)
    assert not root.exists()
    assert absent(root, False) == {"changed": False, "removed": []}


def test_the_module_reports_and_in_check_mode_removes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "assets"
    put(root, FILES)

    def run(**arguments: Any) -> dict[str, Any]:
        with patch_module_args({"root": str(root), **arguments}), pytest.raises(SystemExit):
            asset_files.main()
        reported: dict[str, Any] = json.loads(capsys.readouterr().out)
        return reported

    assert run(state="verified", names=["m"])["damaged"] == []
    assert run(state="absent", _ansible_check_mode=True)["removed"] == ["m"] and (root / "m/a.txt").exists()
    assert run(state="absent")["changed"] is True and not root.exists()
    assert run(state="gone")["failed"] is True


def test_the_file_system_is_the_innermost_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\nx {tmp_path}/other xfs rw 0 0\nodd\n")
    monkeypatch.setattr(facts_io, "MOUNTS", str(mounts))
    assert filesystem(tmp_path / "assets/none") == "nfs4"
    assert filesystem(Path("/")) == "ext4"
    monkeypatch.setattr(facts_io, "MOUNTS", str(tmp_path / "gone"))
    assert filesystem(tmp_path) == ""


def test_without_a_folder_nothing_is_asked() -> None:
    assert asset_facts({"root": None, "wanted": {}}) == {}


SIZES = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=8)


@settings(max_examples=examples(200))
@given(SIZES, st.integers(1, 200))
def test_pieces_are_no_larger_than_asked_and_cover_what_is_lacking(sizes: list[tuple[int, int]], most: int) -> None:
    files = [(f"{number:064x}", size, min(came, size)) for number, (size, came) in enumerate(sizes)]
    came = {name: had for name, dummy, had in files}
    touched = set()
    for piece in pieces(files, most):
        assert 0 <= sum(count for dummy, offset, count in piece) <= most
        for name, offset, count in piece:
            assert came[name] == offset
            came[name] += count
            touched.add(name)
    assert came == {name: size for name, size, dummy in files}
    assert touched == {name for name, size, had in files if had < size or size == 0}


def test_a_piece_is_appended_where_the_file_ends_and_nowhere_else(tmp_path: Path) -> None:
    name, data = sha256(b"abcdef"), b"abcdef"
    (tmp_path / "source").write_bytes(data)
    folder = tmp_path / "spool"
    folder.mkdir()

    def feed(*piece: tuple[str, int, int], sizes: dict[str, int] | None = None) -> None:
        with (tmp_path / "piece.tar").open("wb") as out:
            write_piece(out, piece, {name: tmp_path / "source"})
        append_piece(tmp_path / "piece.tar", folder, {name: 6} if sizes is None else sizes)

    feed((name, 0, 2), (name, 2, 2))
    assert (folder / f"{name}.part").read_bytes() == b"abcd"
    with pytest.raises(TransferError, match="does not continue"):
        feed((name, 2, 2))
    with pytest.raises(TransferError, match="which was not requested"):
        feed((name, 4, 2), sizes={})
    with pytest.raises(TransferError, match="does not continue"):
        feed((name, 4, 2), sizes={name: 5})
    feed((name, 4, 2))
    assert (folder / f"{name}.part").read_bytes() == data
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.part"]


@pytest.mark.parametrize("kept", [0, 100, 514])
def test_a_piece_that_was_cut_is_refused_in_words(tmp_path: Path, kept: int) -> None:
    name = sha256(b"abcdef")
    (tmp_path / "source").write_bytes(b"abcdef")
    with (tmp_path / "piece.tar").open("wb") as out:
        write_piece(out, [(name, 0, 6)], {name: tmp_path / "source"})
    (tmp_path / "piece.tar").write_bytes((tmp_path / "piece.tar").read_bytes()[:kept])
    with pytest.raises(TransferError, match=r"^a piece did not arrive whole \(.*\)\. Remedy: run again; the transfer"):
        append_piece(tmp_path / "piece.tar", tmp_path, {name: 6})
