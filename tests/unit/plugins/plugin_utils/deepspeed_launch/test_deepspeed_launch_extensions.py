# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Extensions of VS Code in the plan: by the digests that role assets has listed on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.gathered import (
    cache_of,
    manifest_path,
    sources_of,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest, to_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.planner import DeepspeedLaunchPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text
from hypothesis import given
from hypothesis import strategies as st

from tests.role_values import defaults

ROLE, OPTION, ROOT = "deepspeed_launch", "deepspeed_launch_vscode_extensions", "/srv/lab"
A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
PYTHON, DEBUGGER, COPY, ONE = "vscode/python.vsix", "vscode/sub/debugger.vsix", "vscode/copy.vsix", "one/x.vsix"
DIGESTS = {PYTHON: A, DEBUGGER: B, COPY: A, ONE: C}
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
    assets_sources=[
        {"name": "vscode", "folder": "/x"},
        {"name": "one", "url": "https://x.example/x.vsix", "sha256": C},
    ],
    assets_path="/data/assets",
    assets_cache="/cache",
    assets_huggingface_endpoint="https://hub.example",
)
HOSTFILE = {"exists": True, "mode": "0644", "owner": 0, "group": 0, "content": "gpu1 slots=1\n"}
MANIFESTS = (
    Manifest("/x", "", (("python.vsix", 1, A), ("sub/debugger.vsix", 1, B), ("copy.vsix", 1, A))),
    Manifest("https://x.example/x.vsix", "", (("x.vsix", 1, C),)),
)
FILES = {
    f"text:{manifest_path(cache_of(ROLE_VARS), source)}": to_text(manifest)
    for source, manifest in zip(sources_of(ROLE_VARS), MANIFESTS)
}


def there(*digests: str, intact: bool = True) -> dict[str, Any]:
    return {sha256: {"folder": f"me.{sha256[0]}-1.0", "intact": intact} for sha256 in digests}


def plan(*listed: str, found: Mapping[str, Any] | None = None, files: Any = None, **desired: Any) -> Plan:
    facts: dict[str, Any] = {"gpu1": {"files": {}, "vscode": found or {}}}
    known = FILES if files is None else files
    inputs = Inputs({"slots": {"gpu1": 1}, "gpus_known": True}, known, "key")
    return fold([DeepspeedLaunchPlanner()], facts, {"gpu1": {**ROLE_VARS, OPTION: list(listed), **desired}}, inputs)


def shown(made: Plan) -> list[tuple[str, str]]:
    """The changes that concern extensions: their sign, and what they are of."""
    begin = "VS Code extension "
    return [(one.action, one.what.removeprefix(begin)) for one in made.changes if one.what.startswith(begin)]


def task_input(made: Plan) -> Mapping[str, Any]:
    found: Mapping[str, Any] = made.task_inputs["gpu1"][ROLE]["extensions"]
    return found


@pytest.mark.parametrize(
    ("listed", "found", "expected"),
    [
        ([], {}, []),
        ([PYTHON], {}, [("+", PYTHON)]),
        ([PYTHON, DEBUGGER, ONE], there(A), [("+", DEBUGGER), ("+", ONE)]),
        ([PYTHON], there(A), []),
        ([PYTHON], there(A, intact=False), [("~", PYTHON)]),
        ([PYTHON], there(A, D), [("-", "me.d-1.0")]),
        # Another file of that name: the one before goes.
        ([PYTHON], there(D), [("+", PYTHON), ("-", "me.d-1.0")]),
        ([], there(A, B), [("-", "me.a-1.0"), ("-", "me.b-1.0")]),
    ],
)
def test_what_is_unpacked_and_removed(listed: list[str], found: Any, expected: Any) -> None:
    made = plan(*listed, found=found)
    assert shown(made) == expected and not made.refusals
    paths = [f"/data/assets/{path}" for path in listed]
    assert task_input(made) == ({"root": f"{ROOT}/vscode", "files": paths} if expected else {})
    assert shown(plan(*listed, found=made.facts["gpu1"]["vscode"])) == []


def test_how_it_is_reported() -> None:
    made = plan(PYTHON, DEBUGGER, found={**there(A, intact=False), **there(D)})
    assert [drift_text(one) for one in made.changes if "VS Code" in one.what] == [
        f"VS Code extension {PYTHON} is removed from its folder or from VS Code's list, but should be unpacked",
        f"VS Code extension {DEBUGGER} is missing",
        "VS Code extension me.d-1.0 exists, but should not",
    ]


@pytest.mark.parametrize(
    ("listed", "desired", "sentence"),
    [
        (
            ["vscode/none.vsix"],
            {},
            f"{OPTION}: vscode/none.vsix is not a file of assets_sources. Remedy: write NAME/FILE, with the name of an "
            "asset that has it",
        ),
        (
            ["/data/assets/vscode/python.vsix"],
            {},
            f"{OPTION}: /data/assets/vscode/python.vsix is not a file of assets_sources. Remedy: write NAME/FILE, with "
            "the name of an asset that has it",
        ),
        (
            [PYTHON, COPY],
            {},
            f"{OPTION}: {COPY} is listed twice, perhaps by another name. Remedy: list it once",
        ),
        (
            [PYTHON],
            {"deepspeed_launch_runtime": "host"},
            f"{OPTION} is for VS Code in training containers, not for deepspeed_launch_runtime: host. Remedy: leave "
            f"{OPTION} out",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(listed: list[str], desired: dict[str, Any], sentence: str) -> None:
    made = plan(*listed, **desired)
    assert [one.sentence for one in made.refusals] == [sentence]
    assert shown(made) == [] and task_input(made) == {}


@pytest.mark.parametrize("listed", [["../x"], ["vscode/../one/x.vsix"], ["vscode//python.vsix"], [""], ["vscode"]])
def test_a_path_that_leads_elsewhere_is_no_file_of_an_asset(listed: list[str]) -> None:
    assert "is not a file of assets_sources" in plan(*listed).refusals[0].text


def test_a_list_of_files_that_is_damaged_has_none() -> None:
    assert plan(PYTHON, files={}).refusals and plan(PYTHON, files=dict.fromkeys(FILES, "{}")).refusals
    assert shown(plan(ONE, assets_sources="no list")) == []


def test_the_lists_of_role_assets_are_read_where_extensions_are_listed() -> None:
    planner = DeepspeedLaunchPlanner()
    assert list(planner.files({**ROLE_VARS, OPTION: [PYTHON]})) == list(FILES)
    assert list(planner.files(ROLE_VARS)) == []


def test_where_the_role_is_applied_alone_nothing_is_known_of_files() -> None:
    alone = {name: value for name, value in ROLE_VARS.items() if not name.startswith("assets_")}
    facts: dict[str, Any] = {"gpu1": {"files": {}, "vscode": there(D)}}
    inputs = Inputs({"slots": {"gpu1": 1}}, {}, "key")
    made = fold([DeepspeedLaunchPlanner()], facts, {"gpu1": {**alone, OPTION: [PYTHON]}}, inputs)
    assert shown(made) == [] and not made.refusals and made.facts["gpu1"]["vscode"] == there(D)


def test_what_is_compared_is_gathered() -> None:
    assert GATHERED.by_role_vars is not None and GATHERED.by_role_vars(ROLE_VARS)["vscode"] == f"{ROOT}/vscode"
    assert Path(task_input(plan(PYTHON))["root"]) == Path(ROOT, "vscode")


paths = st.lists(st.sampled_from([PYTHON, DEBUGGER, ONE]), unique=True)
states = st.dictionaries(
    st.sampled_from([A, B, C, D]), st.booleans().map(lambda intact: {"folder": "me.x-1", "intact": intact})
)


@given(listed=paths, found=states)
def test_what_is_planned_leads_to_what_is_listed(listed: list[str], found: dict[str, Any]) -> None:
    made = plan(*listed, found=found)
    after = made.facts["gpu1"]["vscode"] if made.changes else found
    assert set(after) == {DIGESTS[path] for path in listed} and all(one["intact"] for one in after.values())
    assert shown(plan(*listed, found=after)) == []
