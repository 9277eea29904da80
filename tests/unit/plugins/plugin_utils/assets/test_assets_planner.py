# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role assets, over invented nodes: what is lacking, who gives it, and what forbids it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.gathered import (
    by_role_vars,
    manifest_path,
    sources_of,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest, to_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.planner import LISTED, NOTHING, AssetsPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import change_lines
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import VariableError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asset_hosts import NET, ROLE_VARS, ROOT, WHOLE, A, B, C, host, plan, task_input
from tests.effort import examples
from tests.role_values import NODES

ONE, TWO, THREE = NODES


def lines(made: Plan, name: str) -> list[str]:
    return [line.strip() for change in made.of("assets", name) for line in change_lines(change)]


def test_without_sources_nothing_is_gathered_and_what_is_not_understood_is_named() -> None:
    assert by_role_vars({**ROLE_VARS, "assets_sources": []}) == {}
    with pytest.raises(
        VariableError,
        match=r"^assets_sources: net: exactly one of huggingface, url and folder is needed \(given: none\)$",
    ):
        by_role_vars({**ROLE_VARS, "assets_sources": [{"name": "net"}]})


def test_a_source_that_was_not_listed_is_of_another_host(tmp_path: Path) -> None:
    role_vars = {**ROLE_VARS, "assets_cache": str(tmp_path)}
    reported = (
        "^assets_sources: net differs from those of the first host; assets_sources must be the same on all hosts$"
    )
    with pytest.raises(VariableError, match=reported):
        by_role_vars(role_vars)
    (source,) = sources_of(role_vars)
    path = manifest_path(tmp_path, source)
    path.parent.mkdir()
    path.write_text(to_text(NET), encoding="utf-8")
    assert by_role_vars(role_vars) == {"assets": {"root": ROOT, "wanted": {"net": NET.digest}}}


def test_where_all_is_as_wanted_nothing_is_planned() -> None:
    made = plan()
    assert not made.changes and not made.refusals
    assert task_input(made, ONE) == {**NOTHING, "root": ROOT, "names": ["net"]}


def test_new_nodes_get_it_from_the_first_which_gets_it_from_the_controller() -> None:
    made = plan(host(), host(), host())
    source = "as in hub.example/team/net at 0123456789ab"
    assert lines(made, TWO) == [f"+ {ROOT}/net/config.json: {source}", f"+ {ROOT}/net/weights/1.bin: {source}"]
    assert task_input(made, ONE)["chain"] == [ONE, TWO, THREE] == task_input(made, THREE)["chain"]
    assert task_input(made, ONE)["fetch"] == [A, B] and task_input(made, TWO)["fetch"] == []
    assert list(task_input(made, ONE)["manifests"]) == ["net"]
    assert task_input(made, TWO)["addresses"][ONE] == "10.0.0.0"


def test_a_node_that_has_all_gives_and_nothing_is_fetched() -> None:
    made = plan(host(), host(), host(WHOLE))
    assert task_input(made, THREE)["chain"] == [THREE, ONE, TWO] and task_input(made, THREE)["fetch"] == []
    assert lines(made, THREE) == [
        f"~ net on {name}: 2 files missing or different → as on {THREE}" for name in (ONE, TWO)
    ]
    made = plan(host())
    assert task_input(made, TWO)["chain"] == [TWO, ONE] and task_input(made, THREE)["chain"] == []
    assert not made.of("assets", THREE)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({**WHOLE, "changed": ["config.json"], "missing": ["config.json"]}, f"+ {ROOT}/net/config.json: "),
        ({**WHOLE, "changed": ["config.json"]}, f"~ {ROOT}/net/config.json: changed on the node → "),
        (
            {**WHOLE, "digest": C, "files": {"config.json": C, "weights/1.bin": B}},
            f"~ {ROOT}/net/config.json: different → ",
        ),
        ({**WHOLE, "digest": C, "files": {"weights/1.bin": B}}, f"+ {ROOT}/net/config.json: "),
        (
            {**WHOLE, "digest": C, "files": {"config.json": A, "weights/1.bin": B, "old": C}},
            f"- {ROOT}/net/old: listed before",
        ),
    ],
)
def test_only_what_differs_is_planned(found: dict[str, Any], line: str) -> None:
    made = plan(host(found))
    (shown,) = lines(made, ONE)
    assert shown.startswith(line)
    fold_again(made)


def fold_again(made: Plan) -> None:
    """On the facts afterwards nothing is planned."""
    again = plan(*(made.facts[name] for name in NODES))
    assert not again.changes


def test_files_of_somebody_else_are_replaced_only_with_consent() -> None:
    found = {"recorded": False, "there": True, "digest": "", "changed": [], "files": {}}
    made = plan(host(found))
    (change,) = made.of("assets", ONE)
    assert change.missing_consent is not None
    assert change.missing_consent.effect == (
        f"files in {ROOT}/net that this role did not put there are replaced where they differ"
    )
    assert change.missing_consent.remedy == "set assets_allow_adopt: true to allow it, or move the folder away first"
    assert not plan(host(found), assets_allow_adopt=True).missing_consents


def test_a_disk_that_is_too_small_is_refused_on_its_node_alone() -> None:
    made = plan(host(free=1 << 29), host())
    (refusal,) = made.refusals
    assert (refusal.subject, refusal.sentence) == (
        ONE,
        f"512.0 MiB are free in {ROOT}, but 1.0 GiB are needed there for net. Remedy: free space there, or set "
        "assets_path to a folder on a larger disk",
    )
    # What an interrupted transfer has left counts.
    assert not plan(host(free=1 << 29, came=1 << 29 | 1 << 20)).refusals


def test_a_file_system_that_nodes_share_is_refused() -> None:
    (refusal,) = plan(host(kind="nfs4")).refusals
    assert refusal.sentence == (
        f"{ROOT} is on nfs4; several nodes may have it mounted, and each of them would write there. Remedy: set "
        "assets_path to a folder on a disk of the node's own"
    )
    assert not plan(host(WHOLE, kind="nfs4")).refusals


@pytest.mark.parametrize("variable", ["training_container_environment", "nccl_env_environment"])
def test_a_cache_that_programs_compile_into_is_not_among_the_assets(variable: str) -> None:
    desired: dict[str, Any] = {variable: {"TRITON_CACHE_DIR": f"{ROOT}/net/cache", "HF_HOME": ROOT, "OTHER": 1}}
    assert [refusal.sentence for refusal in plan(**desired).refusals] == [
        f"TRITON_CACHE_DIR in {variable} is below {ROOT}, where programs cannot write. "
        "Remedy: set TRITON_CACHE_DIR to a folder of each node's own, such as /tmp/cache, or leave it out"
    ] * 3
    beside: dict[str, Any] = {variable: {"TRITON_CACHE_DIR": f"{ROOT}2/cache"}}
    assert not plan(**beside).refusals
    assert not plan(**desired, assets_sources=[]).refusals


def test_many_files_are_counted() -> None:
    many = Manifest("t", "", tuple((f"{number:03}", 1, f"{number:064x}") for number in range(100)))
    found = lines(plan(host(), manifest=many), ONE)
    assert len(found) == LISTED + 1 and found[-1] == f"+ {100 - LISTED} more files below {ROOT}/net: as in t"


def test_where_a_host_is_not_known_nothing_is_planned() -> None:
    made = fold([AssetsPlanner()], {ONE: host()}, {ONE: ROLE_VARS}, Inputs({"hosts": list(NODES)}))
    assert not made.changes and task_input(made, ONE) == NOTHING


STATES = st.fixed_dictionaries(
    {
        "recorded": st.booleans(),
        "there": st.booleans(),
        "digest": st.sampled_from(["", NET.digest, C]),
        "changed": st.lists(st.sampled_from(["config.json", "weights/1.bin", "old"]), unique=True),
        "files": st.dictionaries(st.sampled_from(["config.json", "weights/1.bin", "old"]), st.sampled_from([A, B, C])),
    }
)


@settings(max_examples=examples(200))
@given(st.lists(STATES, min_size=3, max_size=3))
def test_on_the_facts_afterwards_nothing_is_planned(states: list[dict[str, Any]]) -> None:
    made = plan(*map(host, states), assets_allow_adopt=True)
    fold_again(made)
    chain: list[str] = next((task_input(made, name)["chain"] for name in NODES if task_input(made, name)["chain"]), [])
    for name in NODES:
        # Whoever has something to do takes part, and no one else does.
        assert (name in chain) is bool(made.of("assets", name)) is bool(task_input(made, name)["chain"])
