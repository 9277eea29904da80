# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which versions go together, without a cluster to ask. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.versions.choose import choose
from ..plugin_utils.versions.requested import parse_requested
from ..plugin_utils.versions.table import load_table


def _chosen(accelerator: Any, requested: Any) -> dict[str, Any]:
    if accelerator not in ("cuda", "cpu") or not isinstance(requested, Mapping):
        raise AnsibleFilterError("chosen_versions: expected 'cuda' or 'cpu', and a dictionary of what is set.")
    return choose([], parse_requested(requested), load_table(), accelerator).as_dict()


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"chosen_versions": _chosen}
