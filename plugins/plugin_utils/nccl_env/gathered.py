# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nccl_env needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered
from ..plan.owned import requested_folders

ROLE = "nccl_env"


def _by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    root = str(role_vars["cluster_root"])
    return {
        "folders": requested_folders(role_vars, [root, *(f"{root}/{name}" for name in ("etc", "jobs", "host_jobs"))]),
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


GATHERED = Gathered(by_role_vars=_by_role_vars)
