# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""As test_generic.py, of what becomes sentences: preflight, checks before a job, network tests, benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.swarmspeed.cluster.plugins.action import network_test_result
from ansible_collections.swarmspeed.cluster.plugins.action.preflight import check_facts
from ansible_collections.swarmspeed.cluster.plugins.filter.launch_problems import launch_problems
from ansible_collections.swarmspeed.cluster.plugins.filter.network_bench import FilterModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import Facts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.node import node_facts

from tests.adversary.hostile import HOSTILE, facts, leaves, one_line, planted
from tests.requested import requested
from tests.unit.plugins.plugin_utils.launch.test_launch_check import cluster

BENCH = FilterModule().filters()


def action(plugin: Any, **args: Any) -> Any:
    return plugin.ActionModule(
        task=SimpleNamespace(args=args, check_mode=False, async_val=0, diff=False, action="attack", no_log=False),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )


FEW = ("a line break", "a way up", "control codes", "a template", "ten megabytes", "a giant", "null", "true", "a list")
"""One of each kind: which of a kind the border refuses, test_generic.py has tried."""


def calm(line: str) -> None:
    assert line.isprintable() and len(line) < 20_000, line[:300]


def test_preflight_over_facts() -> None:
    wanted = {
        "cluster_name": "lab",
        "managers": ["gpu1"],
        "overlay_network": "lab",
        "overlay_subnet": "10.64.0.0/24",
        "space": {"/srv": {"bytes": 1 << 30, "variable": "preflight_min_free_gib"}},
        "ssh_port": 2222,
        "max_clock_offset": 30,
        "containers": {"gpu1": "lab-gpu1"},
    }
    seen = 0
    honest = facts()
    for path in leaves(honest):
        for value in map(HOSTILE.__getitem__, FEW):
            try:
                found = node_facts("gpu1", planted(honest, path, value))
                report = check_facts(Facts({"gpu1": found}, requested(**wanted), {}))
            except (AnsibleError, ReportedError) as error:
                one_line(str(error))
                continue
            seen += 1
            for problem in (*report.problems, *report.warnings):
                calm(problem.reported())
    assert seen > 100


def test_checks_before_a_job() -> None:
    honest = cluster(2)
    count = len(launch_problems(honest)["message"].splitlines())
    for path in leaves({"gpu1": honest["gpu1"]}):
        for value in HOSTILE.values():
            try:
                found = launch_problems(planted(honest, path, value))
            except AnsibleError as error:
                one_line(str(error))
                continue
            for line in found["problems"] + found["notes"]:
                calm(line)
            assert len(found["message"].splitlines()) <= count + 1 + len(found["problems"]) + len(found["notes"])


def records() -> dict[str, Any]:
    one = {"to": "gpu2", "check": "tcp", "ok": False, "value": 0.4, "said": "10.0.0.2 port 29599", "end": "inner"}
    versions = {"python": "3.11.2", "torch": "2.13.0", "deepspeed": "0.19.8"}
    collective = {"ok": False, "said": "no route", "interfaces": ["eth0"], "seconds": 2.0}
    return {
        "started": {"trouble": {}, "ready": {"inner": {"interface": "eth0", "versions": versions}, "outer": {}}},
        "ended": {"trouble": {}, "pairs": [one], "seen": {"gpu2": [4789]}, "collective": collective},
    }


def test_verdicts_over_the_network(tmp_path: Path) -> None:
    for path in leaves(records()):
        for value in HOSTILE.values():
            reported = {"gpu1": planted(records(), path, value), "gpu2": records()}
            given = {
                step: {name: one[step] for name, one in reported.items() if isinstance(one, dict) and step in one}
                for step in ("started", "ended")
            }
            args = {
                "cluster": "lab",
                "hosts": ["gpu1", "gpu2"],
                "wanted": {},
                "began": 1.0,
                "reports_dir": str(tmp_path),
            }
            try:
                found = action(network_test_result, **args, **given).run(task_vars={"hostvars": {}})
            except AnsibleError as error:
                one_line(str(error))
                continue
            for line in found["msg"].splitlines():
                calm(line)
            json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))
    assert {entry.name for entry in tmp_path.iterdir()} <= {"verify.json"}


SETTINGS = {"seconds": 30, "message_mib": 64, "gib": 32, "port": 29717}
SETTINGS |= {"min_ratio": 0, "min_gigabits": 0, "min_busbw": 0}


def test_reports_of_a_benchmark() -> None:
    given: dict[str, Any] = {"cluster": "lab", "time": "now", "seconds": 9, "in_use": "host", "settings": SETTINGS}
    plan = BENCH["network_bench_plan"]({"gpu1": 1, "gpu2": 1}, "cpu", SETTINGS)
    reported = {name: {"host": {"network": "host", "log": "", "error": "no such network"}} for name in ("gpu1", "gpu2")}
    for path in leaves({"gpu1": reported["gpu1"]}):
        for value in HOSTILE.values():
            try:
                report = BENCH["network_bench_report"](plan, planted(reported, path, value), **given)
                lines = BENCH["network_bench_table"](json.loads(json.dumps(report)))
            except AnsibleError as error:
                assert str(error).isprintable() and len(str(error)) < 2000
                continue
            for line in [*lines, *report["failed"]]:
                calm(line)
