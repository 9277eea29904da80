# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The verdict over all nodes of a job before it starts. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.common.reported import sentence
from ..plugin_utils.launch.checks import judge
from ..plugin_utils.validate.filters import one_line
from ..plugin_utils.validate.probe import probes


@one_line("swarmspeed.cluster.launch_problems", "what job_precheck returned")
def launch_problems(results: Any, preview: bool = False) -> dict[str, Any]:
    """Return the problems and notes, and one message for all of them."""
    if not isinstance(results, Mapping):
        raise AnsibleFilterError(
            f"swarmspeed.cluster.launch_problems: expected a mapping of node to probe, got {type(results).__name__}"
        )
    verdict = judge(probes(results))
    # One line each, whatever a program on a node has printed.
    problems, notes = [sentence(text) for text in verdict.problems], [sentence(text) for text in verdict.notes]
    verdict = replace(verdict, problems=problems, notes=notes, agreed=sentence(verdict.agreed))
    return {"problems": verdict.problems, "notes": verdict.notes, "message": verdict.message(preview)}


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"launch_problems": launch_problems}
