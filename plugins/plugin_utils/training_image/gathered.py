# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role training_image needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered

ROLE = "training_image"
_VARIABLES = (
    "training_image_source",
    "training_image_name",
    "training_image_archive",
    "training_image_dockerfile",
    "training_image_context",
    "training_image_build_args",
    "training_image_repository",
    "training_image_base",
    "training_image_base_archive",
    "training_image_python",
    "training_image_torch",
    "training_image_torch_index",
    "training_image_cuda",
    "training_image_compute_capabilities",
    "training_image_deepspeed_version",
    "training_image_deepspeed_source",
    "training_image_deepspeed_ops",
    "training_image_compiler",
    "training_image_python_packages",
    "training_image_requirements",
    "training_image_apt_packages",
    "training_image_wheelhouse",
    "training_image_pip_index",
    "training_image_apt_sources",
    "training_image_apt_repositories",
    "training_image_proxy",
    "training_image_remove",
    "training_image_prune",
)
_OPTIONAL = (
    "cluster_name",
    "cluster_root",
    "deepspeed_launch_runtime",
    # Which operators the job needs.
    "deepspeed_launch_ds_config_preset",
    "deepspeed_launch_ds_config",
    "host_ca_certificate",
    # Whether containers may be made again although a job runs in them.
    "training_container_recreate",
    # Where it was worked out already in this run.
    "swarmspeed_image",
)


def repository(wishes: Mapping[str, Any]) -> str:
    """Return the name of the image without its tag."""
    if wishes["training_image_source"] == "build":
        return str(wishes["training_image_repository"])
    return re.sub(r":[^:/]*$", "", str(wishes["training_image_name"]))


def by_wishes(wishes: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"repositories": [repository(wishes)]}


GATHERED = Gathered(_VARIABLES, _OPTIONAL, by_wishes=by_wishes)
