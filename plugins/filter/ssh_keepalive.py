# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The ssh options that end a connection to a dead host. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.connection.keepalive import with_keepalive


def ssh_keepalive(arguments: Any) -> str:
    """Return the arguments with the options that are missing."""
    if not isinstance(arguments, str):
        raise AnsibleFilterError(
            f"swarmspeed.cluster.ssh_keepalive: ansible_ssh_extra_args is {arguments!r}, not text. Remedy: write it as "
            "one line of options, as ssh takes them."
        )
    return with_keepalive(arguments)


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"ssh_keepalive": ssh_keepalive}
