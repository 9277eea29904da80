# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What containers have of CUDA and of their host's GPUs. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.nvidia_container_toolkit import cuda, smoke
from ..plugin_utils.validate.filters import one_line


@one_line("swarmspeed.cluster.cuda_verdict", "what an image and a driver say of CUDA")
def cuda_verdict(environment: Any, driver_cuda: Any, image: str, driver: Any) -> dict[str, str]:
    """Return whether the CUDA of an image runs on a driver, in words."""
    if not isinstance(environment, (list, tuple)):
        raise AnsibleFilterError("swarmspeed.cluster.cuda_verdict: expected a list of NAME=value")
    return cuda.cuda_verdict([str(entry) for entry in environment], driver_cuda, str(image), driver)


@one_line("swarmspeed.cluster.smoke_problem", "what ran in a container")
def smoke_problem(listed: Any, cuda: Any, node: Any, *, image: str, gpus: int, slots: int) -> str:
    """Return what a container lacks of the GPUs of its host, empty where it has all."""
    ran = [_mapping("smoke_problem", one) for one in (listed, cuda, node)]
    return smoke.problem(ran[0], ran[1], ran[2], image=str(image), gpus=int(gpus), slots=int(slots))


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"swarmspeed.cluster.{name}: expected a mapping, got {type(value).__name__}")
    return value


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "cuda_verdict": cuda_verdict,
            "smoke_problem": smoke_problem,
        }
