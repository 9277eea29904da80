# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role ssh_trust alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import base64
import copy
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.cluster_view import cluster_view
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.files import SSHD_CONFIG
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.planner import SshTrustPlanner

from tests.adversary.hostile import facts as honest
from tests.role_values import defaults
from tests.ssh_nodes import TEXT, private, public, readable
from tests.stand_ins import StandIns, changed

ROOT = "/srv/swarmspeed/swarmspeed"
KEY, HOST_KEY = f"{ROOT}/etc/ssh/id_ed25519", f"{ROOT}/etc/ssh/ssh_host_ed25519_key"
KNOWN = f"{ROOT}/etc/ssh/known_hosts"
NAMES = ("gpu1", "gpu2")
HOST_MODE: dict[str, Any] = {"cluster_network_mode": "host"}
SECRET = "the private key itself, never to be seen"
REPLIES = {"slurp": {"content": base64.b64encode(SECRET.encode()).decode(), "encoding": "base64"}}


def without(number: int) -> dict[str, Any]:
    facts = copy.deepcopy(honest(number))
    entries = requested({}, [GATHERED], defaults())["files"]
    facts["files"] = {entry["path"]: dict(ABSENT) for entry in entries}
    container = {**facts["docker"]["containers"]["lab-gpu1"], "state": "running"}
    container["labels"] = {"swarmspeed.cluster": "swarmspeed", "swarmspeed.spec": "0123"}
    facts["docker"]["containers"] = {f"swarmspeed-gpu{number}": container}
    return facts


def with_keys(number: int, host_key: str = "") -> dict[str, Any]:
    facts = without(number)
    facts["files"].update(
        {
            KEY: private("the cluster's"),
            HOST_KEY: private("a host's"),
            f"{HOST_KEY}.pub": readable(public(host_key or f"gpu{number}")),
            **({f"{KEY}.pub": readable(public("cluster"))} if number == 1 else {}),
        }
    )
    return facts


def done(of: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Facts of hosts that have these keys, once their files are written."""
    facts = dict(zip(NAMES, of))
    role_vars = defaults(cluster_network_mode="host")
    inputs = Inputs(cluster_view(list(NAMES), facts), {SSHD_CONFIG: TEXT})
    made = fold([SshTrustPlanner()], facts, dict.fromkeys(facts, role_vars), inputs)
    return [copy.deepcopy(dict(made.facts[name])) for name in NAMES]


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    """The first host is complete, but it does not know the second one's new host key; that has nothing."""
    made = StandIns(tmp_path, "ssh_trust")
    before, dummy = done([with_keys(1), with_keys(2, "old")])
    first, second = done([with_keys(1), with_keys(2)])
    made.add("gpu1", before, first, replies=REPLIES)
    made.add("gpu2", without(2), with_keys(2), second, replies=REPLIES)
    return made


def test_keys_are_provided_planned_again_and_trusted_by_all(hosts: StandIns) -> None:
    output = hosts.play("-vvv", **HOST_MODE)
    assert changed(output).keys() == {"gpu1", "gpu2"} and changed(output)["gpu1"] > 0, output
    second, first = hosts.modules("gpu2"), hosts.modules("gpu1")
    # The key is read on the first host, and given to the second.
    assert first.count("slurp") == 1 and "slurp" not in second
    order = [name for name in second if name in ("node_facts", "openssh_keypair", "command")]
    assert order == ["node_facts", "openssh_keypair", "node_facts", "command", "node_facts"]
    # The first waits for what the second has generated, and then pins it.
    assert [name for name in first if name in ("node_facts", "slurp", "command")] == [
        *("node_facts", "slurp", "command", "node_facts")
    ]
    assert SECRET not in output and base64.b64encode(SECRET.encode()).decode() not in output
    assert "gpu1 goes on" in output and "gpu2 goes on" in output
    # A second run gathers and plans, and nothing else is sent.
    output = hosts.play(**HOST_MODE)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", **HOST_MODE)
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    assert f"\n    + {KEY}: (a secret)  # the cluster's key, of gpu1\n" in output
    assert f"\n    + {HOST_KEY}: (known after apply)\n" in output
    assert re.search(rf"\n    ~ {KNOWN}: SHA-256 [0-9a-f]{{64}} → \(known after apply\)\n", output)


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(("arguments", "of_play"), [(["--limit", "gpu2"], {}), ([], {"serial": 1})])
def test_it_needs_the_whole_cluster(hosts: StandIns, arguments: list[str], of_play: Any) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play, **HOST_MODE).split())
    assert "role ssh_trust concerns all hosts of the groups managers and workers, and needs them together" in output
    assert hosts.modules("gpu1") == [] and hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_lists_what_is_not_done(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", **HOST_MODE).split())
    assert f"gpu2: role ssh_trust: {ROOT} is missing" in output and f"{KEY} is missing" in output


ON_HOSTS: dict[str, Any] = {**HOST_MODE, "deepspeed_launch_runtime": "host", "ssh_trust_hosts": True}
AUTHORIZED = "/root/.ssh/authorized_keys"


def on_hosts(number: int, *, key: bool) -> dict[str, Any]:
    """A server with an sshd of its own; with ``key`` it has the cluster's."""
    facts = without(number)
    role_vars = defaults(deepspeed_launch_runtime="host")
    facts["files"].update({entry["path"]: dict(ABSENT) for entry in requested({}, [GATHERED], role_vars)["files"]})
    facts["files"]["/etc/ssh/ssh_host_ed25519_key.pub"] = readable(public(f"sshd {number}"))
    if key:
        facts["files"][KEY] = private("the cluster's")
        facts["files"].update({f"{KEY}.pub": readable(public("cluster"))} if number == 1 else {})
    return facts


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_between_hosts_without_docker_a_block_is_kept_in_a_file_of_others(tmp_path: Path) -> None:
    made = StandIns(tmp_path, "ssh_trust")
    facts = {name: on_hosts(number, key=True) for number, name in enumerate(NAMES, 1)}
    role_vars = defaults(**ON_HOSTS)
    view = cluster_view(list(NAMES), facts)
    after = fold([SshTrustPlanner()], facts, dict.fromkeys(facts, role_vars), Inputs(view, {SSHD_CONFIG: TEXT})).facts
    for number, name in enumerate(NAMES, 1):
        made.add(name, on_hosts(number, key=False), facts[name], copy.deepcopy(dict(after[name])), replies=REPLIES)
    output = made.play("-vvv", **ON_HOSTS)
    assert all(times > 0 for times in changed(output).values()), output
    first, second = made.modules("gpu1"), made.modules("gpu2")
    assert first.count("openssh_keypair") == 1 and second.count("openssh_keypair") == 0
    assert first.count("blockinfile") == second.count("blockinfile") == 1
    assert SECRET not in output
    output = made.play(**ON_HOSTS)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
