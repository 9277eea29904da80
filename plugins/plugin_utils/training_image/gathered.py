# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role training_image needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered

ROLE = "training_image"


def repository(role_vars: Mapping[str, Any]) -> str:
    """Return the name of the image without its tag."""
    if role_vars["training_image_source"] == "build":
        return str(role_vars["training_image_repository"])
    return re.sub(r":[^:/]*$", "", str(role_vars["training_image_name"]))


def by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"repositories": [repository(role_vars)]}


GATHERED = Gathered(by_role_vars=by_role_vars)
