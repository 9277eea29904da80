# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The verdict over all nodes of a job before it starts. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._launch_check import judge


def launch_problems(results: Any, preview: bool = False) -> dict[str, Any]:
    """Return the problems and notes, and one message for all of them."""
    if not isinstance(results, Mapping):
        raise AnsibleFilterError(
            f"swarmspeed.cluster.launch_problems: expected a mapping of node to probe, got {type(results).__name__}"
        )
    try:
        verdict = judge(results)
    except (KeyError, TypeError, AttributeError) as error:
        raise AnsibleFilterError(
            f"swarmspeed.cluster.launch_problems: this is not what launch_probe returned: {error!r}"
        ) from None
    return {"problems": verdict.problems, "notes": verdict.notes, "message": verdict.message(preview)}


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"launch_problems": launch_problems}
