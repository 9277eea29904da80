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
    texts = reported if isinstance(reported, list) else [reported]
    if not all(isinstance(text, str) for text in texts):
        raise AnsibleFilterError(f"fetch_trouble: expected what a program said, not {type(reported).__name__}.")
    # Here, as a template in a YAML block takes the backslash of "\n" as it is.
    return explain("\n".join(texts), proxy, source)


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"fetch_trouble": fetch_trouble}
