# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How the script of an example gets ds_config.json, decided as the plan decides it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.settled import (
    integration,
    read_by_plan,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.integration import Integration
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import read, split_kind

from tests.role_values import defaults


def decided(folder: Path, variables: Mapping[str, Any]) -> Integration:
    """Return the decision for a job whose source is this folder, or the one that its variables name."""
    own = str(variables.get("workspace_source", "")).startswith(("https://", "http://"))
    source = {} if own else {"swarmspeed_source": {"folder": str(folder)}}
    role_vars = {**defaults(), **variables, **source}
    return integration(role_vars, {name: read(*split_kind(name)) for name in read_by_plan(role_vars)})
