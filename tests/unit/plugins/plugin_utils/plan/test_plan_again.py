# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a plan that is made again has, and the first plan of the run did not have."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.again import followed, unforeseen
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Changes, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.document import document
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import unforeseen_text


def planned(role: str = "docker", **after: Any) -> Plan:
    changes = Changes(role, "gpu1")
    for what, value in after.items():
        changes.add(what, None, value)
    return Plan((role,), ("gpu1",), tuple(changes.found))


def entry(plan: Plan) -> dict[str, Any]:
    return document(plan, "run")


FIRST = planned(mtu=1450, version=Unknown("apt chooses"), hold=True)


@pytest.mark.parametrize(
    ("later", "places"),
    [
        (FIRST, []),
        (planned(), []),
        (planned(hold=True), []),
        (planned(version="28.1"), []),
        (planned(mtu=1400), [0]),
        (planned(hold=True, user="ada"), [1]),
        (planned(mtu=Unknown("of the hosts")), [0]),
        (planned("swarm", mtu=1400), []),
    ],
)
def test_what_was_not_foreseen(later: Plan, places: list[int]) -> None:
    assert unforeseen(entry(FIRST), entry(later)) == places


def test_the_report_keeps_the_first_plan_and_what_was_found_after_it_once() -> None:
    first = entry(FIRST)
    report = followed(followed(first, entry(planned(user="ada"))), entry(planned(user="ada")))
    assert report["changes"] == first["changes"] and report["counts"] == first["counts"]
    assert [(one["what"], one["after"]) for one in report["found_after_apply"]] == [("user", "ada")]


def test_roles_that_are_applied_one_by_one_add_their_first_plans() -> None:
    report = followed(entry(FIRST), entry(planned("swarm", member=True)))
    assert report["roles"] == ["docker", "swarm"] and report["counts"] == {"add": 4, "change": 0, "remove": 0}
    assert report["found_after_apply"] == []
    assert [one["what"] for one in followed(report, entry(planned("swarm", label=True)))["found_after_apply"]] == [
        "label"
    ]


def test_what_is_printed() -> None:
    assert unforeseen_text(planned(user="ada").changes) == "Found after apply:\ngpu1\n  docker\n    + user: ada"
    assert unforeseen_text([]) == ""
