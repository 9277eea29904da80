# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is gathered from a host for each role that is planned."""

from __future__ import annotations

from importlib import import_module

from ..core.roles import PLANNED
from ..plan.gathered import Gathered

GATHERED: dict[str, Gathered] = {role: import_module(f"..{role}.gathered", __package__).GATHERED for role in PLANNED}
