# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planners of the roles. Only what makes a plan imports them: most tasks report a part of one that is made."""

from __future__ import annotations

from collections.abc import Iterable

from ..assets.planner import AssetsPlanner
from ..core.roles import PLANNED
from ..deepspeed_launch.planner import DeepspeedLaunchPlanner
from ..docker.planner import DockerPlanner
from ..host.planner import HostPlanner
from ..nccl_env.planner import NcclEnvPlanner
from ..nvidia_container_toolkit.planner import NvidiaContainerToolkitPlanner
from ..nvidia_driver.planner import NvidiaDriverPlanner
from ..overlay_network.planner import OverlayNetworkPlanner
from ..plan.fold import Planner
from ..ssh_trust.planner import SshTrustPlanner
from ..swarm.planner import SwarmPlanner
from ..training_container.planner import TrainingContainerPlanner
from ..training_image.planner import TrainingImagePlanner
from ..workspace.planner import WorkspacePlanner

_FOUND: dict[str, Planner] = {
    planner.role: planner
    for planner in (
        AssetsPlanner(),
        DeepspeedLaunchPlanner(),
        DockerPlanner(),
        HostPlanner(),
        NcclEnvPlanner(),
        NvidiaContainerToolkitPlanner(),
        NvidiaDriverPlanner(),
        OverlayNetworkPlanner(),
        SshTrustPlanner(),
        SwarmPlanner(),
        TrainingContainerPlanner(),
        TrainingImagePlanner(),
        WorkspacePlanner(),
    )
}


def planners(roles: Iterable[str]) -> list[Planner]:
    """Return the planners of these roles, in the order of the roles."""
    requested = set(roles)
    return [_FOUND[role] for role in PLANNED if role in requested]
