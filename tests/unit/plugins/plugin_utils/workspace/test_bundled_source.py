# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The source of the workspace in an offline bundle: packed, listed and taken; and bundles that hold something else."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.files import digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.manifest import (
    BundleError,
    Entry,
    Manifest,
    render,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.bundled import listed, pack, take
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository import SourceError, parse

COMMIT, OTHER = "1" * 40, "2" * 40
URL = "https://example.com/team/train.git"
REPOSITORY = parse(URL, "main", "")
AGAIN = "run bundle.yml again where there is internet"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/more.py").write_text("m", encoding="utf-8")
    (tree / "run.sh").write_text("r", encoding="utf-8")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("run.sh")
    made = tmp_path / "bundle"
    path = pack(made, REPOSITORY, tree, COMMIT)
    manifest(made, listed(made, path, *digest(made / path)))
    return made


def manifest(bundle: Path, *entries: Entry) -> None:
    found = Manifest("2026-01-01T00:00:00Z", "test", (), "cpu", {}, entries, {})
    (bundle / "manifest.json").write_text(render(found), encoding="utf-8")


def entry(bundle: Path, content: bytes | None = None) -> Entry:
    path = next((bundle / "source").iterdir())
    if content is not None:
        path.write_bytes(content)
    return listed(bundle, f"source/{path.name}", *digest(path))


def test_what_is_packed_is_taken_without_git_and_network(bundle: Path, tmp_path: Path) -> None:
    folder, commit = take(bundle, REPOSITORY, tmp_path / "cache")
    assert commit == COMMIT
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert files == {"run.sh": "r", "link": "r", "sub/more.py": "m"}
    assert (folder / "run.sh").stat().st_mode & 0o111 and not (folder / "sub/more.py").stat().st_mode & 0o111
    assert not (folder / "link").is_symlink()
    assert take(bundle, REPOSITORY, tmp_path / "cache") == (folder, COMMIT)
    inner = parse(URL, COMMIT, "sub")
    assert take(bundle, inner, tmp_path / "cache")[0] == folder / "sub"
    assert [path.name for path in (tmp_path / "cache/bundled").iterdir()] == [folder.name]


def test_the_same_files_make_the_same_archive(bundle: Path, tmp_path: Path) -> None:
    (path,) = (bundle / "source").iterdir()
    before = path.read_bytes()
    (tmp_path / "tree/run.sh").touch()
    assert pack(bundle, REPOSITORY, tmp_path / "tree", COMMIT) == f"source/{path.name}"
    assert path.read_bytes() == before and list((bundle / "source").iterdir()) == [path]


@pytest.mark.parametrize(
    ("source", "reference", "text"),
    [
        (URL, OTHER, f"it holds commit 111111111111 of {URL}. Remedy: {AGAIN}"),
        ("https://example.com/other.git", "main", f"it does not hold https://example.com/other.git. Remedy: {AGAIN}"),
    ],
)
def test_a_bundle_with_something_else(bundle: Path, tmp_path: Path, source: str, reference: str, text: str) -> None:
    with pytest.raises(SourceError) as error:
        take(bundle, parse(source, reference, ""), tmp_path / "cache")
    assert str(error.value).startswith(f"workspace_source: the bundle {bundle}: {text}")


def test_a_folder_that_is_not_in_it(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as error:
        take(bundle, parse(URL, "main", "gone"), tmp_path / "cache")
    assert str(error.value) == (
        f"workspace_source_folder: {URL} has no folder gone in the bundle. Remedy: correct it; it is relative to the "
        "root of the repository."
    )


def archive(*members: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, "/etc/passwd", 1 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"x"))
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (archive(("../evil", tarfile.REGTYPE)), "holds a path that leads elsewhere"),
        (archive(("/tmp/evil", tarfile.REGTYPE)), "holds a path that leads elsewhere"),
        (archive(("key", tarfile.SYMTYPE)), "holds something that is not a plain file"),
        (archive(("key", tarfile.LNKTYPE)), "holds something that is not a plain file"),
        (archive(("a", tarfile.REGTYPE), ("a", tarfile.REGTYPE)), "cannot be used"),
        (b"no archive", "cannot be used"),
    ],
)
def test_an_archive_that_would_write_elsewhere_leaves_nothing(
    bundle: Path, tmp_path: Path, content: bytes, text: str
) -> None:
    manifest(bundle, entry(bundle, content))
    with pytest.raises(SourceError, match=text):
        take(bundle, REPOSITORY, tmp_path / "cache")
    assert list((tmp_path / "cache/bundled").iterdir()) == [] and not (tmp_path / "cache/evil").exists()


def test_a_damaged_archive_and_a_commit_that_is_none(bundle: Path, tmp_path: Path) -> None:
    good = entry(bundle)
    manifest(bundle, replace(good, sha256="a" * 64))
    with pytest.raises(SourceError, match=r"is damaged \(its SHA-256 differs\)"):
        take(bundle, REPOSITORY, tmp_path / "cache")
    manifest(bundle, replace(good, version="main"))
    with pytest.raises(SourceError, match="it does not hold"):
        take(bundle, REPOSITORY, tmp_path / "cache")


@pytest.mark.parametrize("path", ["../x.tar", "wheels/x.tar", "source/../x.tar"])
def test_what_is_listed_lies_in_its_folder(path: str) -> None:
    with pytest.raises(BundleError, match="cannot be the source of the workspace"):
        listed(Path("/bundle"), path, 1, "a" * 64)
