# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""apt's sources: both formats read, and components added for the mirrors that are there."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.sources import (
    Source,
    as_dicts,
    extra_components,
    folded,
    from_dicts,
    offers_release,
    parse_sources,
    render,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

OURS = "/etc/apt/sources.list.d/swarmspeed-nvidia.sources"
DEBIAN_12 = {
    "/etc/apt/sources.list.d/debian.sources": """\
Types: deb
# a mirror
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
}
JAMMY = {
    "/etc/apt/sources.list": """\
# deb http://off.example/ubuntu jammy main
deb http://user:secret@archive.example/ubuntu jammy main universe
deb [arch=amd64,arm64 signed-by=/etc/k.gpg] http://archive.example/ubuntu jammy-updates main restricted # all of it
deb-src http://archive.example/ubuntu jammy main
"""
}
DEBIAN_COMPONENTS = ("contrib", "non-free", "non-free-firmware")


def test_debian_gets_its_missing_components_from_the_same_mirror() -> None:
    sources = parse_sources(DEBIAN_12)
    added = extra_components(sources, "bookworm", DEBIAN_COMPONENTS, OURS)
    assert (
        render(added, "ours")
        == """\
# ours
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm
Components: contrib non-free non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-updates
Components: contrib non-free non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: contrib non-free
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
    )


def test_nothing_is_added_twice_and_our_own_file_does_not_count() -> None:
    sources = parse_sources(DEBIAN_12)
    added = extra_components(sources, "bookworm", DEBIAN_COMPONENTS, OURS)
    with_ours = parse_sources({**DEBIAN_12, OURS: render(added, "ours")})
    assert extra_components(with_ours, "bookworm", DEBIAN_COMPONENTS, OURS) == added
    # In another file the same lines are somebody else's, and enough.
    theirs = parse_sources({**DEBIAN_12, "/etc/apt/sources.list.d/x.sources": render(added, "theirs")})
    assert extra_components(theirs, "bookworm", DEBIAN_COMPONENTS, OURS) == []


def test_one_line_entries_with_options() -> None:
    assert parse_sources(JAMMY) == [
        Source("/etc/apt/sources.list", "http://archive.example/ubuntu", "jammy", ("main", "universe")),
        Source(
            "/etc/apt/sources.list",
            "http://archive.example/ubuntu",
            "jammy-updates",
            ("main", "restricted"),
            (("Architectures", "amd64 arm64"), ("Signed-By", "/etc/k.gpg")),
        ),
    ]
    added = extra_components(parse_sources(JAMMY), "jammy", ("restricted",), OURS)
    assert [(source.suite, source.components) for source in added] == [("jammy", ("restricted",))]


def test_a_password_in_an_address_is_not_read() -> None:
    assert "secret" not in str(parse_sources(JAMMY))


def test_another_release_is_no_model() -> None:
    sources = parse_sources(DEBIAN_12)
    assert extra_components(sources, "trixie", DEBIAN_COMPONENTS, OURS) == []
    assert offers_release(sources, "bookworm")
    assert not offers_release(sources, "trixie")
    assert not offers_release([], "bookworm")


def test_a_key_in_a_stanza_survives() -> None:
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc=\n-----END PGP PUBLIC KEY BLOCK-----\n"
    source = Source(OURS, "http://nvidia.example/debian12/x86_64/", "/", (), (("Signed-By", folded(key)),))
    text = render([source], "ours")
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc=\n -----END" in text
    assert parse_sources({OURS: text}) == [source]


@pytest.mark.parametrize("wrong", [None, 3, [None, {"uri": ""}, {"suite": "x"}]])
def test_facts_of_another_form_are_left_out(wrong: object) -> None:
    assert from_dicts(wrong) == []


WORDS = st.text("abcdefgh0123456789-./", min_size=1, max_size=12).filter(lambda word: word.strip("./-"))


@settings(deadline=None, derandomize=True)
@given(st.lists(st.builds(Source, st.just(OURS), WORDS.map("http://{}".format), WORDS, st.lists(WORDS).map(tuple))))
def test_what_is_rendered_is_read_again(sources: list[Source]) -> None:
    assert parse_sources({OURS: render(sources, "ours")}) == sources
    assert from_dicts(as_dicts(sources)) == sources


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(st.text(), st.sampled_from(["/a.list", "/a.sources"]))
def test_any_text_is_read(text: str, name: str) -> None:
    assert all(source.uri and source.suite for source in parse_sources({name: text}))
