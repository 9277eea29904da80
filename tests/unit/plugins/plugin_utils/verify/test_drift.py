# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What verify says of a role that would change something. Facts are invented; their shape is that of node_facts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.comparison import OwnedFile, OwnedFileError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.drift import (
    RoleDrift,
    RoleState,
    drift,
    selected,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

ENV = OwnedFile("/etc/env", "TOKEN=hunter2\n", mode="0600", secret=True)
BLOCK = OwnedFile("/etc/hosts", "10.0.0.1 gpu1\n", block="ours")
GONE = OwnedFile("/etc/old", None, state="absent")
FOLDER = OwnedFile("/etc/folder", None, mode="0755")
MARKED = OwnedFile("/etc/pip.conf", "# Ours\n", mark="Ours")
ABSENT = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}


def found(item: OwnedFile, **changed: Any) -> dict[str, Any]:
    """Return what node_facts finds of a file that is right, but for what is changed."""
    attributes = {"mode": item.mode, "owner": item.owner, "group": item.group, "marked": True}
    return {"exists": True, "sha256": item.sha256, **attributes, **changed}


def of_file(item: OwnedFile, fact: dict[str, Any]) -> tuple[str, ...]:
    return tuple(text for one in drift([RoleState("host", {}, {}, [item])], {item.path: fact}) for text in one.what)


@pytest.mark.parametrize(
    ("item", "fact", "what"),
    [
        (ENV, found(ENV), ()),
        (ENV, ABSENT, ("/etc/env is missing",)),
        (ENV, found(ENV, sha256="other"), ("/etc/env has other content",)),
        (ENV, found(ENV, mode="0644"), ("/etc/env has mode 0644, wanted is 0600",)),
        (
            ENV,
            found(ENV, owner=1, group=2),
            ("/etc/env has owner 1, wanted is 0", "/etc/env has group 2, wanted is 0"),
        ),
        (BLOCK, found(BLOCK, mode="0666", owner=7), ()),
        (BLOCK, ABSENT, ("the block 'ours' of /etc/hosts is missing",)),
        (BLOCK, found(BLOCK, sha256="other"), ("the block 'ours' of /etc/hosts has other content",)),
        (GONE, ABSENT, ()),
        (GONE, found(FOLDER), ("/etc/old is there and should not be",)),
        (FOLDER, found(FOLDER, sha256="a file"), ("/etc/folder is no folder",)),
        (FOLDER, found(FOLDER, mode="0700"), ("/etc/folder has mode 0700, wanted is 0755",)),
        (
            MARKED,
            found(MARKED, marked=False),
            (
                "/etc/pip.conf exists and is not ours: its first line does not say 'Ours'. It was left alone. Write "
                "what is wanted into it yourself and unset the variables for it, or move it away",
            ),
        ),
    ],
)
def test_how_a_file_differs(item: OwnedFile, fact: dict[str, Any], what: tuple[str, ...]) -> None:
    assert of_file(item, fact) == what


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ({"a": 1}, {"a": 1}, ()),
        ({"a": 1, "mine": 2}, {"a": 1}, ()),
        ({}, {"state": "running"}, ("state is absent, wanted is running",)),
        ({"missing": ["bc"]}, {"missing": []}, ("missing is ['bc'], wanted is []",)),
        ({"sysctls": {"net.core.x": "1"}}, {"sysctls": {"net.core.x": "2"}}, ("sysctls.net.core.x is 1, wanted is 2",)),
        ({"a": "one\ntwo"}, {"a": ""}, ("a is one two, wanted is (empty)",)),
        ({"a": "\x1b[2Jgone"}, {"a": "x"}, ("a is \\x1b[2Jgone, wanted is x",)),
        ({"a": "x" * 300}, {"a": None}, (f"a is {'x' * 200} (cut off), wanted is absent",)),
    ],
)
def test_how_a_value_differs(before: dict[str, Any], after: dict[str, Any], what: tuple[str, ...]) -> None:
    assert tuple(text for one in drift([RoleState("host", before, after)], {}) for text in one.what) == what


def test_roles_are_listed_in_the_order_given_and_once() -> None:
    states = [
        RoleState("host", {}, {"a": 1}),
        RoleState("docker", {}, {}),
        RoleState("workspace", {}, {"b": 1}),
        RoleState("host", {}, {"c": 1}),
    ]
    assert [(one.role, len(one.what)) for one in drift(states, {})] == [("host", 2), ("workspace", 1)]


def test_one_line_names_host_role_difference_and_remedy() -> None:
    assert RoleDrift("host", ("/etc/env is missing", "a is 1, wanted is 2")).sentence("gpu2") == (
        "gpu2: role host: /etc/env is missing; a is 1, wanted is 2. Remedy: ansible-playbook site.yml --tags host"
    )


def test_a_file_that_no_one_asked_about_is_an_error() -> None:
    with pytest.raises(OwnedFileError, match="/etc/env: node_facts was not asked about this file"):
        drift([RoleState("host", {}, {}, [ENV])], {})


@pytest.mark.parametrize(
    ("role", "roles", "tags", "compared"),
    [
        ("host", ["host", "docker"], ["all"], True),
        ("swarm", ["host", "docker"], ["host", "docker"], False),
        ("deepspeed_launch", ["preflight"], ["hostfile"], True),
        ("deepspeed_launch", ["preflight"], ["ds_config", "host"], True),
        ("deepspeed_launch", ["preflight"], ["host"], False),
    ],
)
def test_only_roles_of_the_tags_are_compared(role: str, roles: list[str], tags: list[str], compared: bool) -> None:
    assert selected(role, roles, tags) is compared


@settings(max_examples=examples(200), deadline=None)
@given(st.text(), st.text(), st.sampled_from(["0600", "0644"]))
def test_no_content_is_shown_and_equal_files_do_not_differ(wanted: str, there: str, mode: str) -> None:
    item, other = OwnedFile("/etc/env", f"W{wanted}W"), OwnedFile("/etc/env", f"T{there}T")
    words = of_file(item, found(other, mode=mode))
    assert (words == ()) is (item.content == other.content and mode == item.mode)
    assert set(words) <= {"/etc/env has other content", "/etc/env has mode 0600, wanted is 0644"}


def test_a_secret_file_is_compared_by_the_key_of_the_run() -> None:
    item = OwnedFile("/etc/env", "HF_TOKEN=abc\n", mode="0600", secret=True)
    fact = {"exists": True, "mode": "0600", "owner": 0, "group": 0, "keyed": True}
    known = {"/etc/env": {**fact, "sha256": keyed_digest(b"HF_TOKEN=abc\n", "key")}}
    states = [RoleState("nccl_env", {}, {}, [item])]
    assert drift(states, known, "key") == []
    edited = {"/etc/env": {**fact, "sha256": keyed_digest(b"HF_TOKEN=abd\n", "key")}}
    assert drift(states, edited, "key") == [RoleDrift("nccl_env", ("/etc/env has other content",))]
