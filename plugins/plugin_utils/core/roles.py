# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The roles, in the order in which a run walks them. Their planners are in ``plugin_utils/registry``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HOST, GROUP = "host", "group"


@dataclass(frozen=True)
class Role:
    """``promise``: what its verify.yml asserts.

    ``planned_for``: ``HOST``: each host for itself, whatever the variables; ``GROUP``: all hosts of the cluster or
    none; else the variable with which it concerns the group, if not empty. ``together``: it does nothing on any host
    where it stops at one, as what it does there concerns the others.
    """

    name: str
    promise: str
    planned_for: str
    together: bool = False


ROLES = (
    Role("preflight", "every check of a run passes", GROUP),
    Role("host", "names, kernel parameters and firewall are as requested", HOST),
    Role("nvidia_driver", "the driver is loaded and new enough, where the cluster computes on GPUs", HOST),
    Role("docker", "the engine answers and is configured as requested", HOST),
    Role("nvidia_container_toolkit", "the toolkit is known to the engine, where the cluster computes on GPUs", HOST),
    Role("swarm", "every node is a ready, active member of this swarm, in its role", GROUP, together=True),
    Role("overlay_network", "the overlay has the subnet, MTU and encryption requested", GROUP, together=True),
    Role("training_image", "every node has the same image", GROUP, together=True),
    Role("ssh_trust", "keys are in place and private, host keys are pinned", GROUP, together=True),
    Role("nccl_env", "NCCL and Gloo are configured with the interface of the training network", GROUP, together=True),
    Role("training_container", "every container runs as configured, with memory to share", GROUP, together=True),
    Role("workspace", "every node has the same files", "workspace_python_environment"),
    Role("assets", "every node has the same models and data sets", "assets_sources", together=True),
    Role("deepspeed_launch", "the hostfile is complete, and no job has failed or is lost", GROUP, together=True),
)
NAMES = tuple(role.name for role in ROLES)
PLANNED = NAMES[1:]
"""All but preflight, which changes nothing."""
HOST_BY_HOST = tuple(role.name for role in ROLES if role.planned_for == HOST)
TOGETHER = tuple(role.name for role in ROLES if role.together)


def concern_group(roles: Sequence[str]) -> dict[str, str]:
    """Return those of the roles that may concern the group, each with the variable on which that depends, if any."""
    return {
        role.name: "" if role.planned_for == GROUP else role.planned_for
        for role in ROLES
        if role.name in roles and role.planned_for != HOST
    }


def requested_roles(run_tags: Sequence[str], skip_tags: Sequence[str]) -> list[str]:
    """Return the roles that a run with these tags walks."""
    everything = bool({"all", "verify", "tagged"} & set(run_tags))
    return [name for name in NAMES if (everything or name in (*run_tags, "preflight")) and name not in skip_tags]


def role_of(tags: Sequence[str]) -> str:
    """Return the role of a task by its tags, preflight having ``always``; empty for one of none, such as the pairs."""
    if "fabric" in tags:
        return ""
    return next((name for name in NAMES if name in tags), "preflight" if "always" in tags else "")
