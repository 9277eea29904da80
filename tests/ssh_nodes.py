# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Three invented nodes whose containers are to reach one another over ssh, and the plan for them."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.files import SSHD_CONFIG
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.planner import SshTrustPlanner

from tests.role_values import NODES, ROLES, defaults

FIRST, SECOND, THIRD = NODES
ROOT = "/srv/swarmspeed/lab"
SSH = f"{ROOT}/etc/ssh"
KEY, HOST_KEY = f"{SSH}/id_ed25519", f"{SSH}/ssh_host_ed25519_key"
TEXT = (ROLES / SSHD_CONFIG.removeprefix("role:")).read_text(encoding="utf-8")
DIGEST_KEY = "k" * 40
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
)
CLUSTER: dict[str, Any] = {
    "hosts": list(NODES),
    "first": FIRST,
    "underlay": {
        "subnet": "10.1.0.0/24",
        "addresses": {name: f"10.1.0.1{number}" for number, name in enumerate(NODES, 1)},
    },
    "overlay": {"subnet": "10.20.0.0/24"},
}


def public(name: str) -> str:
    """A public key, as OpenSSH writes it, of the right form and no use."""
    raw = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + name.encode().ljust(32, b".")[:32]
    return f"ssh-ed25519 {base64.b64encode(raw).decode()} {name}\n"


def private(text: str, mode: str = "0600", half: str = "") -> dict[str, Any]:
    """The facts of a private key; ``half`` names its public one, where the file has it in a form that is read."""
    digest = keyed_digest(text.encode(), DIGEST_KEY)
    found = {"exists": True, "sha256": digest, "keyed": True, "mode": mode, "owner": 0, "group": 0}
    return {**found, "public_key": " ".join(public(half).split()[:2])} if half else found


def readable(content: str) -> dict[str, Any]:
    return {"exists": True, "content": content, "sha256": "ab" * 32, "mode": "0644", "owner": 0, "group": 0}


def keys(host: str) -> dict[str, Any]:
    """What a host's keys are once they are there."""
    return {
        KEY: private("the cluster's", half="cluster"),
        **({f"{KEY}.pub": readable(public("cluster"))} if host == FIRST else {}),
        HOST_KEY: private(f"of {host}", half=host),
        f"{HOST_KEY}.pub": readable(public(host)),
    }


def virgin() -> dict[str, dict[str, Any]]:
    return {host: {"files": {}, "docker": {"containers": {}}} for host in NODES}


def with_keys() -> dict[str, dict[str, Any]]:
    return {host: {**facts, "files": keys(host)} for host, facts in virgin().items()}


def complete(**desired: Any) -> dict[str, dict[str, Any]]:
    """The facts of hosts on which all is done."""
    return {host: copy.deepcopy(dict(facts)) for host, facts in plan(with_keys(), **desired).facts.items()}


def running(facts: dict[str, dict[str, Any]], **changed: Any) -> dict[str, dict[str, Any]]:
    """The same, with a container on each."""
    container = {"state": "running", "labels": {"swarmspeed.cluster": "lab", "swarmspeed.spec": "1"}, **changed}
    return {host: {**one, "docker": {"containers": {f"lab-{host}": container}}} for host, one in facts.items()}


def plan(
    facts: Mapping[str, Mapping[str, Any]], of_cluster: Mapping[str, Any] | None = None, /, **desired: Any
) -> Plan:
    inputs = Inputs(CLUSTER if of_cluster is None else of_cluster, {SSHD_CONFIG: TEXT}, DIGEST_KEY)
    return fold([SshTrustPlanner()], facts, {host: {**ROLE_VARS, **desired} for host in facts}, inputs)


def shown(made: Plan, host: str) -> list[tuple[str, str]]:
    return [(change.action, change.what.removeprefix(SSH)) for change in made.of("ssh_trust", host)]


def task_input(made: Plan, host: str) -> Mapping[str, Any]:
    return made.task_inputs[host]["ssh_trust"]


def texts(made: Plan, host: str) -> dict[str, str]:
    """The files that a host gets, by name."""
    return {entry["path"].rpartition("/")[2]: entry.get("content", "") for entry in task_input(made, host)["files"]}
