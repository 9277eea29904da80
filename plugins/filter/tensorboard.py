# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tensorboard.yml is to do, and how one gets there. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.job import tensorboard
from ..plugin_utils.validate.filters import one_line


def _container(answer: Any) -> Mapping[str, Any]:
    """What docker_container_info found; a module that failed says why."""
    if not isinstance(answer, Mapping):
        raise TypeError("no answer")
    if answer.get("failed"):
        reported = " ".join(str(answer.get("msg") or "no reason was given").split())[:300]
        raise AnsibleFilterError(f"The engine could not be asked: {reported}. Remedy: site.yml --tags docker.")
    found = answer.get("container")
    return found if isinstance(found, Mapping) else {}


@one_line("swarmspeed.cluster.tensorboard_plan", "what docker_container_info returned")
def tensorboard_plan(requested: Mapping[str, Any], training: Any, board: Any) -> dict[str, Any]:
    """Return what there is to do."""
    return tensorboard.board(requested, _container(training), _container(board))


@one_line("swarmspeed.cluster.ssh_tunnel", "how Ansible reaches a host")
def ssh_tunnel(reached: Mapping[str, Any], host: str, port: Any) -> list[str]:
    """Return lines: the command, and what to open."""
    return tensorboard.tunnel(str(host), reached, int(port))


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"tensorboard_plan": tensorboard_plan, "ssh_tunnel": ssh_tunnel}
