# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Records of folders in a plan: of each role that puts something into one, once, and first."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.record import STATES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env import gathered as nccl_env
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Changes
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.owned import add_records, recorded, unrecorded
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import change_lines
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust import gathered as ssh_trust
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container import (
    gathered as training_container,
)

from tests.role_values import defaults

ROOT = "/srv/swarmspeed/lab"
WORDS = {
    "absent": "this collection's  # it is made",
    "empty": "this collection's  # it is empty",
    "made": "this collection's  # it holds only what it made",
    "in_use": "not this collection's  # there are other files in it: teardown leaves it",
}


def facts(**states: str) -> dict[str, Any]:
    return {"folders": {f"/{name}": {"real": f"/{name}", "state": state} for name, state in states.items()}}


@pytest.mark.parametrize("state", STATES)
def test_what_is_recorded_already_is_no_change_and_what_is_planned_is_recorded_then(state: str) -> None:
    found, changes = facts(a=state), Changes("workspace", "gpu1")
    paths = unrecorded(found, ["/a", "/a", "/never-asked-about"])
    add_records(changes, found, paths)
    lines = [line for change in changes.found for line in change_lines(change)]
    assert lines == ([f"+ record of folder /a: {WORDS[state]}"] if state in WORDS else [])
    after = {"folders": recorded(found, paths)}
    assert after["folders"]["/a"]["state"] == ("theirs" if state in ("in_use", "theirs") else "ours")
    assert unrecorded(after, ["/a"]) == []


def test_whatever_a_role_before_has_put_into_it_a_folder_that_is_made_is_no_surprise() -> None:
    """As the folder of an image on its way: the plan planned that it is made, and now it is empty, or holds that."""
    planned = set()
    for state in ("absent", "empty", "made"):
        changes = Changes("ssh_trust", "gpu1")
        add_records(changes, facts(a=state), ["/a"])
        planned |= {(change.what, change.before, change.after) for change in changes.found}
    assert len(planned) == 1


def test_folders_that_others_make_are_recorded_where_they_are() -> None:
    assert unrecorded(facts(a="absent", b="made"), ["/a", "/b"], there=True) == ["/b"]


def test_what_several_roles_ask_about_is_asked_once() -> None:
    role_vars = defaults(cluster_name="lab", cluster_root=ROOT, workspace_path="/code")
    parts = [ssh_trust.GATHERED, nccl_env.GATHERED, training_container.GATHERED]
    merged = requested({}, parts, role_vars)["folders"]
    assert (merged["cluster"], merged["root"]) == ("lab", ROOT)
    assert len(merged["paths"]) == len(set(merged["paths"]))
    assert {ROOT, f"{ROOT}/etc", f"{ROOT}/jobs", f"{ROOT}/host_jobs", "/code"} <= set(merged["paths"])
