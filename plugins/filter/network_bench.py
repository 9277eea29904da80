# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Plan, parts, report and table of a network benchmark. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.common.reported import escaped, sentence
from ..plugin_utils.bench import plan as bench_plan
from ..plugin_utils.bench import report as network_bench
from ..plugin_utils.bench import table as bench_table
from ..plugin_utils.validate.filters import one_line
from ..plugin_utils.validate.shape import data


def _checked(name: str, value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"swarmspeed.cluster.{name}: {what} must be a mapping, not {type(value).__name__}")
    return value


def network_bench_plan(slots: Any, accelerator: str, settings: Any) -> dict[str, Any]:
    """Return what all nodes do in each network."""
    name = "network_bench_plan"
    try:
        return bench_plan.plan(_checked(name, slots, "the input"), accelerator, _checked(name, settings, "settings"))
    except bench_plan.BenchError as error:
        raise AnsibleFilterError(str(error)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"swarmspeed.cluster.{name}: these are not slots by node: {error!r}") from None


@one_line("swarmspeed.cluster.network_bench_subnets", "facts of nodes")
def network_bench_subnets(facts: Any, pool: str, count: int) -> list[str]:
    """Return free subnets for the benchmark's own networks."""
    name = "network_bench_subnets"
    try:
        return bench_plan.subnets(_checked(name, facts, "the input"), str(pool), int(count))
    except bench_plan.BenchError as error:
        raise AnsibleFilterError(str(error)) from None


def network_bench_part(plan: Any, node: str, network: Any) -> dict[str, Any]:
    """Return the parameters of one node."""
    name = "network_bench_part"
    try:
        return bench_plan.part(_checked(name, plan, "the input"), node, _checked(name, network, "network"))
    except (KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"swarmspeed.cluster.{name}: the plan has no such node, or the network is not whole: {error!r}"
        ) from None


@one_line("swarmspeed.cluster.network_bench_report", "what the nodes of that plan say")
def network_bench_report(
    plan: Any, printed: Any, *, cluster: str, time: str, seconds: float, in_use: str, settings: Any
) -> dict[str, Any]:
    """Return the report of what the nodes said."""
    name = "network_bench_report"
    _checked(name, plan, "the input")
    by_node = {
        str(node): _checked(name, data(entry), f"what {node} returned")
        for node, entry in _checked(name, printed, "printed").items()
    }
    try:
        report = network_bench.report(
            plan,
            network_bench.by_kind(by_node),
            cluster=str(cluster),
            time=str(time),
            seconds=float(seconds),
            in_use=str(in_use),
            settings=_checked(name, settings, "settings"),
        )
    except bench_plan.BenchError as error:
        raise AnsibleFilterError(str(error)) from None
    return {**report, "failed": [sentence(text) for text in report["failed"]]}


@one_line("swarmspeed.cluster.network_bench_table", "a report of a benchmark")
def network_bench_table(report: Any) -> list[str]:
    """Return lines for a person."""
    lines = bench_table.table(_checked("network_bench_table", report, "the input"))
    return [escaped(line, 4000) for line in lines]


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "network_bench_part": network_bench_part,
            "network_bench_plan": network_bench_plan,
            "network_bench_report": network_bench_report,
            "network_bench_subnets": network_bench_subnets,
            "network_bench_table": network_bench_table,
        }
