# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why something could not be fetched. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.diagnosis.fetch_failures import explain


def fetch_trouble(reported: Any, proxy: str, source: str) -> str:
    """Return the cause in one sentence, with its remedy."""
    if not isinstance(reported, str):
        raise AnsibleFilterError(f"fetch_trouble: expected what a program said, not {type(reported).__name__}.")
    return explain(reported, proxy, source)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"fetch_trouble": fetch_trouble}
