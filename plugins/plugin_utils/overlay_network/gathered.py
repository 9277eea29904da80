# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role overlay_network needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from ..plan.gathered import Gathered

ROLE = "overlay_network"

# Networks and containers are part of the facts anyway.
GATHERED = Gathered()
