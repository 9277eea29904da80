# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a user gives for the build is read, or refused in words that hold no password. All of it is invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import (
    Source,
    Trouble,
    apt_sources_text,
    apt_sources_troubles,
    argument_troubles,
    is_deb822,
    read_source,
    requirements_troubles,
)
from hypothesis import given
from hypothesis import strategies as st

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DEB822 = "Types: deb\nURIs: http://user:secret@m.example/debian\nSuites: bookworm\nComponents: main\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Source("index")),
        ("  ", Source("index")),
        ("/srv/DeepSpeed-0.19.8.tar.gz", Source("archive", path="/srv/DeepSpeed-0.19.8.tar.gz")),
        ("a b.ZIP", Source("archive", path="a b.ZIP")),
        ("git+https://h.example/a/b.git@v0.19.8", Source("git", url="https://h.example/a/b.git", reference="v0.19.8")),
        (f"git+https://h.example:8443/b@{COMMIT}", Source("git", url="https://h.example:8443/b", reference=COMMIT)),
    ],
)
def test_where_deepspeed_comes_from(text: str, expected: Source) -> None:
    assert read_source(text) == expected


@pytest.mark.parametrize(("path", "end"), [("x.tar.gz", ".tar.gz"), ("x.TGZ", ".tgz"), ("x.zip", ".zip")])
def test_the_end_by_which_pip_unpacks(path: str, end: str) -> None:
    found = read_source(path)
    assert isinstance(found, Source)
    assert found.suffix == end


NO_REFERENCE = (
    "training_image_deepspeed_source: is not a git reference over HTTPS that names a commit or a tag. Remedy: write "
    "git+https://HOST/PATH@REFERENCE; the commit in full makes the same image each time."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git+https://h.example/a", NO_REFERENCE),
        ("git+https://h.example/a@", NO_REFERENCE),
        ("git+https://h.example/a@v1 --option", NO_REFERENCE),
        ("git+https://h.example/a@-x", NO_REFERENCE),
        ("git+https://h.example/a@v1#subdirectory=x", NO_REFERENCE),
        ("git+ssh://h.example/a@v1", NO_REFERENCE),
        (
            "git+https://user:secret@h.example/a@v1",
            "training_image_deepspeed_source: has a user or a password in its address, which everyone could read in "
            "the image's history. Remedy: download the source and give it as an archive.",
        ),
        (
            "/srv/DeepSpeed",
            "training_image_deepspeed_source: is neither an archive nor a git reference. Remedy: give a file that ends "
            "in .tar.gz, .tgz or .zip, or git+https://HOST/PATH@REFERENCE.",
        ),
    ],
)
def test_sources_that_are_refused(text: str, expected: str) -> None:
    found = read_source(text)
    assert str(found) == expected


@given(st.text(max_size=60))
def test_any_source_is_read_or_refused(text: str) -> None:
    found = read_source(text)
    assert isinstance(found, (Source, Trouble))
    if isinstance(found, Source) and found.kind == "git":
        assert " " not in found.url and not found.reference.startswith("-")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "einops==0.8.1\n# -r other.txt\ntransformers>=4 ; python_version > '3.10'  # ./local\n",
        "--extra-index-url https://m.example/simple\n--find-links https://m.example/wheels\npandas\n",
        "thing @ https://m.example/thing-1.0-py3-none-any.whl\nother @ git+https://h.example/other@v1\n",
        "-e git+https://h.example/other@v1#egg=other\n",
        "--require-hashes\nnumpy==2.0 \\\n  --hash=sha256:00\n",
        "rich-r\nconstraint\n",
    ],
)
def test_requirements_that_are_fine(text: str) -> None:
    assert list(requirements_troubles("r.txt", text)) == []


@pytest.mark.parametrize(
    "line", ["-r base.txt", "-rbase.txt", "--requirement=base.txt", "-c c.txt", "--constraint c.txt"]
)
def test_requirements_that_include_files(line: str) -> None:
    assert list(map(str, requirements_troubles("/x/r.txt", f"numpy\n{line}  # note\n"))) == [
        f"training_image_requirements: /x/r.txt includes other files, but the build gets only this one: {line}. "
        "Remedy: write what they hold into this file, as pip-compile and uv pip compile do."
    ]


@pytest.mark.parametrize(
    "line",
    [
        *("-e .", "--editable=./x", "./x", "../x.whl", "/srv/x.whl", "~/x", "x-1.0.tar.gz", "file:///x", "."),
        *("x @ file:///x.whl", "-f wheels", "--find-links=../w"),
    ],
)
def test_requirements_that_name_files(line: str) -> None:
    assert list(map(str, requirements_troubles("r.txt", f"{line}\r\nnumpy\r\n"))) == [
        f"training_image_requirements: r.txt names files or folders, but the build gets only this file: {line}. "
        "Remedy: bring them as wheels in training_image_wheelhouse, and name the packages here."
    ]


def test_a_long_list_is_cut_and_a_line_that_goes_on_is_read_whole() -> None:
    (found,) = requirements_troubles("r.txt", "-r \\\n  a\n-r b\n-r c\n-r d\n")
    assert found.text.endswith("-r    a; -r b; -r c; …")


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ([], ""),
        (None, ""),
        ("", ""),
        (
            ["deb http://m/debian bookworm main ", "deb-src http://m/debian sid main"],
            "deb http://m/debian bookworm main\ndeb-src http://m/debian sid main\n",
        ),
        (DEB822, DEB822),
    ],
)
def test_sources_of_apt_as_a_text(given_: Any, text: str) -> None:
    assert apt_sources_text(given_) == text
    assert list(apt_sources_troubles(given_)) == []


def test_the_two_forms() -> None:
    assert is_deb822(DEB822)
    assert not is_deb822("deb [trusted=yes] http://m/debian bookworm main\n# Types: deb\n")


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (
            ["deb http://m/d sid main", "http://user:secret@m/d sid"],
            "line 2 is not a source of apt. Remedy: write it as 'deb http://HOST/debian bookworm main', or give all as "
            "deb822 (Types, URIs, Suites).",
        ),
        (["deb secret sid main"], "line 1 is not a source of apt. Remedy: "),
        (
            f"{DEB822}\nURIs: http://secret/\n",
            "entry 2 has no Types and no Suites. Remedy: see deb822 in sources.list(5).",
        ),
        (
            {"secret": 1},
            "is neither text nor a list. Remedy: give lines such as 'deb http://HOST/debian bookworm main'.",
        ),
        (7, "is neither text nor a list. Remedy: "),
    ],
)
def test_sources_of_apt_that_are_refused_without_their_password(given_: Any, expected: str) -> None:
    (found,) = apt_sources_troubles(given_)
    assert str(found).startswith(f"training_image_apt_sources: {expected}")
    assert "secret" not in str(found)


@pytest.mark.parametrize("given_", [{}, None, {"A_1": "x", "B": 7, "C": True}, {"A=B": "x"}, {"A": [1]}, ["A"]])
def test_build_arguments_without_a_secret(given_: Any) -> None:
    assert list(argument_troubles(given_)) == []
