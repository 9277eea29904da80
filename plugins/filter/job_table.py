# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The jobs of all nodes, for status.yml, stop.yml and doctor.yml. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.job import examined, table
from ..plugin_utils.validate.filters import one_line
from ..plugin_utils.validate.job import infos
from ..plugin_utils.validate.logs import gathered

_OF_NODES = "what training_job_info returned by node"


def _by_node(name: str, results: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(results, Mapping) or not all(isinstance(result, Mapping) for result in results.values()):
        raise AnsibleFilterError(f"swarmspeed.cluster.{name}: the input must be a mapping of results by node")
    return {str(node): dict(result) for node, result in results.items()}


@one_line("swarmspeed.cluster.job_table", _OF_NODES)
def job_table(results: Any) -> list[str]:
    """Return lines: a table of all jobs, and what needs attention."""
    return table.table(infos(_by_node("job_table", results)))


@one_line("swarmspeed.cluster.jobs_to_stop", _OF_NODES)
def jobs_to_stop(results: Any, name: str | None = None) -> dict[str, Any]:
    """Return what has to be stopped, and where."""
    return table.to_stop(infos(_by_node("jobs_to_stop", results)), name)


@one_line("swarmspeed.cluster.stop_report", _OF_NODES)
def stop_report(stops: Any, results: Any, previewed: bool = False) -> dict[str, list[str]]:
    """Return lines: what was stopped, and what was not."""
    if not isinstance(stops, Mapping) or not isinstance(results, Mapping):
        raise AnsibleFilterError(
            "swarmspeed.cluster.stop_report: the input must be what jobs_to_stop returned, and results by node"
        )
    answers = {str(node): [*found] for node, found in results.items() if isinstance(found, list)}
    return table.stopped(dict(stops), answers, bool(previewed))


@one_line("swarmspeed.cluster.gathered_logs", "what job_logs returned by node")
def gathered_logs(results: Any) -> list[str]:
    """Return lines: where the logs are, and which are missing."""
    return table.gathered(gathered(_by_node("gathered_logs", results)))


@one_line("swarmspeed.cluster.job_examined", "what training_job_examine returned by node")
def job_examined(results: Any, infos_by_node: Any, name: str) -> list[str]:
    """Return lines: which rank of a job the others wait for, and what it does instead."""
    examinations = _by_node("job_examined", results)
    return examined.examined(str(name), infos(_by_node("job_examined", infos_by_node)), examinations)


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "job_table": job_table,
            "jobs_to_stop": jobs_to_stop,
            "stop_report": stop_report,
            "gathered_logs": gathered_logs,
            "job_examined": job_examined,
        }
