# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is gathered from a host for each role that is planned."""

from __future__ import annotations

from ..assets import gathered as assets
from ..core.roles import PLANNED
from ..deepspeed_launch import gathered as deepspeed_launch
from ..docker import gathered as docker
from ..host import gathered as host
from ..nccl_env import gathered as nccl_env
from ..nvidia_container_toolkit import gathered as nvidia_container_toolkit
from ..nvidia_driver import gathered as nvidia_driver
from ..overlay_network import gathered as overlay_network
from ..plan.gathered import Gathered
from ..ssh_trust import gathered as ssh_trust
from ..swarm import gathered as swarm
from ..training_container import gathered as training_container
from ..training_image import gathered as training_image
from ..workspace import gathered as workspace

_MODULES = (
    *(assets, deepspeed_launch, docker, host, nccl_env, nvidia_container_toolkit, nvidia_driver),
    *(overlay_network, ssh_trust, swarm, training_container, training_image, workspace),
)
_FOUND = {module.ROLE: module.GATHERED for module in _MODULES}
GATHERED: dict[str, Gathered] = {role: _FOUND[role] for role in PLANNED}
