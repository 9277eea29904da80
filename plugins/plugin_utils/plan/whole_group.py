# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which roles are planned for the cluster as a whole. The others plan each host for itself."""

from __future__ import annotations

WHOLE_GROUP = (
    *("swarm", "overlay_network", "training_image", "ssh_trust", "nccl_env"),
    *("training_container", "deepspeed_launch"),
)
"""Roles that concern the cluster as a whole: they are planned for all of its hosts or for none."""
WHOLE_GROUP_WITH = {"workspace": "workspace_python_environment", "assets": "assets_sources"}
"""Roles that do so where this variable is not empty."""
TOGETHER = (*WHOLE_GROUP, "assets")
"""Roles that do nothing on any host where they stop at one: what they do there concerns the others."""
HOST_BY_HOST = ("host", "nvidia_driver", "docker", "nvidia_container_toolkit")
"""Roles that plan each host for itself, whatever the variables: a run with their tags needs no other host."""
