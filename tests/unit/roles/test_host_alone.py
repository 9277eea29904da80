# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role host alone in a play of the user's own, by ansible-playbook itself.

The hosts are stand-ins, on which all is done once kernel parameters were loaded. Nothing is changed anywhere.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.gathered import GATHERED, by_wishes
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import HostPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold

from tests.adversary.hostile import facts as honest
from tests.plain_hosts import IPTABLES, OPEN
from tests.role_values import defaults
from tests.stand_ins import StandIns, changed

WISHED: dict[str, Any] = {"host_sysctls": {"vm.swappiness": 10}}
DEFAULTS = defaults()
INSTALLED = dict.fromkeys(DEFAULTS["host_packages"], "1")
CHANGING = ["copy", "copy", "copy", "apt", "command"]
"""What a new host is sent between the two times that its facts are gathered: three files, packages, parameters."""


def facts(dpkg: dict[str, Any] | None = None, **packages: str) -> dict[str, Any]:
    return {
        **honest(),
        "packages": {**dict.fromkeys(DEFAULTS["host_packages"]), **packages},
        "files": {entry["path"]: ABSENT for entry in (*GATHERED.files, *by_wishes(DEFAULTS)["files"])},
        "sysctls": {"vm.swappiness": "60"},
        "dpkg": {"unfinished": [], "journal": False, "busy": False, **(dpkg or {})},
        "firewall": {**OPEN, "active": ["iptables"], "iptables": IPTABLES},
    }


def after(before: dict[str, Any], **wished: Any) -> dict[str, Any]:
    """Return the facts of the host once the role has done what it plans."""
    made = fold([HostPlanner()], {"h": before}, {"h": {**DEFAULTS, **WISHED, **wished}}, Inputs())
    return dict(made.facts["h"]) | {"packages": INSTALLED}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path, "host", ["command"])
    made.add("empty", facts(), after(facts()))
    ready = after(facts())
    made.add("ready", ready, ready)
    return made


def test_it_gathers_plans_and_acts_where_something_is_to_be_done(hosts: StandIns) -> None:
    output = hosts.play(**WISHED)
    assert changed(output)["ready"] == 0 and changed(output)["empty"] > 0, output
    sent = hosts.modules("empty")
    assert (sent[0], sent[-1]) == ("node_facts", "node_facts")
    assert [name for name in sent[1:-1] if name not in ("stat", "file")] == CHANGING
    assert hosts.modules("ready") == ["node_facts"]
    # A second run gathers and plans, and not one task follows.
    output = hosts.play(**WISHED)
    assert changed(output) == {"empty": 0, "ready": 0}, output
    assert (hosts.modules("empty"), hosts.modules("ready")) == (["node_facts"], ["node_facts"])
    tasks = re.findall(r"^TASK \[(?:swarmspeed.cluster.)?(.*?)\]", output, re.M)
    assert [name for name in tasks if not name.startswith("preflight : ")] == [
        "host : Validating arguments against arg spec 'main' - Prepare the host itself",
        "Gather facts and plan, unless this run already has",
        "Afterwards",
    ]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", "-e", f"cluster_plan_file={hosts.folder}/plan.json", **WISHED)
    assert changed(output) == {"empty": 1, "ready": 0}, output
    assert (hosts.modules("empty"), hosts.modules("ready")) == (["node_facts"], ["node_facts"])
    assert (
        "\nempty\n  host\n    + /etc/apt/apt.conf.d/52swarmspeed: (10 lines)  # host_unattended_exclusions\n" in output
    )
    assert "    ~ kernel parameter vm.swappiness: 60 → 10  # host_sysctls\n" in output
    # Of the cluster nothing is known: neither its names nor whom to let in.
    assert "/etc/hosts" not in output and "iptables" not in output
    document = json.loads((hosts.folder / "plan.json").read_text(encoding="utf-8"))
    assert document["counts"] == {"add": 6, "change": 1, "remove": 0} and document["roles"] == ["host"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_host_is_gathered_by_its_own_variables(hosts: StandIns) -> None:
    output = hosts.play("--check", host_packages="bc,rsync", host_limits="no")
    assert "+ package bc: (known after apply)  # host_packages\n" in output and "+ package rsync" in output
    assert "limits.d" not in output.split("\nempty\n")[1].partition("\nready\n")[0]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_an_interrupted_dpkg_is_repaired_first_and_by_consent(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, "host", ["dpkg_repair"])
    broken = after(facts()) | {"dpkg": {"unfinished": ["docker.io (half-configured)"], "journal": False, "busy": False}}
    container = {**broken["docker"]["containers"]["lab-gpu1"], "state": "running"}
    broken["docker"] = {**broken["docker"], "containers": {"job": container}}
    hosts.add("broken", broken, {**broken, "dpkg": {"unfinished": [], "journal": False, "busy": False}})
    output = hosts.play(**WISHED)
    assert "broken: an interrupted dpkg must be repaired (docker.io (half-configured)), which restarts the engine" in (
        " ".join(output.split())
    )
    assert hosts.modules("broken") == ["node_facts"]
    output = hosts.play(docker_allow_restart=True, **WISHED)
    # It is planned again once it was repaired, and at the end.
    assert changed(output), output
    assert hosts.modules("broken") == ["node_facts", "dpkg_repair", "node_facts", "node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_no_secret_is_shown_or_kept(hosts: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_CACHE_PLUGIN", "jsonfile")
    monkeypatch.setenv("ANSIBLE_CACHE_PLUGIN_CONNECTION", str(hosts.folder / "cache"))
    password = "never-to-be-seen-82"
    given: dict[str, Any] = dict.fromkeys(("cluster_proxy", "host_git_proxy"), f"http://u:{password}@p")
    output = hosts.play("--check", "--diff", "-vvv", **given)
    kept = "".join(path.read_text(encoding="utf-8") for path in (hosts.folder / "cache").iterdir())
    assert "vm.swappiness" in kept and password not in kept and password not in output
    assert "80swarmspeed-proxy: (a secret)" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_passes_on_what_is_done_and_lists_what_is_not(hosts: StandIns) -> None:
    output = hosts.play(entry="verify", **WISHED)
    words = " ".join(output.split())
    assert "empty: role host: /etc/apt/apt.conf.d/52swarmspeed is missing; " in words
    assert "kernel parameter vm.swappiness is 60, wanted is 10" in words
    hosts.modules("ready")
    output = hosts.play("--limit", "ready", entry="verify", **WISHED)
    assert changed(output) == {"ready": 0} and hosts.modules("ready") == ["node_facts"], output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_teardown_undoes_what_is_there(hosts: StandIns) -> None:
    output = hosts.play(entry="teardown", **WISHED)
    assert changed(output), output
    assert [name for name in hosts.modules("ready") if name != "stat"] == ["node_facts", "file", "file", "file", "file"]
    assert [name for name in hosts.modules("empty") if name != "stat"] == ["node_facts", "file"]
