# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The list of VS Code's server, with the entries of this collection in it and those of others left alone."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.state import (
    SERVER,
    identity,
    updated_list,
    updated_obsolete,
)
from hypothesis import given
from hypothesis import strategies as st

ONE: dict[str, Any] = {"sha256": "ab", "id": "me.one", "version": "1.0", "platform": "", "size": 7}
TWO: dict[str, Any] = {"sha256": "cd", "id": "me.two", "version": "2.0", "platform": "linux-x64", "size": 8}
BOTH = {"me.one-1.0": ONE, "me.two-2.0-linux-x64": TWO}


def entry(name: str, location: Any, **more: Any) -> dict[str, Any]:
    return {"identifier": {"id": name}, "version": "1", "relativeLocation": location, **more}


def locations(listed: list[Any]) -> list[Any]:
    return [one["relativeLocation"] for one in listed]


def test_an_entry_has_the_form_that_vs_codes_server_writes() -> None:
    """As ``extensionsProfileScannerService.ts`` of microsoft/vscode reads and writes it."""
    assert updated_list([], BOTH, []) == [
        {
            "identifier": {"id": "me.one"},
            "version": "1.0",
            "location": {"$mid": 1, "path": f"{SERVER}/me.one-1.0", "scheme": "file"},
            "relativeLocation": "me.one-1.0",
            "metadata": {"source": "vsix", "pinned": True, "targetPlatform": "undefined", "size": 7},
        },
        {
            "identifier": {"id": "me.two"},
            "version": "2.0",
            "location": {"$mid": 1, "path": f"{SERVER}/me.two-2.0-linux-x64", "scheme": "file"},
            "relativeLocation": "me.two-2.0-linux-x64",
            "metadata": {"source": "vsix", "pinned": True, "targetPlatform": "linux-x64", "size": 8},
        },
    ]


@pytest.mark.parametrize(
    ("listed", "removed", "expected"),
    [
        ([entry("you.x", "you.x-3")], [], ["you.x-3", "me.one-1.0"]),
        # Of another version, or twice.
        ([entry("me.one", "me.one-0.9"), entry("you.x", "you.x-3")], [], ["you.x-3", "me.one-1.0"]),
        ([entry("Me.One", "me.one-1.0"), entry("me.one", "me.one-1.0")], [], ["me.one-1.0"]),
        # What this collection unpacked goes; what VS Code has in its place by now stays.
        ([entry("me.two", "me.two-2.0")], ["me.two-2.0"], ["me.one-1.0"]),
        ([entry("me.two", "me.two-2.1")], ["me.two-2.0"], ["me.two-2.1", "me.one-1.0"]),
    ],
)
def test_which_entries_stay(listed: list[Any], removed: list[str], expected: list[str]) -> None:
    assert locations(updated_list(listed, {"me.one-1.0": ONE}, removed)) == expected


def test_what_vs_code_has_added_to_an_entry_stays() -> None:
    more = entry("me.one", "me.one-1.0", metadata={"installedTimestamp": 1790000000000})
    assert updated_list([more], {"me.one-1.0": ONE}, []) == [more]


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, {"identifier": 1}, entry("x", []), entry("x", {"a": []})])
def test_odd_entries_are_those_of_others(odd: Any) -> None:
    assert updated_list([odd], {}, ["me.one-1.0"]) == [odd]
    assert identity(odd) in ("", "x")


@pytest.mark.parametrize(
    ("marked", "left"),
    [
        ({}, {}),
        ({"me.one-1.0": True, "you.x-3": True}, {"you.x-3": True}),
        ({"me.one-1.0-universal": True, "me.one-1.0.1": True}, {"me.one-1.0.1": True}),
        ({"me.two-2.0-linux-x64": True, "me.one-1": True}, {"me.one-1": True}),
    ],
)
def test_what_is_wanted_is_not_marked_for_removal(marked: dict[str, Any], left: dict[str, Any]) -> None:
    assert updated_obsolete(marked, BOTH) == left


entries = st.one_of(
    st.builds(entry, st.sampled_from(["me.one", "ME.TWO", "you.x"]), st.sampled_from([*BOTH, "other", None])),
    st.none(),
    st.integers(),
)


@given(
    listed=st.lists(entries), wanted=st.sets(st.sampled_from(sorted(BOTH))), removed=st.sets(st.sampled_from(["other"]))
)
def test_a_second_time_nothing_changes(listed: list[Any], wanted: set[str], removed: set[str]) -> None:
    record = {name: BOTH[name] for name in sorted(wanted)}
    made = updated_list(listed, record, removed)
    assert updated_list(made, record, removed) == made
    for name, one in record.items():
        assert [one["relativeLocation"] for one in made if identity(one) == BOTH[name]["id"]] == [name]
    others = [one for one in listed if not isinstance(one, dict) or identity(one) == "you.x"]
    gone = [one for one in others if isinstance(one, dict) and one["relativeLocation"] in removed]
    kept = [one for one in made if not isinstance(one, dict) or identity(one) == "you.x"]
    assert kept == [one for one in others if one not in gone]
