# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nccl_env needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered
from ..plan.owned import requested_folders

ROLE = "nccl_env"
_VARIABLES = (
    "nccl_env_settings",
    "nccl_env_environment",
    "nccl_env_debug",
    "nccl_env_timeout",
    "nccl_env_version",
)
_OPTIONAL = (
    "cluster_name",
    "cluster_root",
    "cluster_network_mode",
    "deepspeed_launch_runtime",
    "overlay_network_name",
    "ssh_trust_port",
    # Whose PyTorch, and so whose NCCL, ranks have.
    "training_image_source",
    "training_image_dockerfile",
    # Whether ranks have CUDA's compiler.
    "workspace_python_environment",
    "workspace_python_torch",
    "workspace_python_torch_index",
    "workspace_python_compiler",
)


def _by_wishes(wishes: Mapping[str, Any]) -> dict[str, Any]:
    root = str(wishes["cluster_root"])
    return {
        "folders": requested_folders(wishes, [root, *(f"{root}/{name}" for name in ("etc", "jobs", "host_jobs"))]),
        "files": [
            {"path": root},
            {"path": f"{root}/etc"},
            {"path": f"{root}/jobs"},
            {"path": f"{root}/host_jobs"},
            {"path": f"{root}/etc/nccl.conf.host", "content": True},
            {"path": f"{root}/etc/nccl.conf", "content": True},
            {"path": f"{root}/etc/nccl.release", "content": True},
            # May hold tokens of the user's (HF_TOKEN, WANDB_API_KEY).
            {"path": f"{root}/etc/env", "secret": True},
            {"path": f"{root}/etc/entrypoint.sh", "content": True},
        ],
    }


GATHERED = Gathered(_VARIABLES, _OPTIONAL, by_wishes=_by_wishes)
