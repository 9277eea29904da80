# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which subnet hosts share. Documented in underlay.yml beside this file.

Errors are raised ``from None``: Ansible would append the text of the cause, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.cluster.underlay import UnderlayError, common_underlay
from ..plugin_utils.validate.filters import one_line


@one_line("swarmspeed.cluster.underlay", "what fabric_info returned by host")
def underlay(
    hosts: Mapping[str, Mapping[str, Any]],
    wanted: str | None = None,
    ssh: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the subnet that all hosts share; an empty ``wanted`` is as good as none."""
    _mapping("underlay", hosts)
    try:
        return asdict(common_underlay(hosts, wanted or None, ssh))
    except UnderlayError as error:
        raise AnsibleFilterError(str(error)) from None


def _mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"{name}: expected a mapping, got {type(value).__name__}.")


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"underlay": underlay}
