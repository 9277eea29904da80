# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who makes a .vsix, and root in the container that has it, attack the host that unpacks it."""

from __future__ import annotations

import json
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import FolderError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode import install
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode import vsix as unpacker
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.install import apply, remove
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.state import unpacked
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.vsix import VsixError

from tests.adversary.job_attacks import SECRET
from tests.vsix import FOLDER, vsix


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cluster").mkdir()
    return tmp_path / "cluster" / "vscode"


def untouched(victim: Path) -> bool:
    return victim.read_text() == SECRET and sorted(victim.parent.iterdir()) == [victim]


def refused(root: Path, path: Path) -> str:
    """Assert that a file is refused in one line before anything is written; return the line."""
    with pytest.raises(VsixError) as caught:
        apply(str(root), [str(path)], "x86_64", False)
    found = str(caught.value)
    assert found.isprintable() and found.startswith(f"{path}: ") and found.count(". Remedy: ") == 1
    assert not root.exists() or not list((root / "extensions").iterdir())
    return found.removeprefix(f"{path}: ")


def with_member(path: Path, name: str, data: bytes = b"x", mode: int = 0, **more: Any) -> Path:
    """A stand-in with one more member, of this name as it is."""
    vsix(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of a second one
        info = zipfile.ZipInfo("placeholder")
        info.filename, info.external_attr = name, mode << 16
        for key, value in more.items():
            setattr(info, key, value)
        archive.writestr(info, data)
    return path


# --- who makes the file


@pytest.mark.parametrize(
    "name",
    [
        *("../host/secret", "extension/../../host/secret", "/tmp/owned", "extension//tmp/owned", "extension/./x"),
        *("extension/a\\..\\..\\x", "C:\\x", "extension/\x1b[2J", "extension/a\nb", "extension/" + "x" * 300),
        *("extension/\u202egpj.js", "extension/" + "/".join(["d"] * 600), ".."),
    ],
)
def test_a_member_leads_out_of_the_folder(root: Path, victim: Path, tmp_path: Path, name: str) -> None:
    assert "has no path below a folder" in refused(root, with_member(tmp_path / "x.vsix", name))
    assert untouched(victim) and not Path("/tmp/owned").exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (stat.S_IFLNK, "a link"),
        (stat.S_IFIFO, "a named pipe"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
        (stat.S_IFSOCK, "a socket"),
    ],
)
def test_a_member_is_a_link_or_a_device(root: Path, victim: Path, tmp_path: Path, kind: int, words: str) -> None:
    path = with_member(tmp_path / "x.vsix", "extension/out/way", str(victim).encode(), kind | 0o777)
    assert refused(root, path).startswith(f"member 'extension/out/way' is {words}. Remedy: ")
    assert untouched(victim)


@pytest.mark.parametrize(
    "name", ["extension/package.json", "extension/out", "extension/out/main.js/x", "extension/package.json/"]
)
def test_a_member_takes_the_place_of_another(root: Path, tmp_path: Path, name: str) -> None:
    """What is checked of the first would say nothing of the second."""
    assert " is there twice. Remedy: " in refused(root, with_member(tmp_path / "x.vsix", name))


def test_a_member_is_encrypted_or_of_a_compression_that_takes_memory(root: Path, tmp_path: Path) -> None:
    words = "is encrypted, or compressed otherwise than VS Code can read"
    lzma = with_member(tmp_path / "x.vsix", "extension/x", b"x", compress_type=zipfile.ZIP_LZMA)
    assert words in refused(root, lzma)
    data = bytearray(vsix(tmp_path / "x.vsix").read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    (tmp_path / "x.vsix").write_bytes(data)
    assert words in refused(root, tmp_path / "x.vsix")


def bomb(path: Path, size: int, declared: int | None = None, members: int = 1) -> Path:
    """A stand-in with zeros in it, of which the list may say less than there are."""
    vsix(path, {f"extension/zeros{number}": bytes(size) for number in range(members)})
    if declared is not None:
        data = bytearray(path.read_bytes())
        for header, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            place = data.index(header)
            while b"zeros" not in data[place : place + 80]:
                place = data.index(header, place + 1)
            data[place + at : place + at + 4] = struct.pack("<I", declared)
        path.write_bytes(data)
    return path


def test_a_bomb_says_what_it_has(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacker, "MOST_BYTES", 3 << 20)
    assert "unpacked. Remedy: " in refused(root, bomb(tmp_path / "x.vsix", 1 << 20, members=4))


def test_a_bomb_says_less_than_it_has(root: Path, tmp_path: Path) -> None:
    path = bomb(tmp_path / "x.vsix", 64 << 20, declared=100)
    tracemalloc.start()
    try:
        assert refused(root, path).startswith("it cannot be read: Bad CRC-32 for file 'extension/zeros0'. Remedy: ")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert sorted(one.name for one in root.iterdir()) == ["extensions"]


def test_a_manifest_is_a_bomb(root: Path, tmp_path: Path) -> None:
    """It is read whole: no more than is declared may be unpacked for that, and not much may be declared."""
    tracemalloc.start()
    try:
        large = vsix(tmp_path / "x.vsix", {"extension/package.json": bytes(64 << 20)})
        tracemalloc.reset_peak()
        assert "extension/package.json in it is larger than 8 MiB" in refused(root, large)
        data = bytearray(large.read_bytes())
        for header, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            place = data.index(header)
            while b"package.json" not in data[place : place + 80]:
                place = data.index(header, place + 1)
            data[place + at : place + at + 4] = struct.pack("<I", 100)
        large.write_bytes(data)
        assert refused(root, large).startswith("it cannot be read: Bad CRC-32")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_list_of_millions_of_members_is_not_read(root: Path, tmp_path: Path) -> None:
    vsix(tmp_path / "x.vsix")
    data = bytearray((tmp_path / "x.vsix").read_bytes())
    end = data.index(b"PK\x05\x06")
    small = bytes(data)
    data[end + 12 : end + 16] = struct.pack("<I", 1 << 30)
    (tmp_path / "x.vsix").write_bytes(data)
    expected = (
        "its list of members is too long. Remedy: do not use this file, and fetch the extension from its publisher."
    )
    assert refused(root, tmp_path / "x.vsix") == expected
    # A zip of more than 4 GiB has another length before its end, which would be the one that counts.
    (tmp_path / "x.vsix").write_bytes(small[:end] + b"PK\x06\x07" + bytes(16) + small[end:])
    assert refused(root, tmp_path / "x.vsix") == expected


def test_more_members_than_a_disk_has_names_for(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacker, "MOST_FILES", 1000)
    path = vsix(tmp_path / "x.vsix", {f"extension/{number}": b"" for number in range(1000)})
    assert refused(root, path).startswith("it has more than 1000 files and folders. Remedy: ")
    # Few members can lie in many folders.
    path = vsix(tmp_path / "x.vsix", {f"extension/{number}{'/d' * 60}/x": b"" for number in range(20)})
    assert refused(root, path).startswith("it has more than 1000 files and folders. Remedy: ")


def test_a_manifest_keeps_the_parser_busy(root: Path, tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    laughs = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><Identity TargetPlatform="&e11;"/>'
    many = "<Identity " * 100_000
    for text in (laughs, many):
        path = vsix(tmp_path / "x.vsix", {"extension.vsixmanifest": text.encode()})
        apply(str(root), [str(path)], "x86_64", False)


@pytest.mark.parametrize("name", ["publisher", "name", "version"])
@pytest.mark.parametrize("value", ["..", "../x", "/etc", ".ssh", "a/../../b", "a\0", "a\n", "-rf", "x" * 300, {}, True])
def test_an_identity_names_another_folder(root: Path, victim: Path, tmp_path: Path, name: str, value: Any) -> None:
    assert " is not one word of " in refused(root, vsix(tmp_path / "x.vsix", **{name: value}))
    assert untouched(victim)


def test_the_file_is_another_one_after_it_was_checked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, original = vsix(tmp_path / "x.vsix"), unpacker.read_extension

    def read_and_swap(file: Any, where: str, machine: str) -> Any:
        found = original(file, where, machine)
        path.rename(tmp_path / "old.vsix")
        vsix(path, {"extension/package.json": b"{}", "extension/evil": b"x"})
        return found

    monkeypatch.setattr(install, "read_extension", read_and_swap)
    apply(str(root), [str(path)], "x86_64", False)
    assert sorted(one.name for one in (root / "extensions" / FOLDER).iterdir()) == ["out", "package.json"]


# --- root in the container, who can write in the folder of extensions


@pytest.mark.parametrize("place", [FOLDER, "extensions.json", ".obsolete"])
def test_a_link_is_in_the_place_of_what_the_host_writes(root: Path, victim: Path, tmp_path: Path, place: str) -> None:
    (root / "extensions").mkdir(parents=True)
    (root / "extensions" / place).symlink_to(victim.parent if place == FOLDER else victim)
    path = vsix(tmp_path / "x.vsix")
    try:
        apply(str(root), [str(path)], "x86_64", False)
    except FolderError as error:
        assert place != FOLDER and f"{place} is a link, not a plain file. Remedy: " in str(error)
    assert untouched(victim)


def test_the_folder_of_an_extension_becomes_a_link(root: Path, victim: Path, tmp_path: Path) -> None:
    path = vsix(tmp_path / "x.vsix")
    apply(str(root), [str(path)], "x86_64", False)
    (root / "extensions" / FOLDER).rename(root / "extensions" / "moved")
    (root / "extensions" / FOLDER).symlink_to(victim.parent)
    victim.with_name("package.json").write_text("{}")
    (one,) = unpacked(str(root)).values()
    assert one["intact"] is False
    remove(str(root), False)
    assert victim.read_text() == SECRET and victim.with_name("package.json").exists()
    assert [one.name for one in (root / "extensions").iterdir()] == ["moved"]


def pipe(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "plant",
    [
        lambda path: path.write_text(json.dumps({"a": 1})),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text('[{"identifier": {"id": ["a"]}, "relativeLocation": {}}]'),
        lambda path: path.write_text("9" * 1_000_000),
        lambda path: path.open("wb").truncate(1 << 42),
        pipe,
    ],
)
def test_facts_are_gathered_whatever_the_list_holds(root: Path, tmp_path: Path, plant: Callable[[Path], Any]) -> None:
    path = vsix(tmp_path / "x.vsix")
    apply(str(root), [str(path)], "x86_64", False)
    plant(root / "extensions" / "extensions.json")
    assert [one["intact"] for one in unpacked(str(root)).values()] == [False]
    try:
        apply(str(root), [str(path)], "x86_64", False)
    except FolderError as error:
        assert str(error).isprintable() and "Remedy: remove it on this node, and run again" in str(error)


def test_the_record_is_where_no_container_writes(root: Path, tmp_path: Path) -> None:
    """What is removed is what the record names, and a container has the folder of extensions alone."""
    path = vsix(tmp_path / "x.vsix")
    apply(str(root), [str(path)], "x86_64", False)
    (root / "extensions" / "unpacked.json").write_text(json.dumps({"../../..": {"sha256": "a", "id": "a"}}))
    remove(str(root), False)
    assert [one.name for one in (root / "extensions").iterdir()] == ["unpacked.json"]
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
