# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The roles that are planned, in the order in which a run walks them."""

from __future__ import annotations

from collections.abc import Iterable

from ..assets.planner import AssetsPlanner
from ..deepspeed_launch.planner import DeepspeedLaunchPlanner
from ..docker.planner import DockerPlanner
from ..host.planner import HostPlanner
from ..nccl_env.planner import NcclEnvPlanner
from ..nvidia_container_toolkit.planner import NvidiaContainerToolkitPlanner
from ..nvidia_driver.planner import NvidiaDriverPlanner
from ..overlay_network.planner import OverlayNetworkPlanner
from ..ssh_trust.planner import SshTrustPlanner
from ..swarm.planner import SwarmPlanner
from ..training_container.planner import TrainingContainerPlanner
from ..training_image.planner import TrainingImagePlanner
from ..workspace.planner import WorkspacePlanner
from .fold import Planner

PLANNERS: tuple[Planner, ...] = (
    HostPlanner(),
    NvidiaDriverPlanner(),
    DockerPlanner(),
    NvidiaContainerToolkitPlanner(),
    SwarmPlanner(),
    OverlayNetworkPlanner(),
    TrainingImagePlanner(),
    SshTrustPlanner(),
    NcclEnvPlanner(),
    TrainingContainerPlanner(),
    WorkspacePlanner(),
    AssetsPlanner(),
    DeepspeedLaunchPlanner(),
)
PLANNED = tuple(planner.role for planner in PLANNERS)


def planners(roles: Iterable[str]) -> list[Planner]:
    """Return the planners of these roles, in the order of the roles."""
    wanted = set(roles)
    return [planner for planner in PLANNERS if planner.role in wanted]
