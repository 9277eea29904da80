# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nccl_env alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.files import ENTRY_POINT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NcclEnvPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.cluster_view import cluster_view

from tests.adversary.hostile import facts as honest
from tests.nccl_nodes import TEXT
from tests.role_values import defaults
from tests.stand_ins import StandIns, changed, tasks

ROOT = "/srv/swarmspeed/swarmspeed"
RECORD = f"{ROOT}/etc/nccl.release"
IMAGE, ID = "train:1", f"sha256:{'ab' * 32}"
NAMES = ("gpu1", "gpu2")
CLUSTER: dict[str, Any] = {"cluster_network_mode": "host", "swarmspeed_image": IMAGE}
GATHERS = [
    "Determine which hosts the role is planned for",
    "Mark a standalone run",
    "Generate the run's id and the key for digests of secrets",
    "Gather facts",
    "Determine cluster-wide facts",
    "Plan what the role would change",
]


def found(number: int, files: dict[str, Any] | None = None) -> dict[str, Any]:
    facts = copy.deepcopy(honest(number))
    entries = requested({}, [GATHERED], defaults())["files"]
    facts["files"] = {**{entry["path"]: dict(ABSENT) for entry in entries}, **(files or {})}
    facts["docker"]["images"] = {IMAGE: ID}
    facts["docker"]["containers"] = {}
    return facts


def done(number: int) -> dict[str, Any]:
    """Facts of a host whose settings are written, and whose image was asked."""
    facts = {f"gpu{one}": found(one, {RECORD: recorded()} if one == number else None) for one in (1, 2)}
    view = cluster_view(list(NAMES), facts)
    role_vars = defaults(cluster_network_mode="host")
    inputs = Inputs({**view, "image": IMAGE}, {ENTRY_POINT: TEXT})
    made = fold([NcclEnvPlanner()], facts, dict.fromkeys(facts, role_vars), inputs)
    after = copy.deepcopy(dict(made.facts[f"gpu{number}"]))
    # By the key of a run a stand-in cannot digest it; without one it is compared by its plain digest.
    (env,) = [
        entry for entry in made.task_inputs[f"gpu{number}"]["nccl_env"]["files"] if entry["path"].endswith("/env")
    ]
    after["files"][env["path"]] = {
        **after["files"][env["path"]],
        "sha256": ManagedFile(env["path"], env["content"]).sha256,
        "keyed": False,
    }
    return after


def recorded() -> dict[str, Any]:
    text = f"{ID} 2.27.3\n"
    known = {"exists": True, "mode": "0644", "owner": 0, "group": 0}
    return {**known, "content": text, "sha256": ManagedFile(RECORD, text).sha256}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path, "nccl_env")
    made.add("gpu1", done(1))
    made.add("gpu2", found(2), found(2, {RECORD: recorded()}), done(2), replies={"command": {"rc": 0, "stdout": "2"}})
    return made


def test_it_asks_the_image_plans_again_and_writes(hosts: StandIns) -> None:
    output = hosts.play(**CLUSTER)
    assert changed(output).keys() == {"gpu1", "gpu2"} and changed(output)["gpu1"] == 0, output
    assert hosts.modules("gpu1") == ["node_facts"]
    sent = hosts.modules("gpu2")
    assert [name for name in sent if name in ("node_facts", "command")] == [
        *("node_facts", "command", "node_facts", "node_facts")
    ]
    assert sent.count("file") + sent.count("copy") >= 4
    assert "gpu1 goes on" in output and "gpu2 goes on" in output
    # A second run gathers and plans, and nothing else is sent.
    output = hosts.play(**CLUSTER)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    dummy, include, *gathered, last = tasks(output)
    assert include == "Gather facts and plan, unless this run already has" and last == "Afterwards"
    assert [name.removeprefix("preflight : ") for name in gathered] == GATHERS


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", **CLUSTER, nccl_env_environment={"HF_TOKEN": "never-to-be-seen"})
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    assert f"~ {ROOT}/etc/env: (a secret) → (another secret)" in output
    assert f"+ {RECORD}: (known after apply)  # another image" in output and "never-to-be-seen" not in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(
    ("arguments", "of_play", "reported"),
    [
        (["--limit", "gpu1"], {}, "--limit leaves out gpu2. Remedy: run without --limit."),
        ([], {"serial": 1}, "serial leaves gpu2 to another batch. Remedy: take serial out of the play."),
        ([], {"strategy": "free"}, "the play has strategy: free, under which hosts do not wait for one another."),
    ],
)
def test_it_needs_the_whole_cluster(hosts: StandIns, arguments: list[str], of_play: Any, reported: str) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play, **CLUSTER).split())
    assert (
        f"role nccl_env concerns all hosts of the groups managers and workers, and needs them together: {reported}"
        in output
    )
    assert hosts.modules("gpu1") == [] and hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_what_the_images_release_would_not_take_is_refused_and_nothing_is_written(hosts: StandIns) -> None:
    output = " ".join(hosts.play(**CLUSTER, nccl_env_settings={"NCCL_SOCKET_NTHREADS": 99}).split())
    assert "gpu1: NCCL_SOCKET_NTHREADS '99' is not a whole number from 1 to 16. Remedy: correct it" in output
    assert hosts.modules("gpu1") == ["node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_in_an_overlay_it_finds_the_network_by_the_defaults_of_its_role(hosts: StandIns) -> None:
    output = hosts.play("--check", swarmspeed_image=IMAGE)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    assert "nccl.conf" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_lists_what_is_not_done(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", deepspeed_launch_runtime="host", **CLUSTER).split())
    assert f"gpu2: role nccl_env: {ROOT}" in output and "Remedy: ansible-playbook site.yml --tags nccl_env" in output
