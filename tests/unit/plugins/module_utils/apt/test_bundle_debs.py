# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Debian's packages in a bundle: versions, what apt says, what a node lacks, and a repository of it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_packages import (
    Deb,
    DebError,
    choose,
    compare,
    lacking,
    packages_text,
    parse_deb,
    parse_installed,
    parse_uris,
    release_text,
    stanzas,
)
from hypothesis import given
from hypothesis import strategies as st

STANZA = f"""Package: docker.io
Source: docker.io (20.10.24+dfsg1-1+deb12u1)
Version: 20.10.24+dfsg1-1+deb12u1+b6
Depends: libc6 (>= 2.34), runc
Architecture: amd64
Description-en: Linux container runtime
 Docker complements kernel namespacing
 .
 with a high-level API.
Filename: pool/main/d/docker.io/docker.io_20.10.24+dfsg1-1+deb12u1+b6_amd64.deb
Size: 36256664
SHA256: {"da" * 32}"""

# Each answer is that of `dpkg --compare-versions`.
OLDER = [
    ("1.0", "1.1"),
    ("1.0~rc1", "1.0"),
    ("1.0~~", "1.0~"),
    ("1.0", "1.0a"),
    ("1.0a", "1.0+b"),
    ("1.9", "1.10"),
    ("9", "1:1"),
    ("1.0-1", "1.0-1+deb12u1"),
    ("2.36-9+deb12u7", "2.36-9+deb12u14"),
    ("20.10.24+dfsg1-1+deb12u1", "20.10.24+dfsg1-1+deb12u1+b6"),
    ("1.6.20~ds1-1", "1.6.20-1"),
    ("1.0-1", "1.0.1-1"),
    ("1.0-a", "1.0-a1"),
]
EQUAL = [("1.0", "0:1.0"), ("1.0", "1.0-0"), ("1.00", "1.0"), ("1.01-1", "1.1-01")]


@pytest.mark.parametrize(("low", "high"), OLDER)
def test_an_older_version_is_older_either_way_round(low: str, high: str) -> None:
    assert (compare(low, high), compare(high, low)) == (-1, 1)


@pytest.mark.parametrize(("short", "long"), EQUAL)
def test_versions_that_are_written_otherwise_can_be_equal(short: str, long: str) -> None:
    assert (compare(short, long), compare(long, short)) == (0, 0)


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg on this machine")
@pytest.mark.parametrize(("one", "other"), OLDER + EQUAL)
def test_dpkg_says_the_same(one: str, other: str) -> None:
    relation = "lt" if (one, other) in OLDER else "eq"
    assert subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False).returncode == 0


VERSIONS = st.from_regex(r"([0-9]:)?[0-9][0-9a-c.+~]{0,5}(-[0-9a-c.+~]{1,4})?", fullmatch=True)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_versions_have_one_order(one: str, two: str, three: str) -> None:
    assert compare(one, one) == 0
    assert compare(one, two) == -compare(two, one)
    if compare(one, two) <= 0 and compare(two, three) <= 0:
        assert compare(one, three) <= 0


def test_what_apt_would_fetch_is_read_with_its_quoted_epoch() -> None:
    text = (
        "Reading package lists...\n"
        "'http://mirror.example.com/pool/libd/libdevmapper_1.02.185-2_amd64.deb' "
        "libdevmapper1.02.1_2%3a1.02.185-2_amd64.deb 134196 SHA256:00\n"
        "'http://mirror.example.com/pool/a/adduser_3.134_all.deb' adduser_3.134_all.deb 183272 \n"
    )
    assert parse_uris(text) == [("libdevmapper1.02.1", "2:1.02.185-2", "amd64"), ("adduser", "3.134", "all")]


def test_a_file_of_apts_that_is_no_package_is_refused() -> None:
    with pytest.raises(
        DebError, match=r"apt names a file odd\.deb, which does not have the form package_version_architecture\.deb"
    ):
        parse_uris("'http://mirror.example.com/odd.deb' odd.deb 12 \n")


def test_a_paragraph_is_read_and_its_file_lies_beside_the_list() -> None:
    deb = parse_deb(STANZA)
    assert (deb.name, deb.version, deb.architecture) == ("docker.io", "20.10.24+dfsg1-1+deb12u1+b6", "amd64")
    assert (deb.source, deb.source_version) == ("docker.io", "20.10.24+dfsg1-1+deb12u1")
    assert deb.file == "docker.io_20.10.24+dfsg1-1+deb12u1+b6_amd64.deb"
    assert f"\nFilename: ./{deb.file}\n" in deb.stanza
    assert "\n with a high-level API.\n" in deb.stanza


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("SHA256: ", "SHA1: "), "docker.io: its repository does not state its sha256"),
        (("Package: docker.io\n", ""), "a package: its repository does not state its package"),
        (
            ("da" * 32, "xy"),
            r"docker.io: its repository has an unexpected file name, size or digest of it \('docker.io_20",
        ),
        (("_amd64.deb", "_amd64.deb;rm"), r"docker.io: its repository has an unexpected file name"),
        (("Size: 36256664", "Size: many"), "docker.io: its repository has an unexpected file name, size or digest"),
        (("Source: docker.io (", "Source: a b ("), "docker.io: its repository names an odd source package"),
    ],
)
def test_an_odd_paragraph_is_refused_in_words(change: tuple[str, str], text: str) -> None:
    with pytest.raises(DebError, match=text):
        parse_deb(STANZA.replace(*change))


def deb(name: str, version: str = "1", architecture: str = "amd64", digest: str = "ab" * 32) -> Deb:
    return parse_deb(
        f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
        f"Filename: pool/{name}.deb\nSize: 10\nSHA256: {digest}"
    )


def test_every_package_that_apt_wants_must_be_shown() -> None:
    one, other = deb("one"), deb("other")
    wanted = [("one", "1", "amd64")]
    assert choose([other, one], [*wanted, *wanted]) == [one]
    with pytest.raises(DebError, match="one: apt wants version 2 for amd64, but does not show it"):
        choose([one], [("one", "2", "amd64")])
    with pytest.raises(DebError, match=r"one: two repositories have different files named one\.deb"):
        choose([one, deb("one", "2", digest="cd" * 32)], [*wanted, ("one", "2", "amd64")])


@pytest.mark.parametrize(
    ("installed", "lacks"),
    [
        ({}, True),
        ({"one:amd64": "2"}, False),
        ({"one:amd64": "3"}, False),
        ({"one:amd64": "1"}, True),
        ({"one:arm64": "2"}, True),
        ({"other:amd64": "2"}, True),
    ],
)
def test_a_node_lacks_what_it_has_not_or_has_older(installed: dict[str, str], lacks: bool) -> None:
    assert (lacking([deb("one", "2")], installed) != []) is lacks


def test_a_package_for_all_architectures_may_be_installed_as_the_nodes() -> None:
    assert lacking([deb("one", "2", "all")], {"one:amd64": "2"}) == []
    assert lacking([deb("one", "2", "all")], {"one:all": "2"}) == []


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.dictionaries(NAMES, VERSIONS), st.dictionaries(NAMES, VERSIONS))
def test_who_installs_what_is_lacking_lacks_nothing(offered: dict[str, str], there: dict[str, str]) -> None:
    debs = [deb(name, version) for name, version in offered.items()]
    installed = {f"{name}:amd64": version for name, version in there.items()}
    sent = lacking(debs, installed)
    assert lacking(debs, {**installed, **{f"{one.name}:amd64": one.version for one in sent}}) == []
    # What is not sent is there already, in this version or a newer one.
    for one in debs:
        assert one in sent or compare(there[one.name], one.version) >= 0


def test_a_list_reads_back_as_it_was_written() -> None:
    debs = [deb("one"), parse_deb(STANZA), deb("two", "1:2~3", "all")]
    assert [parse_deb(stanza) for stanza in stanzas(packages_text(debs))] == debs
    assert list(stanzas("")) == []


def test_the_release_says_how_its_list_is_known() -> None:
    text = packages_text([deb("one")])
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert f"SHA256:\n {digest} {len(text)} Packages\n" in release_text(text)


def test_only_what_is_wholly_installed_counts() -> None:
    text = (
        "ii  libc6 amd64 2.36-9\nrc  gone amd64 1\niU  half amd64 1\nhi  held amd64 2\nun  never amd64\n"
        "iFR broken amd64 1\n"
    )
    assert parse_installed(text) == {"libc6:amd64": "2.36-9", "held:amd64": "2"}
