# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Inventory hosts as entries of a hostfile, and in words. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.hostfile.text import HostsError, refusal
from ..module_utils.hostfile.text import names_shown as shown
from ..plugin_utils.cluster.hostfile_entries import DEFAULT_SOURCE, entries


def to_hostfile(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any] | None = None,
    slots: Mapping[str, Any] | int | str | None = None,
    names: Mapping[str, str] | str | None = None,
    gpu_info: str = DEFAULT_SOURCE,
) -> list[dict[str, Any]]:
    """Return ``[{name: …, slots: …}]`` for the module hostfile, in the order of ``hosts``."""
    try:
        return entries(hosts, hostvars, slots=slots, names=names, source=gpu_info)
    except HostsError as error:
        # from None: Ansible would append the text of the cause, which is the same
        raise AnsibleFilterError(refusal("to_hostfile", error.problems)) from None


def names_shown(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others, for a message."""
    return shown([str(name) for name in names]) or "no host"


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"to_hostfile": to_hostfile, "names_shown": names_shown}
