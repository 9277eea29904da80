# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a file is as its role wants it, what is shown of it, and what is never shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import (
    ManagedFile,
    ManagedFileError,
    file_diff,
    file_is_right,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def seen(text: str | None = "x\n", **other: Any) -> dict[str, Any]:
    """Return what node_facts says of a file that is there (of a directory: None)."""
    digest = None if text is None else sha(text)
    return {"exists": True, "sha256": digest, "mode": "0644", "owner": 0, "group": 0, **other}


ABSENT = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}


@pytest.mark.parametrize(
    ("item", "found", "right"),
    [
        (ManagedFile("/f", "x\n"), seen(), True),
        (ManagedFile("/f", "y\n"), seen(), False),
        (ManagedFile("/f", "x\n", mode="0600"), seen(), False),
        (ManagedFile("/f", "x\n", owner=1), seen(), False),
        (ManagedFile("/f", "x\n", group=1), seen(), False),
        (ManagedFile("/f", ""), seen(""), True),
        (ManagedFile("/f", "ü\n"), seen("ü\n"), True),
        (ManagedFile("/f", "x\n"), ABSENT, False),
        (ManagedFile("/f", "x\n"), None, None),
        (ManagedFile("/f", "x\n", state="absent"), seen(), False),
        (ManagedFile("/f", "x\n", state="absent"), ABSENT, True),
        (ManagedFile("/f", None, state="absent"), None, None),
        # A directory, and a file in its place.
        (ManagedFile("/d", None), seen(None), True),
        (ManagedFile("/d", None, mode="0700"), seen(None), False),
        (ManagedFile("/d", None), ABSENT, False),
        (ManagedFile("/d", None), seen("x\n"), False),
        (ManagedFile("/f", "x\n"), seen(None), False),
        # A block: the mode of the file around it is not ours.
        (ManagedFile("/f", "x\n", block="b", mode="0600"), seen(), True),
        (ManagedFile("/f", "x", block="b"), seen(), True),
        (ManagedFile("/f", "y\n", block="b"), seen(), False),
        (ManagedFile("/f", "x\n", block="b"), ABSENT, False),
        (ManagedFile("/f", "", block="b"), ABSENT, True),
        (ManagedFile("/f", "", block="b"), seen(), False),
        # A path where somebody else may keep a file.
        (ManagedFile("/f", "", mark="m", state="absent"), seen(marked=False), True),
        (ManagedFile("/f", "", mark="m", state="absent"), seen(marked=True), False),
        (ManagedFile("/f", "", mark="m", state="absent"), ABSENT, True),
        (ManagedFile("/f", "y\n", mark="m"), seen(marked=True), False),
        (ManagedFile("/f", "x\n", mark="m"), seen(marked=True), True),
        (ManagedFile("/f", "x\n", mark="m"), ABSENT, False),
    ],
)
def test_file_is_right(item: ManagedFile, found: dict[str, Any] | None, right: bool | None) -> None:
    assert file_is_right(item, found) is right


def keyed(text: str, key: str, **other: Any) -> dict[str, Any]:
    """Return what node_facts says of a file with a secret."""
    return {**seen(mode="0600", keyed=True, **other), "sha256": keyed_digest(text.encode(), key)}


@pytest.mark.parametrize(
    ("found", "key", "right"),
    [
        (keyed("x\n", "k"), "k", True),
        (keyed("x\n", "k"), "another", False),
        (keyed("y\n", "k"), "k", False),
        (keyed("x\n", "k", owner=1), "k", False),
        ({**keyed("x\n", "k"), "sha256": None}, "k", False),  # a directory
        (seen(mode="0600"), "k", True),  # asked for as if it were no secret
        ({**seen(mode="0600"), "keyed": True}, "k", False),
    ],
)
def test_a_secret_is_compared_by_the_key_of_the_run(found: dict[str, Any], key: str, right: bool) -> None:
    item = ManagedFile("/f", "x\n", mode="0600", secret=True)
    assert file_is_right(item, found, key) is right
    shown = json.dumps(file_diff(item, found, key))
    assert "x\\n" not in shown and "y\\n" not in shown and str(found["sha256"]) not in shown
    # What was a secret is none any more.
    assert file_diff(ManagedFile("/f", "z\n"), keyed("x\n", "k"), "k")["before"] == "(a secret)\n"


@pytest.mark.parametrize("found", [seen(marked=False), seen()])
def test_a_file_of_somebody_elses_is_not_written_over(found: dict[str, Any]) -> None:
    with pytest.raises(ManagedFileError) as caught:
        file_is_right(ManagedFile("/etc/xdg/pip/pip.conf", "y\n", mark="Kept by us"), found)
    assert str(caught.value) == (
        "/etc/xdg/pip/pip.conf exists, but this collection did not create it: its first line does not contain 'Kept "
        "by us'. It was left unchanged. Add the settings to it yourself and unset the variables for it, or move it "
        "away."
    )


@pytest.mark.parametrize(
    ("item", "found", "before", "after"),
    [
        (ManagedFile("/f", "y\n"), seen(content="x\n"), "x\n", "y\n"),
        (ManagedFile("/f", "y\n"), seen(), f"(SHA-256 {sha('x' + chr(10))})\n", "y\n"),
        (ManagedFile("/f", "y\n"), seen("", content=""), "", "y\n"),
        (ManagedFile("/f", "y\n"), ABSENT, "", "y\n"),
        (ManagedFile("/f", "x\n", state="absent"), seen(content="x\n"), "x\n", ""),
        (ManagedFile("/f", "y", block="b"), ABSENT, "", "y\n"),
        (ManagedFile("/f", "", block="b"), seen(content="x\n"), "x\n", ""),
        (
            ManagedFile("/f", "x\n", mode="0600"),
            seen(),
            "file, mode 0644, owner 0, group 0\n",
            "file, mode 0600, owner 0, group 0\n",
        ),
        (
            ManagedFile("/f", "x\n", owner=7),
            seen(),
            "file, mode 0644, owner 0, group 0\n",
            "file, mode 0644, owner 7, group 0\n",
        ),
        (
            ManagedFile("/d", None, group=7),
            seen(None),
            "directory, mode 0644, owner 0, group 0\n",
            "directory, mode 0644, owner 0, group 7\n",
        ),
        (
            ManagedFile("/d", None),
            seen("x\n"),
            "file, mode 0644, owner 0, group 0\n",
            "directory, mode 0644, owner 0, group 0\n",
        ),
        (ManagedFile("/d", None), ABSENT, "absent\n", "directory, mode 0644, owner 0, group 0\n"),
        (ManagedFile("/d", None, state="absent"), seen(None), "directory, mode 0644, owner 0, group 0\n", "absent\n"),
        (ManagedFile("/s", "new", secret=True), seen("old"), "(a secret)\n", "(another secret)\n"),
        (ManagedFile("/s", "new", secret=True), ABSENT, "", "(another secret)\n"),
        (ManagedFile("/s", "new", secret=True, state="absent"), seen("old"), "(a secret)\n", ""),
        (
            ManagedFile("/s", "x\n", secret=True, mode="0600"),
            seen(),
            "file, mode 0644, owner 0, group 0\n",
            "file, mode 0600, owner 0, group 0\n",
        ),
    ],
)
def test_file_diff(item: ManagedFile, found: dict[str, Any], before: str, after: str) -> None:
    assert file_is_right(item, found) is False  # or there would be nothing to show
    expected = {"before": before, "after": after, "before_header": item.path, "after_header": item.path}
    assert file_diff(item, found) == expected


CONTENT = st.text("abc\n", max_size=6)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.none() | CONTENT,
    st.sampled_from(["0600", "0644"]),
    st.sampled_from([None, "b"]),
    st.sampled_from(["present", "absent"]),
    st.sampled_from([ABSENT, seen(None), seen("a", content="a"), seen("c\n"), seen("", content="")]),
)
def test_every_difference_is_visible_in_the_diff(
    content: str | None, mode: str, block: str | None, state: str, found: dict[str, Any]
) -> None:
    item = ManagedFile("/f", content, mode=mode, block=block, state=state)
    assume(not file_is_right(item, found))
    diff = file_diff(item, found)
    nothing_to_show = item.text == "" if item.wanted else found.get("content") == ""
    assert diff["before"] != diff["after"] or nothing_to_show  # an empty file that comes or goes


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(["present", "absent"]), st.sampled_from(["0600", "0644"]), st.booleans(), st.none() | st.just("b")
)
def test_a_secret_is_never_in_a_diff(state: str, mode: str, same: bool, block: str | None) -> None:
    item = ManagedFile("/s", "hunter2-new\n", mode=mode, secret=True, state=state, block=block)
    found = seen("hunter2-new\n" if same else "hunter2-old\n", content="hunter2-old\n")
    assert "hunter2" not in str(file_diff(item, found)) + str(file_diff(item, ABSENT))


@pytest.mark.parametrize(
    ("path", "mode", "message"),
    [
        ("etc/x", "0644", "'etc/x' is not an absolute path. Write it from the root: /etc/…"),
        ("", "0644", "'' is not an absolute path. Write it from the root: /etc/…"),
        ("/x", "420", "/x: mode '420' is not four octal digits. Write it as text, in quotes: \"0644\"."),
        ("/x", "u=rw", "/x: mode 'u=rw' is not four octal digits. Write it as text, in quotes: \"0644\"."),
        ("/x", "0888", "/x: mode '0888' is not four octal digits. Write it as text, in quotes: \"0644\"."),
    ],
)
def test_a_file_described_wrongly_is_refused(path: str, mode: str, message: str) -> None:
    with pytest.raises(ManagedFileError) as caught:
        ManagedFile(path, "hunter2", mode=mode)
    assert str(caught.value) == message
