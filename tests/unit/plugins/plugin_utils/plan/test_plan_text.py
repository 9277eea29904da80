# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A plan as text, as sentences of verify, as Ansible's diff and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Changes, Consent, Unknown, sealed
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.document import document, plain, written
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome, stops
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import (
    change_lines,
    diff,
    drift_text,
    plan_text,
    shown,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

SECRET = "hunter2"
EFFECT = "the engine must be restarted for its proxy, which stops these running containers: job"


def consent(given_: bool) -> Consent:
    return Consent("docker_allow_restart", EFFECT, given_, "stop the containers first")


def plan(*given_: bool) -> Plan:
    """A plan for two hosts; on the second the engine is to be restarted, with or without consent."""
    one, two = Changes("docker", "gpu1"), Changes("docker", "gpu2")
    one.add("package docker.io", None, Unknown("the version that apt chooses"), "docker_source: distribution")
    one.add("/etc/docker/daemon.json mtu", 1500, 1450)
    one.add("/etc/proxy.env", sealed("old", "k"), sealed(SECRET, "k"))
    one.add("/etc/apt/docker.sources", None, "Types: deb\nURIs: https://example.com\n")
    one.add("user ada in group docker", None, True, "docker_users")
    one.add("hold on docker.io", True, None)
    for allowed in given_:
        two.add("service docker.service", "running", "restarted", "its proxy", consent(allowed))
    return Plan(
        ("docker",), ("gpu1", "gpu2", "gpu3"), (*one.found, *two.found), acts={"gpu1": {"docker": {"p": SECRET}}}
    )


def test_the_plan_is_grouped_by_host_and_role() -> None:
    assert plan_text(plan(False)) == (
        "gpu1\n"
        "  docker\n"
        "    + package docker.io: (known after apply)  # docker_source: distribution\n"
        "    ~ /etc/docker/daemon.json mtu: 1500 → 1450\n"
        "    ~ /etc/proxy.env: (a secret) → (another secret)\n"
        "    + /etc/apt/docker.sources: (2 lines)\n"
        "    + user ada in group docker  # docker_users\n"
        "    - hold on docker.io\n"
        "\n"
        "gpu2\n"
        "  docker\n"
        "    ~ service docker.service: running → restarted  # its proxy\n"
        f"        {EFFECT}: not allowed without docker_allow_restart: true\n"
        "\n"
        "Needs your consent:\n"
        f"  gpu2: docker: {EFFECT}. Remedy: set docker_allow_restart: true to allow it, or stop the containers first.\n"
        "\n"
        "Plan: 3 to add, 3 to change, 1 to remove."
    )


def test_a_consent_that_is_given_is_shown_as_given() -> None:
    text = plan_text(plan(True))
    assert f"        {EFFECT}: allowed by docker_allow_restart: true\n" in text
    assert "Needs your consent" not in text and text.endswith("\nPlan: 3 to add, 3 to change, 1 to remove.")


def test_without_changes_there_is_one_line() -> None:
    assert plan_text(Plan(("docker",), ("gpu1",))) == "No changes."


def test_what_is_refused_is_listed() -> None:
    refused = Plan(("docker",), ("gpu1",), refusals=(Problem("gpu1", "x is odd", "correct it", role="docker"),))
    assert plan_text(refused) == "Refused:\n  gpu1: docker: x is odd. Remedy: correct it.\n\nNo changes."


def test_verify_says_what_is_missing_too_much_or_different() -> None:
    assert [drift_text(change) for change in plan(False).changes] == [
        "package docker.io is missing",
        "/etc/docker/daemon.json mtu is 1500, wanted is 1450",
        "/etc/proxy.env has other content",
        "/etc/apt/docker.sources is missing",
        "user ada in group docker is missing",
        "hold on docker.io is there and should not be",
        "service docker.service is running, wanted is restarted",
    ]
    changes = Changes("docker", "gpu1")
    changes.add("package docker-ce", "27.1", Unknown("version 28, as apt has it"))
    changes.add("/etc/x", "SHA-256 ab", "one\ntwo\n")
    assert [drift_text(change) for change in changes.found] == [
        "package docker-ce is 27.1, wanted is version 28, as apt has it",
        "/etc/x has other content",
    ]


def test_the_diff_has_texts_whole_and_values_on_one_line() -> None:
    values, text = diff(plan(False).changes)
    assert values["before"] == (
        "package docker.io: absent\n/etc/docker/daemon.json mtu: 1500\n/etc/proxy.env: (a secret)\n"
        "user ada in group docker: absent\nhold on docker.io: true\nservice docker.service: running\n"
    )
    assert values["after"] == (
        "package docker.io: (known after apply)\n/etc/docker/daemon.json mtu: 1450\n/etc/proxy.env: (another secret)\n"
        "user ada in group docker: true\nhold on docker.io: absent\nservice docker.service: restarted\n"
    )
    assert text == {
        "before": "",
        "after": "Types: deb\nURIs: https://example.com\n",
        "before_header": "/etc/apt/docker.sources",
        "after_header": "/etc/apt/docker.sources",
    }
    assert diff([]) == []


def test_the_document_is_json_and_seals_what_is_secret() -> None:
    found = json.loads(written(document(plan(False), "run1")))
    assert {key: value for key, value in found.items() if key != "changes"} == {
        "format": 1,
        "run": "run1",
        "roles": ["docker"],
        "hosts": ["gpu1", "gpu2", "gpu3"],
        "counts": {"add": 3, "change": 3, "remove": 1},
        "refusals": [],
        "found_after_apply": [],
    }
    package, dummy, proxy, *dummy, service = found["changes"]
    assert package == {
        "host": "gpu1",
        "role": "docker",
        "what": "package docker.io",
        "action": "+",
        "before": None,
        "after": {"unknown": "the version that apt chooses"},
        "why": "docker_source: distribution",
        "consent": None,
    }
    assert proxy["before"] == {"sealed": sealed("old", "k").digest[:16]}
    assert service["consent"] == {
        "variable": "docker_allow_restart",
        "effect": EFFECT,
        "given": False,
        "remedy": "set docker_allow_restart: true to allow it, or stop the containers first",
    }


def test_no_secret_is_in_what_is_shown() -> None:
    made = outcome(plan(False), "run1", ["docker"])
    acts = made.pop("acts")
    assert acts["gpu1"] == {"docker": {"p": SECRET}}
    assert SECRET not in json.dumps(made)


def test_the_outcome_is_by_host_and_role() -> None:
    made = outcome(plan(False), "run1", ["swarm"])
    assert made["pending"] == {"gpu1": {"docker": True}, "gpu2": {"docker": True}, "gpu3": {"docker": False}}
    assert made["stops"]["gpu1"] == {"docker": []}
    assert made["stops"]["gpu2"]["docker"][0].startswith(EFFECT)
    assert made["drift"]["gpu3"] == {"docker": []} and made["diffs"]["gpu3"] == {"docker": []}
    # The tags name another role, so nothing of this one is shown; it is planned all the same.
    assert made["text"] == "No changes."
    assert made["document"]["changes"] == [] and made["document"]["roles"] == []


def test_a_refusal_is_reported_before_a_consent() -> None:
    refusal = Problem("gpu2", "x is odd", "correct it", role="docker")
    base = plan(False)
    both = Plan(base.roles, base.hosts, base.changes, (refusal,))
    assert stops(both, "docker", "gpu2") == ["x is odd. Remedy: correct it"]
    assert outcome(both, "", [])["refused"] == {"docker": {"gpu2": [{"text": "x is odd", "remedy": "correct it"}]}}
    assert stops(plan(True), "docker", "gpu2") == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "absent"),
        (True, "true"),
        (0, "0"),
        (1.0, "1.0"),
        ("", "(empty)"),
        ("a\tb", "a b"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ([1, "ä"], '[1, "ä"]'),
        ({"max-size": "1m"}, '{"max-size": "1m"}'),
        ("x" * 201, "x" * 200 + " (cut off)"),
        ("one\n", "(1 line)"),
        ("one\ntwo", "(2 lines)"),
    ],
)
def test_a_value_is_shown_on_one_line(value: Any, text: str) -> None:
    assert shown(value) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(VALUES, st.none() | VALUES)
def test_whatever_a_value_is_it_stays_on_its_line(after: Any, before: Any) -> None:
    changes = Changes("docker", "gpu1")
    if after is None or before == after:
        return
    change = changes.add("it", before, after)
    (line,) = change_lines(change)
    assert line.isprintable() and line.startswith(f"{change.action} it")
    assert drift_text(change).isprintable()
    json.dumps(document(Plan(("docker",), ("gpu1",), (change,))))
    assert plain(after) == after
