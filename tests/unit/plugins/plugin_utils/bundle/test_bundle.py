# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The manifest of a bundle, what forbids using one, and its files on the controller."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle import files as bundle_files
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle import verified
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.checks import (
    check_files,
    check_fit,
    check_image,
    check_variables,
    damage,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.manifest import (
    AGAIN,
    MANIFEST,
    BundleError,
    Entry,
    Manifest,
    inside,
    parse,
    render,
    system_name,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.holds import HOLDS
from hypothesis import given
from hypothesis import strategies as st

ONE = Entry("apt/debian-12-amd64/one.deb", 3, "ab" * 32, "deb", "one", "1", "one 1", None, "debian-12-amd64")


def manifest(*files: Entry, **others: Any) -> Manifest:
    values: dict[str, Any] = {
        "made_at": "2026-11-22T10:00:00Z",
        "made_by": "swarmspeed.cluster",
        "systems": ("debian-12-amd64",),
        "accelerator": "cpu",
        "variables": {"docker_source": "distribution"},
        "files": files or (ONE,),
        "image": {},
    }
    return Manifest(**{**values, **others})


PATHS = st.from_regex(r"[a-z]{1,3}(/[a-z0-9.+~-]{0,2}[a-z]){0,2}", fullmatch=True).filter(inside)
ENTRIES = st.lists(
    st.builds(
        Entry,
        PATHS,
        st.integers(0, 2**40),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
        st.sampled_from(["deb", "index", "image", "wheel"]),
        package=st.text(max_size=5),
        licence=st.none() | st.text(min_size=1, max_size=5),
    ),
    unique_by=lambda entry: entry.path,
)


@given(ENTRIES, st.dictionaries(st.text(max_size=4), st.none() | st.booleans() | st.text(max_size=4)))
def test_a_manifest_reads_back_as_it_was_written(files: list[Entry], variables: dict[str, Any]) -> None:
    one = manifest(*files, variables=variables, files=tuple(sorted(files, key=lambda entry: entry.path)))
    assert parse(render(one)) == one
    assert render(parse(render(one))) == render(one)


def document(**changes: Any) -> str:
    return json.dumps({**json.loads(render(manifest())), **changes})


def entry(**changes: Any) -> list[dict[str, Any]]:
    return [{**json.loads(render(manifest()))["files"][0], **changes}]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("{", "it is not JSON (Expecting property name"),
        ("[]", "it is not a mapping"),
        (document(format=2), "its format is 2, but this collection reads format 1"),
        (document(files={}), "made_for, image or files is missing"),
        (document(made_for={}), "made_for.variables or made_for.systems is missing"),
        (document(files=[3]), "an entry of files is not a mapping"),
        (document(files=entry(path="../etc/passwd")), "'../etc/passwd' is not a path below the bundle"),
        (document(files=entry(path="/etc/passwd")), "'/etc/passwd' is not a path below the bundle"),
        (document(files=entry(path="manifest.json")), "'manifest.json' is not a path below the bundle"),
        (document(files=entry(size=True)), "apt/debian-12-amd64/one.deb has no size"),
        (document(files=entry(sha256="AB" * 32)), "apt/debian-12-amd64/one.deb has no SHA-256"),
        (document(files=entry(kind="virus")), "apt/debian-12-amd64/one.deb is of an unknown kind ('virus')"),
        (document(files=entry() + entry()), "apt/debian-12-amd64/one.deb is in it twice"),
    ],
)
def test_what_is_no_manifest_is_refused_in_words(text: str, reported: str) -> None:
    with pytest.raises(BundleError) as caught:
        parse(text)
    assert str(caught.value).startswith(reported)


@given(st.text(max_size=12))
def test_a_path_that_is_inside_never_leads_out(path: str) -> None:
    if inside(path):
        assert os.path.normpath(f"/bundle/{path}").startswith("/bundle/")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((3, "ab" * 32), None),
        (None, "apt/debian-12-amd64/one.deb is missing"),
        ("Permission denied", "apt/debian-12-amd64/one.deb cannot be read (Permission denied)"),
        ((2, "ab" * 32), "apt/debian-12-amd64/one.deb has 2 bytes, but should have 3"),
        ((3, "cd" * 32), "apt/debian-12-amd64/one.deb is damaged (its SHA-256 differs)"),
    ],
)
def test_damage_is_reported_of_the_file(found: Any, text: str | None) -> None:
    assert damage(ONE, found) == text


def test_all_that_is_damaged_is_one_problem_with_its_remedy() -> None:
    files = [Entry(f"wheels/{number}.whl", 1, "ab" * 32, "wheel") for number in range(8)]
    (problem,) = check_files(manifest(*files), {})
    assert problem.line() == (
        "cluster_bundle: wheels/0.whl is missing, wheels/1.whl is missing, wheels/2.whl is missing, "
        f"wheels/3.whl is missing, wheels/4.whl is missing and 3 more. Remedy: {AGAIN}."
    )


@pytest.mark.parametrize(
    ("made", "now", "reported"),
    [
        ({"a": "1"}, {"a": "1"}, []),
        ({"a": 1}, {"a": "1"}, []),
        ({"a": ["x"]}, {"a": ("x",)}, []),
        ({"a": "1"}, {"a": "2"}, ['a: "1", but now it is "2"']),
        ({"a": "1"}, {}, ['a: "1", but now it is null']),
        ({}, {"b": ["x"]}, ['b: null, but now it is ["x"]']),
    ],
)
def test_another_value_of_a_variable_is_named(made: dict[str, Any], now: dict[str, Any], reported: list[str]) -> None:
    problems = list(check_variables(manifest(variables=made), now))
    assert [problem.text.partition(" with ")[2] for problem in problems] == reported
    assert all(
        problem.remedy == f"set {problem.text.partition(' with ')[2][0]} back, or {AGAIN}" for problem in problems
    )


IMAGE = {"name": "swarmspeed/lab:a6ca4d9a21da45c2", "id": "sha256:1", "path": "image/1.tar"}


@pytest.mark.parametrize(
    ("image", "lacks"),
    [
        (IMAGE, "libibverbs1, ibverbs-providers, py-spy"),  # of a release that did not say what it holds
        ({**IMAGE, "holds": "libibverbs1 ibverbs-providers"}, "py-spy"),
        ({**IMAGE, "holds": " ".join(HOLDS)}, ""),
        ({**IMAGE, "holds": " ".join(HOLDS).replace("0.4.3", "0.4.2")}, ""),
        ({}, ""),
    ],
)
def test_an_image_of_an_earlier_release_is_refused_by_what_it_lacks(image: dict[str, str], lacks: str) -> None:
    assert [problem.line() for problem in check_image(manifest(image=image), "/srv/bundle")] == [
        "cluster_bundle: was made on 2026-11-22T10:00:00Z, but its image swarmspeed/lab:a6ca4d9a21da45c2 lacks "
        f"{lacks}, which this release of the collection puts into it. Remedy: make it again where there is internet "
        "access (ansible-playbook bundle.yml -i INVENTORY -e cluster_bundle=/srv/bundle; it fetches only what is "
        "missing), and copy the folder again."
        for _one in [lacks]
        if lacks
    ]


@pytest.mark.parametrize(("built", "count"), [(True, 1), (False, 0)])
def test_only_an_image_of_our_own_dockerfile_is_judged_so(built: bool, count: int, tmp_path: Path) -> None:
    data = b"image"
    entry = Entry("image/1.tar", len(data), hashlib.sha256(data).hexdigest(), "image")
    (tmp_path / "image").mkdir()
    (tmp_path / "image/1.tar").write_bytes(data)
    one = manifest(entry, image=IMAGE, variables={})
    (tmp_path / "manifest.json").write_text(render(one), encoding="utf-8")
    assert len(list(bundle_files.problems(str(tmp_path), {}, built=built))) == count


TRIXIE = {"distribution": "debian", "release": "13", "architecture": "x86_64"}
FIT = {"systems": ["debian-12-amd64"], "accelerator_made_for": "cpu", "accelerator": "cpu"}


@pytest.mark.parametrize(
    ("bundle", "reported"),
    [
        ({}, []),
        ({**FIT, "systems": ["debian-12-amd64", "debian-13-amd64"]}, []),
        (FIT, ["lab2: the system is debian-13-amd64, but the bundle contains packages for debian-12-amd64"]),
        (
            {**FIT, "systems": ["debian-13-amd64"], "accelerator": "cuda"},
            ["cluster_bundle: was made with cluster_accelerator: cpu, but these hosts compute with cuda"],
        ),
    ],
)
def test_hosts_must_be_covered(bundle: dict[str, Any], reported: list[str]) -> None:
    problems = list(check_fit(bundle, {"lab2": TRIXIE}))
    assert [f"{problem.subject}: {problem.text}" for problem in problems] == reported
    assert all(AGAIN in problem.remedy for problem in problems)


def test_a_system_is_called_by_debians_names() -> None:
    assert system_name({**TRIXIE, "architecture": "aarch64"}) == "debian-13-arm64"
    assert system_name({**TRIXIE, "architecture": "riscv64"}) == "debian-13-riscv64"


def put(folder: Path, name: str, data: bytes, kind: str = "deb") -> Entry:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Entry(name, len(data), hashlib.sha256(data).hexdigest(), kind)


def made(folder: Path) -> Manifest:
    files = (put(folder, "apt/x/one.deb", b"one"), put(folder, "image/00.tar", b"image", "image"))
    one = manifest(*files, image={"name": "team:1", "id": "sha256:00", "path": "image/00.tar"})
    bundle_files.write_text(folder / MANIFEST, render(one))
    return one


def problems(folder: Path, **variables: Any) -> list[str]:
    wanted = {"docker_source": "distribution", **variables}
    return [problem.text for problem in bundle_files.problems(str(folder), wanted)]


def test_a_bundle_that_is_whole_has_no_problem(tmp_path: Path) -> None:
    made(tmp_path)
    assert problems(tmp_path) == []
    assert bundle_files.read_manifest(tmp_path).systems == ("debian-12-amd64",)


def test_damaged_missing_cut_and_outdated_are_distinguished(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "apt/x/one.deb").write_bytes(b"0ne")
    (tmp_path / "image/00.tar").write_bytes(b"ima")
    assert problems(tmp_path) == [
        "apt/x/one.deb is damaged (its SHA-256 differs), image/00.tar has 3 bytes, but should have 5"
    ]
    (tmp_path / "image/00.tar").unlink()
    (tmp_path / "apt/x/one.deb").write_bytes(b"one")
    assert problems(tmp_path, docker_source="docker") == [
        "image/00.tar is missing",
        'was made on 2026-11-22T10:00:00Z with docker_source: "distribution", but now it is "docker"',
    ]
    (tmp_path / MANIFEST).write_text("{}", encoding="utf-8")
    assert problems(tmp_path) == [
        f"{tmp_path}/manifest.json is not a manifest: its format is None, but this collection reads format 1"
    ]
    (tmp_path / MANIFEST).unlink()
    assert problems(tmp_path) == [
        f"{tmp_path} has no manifest.json, which is written last: it is not a bundle, or not finished"
    ]


def test_what_was_read_and_not_touched_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    assert problems(tmp_path) == []
    with monkeypatch.context() as patched:
        patched.setattr(bundle_files, "_digest", lambda file: pytest.fail(f"{file.name} was read again"))
        assert problems(tmp_path) == []
    # Another content of the same size, with the old time of writing: the time of change tells.
    path = tmp_path / "apt/x/one.deb"
    before = path.stat()
    path.write_bytes(b"0ne")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert problems(tmp_path) == ["apt/x/one.deb is damaged (its SHA-256 differs)"]
    assert problems(tmp_path) == ["apt/x/one.deb is damaged (its SHA-256 differs)"]
    for memory in verified.place().iterdir():
        memory.write_text("{", encoding="utf-8")
    path.write_bytes(b"one")
    assert problems(tmp_path) == []


def test_what_does_not_arrive_whole_gets_no_name(tmp_path: Path) -> None:
    good = (3, hashlib.sha256(b"one").hexdigest())
    with pytest.raises(BundleError, match=r"one\.deb did not arrive as it was sent \(2 of 3 bytes\)"):
        bundle_files.take(io.BytesIO(b"on"), tmp_path / "one.deb", good)
    assert list(tmp_path.iterdir()) == []
    bundle_files.take(io.BytesIO(b"one"), tmp_path / "one.deb", good)
    assert bundle_files.whole(tmp_path, {"one.deb": good, "two.deb": good}) == {"one.deb"}
    (tmp_path / "one.deb").write_bytes(b"0ne")
    assert bundle_files.whole(tmp_path, {"one.deb": good}) == set()


def test_only_what_is_wanted_is_taken_out_of_an_archive(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    entries = {name: put(source, name, name.encode()) for name in ("one.deb", "two.deb")}
    wanted = {name: (found.size, found.sha256) for name, found in entries.items()}
    with (tmp_path / "sent.tar").open("wb") as archive:
        bundle_files.pack(archive, source, wanted, {"Packages": "list\n"})
    with tarfile.open(tmp_path / "sent.tar") as tar:
        assert [(member.name, member.mode, member.uid) for member in tar] == [
            ("Packages", 0o644, 0),
            ("one.deb", 0o644, 0),
            ("two.deb", 0o644, 0),
        ]
    del wanted["two.deb"]
    assert bundle_files.unpack(tmp_path / "sent.tar", target, {**wanted, "three.deb": (0, "")}) == ["three.deb"]
    assert [path.name for path in target.iterdir()] == ["one.deb"]


def test_an_image_is_whole_only_with_its_record(tmp_path: Path) -> None:
    path = tmp_path / "00.tar"
    assert bundle_files.read_record(path) is None
    path.write_bytes(b"image")
    assert bundle_files.read_record(path) is None
    bundle_files.write_record(path, {"name": "team:1"})
    assert bundle_files.read_record(path) == {"name": "team:1"}
    path.write_bytes(b"imago")
    assert bundle_files.read_record(path) is None


def test_what_no_manifest_names_goes_and_the_users_files_stay(tmp_path: Path) -> None:
    for name in ("apt/x/old.deb", "apt/x/one.deb", "wheels/a.whl.part", "notes.txt"):
        put(tmp_path, name, b"x")
    assert bundle_files.prune(tmp_path, ["apt/x/one.deb"]) == ["apt/x/old.deb", "wheels/a.whl.part"]
    assert (tmp_path / "apt/x/one.deb").exists()
    assert (tmp_path / "notes.txt").exists()


def test_a_text_that_is_right_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "Packages"
    assert bundle_files.write_text(path, "one\n").sha256 == hashlib.sha256(b"one\n").hexdigest()
    before = path.stat().st_ino
    bundle_files.write_text(path, "one\n")
    assert path.stat().st_ino == before
    bundle_files.write_text(path, "two\n")
    assert path.read_text(encoding="utf-8") == "two\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["Packages"]


@pytest.mark.parametrize(
    ("reported", "licence"),
    [
        ("License-Expression: MIT\nLicense: x\n", "MIT"),
        ("License: BSD\n", "BSD"),
        ("License: UNKNOWN\n", None),
        ("", None),
    ],
)
def test_a_wheel_says_its_licence(tmp_path: Path, reported: str, licence: str | None) -> None:
    path = tmp_path / "py_cpuinfo-9.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("py_cpuinfo-9.0.0.dist-info/METADATA", f"Name: py-cpuinfo\nVersion: 9.0.0\n{reported}\nText")
    found = bundle_files.wheel_entry(path, f"wheels/{path.name}")
    assert (found.package, found.version, found.licence, found.kind) == ("py-cpuinfo", "9.0.0", licence, "wheel")


def test_a_source_archive_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "deepspeed-0.19.8.tar.gz"
    path.write_bytes(b"no zip")
    found = bundle_files.wheel_entry(path, f"wheels/{path.name}")
    assert (found.package, found.version) == ("deepspeed", "0.19.8")
