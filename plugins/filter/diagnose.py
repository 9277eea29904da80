# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a training job failed, from its log. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.job.diagnose import diagnose as find
from ..plugin_utils.diagnosis.launcher_log import as_dict, split_log


def diagnose(log: Any, nodes: Any = ()) -> dict[str, Any]:
    """Return the first cause of a failure that a log shows, and what else it shows."""
    if isinstance(log, (list, tuple)):
        log = "\n".join(str(line) for line in log)
    if not isinstance(log, str):
        raise AnsibleFilterError(
            f"swarmspeed.cluster.diagnose: expected a log's text or its lines, got {type(log).__name__}"
        )
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise AnsibleFilterError(
            f"swarmspeed.cluster.diagnose: nodes must be a list of names, got {type(nodes).__name__}"
        )
    return as_dict(find(split_log(log, [str(name) for name in nodes])))


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"diagnose": diagnose}
