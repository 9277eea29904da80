# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts with and without what the role host keeps on them, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import HostPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold

from tests.role_values import defaults

AUTHORITY = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
NODES = {"gpu1": "10.1.0.1", "gpu2": "10.1.0.2", "gpu3": "10.1.0.3"}
INPUTS = Inputs(
    cluster={"hosts": list(NODES), "underlay": {"addresses": NODES}},
    files={"/ca.pem": AUTHORITY},
    digest_key="k" * 40,
)
ALONE = Inputs(files=INPUTS.files, digest_key=INPUTS.digest_key)
"""Of a role that is applied alone: nothing is known of the cluster."""
ROLE_VARS = defaults(
    host_packages=["ca-certificates", "iproute2"],
    cluster_name="lab",
    group_names=["cluster", "managers"],
)
OPEN: dict[str, Any] = {"active": [], "ufw": [], "iptables": {}, "nftables": [], "ephemeral_ports": [32768, 60999]}
IPTABLES: dict[str, Any] = {"refuses": True, "jump": None, "chain": None, "rules": 0}
NFTABLES: dict[str, Any] = {"family": "inet", "table": "filter", "name": "input", "refuses": True, "jump": None}


def host(**changed: Any) -> dict[str, Any]:
    """The facts of a host with its packages and none of our files; ``changed`` replaces sections."""
    return {
        "system": {"distribution": "debian", "codename": "bookworm"},
        "packages": {"ca-certificates": "1", "iproute2": "6"},
        "dpkg": {"unfinished": [], "journal": False, "busy": False},
        "files": {},
        "sysctls": {},
        "firewall": OPEN,
        "docker": {"containers": {"job": {"state": "running"}, "old": {"state": "exited"}}},
        **changed,
    }


def plan(facts: Mapping[str, Any], inputs: Inputs = INPUTS, **desired: Any) -> Plan:
    return fold([HostPlanner()], {"gpu1": facts}, {"gpu1": {**ROLE_VARS, **desired}}, inputs)


def done(facts: Mapping[str, Any] | None = None, **desired: Any) -> dict[str, Any]:
    """Return the facts of a host once the role has done what is planned."""
    return dict(plan(host() if facts is None else facts, **desired).facts["gpu1"])


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(change.action, change.what) for change in made.changes]


def task_input(made: Plan) -> Mapping[str, Any]:
    return made.task_inputs["gpu1"]["host"]
