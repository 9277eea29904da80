# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The roles that are planned, in the order in which a run walks them."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.planner import AssetsPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.planner import DeepspeedLaunchPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import DockerPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import HostPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NcclEnvPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.planner import (
    NvidiaContainerToolkitPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.planner import NvidiaDriverPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.planner import OverlayNetworkPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Planner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.planner import SshTrustPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.planner import SwarmPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.planner import (
    TrainingContainerPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.planner import TrainingImagePlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.planner import WorkspacePlanner

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
