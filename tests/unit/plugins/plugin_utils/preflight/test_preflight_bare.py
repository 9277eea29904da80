# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Preflight on servers without Docker: what is asked of them, and what is not. The facts are invented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem, collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import (
    INVENTORY_CHECKS,
    check_managers,
    check_runtime,
)

from tests.requested import requested

HOSTS = ("gpu1", "gpu2", "gpu3", "gpu4")
GIB = 2**30

NO_OVERLAY = (
    "cluster_network_mode: is overlay, but with deepspeed_launch_runtime: host there is no container that an overlay "
    "could join{}. Remedy: remove cluster_network_mode, which is host then, or set deepspeed_launch_runtime: container."
)
NO_KEYS = (
    "deepspeed_launch_transport: is pdsh, but with deepspeed_launch_runtime: host no keys are made with which root "
    "could log in to your servers{}. Remedy: set deepspeed_launch_transport: direct, which needs none, or "
    "deepspeed_launch_runtime: container."
)


def inventory(runtime: str = "host", mode: str = "host", transport: str = "direct", **by_host: Any) -> Inventory:
    """Return four servers, the first two managers; ``by_host`` are variables that single hosts have."""
    everywhere = {
        "deepspeed_launch_runtime": runtime,
        "cluster_network_mode": mode,
        "deepspeed_launch_transport": transport,
    }
    return Inventory(
        groups={"cluster": list(HOSTS), "managers": ["gpu1", "gpu2"], "workers": ["gpu3", "gpu4"]},
        hosts={host: {**everywhere, **by_host.get(host, {})} for host in HOSTS},
        defaults={"cluster_name": "demo", **everywhere},
    )


def reported(check: Callable[[Inventory], Any], of: Inventory) -> list[str]:
    return [problem.line() for problem in check(of)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (inventory(), []),
        (inventory("container", "overlay", "pdsh"), []),
        (inventory("container", "host", "pdsh"), []),
        (inventory("container", "overlay", "direct"), []),
        (inventory("host", "overlay"), [NO_OVERLAY.format("")]),
        (inventory("host", "host", "pdsh"), [NO_KEYS.format("")]),
        (inventory("host", "overlay", "pdsh"), [NO_OVERLAY.format(""), NO_KEYS.format("")]),
        (
            inventory("container", "overlay", "pdsh", gpu3={"deepspeed_launch_runtime": "host"}),
            [
                "deepspeed_launch_runtime: differs between hosts of one cluster: 'container' for gpu1, gpu2, gpu4; "
                "'host' for gpu3. Remedy: set it once, for the whole group cluster.",
                NO_OVERLAY.format(" (set for gpu3)"),
                NO_KEYS.format(" (set for gpu3)"),
            ],
        ),
    ],
)
def test_runtime_network_and_transport_fit(given: Inventory, expected: list[str]) -> None:
    assert reported(check_runtime, given) == expected


def test_the_check_is_one_of_a_runs() -> None:
    found = collect(INVENTORY_CHECKS, inventory("host", "overlay"))
    assert [(problem.check, problem.line()) for problem in found.problems] == [("runtime", NO_OVERLAY.format(""))]


def test_without_a_swarm_managers_need_no_majority() -> None:
    assert reported(check_managers, inventory()) == []
    assert "managers decide by majority" in reported(check_managers, inventory("container"))[0]
    # Hosts that disagree are refused anyway: until then it may become a swarm.
    mixed = inventory("container", gpu3={"deepspeed_launch_runtime": "host"})
    assert "managers decide by majority" in reported(check_managers, mixed)[0]


@pytest.mark.parametrize(
    ("runtime", "why"), [("host", "rank 0 runs on the first manager"), ("container", "a swarm needs a manager")]
)
def test_somebody_must_be_first(runtime: str, why: str) -> None:
    empty = Inventory(
        groups={"cluster": ["gpu1"], "managers": [], "workers": ["gpu1"]},
        defaults={"deepspeed_launch_runtime": runtime},
    )
    (problem,) = check_managers(empty)
    assert problem.subject == "group managers" and problem.text.endswith(f", and {why}")


BARE: dict[str, Any] = {
    "system": {"distribution": "debian", "release": "12", "python": "3.11.2", "systemd": True},
    "clock": {"offset": 0.0, "uncertainty": 0.1},
    "disk": {"/opt/train": {"free_bytes": 30 * GIB, "total_bytes": 100 * GIB}},
    "files": {"/opt/train/.swarmspeed": {"exists": False}},
    "listening": {"tcp": [22, 2222], "udp": []},
    "fabric": {"interfaces": [{"name": "eth0", "addresses": [{"subnet": "10.1.0.0/24"}]}], "routes": []},
    "docker": {
        "running": False,
        "error": "no engine",
        "swarm": {"state": "locked"},
        "networks": {},
        "containers": {},
        "images": {},
    },
}
# What only containers need, each not met by the host above.
DOCKERS: dict[str, Any] = {
    "network_mode": "host",
    "managers": ["gpu1"],
    "overlay_subnet": "10.1.0.0/24",
    "image_present": "demo:1",
}


def problems(facts: dict[str, Any], **wanted: Any) -> list[Problem]:
    given = Facts({"gpu1": facts}, requested(**wanted))
    return list(collect(FACT_CHECKS, given).problems)


def test_nothing_is_asked_of_docker_on_servers_without_it() -> None:
    # The same host with containers: each check that must not speak here has something to say.
    assert {problem.check for problem in problems(BARE, runtime="container", **DOCKERS)} == {
        "foreign_swarm",
        "port_2222",
        "image",
    }
    in_overlay = problems(BARE, runtime="container", **{**DOCKERS, "network_mode": "overlay"})
    assert "overlay_subnet" in {problem.check for problem in in_overlay}
    assert problems(BARE, runtime="host", **DOCKERS) == []
    assert problems(BARE, runtime="host", **{**DOCKERS, "network_mode": "overlay"}) == []


@pytest.mark.parametrize(
    ("runtime", "words"),
    [("container", "starts and watches Docker"), ("host", "restores the ports opened in the firewall")],
)
def test_systemd_is_wanted_for_what_needs_it(runtime: str, words: str) -> None:
    facts = {**BARE, "docker": {**BARE["docker"], "swarm": {"state": "inactive"}}}
    facts["system"] = {**BARE["system"], "systemd": False}
    (problem,) = problems(facts, runtime=runtime)
    assert (problem.check, problem.subject) == ("systemd", "gpu1") and problem.text.endswith(f"; it {words}")


@pytest.mark.parametrize(("free", "there", "ok"), [(30, False, True), (8, False, False), (8, True, True)])
def test_space_for_the_environment_is_asked_until_it_is_there(free: int, there: bool, ok: bool) -> None:
    facts = {
        **BARE,
        "disk": {"/opt/train": {"free_bytes": free * GIB}},
        "files": {"/opt/train/.swarmspeed": {"exists": there}},
    }
    need = {"bytes": 25 * GIB, "unless_file": "/opt/train/.swarmspeed"}
    found = problems(facts, runtime="host", space={"/opt/train": need})
    assert [(problem.check, problem.subject) for problem in found] == ([] if ok else [("disk", "gpu1")])
    assert all(" at /opt/train" in problem.text for problem in found)
