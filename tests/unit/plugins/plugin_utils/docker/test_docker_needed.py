# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A run whose tags leave the role docker out, on hosts whose engine it needs."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED, requested_roles
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.needed import missing_engines
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome

from tests.requested import entries

RUNS = {"installed": True, "running": True}
STOPPED = {"installed": True, "running": False}
NONE: dict[str, bool] = {}
CONTAINERS = {"deepspeed_launch_runtime": "container"}
STARTS = "role {} needs the Docker engine, which is not running. Remedy: site.yml --tags docker,{}, which starts it"
INSTALLS = (
    "role {} needs the Docker engine, which is not installed. Remedy: site.yml --tags docker,{}, which installs it"
)


def refused(tags: list[str], skipped: list[str] | None = None, **engines: dict[str, bool]) -> list[tuple[str, str]]:
    facts = {host: {"docker": engine} for host, engine in engines.items()}
    found = missing_engines(facts, dict.fromkeys(facts, CONTAINERS), PLANNED, requested_roles(tags, skipped or []))
    return [(refusal.subject, refusal.sentence) for refusal in found]


def test_an_engine_that_the_run_does_not_start_is_refused() -> None:
    assert refused(["swarm"], gpu1=RUNS, gpu2=STOPPED, gpu3=NONE) == [
        ("gpu2", STARTS.format("swarm", "swarm")),
        ("gpu3", INSTALLS.format("swarm", "swarm")),
    ]
    both = "training_image,training_container"
    assert refused(["training_container", "training_image"], gpu1=STOPPED) == [
        ("gpu1", STARTS.format("training_image", both))
    ]
    assert [host for host, dummy in refused(["all"], ["docker"], gpu1=STOPPED)] == ["gpu1"]


@pytest.mark.parametrize("tags", [["all"], ["docker", "swarm"], ["preflight"], ["host"], ["nccl_env"], ["verify"]])
def test_nothing_is_refused_where_docker_takes_part_or_none_needs_it(tags: list[str]) -> None:
    assert refused(tags, gpu1=STOPPED, gpu2=NONE) == []


def test_nor_where_the_role_is_applied_alone_or_docker_does_not_apply() -> None:
    facts = {"gpu1": {"docker": STOPPED}}
    assert not list(missing_engines(facts, {"gpu1": CONTAINERS}, ["swarm"], ["swarm"]))
    assert not list(missing_engines(facts, {"gpu1": {"deepspeed_launch_runtime": "host"}}, PLANNED, ["swarm"]))


def test_ports_kept_from_a_swarm_matter_to_the_role_swarm_alone() -> None:
    facts = {"gpu1": {"docker": {**RUNS, "stale_swarm_ports": [7946]}}}
    assert not list(missing_engines(facts, {"gpu1": CONTAINERS}, PLANNED, ["training_image"]))
    (found,) = missing_engines(facts, {"gpu1": CONTAINERS}, PLANNED, ["swarm"])
    assert found.sentence == (
        "role swarm needs ports that the Docker engine still holds of a swarm that it has left. Remedy: site.yml "
        "--tags docker,swarm, which restarts it"
    )


def test_the_run_fails_at_it_by_the_check_of_docker() -> None:
    needed = list(missing_engines({"gpu1": {"docker": STOPPED}}, {"gpu1": CONTAINERS}, PLANNED, ["swarm"]))
    made = outcome(Plan(roles=PLANNED, hosts=("gpu1",)), "run", ["swarm"], needed)
    assert made["refused"]["docker"] == {"gpu1": entries(STARTS.format("swarm", "swarm"))}
    assert made["refused"]["swarm"] == {}
