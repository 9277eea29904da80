# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hosts that URLs name. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..module_utils.node import services


def url_hosts(values: Any) -> list[str]:
    """Return the host names and addresses in URLs."""
    return services.url_hosts(values)


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"url_hosts": url_hosts}
