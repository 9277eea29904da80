# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A .vsix, read and unpacked. All are stand-ins; attacks are in tests/adversary/test_vsix_attacks.py."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode import vsix as tested
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.vsix import (
    Extension,
    VsixError,
    read_extension,
    unpack_extension,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.vsix import FOLDER, vsix


def read(path: Path, machine: str = "x86_64") -> Extension:
    with path.open("rb") as file:
        return read_extension(file, "x.vsix", machine)


def unpacked(path: Path, target: Path) -> dict[str, bytes]:
    target.mkdir()
    with path.open("rb") as file:
        unpack_extension(file, "x.vsix", read_extension(file, "x.vsix", "x86_64"), target)
    return {one.relative_to(target).as_posix(): one.read_bytes() for one in target.rglob("*") if one.is_file()}


def refused(path: Path, machine: str = "x86_64") -> str:
    with pytest.raises(VsixError) as caught:
        read(path, machine)
    return str(caught.value)


@pytest.mark.parametrize(
    ("platform", "machine", "found", "folder"),
    [
        ("", "x86_64", "", FOLDER),
        ("universal", "x86_64", "", FOLDER),
        ("undefined", "riscv64", "", FOLDER),
        ("linux-x64", "x86_64", "linux-x64", f"{FOLDER}-linux-x64"),
        ("linux-arm64", "aarch64", "linux-arm64", f"{FOLDER}-linux-arm64"),
    ],
)
def test_what_an_extension_says_of_itself(tmp_path: Path, platform: str, machine: str, found: str, folder: str) -> None:
    one = read(vsix(tmp_path / "x", platform=platform), machine)
    assert (one.id, one.version, one.platform, one.folder) == ("stand-in.debugger", "1.2.3", found, folder)
    assert set(one.files) == {"package.json", "out/main.js"}
    entry = one.entry("ab")
    assert entry == {"sha256": "ab", "id": one.id, "version": "1.2.3", "platform": found, "size": one.size}
    assert one.size == sum(file.file_size for file in one.files.values()) > 0


def test_the_content_is_unpacked_and_nothing_beside_it(tmp_path: Path) -> None:
    path = vsix(tmp_path / "x", {"extension/": b"", "extension/a b/ü.txt": b"text", "extension/empty/": b""})
    found = unpacked(path, tmp_path / "out")
    assert set(found) == {"package.json", "out/main.js", "a b/ü.txt"} and found["a b/ü.txt"] == b"text"
    assert (tmp_path / "out/out").stat().st_mode & 0o777 == 0o755


def test_what_can_be_run_still_can_and_nothing_is_setuid(tmp_path: Path) -> None:
    path = vsix(tmp_path / "x")
    with zipfile.ZipFile(path, "a") as archive:
        for name, mode in (("program", 0o106755), ("text", 0o100666)):
            info = zipfile.ZipInfo(f"extension/{name}")
            info.external_attr = mode << 16
            archive.writestr(info, b"x")
    unpacked(path, tmp_path / "out")
    modes = [(tmp_path / "out" / name).stat().st_mode & 0o7777 for name in ("program", "text", "package.json")]
    assert modes == [0o755, 0o644, 0o644]


def test_text_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{"publisher": "a", "name": "b", "version": "1"}'
    assert read(vsix(tmp_path / "x", {"extension/package.json": text})).folder == "a.b-1"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "x.vsix: it is for win32-x64, and this node is linux-x64. Remedy: fetch the one for linux-x64."),
        ({"machine": "s390x"}, "x.vsix: it is for win32-x64, and this node is s390x. Remedy: fetch the one for s390x."),
    ],
)
def test_one_for_another_platform_is_refused(tmp_path: Path, changed: dict[str, str], expected: str) -> None:
    assert refused(vsix(tmp_path / "x", platform="win32-x64"), **changed) == expected


OTHER = "do not use this file, and fetch the extension from its publisher"
WORD = "in extension/package.json is not one word of letters, digits and ._-"


@pytest.mark.parametrize(
    ("identity", "cause"),
    [
        ({"publisher": None}, f"publisher {WORD}"),
        ({"publisher": ""}, f"publisher {WORD}"),
        ({"publisher": ".."}, f"publisher {WORD}"),
        ({"name": "../../etc"}, f"name {WORD}"),
        ({"name": "a/b"}, f"name {WORD}"),
        ({"name": ["a"]}, f"name {WORD}"),
        ({"version": 1}, f"version {WORD}"),
        ({"version": "1\n"}, f"version {WORD}"),
        ({"version": "1" * 65}, f"version {WORD}"),
    ],
)
def test_an_identity_that_is_no_name_of_a_folder_is_refused(tmp_path: Path, identity: Any, cause: str) -> None:
    assert refused(vsix(tmp_path / "x", **identity)) == f"x.vsix: {cause}. Remedy: {OTHER}."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"", "extension/package.json in it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            b"[" * 5000 + b"]" * 5000,
            "extension/package.json in it is not JSON: lists and mappings are nested more than 32 deep",
        ),
        (b"\xff", "extension/package.json in it is not JSON: it is not text in UTF-8"),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: bytes, cause: str) -> None:
    found = refused(vsix(tmp_path / "x", {"extension/package.json": text}))
    assert found == f"x.vsix: {cause}. Remedy: fetch it again."
    assert refused(vsix(tmp_path / "x", {"extension/package.json": b"[]"})).startswith(f"x.vsix: publisher {WORD}")


def test_a_zip_that_is_no_extension_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr("package.json", "{}")
    expected = "x.vsix: there is no extension/package.json in it. Remedy: name a .vsix of VS Code."
    assert refused(tmp_path / "x") == expected


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x05\x06", b"\x1f\x8b\x08\x00"])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    expected = "x.vsix: it is not a zip. Remedy: name a .vsix, as the extension's publisher offers it."
    assert refused(tmp_path / "x") == expected


def test_limits_are_in_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = vsix(tmp_path / "x")
    with monkeypatch.context() as patched:
        patched.setattr(tested, "MOST_FILES", 5)
        assert refused(path) == f"x.vsix: it has more than 5 files and folders. Remedy: {OTHER}."
        patched.setattr(tested, "MOST_FILES", 6)
        assert read(path).folder == FOLDER
    with monkeypatch.context() as patched:
        patched.setattr(tested, "MOST_BYTES", 100)
        assert refused(path) == f"x.vsix: it has more than 0 GiB unpacked. Remedy: {OTHER}."
    with monkeypatch.context() as patched:
        patched.setattr(tested, "MOST_DIRECTORY", 100)
        assert refused(path) == f"x.vsix: its list of members is too long. Remedy: {OTHER}."
    monkeypatch.setattr(tested, "JSON_BYTES", 10)
    assert "larger than 0 MiB. Remedy: " in refused(path)


def test_an_identity_elsewhere_in_the_manifest_counts_for_nothing(tmp_path: Path) -> None:
    text = b'<Identity Id="a"/><Other TargetPlatform="win32-x64"/><Identity TargetPlatform="win32-x64"/>'
    assert read(vsix(tmp_path / "x", {"extension.vsixmanifest": text})).platform == ""


names = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0/"), max_size=6)
    | st.sampled_from(["..", ".", "", "out", "main.js"]),
    min_size=1,
    max_size=4,
).map("/".join)


@settings(max_examples=examples(400))
@given(members=st.dictionaries(names, st.binary(max_size=40), max_size=5), inside=st.booleans())
def test_either_it_is_refused_in_one_line_or_everything_lies_below_the_folder(
    members: dict[str, bytes], inside: bool
) -> None:
    prefix = "extension/" if inside else ""
    with tempfile.TemporaryDirectory() as folder:
        below = Path(folder) / "a" / "b"
        below.mkdir(parents=True)
        path = vsix(below / "x", {prefix + name: data for name, data in members.items() if prefix + name})
        try:
            found = unpacked(path, below / "out")
        except VsixError as error:
            assert str(error).isprintable() and ". Remedy: " in str(error)
            assert not list((below / "out").iterdir())
        else:
            files = {name: data for name, data in members.items() if name and not name.endswith("/")}
            if inside:
                assert {name: found[name] for name in files} == files
        assert sorted(one.name for one in Path(folder).iterdir()) == ["a"]
        assert sorted(one.name for one in below.iterdir()) == ["out", "x"]


@settings(max_examples=examples(600))
@given(data=st.data())
def test_a_damaged_file_is_one_sentence(data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = vsix(Path(folder) / "x")
        content = bytearray(path.read_bytes())
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
            content[place] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
        try:
            unpacked(path, Path(folder) / "out")
        except VsixError as error:
            assert str(error).isprintable() and str(error).startswith("x.vsix: ") and ". Remedy: " in str(error)
