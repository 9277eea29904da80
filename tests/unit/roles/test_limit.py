# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Playbooks with ``--limit``, and with hosts that run ahead: what needs all hosts, and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import playbook_run
from tests.playbook_run import playbook
from tests.stand_ins import StandIns
from tests.unit.roles.test_docker_alone import CHANGING, ENGINE, after, facts

WITHOUT_REPORTS = ("-e", "cluster_reports_dir=")
"""verify.yml would write one of this run into the checkout."""


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    socket = {"stat": {"exists": True, "woth": False, "roth": False, "mode": "0660"}}
    made = StandIns(tmp_path, "docker", ["systemd_service"], socket, tags=["engine"])
    for name, found in (("gpu1", facts("job", **ENGINE)), ("gpu2", facts()), ("gpu3", facts())):
        made.add(name, found, after(found))
    return made


@pytest.fixture
def inventory(hosts: StandIns, tmp_path: Path) -> Path:
    path = tmp_path / "inventory.json"
    path.write_text(json.dumps({"cluster": {"children": hosts.inventory()}}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("site", ()),
        pytest.param("plan", (), marks=pytest.mark.slow),
        ("verify", ()),
        pytest.param("launch", (), marks=pytest.mark.slow),
        pytest.param("teardown", (), marks=pytest.mark.slow),
        pytest.param("site", ("--check",), marks=pytest.mark.slow),
        ("site", ("--tags", "docker,swarm")),
        pytest.param("site", ("--tags", "preflight"), marks=pytest.mark.slow),
    ],
)
def test_what_needs_all_hosts_is_refused_before_any_connection(
    name: str, arguments: tuple[str, ...], hosts: StandIns, inventory: Path
) -> None:
    run = playbook(name, "--limit", "gpu3", *arguments, *WITHOUT_REPORTS, inventory=inventory)
    run.refused_by(("play_hosts", "--limit"))
    assert [hosts.modules(host) for host in ("gpu1", "gpu2", "gpu3")] == [[], [], []]


@pytest.mark.slow  # it runs ansible-playbook twice
def test_hosts_that_run_ahead_are_refused_before_any_connection(
    hosts: StandIns, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = playbook_run.environment()
    monkeypatch.setattr(playbook_run, "environment", lambda: {**kept, "ANSIBLE_STRATEGY": "free"})
    run = playbook("site", inventory=inventory).refused("strategy: is free, under which hosts do not wait")
    assert "(check: play_hosts)" in run.text
    assert [hosts.modules(host) for host in ("gpu1", "gpu2", "gpu3")] == [[], [], []]
    # Of a role that plans each host for itself, each host is as far as it is.
    playbook("site", "--tags", "docker", inventory=inventory).done(change=True, nodes=("gpu1", "gpu2", "gpu3"))
    assert [hosts.modules(host) for host in ("gpu1", "gpu3")] == [
        ["node_facts"],
        ["node_facts", *CHANGING, "node_facts"],
    ]


@pytest.mark.slow  # it runs ansible-playbook
def test_with_the_tag_of_a_role_that_plans_each_host_for_itself_the_others_are_left_alone(
    hosts: StandIns, inventory: Path
) -> None:
    limited = ("--limit", "gpu3", "--tags", "docker")
    plan = playbook("plan", *limited, inventory=inventory).done(change=False, nodes=("gpu3",))
    assert "docker.io" in plan.output and "gpu2" not in plan.output
    assert hosts.modules("gpu3") == ["node_facts"]
    assert playbook("verify", *limited, *WITHOUT_REPORTS, inventory=inventory).rc != 0
    hosts.modules("gpu3")
    playbook("site", *limited, inventory=inventory).done(change=True, nodes=("gpu3",))
    assert hosts.modules("gpu3") == ["node_facts", *CHANGING, "node_facts"]
    playbook("site", *limited, inventory=inventory).done(change=False, nodes=("gpu3",))
    assert hosts.modules("gpu3") == ["node_facts"]
    playbook("verify", *limited, *WITHOUT_REPORTS, inventory=inventory)
    assert [hosts.modules(host) for host in ("gpu1", "gpu2")] == [[], []]


@pytest.mark.slow  # it runs ansible-playbook
def test_a_limit_that_leaves_out_none_is_none(hosts: StandIns, inventory: Path) -> None:
    run = playbook("site", "--limit", "managers,workers", "--tags", "host", "--check", inventory=inventory)
    assert "play_hosts" not in run.output
    assert "node_facts" in hosts.modules("gpu1")
