# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Engines that do not read each other's packets on an encrypted overlay: by release, and refused at the beginning."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.encryption import numbers_otherwise, refusals
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import DockerPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold

from tests.engine_hosts import INPUTS, ROLE_VARS, host

OLD = "5:28.5.2-1~debian.13~trixie"
ODD = "5:29.1.3-1~debian.13~trixie"
NEW = "5:29.2.1-1~debian.13~trixie"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("20.10.24+dfsg1-1+deb12u1", False),
        ("26.1.5+dfsg1-9", False),
        (OLD, False),
        ("29.0.0", True),
        (ODD, True),
        ("29.1.3-0ubuntu3~24.04.1", True),
        ("29.2.0", True),
        (NEW, False),
        ("29.7.2", False),
        ("25.0.12", False),
        ("25.0.13", True),
        ("25.0.14", True),
        ("25.0.15", False),
        # The beginning of a version, as docker_version may be.
        ("29.1", True),
        ("29.3", False),
        ("29.2", None),
        ("25.0", None),
        ("29", None),
        ("", None),
        ("(known after apply)", None),
    ],
)
def test_which_releases_are_of_the_other_kind(version: str, kind: bool | None) -> None:
    """Read in moby's tags: the call of buildSPI in libnetwork/drivers/overlay/encryption.go of each."""
    assert numbers_otherwise(version) is kind


def test_both_kinds_in_one_cluster_are_refused_with_what_works() -> None:
    (found,) = refusals({"gpu1": OLD, "gpu2": ODD, "gpu3": NEW, "gpu4": ""})
    assert (found.subject, found.sentence) == (
        "gpu2",
        f"engine {ODD} and those of gpu1 ({OLD}) and 1 more cannot read each other's packets on an encrypted overlay "
        'network (moby#51798). Remedy: set docker_version: "29.3" or later, or one version on all hosts, or set '
        "overlay_network_encrypted: false",
    )


@pytest.mark.parametrize("versions", [(OLD, NEW), (ODD, ODD), (ODD, "29.2"), (ODD,), ()])
def test_one_kind_is_let_through(versions: tuple[str, ...]) -> None:
    assert list(refusals({f"gpu{number}": version for number, version in enumerate(versions)})) == []


def plan(*versions: str, **desired: Any) -> Plan:
    facts = {
        f"gpu{number}": host({"docker-ce": version, "docker-ce-cli": version, "containerd.io": "1"})
        for number, version in enumerate(versions)
    }
    role_vars = {**ROLE_VARS, "docker_source": "docker", **desired}
    return fold([DockerPlanner()], facts, dict.fromkeys(facts, role_vars), INPUTS)


def test_the_plan_refuses_it_where_the_overlay_is_encrypted() -> None:
    found = plan(OLD, ODD, overlay_network_encrypted=True).refusals
    assert [one.subject for one in found] == ["gpu1"] and "moby#51798" in found[0].sentence
    # As another role's variable may come.
    assert plan(OLD, ODD, overlay_network_encrypted="yes").refusals
    assert not plan(OLD, ODD, overlay_network_encrypted=False).refusals
    assert not plan(OLD, ODD).refusals
    assert not plan(OLD, ODD, overlay_network_encrypted=True, cluster_network_mode="host").refusals


def test_the_version_that_is_requested_counts() -> None:
    assert not plan(OLD, ODD, overlay_network_encrypted=True, docker_version="29.3").refusals
    found = plan(OLD, NEW, overlay_network_encrypted=True, docker_version="29.1").refusals
    assert not found  # both get it


def test_a_host_without_an_engine_has_that_of_its_release() -> None:
    fresh = host()
    fresh["system"] = {"distribution": "ubuntu", "codename": "noble"}
    facts = {"gpu1": fresh, "gpu2": host({"docker.io": "26.1.5+dfsg1-9"})}
    role_vars = {name: {**ROLE_VARS, "overlay_network_encrypted": True} for name in facts}
    (found,) = fold([DockerPlanner()], facts, role_vars, INPUTS).refusals
    assert found.subject == "gpu1" and found.sentence.startswith(
        "engine 29.1 and those of gpu2 (26.1.5+dfsg1-9) cannot"
    )
