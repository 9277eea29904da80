# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A git repository as the source of the workspace: what is refused, which commit a reference means, why git failed."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository import (
    SourceError,
    failure,
    named,
    notes,
    parse,
    resolve,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40
URL = "https://example.com/team/train.git"
WAYS = (
    "use one that begins with https://, ssh://, file://, http://, git://, or git@host:path, or the absolute path of a "
    "repository on the controller"
)


def refused(source: str, reference: str = "main", folder: str = "") -> str:
    with pytest.raises(SourceError) as error:
        parse(source, reference, folder)
    return str(error.value)


@pytest.mark.parametrize(
    ("source", "url"),
    [
        (URL, URL),
        ("ssh://git@example.com:2222/train.git", "ssh://git@example.com:2222/train.git"),
        ("git@example.com:team/train.git", "git@example.com:team/train.git"),
        ("[fd00::1]:train.git", "[fd00::1]:train.git"),
        ("file:///srv/train.git", "file:///srv/train.git"),
        ("/srv/train.git", "/srv/train.git"),
        ("https://me:s3cr%2Fet@example.com/t.git", "https://example.com/t.git"),
    ],
)
def test_what_may_be_named(source: str, url: str) -> None:
    assert parse(source, "v1.2", "").url == url


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ext::sh", f"workspace_source: 'ext::sh' is not a URL of a supported kind. Remedy: {WAYS}."),
        (
            "-oProxyCommand=x:y",
            f"workspace_source: '-oProxyCommand=x:y' is not a URL of a supported kind. Remedy: {WAYS}.",
        ),
        (
            "--upload-pack=touch",
            f"workspace_source: '--upload-pack=touch' is not a URL of a supported kind. Remedy: {WAYS}.",
        ),
        ("code", f"workspace_source: 'code' is not a URL of a supported kind. Remedy: {WAYS}."),
        ("fd::7", f"workspace_source: 'fd::7' is not a URL of a supported kind. Remedy: {WAYS}."),
        ("ftp://a/b", f"workspace_source: 'ftp://a/b' is not a URL of a supported kind. Remedy: {WAYS}."),
        (
            "ssh://-oProxyCommand=x/b",
            "workspace_source: 'ssh://-oProxyCommand=x/b' names no host, or an option. Remedy: correct it.",
        ),
        ("https:///b", "workspace_source: 'https:///b' names no host, or an option. Remedy: correct it."),
        ("https://a:b/c", "workspace_source: 'https://a:b/c' is not a URL. Remedy: correct it."),
        ("https://a:0/c", "workspace_source: 'https://a:0/c' names no host, or an option. Remedy: correct it."),
        ("ssh://a/-x", "workspace_source: 'ssh://a/-x' names no host, or an option. Remedy: correct it."),
        ("git@a:-x", f"workspace_source: 'git@a:-x' is not a URL of a supported kind. Remedy: {WAYS}."),
        (
            "https://a/c\u3000",
            "workspace_source: 'https://a/c\\u3000' has spaces or control characters in it. Remedy: correct the URL.",
        ),
        (
            "ext::sh -c date",
            "workspace_source: 'ext::sh -c date' has spaces or control characters in it. Remedy: correct the URL.",
        ),
        (
            "http://example.com/t.git",
            "workspace_source: http://example.com/t.git is fetched without encryption, so anyone on the network path "
            "could replace the code. Remedy: use https or ssh, or give the whole commit (40 characters) in "
            "workspace_source_ref.",
        ),
        (
            "ssh://me:geheim77@example.com/t.git",
            "workspace_source: 'ssh://********@example.com/t.git' contains a password, which ssh would show to others. "
            "Remedy: remove it, and use https, or ssh with a key.",
        ),
        (
            "http://geheim77@example.com/t.git",  # a token in place of the user
            "workspace_source: 'http://********@example.com/t.git' contains a password, which http would show to "
            "others. Remedy: remove it, and use https, or ssh with a key.",
        ),
    ],
)
def test_what_is_refused(source: str, text: str) -> None:
    assert refused(source) == text


def test_without_encryption_the_commit_is_a_digest_of_what_is_fetched() -> None:
    assert parse("http://example.com/t.git", ONE, "").commit == ONE


@pytest.mark.parametrize(
    "reference", ["-x", "a..b", "a b", "a.lock", "a/", "@{-1}", "a~1", "a:b", "", ".a", "a/.b", "a//b"]
)
def test_a_reference_that_git_would_take_for_something_else(reference: str) -> None:
    assert refused(URL, reference) == (
        f"workspace_source_ref: {reference!r} is not a valid name of a tag or branch, nor a commit. Remedy: correct "
        "it; see git ls-remote."
    )


@pytest.mark.parametrize("folder", ["/etc", "..", "a/../..", "a//b", ".git", "a/.git/hooks", "./a", "a\0b"])
def test_a_folder_stays_in_the_repository(folder: str) -> None:
    assert refused(URL, "v1", folder) == (
        f"workspace_source_folder: {folder!r} is not a folder of a repository. Remedy: give a path relative to its "
        "root."
    )


def test_a_folder_of_the_controller_and_a_repository_are_told_apart_by_the_reference() -> None:
    assert named("/home/me/src", "", "") is False
    assert named("/home/me/src", "main", "") is True
    for source in (URL, "git@example.com:t.git"):
        with pytest.raises(SourceError) as error:
            named(source, "", "")
        assert str(error.value) == (
            f"workspace_source: {source!r} is the URL of a git repository, but workspace_source_ref is empty. Remedy: "
            "name a tag, branch or commit in workspace_source_ref."
        )
    with pytest.raises(SourceError) as error:
        named("/home/me/src", "", "sub")
    assert str(error.value) == (
        "workspace_source_folder: is set, but only a git repository has one. Remedy: name a tag, branch or commit in "
        "workspace_source_ref."
    )


def test_what_a_repository_is_called() -> None:
    assert parse(URL, ONE, "sub").name(ONE) == f"{URL} at commit 111111111111, folder sub"
    assert parse(URL, "v1", "").name(ONE) == f"{URL} at v1 (commit 111111111111)"


def test_credentials_reach_git_by_its_environment_alone() -> None:
    repository = parse("https://me:s3cr%2Fet@example.com/t.git", "v1", "")
    assert repository.environment(2) == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_2": "http.https://example.com/.extraHeader",
        "GIT_CONFIG_VALUE_2": "Authorization: Basic bWU6czNjci9ldA==",
    }
    same = parse("https://example.com/t.git", "v1", "")
    assert same.environment(0) == {} and same.key == repository.key
    assert "s3cr" not in repository.key + repository.name(ONE) + str(failure(repository, "fatal: x"))


def listing(**commits: str) -> str:
    names = {"b": "refs/heads/v1", "t": "refs/tags/v1", "p": "refs/tags/v1^{}", "o": "refs/heads/old/refs/heads/v1"}
    return "".join(f"{commit}\t{names[short]}\n" for short, commit in commits.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (listing(b=ONE), ("refs/heads/v1", ONE)),
        (listing(t=ONE), ("refs/tags/v1", ONE)),
        (listing(t=ONE, p=TWO), ("refs/tags/v1", TWO)),  # an annotated tag is an object of its own
        (listing(o=THREE, b=ONE), ("refs/heads/v1", ONE)),
        (listing(b=TWO, t=ONE, p=TWO), ("refs/heads/v1", TWO)),
    ],
)
def test_which_commit_a_reference_means(text: str, expected: tuple[str, str]) -> None:
    assert resolve(parse(URL, "v1", ""), text) == expected


@pytest.mark.parametrize(
    ("reference", "text", "why"),
    [
        (
            "v1",
            listing(b=ONE, t=TWO),
            f"{URL} has both a branch and a tag v1, and they are not the same commit. Remedy: write refs/heads/v1 or "
            "refs/tags/v1.",
        ),
        (
            "v1",
            listing(o=ONE),
            f"{URL} has no tag or branch v1. Remedy: correct it; git ls-remote lists the tags and branches.",
        ),
        (
            "0a1b2c3",
            "",
            f"{URL} has no tag or branch 0a1b2c3. Remedy: give the whole commit, which has 40 characters: servers do "
            "not accept abbreviated ones.",
        ),
    ],
)
def test_a_reference_that_means_no_commit(reference: str, text: str, why: str) -> None:
    with pytest.raises(SourceError) as error:
        resolve(parse(URL, reference, ""), text)
    assert str(error.value) == f"workspace_source_ref: {why}"


@pytest.mark.parametrize(
    ("output", "text"),
    [  # as git 2.39 prints them
        (
            "fatal: unable to access 'https://example.com/team/train.git/': Could not resolve host: example.com\n",
            f"workspace_source: {URL} cannot be reached from the controller (fatal: unable to access "
            "'https://example.com/team/train.git/': Could not resolve host: example.com). Remedy: check its network "
            "and "
            "git's proxy (git config http.proxy), or name a commit that was fetched before.",
        ),
        (
            "fatal: could not read Username for 'https://example.com': terminal prompts disabled\n",
            f"workspace_source: {URL} needs a login, or does not exist (fatal: could not read Username for "
            "'https://example.com': terminal prompts disabled). Remedy: correct the URL, or give git access to it on "
            "the "
            "controller (git credential, or a key of ssh).",
        ),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            f"workspace_source: {URL} is on a host whose SSH key is not known to this controller (fatal: Could not "
            "read from remote repository). Remedy: log in there once by ssh, compare the key, and run again.",
        ),
        (
            "remote: gone\nfatal: repository 'https://example.com/team/train.git/' not found\n",
            f"workspace_source: {URL} is not a git repository (fatal: repository "
            "'https://example.com/team/train.git/' not found). Remedy: correct workspace_source.",
        ),
        (
            "fatal: remote error: upload-pack: not our ref 1111\n",
            f"workspace_source_ref: {URL} does not have v1 (fatal: remote error: upload-pack: not our ref 1111). "
            "Remedy: correct workspace_source_ref; some servers provide only tags and branches.",
        ),
        (
            "fatal: detected dubious ownership in repository at '/srv/t'\n",
            f"workspace_source: {URL} belongs to another user of the controller, so git does not read it (fatal: "
            "detected dubious ownership in repository at '/srv/t'). Remedy: git config --global --add safe.directory, "
            "with its path.",
        ),
        (
            "",
            f"workspace_source: git could not fetch {URL} (no reason given). Remedy: correct that, and run again.",
        ),
    ],
)
def test_why_git_failed(output: str, text: str) -> None:
    assert str(failure(parse(URL, "v1", ""), output)) == text


def test_what_a_server_says_at_length_is_shortened() -> None:
    reported = str(failure(parse(URL, "v1", ""), f"fatal: remote error: {'x' * 5000}\n"))
    assert reported == (
        f"workspace_source: git could not fetch {URL} (fatal: remote error: {'x' * 179}). "
        "Remedy: correct that, and run again."
    )


def test_what_is_left_out_is_listed() -> None:
    found = {"submodules": ["b", "a"], "large": [], "links": [f"l{number}" for number in range(6)]}
    assert notes(parse(URL, "v1", ""), found) == [
        f"workspace_source: {URL}: its submodules are not fetched, so their folders are empty: a, b.",
        f"workspace_source: {URL}: links that lead out of it are left out: l0, l1, l2, l3, l4 and more.",
    ]


@given(
    source=st.one_of(st.text(), st.from_regex(r"(https?|ssh|file|ext|git)(://|::)[ -~]*", fullmatch=True)),
    reference=st.one_of(st.text(), st.sampled_from(["main", "v1", ONE])),
    folder=st.one_of(st.text(), st.sampled_from(["", "a/b"])),
)
@example("ssh://a@b@c/d", "main", "")
@example("https://[/x", "main", "")
@settings(max_examples=examples(2000), deadline=None)
def test_whatever_is_named_is_refused_in_words_or_harmless(source: str, reference: str, folder: str) -> None:
    try:
        found = parse(source, reference, folder)
    except SourceError as error:
        assert "\n" not in str(error) and ". Remedy: " in str(error)
        return
    assert not found.url.startswith("-") and "::" not in found.url.partition("/")[0].partition("[")[0]
    assert not reference.startswith("-") and found.key.replace("-", "").replace(".", "").replace("_", "").isalnum()
    assert ".." not in found.folder.split("/") and not found.folder.startswith("/")
